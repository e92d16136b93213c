"""Profiles made by hand, and a planted world."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from thinkalike.activations import Activations
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.comparing import compare
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.profiles import Collinearity, LayerDiagnostics, Profile
from thinkalike.comparison.replicates import Replicates
from thinkalike.stimuli import Stimuli

FEATURES = ("word_length", "gender", "number", "part_of_speech", "tense", "person", "position", "question")


def _profile(
    system: str,
    importance: Sequence[float] | np.ndarray,
    *,
    n_layers: int = 3,
    n_folds: int = 4,
    noise: float = 0.01,
    seed: int = 0,
    features: Sequence[str] = FEATURES,
    score: float = 0.6,
    **fields: object,
) -> Profile:
    """A profile whose every layer has the given importances (F,) or (n_layers, F), with noise over folds."""
    rng = np.random.default_rng(seed)
    mean = np.broadcast_to(np.asarray(importance, dtype=float), (n_layers, len(features)))
    folds = mean[:, None, :] + noise * rng.normal(size=(n_layers, n_folds, len(features)))
    given: dict[str, object] = {
        "strengths": folds,
        "settings": {"preset": "default"},
        "stimuli_digest": "d" * 64,
        "collinearity": Collinearity(tuple(features), np.eye(len(features)), np.ones(len(features))),
        "diagnostics": LayerDiagnostics(np.full(n_layers, 0.9), np.zeros(n_layers), np.full(n_layers, 0.02)),
    }
    return Profile(
        system=system,
        layers=tuple(range(n_layers)),
        features=tuple(features),
        importance=folds,
        scores=np.full((n_layers, n_folds), score),
        **(given | fields),  # type: ignore[arg-type]
    )


def replicates(
    profile: Profile, *, noise: float = 0.01, n_resamples: int = 20, parts: int = 10, seed: int = 0
) -> Replicates:
    """Replicates as they would be if importances had a standard error of `noise`, and ρ too."""
    rng = np.random.default_rng(seed)
    mean, n_layers = profile.mean_importance, len(profile.layers)
    step = noise / np.sqrt(parts - 1)
    return Replicates(
        scores=profile.mean_scores + step * rng.normal(size=(n_resamples, n_layers)),
        importance=mean + step * rng.normal(size=(n_resamples, *mean.shape)),
        halves=mean + np.sqrt(2) * noise * rng.normal(size=(10, 2, *mean.shape)),
        parts=parts,
    )


@pytest.fixture
def make_profile() -> Callable[..., Profile]:
    return _profile


def _plant(
    stimuli: Stimuli,
    system: str,
    weights: Mapping[str, float],
    *,
    n_layers: int = 3,
    n_units: int = 24,
    noise: float = 1.0,
    seed: int = 0,
) -> Activations:
    """A system that is organised by the given features: each level a random direction of the given length."""
    rng = np.random.default_rng(seed)
    layers = {}
    for layer in range(n_layers):
        X = noise * rng.normal(size=(len(stimuli), n_units))
        for feature, weight in weights.items():
            levels = pd.factorize(stimuli.features[feature])[0]  # −1 where the value is missing
            directions = weight * rng.normal(size=(levels.max() + 1, n_units))
            X += np.where(levels[:, None] >= 0, directions[levels], 0.0)
        layers[layer] = X
    return Activations.from_arrays(layers, system=system, stimuli=stimuli)


@pytest.fixture(scope="session")
def plant() -> Callable[..., Activations]:
    return _plant


@pytest.fixture(scope="session")
def sentences() -> Stimuli:
    """Three words in each of 80 sentences, with features that are independent of each other."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"sentence": np.repeat(np.arange(80), 3), "word_position": np.tile(np.arange(3), 80)})
    for name, levels in {
        "part_of_speech": ["noun", "verb", "determiner", "pronoun", "auxiliary"],
        "number": ["singular", "plural"],
        "tense": ["past", "present", None],
        "word_length": ["short", "medium", "long", "longest"],
    }.items():
        rows[name] = rng.choice(np.array(levels, dtype=object), len(rows))
    rows["question"] = rng.choice(["yes", "no"], 80)[rows["sentence"]]
    rows["word"] = [f"word{k}" for k in range(len(rows))]
    rows["text"] = rows.groupby("sentence")["word"].transform(" ".join)
    return Stimuli.from_table(rows.astype({"sentence": str, "word_position": str}))


@pytest.fixture(scope="session")
def world(sentences: Stimuli) -> dict[str, Activations]:
    """Two systems that care most about part of speech and number, and a third about position and length."""
    grammar = {"part_of_speech": 2.5, "number": 1.5, "tense": 0.8, "question": 0.5}
    surface = {"word_position": 2.0, "word_length": 1.5, "question": 0.8}
    return {
        "ada": _plant(sentences, "ada", grammar, seed=1),
        "bob": _plant(sentences, "bob", grammar, n_layers=4, seed=2),
        "cleo": _plant(sentences, "cleo", surface, seed=3),
    }


@pytest.fixture(scope="session")
def comparison(sentences: Stimuli, world: dict[str, Activations]) -> Comparison:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)
        return compare(list(world.values()), sentences, measures=["cka"], resamples=20)
