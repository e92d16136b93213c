"""salle2026: its effects on planted populations, the cohort of the paper, and a whole run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.recipes import Reproduction, get_recipe, reproduce
from thinkalike.recipes.salle2026 import SCALES, measures
from thinkalike.recipes.salle2026.cohort import COHORT, FAMILIES
from thinkalike.recipes.salle2026.measures import MEASURES, Seen
from thinkalike.recipes.salle2026.rules import BEYOND_RULES, PAPER_RULES
from thinkalike.recipes.salle2026.work import Observation, drawn

N, BLOCKS, FOLDS, FEATURES = 24, 3, 5, 6


def population(seed: int, *, by: str) -> Seen:
    """Models whose importances follow one fact."""
    rng = np.random.default_rng(seed)
    names = tuple(f"m{k}" for k in range(N))
    facts = pd.DataFrame(
        {
            "family": [f"f{k % 6}" for k in range(N)],
            "class": ["state-space" if k % 6 == 5 else "transformer" for k in range(N)],
            "date": rng.uniform(2019, 2026, N),
            "parameters": 10 ** rng.uniform(6, 9, N),
            "depth": rng.integers(2, 40, N),
            "tokens": 10 ** rng.uniform(9, 13, N),
        },
        index=list(names),
    )
    if by == "family":
        centres = {level: 3 * rng.normal(size=FEATURES) for level in set(facts["family"])}
        places = np.stack([centres[level] for level in facts["family"]])
    else:
        column = np.log10(facts[by]) if by == "parameters" else facts[by]
        z = ((column - column.mean()) / column.std()).to_numpy()
        places = 3 * z[:, None] * rng.normal(size=FEATURES)
    importance = tuple(p + 0.3 * rng.normal(size=(BLOCKS, FOLDS, FEATURES)) for p in places)
    geometry = rng.normal(size=(N, 200)).astype(np.float32)
    return Seen(Observation(names, tuple("abcdef"), importance, geometry), facts, permutations=19)


def test_the_fact_that_models_follow_is_named() -> None:
    by_date, by_family, by_size = (population(1, by=fact) for fact in ("date", "family", "parameters"))
    assert (by_date.leader, by_family.leader, by_size.leader) == ("date", "family", "size")
    for name, agrees, differs in (
        ("date", by_date, by_size),
        ("family", by_family, by_size),
        ("scale", by_family, by_size),
    ):
        rule = PAPER_RULES[name]
        assert rule.holds(MEASURES[name](agrees)[""]), name
        assert not rule.holds(MEASURES[name](differs)[""]), name
    for name in ("families apart", "explained", "by chance", "cohort", "grouping"):
        assert BEYOND_RULES[name].holds(MEASURES[name](by_family)[""]), name
    assert not BEYOND_RULES["families apart"].holds(MEASURES["families apart"](by_size)[""])
    assert MEASURES["development"](by_date) == {}  # there are dates
    undated = replace(by_date, facts=by_date.facts.drop(columns="date"))
    assert MEASURES["date"](undated) == {}
    small = replace(by_size, facts=by_size.facts.drop(columns="date"))
    assert MEASURES["development"](small)[""] < 0


def test_other_sentences_and_other_distances() -> None:
    one, other = population(2, by="family"), population(3, by="date")
    assert MEASURES["stimuli"](one) == {}
    assert MEASURES["stimuli"](replace(one, elsewhere=one)) == {"": 1.0}
    assert MEASURES["stimuli"](replace(one, elsewhere=other)) == {"": 0.0}
    assert abs(MEASURES["geometry"](one)[""]) < 0.3  # drawn by itself
    same = replace(one.observation, geometry=np.stack([m.ravel() for m in one.observation.importance]))
    assert MEASURES["geometry"](replace(one, observation=same))[""] > 0.6
    assert MEASURES["distance"](one)[""] == pytest.approx(measures.agreement(one.warped, one.taus))


def test_the_warped_distance_is_the_mean_over_folds() -> None:
    dtw = pytest.importorskip("dtw")
    seen = population(4, by="family")
    x, y = seen.observation.importance[:2]
    expected = [dtw.dtw(x[:, k], y[:, k], step_pattern="symmetric2").normalizedDistance for k in range(FOLDS)]
    assert seen.warped.values[0, 1] == pytest.approx(np.mean(expected))


def test_the_cohort_of_the_paper() -> None:
    assert (len(COHORT), len(FAMILIES)) == (43, 10)
    assert SCALES["paper"].models == tuple(COHORT)
    assert COHORT["allenai/OLMo-2-1124-7B"]["date"] == pytest.approx(2024 + 10 / 12)
    assert all(2019 <= facts["date"] < 2026 for facts in COHORT.values())


def test_sentences_have_relative_clauses_and_a_full_stop() -> None:
    stimuli, plan = drawn("relative", 60, 0)
    assert all(text.endswith(".") for text in stimuli.sentences)
    assert plan.settings["interactions"]
    assert "n_words" not in drawn("clauses", 60, 0)[0].features


def test_too_few_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There are 1 models: this takes 8 or more"):
        reproduce("salle2026", "smoke", tmp_path / "run", models=["nano-gpt2"])


def test_the_paper_scale_says_what_it_takes_and_which_models_are_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the hub all 43 are tried, and all are named in one error."""
    from thinkalike.recipes.salle2026.work import Work

    tried: list[str] = []

    def refuse(self: Work, model: str) -> Any:
        tried.append(model)
        raise ModelError(f"{model} cannot be loaded: huggingface.co cannot be reached.")

    monkeypatch.setattr(Work, "_known", refuse)
    with caplog.at_level("INFO", "thinkalike"), pytest.raises(ModelError) as raised:
        reproduce("salle2026", "paper", tmp_path / "run")
    assert tried == list(COHORT)
    told = str(raised.value)
    assert told.startswith("43 of 43 models cannot be had: openai-community/gpt2, ")
    assert f"--set leave_out={','.join(COHORT)}" in told
    assert "Of the first: openai-community/gpt2 cannot be loaded: huggingface.co cannot be reached." in told
    parameters = sum(facts["parameters"] for facts in COHORT.values()) / 1e9
    assert f"{parameters:.0f} billion parameters, about {2 * parameters:.0f} GB of weights" in caplog.text


