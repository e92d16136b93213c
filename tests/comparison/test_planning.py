"""Plans say what a run has, refuse what has no room, and cost nothing where nobody listens."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinkalike as ta
from thinkalike.comparison import RunPlan, costs, planning
from thinkalike.comparison.costs import PairCounts
from thinkalike.comparison.profiling import plan_profiles
from thinkalike.comparison.run_plan import Step
from thinkalike.errors import DamagedFile, InvalidInput, UnknownName
from thinkalike.measures import large_cka

pytestmark = pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")


@pytest.fixture(scope="module")
def words() -> ta.Stimuli:
    return ta.Stimuli.from_grammar(30, seed=0, grammar="salle2024")


@pytest.fixture
def arrays(words: ta.Stimuli) -> dict[str, dict[int, np.ndarray]]:
    rng = np.random.default_rng(0)
    return {name: {k: rng.normal(size=(len(words), 6 + k)) for k in range(2)} for name in ("a", "b")}


def test_steps_and_disk_are_those_of_the_run(
    words: ta.Stimuli, arrays: dict[str, dict[int, np.ndarray]], tmp_path: Path
) -> None:
    planned = ta.plan(arrays, words, measures=["cka", "rsa"], out=tmp_path / "run")
    frame = planned.to_frame().set_index("step")
    assert list(frame.index) == [
        "keeping activations",
        "folds, resamples and pairs",
        "looking at layers",
        "matrices, tests and maps",
        "measure cka",
        "writing tables",
    ]
    assert frame.loc["looking at layers", "tasks"] == 4
    assert frame.loc["keeping activations", "disk"] == 4 * len(words) * 2 * (6 + 7)
    assert (frame["seconds"] >= 0).all()
    assert planned.processor_seconds == pytest.approx(frame["seconds"].sum())
    assert planned.seconds is not None
    assert planned.seconds <= planned.processor_seconds
    assert not (tmp_path / "run").exists()


def test_models_are_measured_and_profiles_and_extraction_are_planned_alone(words: ta.Stimuli) -> None:
    of_profile = ta.plan("nano-gelu-3l", words, work="profile", resamples=2, extraction={"pooling": "mean"})
    assert [(step.name, step.tasks) for step in of_profile.steps] == [
        ("reading models", 1),
        ("folds, resamples and pairs", 1),
        ("looking at layers", 4),
    ]
    of_extraction = ta.plan(["nano-gelu-3l"], words, work="extract")
    (step,) = of_extraction.steps
    found = ta.extract("nano-gelu-3l", words)
    assert step.disk == 4 * found.n_items * sum(found.n_units)
    assert step.seconds is not None
    assert step.seconds > 0


def test_what_is_made_once_for_all_layers_counts(
    words: ta.Stimuli, arrays: dict[str, dict[int, np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, make = [0.0], plan_profiles

    def slowly(*given: Any, **named: Any) -> Any:
        clock[0] += 7.0
        return make(*given, **named)

    monkeypatch.setattr(planning.time, "process_time", lambda: clock[0])
    monkeypatch.setattr(planning, "plan_profiles", slowly)
    for work in ("compare", "profile"):
        planned = ta.plan(arrays, words, work=work).to_frame().set_index("step")
        assert planned.loc["folds, resamples and pairs", "seconds"] == 7.0


def test_the_guess_from_the_configuration_knows_layers_and_widths(words: ta.Stimuli) -> None:
    for model in ("nano-bert", "nano-gpt2", "nano-mamba"):
        guess = planning.guessed_reading(model, model, words, {})
        assert guess.n_units == ta.extract(model, words).n_units
        assert guess.seconds is not None
        assert guess.memory > 0
    assert planning.guessed_reading("x", "no-such-model", words, {}).n_units is None


def test_untrained_copies_and_other_analyses_count(words: ta.Stimuli) -> None:
    planned = ta.plan(
        ["nano-gelu-3l", "nano-solu-3l"], words, controls="untrained", robustness=True, resamples=2
    )
    tasks = planned.to_frame().set_index("step")["tasks"]
    assert tasks["reading models"] == 22
    assert tasks["looking at layers"] == 8 + 80
    assert "other analyses" in tasks


def test_layers_that_a_measure_holds_count(
    words: ta.Stimuli, arrays: dict[str, dict[int, np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, as they came and prepared; for CKA of layers without room those that are held."""
    monkeypatch.setattr(planning, "KEPT_VECTORS", 100)
    monkeypatch.setattr(large_cka, "MEMORY", 1)
    monkeypatch.setattr(large_cka, "HELD", 1_000)
    planned = ta.plan(arrays, words, measures=["cka", "procrustes"], resamples=0)
    steps = {step.name: step.memory for step in planned.steps}
    held = steps["matrices, tests and maps"] - planning.MORE_TO_TEST
    n, of_item = len(words), 2 * (6 + 7)
    assert steps["measure procrustes"] - held == (4 + 8) * n * of_item - 100
    assert steps["measure cka"] - held == 1_000 + 2 * 4 * n * 7  # the widest, and one that is being read


