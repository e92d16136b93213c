"""The tests. A package by that name, so that processes which tests start find it before any other called so."""
