r"""The sufficient statistics of the fit: sums over pairs, from sums over items.

For an indicator feature with levels u of n_u items, squared norms q_u and vector sums s_u (X centred),
Σ_pairs M_f y = (N Q − ‖S‖²) − Σ_u (n_u q_u − ‖s_u‖²), where N, Q, S are the totals over levels that count.
For a squared difference M_f = B C Bᵀ, Σ_pairs M_f y = ½ Σ C ∘ (n qᵀ + q nᵀ − 2 s sᵀ) with n = Bᵀ1,
q = Bᵀ‖x‖², s = BᵀX. Both take one pass over X, whatever the number of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thinkalike.encoding.designs import Design
from thinkalike.encoding.pairkernels import level_sums
from thinkalike.pairs.distances import QuadraticTarget
from thinkalike.stimuli.differences import FeatureDifferences

CHUNK_BYTES = 1 << 21
"""Of sums that are made at once: they stay in the cache of a core"""


@dataclass(frozen=True)
class Moments:
    """Sums over pairs of the columns z of a design and of the target y; they add up over disjoint sets.

    Attributes
    ----------
    n_pairs : float
    sums : array of shape (n_columns,), Σ z
    gram : array of shape (n_columns, n_columns), Σ z zᵀ
    cross : array of shape (n_columns,), Σ z y
    target_sum : float, Σ y
    """

    n_pairs: float
    sums: np.ndarray
    gram: np.ndarray
    cross: np.ndarray
    target_sum: float

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.n_pairs + other.n_pairs,
            self.sums + other.sums,
            self.gram + other.gram,
            self.cross + other.cross,
            self.target_sum + other.target_sum,
        )

    def restrict(self, columns: np.ndarray) -> Moments:
        """The moments of some of the columns."""
        gram = self.gram[np.ix_(columns, columns)]
        return Moments(self.n_pairs, self.sums[columns], gram, self.cross[columns], self.target_sum)


@dataclass(frozen=True)
class Coefficients:
    """A fitted design: `weights` of shape (n_columns,) and the intercept."""

    weights: np.ndarray
    intercept: float


def fit_moments(moments: Moments, design: Design, *, alpha: float, intercept: bool = True) -> Coefficients:
    """Minimise Σ_pairs (c + zᵀw − y)² + α‖w‖² under the design's constraint; c is free and not penalised."""
    return fit_each_alpha(moments, design, [alpha], intercept=intercept)[0]


def fit_each_alpha(
    moments: Moments, design: Design, alphas: Sequence[float], *, intercept: bool = True
) -> list[Coefficients]:
    """`fit_moments` for several penalties."""
    gram, cross = moments.gram, moments.cross
    if intercept:
        means = moments.sums / moments.n_pairs
        gram = gram - moments.n_pairs * np.outer(means, means)
        cross = cross - means * moments.target_sum
    return [
        Coefficients(weights, _intercept(moments, weights) if intercept else 0.0)
        for weights in design.solve(gram, cross, alphas)
    ]


def _intercept(moments: Moments, weights: np.ndarray) -> float:
    return float((moments.target_sum - moments.sums @ weights) / moments.n_pairs)


@dataclass(frozen=True)
class FeatureSide:
    """What of the moments does not depend on the activations, for several sets of items.

    Items are in blocks, and a set is a union of blocks: `membership` of shape (n_sets, n_blocks).
    """

    differences: FeatureDifferences
    block: np.ndarray
    membership: np.ndarray
    n_pairs: np.ndarray
    sums: np.ndarray
    grams: np.ndarray

    @cached_property
    def layout(self) -> _Layout:
        return _Layout(self.differences)

    @cached_property
    def counts(self) -> np.ndarray:
        """(n_sets, n_rows) the loads of the items of each set, summed over the rows of the layout."""
        ones = np.ones(len(self.block))
        return self.membership.astype(float) @ self.layout.add_up(ones, self.block, self.membership.shape[1])


def feature_side(differences: FeatureDifferences, block: np.ndarray, membership: np.ndarray) -> FeatureSide:
    """The moments of the features over the pairs within each set, exactly and without pairs."""
    parts = [differences.take(np.flatnonzero(inside[block])).pair_moments() for inside in membership]
    n_pairs = np.array([p.n_pairs for p in parts])
    return FeatureSide(
        differences,
        block,
        membership,
        n_pairs,
        sums=np.stack([p.n_pairs * p.means for p in parts]),
        grams=np.stack([p.n_pairs * p.products for p in parts]),
    )


def diagonal_moments(side: FeatureSide, target: QuadraticTarget) -> list[Moments]:
    """Moments of the diagonal design over the pairs within each set, in one pass over the activations."""
    cross, totals = np.zeros_like(side.sums), np.zeros(len(side.membership))
    for coefficient, x in target.terms:
        term_cross, term_total = _quadratic_sums(side, x)
        cross += coefficient * term_cross
        totals += coefficient * term_total
    return [
        Moments(n, s, g, c, float(t))
        for n, s, g, c, t in zip(side.n_pairs, side.sums, side.grams, cross, totals, strict=True)
    ]


