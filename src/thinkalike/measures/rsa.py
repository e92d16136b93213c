"""Representational similarity analysis: Spearman correlation between the pairwise distances of two layers.

Each layer is ranked once. With standardised ranks as rows of an (L, P) matrix all L × L correlations are one
matrix product, made in blocks of pairs; beyond a budget the ranks lie in a temporary file, so that memory
stays bounded. With the features of the items at hand, the same pass says how much of each correlation their
differences explain.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.measures.distances import (
    MAX_PAIRS,
    Floats,
    Indices,
    Pairs,
    Ranks,
    standardised_ranks,
    transformed,
)
from thinkalike.measures.inputs import as_layer
from thinkalike.progress import progress
from thinkalike.stimuli.differences import FeatureDifferences

_MEMORY = 1 << 30  # bytes of ranks kept in memory; more go to a temporary file


@dataclass(frozen=True, eq=False, repr=False)
class RSA:
    """RSA between all layers, and how much of it given features explain.

    Regress the standardised ranks of both layers on the same columns, with predictions p and residuals r. The
    cross terms vanish: RSA = (p_a · p_b + r_a · r_b) / P. The first part is what the columns explain.
    """

    values: Floats = field()
    """(n_layers, n_layers) Spearman ρ, in [−1, 1]; NaN for a layer whose distances are all equal"""
    explained: Floats | None = field()
    """(n_layers, n_layers) p_a · p_b / P; None without features"""
    n_pairs: int
    sampled: bool
    """Whether `n_pairs` is a sample of the pairs"""


def rsa(X: Any, Y: Any, *, distance: str = "euclidean") -> float:
    """Spearman correlation of the distances within X (n, d) and within Y (n, e), in [−1, 1].

    Kriegeskorte et al. 2008. With Euclidean distances invariant to translation, rotation and scale.
    """
    return float(rsa_matrix([X, Y], names=("X", "Y"), distance=distance).values[0, 1])


def rsa_matrix(
    layers: Iterable[Any],
    *,
    names: Sequence[str],
    distance: str = "euclidean",
    differences: FeatureDifferences | None = None,
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
) -> RSA:
    """RSA between every two of `layers`, each (n_items, n_units); an iterable may make them one at a time.

    Parameters
    ----------
    names : one per layer, for error messages.
    distance : {"euclidean", "cosine", "correlation"}
    differences : the features of the items, to learn what they explain.
    max_pairs : more pairs than this are sampled, with `seed`.
    """
    with progress("Geometry: distances and ranks", len(names)) as step, tempfile.TemporaryFile() as spill:
        pairs: Pairs | None = None
        for name, layer in zip(names, layers, strict=True):
            X = as_layer(layer, name, minimum=3)
            if pairs is None:
                pairs = Pairs.of(len(X), max_pairs=max_pairs, seed=seed)
                ranks, k = _room(len(names), pairs.n, spill), 0
            elif len(X) != pairs.n_items:
                raise InvalidInput(
                    f"{names[0]} has {pairs.n_items} items and {name} has {len(X)}: "
                    "all layers must answer the same items, in the same order."
                )
            ranks[k] = standardised_ranks(pairs.squared_distances(transformed(X, distance)))
            k += 1
            step.advance()
        if pairs is None:
            raise InvalidInput("There are no layers to compare: give at least one.")
        return _correlate(ranks, pairs, differences)


def worst_explained(
    X: Any,
    Y: Any,
    differences: FeatureDifferences,
    *,
    n_worst: int = 10,
    distance: str = "euclidean",
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
) -> tuple[Indices, Indices, Floats]:
    """The pairs of items with the largest squared residuals, summed over two layers.

    Returns
    -------
    i, j : (n_worst,) items of each pair
    residuals : (2, n_worst) in standard deviations of the ranks, for X and for Y; positive is farther apart
        than the features say
    """
    layers = [transformed(as_layer(M, name, minimum=3), distance) for M, name in ((X, "X"), (Y, "Y"))]
    pairs = Pairs.of(len(layers[0]), max_pairs=max_pairs, seed=seed)
    ranks = np.stack([standardised_ranks(pairs.squared_distances(layer)) for layer in layers])
    _, cross, gram, means = _moments(ranks, pairs, differences)
    weights = np.linalg.pinv(gram, hermitian=True) @ cross.T  # (F, 2)
    places, found = [], []
    for part in pairs.blocks():
        residuals = ranks[:, part] - ((_columns(differences, pairs, part) - means) @ weights).T
        top = np.argsort(-(residuals**2).sum(axis=0), kind="stable")[:n_worst]
        places.append(part.start + top)
        found.append(residuals[:, top])
    place, residual = np.concatenate(places), np.concatenate(found, axis=1)
    top = np.argsort(-(residual**2).sum(axis=0), kind="stable")[:n_worst]
    return *pairs.items(place[top]), residual[:, top]


@dataclass(frozen=True)
class _Spilled:
    """(n_layers, n_pairs) ranks in a file: written by layers, read by blocks of pairs."""

    file: IO[bytes]
    n_layers: int
    n_pairs: int

    def __len__(self) -> int:
        return self.n_layers

    def __setitem__(self, layer: int, ranks: Ranks) -> None:
        self.file.seek(4 * layer * self.n_pairs)
        self.file.write(ranks.data)

    def __getitem__(self, place: tuple[slice, slice]) -> Ranks:
        """Of all layers, whatever the first slice is."""
        part = place[1]
        return np.stack([self._read(layer, part) for layer in range(self.n_layers)])

    def _read(self, layer: int, part: slice) -> Ranks:
        self.file.seek(4 * (layer * self.n_pairs + part.start))
        return np.frombuffer(self.file.read(4 * (part.stop - part.start)), dtype=np.float32)


def _room(n_layers: int, n_pairs: int, spill: IO[bytes]) -> Ranks | _Spilled:
    """Space for the ranks: memory, or a file beyond the budget."""
    if 4 * n_layers * n_pairs <= _MEMORY:
        return np.empty((n_layers, n_pairs), dtype=np.float32)
    return _Spilled(spill, n_layers, n_pairs)


def _correlate(ranks: Ranks | _Spilled, pairs: Pairs, differences: FeatureDifferences | None) -> RSA:
    products, cross, gram, _ = _moments(ranks, pairs, differences)
    explained = None
    if differences is not None:
        explained = cross @ np.linalg.pinv(gram, hermitian=True) @ cross.T / pairs.n
    return RSA(products / pairs.n, explained, pairs.n, pairs.sample is not None)


def _moments(
    ranks: Ranks | _Spilled, pairs: Pairs, differences: FeatureDifferences | None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums over pairs: ranks × ranks, ranks × columns, centred columns × columns; and the columns' means."""
    n_features = 0 if differences is None else differences.n_features
    products, cross = np.zeros((len(ranks), len(ranks))), np.zeros((len(ranks), n_features))
    gram, sums = np.zeros((n_features, n_features)), np.zeros(n_features)
    for part in pairs.blocks():
        block = ranks[:, part].astype(np.float64)
        products += block @ block.T
        if differences is not None:
            columns = _columns(differences, pairs, part)
            cross += block @ columns  # the ranks have mean 0: the columns need no centring here
            gram += columns.T @ columns
            sums += columns.sum(axis=0)
    means = sums / pairs.n
    return products, cross, gram - pairs.n * np.outer(means, means), means


def _columns(differences: FeatureDifferences, pairs: Pairs, part: slice) -> Floats:
    """(n_part, F) feature differences of a block of pairs."""
    i, j = pairs.items(np.arange(part.start, part.stop))
    return np.stack([f.squared_differences(i, j) for f in differences.features], axis=1)
