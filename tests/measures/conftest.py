"""Layers for the tests of measures: related, of different widths, anisotropic, away from the origin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Layers = tuple[np.ndarray, np.ndarray]


def _related_layers(
    seed: int = 0, *, n: int = 60, widths: tuple[int, int] = (8, 6), noise: float = 0.5
) -> Layers:
    """X and a noisy linear image of it, with unequal variances and means that are not 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, widths[0])) * np.geomspace(3, 0.3, widths[0])
    Y = X @ rng.normal(size=widths) + noise * rng.normal(size=(n, widths[1]))
    Y *= np.geomspace(2, 0.1, widths[1])
    return X + rng.normal(size=widths[0]), Y + rng.normal(size=widths[1])


@pytest.fixture(scope="session")
def related_layers() -> Callable[..., Layers]:
    return _related_layers
