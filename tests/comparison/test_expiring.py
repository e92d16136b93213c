"""Vectors that expire: one model after the other, where it was read; the same results as ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import thinkalike as ta
from tests.engines import Weighed, dask, files, jobs, processes, threads
from thinkalike.activations.writer import Writer
from thinkalike.comparison import layerpass
from thinkalike.dispatch import WORK
from thinkalike.errors import InvalidInput, StoreError, WorkFailed
from thinkalike.stimuli.table import Stimuli

pytestmark = pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")

OPTIONS: dict[str, Any] = {"resamples": 3, "null": 10}
EXPIRED = "done/expired.json"


def with_vectors(run: Path) -> set[str]:
    """The systems of a run of which at least one chunk of a layer is there."""
    return {path.parts[-7] for path in (run / "systems").glob("*/activations.zarr/layers/*/c/*/*")}


@pytest.fixture
def most_at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], int]:
    """How many systems had vectors in a run at the same time, at most: looked at after every chunk."""
    seen: list[tuple[Path, set[str]]] = []
    write = Writer.write

    def watched(self: Writer, *given: Any) -> None:
        write(self, *given)
        run = Path(str(self.path)).parents[2]
        seen.append((run, with_vectors(run)))

    monkeypatch.setattr(Writer, "write", watched)

    def most(run: Path) -> int:
        found = max(len(systems) for where, systems in seen if where == run)
        seen.clear()
        return found

    return most


def results(run: Path) -> dict[str, bytes]:
    """Tables and profiles."""
    return {name: data for name, data in files(run).items() if name.startswith("tables") or "profile" in name}


@pytest.mark.parametrize("controls", [None, pytest.param("untrained", marks=pytest.mark.whole_runs)])
def test_one_model_after_the_other(
    controls: str | None,
    two_models: dict[str, str],
    small_stimuli: Stimuli,
    tmp_path: Path,
    most_at_once: Callable[[Path], int],
) -> None:
    """Also their untrained copies; and again, when a later call needs the vectors of all."""
    kept, gone, later = (tmp_path / name for name in ("kept", "gone", "later"))
    asked: dict[str, Any] = {**OPTIONS, "controls": controls}
    ta.compare(two_models, small_stimuli, out=kept, **asked)
    assert most_at_once(kept) == len(with_vectors(kept)) == (2 if controls is None else 22)
    ta.compare(two_models, small_stimuli, out=gone, keep="profiles", **asked)
    assert most_at_once(gone) == 1
    assert with_vectors(gone) == set()
    assert results(gone) == results(kept)
    assert not (gone / WORK).exists()
    ta.compare(two_models, small_stimuli, out=later, keep="profiles", resamples=3, null=11)
    ta.compare(two_models, small_stimuli, out=later, keep="profiles", **asked)
    assert most_at_once(later) == 1
    assert files(later) == files(gone)


@pytest.mark.parametrize(
    "options",
    [{"measures": "cka"}, {"extraction": {"drop_first": 2}}],
    ids=["all vectors are needed", "items that some models lack"],
)
def test_where_all_are_read_first(
    options: dict[str, Any], two_models: dict[str, str], small_stimuli: Stimuli, tmp_path: Path
) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    ta.compare(two_models, small_stimuli, out=kept, **OPTIONS, **options)
    ta.compare(two_models, small_stimuli, out=gone, keep="profiles", **OPTIONS, **options)
    assert with_vectors(gone) == set()
    assert results(gone) == results(kept)


@pytest.mark.parametrize("lent", [{"extract": 1}, {"fit": 1}, {"extract": 1, "fit": 1}], ids=str)
def test_workers_of_one_kind(
    lent: dict[str, int], two_models: dict[str, str], small_stimuli: Stimuli, tmp_path: Path
) -> None:
    """Who reads a model looks at it too; who only fits finds all models read."""
    here, there = tmp_path / "here", tmp_path / "there"
    ta.compare(two_models, small_stimuli, out=here, keep="profiles", **OPTIONS)
    with threads(tmp_path) as pool:
        weighed = Weighed(pool)
        with ta.workers(**dict.fromkeys(lent, weighed)):  # type: ignore[arg-type]
            ta.compare(two_models, small_stimuli, out=there, keep="profiles", **OPTIONS)
    sent = {name for name, _ in weighed.sent}
    assert sent == ({"look_and_expire"} if "extract" in lent else {"look_at_layers"})
    assert max(size for _, size in weighed.sent) < 3_000
    assert files(there) == files(here)


@pytest.mark.filterwarnings("default")  # of the engines
@pytest.mark.whole_runs
@pytest.mark.parametrize("engine", [processes, dask, jobs], ids=lambda engine: engine.__name__)
@pytest.mark.parametrize("where", ["folder", "s3"])
def test_the_same_bytes_on_every_engine(
    where: str,
    engine: Any,
    two_models: dict[str, str],
    small_stimuli: Stimuli,
    bucket: str,
    tmp_path: Path,
) -> None:
    out = bucket if where == "s3" else str(tmp_path / "there")
    ta.compare(two_models, small_stimuli, out=tmp_path / "here", keep="profiles", **OPTIONS)
    with engine(tmp_path) as own, ta.workers(own):
        ta.compare(two_models, small_stimuli, out=out, keep="profiles", **OPTIONS)
    assert files(out) == files(tmp_path / "here")


def test_a_model_that_fails_is_told_and_the_same_call_goes_on(
    two_models: dict[str, str], small_stimuli: Stimuli, tmp_path: Path
) -> None:
    run, here = tmp_path / "run", tmp_path / "here"
    with threads(tmp_path) as pool, ta.workers(pool):
        with pytest.raises(WorkFailed, match=r"1 of 2 failed\. tiny-gpt2: .*no-such-model"):
            ta.compare(
                {**two_models, "tiny-gpt2": "./no-such-model"},
                small_stimuli,
                out=run,
                keep="profiles",
                **OPTIONS,
            )
        assert (run / "systems" / "tiny-bert" / "activations.zarr" / EXPIRED).exists()
        ta.compare(two_models, small_stimuli, out=run, keep="profiles", **OPTIONS)
    ta.compare(two_models, small_stimuli, out=here, keep="profiles", **OPTIONS)
    assert files(run) == files(here)


def fail(_: object) -> None:
    raise StoreError("There is no room.")


def test_the_last_look(
    two_models: dict[str, str], small_stimuli: Stimuli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sees the vectors, the profile and the way in which the model was read. A failure deletes nothing,
    and what was fitted before it is not fitted again."""
    seen: list[tuple[object, ...]] = []
    examined = []
    real = layerpass.examine_layer
    monkeypatch.setattr(layerpass, "examine_layer", lambda *given: examined.append(1) or real(*given))

    def look(one: Any) -> None:
        assert one.activations[1].shape == (len(small_stimuli), 16)
        seen.append((one.profile.system, one.model, one.options, one.folder.name))

    extraction = {"pooling": "mean"}
    expected = [(name, model, extraction, name) for name, model in two_models.items()]
    asked: dict[str, Any] = {**OPTIONS, "keep": "profiles", "extraction": extraction, "last_look": look}
    with pytest.raises(StoreError, match="There is no room"):
        ta.compare(two_models, small_stimuli, out=tmp_path / "run", **{**asked, "last_look": fail})
    assert with_vectors(tmp_path / "run") == {"tiny-bert"}
    assert len(examined) == 3
    made = ta.compare(two_models, small_stimuli, out=tmp_path / "run", **asked)
    assert seen == expected
    assert len(examined) == 6
    ta.compare(two_models, small_stimuli, out=tmp_path / "run", **asked)
    assert seen == expected  # nothing was there to be looked at
    ta.compare(two_models, small_stimuli, out=tmp_path / "cka", measures="cka", **asked)
    assert seen == [*expected, *expected]
    with pytest.raises(InvalidInput, match=r"before vectors are deleted: give keep='profiles' too"):
        ta.compare(two_models, small_stimuli, out=tmp_path / "run", last_look=look)
    assert made.activations is None


def test_the_plan_counts_the_largest_model_alone(
    two_models: dict[str, str], small_stimuli: Stimuli, tmp_path: Path
) -> None:
    def disk(**options: Any) -> int:
        frame = ta.plan(two_models, small_stimuli, out=tmp_path / "run", **options).to_frame()
        return int(frame.set_index("step").loc["reading models", "disk"])

    of_both = 4 * len(small_stimuli) * 2 * 3 * 16
    assert disk() == disk(keep="profiles", measures="cka") == of_both
    assert disk(keep="profiles") == of_both // 2
