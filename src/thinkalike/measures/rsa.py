"""Representational similarity analysis: Spearman correlation between the pairwise distances of two layers.

Each layer is ranked once. With standardised ranks as rows of an (L, P) matrix all L × L correlations are one
matrix product, made in blocks of pairs; beyond a budget the ranks lie in a temporary file, so that memory
stays bounded. With the features of the items at hand, the same pass says how much of each correlation their
differences explain.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.measures.inputs import as_layer
from thinkalike.pairs.distances import DistanceLike, make_target
from thinkalike.pairs.pairset import MAX_PAIRS, Pairs
from thinkalike.pairs.ranks import Indices, standardised_ranks
from thinkalike.parallel import cores, stream_in_order
from thinkalike.stimuli.differences import FeatureDifferences

MEMORY = 1 << 30
"""Bytes of ranks kept in memory; more go to a temporary file"""

Ranks = npt.NDArray[np.float32]


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


def rsa(X: npt.ArrayLike, Y: npt.ArrayLike, *, distance: DistanceLike = "euclidean") -> float:
    """Spearman correlation of the distances within X (n, d) and within Y (n, e), in [−1, 1].

    Kriegeskorte et al. 2008. With Euclidean distances invariant to translation, rotation and scale.
    """
    return float(rsa_matrix([X, Y], names=("X", "Y"), distance=distance).values[0, 1])


def rsa_matrix(
    layers: Iterable[npt.ArrayLike],
    *,
    names: Sequence[str],
    distance: DistanceLike = "euclidean",
    differences: FeatureDifferences | None = None,
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
) -> RSA:
    """RSA between every two of `layers`, each (n_items, n_units); an iterable may make them one at a time.

    Parameters
    ----------
    names : one per layer, for error messages.
    distance : a name in `thinkalike.pairs.distances.DISTANCES`, or a callable (A, B) → distances
    differences : the features of the items, to learn what they explain.
    max_pairs : more pairs than this are sampled, with `seed`.
    """
    with ranked_layers(layers, names=names, distance=distance, max_pairs=max_pairs, seed=seed) as ranked:
        return ranked.correlate(differences)


@contextmanager
def ranked_layers(
    layers: Iterable[npt.ArrayLike],
    *,
    names: Sequence[str],
    distance: DistanceLike = "euclidean",
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
) -> Iterator[RankedLayers]:
    """The ranks of all layers, to be correlated; the parameters are those of `rsa_matrix`."""
    checked = _same_items(layers, names)
    first = next(checked, None)
    if first is None:
        raise InvalidInput("There are no layers to compare: give at least one.")
    pairs = Pairs.of(len(first), max_pairs=max_pairs, seed=seed)
    with RankedLayers(len(names), pairs) as ranked:
        found = stream_in_order(
            lambda X: standardised_ranks(pairs, make_target(X, distance)),
            itertools.chain([first], checked),
            description="Geometry: distances and ranks",
            threads=cores(),
            total=len(names),
        )
        del first
        for k, ranks in enumerate(found):
            ranked.put(k, ranks)
        yield ranked


def _same_items(layers: Iterable[npt.ArrayLike], names: Sequence[str]) -> Iterator[npt.NDArray[np.floating]]:
    """The layers as arrays, each checked when its turn comes."""
    n_items = None
    for name, layer in zip(names, layers, strict=True):
        X = as_layer(layer, name, minimum=3)
        n_items = len(X) if n_items is None else n_items
        if len(X) != n_items:
            raise InvalidInput(
                f"{names[0]} has {n_items} items and {name} has {len(X)}: "
                "all layers must answer the same items, in the same order."
            )
        yield X


class RankedLayers:
    """The ranks of the distances of some layers, filled in any order, then correlated; a context.

    In memory up to `MEMORY`, else in a temporary file: written by layers, read by blocks of pairs.
    """

    def __init__(self, n_layers: int, pairs: Pairs) -> None:
        self.n_layers, self.pairs = n_layers, pairs
        self._file = None
        if 4 * n_layers * len(pairs) <= MEMORY:
            self._ranks: Ranks = np.empty((n_layers, len(pairs)), dtype=np.float32)
        else:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed in __exit__

    def __enter__(self) -> RankedLayers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def put(self, layer: int, ranks: Ranks) -> None:
        """Keep the ranks of one layer, from `standardised_ranks`."""
        if self._file is None:
            self._ranks[layer] = ranks
            return
        left, place = ranks.data.cast("B"), 4 * layer * len(self.pairs)
        while left:
            written = os.pwrite(self._file.fileno(), left, place)
            left, place = left[written:], place + written

    def block(self, part: slice) -> Ranks:
        """(n_layers, n_part) ranks of a block of pairs."""
        if self._file is None:
            return self._ranks[:, part]
        return np.stack([self._read(layer, part) for layer in range(self.n_layers)])

    def row(self, layer: int) -> Ranks:
        """(n_pairs,) ranks of one layer."""
        return self._ranks[layer] if self._file is None else self._read(layer, slice(0, len(self.pairs)))

    def _read(self, layer: int, part: slice) -> Ranks:
        assert self._file is not None
        size, place = 4 * (part.stop - part.start), 4 * (layer * len(self.pairs) + part.start)
        return np.frombuffer(os.pread(self._file.fileno(), size, place), dtype=np.float32)

    def correlate(self, differences: FeatureDifferences | None = None) -> RSA:
        """RSA between all layers; with the features of the items also what these explain of it."""
        sums = _moments(self, differences)
        n = len(self.pairs)
        explained = None
        if differences is not None:
            explained = sums.cross @ np.linalg.pinv(sums.gram, hermitian=True) @ sums.cross.T / n
        return RSA(sums.products / n, explained, n, self.pairs.is_sample)


def worst_explained(
    X: npt.ArrayLike,
    Y: npt.ArrayLike,
    differences: FeatureDifferences,
    *,
    n_worst: int = 10,
    distance: DistanceLike = "euclidean",
    labels: Indices | None = None,
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
) -> tuple[Indices, Indices, Floats]:
    """The pairs of items with the largest squared residuals, summed over two layers.

    Parameters
    ----------
    labels : (n_items,) of each item, such as its word: of all pairs of the same two labels only the worst is
        named.

    Returns
    -------
    i, j : (n_worst,) items of each pair
    residuals : (2, n_worst) in standard deviations of the ranks, for X and for Y; positive is farther apart
        than the features say
    """
    targets = [make_target(as_layer(M, name, minimum=3), distance) for M, name in ((X, "X"), (Y, "Y"))]
    pairs = Pairs.of(targets[0].n_items, max_pairs=max_pairs, seed=seed)
    with RankedLayers(2, pairs) as ranked:
        for k, target in enumerate(targets):
            ranked.put(k, standardised_ranks(pairs, target))
        sums = _moments(ranked, differences)
        weights = np.linalg.pinv(sums.gram, hermitian=True) @ sums.cross.T  # (F, 2)
        places, found = [], []
        for part in pairs.blocks():
            residuals = ranked.block(part) - ((_columns(differences, pairs, part) - sums.means) @ weights).T
            top = _worst(residuals, _of_labels(labels, pairs, np.arange(part.start, part.stop)), n_worst)
            places.append(part.start + top)
            found.append(residuals[:, top])
    place, residual = np.concatenate(places), np.concatenate(found, axis=1)
    top = _worst(residual, _of_labels(labels, pairs, place), n_worst)
    return pairs.i[place[top]], pairs.j[place[top]], residual[:, top]


def _of_labels(labels: Indices | None, pairs: Pairs, places: Indices) -> Indices | None:
    """One number for each two labels, whichever comes first."""
    if labels is None:
        return None
    a, b = labels[pairs.i[places]], labels[pairs.j[places]]
    return np.minimum(a, b) * (int(labels.max()) + 1) + np.maximum(a, b)


def _worst(residuals: Floats, of_labels: Indices | None, n_worst: int) -> Indices:
    """Places of the largest squared residuals, the first of each two labels."""
    order = np.argsort(-(residuals**2).sum(axis=0), kind="stable")
    if of_labels is not None:
        order = order[np.sort(np.unique(of_labels[order], return_index=True)[1])]
    return order[:n_worst]


@dataclass(frozen=True)
class _Sums:
    """Over all pairs: ranks × ranks, ranks × columns, centred columns × columns; and the columns' means."""

    products: Floats
    cross: Floats
    gram: Floats
    means: Floats


def _moments(ranked: RankedLayers, differences: FeatureDifferences | None) -> _Sums:
    n_features, n = 0 if differences is None else differences.n_features, len(ranked.pairs)
    products, cross = np.zeros((ranked.n_layers, ranked.n_layers)), np.zeros((ranked.n_layers, n_features))
    gram, sums = np.zeros((n_features, n_features)), np.zeros(n_features)
    for part in ranked.pairs.blocks():
        block = ranked.block(part).astype(np.float64)
        products += block @ block.T
        if differences is not None:
            columns = _columns(differences, ranked.pairs, part)
            cross += block @ columns  # the ranks have mean 0: the columns need no centring here
            gram += columns.T @ columns
            sums += columns.sum(axis=0)
    means = sums / n
    return _Sums(products, cross, gram - n * np.outer(means, means), means)


def _columns(differences: FeatureDifferences, pairs: Pairs, part: slice) -> Floats:
    """(n_part, F) feature differences of a block of pairs."""
    i, j = pairs.i[part], pairs.j[part]
    return np.stack([f.squared_differences(i, j) for f in differences.features], axis=1)
