"""Is the agreement of two systems more than chance? The null relabels the strengths of one whole system.

The effect is τ_w of *importances*. Relabelling these would be no null: a feature that differs in most pairs
is important in every system, so that systems which have nothing to do with each other rank features alike.
*Strengths* (`encoding.strengths`) do not know how often a feature differs; of two unrelated systems those of
one may be dealt to the features in any order. So τ_w of strengths carries the test.

τ_w has a wide null: over all relabellings of 8 features its standard deviation is 0.330 and its 95th
percentile 0.556. Layers of one system resemble each other, so a pair of *systems* is one family: the labels
of one system are permuted in all its layers together, and the block of its layers against the other's gives
one mean (is there anything between these two systems?) and one maximum (which corrects each pair of layers
for having looked at all of them). Pairs of systems are then corrected by Benjamini–Hochberg.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

from thinkalike.inference.weighted_tau import (
    ENUMERATED,
    Relabellings,
    relabelled_taus,
    relabellings,
    tau_matrix,
)
from thinkalike.labels import Floats, Layer, Row, span_of, systems_of
from thinkalike.parallel import cores, stream_in_order

FEWEST_FEATURES = 5
"""Of fewer there are at most 24 relabellings, and hardly a p below 0.05: none is given."""

SIGNIFICANT = 0.05
_EQUAL = 1e-9  # values this close are one value: relabellings that give the same τ_w differ by rounding only


@dataclass(frozen=True)
class BlockTest:
    """All layers of `a` against all layers of `b` (`a == b`: within a system, the diagonal left out)."""

    a: str
    b: str
    mean: float
    """Mean τ_w of importances over the block"""
    maximum: float
    layer_a: Layer
    layer_b: Layer
    """The highest τ_w of importances in the block, and where it stands"""
    strength: float = float("nan")
    """Mean τ_w of strengths over the block, on which the test is made; NaN without a test"""
    null_95: float = float("nan")
    """The 95th percentile of `strength` over relabellings: what chance alone reaches"""
    p_mean: float = float("nan")
    """For the two systems: share of relabellings whose mean τ_w of strengths is at least as high"""
    q: float = float("nan")
    """`p_mean` after Benjamini–Hochberg over all pairs of systems; NaN within a system"""
    p_maximum: float = float("nan")
    """For the layers in it: share of relabellings whose highest τ_w of strengths is at least as high"""
    q_maximum: float = float("nan")
    """`p_maximum` after Benjamini–Hochberg over all pairs of systems; NaN within a system"""
    n_relabellings: int = 0
    exact: bool = False
    """Whether all F! relabellings were enumerated"""
    control: float = float("nan")
    """The block mean of untrained copies of the two systems, averaged over draws of weights"""
    control_share: float = float("nan")
    """The share of the draws in which the copies are at least as alike"""
    low: float = float("nan")
    high: float = float("nan")
    """95 % range of the block mean over other sentences, where some were left out again and again"""
    behind_low: float = float("nan")
    behind_high: float = float("nan")
    """95 % range of how far the mean stays behind that of the two systems most alike, for the same sentences;
    NaN for these two, within a system, and without resamples"""
    ceiling: float = float("nan")
    """Mean over the block of what two layers alike in truth would reach with so many sentences"""

    @property
    def is_tied(self) -> bool:
        """Whether other sentences may make these two systems the most alike; so if that is not known."""
        return not self.behind_low > 0

    @property
    def disattenuated(self) -> float:
        """The mean as a share of its ceiling: an estimate for very many sentences. It can exceed 1."""
        return self.mean / self.ceiling if self.ceiling > 0 else float("nan")


@dataclass(frozen=True, eq=False)
class Inference:
    """The tests of all blocks, and of the pairs of layers in them."""

    p_block: Floats
    """(n_rows, n_rows) corrected for all pairs of the block, by its maximum; NaN without a test"""
    blocks: tuple[BlockTest, ...]


def relabelling_test(
    effects: Floats,
    strengths: Floats | None,
    rows: Sequence[Row],
    *,
    untested: Collection[str] = (),
    n_samples: int = 10_000,
    seed: int = 0,
) -> Inference:
    """Test every block of a τ_w matrix by relabelling the strengths of features.

    All F! relabellings for F ≤ 8 (exact p-values, at least 1/F!), else `n_samples` drawn and the identity.

    Parameters
    ----------
    effects : (n_rows, n_rows) τ_w of importances.
    strengths : (n_rows, F) without missing values; None, or of fewer than five features: nothing is tested.
    untested : systems whose strengths are noise, of which no p is given.
    """
    if strengths is not None and strengths.shape[1] < FEWEST_FEATURES:
        strengths = None
    of_strengths = effects if strengths is None else tau_matrix(strengths)
    p_block = np.full(effects.shape, np.nan)
    blocks, kept = dict[tuple[str, str], BlockTest](), dict[tuple[str, str], npt.NDArray[np.bool_]]()
    for a, b in combinations_with_replacement(systems_of(rows), 2):
        in_a, in_b = span_of(rows, a), span_of(rows, b)
        cells = np.isfinite(effects[in_a, in_b]) & np.isfinite(of_strengths[in_a, in_b])
        if a == b:
            cells &= ~np.eye(len(cells), dtype=bool)
        if not cells.any():
            continue  # one layer only, or profiles that are constant
        kept[a, b] = cells
        blocks[a, b] = _effect(a, b, np.where(cells, effects[in_a, in_b], np.nan), rows[in_a], rows[in_b])
    if strengths is not None:
        orders = relabellings(strengths.shape[1], n_samples=n_samples, seed=seed)
        look = partial(_null_of, strengths, rows, kept, orders)
        tested = [pair for pair in blocks if not set(pair) & set(untested)]
        nulls = stream_in_order(look, tested, description="Relabelling features", threads=cores())
        for (a, b), null in zip(tested, nulls, strict=True):
            in_a, in_b = span_of(rows, a), span_of(rows, b)
            p_block[in_a, in_b] = np.where(kept[a, b], null.p_of(of_strengths[in_a, in_b]), np.nan)
            p_block[in_b, in_a] = p_block[in_a, in_b].T
            blocks[a, b] = _tested(blocks[a, b], null, exact=strengths.shape[1] <= ENUMERATED)
    corrected = corrected_for_pairs(list(blocks.values()), {"p_mean": "q", "p_maximum": "q_maximum"})
    return Inference(p_block=p_block, blocks=corrected)


@dataclass(frozen=True, eq=False)
class _BlockNull:
    """What relabelling does to one block; the identity comes first."""

    means: Floats  # (n_relabellings,)
    maxima: Floats  # (n_relabellings,)

    def p_of(self, observed: Floats) -> Floats:
        """The share of relabellings whose maximum is at least as high as each of `observed`."""
        return 1.0 - np.searchsorted(np.sort(self.maxima), observed - _EQUAL) / len(self.maxima)


def _null_of(
    strengths: Floats,
    rows: Sequence[Row],
    kept: Mapping[tuple[str, str], npt.NDArray[np.bool_]],
    orders: Relabellings,
    pair: tuple[str, str],
) -> _BlockNull:
    of_a, of_b = (strengths[span_of(rows, system)] for system in pair)
    return _block_null(of_a, of_b, kept[pair], orders)


def _block_null(x: Floats, y: Floats, kept: npt.NDArray[np.bool_], orders: Relabellings) -> _BlockNull:
    means, maxima = [], []
    for taus in relabelled_taus(x, y, orders):  # in parts: all of them at once may be large
        cells = taus[:, kept]
        means.append(cells.mean(axis=1))
        maxima.append(cells.max(axis=1))
    return _BlockNull(np.concatenate(means), np.concatenate(maxima))


def _effect(a: str, b: str, values: Floats, rows_a: Sequence[Row], rows_b: Sequence[Row]) -> BlockTest:
    i, j = np.unravel_index(int(np.nanargmax(values)), values.shape)
    return BlockTest(
        a=a,
        b=b,
        mean=float(np.nanmean(values)),
        maximum=float(values[i, j]),
        layer_a=rows_a[int(i)][1],
        layer_b=rows_b[int(j)][1],
    )


def _tested(block: BlockTest, null: _BlockNull, *, exact: bool) -> BlockTest:
    mean, maximum = null.means[0], null.maxima[0]
    return replace(
        block,
        strength=float(mean),
        null_95=float(np.quantile(null.means, 0.95)),
        p_mean=float((null.means >= mean - _EQUAL).mean()),
        p_maximum=float((null.maxima >= maximum - _EQUAL).mean()),
        n_relabellings=len(null.means),
        exact=exact,
    )


class OfTwoSystems(Protocol):
    """A test of two systems, a dataclass."""

    @property
    def a(self) -> str: ...
    @property
    def b(self) -> str: ...
    @property
    def p_mean(self) -> float: ...


Tested = TypeVar("Tested", bound=OfTwoSystems)


def corrected_for_pairs(tests: Sequence[Tested], names: Mapping[str, str]) -> tuple[Tested, ...]:
    """With q, which is corrected for how many pairs of different systems were asked (Benjamini–Hochberg).

    Parameters
    ----------
    names : the field of a p → the field of its q.
    """
    between = [k for k, one in enumerate(tests) if one.a != one.b and np.isfinite(one.p_mean)]
    if not between:
        return tuple(tests)
    found = list(tests)
    for p, q in names.items():
        for k, value in zip(
            between, false_discovery_control([getattr(tests[k], p) for k in between]), strict=True
        ):
            found[k] = replace(found[k], **{q: float(value)})  # type: ignore[type-var]
    return tuple(found)
