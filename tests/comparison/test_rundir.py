"""Run directories: complete in themselves, re-used, extended, and never mixed up."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

from thinkalike.activations import Activations, extraction_run
from thinkalike.activations.writer import Writer
from thinkalike.comparison import comparing, layerpass, rundir
from thinkalike.comparison.comparing import compare
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.rundir import RunDirectory
from thinkalike.errors import StoreError, UnknownName
from thinkalike.files import file_name, read_json, write_json
from thinkalike.stimuli import Stimuli

pytestmark = pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")


def assert_same(a: Any, b: Any, path: str = "comparison") -> None:
    """Equal all the way down; activations by what they hold."""
    if isinstance(a, Activations):
        for layer in a.layers:
            np.testing.assert_array_equal(a[layer], b[layer], err_msg=path)
    elif isinstance(a, Stimuli):
        assert a.digest == b.digest, path
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b, err_msg=path)
    elif isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b, obj=path)
    elif is_dataclass(a):
        assert type(a) is type(b), path
        for f in fields(a):
            assert_same(getattr(a, f.name), getattr(b, f.name), f"{path}.{f.name}")
    elif isinstance(a, dict):
        assert list(a) == list(b), path
        for key in a:
            assert_same(a[key], b[key], f"{path}[{key!r}]")
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b), path
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{path}[{k}]")
    elif isinstance(a, float) and np.isnan(a):
        assert np.isnan(b), path
    else:
        assert a == b, path


def test_what_is_saved_is_what_is_loaded(comparison: Comparison, tmp_path: Path) -> None:
    comparison.save(tmp_path / "run")
    loaded = Comparison.load(tmp_path / "run")
    assert_same(comparison, loaded)
    assert str(loaded.explain("ada", 0, "cleo", 1)) == str(comparison.explain("ada", 0, "cleo", 1))


def test_without_activations_all_but_the_worst_pairs_is_there(comparison: Comparison, tmp_path: Path) -> None:
    comparison.save(tmp_path / "run")
    for store in (tmp_path / "run").rglob("activations.zarr"):
        shutil.rmtree(store)
    loaded = Comparison.load(tmp_path / "run")
    assert loaded.activations is None
    explanation = loaded.explain("ada", 0, "bob", 1)
    assert explanation.worst_pairs is None
    assert explanation.rsa == comparison.explain("ada", 0, "bob", 1).rsa


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The systems that were profiled, as they are."""
    names: list[str] = []

    def counting(activations: Activations, *args: Any, **options: Any) -> Profile:
        names.append(activations.system)
        return original(activations, *args, **options)

    original = layerpass.collect_profile
    monkeypatch.setattr(layerpass, "collect_profile", counting)
    return names


def test_another_system_computes_only_that_system(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path, computed: list[str]
) -> None:
    ada, bob, cleo = world.values()
    compare([ada, bob], sentences, resamples=5, out=tmp_path / "run")
    assert not (tmp_path / "run" / "index.html").exists()  # the page is for `thinkalike report` to add
    assert computed == ["ada", "bob"]
    computed.clear()
    three = compare([ada, bob, cleo], sentences, resamples=5, out=tmp_path / "run")
    assert computed == ["cleo"]
    assert_same(three, Comparison.load(tmp_path / "run"))
    assert_same(three, compare([ada, bob, cleo], sentences, resamples=5))


