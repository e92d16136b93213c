"""Profiles made by hand for the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from thinkalike.comparison.profiles import Collinearity, LayerDiagnostics, Profile

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


@pytest.fixture
def make_profile() -> Callable[..., Profile]:
    return _profile
