"""salle2026 part by part: facts about models, ranks of distances, what a run needs, tables and figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.stats import rankdata

import thinkalike as ta
from thinkalike.errors import InvalidInput, ModelError
from thinkalike.populations.between_models import Distances
from thinkalike.recipes.places import of_every
from thinkalike.recipes.salle2026 import SCALES, experiment, figures
from thinkalike.recipes.salle2026.measures import MEASURES, Seen
from thinkalike.recipes.salle2026.rules import BEYOND_RULES, PAPER_RULES
from thinkalike.recipes.salle2026.work import FACTS, Observation, Work, drawn, ranks_of, without_embeddings
from thinkalike.recipes.steps import Steps

NAMES = tuple(f"m{k}" for k in range(10))


def seen(seed: int = 0, **facts: Any) -> Seen:
    """Ten models of two families that are far apart, 2 or 3 blocks each."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "family": ["f", "g"] * 5,
            "parameters": 10 ** rng.uniform(6, 9, 10),
            "tokens": 10 ** rng.uniform(9, 12, 10),
        },
        index=list(NAMES),
    ).assign(**facts)
    centre = {"f": rng.normal(size=4), "g": 5 + rng.normal(size=4)}
    importance = tuple(
        centre["fg"[k % 2]] + 0.2 * rng.normal(size=(2 + k % 3 // 2, 5, 4)) for k in range(len(NAMES))
    )
    observation = Observation(NAMES, tuple("abcd"), importance, rng.normal(size=(10, 50)).astype(np.float32))
    return Seen(observation, table, permutations=19)


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    """Facts are looked up once."""
    return Steps(tmp_path_factory.mktemp("run"))


def working(steps: Steps, **changes: Any) -> Work:
    return Work(replace(SCALES["smoke"], **changes), steps)


class TestWork:
    def test_facts_of_bundled_models_are_of_their_cards(self, steps: Steps) -> None:
        found = working(steps).facts
        assert list(found.index) == list(SCALES["smoke"].models)
        assert set(found) <= set(FACTS)
        assert "date" not in found  # it is not known of all
        assert found.loc["nano-gelu-3l", "depth"] == 3
        tokens = found.loc[["nano-pythia-64@step250", "nano-pythia-64@step1000", "nano-pythia-64"], "tokens"]
        assert tokens.is_monotonic_increasing
        assert tokens.dtype.kind in "if"

    def test_a_table_of_facts_adds_and_replaces(self, steps: Steps, tmp_path: Path) -> None:
        models = SCALES["smoke"].models
        path = tmp_path / "facts.csv"
        rows = [f"{name},{2020 + k},my family" for k, name in enumerate(models)]
        path.write_text("\n".join(["model,date,family", *rows, "somebody,1999,else"]))
        found = working(steps, metadata=str(path)).facts
        assert list(found["date"]) == [2020 + k for k in range(len(models))]
        assert set(found["family"]) == {"my family"}
        assert found.loc["nano-gelu-3l", "depth"] == 3  # what the table has not stays
        path.write_text("\n".join(["model,date", *rows[:-1]]).replace(",my family", ""))
        assert "date" not in working(steps, metadata=str(path)).facts  # of one model it is not known

    def test_models_that_nobody_described_are_refused(self, steps: Steps) -> None:
        work = working(steps)
        with pytest.raises(InvalidInput, match=r"Nothing is known of somebody/model: give a table"):
            work._known("somebody/model")

    def test_features_that_one_model_lacks_are_left_out_of_all(self, steps: Steps) -> None:
        work = working(steps, models=("a", "b"), sentences=60)
        features = list(drawn("relative", 60, 0)[0].features)
        rng = np.random.default_rng(0)
        looked = [
            {"importance": rng.random((n, 5, len(features))), "geometry": rng.random(7)} for n in (2, 3)
        ]
        looked[1]["importance"][0, 2, 1] = np.nan
        found = work._observation("relative", 0, looked)
        assert list(found.features) == [name for k, name in enumerate(features) if k != 1]
        np.testing.assert_array_equal(found.importance[0], np.delete(looked[0]["importance"], 1, axis=2))
        assert [one.shape[0] for one in found.importance] == [2, 3]
        np.testing.assert_array_equal(found.geometry[1], looked[1]["geometry"])

    def test_blocks_alone_and_the_ranks_of_all_of_them_side_by_side(self) -> None:
        rng = np.random.default_rng(0)
        layers = {k: rng.normal(size=(9, 4)).astype(np.float32) for k in range(3)}
        given = ta.Activations.from_arrays(layers, system="m")
        blocks = without_embeddings(given)
        assert blocks.layers == (1, 2)
        np.testing.assert_array_equal(blocks[2], layers[2])
        assert without_embeddings(blocks) is blocks
        together = np.hstack([layers[1], layers[2]])
        expected = rankdata(pdist(together, "sqeuclidean"))
        np.testing.assert_allclose(ranks_of(blocks), expected - expected.mean(), rtol=1e-6)

    def test_models_that_cannot_be_had_are_all_named_and_the_others_looked_at(self) -> None:
        looked = []

        def look(name: str) -> str:
            looked.append(name)
            if name in "bd":
                raise ModelError(f"no {name} here")
            return name.upper()

        assert of_every(["a", "c"], look) == ["A", "C"]
        with pytest.raises(
            ModelError, match=r"^2 of 4 models cannot be had: b, d\..*Of the first: no b here$"
        ):
            of_every(["a", "b", "c", "d"], look)
        assert looked == ["a", "c", "a", "b", "c", "d"]


class TestStatements:
    def test_models_of_one_family_or_each_of_its_own_are_not_apart(self) -> None:
        assert MEASURES["families apart"](seen())[""] > 0.5
        assert MEASURES["families apart"](seen(family="f")) == {}
        assert MEASURES["families apart"](seen(family=list(NAMES))) == {}
        without = replace(seen(), facts=seen().facts.drop(columns="family"))
        assert MEASURES["families apart"](without) == MEASURES["cohort"](without) == {}

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("date", "Nothing is known of dates."),
            ("class", "The facts that it is about do not differ among these models."),
            ("stimuli", "The facts that it is about do not differ among these models."),
        ],
    )
    def test_what_is_not_known_cannot_be_tested(self, name: str, words: str) -> None:
        found = experiment.judged(name, [seen()] * 6)
        assert (found.verdict, found.found) == ("cannot be tested", words)

    def test_with_dates_nothing_stands_for_them(self) -> None:
        dated = seen(date=np.linspace(2019, 2025, 10))
        assert (
            experiment.judged("development", [dated] * 6).found
            == "Dates are known, so nothing stands for them."
        )
        assert experiment.judged("date", [dated] * 6).verdict == "differs"  # the families lead

    def test_a_statement_is_over_sets_of_sentences(self) -> None:
        sets = [seen(k) for k in range(6)]
        found = experiment.judged("families apart", sets)
        values = [MEASURES["families apart"](one)[""] for one in sets]
        assert found.effects[0].value == pytest.approx(np.median(values))
        assert (found.effects[0].low, found.effects[0].high) == pytest.approx((min(values), max(values)))
        assert (found.verdict, found.rule) == ("agrees", BEYOND_RULES["families apart"])
        assert experiment.judged("families apart", sets[:1]).verdict == "undecided"  # one set has no range
        assert experiment.judged("scale", sets).verdict == "agrees"
        assert PAPER_RULES["scale"].at_most < 0


