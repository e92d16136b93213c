"""Altair charts: plain values in, a chart out. In a notebook they are shown without the network."""

from __future__ import annotations

from thinkalike.charts.notebook import enable_in_notebooks

enable_in_notebooks()
