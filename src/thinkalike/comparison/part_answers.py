"""What the answer says of parts of blocks, such as heads: which two are most alike, and what matters where.

A mean over all pairs of heads says little, for most of them have nothing to do with one another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thinkalike.comparison.explaining import MATTERS
from thinkalike.comparison.profiles import Profile, importance_shares
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.inference.block_tests import SIGNIFICANT, BlockTest
from thinkalike.inference.ranges import jackknife_range
from thinkalike.labels import find_row, part_name, span_of
from thinkalike.wording import listed, readable

MOST_FEATURES = 3
EQUAL = 1e-9  # values this close are one value


def most_alike_parts(matrix: SimilarityMatrix, blocks: Sequence[BlockTest]) -> str:
    """The two parts of two systems with the highest τ_w, held against chance for the best of so many pairs.

    Others are as alike if their ranges over other sentences reach into that of the best, or, where nothing
    was resampled, if they have the same value.
    """
    best = max(blocks, key=lambda block: block.maximum)
    cell = find_row(matrix.rows, best.a, best.layer_a), find_row(matrix.rows, best.b, best.layer_b)
    low, high = (matrix.values if ends is None else ends for ends in (matrix.low, matrix.high))
    spans = [(span_of(matrix.rows, block.a), span_of(matrix.rows, block.b)) for block in blocks]
    reached = np.concatenate([high[span].ravel() for span in spans])
    tied, n_pairs = int((reached >= low[cell] - EQUAL).sum()) - 1, int(np.isfinite(reached).sum())
    kind = part_name([layer for system, layer in matrix.rows if system in (best.a, best.b)])
    if 0 < tied == n_pairs - 1:
        return (
            f"Of {n_pairs:,} pairs of {kind} none stands out: with other sentences any may be the most alike."
        )
    place = f"the most alike of {n_pairs:,} pairs of {kind}"
    verb = f"are among {place}, about equally with {_others(tied)}" if tied else f"are {place}"
    if matrix.low is None and not tied:
        verb = f"come out as {place}"
    pair = f"{best.layer_a} of {best.a} and {best.layer_b} of {best.b}"
    return f"{pair} {verb}{_beyond_chance(matrix, best, cell)}."


def where_features_matter(profiles: Sequence[Profile]) -> str:
    """For the features that matter most somewhere in all these systems, the part in which each does."""
    largest = np.min([importance_shares(p.mean_importance).max(axis=0) for p in profiles], axis=0)
    peaks = np.min([np.nan_to_num(p.mean_importance).max(axis=0) for p in profiles], axis=0)
    order = [int(k) for k in np.argsort(-peaks, kind="stable") if largest[k] >= MATTERS][:MOST_FEATURES]
    said = [
        f"{readable(profiles[0].features[k])} in {listed([_place(profile, k) for profile in profiles])}"
        for k in order
    ]
    return f"Where features matter most: {'; '.join(said)}." if said else ""


def _place(profile: Profile, k: int) -> str:
    """`2.h1 of one`, where feature k matters most; and in how many others it may with other sentences."""
    values = np.nan_to_num(profile.mean_importance[:, k])
    best = int(values.argmax())
    tied = values >= values[best] - EQUAL
    if profile.replicates is not None:
        without = np.nan_to_num(profile.replicates.importance[:, :, k])
        ahead = jackknife_range(
            values[best] - values, without[:, best, None] - without, **profile.replicates.dealt
        )
        tied |= ahead.low <= 0
    n_tied = int(tied.sum()) - 1
    return f"{profile.layers[best]} of {profile.system}" + (f" (or {_others(n_tied)})" if n_tied else "")


def _others(n: int) -> str:
    return "one other" if n == 1 else f"{n:,} others"


def _beyond_chance(matrix: SimilarityMatrix, best: BlockTest, cell: tuple[int, int]) -> str:
    """By the p of the two, corrected for all pairs of the block, and that for the pairs of systems."""
    if matrix.p_block is None or np.isnan(best.q_maximum):
        return ""
    if max(float(matrix.p_block[cell]), best.q_maximum) < SIGNIFICANT:
        return ", more so than chance makes the best of them"
    return ", but chance makes the best of them as alike"
