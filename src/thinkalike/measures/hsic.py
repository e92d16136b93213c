r"""Unbiased HSIC between all pairs of many layers at once.

For centred X with a_i = ‖x_i‖², the Gram matrix K = XXᵀ has row sums 0, so its U-centred form (Székely and
Rizzo 2014) is known entry by entry:

    Ã_ij = K_ij + (a_i + a_j)/(n−2) − Σa/((n−1)(n−2))  for i ≠ j,   Ã_ii = 0

and HSIC₁(K, L) = Σ_ij Ã_ij B̃_ij / (n(n−3)) (Song et al. 2012; Nguyen et al. 2021), an inner product of
U-centred Grams. Two ways lead there, the same in exact arithmetic and chosen by their cost:

- Grams: row blocks of all layers' Ã are the rows of one matrix; its product with itself gives every pair.
- Feature space: ‖XᵀY‖²_F and sums of a and b, without any n × n matrix.

Both take NumPy arrays and torch tensors alike; the library, device and precision are the arguments'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from thinkalike.measures.inputs import Array

BLOCK_BYTES = (
    64 * 2**20
)  # of Gram rows at a time: large enough for fast products, small enough for any machine


def hsic_matrix(layers: Sequence[Any], *, biased: bool = False) -> Array:
    """HSIC₁ among centred `layers`, each of shape (n_items, n_units_l): (L, L), in float64.

    n_items must be 4 or more, or 2 for the biased form, ‖XᵀY‖²_F/(n−1)². Any real value; it grows with the
    fourth power of the activations.
    """
    n = len(layers[0])
    widths = [layer.shape[1] for layer in layers]
    by = feature_space_sums if feature_space_is_cheaper(n, widths) else stacked_gram_sums
    return by(layers, biased=biased) / ((n - 1) ** 2 if biased else n * (n - 3))


def feature_space_is_cheaper(n_items: int, widths: Sequence[int]) -> bool:
    """Whether all XᵀY cost fewer multiplications than all XXᵀ and their products with each other."""
    total, count = sum(widths), len(widths)
    by_features = n_items * (total**2 + sum(w**2 for w in widths)) / 2
    by_grams = n_items**2 * (total + count**2) / 2
    return by_features < by_grams


def u_centring_terms(squared_norms: Any) -> Any:
    """u with Ã_ij = K_ij + u_i + u_j off the diagonal, for the Gram matrix of a centred layer: shape (n,)."""
    n = len(squared_norms)
    return squared_norms / (n - 2) - squared_norms.sum() / (2 * (n - 1) * (n - 2))


def stacked_gram_sums(layers: Sequence[Any], *, biased: bool = False) -> Array:
    """Σ_ij Ã_ij B̃_ij from row blocks of the U-centred Grams (or of K and L), each pair of items once."""
    n = len(layers[0])
    left = right = tuple(layers)
    if not biased:
        left, right = zip(*(_augmented(layer) for layer in layers), strict=True)
    total = np.zeros((len(layers), len(layers)))
    for start, stop in row_blocks(n, len(layers), itemsize=_itemsize(layers[0])):
        rows, columns = stop - start, n - start
        stack = _empty_like(layers[0], (len(layers), rows, columns))
        for gram, x, y in zip(stack, left, right, strict=True):
            _product(x[start:stop], y[start:].T, gram)
        if not biased:
            stack[:, range(rows), range(rows)] = 0
        stack[:, :, :rows] *= math.sqrt(0.5)  # within the block each pair stands twice, elsewhere once
        flat = stack.reshape(len(layers), -1)
        total += 2 * _to_numpy(flat @ flat.T)
    return total


def row_blocks(n_items: int, n_layers: int, *, itemsize: int = 8) -> list[tuple[int, int]]:
    """Consecutive (start, stop) over the items: a few blocks at least, so that symmetry saves work."""
    rows = BLOCK_BYTES // (itemsize * n_layers * n_items)
    rows = max(1, min(rows, -(-n_items // 8)))
    return [(start, min(start + rows, n_items)) for start in range(0, n_items, rows)]


def feature_space_sums(layers: Sequence[Any], *, biased: bool = False) -> Array:
    """The same sums as ‖XᵀY‖² − a·b − 2a·b/(n−2) + ΣaΣb/((n−1)(n−2)), or ‖XᵀY‖² alone when `biased`."""
    n, L = len(layers[0]), len(layers)
    shared = np.empty((L, L))
    for i, x in enumerate(layers):
        for j in range(i, L):
            shared[i, j] = shared[j, i] = float(((x.T @ layers[j]) ** 2).sum())
    if biased:
        return shared
    a = np.array([_to_numpy((x * x).sum(1)) for x in layers])
    sums = a.sum(axis=1)
    return shared - (a @ a.T) * (n / (n - 2)) + np.outer(sums, sums) / ((n - 1) * (n - 2))


def _augmented(X: Any) -> tuple[Any, Any]:
    """X with two more columns for either side of the product: they add u_i + u_j to the Gram matrix."""
    u = u_centring_terms((X * X).sum(1))
    n, width = X.shape
    left, right = _empty_like(X, (n, width + 2)), _empty_like(X, (n, width + 2))
    left[:, :width] = right[:, :width] = X
    left[:, width], left[:, width + 1] = u, 1
    right[:, width], right[:, width + 1] = 1, u
    return left, right


def _empty_like(X: Any, shape: tuple[int, ...]) -> Any:
    return np.empty(shape, X.dtype) if isinstance(X, np.ndarray) else X.new_empty(shape)


def _product(x: Any, y: Any, out: Any) -> None:
    if isinstance(x, np.ndarray):
        np.matmul(x, y, out=out)
    else:
        import torch

        torch.matmul(x, y, out=out)


def _itemsize(X: Any) -> int:
    return int(X.dtype.itemsize)


def _to_numpy(X: Any) -> Array:
    return X.astype(np.float64) if isinstance(X, np.ndarray) else X.double().cpu().numpy()
