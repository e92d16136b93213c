"""`Fingerprint`: what is needed to compare a model with any other later, without its activations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.addresses import place
from thinkalike.comparison.feature_similarity import by_features
from thinkalike.comparison.geometry_similarity import layer_measure, sentences_of, with_tests
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.similarity_matrix import FEATURES, SimilarityMatrix
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.inference.ranges import leave_parts_out
from thinkalike.labels import Floats, Layer
from thinkalike.populations.reference_sets import reference
from thinkalike.populations.sketch import Sketch, sketch_pairs, sketched_cka, sketched_rsa
from thinkalike.types import Chart, Facts

if TYPE_CHECKING:
    import pandas as pd

SKETCHED = ("rsa", "cka")
"""Measures that sketches give"""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Fingerprint:
    """The profile of one system on reference stimuli, and a sketch of its geometry.

    Two fingerprints of the same reference give τ_w exactly, and RSA and CKA within 0.02 of their values in
    95 % of the pairs of layers. Made by `thinkalike.fingerprint`.

    Attributes
    ----------
    reference : which reference stimuli the system was shown
    profile : importances by fold, strengths, resamples and what is reliable of them
    sketch : distances and Gram entries of each layer at a fixed set of pairs
    facts : architecture, depth, width and so on, as far as they are known

    Examples
    --------
    >>> import thinkalike as ta
    >>> one, other = ta.Atlas().fingerprints(["nano-gpt2", "nano-mamba"])
    >>> found = one.similarity(other, measure="rsa")
    >>> -1 <= found["nano-gpt2", 3, "nano-mamba", 3] <= 1
    True
    """

    reference: str
    profile: Profile
    sketch: Sketch
    facts: Facts = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Fingerprint({self.name}: {len(self.layers)} layers on {self.reference})"

    @property
    def name(self) -> str:
        """Of the system."""
        return self.profile.system

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Labels, in the order of the arrays."""
        return self.profile.layers

    @property
    def reliability(self) -> Floats:
        """(n_layers,) τ_w to be expected with the profile of as many other sentences."""
        return self.profile.reliability

    def similarity(self, *others: Fingerprint, measure: str = FEATURES) -> SimilarityMatrix:
        """How alike the layers of this system and of others are; see `similarity_of`."""
        return similarity_of([self, *others], measure=measure)

    def layer_pairs(self, other: Fingerprint) -> pd.DataFrame:
        """Each layer against each of another system, by every measure at once; see `layer_pairs`."""
        from thinkalike.populations.between_models import layer_pairs

        return layer_pairs(self, other)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write an .npz file of numbers, and of words about them."""
        from thinkalike.populations.fingerprint_files import save_fingerprint

        return save_fingerprint(self, place(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Fingerprint:
        """What `save` wrote, here or elsewhere: nothing in the file is run, and all of it is checked."""
        from thinkalike.populations.fingerprint_files import load_fingerprint

        return load_fingerprint(place(path))

    def to_frame(self) -> pd.DataFrame:
        """The profile: one row per layer and feature."""
        return self.profile.to_frame()

    def plot(self, *, theme: str | None = "light") -> Chart:
        """The profile: importances over layers."""
        return self.profile.plot(theme=theme)


def similarity_of(fingerprints: Sequence[Fingerprint], *, measure: str = FEATURES) -> SimilarityMatrix:
    """How alike the layers of systems are, from their fingerprints alone.

    Parameters
    ----------
    measure : {"features", "rsa", "cka"}
        "features" is τ_w with its tests, as `thinkalike.similarity` gives it from the profiles. "rsa" and
        "cka" are estimates from the sketches. Their ranges are over other sentences: parts of these are left
        out with all their pairs, and so the ranges also hold what a sample of the pairs does not know.
    """
    check_same_reference(fingerprints)
    if measure == FEATURES:
        return by_features([one.profile for one in fingerprints])
    if measure not in SKETCHED:
        raise UnknownName.among("measure of fingerprints", measure, (FEATURES, *SKETCHED))
    name = fingerprints[0].reference
    rows = tuple(row for one in fingerprints for row in one.profile.rows)
    if measure == "rsa":
        ranks = np.concatenate([one.sketch.ranks for one in fingerprints])
        values = sketched_rsa(ranks)
        without = [sketched_rsa(ranks[:, kept]) for kept, _ in kept_pairs(name)]
    else:
        gram, weights = np.concatenate([one.sketch.gram for one in fingerprints]), sketch_pairs(name).weights
        values = sketched_cka(gram, weights)
        without = [sketched_cka(gram[:, kept], weights[kept]) for _, kept in kept_pairs(name)]
    matrix = SimilarityMatrix(measure, rows, values, settings={"sampled": True, "reference": name})
    return with_tests(matrix, layer_measure(measure), np.stack(without), None)


def check_same_reference(fingerprints: Sequence[Fingerprint]) -> None:
    """Refuse fingerprints of other stimuli, and two of one name."""
    if not fingerprints:
        raise InvalidInput("There are no fingerprints: give at least one.")
    first, seen = fingerprints[0], set[str]()
    for one in fingerprints:
        if one.reference != first.reference:
            raise InvalidInput(
                f"{first.name} was shown {first.reference} and {one.name} {one.reference}: other stimuli, "
                "other numbers. Make both fingerprints from the same reference."
            )
        if one.name in seen:
            raise InvalidInput(f"{one.name} comes twice: give each fingerprint a name of its own.")
        seen.add(one.name)


@lru_cache(maxsize=4)
def kept_pairs(name: str) -> tuple[tuple[Mask, Mask], ...]:
    """For each part of the reference's sentences: which ranked pairs and which products stay without it."""
    stimuli, pairs = reference(name), sketch_pairs(name)
    kept = []
    for items in leave_parts_out(sentences_of(stimuli), len(stimuli)):
        stays = np.zeros(len(stimuli), dtype=bool)
        stays[items] = True
        ranked, products = (stays[some.i] & stays[some.j] for some in (pairs.ranked, pairs.products))
        kept.append((ranked, products))
    return tuple(kept)
