"""Rules that decide a statement: written before the run, in one table for each recipe, and dated.

An effect has a range; a rule names the effects that would bear the paper out. A statement *agrees* when the
whole range lies among those, *differs* when none of it does, and is *undecided* otherwise. "There is none" is
a claim like any other: the whole range must lie within what counts as none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from thinkalike.recipes.effects import Effect

Verdict = Literal["agrees", "differs", "undecided", "cannot be tested"]
"""What became of a paper's statement"""
VERDICTS: tuple[str, ...] = get_args(Verdict)
ROUNDING = 1e-9
"""What the last digits of a float may move an effect that lies exactly on an end of its rule"""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a paper claims, the effect that would show it, and how large that effect must be.

    Attributes
    ----------
    claim : the paper's finding, or what it assumed or left open, in our words
    effect : what is measured, with its unit
    at_least, at_most : the effects that bear the claim out; both for "there is none"
    written : the day the rule was written, before the run that it judges
    figure : the name of the figure that shows it, if one does
    beyond : whether the paper itself did not look

    Examples
    --------
    >>> from thinkalike.recipes import Effect, Rule
    >>> rule = Rule(claim="A exceeds B.", effect="A − B", at_least=0.1, written="2026-11-17")
    >>> rule.decide([Effect.over_draws([0.3, 0.2, 0.4, 0.3, 0.2, 0.5], "seeds")])
    'agrees'
    >>> rule.decide([Effect.over_draws([0.3, 0.0, 0.4, 0.3, -0.2, 0.5], "seeds")])
    'undecided'
    """

    claim: str
    effect: str
    at_least: float = -math.inf
    at_most: float = math.inf
    written: str
    earlier: tuple[str, ...] = ()
    """Rules that this one replaced, each with its date and the reason"""
    figure: str = ""
    beyond: bool = False

    def holds(self, value: float) -> bool:
        """Whether an effect of this size bears the claim out."""
        return self.at_least - ROUNDING <= value <= self.at_most + ROUNDING

    def judge(self, effect: Effect) -> Verdict:
        """The verdict on one effect."""
        if not (math.isfinite(effect.low) and math.isfinite(effect.high)):
            return "undecided"
        if self.holds(effect.low) and self.holds(effect.high):
            return "agrees"
        if effect.high < self.at_least - ROUNDING or effect.low > self.at_most + ROUNDING:
            return "differs"
        return "undecided"

    def decide(self, effects: Sequence[Effect]) -> Verdict:
        """The verdict on all: every effect must bear the claim out, and one that does not refutes it."""
        found = {self.judge(effect) for effect in effects}
        if not found:
            return "cannot be tested"
        return next(verdict for verdict in ("differs", "undecided", "agrees") if verdict in found)

    @property
    def in_words(self) -> str:
        """`agrees from 0.75 on`."""
        low, high = (f"{end:g}".replace("-", "−") for end in (self.at_least, self.at_most))
        if math.isfinite(self.at_least) and math.isfinite(self.at_most):
            return f"agrees from {low} to {high}"
        return f"agrees from {low} on" if math.isfinite(self.at_least) else f"agrees up to {high}"


@dataclass(frozen=True)
class Sensitivity:
    """In how many other reasonable analyses a claim comes out as in the main one.

    Attributes
    ----------
    agree, n : how many of how many analyses

    Examples
    --------
    >>> from thinkalike.recipes import Sensitivity
    >>> Sensitivity(3, 4, ("cosine",)).share
    0.75
    """

    agree: int
    n: int
    otherwise: tuple[str, ...] = field(default=(), repr=False)
    """The analyses in which it comes out otherwise"""

    @property
    def share(self) -> float:
        """From 0 to 1; NaN without analyses."""
        return self.agree / self.n if self.n else math.nan


def sensitivity(
    rule: Rule, verdict: Verdict, analyses: Mapping[str, Mapping[str, float]]
) -> Sensitivity | None:
    """How many analyses (name → effects by name) say what the verdict says; None for no such verdict.

    An analysis is one number without a range, so it says that the claim holds or that it does not.
    """
    if verdict not in ("agrees", "differs"):
        return None
    known = {
        name: all(rule.holds(value) for value in effects.values())
        for name, effects in analyses.items()
        if effects and all(math.isfinite(value) for value in effects.values())
    }
    if not known:
        return None
    otherwise = tuple(name for name, holds in known.items() if holds != (verdict == "agrees"))
    return Sensitivity(len(known) - len(otherwise), len(known), otherwise)


def steadied(verdict: Verdict, found: Sensitivity | None) -> Verdict:
    """A verdict that not even half of the analyses share is undecided."""
    return "undecided" if found is not None and found.share < 0.5 else verdict
