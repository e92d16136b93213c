"""The columns that explain a squared distance: one per feature (diagonal W), or per pair (full W).

A learned W need not make a metric, so that is checked here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from thinkalike.encoding.solvers import solve_nonnegative_many, solve_psd_each, unpack
from thinkalike.errors import UnknownName
from thinkalike.stimuli.differences import CodedFeature, FeatureDifferences


@dataclass(frozen=True)
class Design:
    """The columns of the regression y ≈ c + ΔᵀWΔ, as functions of the squared differences Δ².

    diagonal: column f is Δ_f², its coefficient W_ff ≥ 0. full: columns are Δ_f Δ_g for f ≤ g, times √2 off
    the diagonal, so that the coefficients are svec(W), W positive semi-definite.
    """

    name: str
    n_features: int

    @property
    def n_columns(self) -> int:
        F = self.n_features
        return F if self.name == "diagonal" else F * (F + 1) // 2

    def expand(self, squared: np.ndarray) -> np.ndarray:
        """From squared differences (n, n_features) to columns (n, n_columns)."""
        if self.name == "diagonal":
            return squared
        f, g = np.triu_indices(self.n_features)
        delta = np.sqrt(squared)
        return delta[:, f] * delta[:, g] * np.where(f == g, 1.0, np.sqrt(2.0))

    def predict(self, squared: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """ΔᵀWΔ of shape (n,), summed column by column, so that equal patterns give equal bits.

        Of several W, with coefficients of shape (n_fits, n_columns), in one call: (n_fits, n).
        """
        columns = self.expand(squared)
        total = np.zeros((*coefficients.shape[:-1], len(squared)))
        for k in range(coefficients.shape[-1]):
            if coefficients[..., k].any():
                total += coefficients[..., k, None] * columns[:, k]
        return total

    def columns_of(self, features: np.ndarray) -> np.ndarray:
        """Indices of the columns that involve only `features` (sorted indices)."""
        if self.name == "diagonal":
            return features
        f, g = np.triu_indices(self.n_features)
        return np.flatnonzero(np.isin(f, features) & np.isin(g, features))

    def solve(self, gram: np.ndarray, cross: np.ndarray, alphas: Sequence[float]) -> list[np.ndarray]:
        """For each penalty the coefficients, of as many columns as `gram` has."""
        if self.name == "full":
            return solve_psd_each(gram, cross, alphas)
        crosses = np.broadcast_to(cross, (len(alphas), len(cross)))
        return list(solve_nonnegative_many(gram, crosses, np.asarray(alphas)))

    def as_matrix(self, coefficients: np.ndarray) -> np.ndarray:
        """W of shape (n_features, n_features)."""
        return np.diag(coefficients) if self.name == "diagonal" else unpack(coefficients, self.n_features)


DESIGNS = ("diagonal", "full")


def make_design(name: str, n_features: int) -> Design:
    """The design of that name for so many features."""
    if name not in DESIGNS:
        raise UnknownName.among("design", name, DESIGNS)
    return Design(name, n_features)


MAX_TRIPLES = 1 << 19
_MAX_PLACES = 6
_SLACK = 1e-9


def triangles(differences: FeatureDifferences) -> tuple[np.ndarray, ...]:
    """For each feature, the squared differences that three items can have in it: (n_triples, 3).

    Of an indicator all that its levels can make; of a min-max difference those of six levels on its range.
    """
    return tuple(_triples(f) for f in differences.features)


def is_metric(
    of_features: tuple[np.ndarray, ...], design: Design, weights: np.ndarray, *, seed: int = 0
) -> bool:
    """Whether √(ΔᵀWΔ) keeps the triangle inequality for all items that the features' levels can make.

    With a diagonal W it always does, unless missing values are ignored: an item with a missing value is at
    distance 0 from two that differ. With a full W it need not, positive semi-definite or not: W = [[1, −1],
    [−1, 1]] puts two items that differ in both features at distance 0, and each at another distance from a
    third. All triples of items are looked at, or a seeded sample of half a million if there are more.
    """
    sizes = [len(t) for t in of_features]
    if prod(sizes) <= MAX_TRIPLES:
        chosen = np.indices(sizes).reshape(len(sizes), -1)
    else:
        rng = np.random.default_rng(seed)
        chosen = np.stack([rng.integers(0, size, MAX_TRIPLES) for size in sizes])
    W, sides = design.as_matrix(weights), np.empty((3, chosen.shape[1]))
    for side in range(3):
        delta = np.sqrt([t[c, side] for t, c in zip(of_features, chosen, strict=True)])
        sides[side] = np.sqrt(np.maximum(((W @ delta) * delta).sum(axis=0), 0.0))
    # Triples come in every order, so that one side against the other two is enough.
    return bool((sides[2] <= sides[0] + sides[1] + _SLACK * sides.max(initial=0.0)).all())


def _triples(f: CodedFeature) -> np.ndarray:
    present = np.flatnonzero(np.bincount(f.codes, minlength=f.n_levels) > 0)
    missing = present[~f.present[present]]
    values = present[f.present[present]]
    limit = 3 if f.is_indicator else _MAX_PLACES  # three levels of an indicator make all that more can make
    if len(values) > limit:
        values = values[np.linspace(0, len(values) - 1, limit).astype(int)]
    levels = np.concatenate([values, missing])
    u, v, w = (a.ravel() for a in np.meshgrid(levels, levels, levels))
    squared = np.stack([f.between_levels(u, v), f.between_levels(v, w), f.between_levels(u, w)], axis=1)
    return np.unique(squared, axis=0)
