"""Activations that others made: labelled arrays, NumPy files, Zarr groups, caches of other libraries."""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thinkalike.activations.distance_sources import from_distances, looks_like_distances
from thinkalike.activations.rows import first_difference
from thinkalike.activations.store import Activations, Name
from thinkalike.errors import InvalidInput, MissingExtra, StoreError, one_line

if TYPE_CHECKING:
    import xarray

    from thinkalike.stimuli.table import Stimuli

RESID_PRE = re.compile(r"blocks\.0\.hook_resid_pre")
RESID_POST = re.compile(r"blocks\.(\d+)\.hook_resid_post")


def open_path(path: str | Path, *, system: str | None = None, stimuli: Stimuli | None = None) -> Activations:
    """Activations from a path.

    A store of ours brings everything along. Anything else is arrays of shape (n_items, n_units): an `.npz`
    or `.mat` file or a Zarr group (one array per layer), an `.npy` file (one layer), a folder of `.npy` files
    (one per layer, in the order of their names, numbers by value). Then `system` names the system, the
    file's name if not given, and `stimuli` the rows. Where all arrays of an `.npz`, `.npy` or `.mat` file are
    matrices of distances (square, symmetric, 0 on the diagonal), they are taken as such: see
    `Activations.from_distances`. Those with negative values are squared.
    """
    name = str(path)
    place = Path(name)
    if "://" not in name and not place.exists():
        raise StoreError(f"There is nothing at {path}.")
    if place.suffix in (".npz", ".npy", ".mat"):
        from thinkalike.activations.brain_files import mat_arrays

        arrays = mat_arrays(place) if place.suffix == ".mat" else _numpy_file(place)
        if all(looks_like_distances(one) for one in arrays.values()):
            return _distances(arrays, system or place.stem, stimuli, name)
        return Activations.from_arrays(
            arrays, system=system or place.stem, stimuli=stimuli, metadata={"path": name}
        )
    if place.is_dir() and not (place / "zarr.json").exists() and not (place / ".zgroup").exists():
        return Activations.from_arrays(
            _numpy_folder(place), system=system or place.name, stimuli=stimuli, metadata={"path": name}
        )
    return _zarr(name, system=system, stimuli=stimuli)


def _distances(
    arrays: Mapping[object, np.ndarray], system: str, stimuli: Stimuli | None, path: str
) -> Activations:
    items = None if stimuli is None else [str(item) for item in stimuli.items.index]
    squared = any(one.min() < 0 for one in arrays.values())
    made = from_distances(arrays, system=system, items=items, squared=squared)
    digest = None if stimuli is None else stimuli.digest
    return replace(made, stimuli_digest=digest, metadata={**made.metadata, "path": path, "squared": squared})


def from_xarray(
    data: xarray.Dataset | xarray.DataArray,
    *,
    system: str | None = None,
    item_dim: str = "item",
    layer_dim: str | None = None,
    stimuli: Stimuli | None = None,
) -> Activations:
    """Activations from labelled arrays.

    A Dataset has one variable per layer. A DataArray is one layer, or several along `layer_dim`. The rows lie
    along `item_dim` and take its labels for names; all other dimensions together are the units. With
    `stimuli` the rows are put in their order by the labels.
    """
    try:
        import xarray
    except ImportError as error:
        raise MissingExtra.needed("xarray", "xarray") from error
    if isinstance(data, xarray.DataArray):
        if layer_dim is None:
            layers = {data.name or "array": data}
        else:
            layers = {label.item(): data.sel({layer_dim: label}) for label in data[layer_dim]}
        named = data.name
    else:
        layers, named = dict(data.data_vars), data.attrs.get("system")
    for name, layer in layers.items():
        if item_dim not in layer.dims:
            raise InvalidInput(
                f"Layer {name!r} has the dimensions {', '.join(map(str, layer.dims)) or 'none'} and no "
                f"{item_dim!r}: name that of the items with item_dim=…"
            )
    arrays = {
        name: layer.transpose(item_dim, ...).values.reshape(layer.sizes[item_dim], -1)
        for name, layer in layers.items()
    }
    items = [str(label) for label in data[item_dim].values] if item_dim in data.coords else None
    name = str(system or named or "arrays")
    if stimuli is None:
        return Activations.from_arrays(arrays, system=name, items=items)
    if items is not None:
        order = _rows_of(stimuli, items, name)
        arrays = {layer: rows[order] for layer, rows in arrays.items()}
    return Activations.from_arrays(arrays, system=name, stimuli=stimuli)


