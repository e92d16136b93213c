"""What a recipe hands back: statements with a verdict, figures, tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from thinkalike.errors import UnknownName
from thinkalike.recipes.effects import Effect
from thinkalike.recipes.rules import VERDICTS, Rule, Sensitivity, Verdict, sensitivity, steadied
from thinkalike.wording import listed

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd


@dataclass(frozen=True)
class Statement:
    """One sentence of a paper, and what we find.

    Attributes
    ----------
    verdict : "agrees", "differs", "undecided" or "cannot be tested"
    numbers : further ones, by name
    rule, effects, sensitivity : what the verdict rests on: the rule, written before; the effects with their
        ranges; in how many other analyses it comes out alike

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
    rule: Rule | None = None
    effects: tuple[Effect, ...] = ()
    sensitivity: Sensitivity | None = None

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise UnknownName.among("verdict", self.verdict, VERDICTS)


def decided(
    rule: Rule,
    effects: Sequence[Effect],
    *,
    comment: str = "",
    analyses: Mapping[str, Mapping[str, float]] | None = None,
    numbers: Mapping[str, float] | None = None,
) -> Statement:
    """The statement that a rule makes of effects.

    Parameters
    ----------
    comment : sentences that follow the effects, such as why there are none
    analyses : the effects by name under each of a grid of other analyses, for the sensitivity
    """
    plain = rule.decide(effects)
    spread = sensitivity(rule, plain, analyses or {})
    said = [part for part in (effects_in_words(rule, effects), comment) if part]
    return Statement(
        paper=rule.claim,
        found=" ".join(said),
        verdict=steadied(plain, spread),
        numbers=numbers or {},
        figure=rule.figure,
        beyond=rule.beyond,
        rule=rule,
        effects=tuple(effects),
        sensitivity=spread,
    )


def effects_in_words(rule: Rule, effects: Sequence[Effect]) -> str:
    """`Share of layers: nano-bert 0.83 (0.67 to 1) and nano-gpt2 1, over 10 sets of sentences.`"""
    if not effects:
        return ""
    parts = []
    for one in effects:
        ends = f" ({_number(one.low)} to {_number(one.high)})" if one.low != one.high else ""
        ends = " (no range)" if one.low != one.low else ends
        parts.append(f"{one.about} {_number(one.value)}{ends}".lstrip())
    over = list(dict.fromkeys(one.over for one in effects if one.over))
    first = rule.effect[0]
    name = f"{first.upper() if first.isascii() else first}{rule.effect[1:]}"  # ρ and τ stay small
    return f"{name}: {listed(parts)}{f', over {listed(over)}' if over else ''}."


def _number(value: float) -> str:
    if value != value:
        return "unknown"
    text = f"{value:z.3f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")


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
    def spec(self) -> dict[str, object]:
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
    {'agrees': 1, 'differs': 0, 'undecided': 0, 'cannot be tested': 0}
    """

    recipe: str
    scale: str
    statements: tuple[Statement, ...]
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What a reader should know before the figures: what was shown, and what is missing"""

    def counts(self) -> dict[str, int]:
        """How many statements have each verdict."""
        found: Counter[str] = Counter(statement.verdict for statement in self.statements)
        return {verdict: found[verdict] for verdict in VERDICTS}
