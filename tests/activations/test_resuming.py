"""Killed, interrupted, run twice at once: always the same bytes, and never twice the work."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import thinkalike as ta
from tests.waiting import PAUSE, until
from thinkalike.activations import extraction_run as running
from thinkalike.activations.extraction_run import cache_path
from thinkalike.errors import StoreError
from thinkalike.machine import cache_directory
from thinkalike.systems.fingerprints import fingerprint_folder

STOPS = f"""
{PAUSE}
import sys
import torch
import thinkalike as ta
from thinkalike.activations import extraction_run
torch.set_num_threads(1)
answers, n_done = extraction_run.answers, 0
def stop(*args, **options):
    global n_done
    if n_done == 3:
        open(f"waits-{{os.getpid()}}", "w").close()
        pause_until("go on")
    n_done += 1
    return answers(*args, **options)
extraction_run.answers = stop
ta.extract(sys.argv[1], ta.Stimuli.from_table(sys.argv[2]), batch_size=2)
"""
"""An extraction that stands still after three chunks until a file `go on` is there"""


@pytest.fixture(autouse=True)
def one_thread():
    """The same sums in every process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def stimuli(mixed_texts, words_of):
    return words_of(mixed_texts)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".partial"
    }


def uninterrupted(folder, stimuli, tmp_path, monkeypatch):
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("THINKALIKE_CACHE", str(tmp_path / "whole"))
        found = ta.extract(folder, stimuli, batch_size=2)
    return found, files(tmp_path / "whole")


