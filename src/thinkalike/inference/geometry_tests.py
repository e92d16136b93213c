"""How sure a matrix of layers by a geometric measure is: ranges over sentences, and what chance gives.

Ranges come from leaving sentences out (`jackknife`), p-values and thresholds from sentences that change
places on one side (`null_calibration`). A mean over layers, or the best of them, is held against the same
mean and the same best in every permutation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from thinkalike.inference.block_tests import corrected_for_pairs
from thinkalike.inference.null_calibration import Calibrated, calibrate
from thinkalike.inference.ranges import Range, jackknife_range
from thinkalike.labels import Floats, Layer, Row, span_of, systems_of

NAN = float("nan")
ROUNDING = 1e-5
"""Correlations so near 1 are 1: distances are kept in single precision"""


@dataclass(frozen=True)
class GeometryTest:
    """All layers of `a` against all layers of `b` (`a == b`: within a system, the diagonal left out)."""

    a: str
    b: str
    mean: float
    """Over all pairs of layers"""
    best: float
    """The most alike pair of layers; it has no range, being the best of many"""
    layer_a: Layer
    layer_b: Layer
    """Where the best stands"""
    low: float = NAN
    high: float = NAN
    """95 % range of the mean, over sentences"""
    p_mean: float = NAN
    """How often exchanged sentences give a mean as high"""
    q: float = NAN
    """The same after Benjamini–Hochberg over all pairs of systems; NaN within a system"""
    chance: float = NAN
    """What 95 % of the means of exchanged sentences stay below (above, for distances)"""
    calibrated: float = NAN
    """The mean on a scale from chance (0) to the best there is (1)"""
    p_best: float = NAN
    q_best: float = NAN
    """`p_best` after Benjamini–Hochberg over all pairs of systems"""
    chance_best: float = NAN
    calibrated_best: float = NAN
    """The same for the best, against the best of exchanged sentences"""
    n_permutations: int = 0
    across: float = NAN
    """The mean with other sentences on one side: nothing counts that is particular to those shown"""
    ceiling: float = NAN
    """What `across` would be for layers alike in truth, with so many sentences"""
    control: float = NAN
    """The mean of untrained copies of the two systems, averaged over draws of weights"""
    control_share: float = NAN
    """The share of the draws in which the copies are at least as alike"""

    @property
    def disattenuated(self) -> float:
        """`across` as a share of its ceiling: an estimate for very many sentences. It can exceed 1."""
        return self.across / self.ceiling if self.ceiling > 0 else NAN


class Null(NamedTuple):
    """A measure with its sentences as they are, and exchanged; from the same pairs of items.

    Attributes
    ----------
    observed
        (n_rows, n_rows)
    values
        (n_permutations, n_rows, n_rows), the items of the second layer reordered.
    """

    observed: Floats
    values: Floats


class Cells(NamedTuple):
    """Of every pair of layers, (n_rows, n_rows); None where nothing was drawn."""

    low: Floats | None = None
    high: Floats | None = None
    p_block: Floats | None = None
    threshold: Floats | None = None
    calibrated: Floats | None = None


def geometry_tests(
    values: Floats,
    rows: Sequence[Row],
    *,
    left_out: Floats | None = None,
    null: Null | None = None,
    distance: bool = False,
    symmetric: bool = True,
    best: float = 1.0,
) -> tuple[Cells, tuple[GeometryTest, ...]]:
    """Ranges and tests of `values` (n_rows, n_rows) for every pair of layers and every pair of systems.

    Parameters
    ----------
    left_out : (n_parts, n_rows, n_rows) values without each part of the sentences.
    distance : smaller is more alike.
    symmetric : the measure is, so that one draw serves both orders of two layers.
    best : the value of equal layers.
    """
    if null is not None and symmetric:
        null = Null(*(_mirrored(v) for v in null))
    cells = Cells()
    if left_out is not None:
        low, high, _ = correlation_range(values, left_out)
        cells = cells._replace(low=low, high=high)
    if null is not None:
        found = calibrate(null.observed, null.values, best=best, distance=distance)
        known = np.isfinite(values) & ~np.eye(len(values), dtype=bool)  # no layer is tested against itself
        cells = cells._replace(
            p_block=np.full(values.shape, np.nan),
            threshold=np.where(known, found.threshold, np.nan),
            calibrated=np.where(known, found.score, np.nan),
        )
    tests = []
    for a, b in combinations_with_replacement(systems_of(rows), 2):
        place = span_of(rows, a), span_of(rows, b)
        kept = np.isfinite(values[place])
        if a == b:
            kept &= ~np.eye(len(kept), dtype=bool)
        if not kept.any():
            continue
        test = _block(a, b, values, rows, kept, distance=distance)
        if left_out is not None:
            means = left_out[:, place[0], place[1]][:, kept].mean(axis=1)
            low, high, _ = correlation_range(np.array(test.mean), means)
            test = replace(test, low=float(low), high=float(high))
        if null is not None and cells.p_block is not None:
            test, corrected = _against(test, null, place, kept, best=best, distance=distance)
            cells.p_block[place] = corrected
            cells.p_block[place[::-1]] = corrected.T if symmetric else _other_way(null, place, kept, distance)
        tests.append(test)
    return cells, corrected_for_pairs(tests, {"p_mean": "q", "p_best": "q_best"})


def correlation_range(value: Floats, without: Floats) -> Range:
    """A 95 % range over sentences, inside [−1, 1]; of no width for layers that are equal whatever is shown.

    Such are a layer and itself, and layers with the same vectors: 1 but for rounding, of which artanh would
    make a range from −1 to 1.
    """
    found = jackknife_range(value, without, scale="correlation")
    equal = (np.abs(value) > 1 - ROUNDING) & (np.abs(without) > 1 - ROUNDING).all(axis=0)
    low, high = (np.where(equal, np.sign(value), end) for end in (found.low, found.high))
    return found._replace(low=low, high=high)


def _mirrored(values: Floats) -> Floats:
    """What stands above the diagonal, below it too."""
    upper = np.triu(values)
    mirrored: Floats = upper + np.swapaxes(np.triu(values, k=1), -1, -2)
    return mirrored


def _block(
    a: str, b: str, values: Floats, rows: Sequence[Row], kept: Floats, *, distance: bool
) -> GeometryTest:
    in_a, in_b = span_of(rows, a), span_of(rows, b)
    block = values[in_a, in_b]
    alike = np.where(kept, -block if distance else block, -np.inf)
    i, j = np.unravel_index(int(alike.argmax()), alike.shape)
    return GeometryTest(
        a=a,
        b=b,
        mean=float(block[kept].mean()),
        best=float(block[i, j]),
        layer_a=rows[in_a.start + int(i)][1],
        layer_b=rows[in_b.start + int(j)][1],
    )


def _against(
    test: GeometryTest, null: Null, place: tuple[slice, slice], kept: Floats, *, best: float, distance: bool
) -> tuple[GeometryTest, Floats]:
    """The test with its p-values, and the p of every cell corrected for all cells of the block."""
    observed, drawn = null.observed[place], null.values[:, place[0], place[1]]
    extreme = np.min if distance else np.max
    mean = calibrate(observed[kept].mean(), drawn[:, kept].mean(axis=1), best=best, distance=distance)
    top = calibrate(extreme(observed[kept]), extreme(drawn[:, kept], axis=1), best=best, distance=distance)
    tested = replace(
        test,
        p_mean=float(mean.p),
        chance=float(mean.threshold),
        calibrated=float(mean.score),
        p_best=float(top.p),
        chance_best=float(top.threshold),
        calibrated_best=float(top.score),
        n_permutations=len(drawn),
    )
    return tested, _by_best(observed, drawn, kept, distance).p


def _by_best(observed: Floats, drawn: Floats, kept: Floats, distance: bool) -> Calibrated:
    """Every cell against the best cell of every permutation."""
    extreme = (np.min if distance else np.max)(drawn[:, kept], axis=1)
    found = calibrate(observed, np.broadcast_to(extreme[:, None, None], drawn.shape), distance=distance)
    return found._replace(p=np.where(kept, found.p, np.nan))


def _other_way(null: Null, place: tuple[slice, slice], kept: Floats, distance: bool) -> Floats:
    """The same for the block with its systems the other way round."""
    return _by_best(null.observed[place[::-1]], null.values[:, place[1], place[0]], kept.T, distance).p
