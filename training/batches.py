"""Which tokens a step sees: a function of the data, the seed and the step, and of nothing else.

So two models trained with one seed see the same rows in the same order, and a run that is resumed goes on as
if it had never stopped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from training.tokens import CONTEXT

TOKENS_PER_STEP = 4096
SENTENCE_SHARE = 0.25  # of the steps: single bare sentences, so that short inputs are nothing strange
IGNORED = -100  # the label of a position without loss, as torch's cross-entropy has it


@dataclass(frozen=True)
class Tokens:
    """A prepared corpus as ids: running text, bare sentences, and where the sentences of each start."""

    running: np.ndarray  # (n_tokens,) uint16
    running_starts: np.ndarray  # (n_sentences,) int64
    bare: np.ndarray  # (n_bare_tokens,) uint16
    bare_starts: np.ndarray  # (n_bare,) int64


def rows(
    tokens: Tokens, *, seed: int, step: int, length: int = CONTEXT, size: int = TOKENS_PER_STEP
) -> np.ndarray:
    """The rows of one step, of shape (n_rows, row_length) with about `size` tokens.

    Rows of running text begin at a sentence and are `length` long. Rows of bare sentences all have one
    length, so that nothing is padded.
    """
    rng = np.random.default_rng([seed, step])
    if rng.random() < SENTENCE_SHARE:
        return _bare_rows(tokens, rng, length, size)
    length = min(length, len(tokens.running) - 1)
    places = rng.integers(0, len(tokens.running) - length, size=max(1, size // length))
    starts = tokens.running_starts[np.searchsorted(tokens.running_starts, places, side="right") - 1]
    return _windows(tokens.running, starts, length)


def _bare_rows(tokens: Tokens, rng: np.random.Generator, length: int, size: int) -> np.ndarray:
    lengths = np.diff(tokens.bare_starts, append=len(tokens.bare))
    # A token picked evenly names the length, so that every token is as likely as any other.
    place = rng.integers(0, len(tokens.bare))
    chosen = lengths[np.searchsorted(tokens.bare_starts, place, side="right") - 1]
    candidates = tokens.bare_starts[lengths == chosen]
    starts = rng.choice(candidates, size=max(1, size // chosen))
    return _windows(tokens.bare, starts, min(int(chosen), length))


def _windows(stream: np.ndarray, starts: np.ndarray, length: int) -> np.ndarray:
    return stream[starts[:, None] + np.arange(length)].astype(np.int64)


def cut(ids: np.ndarray, length: int) -> np.ndarray:
    """The same tokens in rows of `length`; rows that are shorter stay as they are, and a rest is left out."""
    pieces = ids.shape[1] // length
    return ids[:, : pieces * length].reshape(-1, length) if pieces > 1 else ids


def causal_batch(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels for next-token prediction: the label of a position is the token after it."""
    return ids[:, :-1], ids[:, 1:]


def masked_batch(
    ids: np.ndarray, *, seed: int, step: int, special: dict[str, int], n_tokens: int, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels for masked prediction, in `[CLS] … [SEP]`.

    A `share` of the positions is to be predicted: of these 80 % become `[MASK]`, 10 % a random token, 10 %
    stay (Devlin et al. 2019). `<eos>` at a row's end gives way to `[SEP]`.
    """
    rng = np.random.default_rng([seed, step, 1])
    ends_with_eos = bool((ids[:, -1] == special["eos"]).all())
    body = ids[:, :-1] if ends_with_eos else ids[:, :-2]
    around = np.ones((len(body), 1), dtype=np.int64)
    ids = np.hstack([special["cls"] * around, body, special["sep"] * around])
    predicted = rng.random(ids.shape) < share
    predicted[:, [0, -1]] = False
    predicted[0, 1] |= not predicted.any()
    labels = np.where(predicted, ids, IGNORED)
    fate = rng.random(ids.shape)
    inputs = np.where(predicted & (fate < 0.8), special["mask"], ids)
    inputs = np.where(predicted & (fate >= 0.9), rng.integers(0, n_tokens, ids.shape), inputs)
    return inputs, labels
