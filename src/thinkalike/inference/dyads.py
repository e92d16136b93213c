r"""Does a difference between systems go with the distance between them? Regression over pairs of systems.

Pairs that share a system are not independent, so the p-values of a regression over pairs mean nothing. The
test permutes systems (double semi-partialing, Dekker, Krackhardt and Snijders 2007): the difference in
question, less what the other differences say of it, is given the systems in another order, and the partial
correlation with the distances is computed anew. The other differences and the distances stay as they are, so
that it holds where differences go with one another, and where others have an effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import squareform

from thinkalike.labels import Floats

_EQUAL = 1e-12


class DyadTest(NamedTuple):
    """Of one difference, or of several taken together.

    Attributes
    ----------
    partial
        The partial correlation with the distances; of several the multiple one, which has no sign.
    p
        The share of the orders of the systems whose value is at least as high; NaN where the others leave
        nothing of the difference.
    """

    partial: float
    p: float


def dyad_tests(
    distances: Floats,
    differences: Floats,
    groups: Sequence[Sequence[int]],
    *,
    n_permutations: int = 999,
    seed: int = 0,
) -> list[DyadTest]:
    """Test each group of differences, given all the others.

    Parameters
    ----------
    distances : (n_pairs,) between systems, in the order of `scipy.spatial.distance.pdist`.
    differences : (n_pairs, n_columns) between the same systems.
    groups : columns that are tested as one.
    """
    n = len(squareform(distances))
    orders = np.stack([np.random.default_rng((seed, k)).permutation(n) for k in range(n_permutations)])
    return [_test(distances, differences, list(group), orders) for group in groups]


def _test(y: Floats, columns: Floats, group: list[int], orders: npt.NDArray[np.int64]) -> DyadTest:
    rest = np.delete(columns, group, axis=1)
    others, _ = np.linalg.qr(np.column_stack([np.ones(len(y)), rest - rest.mean(axis=0)]))
    own = _without(others, columns[:, group])
    left = np.linalg.norm(own, axis=0) / np.maximum(np.linalg.norm(columns[:, group], axis=0), _EQUAL)
    own = own[:, left > 1e-6]
    target = _without(others, y)
    if not own.shape[1] or np.linalg.norm(target) <= 1e-12 * np.linalg.norm(y):
        return DyadTest(float("nan"), float("nan"))
    target /= np.linalg.norm(target)
    found = _partial(target, own)
    squares = [squareform(column) for column in own.T]
    first, second = np.triu_indices(len(squares[0]), k=1)
    count = 0
    for order in orders:
        i, j = order[first], order[second]
        moved = _without(others, np.column_stack([square[i, j] for square in squares]))
        count += _partial(target, moved) >= found - _EQUAL
    return DyadTest(found, (1 + count) / (1 + len(orders)))


def _without(others: Floats, values: Floats) -> Floats:
    left: Floats = values - others @ (others.T @ values)
    return left


def _partial(target: Floats, own: Floats) -> float:
    if own.shape[1] == 1:
        return float(target @ own[:, 0] / np.linalg.norm(own))
    basis, triangle = np.linalg.qr(own)
    basis = basis[:, np.abs(np.diag(triangle)) > 1e-10 * np.abs(triangle).max()]
    return float(np.linalg.norm(basis.T @ target))
