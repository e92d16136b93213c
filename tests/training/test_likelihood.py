"""Log-probabilities against a token-by-token reading; minimal pairs; intervals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from thinkalike.systems import likelihood
from thinkalike.systems.likelihood import causal_log_probabilities
from training import likelihood as of_models
from training.likelihood import (
    masked_log_probabilities,
    perplexity,
    prefer_right,
    sentence_log_probability,
    wilson_interval,
)
from training.plans import Plan
from training.prepare import load_tokenizer
from training.tokens import for_masked_models, special_ids

TinyPlan = Callable[..., Plan]


def build(plan: Plan) -> torch.nn.Module:
    torch.manual_seed(0)
    model = plan.build(**plan.shape).eval()
    with torch.no_grad():  # far from uniform, so that a wrong position shows
        for parameter in model.parameters():
            parameter.mul_(3)
    return model


@pytest.mark.parametrize("name", ["nano-gpt2", "nano-mamba"])
@pytest.mark.parametrize("n", [2, 9, 16, 17, 40])
def test_every_token_is_scored_once_with_the_longer_context(
    name: str, n: int, tiny_plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likelihood, "CONTEXT", 16)
    monkeypatch.setattr(likelihood, "STRIDE", 8)
    monkeypatch.setattr(likelihood.windows, "__kwdefaults__", {"length": 16})
    model = build(tiny_plan(name))
    ids = np.random.default_rng(0).integers(5, 4096, n).astype(np.uint16)
    found = causal_log_probabilities(model, ids)
    for k in range(1, n):
        start = 0 if k <= 16 else 8 * ((k - 9) // 8)
        with torch.inference_mode():
            logits = model(torch.tensor(ids[start:k].astype(np.int64))[None]).logits[0, -1]
        assert found[k - 1] == pytest.approx(logits.log_softmax(-1)[int(ids[k])].item(), abs=1e-4)


def test_masked_positions_are_drawn_by_seed_and_hidden_together(tiny_plan: TinyPlan) -> None:
    model = build(tiny_plan("nano-bert"))
    ids = np.random.default_rng(0).integers(5, 4096, 600).astype(np.uint16)
    special = {"cls": 1, "sep": 2, "mask": 3}
    places, found = masked_log_probabilities(model, ids, special)
    again = masked_log_probabilities(model, ids, special)
    assert np.array_equal(places, again[0])
    assert np.array_equal(found, again[1])
    assert 0 not in places
    assert len(places) == pytest.approx(90, abs=30)
    hidden = ids.astype(np.int64)
    hidden[places] = 3
    for start in (0, 254, 508):
        window = torch.tensor([1, *hidden[start : start + 254], 2])[None]
        with torch.inference_mode():
            scores = model(window).logits[0].log_softmax(-1)
        for place, value in zip(places, found, strict=True):
            if start <= place < start + 254:
                assert value == pytest.approx(scores[place - start + 1, int(ids[place])].item(), abs=1e-4)


def test_perplexity_of_even_odds_is_the_number_of_choices() -> None:
    assert perplexity(np.log(np.full(10, 1 / 7))) == pytest.approx(7)


def test_a_masked_model_sees_no_part_of_the_word_it_predicts(
    corpus_folder: Path, tiny_plan: TinyPlan
) -> None:
    tokenizer = for_masked_models(load_tokenizer(corpus_folder))
    model = build(tiny_plan("nano-bert"))
    text = "the unknownword saw Mary"
    encoded = tokenizer(text)
    ids, words = encoded["input_ids"], encoded.word_ids()
    assert len(ids) > 6
    total = 0.0
    for k, word in enumerate(words):
        if word is not None:
            hidden = [
                tokenizer.mask_token_id if j >= k and words[j] == word else i for j, i in enumerate(ids)
            ]
            with torch.inference_mode():
                total += model(torch.tensor([hidden])).logits[0, k].log_softmax(-1)[ids[k]].item()
    assert sentence_log_probability(model, tokenizer, text) == pytest.approx(total, abs=1e-3)


def test_a_causal_sentence_is_scored_from_its_second_token_to_its_end(
    corpus_folder: Path, tiny_plan: TinyPlan
) -> None:
    tokenizer = load_tokenizer(corpus_folder)
    model = build(tiny_plan("nano-gpt2"))
    ids = [*tokenizer("the king saw Mary")["input_ids"], tokenizer.eos_token_id]
    with torch.inference_mode():
        scores = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    expected = sum(scores[k, ids[k + 1]].item() for k in range(len(ids) - 1))
    assert sentence_log_probability(model, tokenizer, "the king saw Mary") == pytest.approx(
        expected, abs=1e-4
    )


def test_pairs_are_won_by_the_likelier_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_models, "sentence_log_probability", lambda model, tokenizer, text: -len(text))
    found = prefer_right(None, None, [("a", "bb"), ("aa", "b"), ("a", "bbb"), ("a", "b")])
    assert found["accuracy"] == 0.5  # a tie is no preference
    assert found["n"] == 4


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (7, 10), (150, 200), (200, 200)])
def test_the_interval_is_wilsons(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_special_ids_are_the_first_five(corpus_folder: Path) -> None:
    assert special_ids(load_tokenizer(corpus_folder)) == {"pad": 0, "cls": 1, "sep": 2, "mask": 3, "eos": 4}
