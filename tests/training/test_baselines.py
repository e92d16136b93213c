"""The 3-gram baseline against a word-for-word reading of its definition."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.baselines import KneserNey, unigram_log_probabilities

streams = st.lists(st.integers(0, 5), min_size=3, max_size=60)


def discounts(counts: list[int]) -> list[float]:
    n = [sum(c == k for c in counts) for k in range(5)]
    if not all(n[1:]):
        return [0.0, 0.5, 0.5, 0.5]
    share = n[1] / (n[1] + 2 * n[2])
    raw = {k: k - (k + 1) * share * n[k + 1] / n[k] for k in (1, 2, 3)}
    return [0.0, *(min(max(d, 0.1), float(k)) for k, d in raw.items())]


def brute_force(stream: list[int], n_tokens: int, a: int, b: int, w: int) -> float:
    """P(w | a b) from dictionaries, order by order."""
    trigrams = Counter(zip(stream, stream[1:], stream[2:], strict=False))
    bigrams: Counter[tuple[int, ...]] = Counter(gram[1:] for gram in trigrams)
    unigrams: Counter[tuple[int, ...]] = Counter(gram[1:] for gram in bigrams)
    probability = 1 / n_tokens
    for counts, context in ((unigrams, ()), (bigrams, (b,)), (trigrams, (a, b))):
        discount = discounts(list(counts.values()))
        after = defaultdict(int, {gram[-1]: c for gram, c in counts.items() if gram[:-1] == context})
        total = sum(after.values())
        if total:
            reserved = sum(discount[min(c, 3)] for c in after.values())
            kept = after[w] - discount[min(after[w], 3)]
            probability = (kept + reserved * probability) / total
    return probability


@given(streams, st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
@settings(max_examples=80)
def test_probabilities_are_those_of_the_definition(stream: list[int], a: int, b: int, w: int) -> None:
    model = KneserNey(np.array(stream), n_tokens=7)
    found = model.probabilities(np.array([a]), np.array([b]), np.array([w]))
    assert found[0] == pytest.approx(brute_force(stream, 7, a, b, w), rel=1e-12)


def test_the_definition_holds_where_discounts_are_estimated() -> None:
    rng = np.random.default_rng(0)
    stream = (rng.zipf(1.5, size=3000) % 12).astype(np.uint16)
    model = KneserNey(stream, n_tokens=12)
    for a, b, w in rng.integers(0, 12, size=(60, 3)):
        found = model.probabilities(np.array([a]), np.array([b]), np.array([w]))[0]
        assert found == pytest.approx(brute_force(stream.tolist(), 12, a, b, w), rel=1e-12)


@given(streams, st.integers(0, 6), st.integers(0, 6))
@settings(max_examples=80)
def test_each_context_sums_to_one_and_nothing_is_impossible(stream: list[int], a: int, b: int) -> None:
    model = KneserNey(np.array(stream), n_tokens=7)
    everything = model.probabilities(np.full(7, a), np.full(7, b), np.arange(7))
    assert everything.sum() == pytest.approx(1.0)
    assert (everything > 0).all()


def test_small_integer_types_do_not_overflow() -> None:
    stream = np.random.default_rng(0).integers(0, 4096, size=500).astype(np.uint16)
    assert np.isfinite(KneserNey(stream, n_tokens=4096).log_probabilities(stream)).all()


def test_the_baseline_beats_the_unigram_where_order_matters() -> None:
    stream = np.tile(np.arange(8), 50)
    three = KneserNey(stream, n_tokens=8).log_probabilities(stream)
    assert three.mean() > unigram_log_probabilities(stream, stream, n_tokens=8).mean() + 1.5


def test_unigram_counts_with_one_added() -> None:
    found = unigram_log_probabilities(np.array([0, 0, 1]), np.array([0, 1, 2]), n_tokens=3)
    assert np.exp(found) == pytest.approx([3 / 6, 2 / 6, 1 / 6])
