"""The same question under other analyses: each is what a comparison with that choice gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from thinkalike.activations import Activations
from thinkalike.comparison import Analysis, Comparison, Robustness, compare, rereading
from thinkalike.comparison.analyses import GRID, MAIN, STEADY
from thinkalike.encoding import solvers
from thinkalike.encoding.settings import Settings
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.files import plain
from thinkalike.stimuli import Stimuli

pytestmark = pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")

Plant = Callable[..., Activations]
QUICK: dict[str, Any] = {"resamples": 0, "n_folds": 2}
LIKE = {"part_of_speech": 2.0, "number": 1.5, "tense": 1.0}
UNLIKE = {"question": 2.0, "word_length": 1.0}


@pytest.fixture(scope="module")
def words() -> Stimuli:
    return Stimuli.from_grammar(n_sentences=30, seed=0)


@pytest.fixture(scope="module")
def made(words: Stimuli, plant: Plant) -> Comparison:
    """a and b care about the same, c about something else; arrays, of which no text can be read again."""
    systems = [
        plant(words, name, strengths, n_layers=2, n_units=24, seed=seed)
        for seed, (name, strengths) in enumerate([("a", LIKE), ("b", LIKE), ("c", UNLIKE)])
    ]
    return compare({one.system: one for one in systems}, words, **QUICK)


@pytest.fixture(scope="module")
def found(made: Comparison) -> Robustness:
    return made.robustness()


def values(found: Robustness, name: str, column: str = "tau_w") -> list[float]:
    frame = found.to_frame()
    return frame.loc[frame["analysis"] == name, column].tolist()


def same_as(found: Robustness, name: str, again: Comparison, *, geometry: bool = True) -> None:
    """An analysis has the numbers of a comparison that was asked for it."""
    blocks = [block for block in again.matrices["features"].blocks if block.a != block.b]
    np.testing.assert_allclose(values(found, name), [block.mean for block in blocks], atol=1e-12)
    if geometry:
        rsa = [again.matrices["rsa"].block_mean(block.a, block.b) for block in blocks]
        np.testing.assert_allclose(values(found, name, "rsa"), rsa, atol=1e-5)


def test_the_grid_is_what_it_says() -> None:
    """25 analyses of the defaults, the comparison among them; names are unique."""
    main = {**Settings().as_dict(), "pooling": "last", "bos": "auto"}
    different = {tuple(one.choices(main).items()) for one in (MAIN, *GRID)}
    assert len(different) == 25
    assert len({one.name for one in GRID}) == len(GRID)


def test_the_planted_truth_survives(found: Robustness) -> None:
    support = {(one.kind, one.about): one for one in found.support()}
    assert support["most alike", None].value == ("a", "b")
    assert support["most alike", None].agree == support["most alike", None].n == len(found.analyses)
    assert support["dominates", "c"].value == "question"
    n = len(found.analyses)
    assert found.answer.startswith(f"a and b are the most alike in {n} of {n} analyses;")


def test_arrays_get_what_has_a_meaning_for_them(found: Robustness) -> None:
    reasons = dict(found.left_out)
    for name in ("with bos", "without bos", "first token of a word", "mean of a word's tokens"):
        assert reasons.pop(name) == "no system would read the text otherwise"
    assert reasons.pop("other sentences") == "no other sentences were given"
    assert reasons.pop("cosine, other sentences") == "no other sentences were given"
    assert reasons.pop("conditional, other sentences") == "no other sentences were given"
    assert reasons.pop("last token of a word") == "no system would read the text otherwise"
    assert reasons == {}
    assert len(found.analyses) == 18


def test_an_analysis_that_changes_nothing_is_not_counted() -> None:
    """With nominal features none of which is missing, and the cosine in the comparison itself."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice(list("ab"), 48) for name in ("kind", "shape", "place")})
    items = Stimuli.from_table(table)
    places = (table == "a").to_numpy(float) @ rng.normal(size=(3, 6))
    systems = {name: places + rng.normal(size=places.shape) for name in "abc"}
    grid = [
        Analysis("level", encoding={"missing": "level"}),
        Analysis("size", encoding={"ordered": "minmax"}),
        Analysis("conditional", encoding={"importance": "conditional"}),
        Analysis("conditional by cosine", encoding={"importance": "conditional", "distance": "cosine"}),
    ]
    found = compare(systems, items, distance="cosine", **QUICK).robustness(grid)
    assert [one.name for one in found.analyses] == ["as it was", "conditional"]
    assert found.left_out == {
        "level": "it is the same as 'as it was' here",
        "size": "it is the same as 'as it was' here",
        "conditional by cosine": "it is the same as 'conditional' here",
    }
    assert {one.n for one in found.support()} == {1, 2}  # by geometry only the comparison itself speaks


