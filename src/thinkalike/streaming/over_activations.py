"""Streaming CKA over activations that are already there: word by word or sentence by sentence."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Sequence
from itertools import pairwise
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.activations.rows import check_same_items
from thinkalike.errors import InvalidInput
from thinkalike.progress import progress
from thinkalike.streaming.batches import LayerRows
from thinkalike.streaming.cka_matrix import CKAMatrix, Row
from thinkalike.streaming.stream import make_matrix, run_stream
from thinkalike.streaming.sums import Average, StreamingCKA

if TYPE_CHECKING:
    from thinkalike.activations.store import Activations

MEMORY = 1 << 30  # bytes of activations kept in memory; more go to a temporary file
Ints = npt.NDArray[np.int64]


def activations_cka(
    systems: Sequence[Activations],
    *,
    groups: Sequence[object] | npt.NDArray[np.generic] | None = None,
    batch_size: int = 1024,
    average: Average = "hsic",
    precision: float | None = None,
    max_batches: int | None = None,
    seed: int = 0,
) -> CKAMatrix:
    """CKA between all layers of all `systems`, in batches of items, with standard errors over batches.

    For more items than one Gram matrix can hold; `ta.similarity(measure="cka")` takes all items at once.

    Parameters
    ----------
    systems
        Activations over the same items.
    groups
        Of each item, such as `stimuli.items["sentence"]`: groups are never cut, so that batches are
        independent.
    batch_size
        Items of a batch, about; the batches are of nearly equal size.
    average
        "hsic": the ratio of summed HSICs. "ratio": the mean of each batch's CKA.
    precision, max_batches
        Stop when the largest standard error is at most this, or after so many batches.
    seed
        Of the order of the items.

    Returns
    -------
    CKAMatrix

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> from thinkalike.streaming import activations_cka
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> one, other = (ta.Activations.from_arrays({0: x}, system=n) for n, x in (("a", X), ("b", 3 * X)))
    >>> activations_cka([one, other], batch_size=50).values.round(6)
    array([[1., 1.],
           [1., 1.]])
    """
    _check_systems(systems)
    rows: list[Row] = [(acts.system, layer) for acts in systems for layer in acts.layers]
    batches = whole_groups(systems[0].n_items, groups, batch_size, seed=seed)
    stream = StreamingCKA([f"{system}:{layer}" for system, layer in rows], average=average)
    with tempfile.TemporaryFile() as spill:
        layers = _gathered(systems, spill)
        trace, stopped = run_stream(
            _batches(layers, batches), rows, stream, precision=precision, max_batches=max_batches
        )
    settings = {
        "over": "activations",
        "stimuli_digest": systems[0].stimuli_digest,
        "batch_size": batch_size,
        "grouped": groups is not None,
        "average": average,
        "precision": precision,
        "max_batches": max_batches,
        "seed": seed,
    }
    return make_matrix(stream, rows, trace, stopped, unit="batches", settings=settings)


def whole_groups(
    n_items: int, groups: Sequence[object] | npt.NDArray[np.generic] | None, batch_size: int, *, seed: int = 0
) -> list[Ints]:
    """Items in batches of nearly equal size, in seeded order, no group in two of them."""
    if batch_size < 4:
        raise InvalidInput(f"batch_size is {batch_size}: unbiased CKA needs at least 4 items in a batch.")
    names = np.arange(n_items) if groups is None else np.asarray(groups)
    if len(names) != n_items:
        raise InvalidInput(f"There are {n_items} items and {len(names)} group labels: give one per item.")
    _, codes, counts = np.unique(names, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(counts))
    n_batches = max(1, n_items // batch_size)
    ends = np.cumsum(counts[order])
    # A group goes to the batch in which its middle falls.
    batch_of_group = np.empty(len(counts), dtype=np.int64)
    batch_of_group[order] = ((ends - counts[order] / 2) * n_batches / n_items).astype(np.int64)
    batches = [np.flatnonzero(batch_of_group[codes] == k) for k in range(n_batches)]
    return [rows for rows in batches if len(rows) >= 4]


def _gathered(systems: Sequence[Activations], spill: IO[bytes]) -> list[npt.NDArray[np.float32]]:
    """Every layer, read once: in memory, or beyond a budget in a temporary file."""
    widths = [width for acts in systems for width in acts.n_units]
    n_items = systems[0].n_items
    if 4 * n_items * sum(widths) <= MEMORY:
        return [acts[layer] for acts in systems for layer in acts.layers]
    gathered = np.memmap(spill, dtype=np.float32, mode="w+", shape=(n_items * sum(widths),))
    starts = np.cumsum([0, *widths]) * n_items
    layers = [gathered[a:b].reshape(n_items, -1) for a, b in pairwise(starts)]
    k = 0
    for acts in systems:
        for layer in acts.layers:
            layers[k][:] = acts[layer]
            k += 1
    return layers


def _batches(
    layers: Sequence[npt.NDArray[np.float32]], batches: Sequence[Ints]
) -> Generator[LayerRows[np.ndarray], None, None]:
    with progress("CKA", len(batches)) as step:
        for k, rows in enumerate(batches):
            yield LayerRows([np.asarray(X[rows]) for X in layers], k)
            step.advance()


def _check_systems(systems: Sequence[Activations]) -> None:
    if not systems:
        raise InvalidInput("There are no systems to compare: give at least one.")
    names = [acts.system for acts in systems]
    if len(set(names)) < len(names):
        raise InvalidInput(f"Two systems have the same name among {', '.join(names)}: rename one.")
    check_same_items(systems)
