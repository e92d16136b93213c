"""What a recipe hands back: statements with a verdict, figures, tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from thinkalike.errors import UnknownName
from thinkalike.types import Facts, Json

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

Verdict = Literal["agrees", "differs", "cannot be tested"]
"""What became of a paper's statement"""
VERDICTS: tuple[str, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Statement:
    """One sentence of a paper, and what we find.

    Attributes
    ----------
    verdict : "agrees", "differs" or "cannot be tested"
    numbers : those that the verdict rests on, by name

    Examples
    --------
    >>> from thinkalike.recipes import Statement
    >>> Statement("BERT and GPT-2 are more alike.", "They are, τ = 0.6.", "agrees", {"tau": 0.6}).verdict
    'agrees'
    """

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
    """One of our figures, beside the figure of the paper that it answers to.

    Attributes
    ----------
    title, caption : what stands over and under it

    Examples
    --------
    >>> import altair as alt
    >>> import pandas as pd
    >>> from thinkalike.recipes import Figure
    >>> chart = alt.Chart(pd.DataFrame({"x": [1, 2]})).mark_point().encode(x="x:Q")
    >>> Figure("points", "Two points", chart, "There are two.", "Figure 1").spec["encoding"]["x"]["field"]
    'x'
    """

    name: str
    """Of its files, `figures/NAME.png` and `.svg`"""
    title: str
    chart: alt.TopLevelMixin = field(repr=False)
    """In its final look: `thinkalike.charts.theme.themed` was applied"""
    caption: str
    of_paper: str
    """`Figure 2`; empty for a figure that the paper has not"""

    @cached_property
    def spec(self) -> Json:
        """As Vega-Lite; not validated, which would take longer than to draw it."""
        return self.chart.to_dict(validate=False)


@dataclass(frozen=True, eq=False)
class Table:
    """A small table for the page; numbers are rounded there and whole in `findings.json`.

    Attributes
    ----------
    name : of its entry in `findings.json`
    title, caption : what stands over and under it
    frame : the table itself
    of_paper : "Table 1"; empty for a table that the paper has not

    Examples
    --------
    >>> import pandas as pd
    >>> from thinkalike.recipes import Table
    >>> Table("sizes", "How large the models are", pd.DataFrame({"blocks": [3, 4]})).frame.shape
    (2, 1)
    """

    name: str
    title: str
    frame: pd.DataFrame = field(repr=False)
    caption: str = ""
    of_paper: str = ""


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that one run of a recipe found.

    Attributes
    ----------
    recipe, scale, settings : what was run
    statements, figures, tables : what came out

    Examples
    --------
    >>> from thinkalike.recipes import Findings, Statement
    >>> Findings("salle2024", "smoke", (Statement("So it is.", "It is.", "agrees"),)).counts()
    {'agrees': 1, 'differs': 0, 'cannot be tested': 0}
    """

    recipe: str
    scale: str
    statements: tuple[Statement, ...]
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    settings: Facts = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What a reader should know before the figures: what was shown, and what is missing"""

    def counts(self) -> dict[str, int]:
        """How many statements have each verdict."""
        found: Counter[str] = Counter(statement.verdict for statement in self.statements)
        return {verdict: found[verdict] for verdict in VERDICTS}
