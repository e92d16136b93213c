"""What neuroscientists have at hand: MATLAB files, brain images with a mask, rsatoolbox, MNE epochs.

Objects of other libraries are known by what they can do, not by their class: none of these libraries is
imported, except nibabel to read an image from a path, and h5py for MATLAB's newer files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from thinkalike.activations.distance_sources import from_distances
from thinkalike.activations.store import Activations
from thinkalike.errors import InvalidInput, MissingExtra, StoreError, one_line

if TYPE_CHECKING:
    from mne import BaseEpochs
    from nibabel.spatialimages import SpatialImage

SQUARED = ("squared euclidean", "squared mahalanobis", "crossnobis")
"""What rsatoolbox calls distances that it gives squared"""
Array = npt.NDArray[np.generic]


def mat_arrays(path: str | Path, *, dimensions: int = 2, needed: bool = True) -> dict[object, Array]:
    """The arrays of numbers of a MATLAB file that have so many dimensions, by the names of their variables.

    Two are (n_items, n_units), three (n_subjects, n_items, n_units). If `needed`, there must be some.
    """
    try:
        found = _variables(path)
    except MissingExtra:
        raise
    except Exception as error:  # of SciPy, HDF5, zlib, the system
        raise StoreError(f"{path} cannot be read as a MATLAB file ({one_line(error)}).") from error
    variables = {name: value for name, value in found.items() if not name.startswith("__")}
    matrices: dict[object, Array] = {
        name: value
        for name, value in variables.items()
        if getattr(value, "ndim", 0) == dimensions and value.dtype.kind in "fiu"
    }
    if needed and not matrices:
        has = ", ".join(f"{name} {np.shape(value)}" for name, value in variables.items())
        raise InvalidInput(
            f"{path} has no matrix of numbers (its variables: {has}): save each layer or region as "
            "a variable of shape (n_items, n_units)."
        )
    return matrices


def _variables(path: str | Path) -> dict[str, Array]:
    from scipy.io import loadmat

    try:
        return dict(loadmat(path, squeeze_me=False))
    except NotImplementedError:  # version 7.3 is HDF5
        return _hdf5(path)


def _hdf5(path: str | Path) -> dict[str, Array]:
    """MATLAB 7.3, whose arrays lie with their axes reversed."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra.needed("h5py", "neuro") from error
    with h5py.File(path, "r") as file:
        return {name: np.asarray(one).T for name, one in file.items() if isinstance(one, h5py.Dataset)}


Image: TypeAlias = "str | os.PathLike[str] | SpatialImage | npt.ArrayLike"
"""A file, an image of nibabel, or its values"""


def from_nifti(
    image: Image,
    mask: Image,
    *,
    system: str | None = None,
    items: Sequence[str] | None = None,
    labels: dict[int, str] | None = None,
) -> Activations:
    """The voxels inside a mask, one row per volume; with an atlas, a layer per region.

    Parameters
    ----------
    image : path of a 4-D image (x, y, z, n_items), such as one of β estimates, or a loaded one (nibabel,
        nilearn)
    mask : the same in 3-D: 0 outside, 1 inside; or a whole number for each region
    system : its name; that of the file when None
    items : names of the volumes
    labels : number in the mask → name of the region

    Returns
    -------
    Activations

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.activations import from_nifti
    >>> volumes = np.random.default_rng(0).normal(size=(4, 4, 4, 6))
    >>> atlas = np.zeros((4, 4, 4))
    >>> atlas[0], atlas[1] = 1, 2
    >>> from_nifti(volumes, atlas, labels={1: "V1", 2: "V2"}).layers
    ('V1', 'V2')
    """
    volumes, inside = _values(image, "the image"), _values(mask, "the mask")
    if volumes.ndim != 4:
        raise InvalidInput(f"The image has shape {volumes.shape}: expected (x, y, z, n_items).")
    if inside.shape != volumes.shape[:3]:
        raise InvalidInput(
            f"The mask has shape {inside.shape} and the image {volumes.shape[:3]}: resample the mask to the "
            "image (nilearn.image.resample_to_img)."
        )
    numbers = [int(k) for k in np.unique(inside[np.isfinite(inside)]) if k != 0]
    if not numbers:
        raise InvalidInput("The mask is 0 everywhere: no voxel is left.")
    if any(not float(k).is_integer() for k in np.unique(inside[np.isfinite(inside)])):
        raise InvalidInput("The mask has values that are not whole: threshold it first (mask > 0.5).")
    named = labels or ({numbers[0]: "mask"} if len(numbers) == 1 else {})
    layers = {named.get(k, str(k)): volumes[inside == k].T for k in numbers}
    name = system or (Path(image).name.split(".")[0] if isinstance(image, (str, os.PathLike)) else "image")
    return Activations.from_arrays(layers, system=name, items=items)


def _values(image: Image, what: str) -> npt.NDArray[np.float64]:
    if isinstance(image, (str, os.PathLike)):
        try:
            import nibabel
        except ImportError as error:
            raise MissingExtra.needed("nibabel", "neuro") from error
        try:
            return np.asarray(cast("SpatialImage", nibabel.load(image)).get_fdata(), dtype=np.float64)
        except Exception as error:  # of nibabel, gzip, zlib, the system
            raise StoreError(f"{what} at {image} cannot be read ({one_line(error)}).") from error
    get = getattr(image, "get_fdata", None)
    return np.asarray(image if get is None else get(), dtype=np.float64)


