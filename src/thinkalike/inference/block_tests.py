"""Is the agreement of two systems more than chance? The null relabels the features of one whole system.

τ_w has a wide null: over all relabellings of 8 features its standard deviation is 0.330 and its 95th
percentile 0.556. Layers of one system resemble each other, so a pair of *systems* is one family: the labels
of one system are permuted in all its layers together, and the block of its layers against the other's gives
one mean (is there anything between these two systems?) and one maximum (which corrects each pair of layers
for having looked at all of them). Pairs of systems are then corrected by Benjamini–Hochberg.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

from thinkalike.inference.relabelling import ENUMERATED, Relabellings, relabelled_taus, relabellings
from thinkalike.inference.weighted_tau import tau_matrix
from thinkalike.labels import Floats, Layer, Row, span_of, systems_of

_EQUAL = 1e-9  # values this close are one value: relabellings that give the same τ_w differ by rounding only


@dataclass(frozen=True)
class BlockTest:
    """All layers of `a` against all layers of `b` (`a == b`: within a system, the diagonal left out)."""

    a: str
    b: str
    mean: float
    """Mean τ_w over the block"""
    p_mean: float
    """For the two systems: share of relabellings whose block mean is at least as high"""
    q: float
    """`p_mean` after Benjamini–Hochberg over all pairs of systems; NaN within a system"""
    maximum: float
    p_maximum: float
    """For the layers in the block: share of relabellings whose block maximum is at least as high"""
    layer_a: Layer
    layer_b: Layer
    """Where the maximum stands"""
    null_95: float
    """The 95th percentile of the block mean over relabellings: what chance alone reaches"""
    n_relabellings: int
    exact: bool
    """Whether all F! relabellings were enumerated"""
    control: float = float("nan")
    """The block mean of untrained copies of the two systems, where they were run"""
    low: float = float("nan")
    high: float = float("nan")
    """Stability range of the block mean over resamples of the sentences, where they were drawn"""


@dataclass(frozen=True, eq=False)
class Inference:
    """p-values of every pair of layers, and the tests of the blocks they stand in."""

    p: Floats
    """(n_rows, n_rows) for a pair chosen beforehand"""
    p_block: Floats
    """(n_rows, n_rows) corrected for all pairs of the block, by its maximum"""
    blocks: tuple[BlockTest, ...]


def relabelling_test(
    profiles: Floats, rows: Sequence[Row], *, n_samples: int = 10_000, seed: int = 0
) -> Inference:
    """Test every block of the τ_w matrix of `profiles` (n_rows, F) by relabelling features.

    All F! relabellings for F ≤ 8 (exact p-values, at least 1/F!), else `n_samples` drawn and the identity.
    """
    orders = relabellings(profiles.shape[1], n_samples=n_samples, seed=seed)
    observed = tau_matrix(profiles)
    p, p_block = np.full((2, len(rows), len(rows)), np.nan)
    blocks = []
    for a, b in combinations_with_replacement(systems_of(rows), 2):
        place = span_of(rows, a), span_of(rows, b)
        if not _comparable(observed[place], within=a == b).any():
            continue  # one layer only, or profiles that are constant
        null = _block_null(profiles[place[0]], profiles[place[1]], observed[place], orders, within=a == b)
        p[place], p_block[place] = null.p, null.p_block
        p[place[::-1]], p_block[place[::-1]] = null.p.T, null.p_block.T
        blocks.append(_block_test(a, b, observed, rows, null, exact=profiles.shape[1] <= ENUMERATED))
    return Inference(p=p, p_block=p_block, blocks=_correct_for_pairs_of_systems(blocks))


def share_below(x: Floats, y: Floats, tau: float, *, n_samples: int = 10_000, seed: int = 0) -> float:
    """The share of relabellings of two profiles (F,) whose τ_w is at most `tau`; NaN if that is NaN."""
    if np.isnan(tau):
        return float("nan")
    orders = relabellings(len(x), n_samples=n_samples, seed=seed)
    below = sum(int((taus <= tau + _EQUAL).sum()) for taus in relabelled_taus(x[None], y[None], orders))
    return below / len(orders)


@dataclass(frozen=True, eq=False)
class _BlockNull:
    """What relabelling does to one block."""

    means: Floats  # (n_relabellings,)
    maxima: Floats  # (n_relabellings,)
    p: Floats  # (n_a, n_b)
    p_block: Floats  # (n_a, n_b)


def _block_null(x: Floats, y: Floats, observed: Floats, orders: Relabellings, *, within: bool) -> _BlockNull:
    kept = _comparable(observed, within=within)
    at_least, means, maxima = np.zeros(observed.shape), [], []
    for taus in relabelled_taus(x, y, orders):
        at_least += (taus >= observed - _EQUAL).sum(axis=0)
        cells = taus[:, kept]
        means.append(cells.mean(axis=1))
        maxima.append(cells.max(axis=1))
    null_maxima = np.concatenate(maxima)
    p_block = 1.0 - np.searchsorted(np.sort(null_maxima), observed - _EQUAL) / len(orders)
    p = at_least / len(orders)
    if within:  # relabelling the first layer or the second are different draws of one null
        p = (p + p.T) / 2
    return _BlockNull(
        means=np.concatenate(means),
        maxima=null_maxima,
        p=np.where(kept, p, np.nan),
        p_block=np.where(kept, p_block, np.nan),
    )


def _comparable(observed: Floats, *, within: bool) -> npt.NDArray[np.bool_]:
    """Which cells of a block count: those with a value, and within a system not the diagonal."""
    kept = np.isfinite(observed)
    return kept & ~np.eye(len(kept), dtype=bool) if within else kept


def _block_test(
    a: str, b: str, observed: Floats, rows: Sequence[Row], null: _BlockNull, *, exact: bool
) -> BlockTest:
    in_a, in_b = span_of(rows, a), span_of(rows, b)
    block = np.where(np.isfinite(null.p), observed[in_a, in_b], -np.inf)
    i, j = np.unravel_index(int(block.argmax()), block.shape)
    mean, maximum = null.means[0], null.maxima[0]  # the identity comes first
    return BlockTest(
        a=a,
        b=b,
        mean=float(mean),
        p_mean=float((null.means >= mean - _EQUAL).mean()),
        q=float("nan"),
        maximum=float(maximum),
        p_maximum=float((null.maxima >= maximum - _EQUAL).mean()),
        layer_a=rows[in_a.start + int(i)][1],
        layer_b=rows[in_b.start + int(j)][1],
        null_95=float(np.quantile(null.means, 0.95)),
        n_relabellings=len(null.means),
        exact=exact,
    )


def _correct_for_pairs_of_systems(blocks: Sequence[BlockTest]) -> tuple[BlockTest, ...]:
    between = [k for k, block in enumerate(blocks) if block.a != block.b]
    adjusted = dict(zip(between, false_discovery_control([blocks[k].p_mean for k in between]), strict=True))
    return tuple(replace(b, q=float(adjusted[k])) if k in adjusted else b for k, b in enumerate(blocks))
