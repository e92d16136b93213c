"""What a recipe hands back: statements with a verdict, figures, tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from thinkalike.errors import UnknownName

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

Verdict = Literal["agrees", "differs", "cannot be tested"]
VERDICTS: tuple[str, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Statement:
    """One sentence of a paper, and what we find."""

    paper: str
    """The paper's finding, or what it assumed or left open, in our words"""
    found: str
    """What we find, with the numbers in it"""
    verdict: Verdict
    numbers: Mapping[str, float] = field(default_factory=dict)
    figure: str = ""
    """The name of the figure that shows it, if one does"""
    beyond: bool = False
    """Whether the paper itself did not look: an assumption or an open question of it"""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise UnknownName.among("verdict", self.verdict, VERDICTS)


@dataclass(frozen=True, eq=False)
class Figure:
    """One of our figures, beside the figure of the paper that it answers to."""

    name: str
    """Of its files, `figures/NAME.png` and `.svg`"""
    title: str
    chart: alt.TopLevelMixin = field(repr=False)
    """In its final look: `thinkalike.charts.theme.themed` was applied"""
    caption: str
    of_paper: str
    """`Figure 2`; empty for a figure that the paper has not"""

    @cached_property
    def spec(self) -> dict[str, Any]:
        """As Vega-Lite; not validated, which would take longer than to draw it."""
        return self.chart.to_dict(validate=False)


@dataclass(frozen=True, eq=False)
class Table:
    """A small table for the page; numbers are rounded there and whole in `findings.json`."""

    name: str
    title: str
    frame: pd.DataFrame = field(repr=False)
    caption: str = ""
    of_paper: str = ""


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that one run of a recipe found."""

    recipe: str
    scale: str
    statements: tuple[Statement, ...]
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What a reader should know before the figures: what was shown, and what is missing"""

    def counts(self) -> dict[str, int]:
        """How many statements have each verdict."""
        found: Counter[str] = Counter(statement.verdict for statement in self.statements)
        return {verdict: found[verdict] for verdict in VERDICTS}
