"""Models added to an atlas on workers: the bytes of those added here, and no vectors left behind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import thinkalike as ta
from tests.engines import Weighed, files
from thinkalike.errors import InvalidInput, ModelError, WorkFailed

MODELS = {"one": "nano-pythia-64", "other": "nano-pythia-96"}


def test_models_are_added_on_workers(tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder and at an address; one that fails is told at the end, and the same call adds the rest."""
    expected = tmp_path / "here"
    made = ta.Atlas(expected).add_models(MODELS, facts={"family": "pythia"})
    assert [one.name for one in made] == list(MODELS)
    monkeypatch.setenv("THINKALIKE_CACHE", str(tmp_path / "cache"))
    with ThreadPoolExecutor(1) as pool:
        weighed = Weighed(pool)
        with ta.workers(weighed):
            with pytest.raises(WorkFailed, match=r"1 of 2 failed\. third: .*no-such-model"):
                ta.Atlas(bucket).add_models({"one": MODELS["one"], "third": "./no-such-model"})
            found = ta.Atlas(bucket).add_models(MODELS, facts={"family": "pythia"})
    assert [one.name for one in found] == list(MODELS)
    for name in ("one", "other"):
        assert files(bucket)[f"words-1/{name}.npz"] == files(expected)[f"words-1/{name}.npz"]
    assert max(size for _, size in weighed.sent) < 3_000
    assert max(size for _, size in weighed.answered) < 1_000
    assert not list((tmp_path / "cache").rglob("*.zarr"))


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="The bundled fingerprints stay as they are"):
        ta.Atlas().add_models(["nano-gpt2"])
    with pytest.raises(ModelError, match="no-such-model"):
        ta.Atlas(tmp_path).add_models(["./no-such-model"])
    with pytest.raises(WorkFailed, match="2 of 2 failed"):
        ta.Atlas(tmp_path).add_models(["./no-such-model", "./nor-this"])
