"""What a measure is: a function of two layers, and what it declares about itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.measures.inputs import Array, Vectors, as_layer, same_items

INVARIANCES = {
    "translation": "X + b",
    "scale": "cX, c > 0",
    "permutation": "XP, P a permutation of the units",
    "rotation": "XQ, Q orthogonal",
    "invertible": "XA, A any invertible matrix",
}
"""Maps of one layer's space → what each does to X of shape (n_items, n_units)"""
ANGLES = frozenset({"scale", "permutation", "rotation"})
SHAPE = ANGLES | {"translation"}
LINEAR = SHAPE | {"invertible"}

Named = Sequence[tuple[str, Vectors]]  # layers with the names that error messages use
AllPairs = Callable[[Named, Named | None], Array]
Prepared: TypeAlias = Any
"""What `prepare` makes of one layer, and `compare` takes two of: each measure has its own"""


@dataclass(frozen=True)
class Measure:
    """One row of the table: call it with two layers and get one number.

    `prepare` does what depends on one layer only, `compare` the rest, so that all pairs of many layers
    prepare each layer once. `all_pairs`, where given, is a still faster way to the same numbers.

    Attributes
    ----------
    name : str
        What `ta.similarity(measure=...)` and `thinkalike compare --measure` call it.
    prepare : (X, name) → what depends on X alone
        X is a layer of shape (n_items, n_units); the name stands in error messages.
    compare : (prepared X, prepared Y) → float
    kind : {"similarity", "distance"}
        A similarity is largest for equal layers, a distance is 0 there.
    range : (float, float)
        Smallest and largest possible value.
    invariances : frozenset of str
        The maps of `INVARIANCES` that leave the value unchanged, applied to either layer.
    of_first, of_second : frozenset of str, none by default
        Further maps that leave it unchanged when applied to X alone, or to Y alone.
    metric : bool, default False
        Whether it is symmetric, 0 only for layers that are equal up to the invariances, and keeps the
        triangle inequality.
    bound : {"distance", "share", "angle", "cosine", "root", "range"} or None
        What the values are, as far as that bounds how near one layer can be to several others: a distance
        that keeps the triangle inequality; 1 − such a distance; the cosine of such an angle; the cosine of
        two vectors, one of each layer, or the root of one; "range" if nothing but the range bounds it, as
        where a layer that holds all units of others has the best value with each. "distance" for every
        metric; None if nothing of the kind is known.
    symmetric : bool, default True
        Whether (X, Y) and (Y, X) give the same number.
    best_when_equal : bool, default True
        Whether a layer compared with itself has the best value there is.
    matches_items : bool, default True
        Whether it counts which item is which. If not, other orders of the items say nothing about chance.
    cost : str
        Growth in n items and d units for one pair.
    reference : str
        The paper.
    question : str
        What it answers, in a line.
    takes : {"layers", "feature", "sequences", "outputs"}
        "layers": two arrays (n_items, n_units). "feature": a layer and the labels of its items.
        "sequences": two trajectories, rows in the order of time. "outputs": logits (n_items, n_tokens).
    needs_extra : str, optional
        The optional extra of thinkalike that must be installed, if any.
    all_pairs : (named layers, other named layers or None) → matrix, optional

    Examples
    --------
    A measure of one's own: how alike the mean absolute activations of items are.

    >>> import numpy as np
    >>> from thinkalike.measures import Measure
    >>> loudness = Measure(
    ...     "loudness",
    ...     prepare=lambda X, name: np.abs(X).mean(axis=1),
    ...     compare=lambda x, y: np.corrcoef(x, y)[0, 1],
    ...     kind="similarity",
    ...     range=(-1.0, 1.0),
    ...     invariances=frozenset({"scale", "permutation"}),
    ...     cost="nd",
    ...     reference="one's own",
    ...     question="Are the same items loud?",
    ... )
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> round(loudness(X, 3 * X), 6)
    1.0
    >>> loudness.matrix([X, 2 * X, X**2]).shape
    (3, 3)
    """

    name: str
    prepare: Callable[[Vectors, str], Prepared]
    compare: Callable[[Prepared, Prepared], float]
    kind: Literal["similarity", "distance"]
    range: tuple[float, float]
    invariances: frozenset[str]
    cost: str
    reference: str
    question: str
    metric: bool = False
    bound: Literal["distance", "share", "angle", "cosine", "root", "range"] | None = None
    symmetric: bool = True
    best_when_equal: bool = True
    matches_items: bool = True
    of_first: frozenset[str] = frozenset()
    of_second: frozenset[str] = frozenset()
    takes: Literal["layers", "feature", "sequences", "outputs"] = "layers"
    needs_extra: str | None = None
    all_pairs: AllPairs | None = None

    def __post_init__(self) -> None:
        if self.metric and self.bound is None:
            object.__setattr__(self, "bound", "distance")

    def accept(self, values: npt.ArrayLike, name: str) -> Vectors:
        """One of the two arguments as an array that `prepare` takes, or an error that says what is wrong."""
        return as_layer(values, name)

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> float:
        first, second = self.accept(X, "X"), self.accept(Y, "Y")
        same_items(first, second)
        return float(self.compare(self.prepare(first, "X"), self.prepare(second, "Y")))

    def matrix(
        self,
        layers_a: Sequence[npt.ArrayLike],
        layers_b: Sequence[npt.ArrayLike] | None = None,
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

    def _among(self, prepared: list[Prepared]) -> Array:
        values = np.empty((len(prepared), len(prepared)))
        for i, x in enumerate(prepared):
            for j, y in enumerate(prepared):
                values[i, j] = values[j, i] if self.symmetric and j < i else self.compare(x, y)
        return values

    def _named(
        self, layers: Sequence[npt.ArrayLike], names: Sequence[str] | None, pattern: str
    ) -> list[tuple[str, Vectors]]:
        if not len(layers):
            raise InvalidInput("There are no layers to compare: give at least one.")
        names = [pattern.format(i) for i in range(len(layers))] if names is None else names
        return [(name, self.accept(layer, name)) for name, layer in zip(names, layers, strict=True)]
