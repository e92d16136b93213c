"""The cards' figures come out again from the shipped weights and the bundled sample."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from thinkalike.systems import bundled
from thinkalike.systems.bundled.bundle import SAMPLE_BASELINES
from training import recheck as module
from training.figures import Figures, held_out_ids, load_sample, measure
from training.pipeline import grammar_pairs
from training.recheck import recheck

FIGURES = ("held_out_tokens", "perplexity", "unigram_perplexity", "kneser_ney_perplexity", "minimal_pairs")


def figures_of(card: bundled.Card, **changes: float) -> Figures:
    return Figures(**{**{name: asdict(card)[name] for name in FIGURES}, **changes})  # type: ignore[arg-type]


def test_the_bundled_probabilities_are_for_the_tokens_of_the_bundled_text() -> None:
    sample = load_sample(SAMPLE_BASELINES)
    tokenizer = bundled.load("nano-gpt2")[1]
    assert (held_out_ids(tokenizer, bundled.sample_text()) == sample.ids).all()  # type: ignore[arg-type]


def test_perplexities_of_a_masked_model_agree_with_its_card() -> None:
    now = measure(*bundled.load("nano-bert"), load_sample(SAMPLE_BASELINES), {})
    card = bundled.card("nano-bert")
    assert now.held_out_tokens == card.held_out_tokens
    assert now.perplexity == pytest.approx(card.perplexity, rel=0.005)
    assert now.kneser_ney_perplexity == pytest.approx(card.kneser_ney_perplexity, rel=1e-6)
    assert now.unigram_perplexity == pytest.approx(card.unigram_perplexity, rel=1e-6)


@pytest.mark.parametrize("name", ["nano-gpt2", "nano-bert"])
def test_minimal_pairs_agree_with_the_card(name: str) -> None:
    pairs = {"pronoun": grammar_pairs()["pronoun"]}
    now = measure(*bundled.load(name), load_sample(SAMPLE_BASELINES).part(300), pairs).minimal_pairs
    expected = bundled.card(name).minimal_pairs["pronoun"]
    assert now["pronoun"]["accuracy"] == pytest.approx(expected["accuracy"], abs=0.02)
    assert now["pronoun"]["n"] == expected["n"]


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.1, 1)])
def test_a_difference_is_marked_and_fails(
    factor: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = bundled.card("nano-gpt2")
    found = figures_of(card, perplexity=factor * card.perplexity)
    monkeypatch.setattr(module, "measure", lambda *given: found)
    assert recheck(["nano-gpt2"], n_tokens=None, corpus=None) == code
    printed = capsys.readouterr()
    assert ("<- differs" in printed.out) == bool(code)
    assert "nano-gpt2" in printed.out
    assert ("agree" in printed.err) != bool(code)


def test_a_part_of_the_sample_is_shown_but_not_held_against_the_card(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = bundled.card("nano-gpt2")
    seen = []

    def measured(model: object, tokenizer: object, sample: object, pairs: object) -> Figures:
        seen.append(len(sample.ids))  # type: ignore[attr-defined]
        return figures_of(card, perplexity=2 * card.perplexity)

    monkeypatch.setattr(module, "measure", measured)
    assert recheck(["nano-gpt2"], n_tokens=500, corpus=None) == 0
    assert seen == [500]
    assert f"{2 * card.perplexity:.3f}" in capsys.readouterr().out
