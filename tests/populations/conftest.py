"""Fingerprints of the smallest bundled models, made once."""

from __future__ import annotations

import pytest

import thinkalike as ta
from thinkalike.activations import Activations
from thinkalike.populations import Fingerprint, reference

MODELS = ("nano-pythia-64", "nano-gelu-3l")


@pytest.fixture(scope="session")
def activations() -> dict[str, Activations]:
    """What the models answer to the reference words."""
    return {name: ta.extract(name, reference("words-1")) for name in MODELS}


@pytest.fixture(scope="session")
def fingerprints(activations: dict[str, Activations]) -> dict[str, Fingerprint]:
    return {name: ta.fingerprint(found) for name, found in activations.items()}
