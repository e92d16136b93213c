"""Null calibration: against `calibrated-similarity` with the same permutations, and by brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from thinkalike.errors import InvalidInput
from thinkalike.inference.null_calibration import calibrate, null_values, sentence_orders
from thinkalike.measures import get_measure, layer_measures

N = 24
RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(N, 3))
A = [np.hstack([SHARED, RNG.normal(size=(N, k))]) for k in (3, 5)]
B = [np.hstack([SHARED, RNG.normal(size=(N, k))]) for k in (4, 6, 9)]


MATCHING = [
    name
    for name in layer_measures()
    if get_measure(name).matches_items and get_measure(name).needs_extra is None
]


@pytest.mark.parametrize("measure", MATCHING)
def test_every_entry_is_the_measure_of_reordered_items(measure: str) -> None:
    orders = sentence_orders(None, N, n=3)
    observed, null = null_values(measure, A, B, orders)
    compare = get_measure(measure)
    assert observed == pytest.approx(np.array([[compare(x, y) for y in B] for x in A]), abs=2e-6)
    for k, order in enumerate(orders):
        expected = np.array([[compare(x, y[order]) for y in B] for x in A])
        assert null[k] == pytest.approx(expected, abs=2e-6), measure


@pytest.mark.parametrize("measure", ["cka-biased", "rsa"])
@pytest.mark.parametrize("aggregate", ["max", "mean"])
def test_same_numbers_as_calibrated_similarity(measure: str, aggregate: str) -> None:
    peer = pytest.importorskip("calibrated_similarity")
    orders = sentence_orders(None, N, n=60)

    def similarity(X: torch.Tensor, Y: torch.Tensor) -> float:
        x, y = X.numpy(), Y.numpy()
        if measure == "rsa":
            return float(spearmanr(pdist(x), pdist(y)).statistic)
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        return float((x.T @ y).__pow__(2).sum() / np.linalg.norm(x.T @ x) / np.linalg.norm(y.T @ y))

    def permutations() -> object:
        drawn = iter(orders)
        return lambda n, device: torch.from_numpy(next(drawn))

    first, second = [torch.from_numpy(x) for x in A], [torch.from_numpy(y) for y in B]
    score, p, threshold = peer.calibrate_layers(
        first, second, similarity, agg=aggregate, K=60, perm_fn=permutations()
    )
    observed, null = null_values(measure, A, B, orders)
    ours = calibrate(getattr(observed, aggregate)(), getattr(null, aggregate)(axis=(1, 2)))
    assert [float(ours.score), float(ours.p), float(ours.threshold)] == pytest.approx(
        [float(score), float(p), float(threshold)], abs=2e-6
    )
    score, p, threshold = peer.calibrate(first[1], second[2], similarity, K=60, perm_fn=permutations())
    cell = calibrate(observed, null)
    assert [cell.score[1, 2], cell.p[1, 2], cell.threshold[1, 2]] == pytest.approx(
        [float(score), float(p), float(threshold)], abs=2e-6
    )


def test_every_permutation_costs_calibrated_similarity_the_same() -> None:
    """It calls the measure once for every pair of layers and every order: its time may be scaled up."""
    peer = pytest.importorskip("calibrated_similarity")
    first, second = [torch.from_numpy(x) for x in A], [torch.from_numpy(y) for y in B]

    def calls(n_permutations: int) -> int:
        shapes = []

        def similarity(X: torch.Tensor, Y: torch.Tensor) -> float:
            shapes.append((X.shape, Y.shape))
            return float(X.mean() * Y.mean())

        peer.calibrate_layers(first, second, similarity, K=n_permutations)
        assert len({x[0] for pair in shapes for x in pair}) == 1  # all items, every time
        return len(shapes)

    assert [calls(n) for n in (1, 2, 9)] == [(1 + n) * len(A) * len(B) for n in (1, 2, 9)]


def test_layers_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = sentence_orders(None, N, n=4)
    whole = null_values("cka", A, B, orders)[1]
    monkeypatch.setattr("thinkalike.measures.pair_forms._MEMORY", 1)
    monkeypatch.setattr("thinkalike.measures.pair_forms._AT_ONCE", 7)
    assert null_values("cka", A, B, orders)[1] == pytest.approx(whole, abs=1e-6)


def test_a_distance_is_read_the_other_way() -> None:
    observed, null = np.array(0.2), np.array([0.9, 0.8, 1.0, 0.7] * 10)
    found = calibrate(observed, null, best=0.0, distance=True)
    as_similarity = calibrate(-observed, -null, best=0.0)
    assert found.p == as_similarity.p == 1 / 41
    assert found.threshold == -as_similarity.threshold == 0.7
    assert found.score == pytest.approx((0.7 - 0.2) / 0.7)


def test_whole_sentences_of_equal_length_change_places() -> None:
    sentences = np.array(list("aabbbccdddeefgghhhz"))  # 2 3 2 3 2 1 2 3 1
    for order in sentence_orders(sentences, 19, n=50, seed=1):
        assert sorted(order) == list(range(19))
        for name in set(sentences):
            places = np.flatnonzero(sentences == name)
            came = sentences[order[places]]
            assert len(set(came)) == 1  # one sentence, whole
            assert (sentences == came[0]).sum() == len(places)
            assert (np.diff(order[places]) == 1).all()  # its words in their order


def test_sentences_need_partners() -> None:
    with pytest.raises(InvalidInput, match="can change places in only 2 ways"):
        sentence_orders(["a", "b", "b", "c", "c"], 5)
    with pytest.raises(InvalidInput, match="There are 3 items and 2 sentences"):
        sentence_orders(["a", "b"], 3)


def test_level_for_unrelated_layers_and_what_word_by_word_would_say() -> None:
    """Words of a sentence are alike, and both systems see the place of the word: 120 unrelated pairs."""
    rng = np.random.default_rng(2)
    sentences = np.repeat(np.arange(20), 3)
    by_sentence, by_word = [], []
    for seed in range(120):
        layers = []
        for _ in range(2):
            place, sentence = rng.normal(size=(3, 4)), rng.normal(size=(20, 4))
            layers.append(place[np.tile(np.arange(3), 20)] + sentence[sentences] + rng.normal(size=(60, 4)))
        for given, found in ((sentences, by_sentence), (None, by_word)):
            orders = sentence_orders(given, 60, n=39, seed=seed)
            observed, null = null_values("cka", layers[:1], layers[1:], orders)
            found.append(calibrate(observed, null).p[0, 0])
    assert 0.0 < np.mean(np.array(by_sentence) <= 0.05) <= 0.11
    assert np.mean(np.array(by_word) <= 0.05) > 0.5
