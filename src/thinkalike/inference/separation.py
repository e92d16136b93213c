r"""Are models of different groups farther apart than models of one group? One test, for p and for the range.

For values V between m models in k groups, larger = farther, the separation is

    Q = mean over pairs of groups of (mean of V between them) − mean over groups of (mean of V within)

Every group counts alike, whatever its size and spread. For squared Euclidean distances Q is the squared
distance of the groups' centres, without bias, and 0 for groups with one centre and unlike spread. An effect
of single models, V_ij = e_i + e_j, cancels.

The test relabels the models and compares T = Q / s, with s the jackknife over models: unequal spread moves s
as well as Q (Janssen 1997, on studentised permutation tests). The lower end of the range inverts the same
test: the groups are moved together by a share of the way between their centres until T is no longer beyond
chance. That is never too high, but in many dimensions far too low, so the larger of it and Q − t·s counts;
the upper end is Q + t·s. The range starts above 0 wherever p ≤ (1 − confidence).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

SMALLEST = 3
"""Models that every group needs for a jackknife: without one of them there must be a pair left"""
_AT_ONCE = 1000  # labellings
_EQUAL = 1e-9  # the same partition again differs by rounding only


class Separation(NamedTuple):
    """Of one matrix.

    Attributes
    ----------
    value
        Q.
    low, high
        Its range; NaN where a group has two models.
    p
        Share of relabellings with a T (or Q, where a group has two models) at least as high.
    p_any
        Share whose highest T over all matrices is at least as high.
    """

    value: float
    low: float
    high: float
    p: float
    p_any: float


def separations(
    stack: Floats, codes: Labels, labellings: Labels, *, confidence: float = 0.95
) -> list[Separation]:
    """Test every matrix of `stack` (n, m, m), with the same relabellings in each.

    Parameters
    ----------
    codes : (m,) the group of each model, from 0.
    labellings : (n_labellings, m) relabellings, the given one among them.
    """
    stack = (stack + np.swapaxes(stack, 1, 2)) / 2  # a direction is no business of groups
    stack = np.where(np.eye(len(codes), dtype=bool), 0.0, stack)
    studentised = bool(np.bincount(codes).min() >= SMALLEST)
    moments = [_Moments.of(matrix, codes, labellings, studentised) for matrix in stack]
    drawn = np.stack([one.statistics(0.0) for one in moments])  # (n, 1 + n_labellings), the given one first
    found, null = drawn[:, :1], drawn[:, 1:]
    beaten = null >= found - _EQUAL
    beaten_by_any = null.max(axis=0) >= found - _EQUAL
    return [
        Separation(one.value, *one.range(1 - confidence), float(b.mean()), float(a.mean()))
        for one, b, a in zip(moments, beaten, beaten_by_any, strict=True)
    ]


class _Moments(NamedTuple):
    """Q and the jackknife's covariances, for the given labels and then every relabelling.

    Moving the groups together by a share λ changes V to V − λ V₁ + λ² V₂: three matrices, so that any λ costs
    no further pass.
    """

    Q: Floats  # (1 + n_labellings, 3)
    covariance: Floats | None  # (1 + n_labellings, 3, 3)
    free: int  # degrees of freedom of the jackknife

    @classmethod
    def of(cls, V: Floats, codes: Labels, labellings: Labels, studentised: bool) -> _Moments:
        three = _moved_together(V, codes)
        every = np.concatenate([codes[None], labellings])
        parts = [
            _contrasts(three, every[first : first + _AT_ONCE], studentised)
            for first in range(0, len(every), _AT_ONCE)
        ]
        Q = np.concatenate([q for q, _ in parts])
        covariances = [c for _, c in parts if c is not None]
        free = len(codes) - int(codes.max()) - 1
        return cls(Q, np.concatenate(covariances) if covariances else None, free)

    @property
    def value(self) -> float:
        return float(self.Q[0, 0])

    def statistics(self, share: float) -> Floats:
        """T of every labelling after the groups were moved together by `share`; Q without a jackknife."""
        c = np.array([1.0, -share, share**2])
        Q = self.Q @ c
        if self.covariance is None:
            return Q / max(float(np.abs(self.Q).max()), 1e-300)
        variance = np.einsum("lst,s,t->l", self.covariance, c, c)
        return Q / np.sqrt(np.maximum(variance, 1e-24 * max(float(np.abs(self.Q).max()), 1e-300) ** 2))

    def range(self, alpha: float) -> tuple[float, float]:
        if self.covariance is None:
            return float("nan"), float("nan")
        error = float(np.sqrt(self.covariance[0, 0, 0]))
        low = max(self._lowest_share(alpha) ** 2 * float(self.Q[0, 2]), 0.0)
        return (
            max(low, self.value - float(student.ppf(1 - alpha, self.free)) * error),
            max(self.value + float(student.ppf(1 - alpha / 2, self.free)) * error, low),
        )

    def _lowest_share(self, alpha: float) -> float:
        """The smallest share of the way after which the groups are no longer apart beyond chance."""
        if self._p(0.0) > alpha:
            return 0.0
        apart, together = 0.0, 1.0
        for _ in range(30):
            middle = (apart + together) / 2
            apart, together = (middle, together) if self._p(middle) <= alpha else (apart, middle)
        return apart

    def _p(self, share: float) -> float:
        T = self.statistics(share)
        return float((T[1:] >= T[0] - _EQUAL).mean())


def _moved_together(V: Floats, codes: Labels) -> Floats:
    """(3, m, m): V, V₁, V₂; V − λV₁ + λ²V₂ belongs to points moved by λ towards the mean of the centres."""
    m = len(codes)
    members = np.eye(int(codes.max()) + 1)[codes]
    centre_of = (members / members.sum(axis=0)).T  # (k, m)
    S = members @ centre_of - centre_of.mean(axis=0)
    J = np.eye(m) - 1 / m
    G = -0.5 * J @ V @ J
    return np.stack([V, _squared_distances(S @ G + G @ S.T), _squared_distances(S @ G @ S.T)])


def _squared_distances(gram: Floats) -> Floats:
    a = np.diag(gram)
    squared = a[:, None] + a[None, :] - 2 * gram
    np.fill_diagonal(squared, 0.0)
    return squared


def _contrasts(stack: Floats, labellings: Labels, studentised: bool) -> tuple[Floats, Floats | None]:
    """Q (L, s) of every matrix under every labelling, and the jackknife's covariance (L, s, s)."""
    members = np.eye(int(labellings.max()) + 1)[labellings]  # (L, m, k)
    sizes = members.sum(axis=1)  # (L, k)
    to_group = np.einsum("sij,ljk->lsik", stack, members, optimize=True)  # (L, s, m, k)
    sums = np.einsum("lik,lsij->lskj", members, to_group, optimize=True)  # (L, s, k, k)
    Q = _contrast(sums, sizes[:, None])
    if not studentised:
        return Q, None
    own = members[:, None]  # (L, 1, m, k)
    lost = own[..., :, None] * to_group[..., None, :]  # (L, s, m, k, k)
    without = _contrast(sums[:, :, None] - lost - np.swapaxes(lost, -1, -2), sizes[:, None, None] - own)
    mean = np.einsum("lsm,lmk->lsk", without, members) / sizes[:, None]
    deviation = without - np.einsum("lsk,lmk->lsm", mean, members)
    weight = np.einsum("lmk,lk->lm", members, (sizes - 1) / sizes)
    return Q, np.einsum("lsm,lm,ltm->lst", deviation, weight, deviation, optimize=True)


def _contrast(sums: Floats, sizes: Floats) -> Floats:
    """Q from sums of values between groups (…, k, k) and the sizes of the groups (…, k)."""
    k = sizes.shape[-1]
    within = np.einsum("...kk->...k", sums) / (sizes * (sizes - 1))
    means = sums / (sizes[..., :, None] * sizes[..., None, :])
    between = (means.sum(axis=(-1, -2)) - np.einsum("...kk->...", means)) / (k * (k - 1))
    contrast: Floats = between - within.mean(axis=-1)
    return contrast
