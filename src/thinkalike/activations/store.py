"""`Activations`: the vectors of one system, a matrix per layer, in memory or on disk.

On disk it is a Zarr group that any Zarr reader understands:

    layers/0, layers/1, …   float32 (n_items, n_units), chunks of whole rows, each with a checksum
    items                   the item id of every row; rows lie in the order they were computed
    done                    per chunk of rows and layer its checksum, set when the chunk is in every layer

The group's attributes hold the rest. `Activations` gives the rows in the order of the stimuli.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from thinkalike.activations.rows import counted, first_difference
from thinkalike.errors import InvalidInput, StoreError, UnknownName
from thinkalike.labels import Layer

if TYPE_CHECKING:
    import xarray

    from thinkalike.activations.parts import Parted
    from thinkalike.stimuli.table import Stimuli

Name = TypeVar("Name")
Other = TypeVar("Other")
MOST_ROUNDING = 1e-4
"""Of the spread of the items: a larger share could move similarities in the third digit"""
Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class Activations(Mapping[Layer, "Array"]):
    """The vectors of one system: a mapping from layers to arrays (n_items, n_units).

    Rows are in the order of `item_names`. A layer is read when it is asked for; `dict(acts)` reads them all.
    `len` counts the layers, as of any mapping; `n_items` the rows.

    Attributes
    ----------
    system
        The name of the model, brain or network.
    layers
        Labels, in the order of processing: 0, 1, … for models (0 is the embeddings), any names for arrays.
    item_names
        The id of each row; `items()` gives pairs of layer and vectors, as of any mapping.
    n_units
        The width of each layer.
    stimuli_digest
        The digest of the stimuli that were shown; None for bare arrays.
    metadata
        How the numbers came to be: model, revision, pooling, site, versions.

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> acts = ta.Activations.from_arrays({"V1": np.zeros((3, 4)), "IT": np.ones((3, 2))}, system="monkey")
    >>> acts
    Activations(monkey: 2 layers × 3 items × 2–4 units)
    >>> acts["IT"].shape
    (3, 2)
    """

    system: str
    layers: tuple[Layer, ...]
    item_names: tuple[str, ...]
    n_units: tuple[int, ...]
    stimuli_digest: str | None
    metadata: Mapping[str, Any]
    _read: Callable[[int], Array] = field()
    _parted: Parted | None = field(default=None)
    """If the layers are parts of others, as heads are of blocks: these, as a `parts.Parted`"""

    def __getitem__(self, layer: Layer) -> Array:
        if layer not in self.layers:
            raise UnknownName.among("layer", layer, self.layers, where=self.system)
        return self._read(self.layers.index(layer))

    @property
    def address(self) -> str | None:
        """Where the store is; None for what is in memory."""
        return getattr(self._read, "path", None)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __contains__(self, layer: object) -> bool:
        return layer in self.layers

    @overload
    def get(self, layer: Layer, /) -> Array | None: ...

    @overload
    def get(self, layer: Layer, /, default: Array | Other) -> Array | Other: ...

    def get(self, layer: Layer, /, default: Array | Other | None = None) -> Array | Other | None:
        return self[layer] if layer in self.layers else default

    __eq__ = object.__eq__  # a mapping would compare arrays, which have no one answer
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        widths = "–".join(str(w) for w in sorted({min(self.n_units), max(self.n_units)}))
        return (
            f"Activations({self.system}: {len(self.layers)} layers × {self.n_items} items × {widths} units)"
        )

    @property
    def n_items(self) -> int:
        """How many rows every layer has."""
        return len(self.item_names)

    def check_stimuli(self, stimuli: Stimuli) -> None:
        """Raise `StoreError` unless these are the answers to `stimuli`, row by row."""
        if self.n_items != len(stimuli):
            raise StoreError(
                f"{self.system} has {self.n_items} rows but the stimuli have {len(stimuli)} items: "
                "it was shown other stimuli, or not all of them. One row per item is needed, in their order."
            )
        names = [str(item) for item in stimuli.items.index]
        row = None if counted(self.item_names) else first_difference(self.item_names, names)
        if row is not None:
            same = set(self.item_names) == set(names)
            what = "its rows in another order than the stimuli" if same else "other items than the stimuli"
            raise StoreError(
                f"{self.system} has {what}: row {row} is {self.item_names[row]!r}, item {row} is "
                f"{names[row]!r}. Sort the rows as the stimuli are and name them alike, or leave them "
                "unnamed if they are."
            )
        if self.stimuli_digest not in (None, stimuli.digest) and not self._was_shown(stimuli):
            raise StoreError(
                f"{self.system} was shown other stimuli (digest {str(self.stimuli_digest)[:12]}, "
                f"not {stimuli.digest[:12]}): extract it again on these."
            )

    def _was_shown(self, stimuli: Stimuli) -> bool:
        """Whether a store on disk says that these very texts and items were shown, with whatever features."""
        from thinkalike.activations.reader import describe
        from thinkalike.systems.fingerprints import fingerprint_texts

        about = None if self.address is None else describe(self.address)
        return about is not None and about["shown"] == fingerprint_texts(stimuli)

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[Name, object],
        *,
        system: str = "arrays",
        items: Sequence[str] | None = None,
        stimuli: Stimuli | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> Activations:
        """Activations from a mapping of layer name to an array or tensor of shape (n_items, n_units).

        Rows are named by `items`, or by the `stimuli` they answer to (in their order), or by position.
        """
        if not isinstance(arrays, Mapping) or not arrays:
            raise InvalidInput(
                f"{system} has no named layers: give a mapping such as {{'V1': array, 'IT': array}}."
            )
        if items is not None and stimuli is not None:
            raise InvalidInput("Give `items` or `stimuli`, not both: the stimuli already name their items.")
        matrices = {_label(name): _matrix(name, array) for name, array in arrays.items()}
        n_items = len(next(iter(matrices.values())))
        for name, matrix in matrices.items():
            if len(matrix) != n_items:
                raise InvalidInput(
                    f"Layer {name!r} has {len(matrix)} rows, the others {n_items}: "
                    "every layer needs one row per item, in the same order."
                )
        if stimuli is not None:
            items = [str(item) for item in stimuli.items.index]
        names = tuple(str(i) for i in (range(n_items) if items is None else items))
        if len(names) != n_items:
            raise InvalidInput(f"{system} has {n_items} rows but {len(names)} items name them.")
        if len(set(names)) != n_items:
            raise InvalidInput(f"The items of {system} are not unique: each row needs an id of its own.")
        for label, matrix in matrices.items():
            refuse_nonfinite(matrix, layer=label, items=names, system=system)
            _refuse_distances(matrix, label)
        return cls(
            system=system,
            layers=tuple(matrices),
            item_names=names,
            n_units=tuple(m.shape[1] for m in matrices.values()),
            stimuli_digest=None if stimuli is None else stimuli.digest,
            metadata=dict(metadata or {}),
            _read=list(matrices.values()).__getitem__,
        )

    @classmethod
    def from_xarray(cls, data: xarray.Dataset | xarray.DataArray, **options: Any) -> Activations:
        """Activations from labelled arrays; see `sources.from_xarray`."""
        from thinkalike.activations.sources import from_xarray

        return from_xarray(data, **options)

    @classmethod
    def from_distances(
        cls, rdms: npt.ArrayLike | Mapping[Name, npt.ArrayLike], **options: Any
    ) -> Activations:
        """Activations from RDMs of anyone's making; see `distance_sources.from_distances`."""
        from thinkalike.activations.distance_sources import from_distances

        return from_distances(rdms, **options)

    @classmethod
    def from_runs(cls, runs: npt.ArrayLike | Mapping[Name, npt.ArrayLike], **options: Any) -> Activations:
        """Activations with the crossnobis distances of repeated measurements; see `distance_sources`."""
        from thinkalike.activations.distance_sources import from_runs

        return from_runs(runs, **options)

    @classmethod
    def from_cache(cls, cache: Mapping[str, object], **options: Any) -> Activations:
        """Activations from a cache of TransformerLens or nnsight; see `sources.from_cache`."""
        from thinkalike.activations.sources import from_cache

        return from_cache(cache, **options)

    @classmethod
    def open(cls, path: str | Path, **options: Any) -> Activations:
        """Activations from a store of ours, or any Zarr group, `.npz`, `.npy` or folder of them."""
        from thinkalike.activations.sources import open_path

        return open_path(path, **options)

    def save(self, path: str | Path) -> Path | str:
        """Write a Zarr group at `path`, which must not exist yet or hold the very same thing."""
        from thinkalike.activations.writer import save

        return save(self, path)

    def to_xarray(self) -> xarray.Dataset:
        """A Dataset with one variable per layer, the items as coordinate."""
        from thinkalike.activations.sources import to_xarray

        return to_xarray(self)


