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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thinkalike.measures.inputs import Array
from thinkalike.types import Matrix

BLOCK_BYTES = 64 * 2**20
"""Of Gram rows at a time: large enough for fast products, small enough for any machine"""


class Sums(NamedTuple):
    """Sums over pairs of items.

    Attributes
    ----------
    products
        Σ_ij Ã_ij B̃_ij of every two layers, of shape (L, L).
    per_item
        Σ_j Ã_ij² of every layer: what item i has in its HSIC with itself, of shape (L, n_items).
    """

    products: Array
    per_item: Array


def hsic_matrix(layers: Sequence[Matrix], *, biased: bool = False) -> Array:
    """HSIC₁ among centred `layers`, each of shape (n_items, n_units_l): (L, L), in float64.

    n_items must be 4 or more, or 2 for the biased form, ‖XᵀY‖²_F/(n−1)². Any real value; it grows with the
    fourth power of the activations.
    """
    n = len(layers[0])
    return gram_sums(layers, biased=biased).products / ((n - 1) ** 2 if biased else n * (n - 3))


def gram_sums(layers: Sequence[Matrix], *, biased: bool = False) -> Sums:
    """The sums over pairs that HSIC is made of, by the cheaper of the two ways."""
    cheaper = feature_space_is_cheaper(len(layers[0]), [layer.shape[1] for layer in layers])
    return (feature_space_sums if cheaper else stacked_gram_sums)(layers, biased=biased)


def feature_space_is_cheaper(n_items: int, widths: Sequence[int]) -> bool:
    """Whether all XᵀY cost fewer multiplications than all XXᵀ and their products with each other."""
    total, count = sum(widths), len(widths)
    by_features = n_items * (total**2 + sum(w**2 for w in widths)) / 2
    by_grams = n_items**2 * (total + count**2) / 2
    return by_features < by_grams


def u_centring_terms(squared_norms: Matrix, total: Matrix, n: int) -> Matrix:
    """u with Ã_ij = K_ij + u_i + u_j off the diagonal, for the Gram matrix of a centred layer.

    Of n items whose squared norms sum to `total`, for those with these `squared_norms`.
    """
    return squared_norms / (n - 2) - total / (2 * (n - 1) * (n - 2))


def stacked_gram_sums(layers: Sequence[Matrix], *, biased: bool = False) -> Sums:
    """From row blocks of the U-centred Grams (or of K and L) of all layers, each pair of items once."""
    n, L = len(layers[0]), len(layers)
    norms = [] if biased else [_squared_norms(X) for X in layers]
    terms = [u_centring_terms(a, a.sum(), n) for a in norms]
    products, per_item = np.zeros((L, L)), np.zeros((L, n))
    blocks = row_blocks(n, L, itemsize=layers[0].dtype.itemsize)
    room = _empty_like(layers[0], (L * blocks[0][1] * n,))  # one for all blocks
    other_room = _empty_like(layers[0], (blocks[0][1] * n,))
    for start, stop in blocks:
        rows, columns = stop - start, n - start
        stack = room[: L * rows * columns].reshape(L, rows, columns)
        squares = other_room[: rows * columns].reshape(rows, columns)
        for k, X in enumerate(layers):
            block = stack[k]
            _product(X[start:stop], X[start:].T, block)
            if terms:  # while the block is still in the processor's cache
                block += terms[k][start:stop, None]
                block += terms[k][None, start:]
                block.reshape(-1)[: rows * columns : columns + 1] = 0  # the diagonal
            squares[:] = block
            squares *= block
            per_item[k, start:stop] += _to_numpy(squares.sum(1))
            per_item[k, stop:] += _to_numpy(squares[:, rows:].sum(0))
            block[:, :rows] *= math.sqrt(0.5)  # within the block each pair stands twice, elsewhere once
        flat = stack.reshape(L, -1)
        products += 2 * _to_numpy(flat @ flat.T)
    return Sums(products, per_item)


def carried_by(X: Matrix, per_item: Array, items: Sequence[int] | npt.NDArray[np.integer]) -> float:
    """Σ Ã_ij² over the pairs of a centred layer that have at least one of `items` in them.

    `per_item` (n_items,) has the sums over all partners of each.
    """
    chosen, flat = X[items], X.reshape(-1)
    u = u_centring_terms(_squared_norms(chosen), flat @ flat, len(X))
    own = chosen @ chosen.T + u[:, None] + u[None, :]
    own[range(len(items)), range(len(items))] = 0
    return 2 * float(per_item[items].sum()) - float((own * own).sum())


def row_blocks(n_items: int, n_layers: int, *, itemsize: int = 8) -> list[tuple[int, int]]:
    """Consecutive (start, stop) over the items: a few blocks at least, so that symmetry saves work."""
    rows = BLOCK_BYTES // (itemsize * n_layers * n_items)
    rows = max(1, min(rows, -(-n_items // 8)))
    return [(start, min(start + rows, n_items)) for start in range(0, n_items, rows)]


def feature_space_sums(layers: Sequence[Matrix], *, biased: bool = False) -> Sums:
    """The same sums without Grams.

    Σ Ã∘B̃ = ‖XᵀY‖² − a·b − 2a·b/(n−2) + ΣaΣb/((n−1)(n−2)), or ‖XᵀY‖² alone when `biased`. Per item,
    Σ_j K_ij² = x_iᵀ(XᵀX)x_i; U-centring adds Σ_{j≠i} (u_i + u_j)² + 2(Ku)_i and takes K_ii's part away.
    """
    n, L = len(layers[0]), len(layers)
    products, per_item = np.empty((L, L)), np.empty((L, n))
    for i, X in enumerate(layers):
        own = X.T @ X
        per_item[i] = _to_numpy(((X @ own) * X).sum(1))
        products[i, i] = float((own**2).sum())
        for j in range(i + 1, L):
            products[i, j] = products[j, i] = float(((X.T @ layers[j]) ** 2).sum())
    if biased:
        return Sums(products, per_item)
    a = np.array([_to_numpy(_squared_norms(X)) for X in layers])
    sums = a.sum(axis=1)
    products += np.outer(sums, sums) / ((n - 1) * (n - 2)) - (a @ a.T) * (n / (n - 2))
    for k, X in enumerate(layers):
        u = u_centring_terms(a[k], sums[k], n)
        spread = n * u**2 + 2 * u * u.sum() + (u**2).sum()  # Σ_j (u_i + u_j)², j = i with the rest
        mixed = 2 * _to_numpy(X @ (X.T @ _like(u, X)))
        per_item[k] += spread + mixed - (a[k] + 2 * u) ** 2
    return Sums(products, per_item)


def _squared_norms(X: Matrix) -> Matrix:
    """Of the rows, (n,)."""
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X)
    import torch

    return torch.linalg.vector_norm(X, dim=1) ** 2


def _empty_like(X: Matrix, shape: tuple[int, ...]) -> Matrix:
    return np.empty(shape, X.dtype) if isinstance(X, np.ndarray) else X.new_empty(shape)


def _product(x: Matrix, y: Matrix, out: Matrix) -> None:
    if isinstance(x, np.ndarray):
        np.matmul(x, y, out=out)
    else:
        import torch

        torch.matmul(x, y, out=out)


def _like(values: Array, X: Matrix) -> Matrix:
    return values.astype(X.dtype) if isinstance(X, np.ndarray) else X.new_tensor(values)


def _to_numpy(X: Matrix) -> Array:
    return X.astype(np.float64) if isinstance(X, np.ndarray) else X.double().cpu().numpy()
