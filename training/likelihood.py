"""How good a model of words is: perplexity, masked tokens, sentences, minimal pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from thinkalike.systems.likelihood import CONTEXT, chosen_log_probabilities, windows

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MASKED_SHARE = 0.15


def perplexity(log_probabilities: np.ndarray) -> float:
    """exp(−mean log P), the number of equally likely tokens that would be as surprising."""
    return float(np.exp(-np.mean(log_probabilities, dtype=np.float64)))


def masked_log_probabilities(
    model: PreTrainedModel, ids: np.ndarray, special: dict[str, int], *, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Positions drawn by the seed, and log P of the token at each when all of them are `[MASK]`.

    Windows of 254 tokens stand between `[CLS]` and `[SEP]`. Position 0 is never drawn, so that every position
    has a left neighbour, as a causal baseline needs.
    """
    rng = np.random.default_rng(seed)
    drawn = rng.random(len(ids)) < MASKED_SHARE
    drawn[0] = False
    hidden = np.where(drawn, special["mask"], ids).astype(np.int64)
    scores = np.empty(len(ids))
    length = CONTEXT - 2
    for starts, inputs in windows(hidden, length, length=length):
        targets = ids.astype(np.int64)[starts[:, None] + np.arange(inputs.shape[1])]
        chosen = chosen_log_probabilities(model, _between(inputs, special), _between(targets, special))[
            :, 1:-1
        ]
        for start, row in zip(starts, chosen, strict=True):
            scores[start : start + len(row)] = row
    places = np.flatnonzero(drawn)
    return places, scores[places]


def _between(ids: np.ndarray, special: dict[str, int]) -> np.ndarray:
    edge = np.ones((len(ids), 1), dtype=np.int64)
    return np.hstack([special["cls"] * edge, ids, special["sep"] * edge])


def sentence_log_probability(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str) -> float:
    """How likely the model finds a sentence, as a sum over its tokens.

    A causal model predicts each token from those before it, given the first, and the end: without it a word
    would never be likelier than its own beginning ("rejoices" than "rejoice"). A masked model predicts each
    token with it and the rest of its word masked, so that a word of several tokens does not give itself away
    (Kauf and Ivanova 2023). The number of masks still tells how many they are, which favours the shorter.
    """
    if tokenizer.cls_token_id not in (ids := np.array(tokenizer(text)["input_ids"])):
        ended = np.append(ids, tokenizer.eos_token_id)
        return float(chosen_log_probabilities(model, ended[None, :-1], ended[None, 1:]).sum())
    words = tokenizer(text).word_ids()
    places = [k for k, word in enumerate(words) if word is not None]
    rows = np.tile(ids, (len(places), 1))
    for row, place in zip(rows, places, strict=True):
        row[[k for k in places if k >= place and words[k] == words[place]]] = tokenizer.mask_token_id
    chosen = chosen_log_probabilities(model, rows, np.tile(ids, (len(places), 1)))
    return float(chosen[np.arange(len(places)), places].sum())


def prefer_right(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pairs: Sequence[tuple[str, str]]
) -> dict[str, float]:
    """The share of (right, wrong) pairs whose right sentence is the likelier, with Wilson's 95 % interval."""
    wins = sum(
        sentence_log_probability(model, tokenizer, right) > sentence_log_probability(model, tokenizer, wrong)
        for right, wrong in pairs
    )
    low, high = wilson_interval(wins, len(pairs))
    return {"accuracy": wins / len(pairs), "low": low, "high": high, "n": len(pairs)}


def wilson_interval(successes: int, n: int, *, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    share = successes / n
    centre = share + z**2 / (2 * n)
    spread = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return float((centre - spread) / (1 + z**2 / n)), float((centre + spread) / (1 + z**2 / n))
