r"""Are models of different groups farther apart than models of one group? One test, for p and for the range.

For values V between m models in k groups, larger = farther, the separation is

    Q = mean over pairs of groups of (mean of V between them) − mean over groups of (mean of V within)

Every group counts alike, whatever its size and spread. For squared Euclidean distances Q is the squared
distance of the groups' centres, without bias, and 0 for groups with one centre and unlike spread. An effect
of single models, V_ij = e_i + e_j, cancels.

T = Q / s, with s the jackknife over models, is held against two nulls, and p is the larger of the two shares:

- the models relabelled: exact where the groups are alike in spread, a little too bold where few models are
  much more spread than many;
- the models of each group turned at random around its centre (Langsrud 2005, on rotation tests), by which
  every group keeps its own spread: right for unlike spread, where deviations are normal.

The lower end of the range inverts the same test: the groups are moved together by a share of the way between
their centres until T is no longer beyond chance. That is never too high, but in many dimensions far too low,
so the larger of it and Q − t·s counts; the upper end is Q + t·s. The range starts above 0 wherever
p ≤ (1 − confidence), so the lower end alone may miss that often, and the upper end, which may miss in a tenth
as many cases, reaches further out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from thinkalike.labels import Floats

Labels = npt.NDArray[np.int64]

SMALLEST = 3
"""Models that every group needs: without one there must be a pair left, to tell how far they scatter"""
TURNS = 1999
"""How often the models of each group are turned around its centre"""
_AT_ONCE = 1000  # labellings or turns
_EQUAL = 1e-9  # the same partition again differs by rounding only


class Separation(NamedTuple):
    """Of one matrix.

    Attributes
    ----------
    value
        Q.
    low, high
        Its range; NaN, as p is, where a group has two models.
    p
        Share of relabellings, or of turned models, with a T at least as high, whichever is larger.
    p_any
        The same for the highest T over all matrices.
    """

    value: float
    low: float = float("nan")
    high: float = float("nan")
    p: float = float("nan")
    p_any: float = float("nan")


def separations(
    stack: Floats, codes: Labels, labellings: Labels, *, confidence: float = 0.95, seed: int = 0
) -> list[Separation]:
    """Test every matrix of `stack` (n, m, m), with the same relabellings and turns in each.

    Parameters
    ----------
    codes : (m,) the group of each model, from 0.
    labellings : (n_labellings, m) relabellings, the given one among them.
    seed : of the turns, `TURNS` of them, or as many as relabellings if these are fewer.
    """
    stack = (stack + np.swapaxes(stack, 1, 2)) / 2  # a direction is no business of groups
    stack = np.where(np.eye(len(codes), dtype=bool), 0.0, stack)
    if np.bincount(codes).min() < SMALLEST:
        return [Separation(float(_contrasts(V[None], codes[None], jackknife=False)[0][0, 0])) for V in stack]
    moments = [_Moments.of(matrix, codes, labellings) for matrix in stack]
    found = np.array([one.statistics(0.0)[0] for one in moments])
    turned = _turned(stack, codes, min(TURNS, len(labellings)), seed)
    nulls = (
        np.stack([one.statistics(0.0)[1:] for one in moments]),  # (n, n_labellings)
        np.concatenate([found[:, None], turned], axis=1),
    )
    return [
        Separation(
            one.value,
            *one.range(1 - confidence, nulls[1][k]),
            max(_share_as_high(null[k], found[k]) for null in nulls),
            max(_share_as_high(null.max(axis=0), found[k]) for null in nulls),
        )
        for k, one in enumerate(moments)
    ]


def _share_as_high(null: Floats, found: float) -> float:
    return float((null >= found - _EQUAL * max(1.0, abs(found))).mean())


def _turned(stack: Floats, codes: Labels, n: int, seed: int) -> Floats:
    """T (n_matrices, n) of models turned around the centre of their group, the same way in every matrix.

    What is turned are deviations, as many as models; by √(size / (size − 1)) they are as large as deviations
    from a centre that is known.
    """
    rng = np.random.default_rng(seed)
    sizes = np.bincount(codes)
    members = np.eye(len(sizes))[codes]
    deviation = np.sqrt(sizes / (sizes - 1))[codes][:, None] * (
        np.eye(len(codes)) - members @ (members / sizes).T
    )
    grams = np.stack([deviation @ _gram(V) @ deviation.T for V in stack])
    found = np.empty((len(stack), n))
    for first in range(0, n, _AT_ONCE):
        some = slice(first, min(first + _AT_ONCE, n))
        turn = np.zeros((some.stop - first, len(codes), len(codes)))
        for group in range(len(sizes)):
            own = np.flatnonzero(codes == group)
            turn[:, own[:, None], own] = _rotations(rng, len(turn), len(own))
        for k, gram in enumerate(grams):
            V = _squared_distances(turn @ gram @ np.swapaxes(turn, 1, 2))
            Q, added = _contrasts(V, codes[None])
            found[k, some] = Q[0] / np.sqrt(np.maximum((added[0] ** 2).sum(axis=1), 1e-300))
    return found


def _rotations(rng: np.random.Generator, n: int, size: int) -> Floats:
    """(n, size, size) random orthogonal matrices."""
    q, r = np.linalg.qr(rng.normal(size=(n, size, size)))
    turned: Floats = q * np.sign(np.einsum("nii->ni", r))[:, None, :]
    return turned


class _Moments(NamedTuple):
    """Q and the jackknife's covariances, for the given labels and then every relabelling.

    Moving the groups together by a share λ changes V to V − λ V₁ + λ² V₂: three matrices, so that any λ costs
    no further pass.
    """

    Q: Floats  # (1 + n_labellings, 3)
    covariance: Floats  # (1 + n_labellings, 3, 3)
    free: int  # degrees of freedom of the jackknife

    @classmethod
    def of(cls, V: Floats, codes: Labels, labellings: Labels) -> _Moments:
        three = _moved_together(V, codes)
        every = np.concatenate([codes[None], labellings])
        parts = [
            _contrasts(three, every[first : first + _AT_ONCE]) for first in range(0, len(every), _AT_ONCE)
        ]
        Q = np.concatenate([q for q, _ in parts])
        free = len(codes) - int(codes.max()) - 1
        return cls(Q, np.concatenate([np.einsum("lsm,ltm->lst", d, d) for _, d in parts]), free)

    @property
    def value(self) -> float:
        return float(self.Q[0, 0])

    def statistics(self, share: float) -> Floats:
        """T of every labelling after the groups were moved together by `share`."""
        c = np.array([1.0, -share, share**2])
        Q = self.Q @ c
        variance = np.einsum("lst,s,t->l", self.covariance, c, c)
        return Q / np.sqrt(np.maximum(variance, 1e-24 * max(float(np.abs(self.Q).max()), 1e-300) ** 2))

    def range(self, alpha: float, turned: Floats) -> tuple[float, float]:
        """Where the relabelled and the `turned` models both say so."""
        error = float(np.sqrt(self.covariance[0, 0, 0]))
        share = self._lowest_share(alpha, turned)
        low, normal = share**2 * float(self.Q[0, 2]), self.value - self._quantile(alpha) * error
        return (
            max(low, normal) if share > 0 else min(normal, 0.0),
            max(self.value + self._quantile(alpha / 10) * error, low),
        )

    def _quantile(self, alpha: float) -> float:
        return float(student.ppf(1 - alpha, self.free))

    def _lowest_share(self, alpha: float, turned: Floats) -> float:
        """The smallest share of the way after which the groups are no longer apart beyond chance."""

        def beyond(share: float) -> bool:
            T = self.statistics(share)
            return max(_share_as_high(null, T[0]) for null in (T[1:], turned)) <= alpha

        if not beyond(0.0):
            return 0.0
        apart, together = 0.0, 1.0
        for _ in range(30):
            middle = (apart + together) / 2
            apart, together = (middle, together) if beyond(middle) else (apart, middle)
        return apart


def _moved_together(V: Floats, codes: Labels) -> Floats:
    """(3, m, m): V, V₁, V₂; V − λV₁ + λ²V₂ belongs to points moved by λ towards the mean of the centres."""
    members = np.eye(int(codes.max()) + 1)[codes]
    centre_of = (members / members.sum(axis=0)).T  # (k, m)
    S = members @ centre_of - centre_of.mean(axis=0)
    G = _gram(V)
    return np.stack([V, _squared_distances(S @ G + G @ S.T), _squared_distances(S @ G @ S.T)])


def _gram(V: Floats) -> Floats:
    """The inner products of points with squared distances V, around their mean."""
    J = np.eye(len(V)) - 1 / len(V)
    return -0.5 * J @ V @ J


def _squared_distances(gram: Floats) -> Floats:
    """(…, m, m)"""
    a = np.einsum("...ii->...i", gram)
    squared: Floats = a[..., :, None] + a[..., None, :] - 2 * gram
    return np.where(np.eye(gram.shape[-1], dtype=bool), 0.0, squared)


def _contrasts(stack: Floats, labellings: Labels, *, jackknife: bool = True) -> tuple[Floats, Floats]:
    """Q (L, s) of every matrix under every labelling; and (L, s, m) what each model adds to its error.

    Sums of squares and products over the models are the jackknife's variances and covariances. Without a
    `jackknife` there is nothing to add.
    """
    members = np.eye(int(labellings.max()) + 1)[labellings]  # (L, m, k)
    sizes = members.sum(axis=1)  # (L, k)
    to_group = np.einsum("sij,ljk->lsik", stack, members, optimize=True)  # (L, s, m, k)
    sums = np.einsum("lik,lsij->lskj", members, to_group, optimize=True)  # (L, s, k, k)
    Q = _contrast(sums, sizes[:, None])
    if not jackknife:
        return Q, np.zeros((*Q.shape, 0))
    own = members[:, None]  # (L, 1, m, k)
    lost = own[..., :, None] * to_group[..., None, :]  # (L, s, m, k, k)
    without = _contrast(sums[:, :, None] - lost - np.swapaxes(lost, -1, -2), sizes[:, None, None] - own)
    mean = np.einsum("lsm,lmk->lsk", without, members) / sizes[:, None]
    deviation = without - np.einsum("lsk,lmk->lsm", mean, members)
    weight = np.einsum("lmk,lk->lm", members, (sizes - 1) / sizes)
    return Q, deviation * np.sqrt(weight)[:, None]


def _contrast(sums: Floats, sizes: Floats) -> Floats:
    """Q from sums of values between groups (…, k, k) and the sizes of the groups (…, k)."""
    k = sizes.shape[-1]
    within = np.einsum("...kk->...k", sums) / (sizes * (sizes - 1))
    means = sums / (sizes[..., :, None] * sizes[..., None, :])
    between = (means.sum(axis=(-1, -2)) - np.einsum("...kk->...", means)) / (k * (k - 1))
    contrast: Floats = between - within.mean(axis=-1)
    return contrast
