"""Systems that lack some of the items, as when the first tokens are dropped: what all of them have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from thinkalike.activations.store import Activations
from thinkalike.labels import Layer
from thinkalike.stimuli.table import Stimuli


def shared_items(stimuli: Stimuli, found: Sequence[Activations]) -> npt.NDArray[np.bool_] | None:
    """Which items every system has, where one lacks some (dropped first tokens); None if all have all."""
    if all(one.n_items == len(stimuli) for one in found):
        return None
    return np.logical_and.reduce([stimuli.items.index.isin(one.item_names) for one in found])


def subset_activations(
    one: Activations, stimuli: Stimuli, layers: Sequence[Layer] | None = None
) -> Activations:
    """The rows of `stimuli`, which are some of the items that the activations have, in memory.

    Parameters
    ----------
    layers : only these.
    """
    place = {item: k for k, item in enumerate(one.item_names)}
    rows = np.array([place[item] for item in stimuli.items.index])
    arrays = {layer: one[layer][rows] for layer in (one.layers if layers is None else layers)}
    return Activations.from_arrays(arrays, system=one.system, stimuli=stimuli, metadata=one.metadata)
