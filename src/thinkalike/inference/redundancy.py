r"""Do facts about systems go with where these lie among one another? Redundancy analysis of distances.

With D the distances of n systems and J = I − 11ᵀ/n, G = −½ J D² J holds the scalar products of their places
(Gower 1966), also where no such places exist. What columns of facts explain of it is tr(H G), H being the
projection on these columns: what a regression of the places on the facts would say (McArdle and Anderson
2001). Places are sums of what facts do, and distances are not: a regression of distances on differences lays
part of what one fact does on others that go with it, and this does not.

p comes from permuting systems. What the other facts leave of the places is given to the systems in another
order, and the fact is fitted anew (Freedman and Lane 1983).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import squareform

from thinkalike.labels import Floats

_EQUAL = 1e-12
_LEFT = 1e-6
"""What must be left of a column when others are taken out, as a share, for it to say anything of its own"""
_AT_ONCE = 200
"""Permutations in one piece"""


class PlaceTest(NamedTuple):
    """Of one fact, or of several taken together.

    Attributes
    ----------
    share
        Of what the other facts leave of the distances, the part that it explains, less what as many columns
        of noise would explain (adjusted R²): about 0 where it says nothing. NaN where the others leave
        nothing of it, or too few systems to say.
    p
        The share of the orders of the systems that explain at least as much; NaN where `share` is, or without
        permutations.
    """

    share: float
    p: float


def place_tests(
    distances: Floats,
    facts: Sequence[Floats],
    *,
    alone: bool = False,
    n_permutations: int = 999,
    seed: int = 0,
) -> list[PlaceTest]:
    """Test each fact, given all the others.

    Parameters
    ----------
    distances : (n_pairs,) between systems, in the order of `scipy.spatial.distance.pdist`.
    facts : of each fact, or group of facts, columns (n_systems, n_columns): numbers, or 0 and 1 for levels.
    alone : test each fact as if there were no others.
    """
    squared = squareform(distances) ** 2
    n = len(squared)
    places = -0.5 * (squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean())
    orders = np.empty((n_permutations, n), dtype=np.int64)
    for k in range(n_permutations):
        orders[k] = np.random.default_rng((seed, k)).permutation(n)
    found = []
    for k, own in enumerate(facts):
        others = [] if alone else [one for j, one in enumerate(facts) if j != k]
        found.append(_test(places, own, _basis(np.column_stack([np.ones(n), *others])), orders.astype(int)))
    return found


def _test(places: Floats, columns: Floats, others: Floats, orders: npt.NDArray[np.int64]) -> PlaceTest:
    own = _own_basis(columns, others)
    n_systems, n_own = len(places), own.shape[1]
    free = n_systems - others.shape[1] - n_own
    left = _without(others, _without(others, places).T)
    total = float(np.trace(left))
    if not n_own or free < 1 or total <= _EQUAL * float(np.abs(places).sum()):
        return PlaceTest(float("nan"), float("nan"))
    explained = float(np.einsum("ij,ij->", own, left @ own))
    share = 1 - (1 - explained / total) * (free + n_own) / free
    if not orders.size:
        return PlaceTest(share, float("nan"))
    ratio = explained / (total - explained)
    count = 0
    for start in range(0, len(orders), _AT_ONCE):
        some = np.argsort(orders[start : start + _AT_ONCE], axis=1)  # moving systems is moving facts back
        by_own, by_others = (
            np.einsum("pij,pij->p", moved, left @ moved) for moved in (own[some], others[some])
        )
        count += int((by_own >= (ratio - _EQUAL) * (total - by_others - by_own)).sum())
    return PlaceTest(share, (1 + count) / (1 + len(orders)))


def _own_basis(columns: Floats, others: Floats) -> Floats:
    """What columns have for themselves: orthonormal, and at right angles to `others`."""
    own = _without(others, columns)
    size = np.linalg.norm(columns - columns.mean(axis=0), axis=0)
    own = own[:, np.linalg.norm(own, axis=0) > _LEFT * np.maximum(size, _EQUAL)]
    return _basis(own) if own.shape[1] else own


def _basis(columns: Floats) -> Floats:
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    basis: Floats = left[:, values > _LEFT * values[0]]
    return basis


def _without(others: Floats, values: Floats) -> Floats:
    left: Floats = values - others @ (others.T @ values)
    return left
