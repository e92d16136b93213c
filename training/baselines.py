"""What a model must beat: unigram and interpolated Kneser–Ney 3-gram probabilities of the same tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SMALLEST_DISCOUNT = 0.1  # in a tiny text the estimate may be none at all, and leave nothing for the unseen


def unigram_log_probabilities(training: np.ndarray, tokens: np.ndarray, *, n_tokens: int) -> np.ndarray:
    """log P(w) = log (c(w) + 1) / (N + V) for each of `tokens`, of the same shape."""
    counts = np.bincount(training, minlength=n_tokens) + 1
    return np.log(counts / counts.sum())[tokens]


@dataclass(frozen=True)
class _Order:
    """The counts of one n-gram order, with the discounts that belong to them."""

    ngrams: np.ndarray  # (n_types,) sorted keys: context · V + word
    counts: np.ndarray  # (n_types,)
    contexts: np.ndarray  # (n_contexts,) sorted keys
    totals: np.ndarray  # (n_contexts,) sum of the counts after the context
    reserved: np.ndarray  # (n_contexts,) mass that the discounts took there
    discounts: np.ndarray  # (4,) by min(count, 3)


class KneserNey:
    r"""An interpolated 3-gram model with modified discounts (Chen and Goodman 1999).

    .. math:: P(w \mid u) = \frac{c(uw) - D(c(uw))}{c(u\cdot)} + \gamma(u)\, P(w \mid u')

    where u' is the context without its first word, and the lower orders count in how many different contexts
    an n-gram was seen, not how often. The last resort is the uniform distribution, so every token has a
    probability above zero and each context's probabilities sum to one.
    """

    def __init__(self, training: np.ndarray, *, n_tokens: int) -> None:
        stream = training.astype(np.int64)
        self.n_tokens = n_tokens
        keys = (stream[:-2] * n_tokens + stream[1:-1]) * n_tokens + stream[2:]
        trigrams, counts = np.unique(keys, return_counts=True)
        bigrams, in_contexts = np.unique(trigrams % n_tokens**2, return_counts=True)
        words, before = np.unique(bigrams % n_tokens, return_counts=True)
        self._orders = [
            _order(words, before, n_tokens),
            _order(bigrams, in_contexts, n_tokens),
            _order(trigrams, counts, n_tokens),
        ]

    def log_probabilities(self, tokens: np.ndarray) -> np.ndarray:
        """log P(w₃ | w₁ w₂) for every token of the stream from the third on, of shape (n − 2,)."""
        return np.log(self.probabilities(tokens[:-2], tokens[1:-1], tokens[2:]))

    def probabilities(self, first: np.ndarray, second: np.ndarray, word: np.ndarray) -> np.ndarray:
        """P(word | first second), elementwise over arrays of one shape."""
        first, second, word = (np.asarray(ids, dtype=np.int64) for ids in (first, second, word))
        probability = np.full(word.shape, 1.0 / self.n_tokens)
        contexts = (np.zeros_like(word), second, first * self.n_tokens + second)
        for order, context in zip(self._orders, contexts, strict=True):
            probability = _interpolate(order, context, context * self.n_tokens + word, probability)
        return probability


def _order(ngrams: np.ndarray, counts: np.ndarray, n_tokens: int) -> _Order:
    discounts = _discounts(counts)
    contexts, first = np.unique(ngrams // n_tokens, return_index=True)
    totals = np.add.reduceat(counts, first)
    reserved = np.add.reduceat(discounts[np.minimum(counts, 3)], first)
    return _Order(ngrams, counts, contexts, totals, reserved, discounts)


def _discounts(counts: np.ndarray) -> np.ndarray:
    """D(k) = k − (k + 1) Y n₍ₖ₊₁₎ / nₖ with Y = n₁ / (n₁ + 2 n₂); ½ where counts are too few to say."""
    n = np.array([(counts == k).sum() for k in range(5)], dtype=float)
    if (n[1:] == 0).any():
        return np.array([0.0, 0.5, 0.5, 0.5])
    share = n[1] / (n[1] + 2 * n[2])
    k = np.arange(1, 4)
    raw = k - (k + 1) * share * n[2:5] / n[1:4]
    return np.concatenate([[0.0], np.clip(raw, SMALLEST_DISCOUNT, k)])


def _interpolate(order: _Order, context: np.ndarray, ngram: np.ndarray, lower: np.ndarray) -> np.ndarray:
    counts = _look_up(order.ngrams, order.counts, ngram)
    totals = _look_up(order.contexts, order.totals, context)
    reserved = _look_up(order.contexts, order.reserved, context)
    seen = totals > 0
    kept = counts - order.discounts[np.minimum(counts, 3)]
    return np.where(seen, (kept + reserved * lower) / np.where(seen, totals, 1), lower)


def _look_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The values of the wanted keys; zero for a key that is not there."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)
