"""Why are two layers alike? `Explanation`: contributions that sum to τ_w, in words and as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from thinkalike.comparison.feature_similarity import by_features, shared_features
from thinkalike.comparison.profiles import Profile, importance_shares
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.inference.weighted_tau import contributions, tau_without
from thinkalike.labels import Floats, Layer, Row, find_row, row_name
from thinkalike.options import one_name
from thinkalike.saving import Kept
from thinkalike.wording import listed, number, p_text, percent, readable, signed

if TYPE_CHECKING:
    import altair as alt

MATTERS = 0.10
"""A layer is said to be organised by a feature that has at least this share of its importance."""


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Kept):
    """Why one pair of layers is as alike as it is. Prints as a paragraph and a table.

    Attributes
    ----------
    a, b : (system, layer)
    features : that the two profiles share
    tau : weighted τ of the two profiles, in [−1, 1]
    importance_a, importance_b : (n_features,)
    low, high : float, optional
    shared, only_a, only_b : names of features
    rsa : Spearman's ρ of the distances within both layers, if the activations are at hand

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(30, seed=0, grammar="salle2024")
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(2, len(stimuli), 8))
    >>> profile = ta.profile({0: X, 1: Y}, stimuli)
    >>> found = ta.explain(profile, 0, profile, 1)
    >>> bool(np.isclose(found.contributions.sum(), found.tau))
    True
    """

    a: Row
    b: Row
    features: tuple[str, ...]
    tau: float
    importance_a: Floats = field()
    importance_b: Floats = field()
    """(n_features,) mean over folds"""
    contributions: Floats = field()
    """(n_features,) sum to τ_w"""
    without: Floats = field()
    """(n_features,) τ_w with each feature left out"""
    without_group: Mapping[str, float] = field(default_factory=dict)
    """τ_w with each declared group of features left out"""
    p_block: float | None = None
    """From relabelled strengths, corrected for all pairs of layers of the two systems; None: not tested"""
    low: float | None = None
    high: float | None = None
    """95 % range of τ_w over other sentences"""
    ceiling: float | None = None
    """What τ_w of two layers alike in truth would reach with so many sentences"""
    shared: tuple[str, ...] = ()
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    """Features that organise both layers, or one far more than the other"""
    rank_range_a: Floats | None = None
    """(2, n_features) the best and the worst rank that a feature may have; None without resamples"""
    rank_range_b: Floats | None = None
    """(2, n_features) the same in the other layer"""
    rsa: float | None = None
    rsa_range: tuple[float, float] | None = None
    """95 % range of RSA over other sentences"""
    rsa_across: tuple[float, float] | None = None
    """RSA with other sentences on one side, and the ceiling of that"""
    explained_share: float | None = None
    """The part of RSA that a sum over the named features explains; None when |RSA| < 0.05"""
    explained_range: tuple[float, float] | None = None
    """Its 95 % range over other sentences"""
    worst_pairs: pd.DataFrame | None = None
    """The pairs of items whose distances the features explain worst"""

    @property
    def text(self) -> str:
        """The paragraph."""
        return " ".join(filter(None, [self._likeness(), self._reasons(), self._drivers(), self._geometry()]))

    def to_frame(self) -> pd.DataFrame:
        """One row per feature, the largest contribution first."""
        frame = pd.DataFrame(
            {
                "feature": self.features,
                "importance_a": self.importance_a,
                "importance_b": self.importance_b,
                "rank_a": _ranks(self.importance_a),
                "rank_b": _ranks(self.importance_b),
                "contribution": self.contributions,
                "tau_without": self.without,
            }
        )
        for name, ends in (("rank_a", self.rank_range_a), ("rank_b", self.rank_range_b)):
            if ends is not None:
                frame[f"{name}_best"], frame[f"{name}_worst"] = ends
        return frame.sort_values("contribution", ascending=False, key=abs, kind="stable", ignore_index=True)

    def plot(self, *, theme: str | None = "light") -> alt.HConcatChart:
        """Importance in both layers (Figure 4 of Salle et al. 2024), and what adds up to τ_w."""
        from thinkalike.comparison.plots import draw, explanation_chart

        return draw(explanation_chart, self, theme=theme)

    def __str__(self) -> str:
        parts = [fill(self.text, 100), self._table().to_string(index=False)]
        if self.without_group:
            parts.append("\n".join(f"without {g}: τ_w = {number(t)}" for g, t in self.without_group.items()))
        if self.worst_pairs is not None:
            parts += ["The features explain these pairs worst:", self.worst_pairs.to_string(index=False)]
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        html = f"<p>{escape(self.text)}</p>{self._table().to_html(index=False, border=0)}"
        if self.worst_pairs is not None:
            html += "<p>The features explain these pairs worst:</p>"
            html += self.worst_pairs.to_html(index=False, border=0)
        return html

    def _table(self) -> pd.DataFrame:
        frame = self.to_frame()
        a, b = row_name(self.a), row_name(self.b)
        return pd.DataFrame(
            {
                "feature": frame["feature"].map(readable),
                f"importance {a}": frame["importance_a"].map(partial(number, digits=3)),
                f"importance {b}": frame["importance_b"].map(partial(number, digits=3)),
                "rank a": _with_ends(frame, "rank_a"),
                "rank b": _with_ends(frame, "rank_b"),
                "contribution": frame["contribution"].map(signed),
                "τ_w without": frame["tau_without"].map(number),
            }
        )

    def _likeness(self) -> str:
        a, b = row_name(self.a), row_name(self.b)
        if np.isnan(self.tau):
            return f"{a} and {b} cannot be compared by features: one of them ranks no feature above another."
        numbers = [f"τ_w = {number(self.tau)}"]
        if self.low is not None and self.high is not None:
            numbers.append(f"{number(self.low)} to {number(self.high)} with other sentences")
        if self.ceiling is not None:
            numbers.append(f"{number(self.ceiling)} if they were alike in truth")
        if self.p_block is not None:
            numbers.append(f"{p_text(self.p_block)}, corrected for all pairs of layers of the two systems")
        verdict = _verdict(self.tau, self.p_block)
        return f"{a} and {b} {verdict} ({'; '.join(numbers)})."

    def _reasons(self) -> str:
        shares = {"a": importance_shares(self.importance_a), "b": importance_shares(self.importance_b)}

        def note(feature: str, owner: str) -> str:
            k = self.features.index(feature)
            mine, other = ("b", "a") if owner == "b" else ("a", "b")
            link = "and" if owner == "both" else "against"
            return f" ({percent(shares[mine][k])} {link} {percent(shares[other][k])})"

        parts = (self.shared, self.only_a, self.only_b)
        sentence = reasons(row_name(self.a), row_name(self.b), *parts, note=note)
        return f"{sentence[:-1]} (shares of the importance)." if any(parts) else sentence

    def _drivers(self) -> str:
        if np.isnan(self.tau):
            return ""
        matters = np.maximum(importance_shares(self.importance_a), importance_shares(self.importance_b))
        named = matters >= MATTERS if (matters >= MATTERS).any() else np.ones(len(matters), dtype=bool)
        strength = np.where(named, np.abs(self.contributions), -np.inf)
        order = np.argsort(-strength, kind="stable")[: min(2, int(named.sum()))]
        parts = [f"{readable(self.features[k])} contributes {signed(self.contributions[k])}" for k in order]
        top = order[0]
        sentence = f"Of τ_w, {listed(parts)}"
        if np.isfinite(self.without[top]):
            name = readable(self.features[top])
            sentence += f"; without {name} it would be {number(self.without[top])}"
        return sentence + "."

    def _geometry(self) -> str:
        if self.rsa is None:
            return ""
        ends = (
            ""
            if self.rsa_range is None
            else f"; {' to '.join(map(number, self.rsa_range))} with other sentences"
        )
        if self.rsa_across is not None:
            across, ceiling = map(number, self.rsa_across)
            ends += f"; {across} of {ceiling} when no sentence is shown to both"
        sentence = f"Their geometric similarity is ρ = {number(self.rsa)} (RSA{ends})"
        if self.explained_share is None:
            return sentence + "."
        share = self.explained_share
        if not 0 <= share <= 1:  # its two parts have different signs
            alone, rest = number(share * self.rsa), number((1 - share) * self.rsa)
            return f"{sentence}; a sum over the named features alone would give {alone}, the rest {rest}."
        ends = "" if self.explained_range is None else f" ({' to '.join(map(percent, self.explained_range))})"
        return f"{sentence}, of which a sum over the named features makes up {percent(share)}{ends}."


@one_name
def explain(
    a: Profile,
    layer_a: Layer,
    b: Profile,
    layer_b: Layer,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    n_permutations: int = 10_000,
    seed: int = 0,
) -> Explanation:
    """Why layer `layer_a` of profile `a` and layer `layer_b` of `b` are as alike as they are.

    Parameters
    ----------
    a, b : profiles over the same stimuli
    layer_a, layer_b : labels of the layers
    groups : name → features that are also left out together.
    n_permutations : relabellings to draw when there are more than 8 features.
    seed : of the relabellings.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(30, seed=0, grammar="salle2024")
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(len(stimuli), 8))
    >>> X += 3 * (stimuli.features["number"] == "plural").to_numpy()[:, None]
    >>> profile = ta.profile({0: X, 1: 2 * X}, stimuli)
    >>> round(ta.explain(profile, 0, profile, 1).tau, 6)
    1.0
    """
    a.layer_index(layer_a), b.layer_index(layer_b)  # before the longer work
    if a is not b and a.system == b.system:
        raise InvalidInput(f"Both profiles are called {a.system}: give each system a name of its own.")
    matrix = by_features([a] if a is b else [a, b], n_permutations=n_permutations, seed=seed)
    return explain_pair(a, layer_a, b, layer_b, matrix, groups=groups)


def explain_pair(
    a: Profile,
    layer_a: Layer,
    b: Profile,
    layer_b: Layer,
    matrix: SimilarityMatrix,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Explanation:
    """As `explain`, with the p-values and ranges of a feature-based `matrix` that holds both layers."""
    i, j = find_row(matrix.rows, a.system, layer_a), find_row(matrix.rows, b.system, layer_b)
    if i == j:
        raise InvalidInput(f"{row_name(matrix.rows[i])} is given twice: name two different layers.")
    features: tuple[str, ...] = tuple(matrix.settings.get("features") or shared_features([a, b]))
    x, y = _importance(a, layer_a, features), _importance(b, layer_b, features)
    parts = contributions(x, y)
    shared, only_a, only_b = organised_by(features, importance_shares(x), importance_shares(y))
    return Explanation(
        a=matrix.rows[i],
        b=matrix.rows[j],
        features=features,
        tau=float(parts.sum()),
        importance_a=x,
        importance_b=y,
        contributions=parts,
        without=tau_without(x, y, [[k] for k in range(len(features))]),
        without_group=_without_groups(x, y, features, groups or {}),
        p_block=_entry(matrix.p_block, i, j),
        low=_entry(matrix.low, i, j),
        high=_entry(matrix.high, i, j),
        ceiling=_entry(matrix.ceiling, i, j),
        shared=shared,
        only_a=only_a,
        only_b=only_b,
        rank_range_a=_rank_range(a, layer_a, features),
        rank_range_b=_rank_range(b, layer_b, features),
    )


def organised_by(
    features: Sequence[str], shares_a: Floats, shares_b: Floats
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Features that matter in both, or in one at least twice as much as in the other; largest first."""
    order = np.argsort(-(shares_a + shares_b), kind="stable")
    shared, only_a, only_b = [], [], []
    for k in order:
        x, y = shares_a[k], shares_b[k]
        if min(x, y) >= MATTERS:
            shared.append(features[k])
        elif x >= MATTERS and x >= 2 * y:
            only_a.append(features[k])
        elif y >= MATTERS and y >= 2 * x:
            only_b.append(features[k])
    return tuple(shared), tuple(only_a), tuple(only_b)