@pytest.mark.whole_runs
def test_models_that_cannot_be_had_do_not_lose_the_others(
    tmp_path: Path, save_tiny: Callable[..., Path], tiny_neox: Callable[..., Any]
) -> None:
    """43 names, of which nine are tiny folders and one of these has no weights; put right, it goes on."""
    names = [name for name in COHORT if name.startswith(("EleutherAI", "facebook"))][:9]
    for seed, name in enumerate(names):
        save_tiny(name, tiny_neox(16, 2, 2), seed=seed)
    weights = tmp_path / "models" / names[3] / "model.safetensors"
    kept = weights.read_bytes()
    weights.unlink()
    folder = tmp_path / "models"
    options: dict[str, Any] = {"models_folder": folder, "sets": 1, "sentences": 60, "permutations": 9}
    with pytest.raises(ModelError, match=r"34 of 43 models cannot be had: openai-community/gpt2, .*"):
        reproduce("salle2026", "paper", tmp_path / "run", **options)
    others = [name for name in COHORT if name not in names]
    with pytest.raises(ModelError, match=rf"1 of 9 models cannot be had: {re.escape(names[3])}\."):
        reproduce("salle2026", "paper", tmp_path / "run", **options, leave_out=others, dtype="float32")
    looked = sorted((tmp_path / "run").rglob("looked*"))
    assert looked
    weights.write_bytes(kept)
    done = reproduce("salle2026", "paper", tmp_path / "run", **options, leave_out=others, dtype="float32")
    assert set(looked) < set((tmp_path / "run").rglob("looked*"))
    assert done.findings.statements[0].effects


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    return reproduce("salle2026", "smoke", tmp_path_factory.mktemp("smoke") / "run")


@pytest.mark.whole_runs
def test_smoke_tests_every_statement_it_can(smoke: Reproduction) -> None:
    found = smoke.findings
    assert len(found.statements) == len(PAPER_RULES) + len(BEYOND_RULES)
    assert {s.verdict for s in found.statements} == {"undecided", "cannot be tested"}  # one set has no range
    for figure in found.figures:
        figure.chart.to_dict()  # valid Vega-Lite
    names = {f.name for f in found.figures}
    assert {s.figure for s in found.statements} <= names
    assert [t.name for t in found.tables] == ["reasons", "leaders", "choices"]
    assert set(found.tables[1].frame["choice"]) == {"main", "stimuli", "distance", "cohort", "grouping"}


@pytest.mark.whole_runs
def test_smoke_is_kept(smoke: Reproduction, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command again computes nothing, and says the same."""
    from thinkalike.activations import extraction

    monkeypatch.setattr(extraction, "run_extraction", lambda *a, **k: pytest.fail("extracted again"))
    again = smoke.recipe.run(SCALES["smoke"], smoke.page.parent)
    assert [s.found for s in again.statements] == [s.found for s in smoke.findings.statements]


@pytest.mark.whole_runs
def test_paper_scale_on_tiny_models_of_the_same_names(
    tmp_path: Path,
    save_tiny: Callable[..., Path],
    tiny_neox: Callable[..., Any],
    tiny_models: dict[str, Path],
) -> None:
    names = [name for name in COHORT if name.startswith(("EleutherAI", "facebook"))][:9]
    for seed, name in enumerate(names):
        save_tiny(name, tiny_neox(16 + 8 * (seed % 3), 2 + seed % 2, 2), seed=seed)
    shutil.copytree(tiny_models["tiny-mamba"], tmp_path / "models" / "state-spaces/mamba-130m-hf")
    settings = replace(
        SCALES["paper"],
        models=(*names, "state-spaces/mamba-130m-hf"),
        models_folder=str(tmp_path / "models"),
        sets=1,
        sentences=60,
        permutations=19,
        dtype="float32",
    )
    found = get_recipe("salle2026").run(settings, tmp_path / "run")
    assert found.statements[0].effects  # dates are known here
    assert "date" in found.notes[0]
