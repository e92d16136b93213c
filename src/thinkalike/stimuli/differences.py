r"""The feature side in computable form: how far two items lie apart in each feature.

For every feature, an item has a level code, and two levels have a squared difference M[u, v]. Sums over all
n(n − 1)/2 pairs of items follow from the codes alone, so pairs are never formed. Two forms of M cover
all kinds:

- *indicator*: M[u, v] = 1 if the levels differ, else 0;
- *squared*:   M[u, v] = (a_u − a_v)², where a is the level's place on the feature's range, scaled to [0, 1].

With ``missing="ignore"`` a pair in which either value is missing has difference 0. With ``missing="level"``
being missing is a level of its own, at the full difference 1 from every other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from thinkalike.errors import InvalidInput, UnknownName

MAX_TABLE_LEVELS = 1000
MAX_LEVELS_AT_ONCE = 256
"""Levels of all features together, up to which one table of them all is faster than one for every two"""
_DENSE_CONTINGENCY = 1 << 20
_ONE_HOT_CELLS = 1 << 22


@dataclass(frozen=True)
class CodedFeature:
    """One feature as level codes.

    Attributes
    ----------
    codes : int array of shape (n_items,)
        Index into `levels`.
    levels : object array of shape (n_levels,)
        The values; None stands for a missing one.
    present : bool array of shape (n_levels,)
        False for the level of missing values.
    places : float array of shape (n_levels,) or None
        Where a level lies on the feature's range; None for the indicator form.
    missing_is_level : bool
        Whether a missing value differs from every present one (by 1) or from none.
    """

    name: str
    kind: str
    codes: np.ndarray
    levels: np.ndarray
    present: np.ndarray
    places: np.ndarray | None
    missing_is_level: bool

    @property
    def n_levels(self) -> int:
        return len(self.levels)

    def table(self) -> np.ndarray:
        """The squared differences M of shape (n_levels, n_levels)."""
        if self.n_levels > MAX_TABLE_LEVELS:
            raise InvalidInput(
                f"The feature {self.name!r} has {self.n_levels} levels: a table of differences is not made "
                f"above {MAX_TABLE_LEVELS}. Use pair_moments() or squared_differences(), which need none."
            )
        every = np.arange(self.n_levels)
        return self.between_levels(every[:, None], every[None, :])

    def squared_differences(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """M between the items `i` and the items `j`, which broadcast against each other."""
        return self.between_levels(self.codes[i], self.codes[j])

    def between_levels(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """M between the levels `u` and the levels `v`, which broadcast against each other."""
        both = self.present[u] & self.present[v]
        if self.places is None:
            difference = (u != v) & (both | self.missing_is_level)
            return difference.astype(float)
        squared = np.where(both, (self.places[u] - self.places[v]) ** 2, 0.0)
        if self.missing_is_level:
            squared = np.where(self.present[u] != self.present[v], 1.0, squared)
        return squared

    @cached_property
    def smooth(self) -> tuple[np.ndarray, np.ndarray]:
        """B of shape (n_levels, k) and symmetric C of shape (k, k) with M = B C Bᵀ.

        For the indicator form M = B C Bᵀ − S, where S is 1 for two items at the same `counted` level.
        """
        counted = self.counted.astype(float)
        if self.places is None:
            return counted[:, None], np.ones((1, 1))
        a = np.where(self.present, self.places - 0.5, 0.0)  # centred: the moments of a cancel less
        columns, C = [self.present.astype(float), a, a**2], np.zeros((4, 4))
        C[0, 2] = C[2, 0] = 1.0
        C[1, 1] = -2.0
        if self.missing_is_level and not self.present.all():
            columns.append(1.0 - columns[0])
            C[0, 3] = C[3, 0] = 1.0
        k = len(columns)
        return np.stack(columns, axis=1), C[:k, :k]

    @property
    def counted(self) -> np.ndarray:
        """Which levels can differ from others at all: of shape (n_levels,)."""
        return self.present | self.missing_is_level

    @property
    def is_indicator(self) -> bool:
        return self.places is None

    @property
    def varies(self) -> bool:
        """Whether any two items differ in it."""
        counts = np.bincount(self.codes, minlength=self.n_levels)
        return int(((counts > 0) & self.counted).sum()) > 1


@dataclass(frozen=True)
class PairMoments:
    """Means over pairs of items of the squared feature differences and of their products.

    Attributes
    ----------
    n_pairs : float
        The number of pairs, or their total weight.
    means : float array of shape (n_features,)
    products : float array of shape (n_features, n_features)
        The mean of M_f M_g over pairs.
    """

    names: tuple[str, ...]
    n_pairs: float
    means: np.ndarray
    products: np.ndarray

    def covariance(self) -> np.ndarray:
        """The covariance of the differences over pairs, of shape (n_features, n_features)."""
        return self.products - np.outer(self.means, self.means)


@dataclass(frozen=True)
class FeatureDifferences:
    """The coded features of one table of items; made by `thinkalike.stimuli.feature_coding`."""

    features: tuple[CodedFeature, ...]
    ordered: str
    missing: str
    n_items: int
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.features)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(f.kind for f in self.features)

    @property
    def n_features(self) -> int:
        return len(self.features)

    @property
    def codes(self) -> np.ndarray:
        """Level codes of shape (n_items, n_features)."""
        return np.stack([f.codes for f in self.features], axis=1)

    def __len__(self) -> int:
        return self.n_items

    def __getitem__(self, name: str) -> CodedFeature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise UnknownName.among("feature", name, self.names)

    def without(self, names: Collection[str]) -> FeatureDifferences:
        """The features but some."""
        return replace(self, features=tuple(f for f in self.features if f.name not in names))

    def take(self, items: np.ndarray) -> FeatureDifferences:
        """The same features, with the same levels and scales, of some of the items (indices or mask)."""
        features = tuple(replace(f, codes=f.codes[items]) for f in self.features)
        return replace(self, features=features, n_items=len(features[0].codes))

    def pair_moments(self, *, weights: np.ndarray | None = None) -> PairMoments:
        r"""Means of M_f and M_f M_g over all pairs of items, exactly, in time linear in the number of items.

        With N the contingency table of f and g, Σ_pairs M_f M_g = ½ Σ (M_f N M_g) ∘ N. Few levels go through
        that all at once. Where they are many, M is not formed: with A_f the (n, k) smooth columns of f,
        Σ_pairs M_f M_g = ½ Σ (C_f T C_g) ∘ T for T = A_fᵀ A_g, less the pairs that share a level.

        Parameters
        ----------
        weights : array of shape (n_items,), optional
            How often each item counts. A pair counts w_i · w_j times; copies of one item make no pair.
        """
        w = np.ones(self.n_items) if weights is None else np.asarray(weights, dtype=float)
        if w.shape != (self.n_items,):
            raise InvalidInput(f"Got weights of shape {w.shape} for {self.n_items} items: give one per item.")
        n_pairs = (w.sum() ** 2 - (w**2).sum()) / 2
        if n_pairs <= 0:
            raise InvalidInput(f"Got {self.n_items} items, which make no pair: give at least two.")
        few = sum(f.n_levels for f in self.features) <= MAX_LEVELS_AT_ONCE
        sums, products = _sums_at_once(self.features, w) if few else _sums_two_by_two(self.features, w)
        return PairMoments(self.names, float(n_pairs), sums / n_pairs, products / n_pairs)


def share_differing(feature: CodedFeature) -> float:
    """The share of pairs of items that differ in a feature at all; NaN if the size of differences counts."""
    if not feature.is_indicator:
        return float("nan")
    n = len(feature.codes)
    return _sum_differences(feature, np.ones(n)) / (n * (n - 1) / 2)


def _sums_at_once(features: Sequence[CodedFeature], w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ over pairs of M_f and of M_f M_g, from the table of all levels against all levels."""
    ends = np.cumsum([f.n_levels for f in features])
    starts, n_levels = ends - [f.n_levels for f in features], int(ends[-1])
    M, of_feature = np.zeros((n_levels, n_levels)), np.zeros((n_levels, len(features)))
    for k, (f, start, end) in enumerate(zip(features, starts, ends, strict=True)):
        M[start:end, start:end] = f.table()
        of_feature[start:end, k] = 1.0
    N, rows = np.zeros((n_levels, n_levels)), max(1, _ONE_HOT_CELLS // n_levels)
    for first in range(0, len(w), rows):
        some = w[first : first + rows]
        one_hot, item = np.zeros((len(some), n_levels)), np.arange(len(some))
        for f, start in zip(features, starts, strict=True):
            one_hot[item, f.codes[first : first + rows] + start] = 1.0
        N += (one_hot * some[:, None]).T @ one_hot
    counts = np.diag(N)
    sums = (counts * (M @ counts)) @ of_feature
    return sums / 2, of_feature.T @ ((M @ N @ M) * N) @ of_feature / 2


def _sums_two_by_two(features: Sequence[CodedFeature], w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ over pairs of M_f and of M_f M_g, whatever the number of levels."""
    products = np.empty((len(features), len(features)))
    for i, f in enumerate(features):
        for j, g in enumerate(features[: i + 1]):
            products[i, j] = products[j, i] = _sum_products(f, g, w)
    return np.array([_sum_differences(f, w) for f in features]), products


def _sum_differences(f: CodedFeature, w: np.ndarray) -> float:
    B, C = f.smooth
    counts = np.bincount(f.codes, weights=w, minlength=f.n_levels)
    t = counts @ B
    same = (counts[f.counted] ** 2).sum() if f.is_indicator else 0.0
    return float(t @ C @ t - same) / 2


def _sum_products(f: CodedFeature, g: CodedFeature, w: np.ndarray) -> float:
    """Σ over pairs of M_f M_g: the four products of (smooth − same level) with (smooth − same level)."""
    u, v, N = _contingency(f, g, w)
    (B_f, C_f), (B_g, C_g) = f.smooth, g.smooth
    T = (B_f[u] * N[:, None]).T @ B_g[v]
    total = ((C_f @ T @ C_g) * T).sum()
    if g.is_indicator:
        total -= _within(B_f[u] * N[:, None], C_f, v, g)
    if f.is_indicator:
        total -= _within(B_g[v] * N[:, None], C_g, u, f)
    if f.is_indicator and g.is_indicator:
        total += (N[f.counted[u] & g.counted[v]] ** 2).sum()
    return float(total) / 2


def _within(columns: np.ndarray, C: np.ndarray, level: np.ndarray, by: CodedFeature) -> float:
    """Σ over ordered pairs that share a counted level of `by` of the smooth differences in `columns`."""
    sums = [np.bincount(level, weights=c, minlength=by.n_levels)[by.counted] for c in columns.T]
    t = np.stack(sums, axis=1)
    return float(((t @ C) * t).sum())


def _contingency(
    f: CodedFeature, g: CodedFeature, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The filled cells of the contingency table: their levels of f, of g, and their weights."""
    joint = f.codes * g.n_levels + g.codes
    size = f.n_levels * g.n_levels
    if size <= max(_DENSE_CONTINGENCY, len(w)):
        N = np.bincount(joint, weights=w, minlength=size)
        cells = np.flatnonzero(N)
        return cells // g.n_levels, cells % g.n_levels, N[cells]
    cells, index = np.unique(joint, return_inverse=True)
    return cells // g.n_levels, cells % g.n_levels, np.bincount(index, weights=w)