def start(gpt2_folder, stimuli, tmp_path, own_cache):
    table = stimuli.save(tmp_path / "stimuli.csv")
    environment = {**os.environ, "THINKALIKE_CACHE": str(own_cache), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", STOPS, str(gpt2_folder), str(table)]
    return subprocess.Popen(command, env=environment, cwd=tmp_path)


def until_one_waits(tmp_path, *processes):
    """Which of the processes came to its fourth chunk first."""
    until(lambda: list(tmp_path.glob("waits-*")), *processes)
    return next(one for one in processes if (tmp_path / f"waits-{one.pid}").exists())


@pytest.fixture
def counted(monkeypatch):
    chunks = []
    answers = running.answers

    def count(stack, source, chunk, **options):
        chunks.append(chunk)
        return answers(stack, source, chunk, **options)

    monkeypatch.setattr(running, "answers", count)
    return chunks


def test_killed_in_the_middle_then_resumed(gpt2_folder, stimuli, tmp_path, own_cache, monkeypatch, counted):
    expected, bytes_of_whole = uninterrupted(gpt2_folder, stimuli, tmp_path, monkeypatch)
    n_chunks = len(counted)
    counted.clear()
    process = start(gpt2_folder, stimuli, tmp_path, own_cache)
    until_one_waits(tmp_path, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with pytest.raises(StoreError, match=rf"not complete \(3 of {n_chunks} chunks are there\)"):
        ta.Activations.open(next(own_cache.glob("activations/*")))

    found = ta.extract(gpt2_folder, stimuli, batch_size=2)
    assert len(counted) == n_chunks - 3
    assert files(own_cache) == bytes_of_whole
    for layer in expected:
        np.testing.assert_array_equal(found[layer], expected[layer])


def test_two_writers_at_once_one_of_them_killed(gpt2_folder, stimuli, tmp_path, own_cache, monkeypatch):
    _, bytes_of_whole = uninterrupted(gpt2_folder, stimuli, tmp_path, monkeypatch)
    processes = [start(gpt2_folder, stimuli, tmp_path, own_cache) for _ in range(2)]
    until_one_waits(tmp_path, *processes).send_signal(signal.SIGKILL)
    (tmp_path / "go on").touch()
    assert sorted(process.wait() for process in processes) == [-signal.SIGKILL, 0]
    assert files(own_cache) == bytes_of_whole


def test_interrupted_between_chunks_and_inside_a_chunk(
    gpt2_folder, stimuli, tmp_path, own_cache, monkeypatch
):
    _, bytes_of_whole = uninterrupted(gpt2_folder, stimuli, tmp_path, monkeypatch)
    answers = running.answers
    for stop_at in (0, 2, 5):

        def interrupt(stack, source, chunk, stop_at=stop_at, **options):
            if chunk == stop_at:
                raise KeyboardInterrupt
            return answers(stack, source, chunk, **options)

        with monkeypatch.context() as stopping:
            stopping.setattr(running, "answers", interrupt)
            with pytest.raises(KeyboardInterrupt):
                ta.extract(gpt2_folder, stimuli, batch_size=2)
    ta.extract(gpt2_folder, stimuli, batch_size=2)
    assert files(own_cache) == bytes_of_whole


def test_chunks_that_another_process_finished_are_not_computed(
    gpt2_folder, stimuli, tmp_path, own_cache, monkeypatch, counted
):
    uninterrupted(gpt2_folder, stimuli, tmp_path, monkeypatch)
    n_chunks = len(counted)
    counted.clear()
    answers = running.answers

    def meanwhile(stack, source, chunk, **options):
        rows = answers(stack, source, chunk, **options)
        if chunk == 1:  # another process has done everything while we were at the second chunk
            whole = next((tmp_path / "whole/activations").iterdir())
            shutil.copytree(whole, own_cache / "activations" / whole.name, dirs_exist_ok=True)
        return rows

    monkeypatch.setattr(running, "answers", meanwhile)
    ta.extract(gpt2_folder, stimuli, batch_size=2)
    assert counted == [0, 1]
    assert n_chunks > 5


def test_the_second_call_loads_no_model(gpt2_folder, stimuli, monkeypatch):
    first = ta.extract(gpt2_folder, stimuli)

    def never(*args, **options):
        raise AssertionError("loaded again")

    monkeypatch.setattr("thinkalike.systems.system.load_model", never)
    second = ta.extract(str(gpt2_folder), stimuli, system="mine")
    assert second.system == "mine"
    np.testing.assert_array_equal(first[2], second[2])


def test_new_features_need_no_new_extraction(gpt2_folder, words_of, monkeypatch):
    texts = ["The old woman sings.", "Mary fell."]
    plain, annotated = words_of(texts), words_of(texts, number=list("abcabc"))
    ta.extract(gpt2_folder, plain)
    monkeypatch.setattr("thinkalike.systems.system.load_model", None)
    found = ta.extract(gpt2_folder, annotated)
    found.check_stimuli(annotated)
    found.check_stimuli(plain)  # the same words in the same texts
    other = words_of(["The old woman sang.", "Mary fell."])
    assert list(other.items.index) == list(plain.items.index)
    with pytest.raises(StoreError, match="was shown other stimuli"):
        found.check_stimuli(other)


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "mean"},
        {"site": "mlp"},
        {"final_norm": True},
        {"untrained": True},
        {"untrained": True, "seed": 1},
        {"bos": True},
        {"drop_first": 1},
        {"dtype": "bfloat16"},
        {"batch_size": 3},
        {"revision": "checkpoint-7"},
    ],
    ids=str,
)
def test_all_that_changes_the_numbers_is_in_the_key(gpt2_folder, words_of, own_cache, options):
    stimuli = words_of(["The old woman sings.", "Mary fell."])
    ta.extract(gpt2_folder, stimuli)
    ta.extract(gpt2_folder, stimuli, **options)
    assert len(list(own_cache.glob("activations/*"))) == 2


def test_other_texts_other_weights_another_scan_have_another_key(
    gpt2_folder, words_of, own_cache, tmp_path, monkeypatch
):
    def n_stores():
        return len(list(own_cache.glob("activations/*")))

    copy = shutil.copytree(gpt2_folder, tmp_path / "copy")
    ta.extract(copy, words_of(["Mary fell."]))
    ta.extract(copy, words_of(["Mary sings."]))
    assert n_stores() == 2
    os.utime(copy / "model.safetensors", ns=(1, 1))
    ta.extract(copy, words_of(["Mary fell."]))
    assert n_stores() == 3
    monkeypatch.setenv("THINKALIKE_FUSED_SCAN", "0")
    ta.extract(copy, words_of(["Mary fell."]))
    assert n_stores() == 4


def test_fingerprints_of_folders(gpt2_folder, tmp_path):
    copy = shutil.copytree(gpt2_folder, tmp_path / "copy")
    before = fingerprint_folder(copy)
    assert before == fingerprint_folder(gpt2_folder)
    (copy / "tokenizer.json").write_text((copy / "tokenizer.json").read_text() + " ")
    assert fingerprint_folder(copy) != before