def test_the_comparison_itself_comes_first(found: Robustness, made: Comparison) -> None:
    assert found.analyses[0] is MAIN
    same_as(found, MAIN.name, made)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("cosine", {"distance": "cosine"}),
        ("whitened", {"distance": "whitened"}),
        ("conditional importance", {"importance": "conditional"}),
        ("Shapley values", {"importance": "shapley"}),
        ("with interactions", {"interactions": True, "alphas": STEADY}),
        ("missing is a level", {"missing": "level"}),
    ],
)
def test_an_analysis_is_a_comparison_with_that_choice(
    name: str, change: dict[str, Any], found: Robustness, made: Comparison, words: Stimuli
) -> None:
    again = compare(dict(made.activations or {}), words, **QUICK, **change)
    same_as(found, name, again, geometry="distance" in change)
    if "distance" not in change:  # the geometry is that of another analysis, and is counted once
        assert np.isnan(values(found, name, "rsa")).all()


def test_words_and_sentences_that_are_left_out(found: Robustness, made: Comparison, words: Stimuli) -> None:
    first = words.items.groupby("sentence")["start"].transform("min") == words.items["start"]
    kept = (~first).to_numpy()
    part = words.subset(kept)
    arrays = {name: {k: one[k][kept] for k in one.layers} for name, one in (made.activations or {}).items()}
    same_as(found, "no first words", compare(arrays, part, **QUICK))
    halves = [one for one in found.analyses if one.sentences in ("one half", "other half")]
    chosen = [set(words.items["sentence"][rereading.chosen_items(words, one)]) for one in halves]
    assert chosen[0] | chosen[1] == set(words.items["sentence"])
    assert not chosen[0] & chosen[1]
    assert len(chosen[0]) == len(chosen[1]) == 15


def test_what_rests_on_first_words_is_seen(plant: Plant) -> None:
    """A huge first word makes word position dominate; without first words part of speech does."""
    words = Stimuli.from_grammar(60, seed=0, grammar="salle2024")
    strengths = {"part_of_speech": 1.0, "number": 0.3}
    systems = {}
    for seed, name in enumerate("ab"):
        one = plant(words, name, strengths, n_layers=1, n_units=24, seed=seed)
        X = np.array(one[one.layers[0]])
        X[rereading.first_words(words)] += 40 * np.random.default_rng(seed).normal(size=24)
        systems[name] = X
    grid = [Analysis("no first words", words="not first")]
    tried = compare(systems, words, **QUICK).robustness(grid)
    assert tried.dominant == (("word_position",) * 2, ("part_of_speech",) * 2)
    assert [one.agree for one in tried.support()] == [1, 1]
    assert "a by word position in 1 of 2 (part of speech in 1)" in tried.answer


