"""The same bytes wherever the work is done: here, in other processes, on Dask, as jobs of submitit."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinkalike as ta
from tests.engines import OPTIONS, Weighed, dask, files, jobs, processes, threads
from thinkalike.dispatch import WORK
from thinkalike.errors import WorkFailed
from thinkalike.parallel import cores
from thinkalike.stimuli.table import Stimuli

pytestmark = pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")


@pytest.mark.filterwarnings("default")  # of the engines
@pytest.mark.parametrize(
    "engine",
    [threads, *(pytest.param(one, marks=pytest.mark.whole_runs) for one in (processes, dask, jobs))],
    ids=lambda engine: engine.__name__,
)
def test_the_same_bytes_on_every_engine(
    engine: Any, two_models: dict[str, str], small_stimuli: Stimuli, run_here: Path, tmp_path: Path
) -> None:
    with engine(tmp_path) as lent, ta.workers(lent):
        ta.compare(two_models, small_stimuli, out=tmp_path / "run", **OPTIONS)
    expected, found = files(run_here), files(tmp_path / "run")
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []


def test_messages_are_small(
    two_models: dict[str, str], small_stimuli: Stimuli, run_here: Path, tmp_path: Path
) -> None:
    """Less than 3 kB to a task. A look at a layer answers with its profile and its map, others with less."""
    with threads(tmp_path) as lent:
        weighed = Weighed(lent)
        with ta.workers(weighed):
            ta.compare(two_models, small_stimuli, out=tmp_path / "run", **OPTIONS)
    assert {name for name, _ in weighed.sent} == {"extract_model", "look_at_layers", "measure_layers"}
    assert max(size for _, size in weighed.sent) < 3_000
    assert len(weighed.answered) == len(weighed.sent)
    store = ta.Activations.open(run_here / "systems" / "tiny-bert" / "activations.zarr")
    most = {"extract_model": 100, "measure_layers": 1_000, "look_at_layers": 16 * store.n_items + 40_000}
    assert [(name, size) for name, size in weighed.answered if size > most[name]] == []


def test_messages_do_not_grow_with_the_items(tmp_path: Path) -> None:
    sizes = []
    for sentences in (20, 40):
        stimuli = Stimuli.from_grammar(sentences, seed=0, grammar="salle2024")
        X = np.random.default_rng(0).normal(size=(len(stimuli), 4))
        with threads(tmp_path) as lent:
            weighed = Weighed(lent)
            with ta.workers(weighed):
                ta.profile({"a layer": X}, stimuli)
        sizes.append([*weighed.sent, *weighed.answered])
    few, more = sizes
    assert [name for name, _ in few] == ["look_at_layers"] * 2
    assert more == few


@pytest.mark.parametrize("number", [1, 2])
def test_the_same_bytes_on_one_thread_and_on_two(
    number: int,
    two_models: dict[str, str],
    small_stimuli: Stimuli,
    run_here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(number)))
    assert cores() == number
    ta.compare(two_models, small_stimuli, out=tmp_path / "run", **OPTIONS)
    assert files(tmp_path / "run") == files(run_here)


def test_a_profile_on_workers_is_the_same(small_stimuli: Stimuli) -> None:
    X = np.random.default_rng(0).normal(size=(2, len(small_stimuli), 6))
    arrays = {"a": X[0], "b": X[1]}
    expected = ta.profile(arrays, small_stimuli, resamples=4)
    with ThreadPoolExecutor(2) as pool, ta.workers(pool):
        found = ta.profile(arrays, small_stimuli, resamples=4)
    np.testing.assert_array_equal(found.importance, expected.importance)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert found.replicates is not None
    assert expected.replicates is not None
    np.testing.assert_array_equal(found.replicates.importance, expected.replicates.importance)


def test_a_model_that_fails_is_told_at_the_end_and_the_others_are_kept(
    two_models: dict[str, str], small_stimuli: Stimuli, run_here: Path, tmp_path: Path
) -> None:
    shutil.copytree(two_models["tiny-bert"], tmp_path / "mine")
    weights = tmp_path / "mine" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:1000])
    asked = {"tiny-bert": str(tmp_path / "mine"), "tiny-gpt2": two_models["tiny-gpt2"]}
    with ThreadPoolExecutor(1) as pool, ta.workers(extract=pool):
        with pytest.raises(WorkFailed, match=r"1 of 2 failed\. tiny-bert: .*cannot be loaded"):
            ta.compare(asked, small_stimuli, out=tmp_path / "run", **OPTIONS)
        assert ta.Activations.open(tmp_path / "run" / "systems" / "tiny-gpt2" / "activations.zarr").layers
        assert not (tmp_path / "run" / WORK).exists()
        weights.write_bytes(whole)
        ta.compare(asked, small_stimuli, out=tmp_path / "run", **OPTIONS)
    for name in ("similarity-features", "similarity-rsa", "similarity-cka"):
        table = Path("tables") / f"{name}.parquet"
        assert (tmp_path / "run" / table).read_bytes() == (run_here / table).read_bytes()


def test_items_that_some_systems_lack(two_models: dict[str, str], small_stimuli: Stimuli) -> None:
    options: dict[str, Any] = {"resamples": 0, "extraction": {"drop_first": 2}}
    expected = ta.compare(two_models, small_stimuli, **options)
    with ThreadPoolExecutor(2) as pool, ta.workers(fit=pool):
        found = ta.compare(two_models, small_stimuli, **options)
    assert len(found.stimuli) < len(small_stimuli)
    np.testing.assert_array_equal(found.matrices["rsa"].values, expected.matrices["rsa"].values)
    np.testing.assert_array_equal(found.matrices["features"].values, expected.matrices["features"].values)


@pytest.mark.parametrize("measure", ["cca", "regression"])
def test_measures_pair_by_pair_are_those_of_a_whole_matrix(
    measure: str, small_stimuli: Stimuli, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    systems = [
        ta.Activations.from_arrays(
            {k: rng.normal(size=(len(small_stimuli), 3 + k)) for k in range(layers)},
            system=f"{layers} layers",
            stimuli=small_stimuli,
        )
        for layers in (1, 3, 2)
    ]
    expected = ta.similarity(systems, measure=measure)
    with processes(tmp_path) as own, ta.workers(own):
        found = ta.similarity(systems, measure=measure)
    np.testing.assert_array_equal(found.values, expected.values)


def test_a_measure_of_ones_own_stays_here(small_stimuli: Stimuli, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(len(small_stimuli), 4))
    with ThreadPoolExecutor(1) as pool, ta.workers(pool):
        assert ta.similarity([X, 2 * X], measure=lambda x, y: float(x.sum() + y.sum())).values.shape == (2, 2)