def test_loaded_models_are_kept_only_when_asked(one_case, words_of, own_cache):
    case, stimuli = one_case("gpt2"), words_of(["Mary fell."])
    ta.extract(case.model, stimuli, processor=case.processor)
    assert not own_cache.exists()
    ta.extract(case.model, stimuli, processor=case.processor, cache=True)
    assert len(list(own_cache.glob("activations/*"))) == 1
    with torch.no_grad():
        case.model.h[0].mlp.c_fc.weight[0, 0] += 1
    try:
        ta.extract(case.model, stimuli, processor=case.processor, cache=True)
    finally:
        with torch.no_grad():
            case.model.h[0].mlp.c_fc.weight[0, 0] -= 1
    assert len(list(own_cache.glob("activations/*"))) == 2


def test_nothing_is_kept_when_asked_not_to(gpt2_folder, words_of, own_cache):
    ta.extract(gpt2_folder, words_of(["Mary fell."]), cache=False)
    assert not own_cache.exists()


def test_out_is_where_it_goes(gpt2_folder, words_of, own_cache, tmp_path):
    stimuli = words_of(["Mary fell."])
    found = ta.extract(gpt2_folder, stimuli, out=tmp_path / "mine.zarr")
    assert not own_cache.exists()
    assert found.metadata["path"] == str(tmp_path / "mine.zarr")
    open_activations = ta.Activations.open(tmp_path / "mine.zarr", stimuli=stimuli)
    np.testing.assert_array_equal(open_activations[3], found[3])
    ta.extract(gpt2_folder, stimuli, out=tmp_path / "mine.zarr")
    with pytest.raises(StoreError, match="was made from other stimuli"):
        ta.extract(gpt2_folder, words_of(["Mary sings."]), out=tmp_path / "mine.zarr")
    with pytest.raises(StoreError, match=r"in another way \(different: pooling\)"):
        ta.extract(gpt2_folder, stimuli, pooling="first", out=tmp_path / "mine.zarr")


def test_a_store_says_which_items_it_answers_to(gpt2_folder, words_of, tmp_path):
    stimuli = words_of(["Mary fell.", "Mary sings."])
    options = {"drop_first": {"drop_first": 2}, "all": {"pooling": "all"}}
    for name, option in options.items():
        found = ta.extract(gpt2_folder, stimuli, out=tmp_path / name, **option)
        open_activations = ta.Activations.open(tmp_path / name)
        assert found.stimuli_digest == open_activations.stimuli_digest != stimuli.digest
        with pytest.raises(StoreError, match="rows but the stimuli have 4 items"):
            open_activations.check_stimuli(stimuli)


def test_object_stores(gpt2_folder, stimuli, monkeypatch):
    expected = ta.extract(gpt2_folder, stimuli, cache=False)
    monkeypatch.setenv("THINKALIKE_CACHE", "memory://cache/of/mine")
    found = ta.extract(gpt2_folder, stimuli)
    assert found.metadata["path"].startswith("memory://cache/of/mine/activations/tiny-gpt2-")
    np.testing.assert_allclose(found[3], expected[3], atol=1e-6)


def test_a_damaged_store_in_the_cache(gpt2_folder, stimuli, own_cache):
    ta.extract(gpt2_folder, stimuli)
    store = next(own_cache.glob("activations/*"))
    (store / "zarr.json").write_text("{")
    with pytest.raises(StoreError, match=r"is damaged .* delete it and extract again"):
        ta.extract(gpt2_folder, stimuli)


def test_where_the_cache_is(monkeypatch):
    monkeypatch.setenv("THINKALIKE_CACHE", "/data/cache/")
    assert cache_path("../a b/c@1", "k" * 64) == f"/data/cache/activations/c@1-{'k' * 24}.zarr"
    monkeypatch.delenv("THINKALIKE_CACHE")
    assert cache_directory() == str(Path.home() / ".cache" / "thinkalike")


def test_images_have_a_key_too(one_case, own_cache):
    case = one_case("vit")
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    described = ta.Stimuli(pd.DataFrame({"size": [1.0]}))
    for shown in (image, image, 255 - image):
        ta.extract(case.model, described, inputs=[shown], processor=case.processor, cache=True)
    assert len(list(own_cache.glob("activations/*"))) == 2
