"""Features taken out of states: the algebra, the scores by hand, the statements on planted tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from thinkalike.errors import InvalidInput
from thinkalike.recipes import reproduce
from thinkalike.recipes.findings import Findings
from thinkalike.recipes.salle2024_causal import SCALES
from thinkalike.recipes.salle2024_causal.changed_states import ask_sentences, ask_text
from thinkalike.recipes.salle2024_causal.experiment import judge
from thinkalike.recipes.salle2024_causal.removal import Directions
from thinkalike.recipes.salle2024_causal.rules import RULES
from thinkalike.systems import bundled
from thinkalike.systems.likelihood import causal_log_probabilities
from thinkalike.systems.stack import layers_of
from training.likelihood import sentence_log_probability

MODELS = ("nano-bert", "nano-gpt2", "nano-mamba")
PAIR = ("the king comes", "the king come")


def same(states: torch.Tensor) -> torch.Tensor:
    return states


class TestDirections:
    @pytest.fixture
    def states(self) -> np.ndarray:
        return np.random.default_rng(0).normal(size=(60, 12))

    @pytest.fixture
    def levels(self) -> pd.Series:
        return pd.Series(["a", "b", "c", None] * 15, name="kind")

    def test_levels_have_one_mean_when_their_directions_are_out(
        self, states: np.ndarray, levels: pd.Series
    ) -> None:
        found = Directions.of(states, levels)
        assert found.basis.shape == (12, 2)
        left = found.removed(torch.from_numpy(states)).numpy()
        means = [left[(levels == name).to_numpy()].mean(axis=0) for name in "abc"]
        np.testing.assert_allclose(means[1], means[0], atol=1e-10)
        np.testing.assert_allclose(means[2], means[0], atol=1e-10)

    def test_nothing_else_is_touched_and_twice_is_once(self, states: np.ndarray, levels: pd.Series) -> None:
        found = Directions.of(states, levels)
        given = torch.from_numpy(states)
        left = found.removed(given)
        torch.testing.assert_close(found.removed(left), left)
        others = np.linalg.svd(found.basis.T)[2][2:]  # orthogonal to the basis
        np.testing.assert_allclose(left.numpy() @ others.T, states @ others.T, atol=1e-10)

    def test_the_control_takes_out_as_much_of_every_state(
        self, states: np.ndarray, levels: pd.Series
    ) -> None:
        found = Directions.of(states, levels)
        control = found.random(np.random.default_rng(1))
        given = torch.from_numpy(states)
        own, other = (given - found.removed(given, along) for along in (None, control))
        torch.testing.assert_close(own.norm(dim=-1), other.norm(dim=-1))
        assert not torch.allclose(own, other)

    def test_one_level_has_no_direction(self, states: np.ndarray) -> None:
        with pytest.raises(InvalidInput, match="kind has 1 level here"):
            Directions.of(states, pd.Series(["a"] * 60, name="kind"))


class TestScores:
    @pytest.mark.parametrize("name", MODELS)
    def test_sentences_are_scored_as_the_cards_score_them(self, name: str) -> None:
        """An unchanged pass, started in the middle, against the independent scoring of whole sentences."""
        model, tokenizer = bundled.load(name)
        asked = ask_sentences(PAIR, tokenizer, masked=name == "nano-bert")
        found = asked.log_probabilities(model, layers_of(model), 3, [same])[0]
        expected = [sentence_log_probability(model, tokenizer, text) for text in PAIR]
        np.testing.assert_allclose(found, expected, atol=1e-3)

    def test_running_text_is_scored_token_by_token(self) -> None:
        model, tokenizer = bundled.load("nano-gpt2")
        ids = np.random.default_rng(0).integers(10, 4000, size=(1, 40))
        asked = ask_text(ids, tokenizer, masked=False, seed=0)
        found = asked.log_probabilities(model, layers_of(model), 2, [same])
        assert found[0, 0] == pytest.approx(causal_log_probabilities(model, ids[0]).sum(), abs=1e-2)

    def test_a_masked_model_is_asked_for_what_it_does_not_see(self) -> None:
        _, tokenizer = bundled.load("nano-bert")
        asked = ask_text(np.arange(10, 110).reshape(2, 50), tokenizer, masked=True, seed=0)
        assert asked.where.sum(axis=1).tolist() == [8, 8]  # 15 % of fifty, rounded
        assert (asked.batch.ids[asked.where] == tokenizer.mask_token_id).all()
        assert (asked.targets[asked.where] >= 10).all()

    def test_changes_act_at_their_layer(self) -> None:
        model, tokenizer = bundled.load("nano-gpt2")
        asked = ask_sentences(PAIR, tokenizer, masked=False)
        own, nothing = asked.log_probabilities(model, layers_of(model), 3, [same, torch.zeros_like])
        assert (abs(own - nothing) > 0.1).any()


def table(*, rise: float = 0.05, fall: float = 0.5, order: float = 1.0) -> pd.DataFrame:
    """Planted: the loss rises by `rise` times a feature's rank, agreement falls without number."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(10):
        for model in ("a", "b"):
            for layer in (1, 2, 3):
                for rank, feature in enumerate(("number", "tense", "part_of_speech"), start=1):
                    loss = {"own": 3.0, "without": 3.1 + rise * rank, "random": 3.1}
                    kept = {"own": 1.0, "without": 0.9 - fall * (rank == 1), "random": 0.9}
                    rows.append(
                        {
                            "model": model,
                            "set": number,
                            "layer": layer,
                            "feature": feature,
                            "importance": order * rank + 0.01 * rng.normal(),
                            "directions": 1,
                            **{f"loss {k}": v + 0.001 * rng.normal() for k, v in loss.items()},
                            **{f"preference {k}": v + 0.01 * rng.normal() for k, v in kept.items()},
                            **{f"right {k}": 0.8 for k in loss},
                        }
                    )
    return pd.DataFrame(rows)


def verdicts(rows: pd.DataFrame) -> dict[str, str]:
    names = {rule.claim: name for name, rule in RULES.items()}
    return {names[s.paper]: s.verdict for s in found(rows).statements}


def found(rows: pd.DataFrame) -> Findings:
    return judge(rows, SCALES["nano"])


def test_planted_effects_agree_with_every_statement() -> None:
    assert verdicts(table()) == dict.fromkeys(RULES, "agrees")
    figures = {figure.name for figure in found(table()).figures}
    assert {rule.figure for rule in RULES.values()} <= figures


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        ({"rise": -0.05}, {"number", "tense", "part_of_speech", "order"}),
        ({"fall": 0.0}, {"agreement", "number alone"}),
        ({"order": -1.0}, {"order"}),
    ],
    ids=["random costs more", "agreement is kept", "the unimportant matter most"],
)
def test_a_planted_difference_changes_the_verdicts_it_should(change: Any, differing: set[str]) -> None:
    assert {name for name, verdict in verdicts(table(**change)).items() if verdict == "differs"} == differing


@pytest.mark.whole_runs
def test_smoke_runs_from_end_to_end_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = reproduce("salle2024-causal", "smoke", tmp_path / "run")
    assert len(first.findings.statements) == len(RULES)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "steps").iterdir()}
    again = reproduce("salle2024-causal", "smoke", tmp_path / "run")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "steps").iterdir()} == kept
    assert list(map(repr, again.findings.statements)) == list(map(repr, first.findings.statements))
