"""One look for every figure: colours for light and dark, fonts, axes.

The same feature and the same system have the same colour in every chart. Features are saturated, systems
muted and told apart by shape too, levels of a feature are a third family, so that no two meanings share a
colour. With any kind of colour blindness each family can be told apart as well as the palette of Okabe and
Ito, or better, and stands out from the surface by at least 3:1; a test holds both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import altair as alt
import pandas as pd
from altair.utils.schemapi import UndefinedType

from thinkalike.errors import UnknownName

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")

Legend = alt.Legend | UndefinedType | None
Data = pd.DataFrame | alt.NamedData | alt.InlineData
MOST_ROWS = 5000
"""Of a DataFrame that Altair draws without being told to"""
Chart = TypeVar("Chart", bound=alt.TopLevelMixin)


@dataclass(frozen=True)
class Theme:
    """The colours of one mode. Ramps run from low to high; high is the same blue in both of them."""

    surface: str
    ink: str
    muted: str
    rule: str
    features: tuple[str, ...]
    systems: tuple[str, ...]
    levels: tuple[str, ...]
    sequential: tuple[str, ...]
    negative: tuple[str, ...]
    """The part of the diverging ramp below its middle, lowest first"""

    @property
    def diverging(self) -> tuple[str, ...]:
        return self.negative + self.sequential

    @property
    def accent(self) -> str:
        """For links, and for the one thing that a chart is about."""
        return self.sequential[5]

    def feature_colors(self, n: int) -> list[str]:
        """The first features are coloured, those past the palette share a grey."""
        return [*self.features[:n], *[self.muted] * (n - len(self.features))]

    def system_colors(self, n: int) -> list[str]:
        return [self.systems[k % len(self.systems)] for k in range(n)]

    def level_colors(self, n: int) -> list[str]:
        return [self.levels[k] if k < len(self.levels) else self.muted for k in range(n)]


LIGHT = Theme(
    surface="#ffffff",
    ink="#1d2126",
    muted="#646c76",
    rule="#e2e5e9",
    features=("#3087e3", "#ad8e31", "#851616", "#005357", "#6a0c8e", "#f55f9a", "#4d7722", "#a94893"),
    systems=("#044458", "#c08261", "#8c5a86", "#4a6931", "#7392c9", "#622b0c"),
    levels=("#2599ce", "#9a5400", "#29775e", "#661651", "#818f22", "#645191", "#ca8184", "#4c431a"),
    sequential=("#f3f2ef", "#d3e2ee", "#a4c6e0", "#6aa2cd", "#367bb0", "#17558b", "#08335f"),
    negative=("#5c2c05", "#8f4a0d", "#bd6f22", "#db9a57", "#eec295", "#f5e1cc"),
)
DARK = Theme(
    surface="#16191d",
    ink="#e7eaee",
    muted="#98a2ad",
    rule="#2d333a",
    features=("#0374dc", "#b39007", "#a85558", "#6df6fc", "#a899ff", "#f269a7", "#c5f15d", "#eab8a0"),
    systems=("#96d9f5", "#99674e", "#ce93bd", "#8fa566", "#5379ac", "#fdc098"),
    levels=("#30ad8a", "#f9d6bf", "#998ad2", "#bc9033", "#497b98", "#e6a5e5", "#a9cb74", "#a85b58"),
    sequential=("#272c32", "#274059", "#2c5880", "#3a76aa", "#5f9bd0", "#93c2eb", "#cfe6fb"),
    negative=("#fbe0c0", "#efbd85", "#d6934c", "#aa6e2f", "#7a4f24", "#4e3a26"),
)
THEMES: dict[str, Theme] = {"light": LIGHT, "dark": DARK}


def counterparts(of: Theme, to: Theme) -> dict[str, str]:
    """Every colour of one theme → the one of the same meaning in the other, to change a finished chart."""
    pairs: dict[str, str] = {}
    for part in fields(Theme):
        ours, theirs = (getattr(theme, part.name) for theme in (of, to))
        pairs |= {ours: theirs} if isinstance(ours, str) else dict(zip(ours, theirs, strict=True))
    return pairs


def get_theme(name: str) -> Theme:
    """The theme called `name`."""
    if name not in THEMES:
        raise UnknownName.among("theme", name, THEMES)
    return THEMES[name]


def themed(chart: Chart, theme: Theme = LIGHT) -> Chart:
    """`chart` with the fonts, axes and surface of the theme. Do it last: Altair cannot join such charts."""
    return chart.configure(**config(theme))


def config(theme: Theme) -> dict[str, Any]:
    """The Vega-Lite config of a theme."""
    words = {"labelColor": theme.muted, "titleColor": theme.ink, "labelFontSize": 11, "titleFontSize": 12}
    return {
        "background": theme.surface,
        "font": FONT,
        # Charts are described by their own alt text; a screen reader should not read a thousand marks.
        "aria": False,
        "view": {"stroke": None},
        "axis": {
            **words,
            "titleFontWeight": "normal",
            "domainColor": theme.rule,
            "tickColor": theme.rule,
            "gridColor": theme.rule,
            "tickSize": 4,
            "labelPadding": 4,
            "titlePadding": 8,
        },
        "legend": {**words, "titleFontWeight": "normal", "symbolSize": 80},
        "header": {**words, "labelColor": theme.ink, "labelFontSize": 12},
        "title": {"color": theme.ink, "fontSize": 13, "anchor": "start", "fontWeight": 600},
        "text": {"color": theme.ink, "fontSize": 11},
        "rule": {"color": theme.muted},
    }


def drawable(table: pd.DataFrame) -> Data:
    """A table of any length: Altair refuses to draw long DataFrames, and is slow with long lists of rows."""
    if len(table) <= MOST_ROWS:
        return table
    numbers = {str(name): "number" for name in table.select_dtypes("number")}
    return alt.InlineData(
        values=table.to_csv(index=False), format=alt.CsvDataFormat(type="csv", parse=numbers)
    )


def layered(*parts: alt.Chart, width: float, height: float, title: str = "") -> alt.LayerChart:
    """Charts on top of each other, the last in front."""
    return alt.LayerChart(layer=list(parts)).properties(width=width, height=height, title=title)


def colour_bar(title: str, *, length: int, ticks: int | None = None) -> alt.Legend:
    """The legend of a ramp, under the chart, with about so many ticks."""
    return alt.Legend(
        title=title,
        orient="bottom",
        direction="horizontal",
        gradientLength=length,
        gradientThickness=8,
        titleOrient="left",
        titlePadding=10,
        tickCount=alt.Undefined if ticks is None else ticks,
    )


def feature_color(features: Sequence[str], theme: Theme, *, legend: Legend = alt.Undefined) -> alt.Color:
    """Colour by the field `feature`; `features` in the order that gives each its colour."""
    scale = alt.Scale(domain=list(features), range=theme.feature_colors(len(features)))
    return alt.Color("feature:N", scale=scale, title=None, legend=legend)


def shapes(n: int) -> list[str]:
    """A shape for each of n: with its colour no two are the same up to 36, for after six the shapes shift."""
    return [SHAPES[(k + k // len(SHAPES)) % len(SHAPES)] for k in range(n)]


def system_color(systems: Sequence[str], theme: Theme, *, legend: Legend = alt.Undefined) -> alt.Color:
    """Colour by the field `system`."""
    scale = alt.Scale(domain=list(systems), range=theme.system_colors(len(systems)))
    return alt.Color("system:N", scale=scale, title=None, legend=legend)


def system_shape(systems: Sequence[str], *, legend: Legend = alt.Undefined) -> alt.Shape:
    """Shape by the field `system`, so that colour is never alone."""
    scale = alt.Scale(domain=list(systems), range=shapes(len(systems)))
    return alt.Shape("system:N", scale=scale, title=None, legend=legend)
