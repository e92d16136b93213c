"""Who is trained, asked, chosen and measured: the recipe on generalisation step by step, on tiny models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.recipes.brown2023_generalization import SCALES, captions, experiment, figures
from thinkalike.recipes.brown2023_generalization.choice import GENERALIZING, HEURISTIC, Choice
from thinkalike.recipes.brown2023_generalization.classifier_cka import VARIANTS, Geometry, geometries
from thinkalike.recipes.brown2023_generalization.classifiers import ask, right_answers
from thinkalike.recipes.brown2023_generalization.data import MNLI_CLASSES, NANO_CLASSES, Pairs
from thinkalike.recipes.brown2023_generalization.identity import stitched_right
from thinkalike.recipes.brown2023_generalization.measured import LAST, Measured, measure
from thinkalike.recipes.brown2023_generalization.population import (
    PLANTED,
    SEEDS,
    Asked,
    Population,
    all_answers,
    paper_population,
)
from thinkalike.recipes.brown2023_generalization.trained import (
    INSIDE,
    READING,
    TRAINING,
    Course,
    fine_tuned_population,
)
from thinkalike.recipes.brown2023_generalization.verdicts import Groups, why_untested, widest
from thinkalike.recipes.effects import Effect
from thinkalike.recipes.findings import Statement
from thinkalike.recipes.steps import Steps
from thinkalike.streaming.over_text import stream_cka
from thinkalike.systems import bundled

SMALL = replace(
    SCALES["smoke"], base="tiny", reader_steps=0, n_train=12, steps=1, n_choosing=6, n_inside=8, n_outside=7
)
CHOICE = Choice(("0", "1"), (GENERALIZING, HEURISTIC))


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(bundled.resolve("nano-bert"), local_files_only=True)


def tiny(seed: int, n_classes: int = 2) -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(
        vocab_size=4096, max_position_embeddings=64, num_labels=n_classes, initializer_range=0.4, **sizes
    )
    torch.manual_seed(seed)
    return BertForSequenceClassification(config).eval()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    """A folder with one model to start from and four finished classifiers of three classes."""
    folder = tmp_path_factory.mktemp("models")
    tiny(9).save_pretrained(folder / "tiny")
    tokenizer.save_pretrained(folder / "tiny")
    for k in range(4):
        tiny(k, 3).save_pretrained(folder / "connectivity" / f"feather_berts_{k}")
    tiny(0).config.save_pretrained(folder / "bert-base-uncased")
    tokenizer.save_pretrained(folder / "bert-base-uncased")
    return folder


@pytest.fixture
def course(tokenizer: Any) -> Course:
    return Course(SMALL, tokenizer)


class TestCourse:
    def test_questions_that_choose_are_none_of_those_that_judge(self, course: Course) -> None:
        asked = course.asked()
        assert [len(part) for part in (asked.inside, asked.choosing, asked.outside)] == [8, 6, 7]
        assert not set(asked.choosing.pairs.texts) & set(asked.outside.pairs.texts)
        for part in (asked.choosing, asked.outside):
            assert set(part.pairs.labels) == {"non-entailment"}
            for premise, hypothesis in part.pairs.texts:
                assert set(hypothesis.split()) <= set(premise.split())
        assert asked.digest() == course.asked().digest()
        assert asked.digest() != Asked(asked.inside, asked.outside, asked.choosing).digest()

    def test_parts_and_seeds_are_drawn_apart(self, course: Course) -> None:
        drawn = [course.pairs(12, part, 0.1).texts for part in (TRAINING, INSIDE, READING)]
        other = Course(replace(SMALL, seed=1), course.tokenizer)
        drawn += [other.pairs(12, part, 0.1).texts for part in (TRAINING, INSIDE, READING)]
        assert len(set(drawn)) == 6

    def test_taught_models_see_as_many_counterexamples_as_is_said(self, course: Course) -> None:
        for share, n in ((0.0, 0), (0.25, 3), (0.5, 6)):
            pairs = course.training(share).pairs
            counter = [
                set(b.split()) <= set(a.split()) and label == "non-entailment"
                for (a, b), label in zip(pairs.texts, pairs.labels, strict=True)
            ]
            assert (sum(counter), pairs.labels.count("entailment")) == (n, 6)
        with pytest.raises(InvalidInput, match="Counterexamples are 75% of all pairs: at most half can be"):
            course.training(0.75)


def test_classifiers_start_from_a_model_of_the_folder_and_are_trained_once(
    models: Path, tmp_path: Path
) -> None:
    settings = replace(SMALL, models_folder=str(models))
    found = fine_tuned_population(settings, Steps(tmp_path))
    assert list(found.places) == [*(f"seed {k}" for k in range(4)), "taught 0", "taught 1"]
    assert set(found.choices) == {SEEDS, PLANTED}
    assert found.choices[PLANTED].of(GENERALIZING) in {("taught 0", "taught 1"), ("taught 1", "taught 0")}
    shares = {name: parts["choosing"].mean() for name, parts in found.right.items() if "seed" in name}
    best = found.choices[SEEDS].of(GENERALIZING)
    assert min(shares[name] for name in best) >= max(shares[name] for name in shares if name not in best)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    again = fine_tuned_population(settings, Steps(tmp_path))
    assert (again.key, again.choices) == (found.key, found.choices)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == written
    with pytest.raises(ModelError, match="elsewhere is not in"):
        fine_tuned_population(replace(settings, base="elsewhere"), Steps(tmp_path))


@pytest.fixture(scope="module")
def paper(
    models: Path, tmp_path_factory: pytest.TempPathFactory, tokenizer: Any
) -> tuple[Population, Any, Steps]:
    """The four finished classifiers on pairs in the files of the two data sets."""
    folder = tmp_path_factory.mktemp("paper")
    pairs = Course(SMALL, tokenizer).pairs(24, INSIDE, 0.25)
    rows = [
        {"premise": a, "hypothesis": b, "label": "entailment" if label == "entailment" else "neutral"}
        for (a, b), label in zip(pairs.texts, pairs.labels, strict=True)
    ]
    (folder / "mnli.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shifted = [{**row, "label": "non-entailment"} for row in rows]
    (folder / "hans.jsonl").write_text("\n".join(map(json.dumps, shifted)))
    settings = replace(
        SCALES["paper"], n_models=4, n_chosen=1, n_inside=20, n_choosing=9, n_outside=9, longest=24, sets=2,
        n_stitched=10, n_barriers=4, n_cka=8, cka_length=24, cka_batch=48, models_folder=str(models),
        mnli_file=str(folder / "mnli.jsonl"), hans_file=str(folder / "hans.jsonl"),
    )  # fmt: skip
    steps = Steps(folder / "run")
    return paper_population(settings, steps), settings, steps


class TestPaper:
    def test_models_are_chosen_by_questions_that_judge_nothing(self, paper: Any) -> None:
        found, settings, _ = paper
        assert [len(part) for part in (found.asked.inside, found.asked.choosing, found.asked.outside)] == [
            20,
            9,
            9,
        ]
        assert not set(found.asked.choosing.pairs.texts) & set(found.asked.outside.pairs.texts)
        assert list(found.choices) == [SEEDS]
        shares = {name: parts["choosing"].mean() for name, parts in found.right.items()}
        best, worst = found.choices[SEEDS].names
        assert shares[best] == max(shares.values())
        assert shares[worst] == min(shares.values())
        assert found.chosen == (best, worst)
        frame = found.accuracies().set_index("model")
        assert frame.loc[best, "choosing"] == shares[best]
        assert frame.loc[best, "inside"] == found.right[best]["inside"].mean()
        assert experiment._notes(found, settings)[0].startswith("Groups are chosen on 9 questions")
        assert len(experiment._notes(found, settings)) == 1  # nothing was trained here

    def test_answers_are_those_of_the_loaded_models_and_are_kept(self, paper: Any, tmp_path: Path) -> None:
        found, _, _ = paper
        model = found.load(device="cpu")[found.chosen[0]]
        np.testing.assert_array_equal(
            found.right[found.chosen[0]]["inside"], right_answers(model, found.asked.inside)
        )
        places, how = {"x": found.places["0"]}, {"tokenizer": found.tokenizer, "device": "cpu"}
        first = all_answers(places, found.asked, key={}, steps=Steps(tmp_path), **how)
        gone = {"x": found.places["0"] + "-moved"}
        with pytest.raises(ModelError):  # another place is another model
            all_answers(gone, found.asked, key={}, steps=Steps(tmp_path), **how)
        again = all_answers(places, found.asked, key={}, steps=Steps(tmp_path), **how)
        for part, right in first["x"].items():
            np.testing.assert_array_equal(right, again["x"][part])

    def test_everything_between_the_chosen_is_measured_set_by_set(self, paper: Any) -> None:
        found, settings, steps = paper
        measured = measure(found, settings, steps)
        assert measured.names == found.chosen
        np.testing.assert_allclose(measured.shares, [1 / 3, 2 / 3, 1])
        np.testing.assert_allclose(measured.last_shares, measured.shares[-LAST:])
        assert (measured.inside.shape, measured.outside.shape) == ((2, 3, 2, 2), (2, 2, 2, 2))
        assert {one.cka.shape for one in measured.geometry.values()} == {(2, 3, 2, 2)}
        models = found.load(device="cpu")
        second = stitched_right(models, found.asked.inside.first(10), slice(5, 10), (1, 2, 3))
        np.testing.assert_allclose(measured.inside[1], second)
        for k, name in enumerate(found.chosen):  # with itself it is itself
            own = found.right[name]["outside"]
            halves = [own[:4].mean(), own[4:].mean()]
            np.testing.assert_allclose(measured.outside[:, -1, k, k], halves)
        np.testing.assert_array_equal(measured.costs[:, :, [0, 1], [0, 1]], 0.0)
        again = measure(found, settings, steps)
        np.testing.assert_array_equal(again.barriers, measured.barriers)

    def test_cka_is_read_in_four_ways_by_set(self, paper: Any, tmp_path: Path) -> None:
        found, settings, _ = paper
        models, pairs = found.load(device="cpu"), found.asked.inside.pairs
        made = geometries(models, pairs, settings, tokenizer=found.tokenizer, key={}, steps=Steps(tmp_path))
        assert set(made) == set(VARIANTS)
        name, (site, padding) = list(VARIANTS.items())[-1]
        expected = stream_cka(
            models, pairs.texts[4:8], pack=False, batch="chunks", batch_size=48, average="ratio", length=24,
            padding=padding, site=site, tokenizer=found.tokenizer, device="cpu", seed=0,
        )  # fmt: skip
        a, b = found.chosen
        for block in (1, 2, 3):
            assert made[name].cka[1, block - 1, 0, 1] == pytest.approx(expected.block(a, b)[block, block])
        apart = np.sqrt(sum(np.arccos(made[name].cka[1, block, 0, 1]) ** 2 for block in range(3)))
        assert made[name].distances[1, 0, 1] == pytest.approx(apart)
        assert len({float(one.cka[0, 0, 0, 1]) for one in made.values()}) == 4


class TestChosen:
    def test_pairs_that_stand_in_no_choice_together_are_not_wanted(self) -> None:
        groups = (GENERALIZING, HEURISTIC)
        choices = {SEEDS: Choice(("a", "z"), groups), PLANTED: Choice(("t", "z"), groups)}
        made = Population({}, None, cast("Any", None), {}, choices, {})
        assert made.chosen == ("a", "z", "t")
        np.testing.assert_array_equal(
            made.wanted(), [[True, True, False], [True, True, True], [False, True, True]]
        )

    def test_what_was_measured_is_put_in_the_order_of_a_choice(self) -> None:
        rng = np.random.default_rng(0)
        values = rng.random((2, 3, 4, 4))
        names = ("a", "b", "c", "d")
        shares = np.array([0.5, 0.75, 1.0])
        geometry = {"x": Geometry(values, values[:, 0])}
        whole = Measured(names, shares, shares[-2:], values, values[:, 1:], geometry, values[0, 0])
        part = whole.among(Choice(("d", "a"), (GENERALIZING, HEURISTIC)))
        assert part.names == ("d", "a")
        np.testing.assert_array_equal(part.inside[..., 0, 1], values[..., 3, 0])
        np.testing.assert_array_equal(part.geometry["x"].distances[..., 1, 0], values[:, 0, 0, 3])
        np.testing.assert_array_equal(part.barriers, values[0, 0][np.ix_([3, 0], [3, 0])])

    def test_the_first_questions(self, tokenizer: Any) -> None:
        pairs = Pairs("x", tuple((f"the king {k}", "the king") for k in range(5)), ("entailment",) * 5)
        asked = ask(pairs, classes=NANO_CLASSES, tokenizer=tokenizer, longest=12)
        few = asked.first(2)
        assert (len(few), few.pairs.texts) == (2, pairs.texts[:2])
        assert torch.equal(few.right, asked.right[:2])
        assert len(asked.first(9)) == 5
        assert ask(pairs, classes=MNLI_CLASSES, tokenizer=tokenizer, longest=12).right.shape == (5, 3)


class TestGroups:
    N = 3

    def groups(self, values: np.ndarray) -> Groups:
        geometry = {name: Geometry(values[:, None], values) for name in VARIANTS}
        measured = Measured(
            tuple("abcdef"),
            np.array([1.0]),
            np.array([1.0]),
            values[:, None],
            values[:, None],
            geometry,
            values[0],
        )
        kinds = (GENERALIZING,) * self.N + (HEURISTIC,) * self.N
        return Groups(measured, kinds, lambda name: cast("Any", None), {"n_permutations": 99, "seed": 0})

    def test_two_clusters_by_loops(self) -> None:
        """Each model: its mean distance to the other group over that to the rest of its own, less 1."""
        values = 1 + np.random.default_rng(0).random((6, 6, 6))
        found = self.groups(values).two_clusters()
        assert [effect.about for effect in found] == [GENERALIZING, HEURISTIC]
        for effect, own, other in zip(found, ((0, 1, 2), (3, 4, 5)), ((3, 4, 5), (0, 1, 2)), strict=True):
            ratios = np.array(
                [
                    [
                        np.mean([one[i, j] for j in other]) / np.mean([one[i, j] for j in own if j != i]) - 1
                        for i in own
                    ]
                    for one in values
                ]
            )
            assert effect.value == pytest.approx(np.median(ratios))
            assert effect.over == "6 sets of questions and 3 models"
            assert np.isnan(effect.low)  # three models are too few for a range

    def test_directed_values_leave_a_model_with_itself_out(self) -> None:
        values = np.full((6, 6, 6), 2.0)
        values[:, range(6), range(6)] = 100.0
        values[:, :3, 3:] = 5.0
        groups = self.groups(values)
        assert groups.directed(values, GENERALIZING, GENERALIZING).value == 2.0
        assert groups.directed(values, GENERALIZING, HEURISTIC).value == 5.0
        assert groups.directed(values, HEURISTIC, GENERALIZING).value == 2.0
        assert (
            groups.directed(values, HEURISTIC, GENERALIZING).over
            == "6 sets of questions and 3 bottoms and 3 tops"
        )

    def test_the_wider_of_two_ranges_and_none_where_one_is_unknown(self) -> None:
        found = widest(0.5, (0.1, 0.6), (0.3, 0.9), over=("a", "b"))
        assert (found.low, found.high, found.over) == (0.1, 0.9, "a and b")
        assert np.isnan(widest(0.5, (0.1, 0.6), (np.nan, np.nan), over=("a",)).low)

    @pytest.mark.parametrize(
        ("effects", "words"),
        [
            ((), "the task was not learnt"),
            ((Effect("", 0.05, 0.0, 0.09),), "less than 10% apart"),
            ((Effect("", 0.05, 0.0, 0.1),), ""),
            ((Effect("", 0.05, np.nan, np.nan),), ""),  # without a range nothing is ruled out
        ],
    )
    def test_why_nothing_can_be_said(self, effects: tuple[Effect, ...], words: str) -> None:
        said = why_untested(Statement("", "", "undecided", effects=effects))
        assert words in said
        assert bool(said) == bool(words)


class TestFigures:
    def test_everyone_is_shown_in_the_group_that_seeds_made_or_as_taught(self) -> None:
        names = ["0", "1", "2", "taught 0"]
        accuracies = pd.DataFrame({"model": names, "inside": 0.9, "outside": [0.8, 0.1, 0.5, 0.9]})
        figure = captions.spread_figure(accuracies, {SEEDS: CHOICE})
        figure.chart.to_dict()
        ((_, drawn),) = cast("Any", figure.spec)["datasets"].items()
        assert {row["model"]: row["group"] for row in drawn} == {
            "0": GENERALIZING, "1": HEURISTIC, "2": figures.OTHERS, "taught 0": figures.TAUGHT,
        }  # fmt: skip

    def test_shares_of_the_layers_are_written_short(self) -> None:
        data = pd.DataFrame(
            {
                "layer": [1 / 3, 0.5, 1.0],
                "pair": "a → b",
                "within": False,
                "mean": 0.1,
                "low": 0.0,
                "high": 0.2,
            }
        )
        spec = figures.by_share(data, label="cost").to_dict()
        drawn = [row for rows in spec["datasets"].values() for row in rows if "layer" in row]
        assert {row["layer"] for row in drawn} == {"0.33", "0.5", "1"}

    def test_of_the_control_a_figure_answers_to_none_of_the_paper(self) -> None:
        chart = cast("Any", SimpleNamespace())
        own, control = (
            captions._figure(end, "x", "Title", chart, "Under it.", "Figure 2") for end in ("", "-planted")
        )
        assert (own.name, own.of_paper, own.caption) == ("x", "Figure 2", "Under it.")
        assert (control.name, control.title, control.of_paper) == ("x-planted", "Title (control)", "")
        assert control.caption.endswith("taught with counterexamples.")


def test_notes_say_what_was_trained(tokenizer: Any) -> None:
    asked = cast("Any", SimpleNamespace(choosing=range(10), outside=range(20)))
    population = Population({}, tokenizer, asked, {}, {}, {})
    first, read, taught = experiment._notes(population, SCALES["nano"])
    assert "chosen on 10 questions out of distribution, and judged on 20 others" in first
    assert "nano-bert was first trained on" in read
    assert "10 classifiers that were taught with 25% counterexamples" in taught
    assert len(experiment._notes(population, SCALES["real"])) == 2  # it reads pairs already
