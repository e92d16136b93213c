"""A matrix over layers again without each part of the sentences, at the cost of about one matrix more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from thinkalike.inference.jackknife import Indices
from thinkalike.measures import get_measure
from thinkalike.measures.cka import prepare_linear
from thinkalike.measures.inputs import as_layer
from thinkalike.measures.measure import Measure
from thinkalike.pairs.distances import DistanceLike, make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.stimuli.differences import FeatureDifferences

Floats = npt.NDArray[np.float64]

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


def left_out_matrices(
    measure: str | Measure,
    layers: Sequence[Any],
    kept: Sequence[Indices],
    *,
    distance: DistanceLike = "euclidean",
    differences: FeatureDifferences | None = None,
    seed: int = 0,
) -> LeftOut:
    """`measure` between all `layers`, with the items of each of `kept` only.

    Parameters
    ----------
    kept : the items that stay, for each part that is left out (`jackknife.left_out`).
    distance, differences : for "rsa": between items, and the features that may explain it.
    """
    compare = get_measure(measure) if isinstance(measure, str) else measure
    if compare.name == "rsa":
        return _rsa(layers, kept, distance, differences, seed)
    if compare.name == "cka":
        values = _cka(layers, kept)
        return LeftOut(values[1:], values[0])
    whole = compare.matrix(list(layers))
    return LeftOut(
        np.stack([compare.matrix([np.asarray(X)[items] for X in layers]) for items in kept]), whole
    )


def _rsa(
    layers: Sequence[Any],
    kept: Sequence[Indices],
    distance: DistanceLike,
    differences: FeatureDifferences | None,
    seed: int,
) -> LeftOut:
    pairs = Pairs.of(len(layers[0]), max_pairs=MOST_PAIRS, seed=seed)
    i, j = np.asarray(pairs.i, dtype=np.int64), np.asarray(pairs.j, dtype=np.int64)
    y = np.stack([make_target(as_layer(X), distance).between(i, j)[0] for X in layers]).astype(np.float32)
    columns = None
    if differences is not None:
        columns = np.stack([f.squared_differences(i, j) for f in differences.features], axis=1)
    everything = np.arange(len(layers[0]))
    values, explained = [], []
    for items in (everything, *kept):
        stays = np.zeros(len(everything), dtype=bool)
        stays[items] = True
        both = stays[i] & stays[j]
        ranks = rankdata(y[:, both], axis=1)
        ranks -= ranks.mean(axis=1, keepdims=True)
        ranks /= np.sqrt((ranks**2).sum(axis=1, keepdims=True))
        values.append(ranks @ ranks.T)
        if columns is not None:
            centred = columns[both] - columns[both].mean(axis=0)
            cross = ranks @ centred
            explained.append(cross @ np.linalg.pinv(centred.T @ centred, hermitian=True) @ cross.T)
    shares = np.stack(explained) if explained else None
    return LeftOut(
        np.stack(values[1:]),
        values[0],
        None if shares is None else shares[1:],
        None if shares is None else shares[0],
    )


def _cka(layers: Sequence[Any], kept: Sequence[Indices]) -> Floats:
    """Unbiased CKA of all items and of each of `kept`: (1 + n_parts, n_layers, n_layers).

    HSIC₁ of some items needs Σ K_ij L_ij over their pairs, and the row sums of K and L over them. All
    of these follow from sums over the blocks of pairs between two parts: the Gram matrices are passed once.
    """
    n, L, G = len(layers[0]), len(layers), len(kept)
    part = _parts(kept, n)
    order = np.argsort(part, kind="stable")
    edges = np.searchsorted(part[order], np.arange(G + 1))
    X = [prepare_linear(as_layer(layer)[order], f"layer {k}") for k, layer in enumerate(layers)]
    products = np.zeros((G, G, L, L))  # Σ K_ij L_ij, i in one part and j in another
    to_part = np.zeros((L, n, G))  # Σ_j K_ij, j in a part
    for g in range(G):
        rows = slice(edges[g], edges[g + 1])
        block = np.stack([x[rows] @ x.T for x in X])  # (L, n_g, n)
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


def _parts(kept: Sequence[Indices], n_items: int) -> Indices:
    """The part of each item: the one without which it is not kept."""
    part = np.full(n_items, -1, dtype=np.int64)
    for g, items in enumerate(kept):
        gone = np.ones(n_items, dtype=bool)
        gone[items] = False
        part[gone] = g
    return part
