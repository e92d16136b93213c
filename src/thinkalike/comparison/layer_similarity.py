"""`similarity`: one matrix over layers, from profiles by features or from activations by geometry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from thinkalike.activations.conversion import named_systems, open_activations
from thinkalike.activations.store import Activations
from thinkalike.comparison.feature_similarity import by_features
from thinkalike.comparison.geometry_similarity import by_geometry, sentences_of
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.similarity_matrix import FEATURES, SimilarityMatrix
from thinkalike.errors import InvalidInput
from thinkalike.inference.sentences import SentencePlan, plan_sentences
from thinkalike.options import LARGEST_SEED, MOST_PERMUTATIONS, one_name, whole_number
from thinkalike.pairs.preprocessing import prepare_steps

if TYPE_CHECKING:
    from thinkalike.stimuli.table import Stimuli


@one_name
def similarity(
    systems: Sequence[object] | Mapping[str, object],
    *,
    measure: str | Callable[[np.ndarray, np.ndarray], float] = FEATURES,
    distance: str | None = None,
    steps: str | Sequence[str] | None = None,
    stimuli: Stimuli | None = None,
    n_permutations: int | None = None,
    seed: int = 0,
) -> SimilarityMatrix:
    """How alike the layers of all `systems` are: profiles by features, activations by geometry.

    Parameters
    ----------
    systems : profiles for `"features"`; for other measures activations, arrays (n_items, n_units), mappings
        of layers to such arrays, or their files; a mapping gives them names of its own.
    measure : `"features"` (weighted τ of profiles), or for activations any name in `MEASURES`, or a function
        of two arrays (n_items, n_units) whose value is larger for layers that are more alike. A `Measure` of
        one's own can also be a distance.
    distance : for `"rsa"` alone: between items within a layer; euclidean when None.
    steps : for activations: what vectors go through first, as `["zscore", "pca:50"]`; names in
        `thinkalike.pairs.preprocessing.STEPS`. They are fitted on all items: a measure leaves none out.
    stimuli : for activations: what they answer to. Its sentences are left out in turn, for ranges, and change
        places, for what chance gives.
    n_permutations : for `"features"`: relabellings to draw when there are more than 8 features, 10,000 when
        None; up to 8 all are enumerated. For activations: orders of the sentences that a measure is held
        against; when None 200 with `stimuli`, for measures that take them cheaply (RSA and CKA in all their
        forms), else none. Without `stimuli` every item is a sentence of its own.
    seed : of the relabellings, the orders and parts of the sentences, and a sample of pairs.

    Returns
    -------
    SimilarityMatrix

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> X = np.random.default_rng(0).normal(size=(40, 6))
    >>> found = ta.similarity({"one": {0: X, 1: X**3}, "other": {0: 2 * X}}, measure="rsa")
    >>> found.rows
    (('one', 0), ('one', 1), ('other', 0))
    >>> round(found["one", 0, "other", 0], 6)
    1.0
    """
    whole_number("seed", seed, 0, LARGEST_SEED)
    given = [open_activations(system, name) for name, system in named_systems(systems).items()]
    _check_systems([_name(system) for system in given])
    if distance is not None and measure != "rsa":
        raise InvalidInput(
            f"distance={distance!r} is for measure='rsa': {_called(measure)} has no distance to choose."
        )
    if stimuli is not None and measure == FEATURES:
        raise InvalidInput("stimuli= is for activations: profiles know what they were made from.")
    if steps is not None and measure == FEATURES:
        raise InvalidInput("steps= is for activations: profiles were made with theirs (ta.profile).")
    if measure == FEATURES:
        drawn = (
            10_000
            if n_permutations is None
            else whole_number("n_permutations", n_permutations, 1, MOST_PERMUTATIONS)
        )
        return by_features([_expect(s, Profile, FEATURES) for s in given], n_permutations=drawn, seed=seed)
    activations = [_expect(s, Activations, _called(measure)) for s in given]
    plan = _sentence_plan(activations, stimuli, n_permutations, seed)
    prepared = prepare_steps(steps, stimuli)
    return by_geometry(
        activations, measure, distance=distance or "euclidean", seed=seed, plan=plan, steps=prepared
    )


def _sentence_plan(
    activations: Sequence[Activations], stimuli: Stimuli | None, n_permutations: int | None, seed: int
) -> SentencePlan | None:
    if n_permutations is not None:
        whole_number("n_permutations", n_permutations, 0, MOST_PERMUTATIONS)
    if stimuli is None:
        if not n_permutations:
            return None
        return plan_sentences(None, activations[0].n_items, permutations=n_permutations, seed=seed)
    for system in activations:
        system.check_stimuli(stimuli)
    return plan_sentences(sentences_of(stimuli), len(stimuli), permutations=n_permutations, seed=seed)


def _check_systems(names: Sequence[str]) -> None:
    if not names:
        raise InvalidInput("There are no systems: give at least one profile or activations.")
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InvalidInput(f"{twice[0]} comes twice: give each system a name of its own.")


def _called(measure: str | Callable[[np.ndarray, np.ndarray], float]) -> str:
    return measure if isinstance(measure, str) else str(getattr(measure, "__name__", measure))


def _name(system: object) -> str:
    if not isinstance(system, (Profile, Activations)):
        raise InvalidInput(
            f"Got {type(system).__name__} as a system: give profiles (ta.profile), activations (ta.extract) "
            "or arrays. ta.compare also takes models by name."
        )
    return system.system


Kind = TypeVar("Kind")


def _expect(system: object, kind: type[Kind], measure: str) -> Kind:
    if not isinstance(system, kind):
        way_out = (
            "make one with ta.profile(activations, stimuli)"
            if kind is Profile
            else f"give activations, or leave out measure={measure!r}"
        )
        raise InvalidInput(
            f"measure={measure!r} compares {kind.__name__}, not {type(system).__name__}: {way_out}."
        )
    return system
