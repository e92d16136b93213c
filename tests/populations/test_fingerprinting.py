"""A comparison whose vectors expire leaves fingerprints: the bytes of those that are made alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import thinkalike as ta
from tests.engines import threads
from thinkalike.cli.boundary import run as run_command
from thinkalike.populations import leave_fingerprint

pytestmark = pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")

MODELS = ["nano-pythia-64", "nano-pythia-96"]
LEAVING: dict[str, Any] = {"keep": "profiles", "last_look": leave_fingerprint, "null": 0}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("alone")
    return {name: ta.fingerprint(name).save(folder / name).read_bytes() for name in MODELS}


def left(run: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in (run / "systems").glob("*/fingerprint.npz")}


def test_the_command_leaves_them(alone: dict[str, bytes], tmp_path: Path) -> None:
    run = tmp_path / "run"
    asked = ["compare", *MODELS, "--out", str(run), "--keep", "profiles", "--null", "0", "--no-report"]
    assert run_command(asked) == 0
    assert left(run) == alone
    atlas = ta.Atlas(tmp_path / "atlas")
    atlas.add(ta.Fingerprint.load(run / "systems" / MODELS[0] / "fingerprint.npz"))
    assert atlas.names == MODELS[:1]


@pytest.mark.parametrize("measures", [(), "cka"], ids=["apart", "together"])
def test_workers_leave_them(measures: Any, alone: dict[str, bytes], tmp_path: Path) -> None:
    with threads(tmp_path) as pool, ta.workers(pool):
        ta.compare(MODELS, out=tmp_path / "run", measures=measures, **LEAVING)
    assert left(tmp_path / "run") == alone


@pytest.mark.parametrize("options", [{"resamples": 0}, {"resamples": 2, "distance": "cosine"}], ids=str)
def test_none_with_other_settings(options: dict[str, Any], tmp_path: Path) -> None:
    ta.compare(MODELS, out=tmp_path / "run", **{**LEAVING, **options})
    assert left(tmp_path / "run") == {}


def test_none_of_other_sentences(tmp_path: Path) -> None:
    other = ta.Stimuli.from_grammar(40, seed=1)
    ta.compare(MODELS, other, out=tmp_path / "run", **LEAVING)
    assert left(tmp_path / "run") == {}
