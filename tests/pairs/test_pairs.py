"""Which pairs, and in what order: against scipy and against draws that are really counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist
from scipy.stats import chisquare, rankdata

from thinkalike.pairs.distances import QuadraticTarget, make_target
from thinkalike.pairs.pairset import Pairs, draw_places
from thinkalike.pairs.ranks import centred_ranks, pair_distances, sort_distances, standardised_ranks


def test_all_pairs_are_in_the_order_of_pdist() -> None:
    pairs = Pairs.of(7)
    i, j = np.triu_indices(7, k=1)
    np.testing.assert_array_equal(pairs.i, i)
    np.testing.assert_array_equal(pairs.j, j)
    assert (len(pairs), pairs.n_all, pairs.is_sample) == (21, 21, False)


@pytest.mark.parametrize("max_pairs", [20, 900, 1200])
def test_a_sample_has_no_pair_twice_and_keeps_the_order(max_pairs: int) -> None:
    pairs = Pairs.of(50, max_pairs=max_pairs, seed=1)
    i, j = np.triu_indices(50, k=1)
    places = np.flatnonzero(np.isin(i * 50 + j, pairs.i * 50 + pairs.j))
    assert len(places) == max_pairs == len(pairs)  # so none comes twice
    np.testing.assert_array_equal(pairs.i, i[places])
    np.testing.assert_array_equal(pairs.j, j[places])
    assert pairs.is_sample
    np.testing.assert_array_equal(pairs.sample, Pairs.of(50, max_pairs=max_pairs, seed=1).sample)
    assert not np.array_equal(pairs.sample, Pairs.of(50, max_pairs=max_pairs, seed=2).sample)


def test_every_set_of_places_is_equally_likely() -> None:
    rng = np.random.default_rng(0)
    for size in (2, 4):  # 15 sets of six each; the second by its complement
        drawn = [tuple(draw_places(6, size, rng)) for _ in range(6000)]
        counts = list({places: drawn.count(places) for places in set(drawn)}.values())
        assert len(counts) == 15
        assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("max_pairs", [30, 300, 10**6])  # pair by pair; by blocks of products; all
def test_sampled_pairs_carry_their_own_distances(max_pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thinkalike.pairs.distances.BLOCK_ROWS", 7)
    X = np.random.default_rng(0).normal(size=(40, 5)) + 100.0
    pairs = Pairs.of(40, max_pairs=max_pairs, seed=0)
    y, _ = pair_distances(pairs, make_target(X, "euclidean"))
    np.testing.assert_allclose(y, ((X[pairs.i] - X[pairs.j]) ** 2).sum(axis=1), rtol=1e-9)


def test_blocks_cover_all_pairs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thinkalike.pairs.pairset.BLOCK_PAIRS", 8)
    parts = [np.arange(45)[part] for part in Pairs.of(10).blocks()]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(45))
    assert max(map(len, parts)) == 8


@settings(max_examples=50)
@given(arrays(np.float64, st.integers(2, 40), elements=st.sampled_from([0.0, 1.0, 1.5, 2.0, 7.0])))
def test_ranks_are_scipys_with_ties_averaged(y: np.ndarray) -> None:
    zeros, ones = np.zeros(len(y), dtype=np.int32), np.ones(len(y), dtype=np.int32)
    ranks, spread = centred_ranks(*sort_distances(y, zeros, ones))
    expected = rankdata(y) - (len(y) + 1) / 2
    np.testing.assert_array_equal(ranks, expected)
    assert spread == pytest.approx((expected**2).sum())


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_same_vector_twice_makes_ties(offset: float) -> None:
    """However the products were summed: against ranks of distances from differences, rounded."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 33))
    X = np.concatenate([X, X, X[:5]]) * rng.choice([1, 30], size=33) + offset
    expected = rankdata(np.round(pdist(X) ** 2, 6))
    expected = (expected - expected.mean()) / expected.std()
    got = standardised_ranks(Pairs.of(len(X)), make_target(X, "euclidean"))
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_equal_distances_have_no_ranks() -> None:
    assert np.isnan(standardised_ranks(Pairs.of(6), QuadraticTarget(((1.0, np.eye(6)),)))).all()


@pytest.mark.parametrize("distance", ["euclidean", "mahalanobis"])
def test_an_offset_of_ten_million_does_not_move_the_order(distance: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 8))
    ranks = [standardised_ranks(Pairs.of(60), make_target(X + c, distance)) for c in (0.0, 1e7)]
    assert float(ranks[0] @ ranks[1]) / len(ranks[0]) > 1 - 1e-6