class TestTables:
    def test_reasons_are_of_the_first_set(self) -> None:
        first, second = seen(0), seen(1)
        frame = experiment.reasons([first, second]).frame
        assert dict(zip(frame["facts"], frame["importance"], strict=True)) == pytest.approx(first.importance)
        assert not {"low", "high"} & set(frame)

    def test_other_choices_are_told_from_the_main_one(self) -> None:
        one = replace(seen(), elsewhere=seen(3))
        found = experiment.other_choices(one)
        choices = found.rows.groupby("choice")["analysis"].unique().apply(list).to_dict()
        assert choices["main"] == ["relative clauses, warped"]
        assert choices["stimuli"] == ["clauses"]
        assert choices["distance"] == ["1 − mean τ_w", "geometry (RSA)"]
        assert "cohort" not in choices  # five models are left, too few
        table = experiment.leaders(found).frame
        assert set(table["same"]) <= {"yes", "no"}
        assert table.loc[table["choice"] == "main", "same"].tolist() == ["yes"]
        every = experiment.over_choices(found).frame
        assert (every["least"] <= every["most"]).all()
        without = experiment.other_choices(seen())
        assert "stimuli" not in set(without.rows["choice"])

    def test_what_is_read_and_what_is_not_known_is_said(self, steps: Steps) -> None:
        said = experiment.reading(working(steps))
        assert "1 sets of 80 sentences with relative clauses, shown to 9 models" in said
        assert said.endswith("Not known of all: date.")


