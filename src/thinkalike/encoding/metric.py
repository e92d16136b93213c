"""Is a learned distance a metric? Not always, so it is checked."""

from __future__ import annotations

from math import prod

import numpy as np

from thinkalike.encoding.designs import Design
from thinkalike.stimuli.differences import CodedFeature, FeatureDifferences

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