class _Layout:
    """Which rows of a table of sums each item adds to, and with which load.

    Row 0 takes every item. An indicator feature has a row per level that counts; a squared one has a row per
    smooth column.
    """

    def __init__(self, differences: FeatureDifferences) -> None:
        rows, loads = [np.zeros(len(differences), dtype=np.int64)], [np.ones(len(differences))]
        self.spans: list[slice] = []
        n_rows = 1
        for f in differences.features:
            first = n_rows
            if f.is_indicator:
                at = np.cumsum(f.counted) - 1 + first
                rows.append(np.where(f.counted[f.codes], at[f.codes], -1))
                loads.append(np.ones(len(differences)))
                n_rows += int(f.counted.sum())
            else:
                B, _ = f.smooth
                for k in range(B.shape[1]):
                    load = B[f.codes, k]
                    rows.append(np.where(load != 0, first + k, -1))
                    loads.append(load)
                n_rows += B.shape[1]
            self.spans.append(slice(first, n_rows))
        self.n_rows = n_rows
        self.rows = np.ascontiguousarray(np.stack(rows, axis=1))
        self.loads = np.ascontiguousarray(np.stack(loads, axis=1))

    def add_up(self, values: np.ndarray, block: np.ndarray, n_blocks: int) -> np.ndarray:
        """Σ of load × value over the items of each block and row: (n_blocks, n_rows)."""
        out = np.zeros(n_blocks * self.n_rows)
        for at, load in zip(self.rows.T, self.loads.T, strict=True):
            inside = at >= 0
            cells = block[inside] * self.n_rows + at[inside]
            out += np.bincount(cells, weights=(load * values)[inside], minlength=len(out))
        return out.reshape(n_blocks, self.n_rows)


def _quadratic_sums(side: FeatureSide, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ M_f ‖x_i − x_j‖² of shape (n_sets, n_features) and Σ ‖x_i − x_j‖² of shape (n_sets,)."""
    layout = side.layout
    n_sets, n_blocks = side.membership.shape
    inside = side.membership.astype(float)
    centre = _rough_centre(x)
    squares = np.zeros(len(x))
    features = side.differences.features
    dots = [_zero_dots(f.is_indicator, n_sets, span) for f, span in zip(features, layout.spans, strict=True)]
    whole = np.zeros(n_sets)
    width = int(np.clip(CHUNK_BYTES // (8 * layout.n_rows * (n_blocks + n_sets)), 8, 1024))
    for first in range(0, x.shape[1], width):
        last = min(first + width, x.shape[1])
        sums = np.zeros((n_blocks, layout.n_rows, last - first))
        level_sums(x, centre, layout.rows, layout.loads, side.block, first, last, sums, squares)
        of_sets = (inside @ sums.reshape(n_blocks, -1)).reshape(n_sets, layout.n_rows, -1)
        whole += np.einsum("sk,sk->s", of_sets[:, 0], of_sets[:, 0])
        for f, span, dot in zip(features, layout.spans, dots, strict=True):
            dot += _dots(f.is_indicator, of_sets[:, span])
    n = side.counts
    q = inside @ layout.add_up(squares, side.block, n_blocks)
    cross = np.empty((n_sets, len(features)))
    for k, (f, span, dot) in enumerate(zip(features, layout.spans, dots, strict=True)):
        n_f, q_f = n[:, span], q[:, span]
        if f.is_indicator:
            cross[:, k] = n_f.sum(axis=1) * q_f.sum(axis=1) - (n_f * q_f).sum(axis=1) - dot
        else:
            C = f.smooth[1]
            spread = n_f[:, :, None] * q_f[:, None, :]
            cross[:, k] = (C * (spread + spread.transpose(0, 2, 1) - 2 * dot)).sum(axis=(1, 2)) / 2
    return cross, n[:, 0] * q[:, 0] - whole


def _rough_centre(x: np.ndarray) -> np.ndarray:
    """A point amid the rows of x: no difference depends on it, but large squared norms cancel badly."""
    centre: np.ndarray = x[:: max(1, len(x) // 256)].mean(axis=0, dtype=float)
    return centre


def _zero_dots(is_indicator: bool, n_sets: int, span: slice) -> np.ndarray:
    size = span.stop - span.start
    return np.zeros(n_sets) if is_indicator else np.zeros((n_sets, size, size))


def _dots(is_indicator: bool, sums: np.ndarray) -> np.ndarray:
    """Of each set ‖S‖² − Σ_u ‖s_u‖² for an indicator feature, s sᵀ for a squared one."""
    if is_indicator:
        total = sums.sum(axis=1)
        return np.asarray(np.einsum("sk,sk->s", total, total) - np.einsum("suk,suk->s", sums, sums))
    return np.asarray(sums @ sums.swapaxes(1, 2))


def nested_sets(n_blocks: int, left_out: Sequence[frozenset[int]]) -> np.ndarray:
    """Membership of shape (len(left_out), n_blocks): all blocks but those left out."""
    membership = np.ones((len(left_out), n_blocks), dtype=bool)
    for row, out in zip(membership, left_out, strict=True):
        row[list(out)] = False
    return membership
