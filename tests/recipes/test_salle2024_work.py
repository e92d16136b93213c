"""The work of salle2024: what is kept, what is said, interactions, and the figures of a small comparison."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr

import thinkalike as ta
from tests.recipes.planted_tables import DOWN, NOTHING, UP, Planted, ranked
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.comparison import Comparison
from thinkalike.encoding.interactions import compare_interactions
from thinkalike.errors import InvalidInput
from thinkalike.recipes.findings import Figure
from thinkalike.recipes.salle2024 import SCALES, beyond, figures, measures
from thinkalike.recipes.salle2024.experiment import NO_GRID, NOBODY, judged, reading, run
from thinkalike.recipes.salle2024.measures import Cast
from thinkalike.recipes.salle2024.observing import Observation, observe
from thinkalike.recipes.salle2024.other_analyses import _differs, tried
from thinkalike.recipes.salle2024.sets import NATURAL, PAPER
from thinkalike.recipes.salle2024.work import Work, _plain_copy
from thinkalike.recipes.steps import Steps

SMALL = replace(
    NOTHING, transformers=("a", "b"), state_space=None, sets=2, sentences=12, interaction_layers=1
)


@pytest.fixture(scope="module")
def words() -> ta.Stimuli:
    return ta.Stimuli.from_grammar(12, seed=0, grammar="salle2024")


def activations(words: ta.Stimuli, name: str, seed: int) -> ta.Activations:
    """Three layers of noise in which the position of a word grows with the depth."""
    rng = np.random.default_rng(seed)
    position = pd.get_dummies(words.features["word_position"]).to_numpy(np.float64)
    layers = {k: rng.normal(size=(len(words), position.shape[1])) + 2 * k * position for k in range(4)}
    return ta.Activations.from_arrays(layers, system=name, stimuli=words)


class Shown(Work):
    """Arrays in the place of models; whoever is read is noted."""

    read: list[tuple[str, int]] = []  # noqa: RUF012

    def identities(self, models: Any) -> dict[str, str]:
        return {model: f"weights of {model}" for model in models}

    def shown(self, model: str, stimuli: ta.Stimuli, **reading: Any) -> ta.Activations:
        self.read.append((model, len(stimuli)))
        return activations(stimuli, model, "ab".index(model))


@pytest.fixture
def work(tmp_path: Path) -> Shown:
    Shown.read.clear()
    return Shown(SMALL, Steps(tmp_path))


class TestWork:
    def test_an_observation_is_made_once_for_each_set(self, work: Shown, words: ta.Stimuli) -> None:
        first = work.observation(words)
        assert [model for model, _ in work.read] == ["a", "b"]
        again = work.observation(words)
        assert len(work.read) == 2
        np.testing.assert_array_equal(first.geometry, again.geometry)
        pd.testing.assert_frame_equal(first.tables["b"], again.tables["b"])
        expected = observe([activations(words, "a", 0), activations(words, "b", 1)], words, **work.encoding)
        np.testing.assert_allclose(first.geometry, expected["geometry"])
        other = Shown(replace(SMALL, seed=1), work.steps)
        other.observation(words)
        assert len(work.read) == 4  # another seed of the encoding models is another step

    def test_a_table_read_in_another_way_is_kept_under_its_own_name(
        self, work: Shown, words: ta.Stimuli
    ) -> None:
        own = work.table("a", words)
        other = work.table("a", words, show=lambda: activations(words, "a", 7), variant="another seed")
        assert not np.allclose(own, other)
        assert work.read == [("a", len(words))]

        def fail() -> ta.Activations:
            raise AssertionError("kept already")

        pd.testing.assert_frame_equal(work.table("a", words, show=fail, variant="another seed"), other)
        pd.testing.assert_frame_equal(work.table("a", words, show=fail), own)
        expected = ta.profile(activations(words, "a", 0), words, **work.encoding).table()
        np.testing.assert_allclose(own, expected.dropna(axis=1))

    def test_draws_are_one_for_each_set(self, work: Shown) -> None:
        sets = work.sets(PAPER)
        assert len(sets) == 2
        found = work.draws("lengths", lambda k, stimuli: {"n": float(len(stimuli)), "k": float(k)})
        assert found == [{"n": float(len(one)), "k": float(k)} for k, one in enumerate(sets)]

    def test_weights_of_a_quantised_model_are_copied_into_a_plain_one(self) -> None:
        from transformers import GPT2Config, GPT2Model

        model = GPT2Model(
            GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=20, bos_token_id=1, eos_token_id=1)
        )
        model.config.quantization_config = {"quant_method": "gguf"}
        plain = _plain_copy(cast("Any", model))
        assert not hasattr(plain.config, "quantization_config")
        assert model.config.quantization_config  # the given one is left as it is
        for name, weight in model.state_dict().items():
            assert torch.equal(plain.state_dict()[name], weight)


class TestInteractions:
    def test_gains_are_of_the_last_layers_and_kept(self, work: Shown) -> None:
        found = beyond._interactions(work)
        for effect in found.effects:
            gains = []
            for stimuli in work.sets(PAPER):
                shown = activations(stimuli, effect.about, "ab".index(effect.about))
                one = compare_interactions(stimuli, shown[3], alpha=beyond.ALPHA, seed=0)
                gains.append(one.full.mean() - one.diagonal.mean())
            assert effect.value == pytest.approx(np.median(gains))
        assert found.verdict == "undecided"  # two sets have no range
        n = len(work.read)
        beyond._interactions(work)
        assert len(work.read) == n

    def test_they_can_be_left_out(self, work: Shown) -> None:
        without = Shown(replace(SMALL, interaction_layers=0), work.steps)
        assert beyond._interactions(without).found == "Not looked at here."
        assert work.read == []


class TestExperiment:
    def test_one_model_is_refused(self, tmp_path: Path) -> None:
        alone = replace(SCALES["smoke"], transformers=("nano-gpt2",), state_space=None)
        with pytest.raises(InvalidInput, match="salle2024 compares models: name two or more"):
            run(alone, tmp_path)
        assert not list(tmp_path.iterdir())

    def test_analyses_that_contradict_leave_a_verdict_undecided(self) -> None:
        led, other = ranked("part_of_speech"), ranked("number")
        usual, contrary = (dict.fromkeys(("bert", "gpt2", "mamba"), one) for one in (led, other))
        work = cast("Work", Planted(tables=usual))
        seen = [Observation(usual, np.eye(12), 0.0, {})] * NOTHING.sets
        same, against = (Observation(tables, np.eye(12), 0.0, {}) for tables in (usual, contrary))
        assert judged("pos leads", work, seen).verdict == "agrees"
        grid = {"one": same, "two": against, "three": against}
        found = judged("pos leads", work, seen, grid)
        assert (found.verdict, found.sensitivity and found.sensitivity.share) == ("undecided", 1 / 3)
        assert judged("pos leads", work, seen, {"one": same, "two": against}).verdict == "agrees"

    def test_nothing_is_said_of_mamba_where_there_is_none(self) -> None:
        settings = replace(NOTHING, state_space=None)
        work = cast("Work", Planted(settings, {"bert": UP, "gpt2": DOWN}))
        seen = [Observation({"bert": UP, "gpt2": DOWN}, np.eye(8), 0.0, {})] * NOTHING.sets
        for name in ("pos at the ends", "position rises", "two blocks", "most alike models", "architecture"):
            found = judged(name, work, seen)
            assert (found.verdict, found.found) == ("cannot be tested", NOBODY)

    def test_a_model_of_few_blocks_has_no_ends_and_no_step(self) -> None:
        cast_ = Cast((), "mamba")
        for layers, known in ((2, False), (3, True)):  # one and two blocks
            seen = Observation({"mamba": ranked("word_position", layers=layers)}, np.eye(layers), 0.0, {})
            assert measures.pos_at_the_ends(seen, cast_) == {}
            assert bool(measures.position_rises(seen, cast_)) == known

    def test_what_was_shown_is_said(self, tmp_path: Path) -> None:
        work = Planted(replace(NOTHING, sets=3, sentences=24, analyses=True))
        said = reading(cast("Work", work), {PAPER: []})
        assert said.startswith("3 sets of 24 sentences of the probing grammar, shown to bert, gpt2, mamba.")
        assert not said.endswith(NO_GRID)
        assert reading(cast("Work", Planted()), {PAPER: []}).endswith(NO_GRID)

        class Natural(Planted):
            def sets(self, kind: str, treebank: str | None = None) -> list[Any]:
                return [Sentences(["x", "x", "y"]), Sentences(["z"])]

        class Sentences(list[str]):
            @property
            def items(self) -> pd.DataFrame:
                return pd.DataFrame({"sentence": list(self)})

        natural = Natural(replace(NOTHING, treebank=str(tmp_path / "bank.conllu"), sets=2))
        said = reading(cast("Work", natural), {PAPER: [], NATURAL: []})
        assert "Natural text: 3 sentences of bank.conllu, 4 words in 2 sets." in said


class TestAnalyses:
    def test_without_the_grid_none_is_tried(self, work: Shown) -> None:
        assert tried(work) == {}
        assert work.read == []

    @pytest.mark.parametrize(
        ("change", "differs"),
        [
            ({"encoding": {"distance": "euclidean"}}, False),
            ({"encoding": {"distance": "cosine"}}, True),
            ({"reading": {"pooling": "last"}}, False),  # as words are read anyway
            ({"reading": {"pooling": "first"}}, True),
            ({"words": "not first"}, True),
            ({"sentences": "others"}, True),
            ({}, False),
        ],
    )
    def test_what_is_another_analysis(self, change: dict[str, Any], differs: bool) -> None:
        one = SimpleNamespace(
            **{"encoding": {}, "reading": {}, "words": "all", "sentences": "these", **change}
        )
        assert _differs(cast("Any", one), {"distance": "euclidean"}) == differs


@pytest.fixture(scope="module")
def comparison(words: ta.Stimuli) -> Comparison:
    systems = {name: activations(words, name, k) for k, name in enumerate("ab")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)
        return ta.compare(systems, words, resamples=0)


@pytest.fixture(scope="module")
def drawn(comparison: Comparison) -> dict[str, Figure]:
    seen = {PAPER: [Observation({"a": UP, "b": DOWN}, np.eye(8), 0.0, {})]}
    work = SimpleNamespace(comparison=lambda: comparison, settings=SMALL, cast=Cast(("a", "b")))
    return {figure.name: figure for figure in figures.draw(cast("Work", work), seen)}


def tables(figure: Figure, *columns: str) -> list[list[dict[str, Any]]]:
    """Those behind a figure that have these columns."""
    datasets = cast("dict[str, list[dict[str, Any]]]", figure.spec["datasets"])
    return [table for table in datasets.values() if set(columns) <= set(table[0])]


class TestFigures:
    def test_all_figures_of_the_paper_are_drawn(self, drawn: dict[str, Figure]) -> None:
        assert list(drawn) == [
            "leaders", "similarity", "kruskal", "profiles", "words-by-position", "most-alike", "least-alike",
            "correlations",
        ]  # fmt: skip
        shown = {figure.of_paper for figure in drawn.values()}
        assert shown == {"", "Figure 2", "Figure 3", "Figure 4", "Figure S5"}

    def test_similarity_is_shown_by_features_and_by_geometry(
        self, comparison: Comparison, drawn: dict[str, Figure]
    ) -> None:
        cells = tables(drawn["similarity"], "i", "j", "value")
        for measure, table in zip(("features", "rsa"), cells, strict=True):
            found = {(row["a"], row["b"]): row["value"] for row in table}
            expected = comparison.matrices[measure].values
            assert found["a:1", "b:2"] == pytest.approx(expected[1, 6])
            assert len(found) == 64
        places = tables(drawn["similarity"], "x", "y")
        for measure, table in zip(("features", "rsa"), places, strict=True):
            x = comparison.layer_maps[measure].coordinates[:, 0]
            np.testing.assert_allclose(np.diff([row["x"] for row in table]), np.diff(x))  # wherever it lies

    def test_kruskals_map_keeps_the_order_of_distances(
        self, comparison: Comparison, drawn: dict[str, Figure]
    ) -> None:
        for measure, table in zip(("features", "rsa"), tables(drawn["kruskal"], "x", "y"), strict=True):
            ours, theirs = comparison.layer_maps[measure], figures.kruskal_map(comparison, measure)
            assert theirs.rows == ours.rows
            x = [row["x"] for row in table]
            np.testing.assert_allclose(np.diff(x), np.diff(theirs.coordinates[:, 0]))
            i, j = np.triu_indices(len(ours.rows), k=1)
            apart = 1 - comparison.matrices[measure].values[i, j]

            def order(points: np.ndarray, i: Any = i, j: Any = j, apart: Any = apart) -> float:
                return float(spearmanr(np.linalg.norm(points[i] - points[j], axis=1), apart).statistic)

            assert order(theirs.coordinates) > order(ours.coordinates) - 0.02
            assert 0 <= theirs.stress < ours.stress

    def test_profiles_carry_every_importance_and_score(
        self, comparison: Comparison, drawn: dict[str, Figure]
    ) -> None:
        importances, scores = (tables(drawn["profiles"], column) for column in ("importance", "score"))
        assert len(importances) == len(scores) == 2
        for profile, table in zip(comparison.profiles.values(), importances, strict=True):
            found = {(row["layer"], row["feature"]): row["importance"] for row in table}
            expected = profile.table().dropna(axis=1)
            assert len(found) == expected.size
            for layer, feature in ((3, "word_position"), (0, "number")):
                own = found[str(layer), feature.replace("_", " ")]
                assert own == pytest.approx(float(cast("Any", expected.loc[layer, feature])))

    def test_words_are_coloured_by_position_in_a_low_and_a_high_layer(
        self, comparison: Comparison, drawn: dict[str, Figure]
    ) -> None:
        low, high = tables(drawn["words-by-position"], "x", "y")
        assert "of b, by" in drawn["words-by-position"].title  # without a state-space model, of the last
        assert [row["x"] for row in low] != [row["x"] for row in high]
        position = comparison.stimuli.features["word_position"].astype(float).tolist()
        shades = np.array([[row["value"] for row in table] for table in (low, high)])
        assert len(shades[0]) == len(position)
        assert spearmanr(shades[0], position).statistic == pytest.approx(1.0)
        np.testing.assert_array_equal(*shades)

    @pytest.mark.parametrize("name", ["most-alike", "least-alike"])
    def test_a_pair_is_named_and_its_likeness_said(
        self, name: str, comparison: Comparison, drawn: dict[str, Figure]
    ) -> None:
        taus, rows = comparison.matrices["features"].values, comparison.rows
        blocks = [(i, j) for i in (1, 2, 3) for j in (5, 6, 7)]  # of different models, no embeddings
        place = (max if name == "most-alike" else min)(blocks, key=lambda pair: taus[pair])
        assert figures.extremes(comparison)[name == "least-alike"] == place
        (a, i), (b, j) = (rows[k] for k in place)
        assert drawn[name].title.endswith(f": {a}:{i} and {b}:{j}")
        said = f"{taus[place]:z.2f}".replace("-", "−")
        assert drawn[name].caption.startswith(f"τ_w = {said} on the first set")
        ((*points,),) = tables(drawn[name], "feature", "a", "b")
        table = comparison.profiles[a].table()
        own = {row["feature"]: row["a"] for row in points}
        assert own["word position"] == pytest.approx(float(cast("Any", table.loc[i, "word_position"])))

    def test_correlations_are_those_of_the_features(
        self, comparison: Comparison, drawn: dict[str, Figure]
    ) -> None:
        (table,) = tables(drawn["correlations"], "a", "b", "correlation")
        names = list(comparison.correlations)
        assert len(table) == len(names) * (len(names) - 1) / 2
        for row in table:
            a, b = (row[end].replace(" ", "_") for end in "ab")
            assert row["correlation"] == pytest.approx(float(cast("Any", comparison.correlations.loc[a, b])))
