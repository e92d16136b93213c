"""The relabelling null: its known shape, exact p-values by brute force, behaviour under null and effect."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import false_discovery_control, kstest, weightedtau

from thinkalike.inference.block_tests import Inference, relabelling_test
from thinkalike.inference.weighted_tau import relabelled_taus, relabellings, tau_matrix


def system(name: str, n_layers: int) -> list[tuple[str, int | str]]:
    return [(name, layer) for layer in range(n_layers)]


def correlated_layers(rng: np.random.Generator, n_layers: int, n_features: int) -> np.ndarray:
    """Layers of one system: what they share, and a little of their own."""
    return rng.normal(size=n_features) + 0.5 * rng.normal(size=(n_layers, n_features))


def judged(strengths: np.ndarray, rows: list[tuple[str, int | str]], **options: int) -> Inference:
    """A test whose effects are τ_w of the strengths themselves."""
    return relabelling_test(tau_matrix(strengths), strengths, rows, **options)


def all_taus(x: np.ndarray, y: np.ndarray, orders: np.ndarray) -> np.ndarray:
    return np.concatenate(list(relabelled_taus(x, y, orders)))


def test_the_null_of_eight_features_is_wide() -> None:
    ranking = np.arange(8.0)[None]
    null = all_taus(ranking, ranking, relabellings(8)).ravel()
    assert len(null) == 40_320
    assert null.std() == pytest.approx(0.330, abs=5e-4)
    assert np.quantile(null, 0.95) == pytest.approx(0.556, abs=5e-4)
    assert (null < -0.24).mean() == pytest.approx(0.25, abs=0.005)


@pytest.mark.parametrize("ties", [False, True])
def test_relabelled_blocks_are_scipys(ties: bool) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 6)), rng.normal(size=(2, 6))
    if ties:
        x, y = np.maximum(x, 0), np.round(y)
    orders = relabellings(6)[rng.integers(0, 720, size=15)]
    expected = [[[weightedtau(a, b[order]).statistic for b in y] for a in x] for order in orders]
    np.testing.assert_allclose(all_taus(x, y, orders), expected, atol=1e-12)


def test_blocks_of_relabellings_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    x, y, orders = rng.normal(size=(3, 5)), rng.normal(size=(2, 5)), relabellings(5)
    whole = all_taus(x, y, orders)
    monkeypatch.setattr("thinkalike.inference.weighted_tau._RELABELLED_AT_ONCE", 500)
    np.testing.assert_allclose(all_taus(x, y, orders), whole, atol=1e-14)


def test_few_features_are_enumerated_and_many_are_sampled() -> None:
    assert sorted(map(tuple, relabellings(4))) == sorted(permutations(range(4)))
    drawn = relabellings(9, n_samples=50, seed=1)
    assert drawn.shape == (51, 9)
    np.testing.assert_array_equal(drawn[0], np.arange(9))
    assert (np.sort(drawn, axis=1) == np.arange(9)).all()
    np.testing.assert_array_equal(drawn, relabellings(9, n_samples=50, seed=1))


@pytest.fixture(scope="module")
def brute_force() -> dict[str, np.ndarray]:
    """τ_w of two systems (2 and 3 layers, 5 features) under all 120 relabellings of the second, by scipy."""
    rng = np.random.default_rng(4)
    x, y = correlated_layers(rng, 2, 5), correlated_layers(rng, 3, 5)
    null = [[[weightedtau(a, b[list(p)]).statistic for b in y] for a in x] for p in permutations(range(5))]
    return {"profiles": np.concatenate([x, y]), "null": np.array(null)}


def test_p_values_are_those_of_brute_force(brute_force: dict[str, np.ndarray]) -> None:
    result = judged(brute_force["profiles"], system("a", 2) + system("b", 3))
    null = brute_force["null"]
    observed = null[0]
    block = next(t for t in result.blocks if (t.a, t.b) == ("a", "b"))
    means, maxima = null.mean(axis=(1, 2)), null.max(axis=(1, 2))
    assert block.mean == pytest.approx(observed.mean())
    assert block.maximum == pytest.approx(observed.max())
    assert block.p_mean == pytest.approx((means >= means[0] - 1e-9).mean())
    assert block.p_maximum == pytest.approx((maxima >= maxima[0] - 1e-9).mean())
    assert block.null_95 == pytest.approx(np.quantile(means, 0.95))
    assert (block.n_relabellings, block.exact) == (120, True)
    assert observed[block.layer_a, block.layer_b] == observed.max()
    corrected = (maxima[:, None, None] >= observed - 1e-9).mean(axis=0)
    np.testing.assert_allclose(result.p_block[:2, 2:], corrected)
    np.testing.assert_allclose(result.p_block[2:, :2], corrected.T)
    assert np.isnan(np.diag(result.p_block)).all()


def test_effects_are_shown_and_strengths_are_tested(brute_force: dict[str, np.ndarray]) -> None:
    rows, strengths = system("a", 2) + system("b", 3), brute_force["profiles"]
    effects = np.random.default_rng(0).uniform(size=(5, 5))
    shown = next(t for t in relabelling_test(effects, strengths, rows).blocks if t.a != t.b)
    of_strengths = next(t for t in judged(strengths, rows).blocks if t.a != t.b)
    assert shown.mean == pytest.approx(effects[:2, 2:].mean())
    assert shown.maximum == effects[:2, 2:].max() == effects[shown.layer_a, 2 + shown.layer_b]
    assert shown.strength == pytest.approx(brute_force["null"][0].mean())
    for name in ("strength", "null_95", "p_mean", "p_maximum"):
        assert getattr(shown, name) == getattr(of_strengths, name)


@pytest.mark.parametrize("n_features", [3, 4])
def test_where_no_p_can_be_small_none_is_given(n_features: int) -> None:
    profiles = np.tile(np.arange(float(n_features)), (2, 1))
    result = judged(profiles, [("a", 0), ("b", 0)])
    (block,) = result.blocks
    assert block.mean == pytest.approx(1.0)
    assert np.isnan([block.p_mean, block.q, block.p_maximum, block.strength, block.null_95]).all()
    assert np.isnan(result.p_block).all()


def test_without_strengths_nothing_is_tested() -> None:
    (block,) = relabelling_test(np.eye(2), None, [("a", 0), ("b", 0)]).blocks
    assert (block.mean, block.n_relabellings) == (0.0, 0)
    assert np.isnan(block.q)


def test_within_a_system_the_diagonal_does_not_count(brute_force: dict[str, np.ndarray]) -> None:
    profiles = brute_force["profiles"][2:]
    (block,) = judged(profiles, system("b", 3)).blocks
    null = np.array(
        [
            [[weightedtau(a, b[list(p)]).statistic for b in profiles] for a in profiles]
            for p in permutations(range(5))
        ]
    )
    off = ~np.eye(3, dtype=bool)
    assert block.mean == pytest.approx(null[0][off].mean())
    means, maxima = null[:, off].mean(axis=1), null[:, off].max(axis=1)
    assert block.p_mean == pytest.approx((means >= means[0] - 1e-9).mean())
    assert block.p_maximum == pytest.approx((maxima >= maxima[0] - 1e-9).mean())
    assert np.isnan(block.q)


def test_a_system_of_one_layer_has_no_block_of_its_own() -> None:
    profiles = np.random.default_rng(0).normal(size=(2, 5))
    blocks = judged(profiles, [("a", 0), ("b", 0)]).blocks
    assert [(t.a, t.b) for t in blocks] == [("a", "b")]


def test_constant_profiles_are_left_out_of_the_block() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 5)), rng.normal(size=(1, 5))
    x[1] = 0.0
    result = judged(np.concatenate([x, y]), system("a", 2) + system("b", 1))
    (block,) = result.blocks  # within a, no pair is left
    assert block.mean == pytest.approx(weightedtau(x[0], y[0]).statistic)
    assert np.isnan(result.p_block[1]).all()


def test_sampled_p_values_count_the_identity() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 12))
    result = judged(np.concatenate([x, x]), [("a", 0), ("b", 0)], n_samples=199)
    (block,) = result.blocks
    assert block.p_mean == pytest.approx(1 / 200)
    assert not block.exact


def test_p_values_are_uniform_under_the_null_and_blocks_control_false_positives() -> None:
    rng = np.random.default_rng(7)
    rows = system("a", 3) + system("b", 4)
    means, maxima = [], []
    for _ in range(300):
        profiles = np.concatenate([correlated_layers(rng, 3, 6), correlated_layers(rng, 4, 6)])
        result = judged(profiles, rows)
        block = next(t for t in result.blocks if t.a != t.b)
        means.append(block.p_mean)
        maxima.append(block.p_maximum)
    for p in (means, maxima):
        assert kstest(p, "uniform").pvalue > 0.01
        assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_a_planted_pair_is_found_and_the_other_systems_are_not() -> None:
    rng = np.random.default_rng(11)
    shared = np.arange(7.0)
    found, wrong = 0, 0
    for _ in range(20):
        a, b = (shared + 0.5 * rng.normal(size=(4, 7)) for _ in range(2))
        c = correlated_layers(rng, 4, 7)
        result = judged(np.concatenate([a, b, c]), system("a", 4) + system("b", 4) + system("c", 4))
        q = {(t.a, t.b): t.q for t in result.blocks if t.a != t.b}
        found += q["a", "b"] < 0.05
        wrong += (q["a", "c"] < 0.05) or (q["b", "c"] < 0.05)
    assert found == 20
    assert wrong <= 5  # at most a false discovery rate of 5 % and its noise


def test_what_is_printed_is_corrected_for_the_pairs_of_systems() -> None:
    """Means and maxima alike, by SciPy; within a system there is nothing to correct for."""
    rng = np.random.default_rng(3)
    rows = [*system("a", 2), *system("b", 2), *system("c", 2)]
    blocks = judged(rng.normal(size=(6, 5)), rows).blocks
    between = [block for block in blocks if block.a != block.b]
    for q, p in (("q", "p_mean"), ("q_maximum", "p_maximum")):
        raw = [getattr(block, p) for block in between]
        assert [getattr(block, q) for block in between] == pytest.approx(false_discovery_control(raw))
        assert np.isnan([getattr(block, q) for block in blocks if block.a == block.b]).all()
    assert any(block.q_maximum > block.p_maximum for block in between)
