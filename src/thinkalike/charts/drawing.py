"""A chart as the bytes of a file."""

from __future__ import annotations

import io

from thinkalike.types import Chart, Option


def drawn(chart: Chart, format: str, **options: Option) -> bytes:
    """An Altair chart as PNG, SVG, PDF or HTML; `options` of its `save`, such as `scale_factor`."""
    target: io.BytesIO | io.StringIO = io.BytesIO() if format in ("png", "pdf") else io.StringIO()
    chart.save(target, format=format, **options)
    content = target.getvalue()
    return content if isinstance(content, bytes) else content.encode()
