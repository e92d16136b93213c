"""What a measure is: a function of two layers, and what it declares about itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.measures.inputs import Array, Layer, as_layer, same_items

# Maps of one layer's space, each with what it does to X of shape (n_items, n_units).
INVARIANCES = {
    "translation": "X + b",
    "scale": "cX, c > 0",
    "rotation": "XQ, Q orthogonal",
    "invertible": "XA, A any invertible matrix",
}
SHAPE = frozenset({"translation", "scale", "rotation"})
LINEAR = SHAPE | {"invertible"}

Named = Sequence[tuple[str, Layer]]  # layers with the names that error messages use
AllPairs = Callable[[Named, Named | None], Array]


@dataclass(frozen=True)
class Measure:
    """One row of the table: call it with two layers and get one number.

    `prepare` does what depends on one layer only, `compare` the rest, so that all pairs of many layers
    prepare each layer once. `all_pairs`, where given, is a still faster way to the same numbers.

    Attributes
    ----------
    name
        What `ta.similarity(measure=...)` and `thinkalike compare --measure` call it.
    kind
        A similarity is largest for equal layers, a distance is 0 there.
    range
        Smallest and largest possible value.
    invariances
        The maps of `INVARIANCES` that leave the value unchanged, applied to either layer.
    of_first, of_second
        Further maps that leave it unchanged when applied to X alone, or to Y alone.
    metric
        Whether it is symmetric, 0 only for layers that are equal up to the invariances, and keeps the
        triangle inequality.
    cost
        Growth in n items and d units for one pair.
    question
        What it answers, in a line.
    takes
        "layers": two arrays (n_items, n_units). "feature": a layer and the labels of its items.
        "sequences": two trajectories, rows in the order of time.
    needs_extra
        The optional extra of thinkalike that must be installed, if any.
    """

    name: str
    prepare: Callable[[Layer, str], Any]
    compare: Callable[[Any, Any], float]
    kind: Literal["similarity", "distance"]
    range: tuple[float, float]
    invariances: frozenset[str]
    cost: str
    reference: str
    question: str
    metric: bool = False
    symmetric: bool = True
    of_first: frozenset[str] = frozenset()
    of_second: frozenset[str] = frozenset()
    takes: Literal["layers", "feature", "sequences"] = "layers"
    needs_extra: str | None = None
    all_pairs: AllPairs | None = None

    def accept(self, values: Any, name: str) -> Any:
        """One of the two arguments as an array that `prepare` takes, or an error that says what is wrong."""
        return as_layer(values, name)

    def __call__(self, X: Any, Y: Any) -> float:
        X, Y = self.accept(X, "X"), self.accept(Y, "Y")
        same_items(X, Y)
        return float(self.compare(self.prepare(X, "X"), self.prepare(Y, "Y")))

    def matrix(
        self,
        layers_a: Sequence[Any],
        layers_b: Sequence[Any] | None = None,
        *,
        names_a: Sequence[str] | None = None,
        names_b: Sequence[str] | None = None,
    ) -> Array:
        """The measure between all layers of two lists, of shape (len(layers_a), len(layers_b)).

        Without `layers_b`, among the layers of the first list. Entry (i, j) is what `measure(a[i], b[j])`
        gives. The names stand in error messages.
        """
        a = self._named(layers_a, names_a, "layer {}")
        b = None if layers_b is None else self._named(layers_b, names_b, "layer {} of the second list")
        for name, layer in [*a, *(b or [])]:
            same_items(a[0][1], layer, (a[0][0], name))
        if self.all_pairs is not None:
            return self.all_pairs(a, b)
        prepared = [self.prepare(layer, name) for name, layer in a]
        if b is None:
            return self._among(prepared)
        others = [self.prepare(layer, name) for name, layer in b]
        return np.array([[self.compare(x, y) for y in others] for x in prepared], dtype=np.float64)

    def _among(self, prepared: list[Any]) -> Array:
        values = np.empty((len(prepared), len(prepared)))
        for i, x in enumerate(prepared):
            for j, y in enumerate(prepared):
                values[i, j] = values[j, i] if self.symmetric and j < i else self.compare(x, y)
        return values

    def _named(
        self, layers: Sequence[Any], names: Sequence[str] | None, pattern: str
    ) -> list[tuple[str, Layer]]:
        if not len(layers):
            raise InvalidInput("There are no layers to compare: give at least one.")
        names = [pattern.format(i) for i in range(len(layers))] if names is None else names
        return [(name, self.accept(layer, name)) for name, layer in zip(names, layers, strict=True)]
