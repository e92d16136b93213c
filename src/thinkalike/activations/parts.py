"""Layers that fall into parts: the heads of a block or its experts, each a layer of its own (4.h7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock

from thinkalike.activations.store import Activations, Array, Layer
from thinkalike.errors import InvalidInput


@dataclass(frozen=True)
class Parts:
    """How the units of every layer fall into layers of their own.

    Attributes
    ----------
    mark
        "h" makes 4.h0, 4.h1, … of layer 4.
    n
        How many equal parts; every unit is one if None.
    """

    mark: str
    n: int | None = None

    def labels(self, layer: Layer, n_units: int) -> list[str]:
        """The names of the parts of a layer of so many units."""
        return [f"{layer}.{self.mark}{part}" for part in range(self._count(layer, n_units))]

    def width(self, layer: Layer, n_units: int) -> int:
        """The units of each part."""
        return n_units // self._count(layer, n_units)

    def _count(self, layer: Layer, n_units: int) -> int:
        n_parts = n_units if self.n is None else self.n
        if n_units % n_parts:
            raise InvalidInput(
                f"The {n_units} units of layer {layer!r} do not fall into {n_parts} equal parts: read this "
                "model at another site."
            )
        return n_parts


class _PartReader:
    """Reads a part out of its layer, which it remembers: the next part asked for is mostly of the same."""

    def __init__(self, read: Callable[[int], Array], places: list[tuple[int, slice]]) -> None:
        self.read, self.places = read, places
        self._last: tuple[int, Array] | None = None
        self._lock = Lock()

    def __call__(self, number: int) -> Array:
        layer, units = self.places[number]
        with self._lock:
            if self._last is None or self._last[0] != layer:
                self._last = layer, self.read(layer)
            return self._last[1][:, units].copy()

    def __getstate__(self) -> dict[str, object]:
        return {"read": self.read, "places": self.places}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def into_parts(whole: Activations, parts: Parts) -> Activations:
    """Every part of every layer as a layer of its own; in a store the layers stay whole.

    Examples
    --------
    >>> import numpy as np
    >>> whole = Activations.from_arrays({4: np.arange(12.0).reshape(2, 6)}, system="mine")
    >>> heads = into_parts(whole, Parts("h", 3))
    >>> heads.layers, heads["4.h1"].tolist()
    (('4.h0', '4.h1', '4.h2'), [[2.0, 3.0], [8.0, 9.0]])
    """
    labels: list[Layer] = []
    places: list[tuple[int, slice]] = []
    for number, (layer, n_units) in enumerate(zip(whole.layers, whole.n_units, strict=True)):
        width = parts.width(layer, n_units)
        for part, label in enumerate(parts.labels(layer, n_units)):
            labels.append(label)
            places.append((number, slice(part * width, (part + 1) * width)))
    return replace(
        whole,
        layers=tuple(labels),
        n_units=tuple(units.stop - units.start for _, units in places),
        _read=_PartReader(whole._read, places),
        _parted=Parted(whole, parts),
    )


@dataclass(frozen=True, eq=False)
class Parted:
    """What the layers were before they were taken apart."""

    whole: Activations = field()
    parts: Parts