def _rows_of(stimuli: Stimuli, items: Sequence[str], system: str) -> np.ndarray:
    """Where each of the stimuli stands among labelled rows; rows that are merely counted stay in order."""
    wanted = [str(item) for item in stimuli.items.index]
    if len(items) != len(wanted) or len(set(items)) < len(items):
        return np.arange(len(items))  # refused when the rows are named
    if first_difference(items, wanted) is None:
        return np.arange(len(items))
    place = {item: k for k, item in enumerate(items)}
    missing = [item for item in wanted if item not in place]
    if missing:
        raise InvalidInput(
            f"{system} has no row labelled {missing[0]!r} ({len(missing)} of the {len(wanted)} stimuli are "
            f"missing; its first row is {items[0]!r}): label the rows by the ids of the stimuli."
        )
    return np.array([place[item] for item in wanted])


def to_xarray(activations: Activations) -> xarray.Dataset:
    """A Dataset with one variable per layer, named by it, and the items as coordinate."""
    try:
        import xarray
    except ImportError as error:
        raise MissingExtra.needed("xarray", "xarray") from error
    variables = {
        str(layer): (("item", f"unit_{number}"), activations[layer])
        for number, layer in enumerate(activations.layers)
    }
    about = {"system": activations.system, "stimuli_digest": activations.stimuli_digest or ""}
    return xarray.Dataset(variables, coords={"item": list(activations.item_names)}, attrs=about)


def from_cache(
    cache: Mapping[str, object],
    *,
    system: str = "model",
    names: Mapping[object, str] | Sequence[str] | None = None,
    position: int | Sequence[int] | str = -1,
    items: Sequence[str] | None = None,
    stimuli: Stimuli | None = None,
) -> Activations:
    """Activations from a mapping of names to tensors, as TransformerLens and nnsight leave them.

    Parameters
    ----------
    cache
        Name → tensor of shape (n_items, n_positions, n_units) or (n_items, n_units).
    names
        Layer → name in the cache, or just the names. If not given: the residual stream of a TransformerLens
        cache (layer 0 is `blocks.0.hook_resid_pre`, layer k is `hook_resid_post` of block k − 1), else
        everything in the cache under its own name.
    position
        Which position of each sequence to take: one number for all (−1 is the last), one per item, or "mean".
    """
    keys = list(cache.keys())
    chosen: dict[object, str]
    if names is None:
        chosen = _residual_names(keys) or {key: key for key in keys}
    elif isinstance(names, Mapping):
        chosen = dict(names)
    else:
        chosen = {name: name for name in names}
    for layer, name in chosen.items():
        if name not in keys:
            known = ", ".join(map(str, keys[:5]))
            raise InvalidInput(f"Layer {layer!r}: the cache has no {name!r}. It has {known}, …")
    arrays = {layer: _at_position(name, cache[name], position) for layer, name in chosen.items()}
    return Activations.from_arrays(arrays, system=system, items=items, stimuli=stimuli)


def _residual_names(keys: Sequence[str]) -> dict[object, str]:
    names: dict[object, str] = {}
    for key in keys:
        if RESID_PRE.fullmatch(str(key)):
            names[0] = key
        elif match := RESID_POST.fullmatch(str(key)):
            names[int(match[1]) + 1] = key
    return dict(sorted(names.items()))


