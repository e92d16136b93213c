"""What every measure asks of its two layers, and the errors when it is not so."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thinkalike.activations.store import refuse_masked
from thinkalike.errors import InvalidInput

Array = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.floating]


def as_layer(values: npt.ArrayLike, name: str = "X", *, minimum: int = 2) -> Vectors:
    """`values` (NumPy, torch, or anything array-like) as a finite array of shape (n_items, n_units).

    float32 stays float32, uncopied, to spare memory: measures compute in float64 once they have centred it.

    Parameters
    ----------
    values : array-like of shape (n_items, n_units)
    name : how error messages call it
    minimum : how many items there must be at least
    """
    detach = getattr(values, "detach", None)  # a torch tensor has it; found without importing torch
    if detach is not None:
        tensor = detach().cpu()
        values = tensor.float().numpy() if tensor.element_size() < 8 else tensor.numpy()
    refuse_masked(values, name)
    layer = np.asarray(values)
    if layer.dtype.kind not in "fiub":
        raise InvalidInput(f"{name} is not an array of real numbers (dtype {layer.dtype}).")
    if layer.dtype not in (np.float32, np.float64):
        layer = layer.astype(np.float32 if layer.dtype == np.float16 else np.float64)
    if layer.ndim != 2:
        raise InvalidInput(
            f"{name} has shape {layer.shape}: expected (n_items, n_units). "
            "Flatten or pool the other axes first (a vector of one unit is X[:, None])."
        )
    n_items, n_units = layer.shape
    if n_units == 0:
        raise InvalidInput(f"{name} has no units (shape {layer.shape}): there is nothing to compare.")
    at_least(minimum, layer, name)
    if not np.isfinite(layer).all():
        rows = np.flatnonzero(~np.isfinite(layer).all(axis=1))
        raise InvalidInput(
            f"{name} has NaN or infinite values in {len(rows)} of {n_items} items, first in row {rows[0]}: "
            "leave those items out, or look for an overflow in half precision."
        )
    return layer


def at_least(minimum: int, layer: Vectors, name: str) -> None:
    """Refuse a layer of too few items."""
    if len(layer) < minimum:
        raise InvalidInput(f"{name} has {len(layer)} items: this measure needs at least {minimum}.")


def same_items(X: Vectors, Y: Vectors, names: tuple[str, str] = ("X", "Y")) -> None:
    """Refuse two layers over different numbers of items."""
    if len(X) != len(Y):
        raise InvalidInput(
            f"{names[0]} has {len(X)} items and {names[1]} has {len(Y)}: "
            "both layers must answer the same items, in the same order."
        )


def centred(X: Vectors, name: str = "X") -> Array:
    """`X` in float64 with its column means removed; refuses a layer that gives every item the same vector.

    The mean is removed twice: with a large common offset the first mean carries a rounding error of its own.
    """
    C = X - X.mean(axis=0, dtype=np.float64)
    C -= C.mean(axis=0)
    refuse_constant(float(np.abs(C).max()), X, name)
    return C


def refuse_constant(largest: float, X: Vectors, name: str) -> None:
    """Refuse a layer whose largest centred entry is nothing.

    What is left of a constant layer is rounding, as large as the offset times the machine's precision.
    """
    if largest <= 1e-12 * max(float(X.max()), -float(X.min())):
        raise InvalidInput(
            f"{name} is constant: it gives all {len(X)} items the same vector, so its shape is not defined. "
            "Leave this layer out (the embedding of one repeated token looks like this)."
        )


def unit_norm(X: Vectors, name: str = "X") -> Array:
    """`X` centred and divided by its Frobenius norm: its shape without position and size."""
    C = centred(X, name)
    # Dividing by the largest entry first keeps the squares of huge or tiny activations representable.
    C /= np.abs(C).max()
    return C / np.linalg.norm(C)