def test_it_prints_saves_and_loads(
    words: ta.Stimuli, arrays: dict[str, dict[int, np.ndarray]], tmp_path: Path
) -> None:
    planned = ta.plan(arrays, words, resamples=0)
    lines = str(planned).splitlines()
    assert lines[0].split() == ["step", "tasks", "processor", "memory", "disk"]
    assert lines[-2].startswith(f"4 layers × {len(words)} items: ")
    assert RunPlan.load(planned.save(tmp_path / "plan.json")) == planned
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(DamagedFile, match="make the plan again"):
        RunPlan.load(tmp_path / "plan.json")


def test_what_does_not_fit_is_refused_with_the_way_out() -> None:
    one = RunPlan((Step("x", 1, 5.0, 3 * 10**9, 10**6),), 2, "here", 2 * 10**9, 10**9)
    assert not one.fits
    with pytest.raises(InvalidInput, match=r"about 3 GB of memory, and 2 GB are there.*fewer items"):
        one.check()
    full = replace(one, memory_free=None, disk_free=10**3)
    with pytest.raises(InvalidInput, match=r"about 1 MB in here, and 1 kB are free.*--out"):
        full.check()
    replace(full, disk_free=None).check()


@pytest.mark.parametrize("what", ["memory", "disk"])
def test_compare_refuses_before_it_writes(
    words: ta.Stimuli,
    arrays: dict[str, dict[int, np.ndarray]],
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if what == "memory":
        monkeypatch.setattr(planning, "available_memory", lambda: 1000)
        monkeypatch.setattr(planning, "_used", lambda: 0)
    else:
        monkeypatch.setattr(planning, "free_disk", lambda place: 1000)
    with pytest.raises(InvalidInput, match="This run does not fit"):
        ta.compare(arrays, words, resamples=0, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_long_run_says_so_at_its_start_if_anyone_listens(
    words: ta.Stimuli,
    arrays: dict[str, dict[int, np.ndarray]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(planning, "MOMENT", 0.0)
    with caplog.at_level(logging.INFO, logger="thinkalike"):
        ta.compare(arrays, words, resamples=0)
    said = [record.message.startswith(f"4 layers × {len(words)} items: ") for record in caplog.records]
    assert said[0]
    assert sum(said) == 1
    monkeypatch.setattr(planning, "seconds_a_layer", lambda *a, **k: pytest.fail("nobody listens"))
    ta.compare(arrays, words, resamples=0)


def test_of_many_items_fewer_are_measured_and_the_growth_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """With times that follow the law exactly, the law is found: also where pairs are a sample."""
    monkeypatch.setattr(costs, "MEASURED_ITEMS", 50)
    monkeypatch.setattr(costs, "SMALLER", (20, 30, 50))
    many = ta.Stimuli.from_grammar(200, seed=0, grammar="salle2024").subset(np.arange(300))

    def law(n: int, pairs: int) -> float:
        return 1.0 + 0.5 * n + 0.25 * pairs

    def look(some, plan, width, *, geometry):  # type: ignore[no-untyped-def]
        return law(len(some), PairCounts.of(len(some), plan, geometry=geometry).whole)

    monkeypatch.setattr(costs, "_look", look)
    monkeypatch.setattr(costs, "_seconds_a_sampled_pair", lambda *_: 0.125)
    for most in (10**7, 1_000):
        with pytest.warns(UserWarning, match="seeded sample") if most == 1_000 else _nothing():
            made = plan_profiles(many, max_pairs=most)
        counts = PairCounts.of(300, made, geometry=True)
        assert counts.whole + counts.sampled == min(300 * 299 // 2, most) + 5 * min(60 * 59 // 2, most)
        found = costs.seconds_a_layer(many, made, [8], geometry=True)
        assert found == {8: pytest.approx(law(300, counts.whole) + 0.125 * counts.sampled, rel=1e-6)}


def test_odd_requests(words: ta.Stimuli, arrays: dict[str, dict[int, np.ndarray]]) -> None:
    with pytest.raises(UnknownName, match="no work to plan 'compute'"):
        ta.plan(arrays, words, work="compute")
    with pytest.raises(InvalidInput, match="needs two systems or more"):
        ta.plan({"a": arrays["a"]}, words)
    with pytest.raises(UnknownName, match="no setting 'nonsense'"):
        ta.plan(arrays, words, nonsense=1)


def _nothing():  # type: ignore[no-untyped-def]
    from contextlib import nullcontext

    return nullcontext()
