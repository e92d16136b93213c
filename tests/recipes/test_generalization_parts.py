"""Parts of the recipe on generalisation by themselves: who is chosen, means with ranges, classes, losses."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from thinkalike.errors import InvalidInput
from thinkalike.recipes.brown2023_generalization.choice import (
    GENERALIZING,
    GROUPS,
    HEURISTIC,
    chance_gaps,
    choose_ends,
    directed_means,
    plant,
)
from thinkalike.recipes.brown2023_generalization.classifier_cka import equal_layers
from thinkalike.recipes.brown2023_generalization.classifiers import (
    Questions,
    accuracy,
    answers,
    is_right,
    loss_of,
    sets_of,
)
from thinkalike.recipes.brown2023_generalization.data import (
    ENTAILMENT,
    MNLI_CLASSES,
    OTHER,
    Pairs,
    dealt,
    right_classes,
)
from thinkalike.recipes.brown2023_generalization.population import questions_digest
from thinkalike.systems.batch import Batch

OUTSIDE = {"a": 0.9, "b": 0.8, "c": 0.5, "d": 0.2, "e": 0.1}


class TestChoice:
    def test_the_best_and_the_worst_are_taken(self) -> None:
        found = choose_ends(OUTSIDE, 2)
        assert found.names == ("a", "b", "d", "e")
        assert found.of(GENERALIZING) == ("a", "b")
        assert found.of(HEURISTIC) == ("d", "e")

    def test_ties_are_broken_by_name(self) -> None:
        assert choose_ends({"z": 0.5, "y": 0.5, "x": 0.5, "w": 0.5}, 1).names == ("w", "z")

    def test_too_few_models(self) -> None:
        with pytest.raises(InvalidInput, match="5 models cannot give 3 and 3: train more, or choose fewer"):
            choose_ends(OUTSIDE, 3)

    def test_planted_models_take_the_place_of_the_best(self) -> None:
        found = plant(OUTSIDE, {"taught-1": 0.95, "taught-2": 0.99}, 2)
        assert found.of(GENERALIZING) == ("taught-2", "taught-1")
        assert found.of(HEURISTIC) == ("d", "e")


class TestChance:
    def test_equal_classifiers_seem_apart_as_brute_force_has_it(self) -> None:
        """Forty equal classifiers on 64 questions: the ends that chance makes are 0.154 apart."""
        found = chance_gaps(0.55, n_questions=64, n_models=40, n_chosen=10, draws=4000)
        rng = np.random.default_rng(1)
        gaps = []
        for _ in range(2000):
            right = sorted(np.mean(rng.random(64) < 0.55) for _ in range(40))
            gaps.append(np.mean(right[-10:]) - np.mean(right[:10]))
        assert found.mean() == pytest.approx(np.mean(gaps), abs=0.003)
        assert np.quantile(found, 0.975) == pytest.approx(np.quantile(gaps, 0.975), abs=0.01)

    def test_more_questions_leave_less_to_chance(self) -> None:
        few, many = (chance_gaps(0.5, n_questions=n, n_models=40, n_chosen=10).mean() for n in (64, 1024))
        assert many == pytest.approx(few / 4, rel=0.1)


class TestSets:
    def test_sets_share_no_question_and_leave_none_out(self) -> None:
        found = sets_of(23, 5)
        assert [k for rows in found for k in range(23)[rows]] == list(range(23))
        assert {len(range(23)[rows]) for rows in found} <= {4, 5}

    def test_too_few_questions(self) -> None:
        with pytest.raises(InvalidInput, match="3 questions cannot make 5 sets"):
            sets_of(3, 5)

    def test_parts_are_dealt_at_random_and_share_no_pair(self) -> None:
        texts = tuple((f"a{k}", f"b{k}") for k in range(30))
        first, second = dealt(Pairs("made", texts, ("x",) * 30), 10, seed=0)
        assert (len(first), len(second)) == (10, 20)
        assert set(first.texts) | set(second.texts) == set(texts)
        assert first.texts != texts[:10]
        assert len(dealt(Pairs("made", texts, ("x",) * 30), 100, seed=0)[0]) == 15


class TestDirectedMeans:
    GROUPS_OF = (GENERALIZING, GENERALIZING, GENERALIZING, HEURISTIC, HEURISTIC)

    @pytest.fixture
    def values(self) -> np.ndarray:
        return np.random.default_rng(0).normal(size=(2, 5, 5))

    def test_means_are_over_pairs_of_different_models(self, values: np.ndarray) -> None:
        table = directed_means(values, self.GROUPS_OF, [0.5, 1.0]).set_index(["layer", "pair"])
        assert len(table) == 2 * 4
        for (k, layer), (a, b) in itertools.product(
            enumerate([0.5, 1.0]), itertools.product(GROUPS, repeat=2)
        ):
            cells = [
                values[k, i, j]
                for i, j in itertools.permutations(range(5), 2)
                if (self.GROUPS_OF[i], self.GROUPS_OF[j]) == (a, b)
            ]
            row = table.loc[(layer, f"{a} → {b}")]
            assert row["mean"] == pytest.approx(np.mean(cells))
            assert row["n_pairs"] == len(cells)
            assert row["within"] == (a == b)

    def test_ranges_are_over_models(self, values: np.ndarray) -> None:
        """All that one model does is moved: pairs scatter as before, but models do more."""
        own = np.array([0.0, 4.0, -4.0, 3.0, -3.0, 0.0])
        groups = (GENERALIZING,) * 3 + (HEURISTIC,) * 3
        quiet = np.random.default_rng(0).normal(size=(1, 6, 6))
        calm, loud = (
            directed_means(v, groups, [1.0]).set_index("pair") for v in (quiet, quiet + own[:, None])
        )
        assert (calm["low"] < calm["mean"]).all()
        assert (calm["mean"] < calm["high"]).all()
        width = {name: table["high"] - table["low"] for name, table in (("calm", calm), ("loud", loud))}
        assert (width["loud"] > 2 * width["calm"]).all()
        few = directed_means(values, self.GROUPS_OF, [0.5, 1.0]).set_index("pair")
        assert few.loc[f"{GENERALIZING} → {HEURISTIC}", ["low", "high"]].isna().all(axis=None)

    def test_a_model_with_its_own_copy_is_no_pair(self) -> None:
        values = np.full((1, 6, 6), 1.0)
        np.fill_diagonal(values[0], 100.0)
        table = directed_means(values, (GENERALIZING,) * 3 + (HEURISTIC,) * 3, [1.0])
        assert (table[["mean", "low", "high"]] == 1.0).all().all()


class TestClasses:
    def test_no_entailment_is_any_other_class(self) -> None:
        found = right_classes([ENTAILMENT, OTHER, "neutral"], MNLI_CLASSES)
        np.testing.assert_array_equal(
            found, [[False, True, False], [True, False, True], [False, False, True]]
        )

    def test_a_label_without_a_class(self) -> None:
        with pytest.raises(InvalidInput, match="a label 'maybe', and the classes are contradiction"):
            right_classes(["maybe"], MNLI_CLASSES)

    def test_the_loss_of_one_right_class_is_cross_entropy(self) -> None:
        logits = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 3)))
        labels = torch.tensor([0, 1, 2, 2, 1, 0])
        right = torch.nn.functional.one_hot(labels, 3).bool()
        expected = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
        torch.testing.assert_close(loss_of(logits, right), expected)

    def test_the_loss_of_two_right_classes_is_of_their_probability_together(self) -> None:
        logits = torch.tensor([[1.0, 2.0, 3.0]])
        p = logits.softmax(-1)[0]
        found = loss_of(logits, torch.tensor([[True, False, True]]))
        assert float(found) == pytest.approx(-np.log(float(p[0] + p[2])))

    def test_right_is_the_likeliest_class_and_not_the_likeliest_pair(self) -> None:
        right = torch.tensor([[True, False, True], [True, False, True]])
        logits = torch.tensor([[0.4, 0.5, 0.4], [0.6, 0.5, 0.0]])
        assert is_right(logits, right).tolist() == [False, True]


def questions(n: int = 5) -> Questions:
    tokens = Batch.of([list(range(1, 4)) for _ in range(n)])
    right = torch.tensor([[k % 2 == 0, k % 2 == 1] for k in range(n)])
    pairs = Pairs("made", tuple((f"a{k}", f"b{k}") for k in range(n)), ("x",) * n)
    return Questions(pairs, tokens, right)


class TestQuestions:
    def test_batches_hold_every_question_once(self) -> None:
        asked = questions(5)
        assert [list(range(5))[rows] for rows in asked.batches(2)] == [[0, 1], [2, 3], [4]]
        assert len(asked) == 5

    def test_accuracy_is_the_share_of_right_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = questions(5)
        monkeypatch.setattr(
            Questions, "logits", lambda self, model, rows: torch.tensor([[1.0, 0.0]] * len(range(5)[rows]))
        )
        model = torch.nn.Linear(1, 1).train()
        assert answers(model, asked).shape == (5, 2)
        assert accuracy(model, asked) == pytest.approx(3 / 5)
        assert not model.training

    def test_the_digest_follows_texts_labels_and_cuts(self) -> None:
        one, same, other = questions(5), questions(5), questions(4)
        assert questions_digest(one) == questions_digest(same)
        assert questions_digest(one) != questions_digest(other)
        assert questions_digest(one, other) != questions_digest(other, one)


def test_equal_layers_leave_out_the_embeddings() -> None:
    rows = tuple((name, layer) for name in "ab" for layer in range(3))
    values = np.arange(36.0).reshape(6, 6)
    found = equal_layers(SimpleNamespace(rows=rows, values=values))  # type: ignore[arg-type]
    assert found.shape == (2, 2, 2)
    np.testing.assert_array_equal(found[0], values[np.ix_([1, 4], [1, 4])])
    np.testing.assert_array_equal(found[1], values[np.ix_([2, 5], [2, 5])])
