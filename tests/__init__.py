"""The tests: a package, so that processes which tests start find these before others of that name."""
