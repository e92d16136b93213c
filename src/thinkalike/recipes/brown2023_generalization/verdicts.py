"""The statements on generalization, each from numbers alone, by the rules of `rules.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.stats import t as student

from thinkalike.inference.clusters import cluster_models
from thinkalike.inference.groups import compare_groups
from thinkalike.labels import Floats
from thinkalike.recipes.brown2023_generalization.choice import GROUPS
from thinkalike.recipes.brown2023_generalization.classifier_cka import PAPER_VARIANT
from thinkalike.recipes.brown2023_generalization.classifiers import Bools, sets_of
from thinkalike.recipes.brown2023_generalization.measured import Measured
from thinkalike.recipes.brown2023_generalization.rules import APART, EARLY, LATE, LEARNT
from thinkalike.recipes.effects import CONFIDENCE, Effect, median_range
from thinkalike.recipes.findings import Statement, decided
from thinkalike.recipes.rules import Rule

SETS = "sets of questions"


@dataclass(frozen=True, eq=False)
class Groups:
    """What was measured between the models of two groups, and the rules that judge it.

    Attributes
    ----------
    rule : name → the rule that holds for these groups
    tests : how the range of a separation is made, for `compare_groups`
    untested : why nothing can be said of these groups; empty where something can
    """

    measured: Measured
    groups: tuple[str, ...]
    rule: Callable[[str], Rule]
    tests: dict[str, Any]
    untested: str = ""

    def statements(self) -> dict[str, Statement]:
        """All but the one on spread, by the names of their rules."""
        made: dict[str, Callable[[], Sequence[Effect]]] = {
            "early stitching": self.early_stitching,
            "late between": self.late_between,
            "late within": self.late_within,
            "early CKA": partial(self.cka_apart, self.early),
            "late CKA": partial(self.cka_apart, self.late),
            "outside": self.outside,
            "two clusters": self.two_clusters,
            "recovered": self.recovered,
            "variants": self.variants,
            "barriers": self.barriers,
        }
        return {name: self._decided(name, make) for name, make in made.items()}

    def _decided(self, name: str, make: Callable[[], Sequence[Effect]]) -> Statement:
        if self.untested:
            return decided(self.rule(name), [], comment=self.untested)
        return decided(self.rule(name), make())

    @property
    def late(self) -> Bools:
        return self.measured.shares >= LATE

    @property
    def early(self) -> Bools:
        return self.measured.shares <= EARLY

    def early_stitching(self) -> list[Effect]:
        costs = self.measured.costs[:, self.early].mean(axis=1)
        return [self.directed(costs, a, b) for a in GROUPS for b in GROUPS]

    def late_between(self) -> list[Effect]:
        return [self.separation(self.measured.costs[:, self.late].mean(axis=1), "distance")]

    def late_within(self) -> list[Effect]:
        costs = self.measured.costs[:, self.late].mean(axis=1)
        return [self.directed(costs, group, group) for group in GROUPS]

    def cka_apart(self, layers: Bools) -> list[Effect]:
        cka = self.measured.geometry[PAPER_VARIANT].cka
        return [self.separation(cka[:, layers].mean(axis=1), "similarity")]

    def outside(self) -> list[Effect]:
        """At the last layer; a bottom counts by its mean over the tops of its own group."""
        last = self.measured.outside[:, -1]
        good, bad = (np.nanmean(self._pairs(last, group, group), axis=2) for group in GROUPS)
        return [gap_effect(good, bad)]

    def two_clusters(self) -> list[Effect]:
        """Each group must be farther from the other than it is wide."""
        distances = self.measured.geometry[PAPER_VARIANT].distances
        found = []
        for own, other in (GROUPS, GROUPS[::-1]):
            within = np.nanmean(self._pairs(distances, own, own), axis=2)  # (n_sets, n_own)
            between = np.nanmean(self._pairs(distances, own, other), axis=2)
            found.append(Effect.crossed(between / within - 1, (SETS, "models"), own))
        return found

    def recovered(self) -> list[Effect]:
        sources = {
            "CKA": self.measured.geometry[PAPER_VARIANT].distances,
            "penalties": np.clip(self.measured.costs[:, self.late].mean(axis=1), 0.0, None),
        }
        return [
            Effect.over_draws(
                [cluster_models(d, groups=self.groups, n_permutations=1).adjusted_rand for d in by_set],
                SETS,
                f"from {name}",
            )
            for name, by_set in sources.items()
        ]

    def variants(self) -> list[Effect]:
        """Each other variant against the paper's, by set and model."""
        late = {
            name: self._by_model(-one.cka[:, self.late].mean(axis=1))
            for name, one in self.measured.geometry.items()
        }
        return [
            Effect.crossed(values - late[PAPER_VARIANT], (SETS, "models"), name)
            for name, values in late.items()
            if name != PAPER_VARIANT
        ]

    def barriers(self) -> list[Effect]:
        found = self.separation(self.measured.barriers[None], "distance")
        return [Effect("", found.value, found.low, found.high, f"{len(self.groups)} models")]

    def directed(self, values: Floats, a: str, b: str) -> Effect:
        """From one group to another (n_sets, m, m): over sets, bottoms and tops, whichever is widest."""
        return Effect.crossed(self._pairs(values, a, b), (SETS, "bottoms", "tops"), f"{a} → {b}")

    def separation(self, values: Floats, kind: Literal["distance", "similarity"]) -> Effect:
        """How much farther apart the groups are than each within itself: the wider of two ranges.

        Over models it is that of `compare_groups`, over sets that of the median.
        """
        row = compare_groups(
            values.mean(axis=0), self.groups, kind=kind, squared=False, **self.tests
        ).separation.iloc[0]
        sign = 1.0 if kind == "distance" else -1.0
        by_set = self._by_model(sign * values).mean(axis=1)
        ends = [median_range(by_set)] if len(by_set) > 1 else []
        return widest(
            float(row["separation"]),
            *ends,
            (float(row["low"]), float(row["high"])),
            over=(f"{len(by_set)} {SETS}", f"{len(self.groups)} models"),
        )

    def _pairs(self, values: Floats, a: str, b: str) -> Floats:
        """From models of `a` to models of `b`: (n_sets, n_a, n_b); NaN for a model with itself."""
        groups = np.array(self.groups)
        own = np.where(np.eye(len(groups), dtype=bool), np.nan, values)
        return own[:, groups == a][:, :, groups == b]

    def _by_model(self, values: Floats) -> Floats:
        """Of each model, the mean with the other group less that with its own: (n_sets, m).

        Both directions count alike; the groups must be of one size, so that they do too.
        """
        both = (values + values.transpose(0, 2, 1)) / 2
        parts = []
        for own, other in (GROUPS, GROUPS[::-1]):
            between, within = (np.nanmean(self._pairs(both, own, g), axis=2) for g in (other, own))
            parts.append(between - within)
        return np.concatenate(parts, axis=1)