def from_rsatoolbox(given: Any, *, system: str = "rsatoolbox", item: str | None = None) -> Activations:
    """A Dataset or RDMs of rsatoolbox.

    Several measurements of one item, by the descriptor `item`, are averaged. Each of several RDMs is a layer.
    What it computes as "euclidean", "mahalanobis" and "crossnobis" is squared, and is taken as such.

    Parameters
    ----------
    given : rsatoolbox.data.Dataset or rsatoolbox.rdm.RDMs
    system : its name
    item : name of the descriptor that names the items

    Returns
    -------
    Activations

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from thinkalike.activations import from_rsatoolbox
    >>> dataset = SimpleNamespace(measurements=np.eye(4), obs_descriptors={"face": list("abab")})
    >>> from_rsatoolbox(dataset, item="face").item_names
    ('a', 'b')
    """
    if hasattr(given, "get_matrices"):
        matrices = given.get_matrices()
        names = _described(given.pattern_descriptors, item, matrices.shape[1])
        squared = given.dissimilarity_measure in SQUARED
        return from_distances(dict(enumerate(matrices)), system=system, items=names, squared=squared)
    if not hasattr(given, "measurements"):
        raise InvalidInput(f"Got {type(given).__name__}: give a Dataset or RDMs of rsatoolbox.")
    measured = np.asarray(given.measurements)
    if measured.ndim != 2:
        raise InvalidInput(f"The Dataset has shape {measured.shape}: bin or choose the times first.")
    names = _described(given.obs_descriptors, item, len(measured))
    if names is None or len(set(names)) == len(names):
        return Activations.from_arrays({"measurements": measured}, system=system, items=names)
    kept = list(dict.fromkeys(names))
    means = np.stack([measured[np.array(names) == one].mean(axis=0) for one in kept])
    return Activations.from_arrays({"measurements": means}, system=system, items=kept)


def _described(descriptors: Mapping[str, npt.ArrayLike], item: str | None, n: int) -> list[str] | None:
    if item is None:
        return None
    if item not in descriptors:
        raise InvalidInput(f"There is no descriptor {item!r}; there are {', '.join(map(str, descriptors))}.")
    return [str(one) for one in np.asarray(descriptors[item]).reshape(n)]


def from_epochs(
    epochs: BaseEpochs,
    *,
    system: str = "M/EEG",
    average: bool = True,
    picks: str | Sequence[str | int] = "data",
) -> Activations:
    """MNE epochs: a layer for each point in time, the sensors being its units.

    Kinds of sensors, which are in units of their own, are divided by their root mean square, so that sensors
    of all kinds count alike.

    Parameters
    ----------
    epochs : mne.Epochs, or what has `get_data`, `times`, `events` and `event_id` as they have
    system : its name
    average : whether the epochs of one event are averaged to one item; else every epoch is one
    picks : channels, as MNE takes them. By default the good ones that hold data: no triggers, which would
        tell the items apart by themselves, and no eyes or hearts.

    Returns
    -------
    Activations

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from thinkalike.activations import from_epochs
    >>> data, events = np.random.default_rng(0).normal(size=(4, 5, 2)), np.array([[0, 0, 1], [9, 0, 2]] * 2)
    >>> epochs = SimpleNamespace(
    ...     get_data=lambda: data, times=[0.0, 0.1], events=events, event_id={"face": 1, "house": 2}
    ... )
    >>> from_epochs(epochs)
    Activations(M/EEG: 2 layers × 2 items × 5 units)
    """
    if not all(hasattr(epochs, name) for name in ("get_data", "times", "events", "event_id")):
        raise InvalidInput(f"Got {type(epochs).__name__}: give MNE epochs.")
    if hasattr(epochs, "pick"):
        epochs = epochs.copy().load_data().pick(picks, exclude="bads")
    data, codes = np.asarray(epochs.get_data()), np.asarray(epochs.events)[:, 2]
    if average:
        kinds = [(name, code) for name, code in epochs.event_id.items() if (codes == code).any()]
        data = np.stack([data[codes == code].mean(axis=0) for _, code in kinds])
        names = [name for name, _ in kinds]
    else:
        called = {code: name for name, code in epochs.event_id.items()}
        names = [f"{called[code]} {k}" for k, code in enumerate(codes)]
    data = data / _sizes_of_kinds(data, epochs)[:, None]
    layers = {f"{time:g} s": data[:, :, k] for k, time in enumerate(epochs.times)}
    return Activations.from_arrays(layers, system=system, items=names)


def _sizes_of_kinds(data: npt.NDArray[np.floating], epochs: BaseEpochs) -> npt.NDArray[np.float64]:
    """For each channel of data (n_items, n_channels, n_times) the root mean square of all of its kind."""
    same = ["channel"] * data.shape[1]
    kinds = np.array(epochs.get_channel_types() if hasattr(epochs, "get_channel_types") else same)
    sizes = np.ones(len(kinds))
    for kind in set(kinds):
        sizes[kinds == kind] = np.sqrt((data[:, kinds == kind] ** 2).mean()) or 1.0
    return sizes