def refuse_nonfinite(
    matrix: npt.NDArray[np.generic], *, layer: Layer, items: Sequence[str], system: str
) -> None:
    """Raise `InvalidInput` that names the layer and the first item with a NaN or an infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(matrix.sum()):  # one fast pass; a sum that overflows says nothing yet
            return
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        raise InvalidInput(
            f"{system} gives NaN or infinite values in layer {layer!r} for item {items[bad[0]]!r} "
            f"({len(bad)} of {len(items)} items): leave these items out; where a model computed them in half "
            "precision, use dtype='float32'."
        )


def _label(name: object) -> Layer:
    return int(name) if isinstance(name, (int, np.integer)) else str(name)


def _matrix(name: object, array: object) -> Array:
    if hasattr(array, "detach"):  # a torch tensor, wherever it lives
        array = array.detach().cpu().float().numpy()
    refuse_masked(array, f"Layer {name!r}")
    try:
        given = np.asarray(array)
    except ValueError as error:
        raise InvalidInput(f"Layer {name!r} is not an array of numbers: {error}") from error
    if given.dtype.kind not in "fiub":
        raise InvalidInput(f"Layer {name!r} is not an array of real numbers (dtype {given.dtype}).")
    if given.ndim != 2 or 0 in given.shape:
        raise InvalidInput(f"Layer {name!r} has shape {given.shape}: expected (n_items, n_units).")
    with np.errstate(over="ignore", invalid="ignore"):  # too large becomes infinite, and is refused as such
        matrix = np.ascontiguousarray(given, dtype=np.float32)
        if given.itemsize > 4 and _loses_geometry(given.astype(np.float64), matrix):
            raise InvalidInput(
                f"The items of layer {name!r} differ by {np.ptp(given, axis=0).max():.3g} beside values of "
                f"{np.abs(given).max():.3g}, and float32, in which activations are kept, would blur that: "
                "subtract the mean of every unit, or change the scale, first."
            )
    return matrix


def _refuse_distances(matrix: Array, label: object) -> None:
    """Rows of a matrix of distances would pass for vectors, and give other numbers than the distances do."""
    from thinkalike.activations.distance_sources import looks_like_distances

    if looks_like_distances(matrix):
        raise InvalidInput(
            f"Layer {label!r} is a matrix of distances (square, symmetric, 0 on the diagonal), not vectors "
            "of items: give it to ta.Activations.from_distances."
        )


def _loses_geometry(given: npt.NDArray[np.float64], rounded: Array) -> bool:
    """Whether what float32 rounds away is more than a small share of how the items differ."""
    if not np.ptp(given, axis=0).any():
        return False  # there is none
    size = np.abs(given).max()  # so that no square underflows
    error = np.linalg.norm((given - rounded) / size)
    return bool(error > MOST_ROUNDING * np.linalg.norm((given - given.mean(axis=0)) / size))


def refuse_masked(array: object, name: str) -> None:
    """Raise `InvalidInput` if NumPy's mask hides some of it: the hidden values would be read as data."""
    if np.ma.is_masked(array):
        raise InvalidInput(
            f"{name} is a masked array with {np.ma.count_masked(array)} values hidden: leave out their items "
            "or units, or fill them in."
        )