def spread(
    good: Mapping[str, Bools],
    bad: Mapping[str, Bools],
    *,
    sets: int,
    inside: Sequence[float],
    rule: Rule,
    numbers: Mapping[str, float],
    comment: str = "",
) -> Statement:
    """The groups on questions that did not choose them: name → which answers are right, for both groups."""
    n_questions = len(next(iter(good.values())))
    by_set = [
        np.array([[right[rows].mean() for right in group.values()] for rows in sets_of(n_questions, sets)])
        for group in (good, bad)
    ]
    effects = [gap_effect(*by_set)]
    if float(np.mean(inside)) < LEARNT:
        return decided(rule, [], comment=f"The task itself was not learnt: {np.mean(inside):.0%} are right.")
    return decided(rule, effects, comment=comment, numbers=numbers)


def gap_effect(good: Floats, bad: Floats) -> Effect:
    """Mean of (n_sets, n_good) less that of (n_sets, n_bad): over sets, and over models by Welch's t."""
    gaps = good.mean(axis=1) - bad.mean(axis=1)
    n_models = good.shape[1] + bad.shape[1]
    return widest(
        float(gaps.mean()),
        median_range(gaps),
        welch_range(good.mean(axis=0), bad.mean(axis=0)),
        over=(f"{len(gaps)} {SETS}", f"{n_models} models"),
    )


def welch_range(a: Floats, b: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Of the difference of two means, whose groups may spread unequally (Welch 1947)."""
    gap = float(a.mean() - b.mean())
    parts = np.array([one.var(ddof=1) / len(one) for one in (a, b)])
    if not parts.sum() > 0:
        return gap, gap
    freedom = parts.sum() ** 2 / (parts**2 / (np.array([len(a), len(b)]) - 1)).sum()
    reach = float(np.sqrt(parts.sum()) * student.ppf((1 + confidence) / 2, freedom))
    return gap - reach, gap + reach


def widest(value: float, *ends: tuple[float, float], over: Sequence[str]) -> Effect:
    """One effect with the wider of several ranges; none where one of them is unknown."""
    low, high = (np.array(side) for side in zip(*ends, strict=True))
    return Effect("", value, float(low.min()), float(high.max()), " and ".join(over))


def why_untested(found: Statement) -> str:
    """Why nothing can be said of groups that hardly differ; empty where they do differ."""
    if not found.effects:
        return "Not tested: the task was not learnt."
    effect = found.effects[0]
    if effect.high < APART:
        return (
            f"Not tested: on questions that did not choose them the groups are less than {APART:.0%} apart, "
            "so there are no two groups."
        )
    return ""