def reasons(
    a: str,
    b: str,
    shared: Sequence[str],
    only_a: Sequence[str],
    only_b: Sequence[str],
    *,
    note: Callable[[str, str], str] = lambda feature, owner: "",
) -> str:
    """Where two layers agree and differ; `note` may add to a feature of "both", "a" or "b"."""
    clauses: list[str] = []
    for owner, subject, verb, names in (
        ("both", "both", "are", shared),
        ("a", f"only {a}", "is", only_a),
        ("b", f"only {b}", "is", only_b),
    ):
        if names:
            by = listed([readable(name) + note(name, owner) for name in names])
            clauses.append(f"{subject} by {by}" if clauses else f"{subject} {verb} organised by {by}")
    if not clauses:
        return "No feature organises either of them."
    sentence = "; ".join(clauses)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _importance(profile: Profile, layer: Layer, features: Sequence[str]) -> Floats:
    columns = [profile.features.index(name) for name in features]
    return profile.mean_importance[profile.layer_index(layer), columns]


def _rank_range(profile: Profile, layer: Layer, features: Sequence[str]) -> Floats | None:
    """The best and the worst rank of each feature among those that are compared."""
    if profile.replicates is None:
        return None
    columns, k = [profile.features.index(name) for name in features], profile.layer_index(layer)
    made = replace(profile.replicates, importance=profile.replicates.importance[:, :, columns])
    return made.rank_range(profile.mean_importance[:, columns])[:, k]