def test_the_same_call_gives_the_same_bytes(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        compare(list(world.values())[:2], sentences, resamples=3, out=tmp_path / name)
    files = sorted(p.relative_to(tmp_path / "first") for p in (tmp_path / "first").rglob("*") if p.is_file())
    assert len(files) > 20
    for file in files:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes(), file


def test_a_profile_on_its_own(comparison: Comparison, tmp_path: Path) -> None:
    profile = comparison.profiles["bob"]
    assert_same(profile, Profile.load(profile.save(tmp_path / "bob")))


def test_layers_with_names_beside_numbered_ones(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    cortex = Activations.from_arrays(
        {"V1": world["bob"][0], "IT": world["bob"][1]}, system="mon/key", stimuli=sentences
    )
    made = compare([world["ada"], cortex], sentences, out=tmp_path / "run")
    assert_same(made, Comparison.load(tmp_path / "run"))
    assert made.rows[-1] == ("mon/key", "IT")
    assert made.explain("ada", 0, "mon/key", "V1").b == ("mon/key", "V1")


def test_an_output_folder_that_holds_another_run(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    two = list(world.values())[:2]
    compare(two, sentences, out=tmp_path / "run")
    with pytest.raises(
        StoreError, match=r"holds another run \(n_folds: 5 there, 3 here\): choose another folder"
    ):
        compare(two, sentences, n_folds=3, out=tmp_path / "run")
    fewer = sentences.subset(np.arange(len(sentences)) < 100)
    cut = [Activations.from_arrays({0: a[0][:100]}, system=a.system, stimuli=fewer) for a in two]
    with pytest.raises(
        StoreError, match=r"holds another run \(80 sentences there, 34 here; 240 items there, 100 here\)"
    ):
        compare(cut, fewer, out=tmp_path / "run")
    moved = Activations.from_arrays(
        {k: 1 + two[0][k] for k in two[0].layers}, system="ada", stimuli=sentences
    )
    with pytest.raises(
        StoreError, match="holds other activations of ada: choose another folder, or give the system"
    ):
        compare([moved, two[1]], sentences, out=tmp_path / "run")


def everything(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


def test_a_finished_run_repeated_does_nothing(
    tiny_models: dict[str, Path], sentences: Stimuli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [str(tiny_models["tiny-bert"]), str(tiny_models["tiny-gpt2"])]
    asked: dict[str, Any] = {"measures": "cka", "controls": "untrained", "resamples": 3}
    made = compare(two, sentences, out=tmp_path / "run", **asked)
    assert_same(made, pickle.loads(pickle.dumps(made)))  # noqa: S301 our own bytes
    before = everything(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("something was computed")

    with monkeypatch.context() as patch:
        patch.setattr(comparing, "pass_over_layers", refuse)
        patch.setattr(extraction_run, "_compute", refuse)
        assert_same(made, compare(two, sentences, out=tmp_path / "run", **asked))
        assert everything(tmp_path) == before
        with pytest.raises(pytest.fail.Exception):  # what else is asked for is computed
            compare(two, sentences, out=tmp_path / "run", measures="cka", resamples=3)


def test_damage_to_a_finished_run_is_made_good(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    two = list(world.values())[:2]
    run = tmp_path / "run"
    compare(two, sentences, resamples=3, out=run)
    before = {path: content for path, (_, content) in everything(run).items()}
    for name in ("stimuli.parquet", "tables/similarity-rsa.parquet", "systems/ada/profile.json"):
        (run / name).write_bytes(before[run / name][:-9] + b"x" + before[run / name][-8:])
        with pytest.raises(StoreError, match=rf"{name}|run the same comparison again|make the profile"):
            Comparison.load(run)
        compare(two, sentences, resamples=3, out=run)
        assert {path: content for path, (_, content) in everything(run).items()} == before


def test_files_that_do_not_belong_together(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    compare(list(world.values())[:2], sentences, out=run)
    ada, bob = (run / "systems" / name / "profile.parquet" for name in ("ada", "bob"))
    content = ada.read_bytes()
    ada.write_bytes(bob.read_bytes())
    with pytest.raises(StoreError, match=r"ada/profile\.parquet is another file than was written there"):
        Comparison.load(run)
    ada.write_bytes(content)
    manifest = read_json(run / "run.json")
    for broken in ({"rows": []}, {"matrices": {}}, {"items": 3}, {"seals": {}}):
        write_json({**manifest, "results": {**manifest["results"], **broken}}, run / "run.json")
        with pytest.raises(StoreError, match=r"run\.json does not hold what belongs there|shape|rows"):
            Comparison.load(run)


def test_killed_while_a_system_is_added(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    compare(list(world.values())[:2], sentences, out=run)
    with monkeypatch.context() as patch:
        patch.setattr(rundir, "write_json", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            compare(list(world.values()), sentences, out=run)
    with pytest.raises(StoreError, match=r"is another file than .* run the same comparison again"):
        Comparison.load(run)
    assert compare(list(world.values()), sentences, out=run).systems == tuple(world)


def test_a_run_that_is_being_made_belongs_to_its_owner(sentences: Stimuli, tmp_path: Path) -> None:
    with RunDirectory.owned(tmp_path / "run", sentences, {"seed": 0}):
        before = everything(tmp_path)
        with (
            pytest.raises(StoreError, match=r"holds another run \(seed: 0 there, 1 here\)"),
            RunDirectory.owned(tmp_path / "run", sentences, {"seed": 1}),
        ):
            pytest.fail("it was let in")
        assert everything(tmp_path) == before
    with RunDirectory.owned(tmp_path / "run", sentences, {"seed": 1}) as free:
        assert free.manifest()["identity"]["seed"] == 1


def test_an_option_that_fails_leaves_the_folder_free(
    tiny_models: dict[str, Path], sentences: Stimuli, tmp_path: Path
) -> None:
    two = [str(tiny_models["tiny-bert"]), str(tiny_models["tiny-gpt2"])]
    with pytest.raises(UnknownName, match="There is no pooling 'mena'"):
        compare(two, sentences, extraction={"pooling": "mena"}, out=tmp_path / "run")
    compare(two, sentences, extraction={"pooling": "mean"}, out=tmp_path / "run")
    with pytest.raises(StoreError, match="holds another run"):
        compare(two, sentences, extraction={"pooling": "first"}, out=tmp_path / "run")


def test_resamples_may_be_added_later(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path, computed: list[str]
) -> None:
    two = list(world.values())[:2]
    compare(two, sentences, out=tmp_path / "run")
    computed.clear()
    more = compare(two, sentences, resamples=3, out=tmp_path / "run")
    assert computed == ["ada", "bob"]
    assert_same(more, Comparison.load(tmp_path / "run"))


def test_what_stays_together_is_part_of_the_run(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    two = list(world.values())[:2]
    labels = np.arange(len(sentences)) // 3
    compare(two, sentences, together=labels, out=tmp_path / "run")
    with pytest.raises(StoreError, match=r"holds another run \(together: some there, none here\)"):
        compare(two, sentences, out=tmp_path / "run")


def test_tables_of_measures_that_are_no_longer_asked_for_go(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    two = list(world.values())[:2]
    compare(two, sentences, measures=["cka"], out=tmp_path / "run")
    assert (tmp_path / "run" / "tables" / "similarity-cka.csv").exists()
    compare(two, sentences, out=tmp_path / "run")
    assert not list((tmp_path / "run" / "tables").glob("similarity-cka*"))
    assert (tmp_path / "run" / "tables" / "similarity-rsa.csv").exists()


def test_what_others_put_beside_the_tables_stays(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    two = list(world.values())[:2]
    compare(two, sentences, out=tmp_path / "run")
    tables = tmp_path / "run" / "tables"
    (tables / "notes.csv").write_text("mine")
    (tables / ".ipynb_checkpoints").mkdir()
    compare(two, sentences, out=tmp_path / "run")
    assert (tables / "notes.csv").read_text() == "mine"
    assert (tables / ".ipynb_checkpoints").is_dir()


def test_two_functions_are_two_distances(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    two = list(world.values())[:2]
    for exponent in (1, 6):
        by_function = compare(
            two, sentences, distance=lambda a, b, k=exponent: cdist(a, b) ** k, out=tmp_path / "run"
        )
        fresh = compare(two, sentences, distance=lambda a, b, k=exponent: cdist(a, b) ** k)
        np.testing.assert_array_equal(
            by_function.matrices["features"].values, fresh.matrices["features"].values
        )


def test_a_stop_while_arrays_are_written(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = list(world.values())[:2]

    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "write", stop)
        with pytest.raises(KeyboardInterrupt):
            compare(two, sentences, out=tmp_path / "run")
    compare(two, sentences, out=tmp_path / "run")
    kept = Activations.open(tmp_path / "run" / "systems" / two[0].system / "activations.zarr")
    for layer in kept.layers:
        np.testing.assert_array_equal(kept[layer], two[0][layer])


def test_a_folder_with_something_else(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(
        StoreError, match="is not empty and holds no run of thinkalike: choose another folder"
    ):
        compare(list(world.values()), sentences, out=tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "precious"
    with pytest.raises(StoreError, match="is not empty and holds no run"):
        compare(list(world.values()), sentences, out=tmp_path / "thesis.tex")


def test_damaged_and_unfinished_runs(comparison: Comparison, tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match="holds no run of thinkalike: give a folder that `thinkalike compare` made"
    ):
        Comparison.load(tmp_path)
    run = comparison.save(tmp_path / "run")
    manifest = read_json(run / "run.json")
    write_json({k: v for k, v in manifest.items() if k != "results"}, run / "run.json")
    with pytest.raises(StoreError, match="was not finished: run the same comparison again"):
        Comparison.load(run)
    write_json({**manifest, "format": 99}, run / "run.json")
    with pytest.raises(StoreError, match=r"written by another version of thinkalike \(format 99, not 2\)"):
        Comparison.load(run)
    (run / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(StoreError, match=r"run\.json is damaged, or was changed since"):
        Comparison.load(run)
    write_json(manifest, run / "run.json")
    (run / "tables" / "similarity-rsa.parquet").write_bytes(b"no table")
    with pytest.raises(StoreError, match=r"similarity-rsa\.parquet is damaged.*: run the same comparison"):
        Comparison.load(run)


def test_nothing_half_written_is_left(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match=r"cannot be written \(.*No space left"):
        comparison.save(tmp_path / "run")
    monkeypatch.undo()
    assert not list((tmp_path / "run").rglob(".*"))


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", "..", "C:\\x", "x" * 300])
def test_names_of_systems_stay_in_the_run(name: str) -> None:
    assert Path(file_name(name)).name == file_name(name)
    assert file_name(name) not in ("", ".", "..")
    assert len(file_name(name)) < 80


def test_different_names_have_different_files() -> None:
    assert len({file_name(n) for n in ("a/b", "a-b", "a:b", "a b")}) == 4
