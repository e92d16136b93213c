"""A chart as the bytes of a file, as wide as on the page or as a column of a journal."""

from __future__ import annotations

import io
import re
from typing import Literal, cast

from thinkalike.types import Chart, Json

Format = Literal["png", "svg", "pdf", "html"]


def drawn(chart: Chart, format: str) -> bytes:
    """A chart as PNG, SVG, PDF or HTML: a page needs no network, and pixels are drawn twice as fine."""
    target: io.BytesIO | io.StringIO = io.BytesIO() if format in ("png", "pdf") else io.StringIO()
    chart.save(target, format=cast(Format, format), inline=format == "html", scale_factor=2)
    content = target.getvalue()
    return content if isinstance(content, bytes) else content.encode()


DOTS_PER_INCH = 300
"""Of a PNG; what journals ask for"""
_PIXELS_PER_INCH = 96  # of a page, by definition of CSS
_POINTS_PER_INCH = 72  # what PDF and PNG take a bare number for
_MILLIMETRES_PER_INCH = 25.4


def figure_file(spec: Json, format: str, millimetres: float | None = None) -> bytes:
    """A chart as PNG (300 dots per inch), SVG or PDF; with `millimetres` so wide, letters and all."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec)
    found = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
    assert found is not None  # Vega writes both
    wide, high = float(found[1]), float(found[2])
    inches = wide / _PIXELS_PER_INCH if millimetres is None else millimetres / _MILLIMETRES_PER_INCH

    def sized(unit: str, per_inch: float) -> str:
        width = inches * per_inch
        size = f'width="{width:.3f}{unit}" height="{width * high / wide:.3f}{unit}"'
        return svg.replace(found[0], size, 1)

    if format == "svg":
        return sized("mm", _MILLIMETRES_PER_INCH).encode()
    if format == "pdf":
        return bytes(vl_convert.svg_to_pdf(sized("", _POINTS_PER_INCH)))
    return bytes(vl_convert.svg_to_png(sized("", _POINTS_PER_INCH), ppi=DOTS_PER_INCH))