def _at_position(name: str, tensor: object, position: int | Sequence[int] | str) -> np.ndarray:
    tensor = getattr(tensor, "value", tensor)  # nnsight's saved proxies hold the tensor in `value`
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu().float().numpy()
    states = np.asarray(tensor)
    if states.ndim == 2:
        return states
    if states.ndim != 3:
        raise InvalidInput(
            f"{name!r} has shape {states.shape}: expected (n_items, n_positions, n_units), "
            "or (n_items, n_units)."
        )
    if isinstance(position, str):
        if position != "mean":
            raise InvalidInput(
                f"position is a number, one number per item, or 'mean'; {position!r} was given."
            )
        return states.mean(1)
    where = np.asarray(position)
    if where.shape not in ((), (len(states),)):
        raise InvalidInput(f"{name!r} has {len(states)} items, but {where.size} positions were given.")
    where = np.broadcast_to(where, len(states))
    if (where >= states.shape[1]).any() or (where < -states.shape[1]).any():
        raise InvalidInput(
            f"{name!r} has {states.shape[1]} positions; position {position} is not among them."
        )
    return states[np.arange(len(states)), where]


def _numpy_file(path: Path) -> dict[object, np.ndarray]:
    try:
        with path.open("rb") as file:  # NumPy leaves it open when it cannot be read
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {path.stem: loaded}
            arrays: dict[object, np.ndarray] = {
                layer: loaded[name] for layer, name in _numbered(loaded.files).items()
            }
        for layer, array in arrays.items():
            if not isinstance(array, np.ndarray):  # NumPy gives the bytes of files that are no arrays
                raise ValueError(f"{layer} in it is no array")
        return arrays
    except InvalidInput:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise StoreError(
            f"{path} cannot be read as arrays of numbers ({one_line(error)}): save it again."
        ) from error


def stacked_arrays(path: str | Path) -> dict[object, np.ndarray]:
    """The arrays of three dimensions of an `.npy`, `.npz` or `.mat` file: all subjects in one; else none.

    That of an `.npy` file, which names no region, is called "all".
    """
    place = Path(path)
    if place.suffix == ".mat":
        from thinkalike.activations.brain_files import mat_arrays

        return mat_arrays(place, dimensions=3, needed=False)
    if place.suffix not in (".npy", ".npz"):
        return {}
    stacks = {name: one for name, one in _numpy_file(place).items() if one.ndim == 3}
    return {"all": stacks[place.stem]} if stacks and place.suffix == ".npy" else stacks


def _numpy_folder(folder: Path) -> dict[object, np.ndarray]:
    files = list(folder.glob("*.npy"))
    if not files:
        raise StoreError(f"The folder {folder} holds neither a Zarr group nor .npy files.")
    stems = _numbered(file.stem for file in files)
    return _sorted({layer: _numpy_file(folder / f"{stem}.npy")[stem] for layer, stem in stems.items()})


def _zarr(path: str, *, system: str | None, stimuli: Stimuli | None) -> Activations:
    import zarr

    from thinkalike.activations.reader import open_store, reading

    with reading(path):
        try:
            group: Any = zarr.open(path, mode="r")
        except FileNotFoundError:
            raise StoreError(f"There is no Zarr group at {path}.") from None
        if "thinkalike" in group.attrs:
            found = open_store(path)
            if stimuli is not None:
                found.check_stimuli(stimuli)
            return found
        with warnings.catch_warnings():  # an array whose description is damaged is passed over with a warning
            warnings.filterwarnings("error", "Object at .* is not recognized as a component")
            members = dict(group.arrays())
        arrays = {layer: np.asarray(members[name][:]) for layer, name in _numbered(members).items()}
    return Activations.from_arrays(
        _sorted(arrays), system=system or Path(path).stem, stimuli=stimuli, metadata={"path": path}
    )


def _numbered(names: Iterable[str]) -> dict[int | str, str]:
    """Layer → name: those called 0, 1, … are numbers, as they are for models; no two may be one."""
    layers: dict[int | str, str] = {}
    for name in names:
        layer = int(name) if name.isdecimal() else name
        if layer in layers:
            raise InvalidInput(f"{layers[layer]!r} and {name!r} are both layer {layer}: rename one.")
        layers[layer] = name
    return layers


def _sorted(arrays: Mapping[Name, np.ndarray]) -> dict[Name, np.ndarray]:
    """Numbers by value, then names by spelling."""
    order = sorted(arrays, key=lambda name: (isinstance(name, str), name))
    return {name: arrays[name] for name in order}
