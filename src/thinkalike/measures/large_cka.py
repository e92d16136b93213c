r"""Linear CKA of layers that have no room in memory together: a few are held, the others read one by one.

The feature-space form of `hsic`: ‖XᵀY‖²_F and sums of squared norms, in blocks of rows, float32 in and
float64 in the sums; no n × n matrix, so time grows with the number of items and memory hardly. XᵀY is kept
part by part of the items, so that CKA without each part, for its range, follows from the same pass: with
P = Σ_g P_g, μ and ν the means of what stays, C = P − P_g − n μνᵀ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from thinkalike.measures.cka import normalised
from thinkalike.measures.hsic import feature_space_is_cheaper
from thinkalike.measures.inputs import Array, Vectors, as_layer, at_least, refuse_constant
from thinkalike.parallel import cores, stream_in_order

MEMORY = 1 << 30
"""Bytes of layers in float64 beyond which they are not all held at once"""
HELD = 2 << 30
"""Bytes of layers that are, as they came: twice as much has the others read half as often"""
BLOCK_ROWS = 2048
FORMS = {"cka": False, "cka-biased": True, "cka-angular": True}
"""Measures that are made this way → whether from biased HSIC"""

Parts = npt.NDArray[np.int64]


def is_large(measure: str, n_items: int, widths: Sequence[int]) -> bool:
    """Whether `measure` between layers of these widths should be made this way."""
    too_much = 8 * n_items * sum(widths) > MEMORY
    return measure in FORMS and too_much and feature_space_is_cheaper(n_items, widths)


def room_for_layers(n_items: int, widths: Sequence[int]) -> int:
    """Bytes of the layers that are there at once: those held, one beside them, and one that is being read."""
    return min(HELD, 4 * n_items * sum(widths)) + 2 * 4 * n_items * max(widths)


def large_cka(
    layers: Sequence[npt.ArrayLike], names: Sequence[str], *, part: Parts | None = None, biased: bool = False
) -> tuple[Array, Array | None]:
    """CKA among `layers`, and without each part of the items.

    Parameters
    ----------
    layers : each of shape (n_items, n_units), read when it is asked for.
    part : (n_items,) the part of each item, 0, 1, …; None for no parts.

    Returns
    -------
    values : (n_layers, n_layers)
    without : (n_parts, n_layers, n_layers); None for no parts
    """
    n_layers = len(layers)
    first = as_layer(layers[0], names[0])
    cut, at_once = _Cut.of(len(first), part), max(1, HELD // first.nbytes)
    del first
    products = np.zeros((len(cut.edges), n_layers, n_layers))
    sides: dict[int, _Side] = {}

    def opened(k: int) -> _Open:
        X = as_layer(layers[k], names[k])
        if k not in sides:
            at_least(4, X, names[k])
            sides[k] = _side(cut, X, names[k])
        return _Open(X, sides[k])

    for start in range(0, n_layers, at_once):
        held = range(start, min(start + at_once, n_layers))
        for (one, other), found in _meetings(held, names, opened, partial(_product, cut, biased=biased)):
            products[:, one, other] = products[:, other, one] = found
    n = cut.n_items
    whole = normalised(products[0] / ((n - 1) ** 2 if biased else n * (n - 3)), n)
    if part is None:
        return whole, None
    size = np.sqrt(np.maximum(np.einsum("gii->gi", products[1:]), 1e-300))
    return whole, products[1:] / (size[:, :, None] * size[:, None, :])


def _meetings(
    held: range,
    names: Sequence[str],
    opened: Callable[[int], _Open],
    product: Callable[[_Open, _Open], Array],
) -> Iterator[tuple[tuple[int, int], Array]]:
    """Layers that are held with one another and with each that follows, which is read and let go.

    What is held is let go at the end, before the next are read: twice as much would have no room.
    """
    own = {k: opened(k) for k in held}
    for k in range(held.start, len(names)):
        other = own[k] if k in own else opened(k)
        some = [one for one in held if one <= k]
        found = stream_in_order(
            partial(product, other),
            [own[one] for one in some],
            description=f"CKA: {names[k]}",
            threads=cores(),
        )
        yield from zip([(one, k) for one in some], found, strict=True)


@dataclass(frozen=True)
class _Cut:
    """The items in the order of their parts: part g, from 0, has `order[edges[g] : edges[g + 1]]`."""

    order: Parts
    edges: Parts

    @classmethod
    def of(cls, n_items: int, part: Parts | None) -> _Cut:
        if part is None:
            return cls(np.arange(n_items), np.array([n_items]))
        order = np.argsort(part, kind="stable")
        return cls(order, np.concatenate([[0], np.searchsorted(part[order], np.arange(1, part.max() + 2))]))

    @property
    def n_items(self) -> int:
        return len(self.order)

    @property
    def has_parts(self) -> bool:
        return len(self.edges) > 1

    @property
    def parts(self) -> list[slice]:
        if not self.has_parts:
            return [slice(0, self.n_items)]
        return [slice(a, b) for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]


@dataclass(frozen=True)
class _Side:
    """What of a layer does not depend on others.

    Attributes
    ----------
    centre, scale : so that centred and divided the layer has norm 1
    means : (1 + n_parts, n_units) of all items, and of those that stay without each part
    norms : (1 + n_parts, n_items) squared distances to these means, 0 for what does not stay
    """

    centre: Array
    scale: float
    means: Array
    norms: Array


@dataclass(frozen=True)
class _Open:
    """A layer that is in memory."""

    X: Vectors
    side: _Side

    def rows(self, items: Parts) -> Array:
        """Some of its rows, centred and scaled."""
        Z: Array = self.X[items] - self.side.centre
        Z /= self.side.scale
        return Z


def _side(cut: _Cut, X: Vectors, name: str) -> _Side:
    n, everyone = cut.n_items, np.arange(cut.n_items)
    centre: Array = X.mean(axis=0, dtype=np.float64)
    centre += np.sum([(X[rows] - centre).sum(axis=0) for rows in _blocks(everyone)], axis=0) / n
    largest = max(float(np.abs(X[rows] - centre).max()) for rows in _blocks(everyone))
    refuse_constant(largest, X, name)
    shape = _Open(X, _Side(centre, largest, np.empty(0), np.empty(0)))
    scale = largest * np.sqrt(sum(float((shape.rows(rows) ** 2).sum()) for rows in _blocks(everyone)))
    shape = _Open(X, _Side(centre, float(scale), np.empty(0), np.empty(0)))
    means = np.zeros((len(cut.edges), X.shape[1]))
    if cut.has_parts:
        sums = np.stack(
            [
                np.sum([shape.rows(rows).sum(axis=0) for rows in _blocks(cut.order[p])], axis=0)
                for p in cut.parts
            ]
        )
        means[1:] = (sums.sum(axis=0) - sums) / (n - np.diff(cut.edges))[:, None]
    norms = np.empty((len(means), n))
    for rows in _blocks(everyone):
        Z = shape.rows(rows)
        norms[:, rows] = np.einsum("ij,ij->i", Z, Z) - 2 * (means @ Z.T) + (means**2).sum(axis=1)[:, None]
    for g, p in enumerate(cut.parts if cut.has_parts else (), start=1):
        norms[g, cut.order[p]] = 0.0
    return _Side(centre, float(scale), means, norms)


def _product(cut: _Cut, other: _Open, one: _Open, *, biased: bool) -> Array:
    """Σ Ã∘B̃ of two layers: of all items, and without each part."""
    shape = one.X.shape[1], other.X.shape[1]
    by_part = []
    for p in cut.parts:
        crossed = np.zeros(shape)
        for rows in _blocks(cut.order[p]):
            Z = one.rows(rows)
            crossed += Z.T @ (Z if other.X is one.X else other.rows(rows))  # of itself, half of it is made
        by_part.append(crossed)
    total = sum(by_part[1:], by_part[0].copy())
    values = [float((total**2).sum())]
    counts = [cut.n_items]
    for g, p in enumerate(cut.parts if cut.has_parts else (), start=1):
        counts.append(cut.n_items - (p.stop - p.start))
        C = total - by_part[g - 1] - counts[-1] * np.outer(one.side.means[g], other.side.means[g])
        values.append(float((C**2).sum()))
    if biased:
        return np.array(values)
    a, b, n = one.side.norms, other.side.norms, np.array(counts)
    both = a.sum(axis=1) * b.sum(axis=1) / ((n - 1) * (n - 2))
    return np.array(values) + both - np.einsum("gi,gi->g", a, b) * (n / (n - 2))


def _blocks(items: Parts) -> Iterator[Parts]:
    return (items[first : first + BLOCK_ROWS] for first in range(0, len(items), BLOCK_ROWS))