def _with_ends(frame: pd.DataFrame, name: str) -> pd.Series:
    """`2 (1–3)` where the ends are known and differ."""
    if f"{name}_best" not in frame:
        return frame[name]
    ends = zip(frame[name], frame[f"{name}_best"], frame[f"{name}_worst"], strict=True)
    return pd.Series(
        [f"{r}" if best == worst else f"{r} ({best:.0f}–{worst:.0f})" for r, best, worst in ends]
    )


def _without_groups(
    x: Floats, y: Floats, features: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    for members in groups.values():
        for name in members:
            if name not in features:
                raise UnknownName.among("feature", name, features)
    left_out = [[features.index(name) for name in members] for members in groups.values()]
    return dict(zip(groups, map(float, tau_without(x, y, left_out)), strict=True))


def _entry(array: Floats | None, i: int, j: int) -> float | None:
    return None if array is None or np.isnan(array[i, j]) else float(array[i, j])


def _ranks(importance: Floats) -> np.ndarray:
    """1 for the largest; ties share the best rank."""
    return 1 + (importance[None, :] > importance[:, None]).sum(axis=1)


def _verdict(tau: float, p: float | None) -> str:
    if p is None:
        return "rank the features alike" if tau > 0.5 else "rank the features differently"
    if p < 0.05:
        return "rank the features alike, more than chance would"
    return "do not rank the features alike beyond chance"
