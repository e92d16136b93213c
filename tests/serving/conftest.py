"""A small run on disk, and the page that explores it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import thinkalike as ta
from thinkalike.serving.server import serving


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems that know one feature and a third that knows another; later layers have more noise."""
    stimuli = ta.Stimuli.from_grammar(30, seed=0)
    rng = np.random.default_rng(0)
    codes = {
        name: column.cat.codes.to_numpy(dtype=float)[:, None]
        for name, column in stimuli.features.select_dtypes("category").items()
    }
    first, second = list(codes)[:2]
    weights = {"alpha": (3, 1), "beta": (3, 0), "gamma": (0, 3)}
    systems = {
        name: {
            layer: a * codes[first] + b * codes[second] + rng.normal(scale=1 + layer, size=(len(stimuli), 6))
            for layer in range(3)
        }
        for name, (a, b) in weights.items()
    }
    out = tmp_path_factory.mktemp("runs") / "small"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ta.compare(systems, stimuli, resamples=0, null=0, out=out)
    return out


@pytest.fixture(scope="session")
def page(run: Path) -> Iterator[str]:
    with serving(run) as address:
        yield address
