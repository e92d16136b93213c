"""salle2024-causal part by part: one set as a model sees it, what is kept, edges of verdicts, figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.recipes.effects import median_range
from thinkalike.recipes.findings import Statement
from thinkalike.recipes.salle2024_causal import SCALES, experiment, figures
from thinkalike.recipes.salle2024_causal.experiment import (
    Reader,
    beside_control,
    judge,
    measure,
    run,
    statements_on,
)
from thinkalike.recipes.salle2024_causal.removal import Directions
from thinkalike.recipes.salle2024_causal.rules import RULES
from thinkalike.recipes.steps import Steps
from thinkalike.stimuli.minimal_pairs import minimal_pairs
from thinkalike.systems.likelihood import causal_log_probabilities
from thinkalike.systems.stack import layers_of
from training.likelihood import sentence_log_probability

SMALL = replace(SCALES["smoke"], models=("nano-gpt2",), features=("number", "tense"), sentences=16)


@pytest.fixture(scope="module")
def reader() -> Reader:
    return experiment._open("nano-gpt2", SMALL)


@pytest.fixture(scope="module")
def rows(reader: Reader) -> pd.DataFrame:
    return pd.DataFrame(reader.observe(0))


class TestReader:
    def test_layers_are_at_shares_of_the_depth_and_no_embeddings(self, reader: Reader) -> None:
        depth = len(reader.model.transformer.h)  # type: ignore[union-attr, arg-type]
        at = [
            replace(reader, settings=replace(SMALL, depths=depths)).layers for depths in ((0.0, 0.01), (1.0,))
        ]
        assert at == [[1], [depth]]
        halves = replace(reader, settings=replace(SMALL, depths=(0.5, 0.5, 1.0))).layers
        assert halves == [round(depth / 2), depth]

    def test_sets_read_other_parts_of_the_text(self, reader: Reader) -> None:
        first, second = reader.passages(0), reader.passages(1)
        assert first.shape == (SMALL.passages, SMALL.length)
        assert not {tuple(one) for one in first} & {tuple(one) for one in second}
        np.testing.assert_array_equal(first, reader.passages(0))

    def test_too_little_text_is_refused_before_any_set_lacks_it(self, reader: Reader, tmp_path: Path) -> None:
        short = tmp_path / "short.txt"
        short.write_text("The king went home.\n\nThe queen did not.\n")
        few = replace(reader, settings=replace(SMALL, text=str(short), length=4, passages=3, sets=9))
        with pytest.raises(
            InvalidInput, match=r"short\.txt has \d passages of 4 tokens, too few for 9 sets of 3"
        ):
            few.passages(0)

    def test_there_is_a_row_for_every_layer_and_feature(self, reader: Reader, rows: pd.DataFrame) -> None:
        assert list(zip(rows["layer"], rows["feature"], strict=True)) == [
            (layer, feature) for layer in reader.layers for feature in SMALL.features
        ]
        assert (rows["directions"] >= 1).all()
        kinds = ("own", "without", "random")
        columns = [f"{what} {kind}" for what in ("loss", "preference", "right") for kind in kinds]
        assert set(columns) <= set(rows)
        for what in ("loss", "preference", "right"):
            assert len(set(rows[f"{what} own"])) == 1  # an unchanged model knows of no layer and no feature

    def test_the_models_own_loss_and_preference_are_those_of_whole_passes(
        self, reader: Reader, rows: pd.DataFrame
    ) -> None:
        model, tokenizer = cast("Any", reader.model), reader.tokenizer
        scores = [causal_log_probabilities(model, passage) for passage in reader.passages(0)]
        assert rows["loss own"][0] == pytest.approx(-np.mean(np.concatenate(scores)), abs=1e-4)
        pairs = minimal_pairs(SMALL.pairs, 0, "agreement")
        margins = [
            sentence_log_probability(model, tokenizer, right)
            - sentence_log_probability(model, tokenizer, wrong)
            for right, wrong in pairs
        ]
        assert rows["preference own"][0] == pytest.approx(np.mean(margins), abs=1e-3)
        assert rows["right own"][0] == np.mean(np.array(margins) > 0)

    def test_outcomes_belong_to_the_feature_that_is_taken_out(self, reader: Reader) -> None:
        """One has no direction at all, so nothing can change without it; one takes out all, one a little."""
        from thinkalike.recipes.salle2024_causal.changed_states import ask_sentences, ask_text

        width = reader.model.config.n_embd  # type: ignore[union-attr]
        nothing = Directions(np.zeros(width), np.zeros((width, 0)))
        everything = Directions(np.zeros(width), np.eye(width))
        text = ask_text(reader.passages(0)[:1], reader.tokenizer, masked=False, seed=0)
        sentences = ask_sentences(["the king comes", "the king come"], reader.tokenizer, masked=False)
        rng = np.random.default_rng(0)
        few = Directions(np.zeros(width), np.linalg.qr(np.random.default_rng(1).normal(size=(width, 9)))[0])
        made = {"none": nothing, "all": everything, "few": few}
        found = reader._outcomes(1, made, text, sentences, rng)
        for what in ("loss", "preference", "right"):
            assert found["none"][f"{what} without"] == found["none"][f"{what} own"]
            assert found["none"][f"{what} random"] == found["none"][f"{what} own"]
        assert found["all"]["loss without"] > found["all"]["loss own"] + 1
        stack = layers_of(reader.model)
        again = text.log_probabilities(reader.model, stack, 1, [few.removed])[0].sum() / text.where.sum()
        assert found["few"]["loss without"] == pytest.approx(-again, abs=1e-5)
        right, wrong = sentences.log_probabilities(reader.model, stack, 1, [few.removed])[0]
        assert found["few"]["preference without"] == pytest.approx(right - wrong, abs=1e-4)
        assert abs(found["few"]["loss random"] - found["few"]["loss without"]) > 1e-3
        state = torch.ones(2, width)
        torch.testing.assert_close(everything.removed(state), torch.zeros(2, width))


class TestMeasure:
    def test_each_set_is_kept_and_follows_the_text(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[int] = []

        def observe(self: Reader, number: int) -> list[dict[str, Any]]:
            asked.append(number)
            return [{"set": number, "layer": 1, "feature": "number"}]

        monkeypatch.setattr(Reader, "observe", observe)
        text = tmp_path / "text.txt"
        text.write_text("one")
        settings, steps = replace(SMALL, text=str(text)), Steps(tmp_path / "run")
        table = measure(settings, steps)
        assert table.to_dict("records") == [
            {"model": "nano-gpt2", "set": number, "layer": 1, "feature": "number"} for number in range(2)
        ]
        measure(settings, steps)
        assert asked == [0, 1]
        measure(replace(settings, sets=3), steps)
        assert asked == [0, 1, 2]
        text.write_text("two")  # other words at the same place
        measure(settings, steps)
        assert asked == [0, 1, 2, 0, 1]

    def test_models_that_are_not_bundled_are_named_before_anything_is_done(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="salle2024-causal needs the bundled model nano-none"):
            run(replace(SMALL, models=("nano-none",)), tmp_path)


def table(*, sets: int = 8, features: tuple[str, ...] = ("number", "tense"), **columns: Any) -> pd.DataFrame:
    """Two models at two layers; all of it 1 and 0 unless said otherwise."""
    keys = [
        {"model": model, "set": number, "layer": layer, "feature": feature}
        for model in "ab"
        for number in range(sets)
        for layer in (1, 2)
        for feature in features
    ]
    frame = pd.DataFrame(keys).assign(importance=1.0, directions=1)
    for what in ("loss", "preference", "right"):
        for kind in ("own", "without", "random"):
            frame[f"{what} {kind}"] = 1.0
    return frame.assign(**columns)


def statement(rows: pd.DataFrame, name: str) -> Statement:
    made = statements_on(beside_control(rows))
    return next(one for one in made if one.rule is RULES[name])


class TestJudge:
    def test_effects_are_means_over_layers_and_medians_over_sets(self) -> None:
        rng = np.random.default_rng(0)
        rows = table()
        rows["loss without"] = rng.normal(size=len(rows))
        found = statement(rows, "tense")
        for effect in found.effects:
            own = rows[(rows["model"] == effect.about) & (rows["feature"] == "tense")]
            by_set = [own.loc[own["set"] == k, "loss without"].mean() - 1.0 for k in range(8)]
            assert effect.value == pytest.approx(np.median(by_set))
            assert (effect.low, effect.high) == pytest.approx(median_range(np.array(by_set)))
            assert found.numbers[f"{effect.about}, loss without"] == pytest.approx(own["loss without"].mean())

    def test_one_set_decides_nothing(self) -> None:
        found = statement(table(sets=1, **{"loss without": 9.0}), "number")
        assert found.verdict == "undecided"
        assert {effect.over for effect in found.effects} == {"1 sets of sentences"}

    def test_one_model_that_does_not_show_it_refutes_it(self) -> None:
        rows = table(**{"loss without": 2.0})
        assert statement(rows, "number").verdict == "agrees"
        rows.loc[rows["model"] == "b", "loss without"] = 1.0
        assert statement(rows, "number").verdict == "differs"

    def test_tense_must_cost_less_than_number_in_the_same_layer_and_set(self) -> None:
        rows = table()
        number = rows["feature"] == "number"
        rows["preference without"] = np.where(number, 0.2, 0.6) - 0.1 * rows["layer"]
        found = statement(rows, "number alone")
        assert [effect.value for effect in found.effects] == pytest.approx([0.4, 0.4])
        assert found.verdict == "agrees"
        assert statement(rows, "agreement").effects[0].value == pytest.approx(1 - 0.2 + 0.15)

    def test_features_that_were_not_taken_out_have_no_statement_or_say_nothing(self) -> None:
        without = table(features=("number",))
        claims = [one.rule for one in statements_on(beside_control(without))]
        assert claims == [RULES[name] for name in ("number", "order", "agreement", "number alone")]
        assert statement(without, "number alone").verdict == "cannot be tested"
        assert statement(without, "number alone").found == "It takes number and tense."
        assert statement(table(features=("tense",)), "agreement").found == "It takes number."

    def test_equal_importances_have_no_order(self) -> None:
        rng = np.random.default_rng(0)
        flat = table(**{"loss without": rng.random(64)})
        found = statement(flat, "order")
        assert (found.verdict, found.found) == ("cannot be tested", "Importances or losses do not differ.")
        rising = flat.assign(importance=flat["loss without"])
        assert statement(rising, "order").verdict == "agrees"
        assert statement(rising.assign(importance=-flat["loss without"]), "order").verdict == "differs"
        one_known = rising.assign(importance=np.where(rising["model"] == "a", rising["importance"], 1.0))
        assert [effect.about for effect in statement(one_known, "order").effects] == ["a"]

    def test_the_table_has_means_over_sets(self) -> None:
        rows = table(**{"loss without": np.arange(64.0)})
        (means,) = judge(rows, SMALL).tables
        own = means.frame.set_index(["model", "layer", "feature"]).loc[("b", 2, "tense")]
        chosen = rows[(rows["model"] == "b") & (rows["layer"] == 2) & (rows["feature"] == "tense")]
        assert own["loss without"] == chosen["loss without"].mean()
        assert own["rise"] == pytest.approx(chosen["loss without"].mean() - 1)
        assert "set" not in means.frame


class TestFigures:
    def test_ranges_are_above_the_models_own(self) -> None:
        rng = np.random.default_rng(0)
        rows = table(
            **{"loss own": rng.random(64), "loss without": rng.random(64), "loss random": rng.random(64)}
        )
        found = figures._ranges(rows, "loss").set_index(["model", "layer", "feature", "kind"])
        assert len(found) == 2 * 2 * 2 * 2
        chosen = rows[(rows["model"] == "a") & (rows["layer"] == 2) & (rows["feature"] == "number")]
        for kind, said in (("without", "the feature"), ("random", "random directions")):
            above = (chosen[f"loss {kind}"] - chosen["loss own"]).to_numpy()
            row = found.loc[("a", 2, "number", said)]
            assert row["value"] == pytest.approx(np.median(above))
            assert (row["low"], row["high"]) == pytest.approx((above.min(), above.max()))  # of eight

    def test_too_few_sets_are_dots_without_lines(self) -> None:
        found = figures._ranges(table(sets=2, **{"loss without": np.arange(16.0)}), "loss")
        assert (found["low"] == found["value"]).all()
        assert (found["high"] == found["value"]).all()

    def test_every_model_has_a_panel(self) -> None:
        rows = table(features=("number", "part_of_speech")).assign(rise=np.arange(64.0))
        loss, agreement, importance = figures.causal_figures(rows)
        assert [one.name for one in (loss, agreement, importance)] == ["loss", "agreement", "importance"]
        for figure in (loss, agreement, importance):
            figure.chart.to_dict()  # valid Vega-Lite
            assert [panel["title"] for panel in cast("Any", figure.spec)["hconcat"]] == ["a", "b"]
        points = [row for data in cast("Any", importance.spec)["datasets"].values() for row in data]
        assert {row["feature"] for row in points} == {"number", "part of speech"}
        expected = rows.groupby(["model", "layer", "feature"])["rise"].mean()
        assert sorted(row["rise"] for row in points) == sorted(expected)