def test_texts_are_read_once_per_reading(
    words: Stimuli, tiny_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    systems = {name: str(tiny_models[f"tiny-{name}"]) for name in ("bert", "gpt2", "mamba")}
    made = compare(systems, words, **QUICK)
    read: list[tuple[str, dict[str, Any]]] = []
    original = rereading.read_again

    def counted(one: Activations, stimuli: Stimuli, changes: dict[str, Any]) -> Activations:
        read.append((one.system, dict(changes)))
        return original(one, stimuli, changes)

    monkeypatch.setattr(rereading, "read_again", counted)
    others = Stimuli.from_grammar(30, seed=1)
    grid = [
        Analysis("mean", reading={"pooling": "mean"}),
        Analysis("mean, cosine", encoding={"distance": "cosine"}, reading={"pooling": "mean"}),
        Analysis("others", sentences="others"),
        Analysis("others, cosine", encoding={"distance": "cosine"}, sentences="others"),
        Analysis("last", reading={"pooling": "last"}),
    ]
    found = made.robustness(grid, others=others)
    assert found.left_out == {}
    assert [one.name for one in found.analyses] == [MAIN.name, *(one.name for one in grid[:4])]
    assert read == [(name, {"pooling": "mean"}) for name in systems] + [(name, {}) for name in systems]
    same_as(found, "mean", compare(systems, words, extraction={"pooling": "mean"}, **QUICK))
    same_as(found, "others, cosine", compare(systems, others, distance="cosine", **QUICK))


def test_kept_with_the_run(words: Stimuli, made: Comparison, tmp_path: Path) -> None:
    systems = dict(made.activations or {})
    run = compare(systems, words, robustness=True, out=tmp_path / "run", **QUICK)
    assert run.tried is not None
    assert run.answer.sure.endswith(run.tried.answer)
    assert run.tried.answer in repr(run)
    again = Comparison.load(tmp_path / "run").tried
    assert again is not None
    pd.testing.assert_frame_equal(again.to_frame(), run.tried.to_frame())
    assert again.support() == run.tried.support()
    assert plain(again.as_dict()) == plain(run.tried.as_dict())
    saved = Robustness.load(run.tried.save(tmp_path / "alone"))
    assert plain(saved.as_dict()) == plain(run.tried.as_dict())
    assert (tmp_path / "run" / "tables" / "robustness.csv").exists()
    compare(systems, words, out=tmp_path / "run", **QUICK)  # without: what was there is not of this run
    assert not list((tmp_path / "run" / "tables").glob("robustness*"))
    assert Comparison.load(tmp_path / "run").tried is None


def test_the_curve_is_drawn(found: Robustness) -> None:
    spec = found.plot().to_dict()
    curve, dominance, choices = spec["vconcat"]
    drawn = [row for name in spec["datasets"] for row in spec["datasets"][name] if "pair" in row]
    assert len(drawn) == 3 * len(found.analyses)
    titles = [part["title"]["text"].split()[0] for part in (curve, dominance, choices)]
    assert titles == ["How", "What", "The"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda made: made.robustness([]), InvalidInput, "Got no analyses"),
        (lambda made: made.robustness([Analysis("x"), Analysis("x")]), InvalidInput, "are called 'x'"),
        (lambda made: made.robustness([Analysis(MAIN.name)]), InvalidInput, "are called 'as it was'"),
        (lambda _: Analysis("x", words="last"), UnknownName, "no choice of words 'last'"),
        (lambda _: Analysis("x", sentences="new"), UnknownName, "no choice of sentences 'new'"),
    ],
)
def test_refused(
    call: Callable[[Comparison], Any], error: type[Exception], message: str, made: Comparison
) -> None:
    with pytest.raises(error, match=message):
        call(made)


def test_what_cannot_be_done_is_left_out_with_the_reason(made: Comparison) -> None:
    grid = [
        Analysis("wrong", encoding={"distance": "nonsense"}),
        Analysis("crossed", encoding={"distance": "crossnobis"}),
        Analysis("cosine", encoding={"distance": "cosine"}),
    ]
    found = made.robustness(grid)
    assert [one.name for one in found.analyses] == [MAIN.name, "cosine"]
    assert "no distance 'nonsense'" in found.left_out["wrong"]
    assert "takes repeated measurements" in found.left_out["crossed"]


def test_fits_that_did_not_converge_are_no_analysis(
    made: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three steps are too few for a full W; the analyses that are solved exactly stay."""
    monkeypatch.setattr(solvers, "PSD_MAX_ITERATIONS", 3)
    monkeypatch.setattr(solvers, "NEWTON_STEPS", 0)
    grid = [
        Analysis("with interactions", encoding={"interactions": True, "alphas": STEADY}),
        Analysis("Shapley values", encoding={"importance": "shapley"}),
    ]
    found = made.robustness(grid)
    assert [one.name for one in found.analyses] == [MAIN.name, "Shapley values"]
    assert "stopped after 3 steps" in found.left_out["with interactions"]