class TestNeeds:
    def test_bundled_models_need_nothing_more(self) -> None:
        said = experiment.needs(SCALES["smoke"])
        assert said == "9 models, one in memory at a time, are each shown 2 sets of 80 sentences."

    @pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 2), ("float32", 4), ("unheard-of", 4)])
    def test_weights_are_counted_in_bytes_of_their_type(self, dtype: str, size: int) -> None:
        models = ("openai-community/gpt2-xl", "facebook/opt-13b", "nano-gpt2")
        said = experiment.needs(replace(SCALES["paper"], models=models, dtype=dtype))
        assert "3 models" in said
        assert (
            f"2 come from the hub or from --models: 14 billion parameters, about {14.5 * size:.0f} GB" in said
        )
        assert f"the largest {13 * size} GB" in said

    def test_those_left_out_are_not_counted(self) -> None:
        settings = replace(SCALES["paper"], leave_out=SCALES["paper"].models[1:])
        assert settings.compared == SCALES["paper"].models[:1]
        assert experiment.needs(settings).startswith("1 models")


class TestFigures:
    def rows(self, figure: Any) -> list[dict[str, Any]]:
        figure.chart.to_dict()  # valid Vega-Lite
        return [row for data in cast("Any", figure.spec)["datasets"].values() for row in data]

    def test_reasons_have_a_dot_for_every_set_and_kind_the_strongest_first(self) -> None:
        sets = [replace(seen(k), elsewhere=seen(k + 5)) for k in range(2)]
        drawn = [row for row in self.rows(figures.reasons(sets)) if "set" in row]
        found = {(row["fact"], row["kind"], row["set"]): row["importance"] for row in drawn}
        for k, one in enumerate(sets, start=1):
            for fact, value in one.importance.items():
                assert found[fact, "relative clauses", k] == pytest.approx(value)
        assert ("family", "clauses", 2) in found
        order = list(dict.fromkeys(row["fact"] for row in drawn))
        medians = [np.median([one.importance[fact] for one in sets]) for fact in order]
        assert order[0] == "family"
        assert medians == sorted(medians, reverse=True)

    def test_both_ways(self) -> None:
        values = squareform([1.0, 2.0, 3.0])
        frame = figures.both_ways(Distances("x", ("a", "b", "c"), values))
        found = {(row["a"], row["b"]): row["distance"] for row in frame.to_dict("records")}
        assert len(found) == 9
        assert found["a", "c"] == found["c", "a"] == 2.0

    def test_the_tree_merges_the_nearest_first(self) -> None:
        values = squareform([1.0, 5.0, 6.0, 4.0, 5.0, 2.0])  # a–b, then c–d, then both
        tree = figures.tree_of(Distances("x", tuple("abcd"), values))
        np.testing.assert_allclose(tree.merges[:, 2], [1.0, 2.0, 5.0])
        order = "".join(tree.order)
        assert {order[:2], order[2:]} <= {"ab", "ba", "cd", "dc"}

    def test_layers_are_beside_those_of_their_family(self) -> None:
        one = seen()
        drawn = [row for row in self.rows(figures.layers(one)) if {"a", "b", "value"} <= set(row)]
        labels = list(dict.fromkeys(row["a"] for row in sorted(drawn, key=lambda row: row["i"])))
        owners = [label.partition(":")[0] for label in labels]
        families = [one.facts.loc[name, "family"] for name in owners]
        assert families == sorted(families)
        means = dict(zip(NAMES, (own.mean(axis=1) for own in one.observation.importance), strict=True))
        found = {(row["a"], row["b"]): row["value"] for row in drawn}
        assert found["m2:3", "m0:1"] == pytest.approx(cdist(means["m2"], means["m0"])[2, 0])
        assert len(found) == sum(map(len, means.values())) ** 2

    def test_a_map_has_every_model_and_its_family(self) -> None:
        one = seen()
        places = [row for row in self.rows(figures.on_a_map(one)) if {"x", "y"} <= set(row)]
        assert {name for name in NAMES if any(name in row.values() for row in places)} == set(NAMES)
