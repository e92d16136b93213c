"""A matrix over layers again without each part of the sentences, at the cost of about one matrix more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thinkalike.inference.ranges import Indices
from thinkalike.labels import Floats
from thinkalike.machine import compiled
from thinkalike.measures.cka import prepare_linear
from thinkalike.measures.inputs import as_layer
from thinkalike.measures.rdms import DISTANCES, rsa_name
from thinkalike.pairs.distances import DistanceLike, make_target
from thinkalike.pairs.kernels import ascending
from thinkalike.pairs.pairset import Pairs
from thinkalike.parallel import cores, stream_in_order
from thinkalike.stimuli.differences import FeatureDifferences

MOST_PAIRS = 100_000
"""Pairs of items from which RSA is judged again: of more, a seeded sample. It moves ρ by 0.003, sentences by
ten times that"""


class LeftOut(NamedTuple):
    """Matrices over layers, one for each part of the sentences that was left out.

    Attributes
    ----------
    values
        (n_parts, n_layers, n_layers)
    whole
        (n_layers, n_layers) of all sentences, from the same pairs of items.
    explained, whole_explained
        What the features explain of RSA; None for other measures or without features.
    """

    values: Floats
    whole: Floats
    explained: Floats | None = None
    whole_explained: Floats | None = None


SIMULATED = (
    "cka",
    "rsa",
    "rsa-pearson",
    "rsa-cosine",
    "rsa-cosine-pearson",
    "rsa-correlation",
    "rsa-correlation-pearson",
)
"""Measures whose ranges simulations hold to what they say: docs/certainty.md"""


def has_range(measure: str) -> bool:
    """Whether leaving sentences out says how far the number may be from that of all sentences there could be.

    Not for the others: they move with the number of items (the fewer for the units of a layer, the more alike
    unrelated layers are by CCA, regression or Procrustes), so no range around them holds a number of the
    systems. For Kendall's τ, leaving out costs too much; ranges of CKA with a Gaussian kernel held too rarely
    in simulations, for few items tell how wide the kernel should be. The rest is not simulated.
    """
    return measure in SIMULATED


def left_out_matrices(
    measure: str,
    layers: Sequence[np.ndarray],
    kept: Sequence[Indices],
    *,
    distance: DistanceLike | None = None,
    differences: FeatureDifferences | None = None,
    seed: int = 0,
) -> LeftOut:
    """`measure`, one that has a range, between all `layers`, with the items of each of `kept` only.

    Parameters
    ----------
    kept : the items that stay, for each part that is left out (`ranges.leave_parts_out`).
    distance, differences : for "rsa": between items, and the features that may explain it.
    """
    if measure == "cka":
        values = _cka(layers, kept)
        return LeftOut(values[1:], values[0])
    usual, correlation = _CORRELATIONS[measure]
    pairs = Pairs.of(len(layers[0]), max_pairs=MOST_PAIRS, seed=seed)
    targets = (make_target(as_layer(X), usual if distance is None else distance) for X in layers)
    y = np.stack([target.between(pairs.i, pairs.j)[0] for target in targets])
    if correlation == "pearson" and usual == "euclidean":
        y = np.sqrt(y)
    return left_out_rsa(y.astype(np.float32), pairs, kept, differences, ranked=correlation == "spearman")


def left_out_rsa(
    y: npt.NDArray[np.float32],
    pairs: Pairs,
    kept: Sequence[Indices],
    differences: FeatureDifferences | None = None,
    *,
    ranked: bool = True,
) -> LeftOut:
    """RSA from distances `y` (n_layers, n_pairs) at some `pairs`, or if `ranked` from what rises with them.

    Each layer is sorted once; what stays keeps its order, so that new ranks cost one pass.
    """
    order = np.stack([_order(one) for one in y]) if ranked else None
    columns = None
    if differences is not None:
        columns = np.stack([f.squared_differences(pairs.i, pairs.j) for f in differences.features], axis=1)

    def of_some(items: Indices) -> tuple[Floats, Floats | None]:
        stays = np.zeros(pairs.n_items, dtype=bool)
        stays[items] = True
        both = stays[pairs.i] & stays[pairs.j]
        some = _standardised(y[:, both]) if order is None else _ranks_of_some(y, order, both)[:, both]
        if columns is None:
            return some @ some.T, None
        centred = columns[both] - columns[both].mean(axis=0)
        cross = some @ centred
        return some @ some.T, cross @ np.linalg.pinv(centred.T @ centred, hermitian=True) @ cross.T

    parts = [np.arange(pairs.n_items), *kept]
    found = list(stream_in_order(of_some, parts, description="RSA without parts", threads=cores()))
    values = [one for one, _ in found]
    shares = None if columns is None else np.stack([one for _, one in found if one is not None])
    return LeftOut(
        np.stack(values[1:]).astype(np.float64),
        values[0].astype(np.float64),
        None if shares is None else shares[1:],
        None if shares is None else shares[0],
    )


def _order(y: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    """Any order will do for a layer without distances, which has no ranks."""
    return ascending(np.nan_to_num(y).astype(np.float64)).astype(np.int32)


def _standardised(y: npt.NDArray[np.float32]) -> Floats:
    """Rows centred and of length 1."""
    centred = y - y.mean(axis=1, keepdims=True, dtype=np.float64)
    rows: Floats = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    return rows


@compiled(nogil=True)
def _ranks_of_some(y, order, chosen):  # type: ignore[no-untyped-def]
    """Ranks (L, P) among the chosen pairs, ties averaged; centred, and over the chosen of length 1."""
    ranks = np.empty(y.shape, dtype=np.float32)
    for layer in range(len(y)):
        if np.isnan(y[layer, 0]):  # all its distances are equal
            ranks[layer] = np.nan
            continue
        n, spread = chosen.sum(), 0.0
        middle, before, k = (n - 1) / 2.0, 0, 0
        while k < len(order[layer]):
            value, tied, stop = y[layer, order[layer, k]], 0, k
            while stop < len(order[layer]) and y[layer, order[layer, stop]] == value:
                tied += chosen[order[layer, stop]]
                stop += 1
            rank = before + (tied - 1) / 2.0 - middle
            for place in range(k, stop):
                ranks[layer, order[layer, place]] = rank
            spread += tied * rank * rank
            before += tied
            k = stop
        scale = 1.0 / np.sqrt(spread) if spread > 0 else np.nan
        for p in range(len(chosen)):
            ranks[layer, p] *= scale
    return ranks


def _cka(layers: Sequence[np.ndarray], kept: Sequence[Indices]) -> Floats:
    """Unbiased CKA of all items and of each of `kept`: (1 + n_parts, n_layers, n_layers).

    HSIC₁ of some items needs Σ K_ij L_ij over their pairs, and the row sums of K and L over them. All
    of these follow from sums over the blocks of pairs between two parts: the Gram matrices are passed once.
    """
    n, L, G = len(layers[0]), len(layers), len(kept)
    part = part_of_items(kept, n)
    order = np.argsort(part, kind="stable")
    edges = np.searchsorted(part[order], np.arange(G + 1))
    centred = [prepare_linear(as_layer(layer)[order], f"layer {k}") for k, layer in enumerate(layers)]
    products = np.zeros((G, G, L, L))  # Σ K_ij L_ij, i in one part and j in another
    to_part = np.zeros((L, n, G))  # Σ_j K_ij, j in a part
    for g in range(G):
        rows = slice(edges[g], edges[g + 1])
        block = np.stack([X[rows] @ X.T for X in centred])  # (L, n_g, n)
        size = edges[g + 1] - edges[g]
        block[:, np.arange(size), edges[g] + np.arange(size)] = 0.0
        for h in range(G):
            cell = block[:, :, edges[h] : edges[h + 1]].reshape(L, -1)
            products[g, h] = cell @ cell.T
            to_part[:, rows, h] = block[:, :, edges[h] : edges[h + 1]].sum(axis=2)
    found = [_cka_of(products.sum(axis=(0, 1)), to_part.sum(axis=2))]
    for g in range(G):
        others = np.delete(np.arange(G), g)
        stays = np.delete(np.arange(n), np.arange(edges[g], edges[g + 1]))
        found.append(
            _cka_of(
                products[np.ix_(others, others)].sum(axis=(0, 1)), to_part[:, stays][..., others].sum(axis=2)
            )
        )
    return np.stack(found)


def _cka_of(products: Floats, rows: Floats) -> Floats:
    """From Σ K_ij L_ij (L, L) and row sums (L, n), both without the diagonal (Song et al. 2012)."""
    n = rows.shape[1]
    total = rows.sum(axis=1)
    hsic = products + np.outer(total, total) / ((n - 1) * (n - 2)) - 2 / (n - 2) * rows @ rows.T
    size = np.sqrt(np.maximum(np.diag(hsic), 1e-300))
    cka: Floats = hsic / np.outer(size, size)
    return cka


def part_of_items(kept: Sequence[Indices], n_items: int) -> Indices:
    """The part of each item: the one without which it is not kept."""
    part = np.full(n_items, -1, dtype=np.int64)
    for g, items in enumerate(kept):
        gone = np.ones(n_items, dtype=bool)
        gone[items] = False
        part[gone] = g
    return part


_CORRELATIONS = {
    rsa_name(distance, correlation): (distance, correlation)
    for distance in DISTANCES
    for correlation in ("spearman", "pearson")
}
