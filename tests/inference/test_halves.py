"""Reliability over halves of the sentences: by hand, and against a truth that noise hides."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from thinkalike.errors import InvalidInput
from thinkalike.inference import halves
from thinkalike.inference.halves import across_halves, plan_halves, rsa_across_halves
from thinkalike.measures import get_measure

RSA = get_measure("rsa")


def noisy(noise: float, *, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, float]:
    """Two layers of 60 sentences of 20 conditions each; and the RSA of the conditions without noise."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(20, 6))
    true = [shared + 0.7 * rng.normal(size=shared.shape) for _ in range(2)]
    condition, sentence = np.tile(np.arange(20), 60), np.repeat(np.arange(60), 20)
    layers = [t[condition] + noise * rng.normal(size=(1200, 6)) for t in true]
    return layers, condition, sentence, float(spearmanr(pdist(true[0]), pdist(true[1])).statistic)


def test_one_deal_by_hand() -> None:
    layers, condition, sentence, _ = noisy(2.0)
    found = across_halves(RSA, layers, plan_halves(condition, sentence, n_deals=1, seed=3))
    half = np.random.default_rng(3).permutation(np.arange(60) % 2)[sentence]
    means = [
        [np.stack([X[(half == h) & (condition == c)].mean(axis=0) for c in range(20)]) for h in (0, 1)]
        for X in layers
    ]

    def rho(a: np.ndarray, b: np.ndarray) -> float:
        return float(spearmanr(pdist(a), pdist(b)).statistic)

    one_way, other_way = rho(means[0][0], means[1][1]), rho(means[1][0], means[0][1])
    assert found.across[0, 1] == pytest.approx((one_way + other_way) / 2, abs=1e-6)
    assert found.reliability[1] == pytest.approx(rho(means[1][0], means[1][1]), abs=1e-6)
    assert found.disattenuated[0, 1] == pytest.approx(
        found.across[0, 1] / np.sqrt(found.reliability[0] * found.reliability[1])
    )


def test_noise_lowers_the_likeness_and_its_ceiling_alike() -> None:
    gaps, lowered = [], []
    for seed in range(20):
        layers, condition, sentence, true = noisy(4.0, seed=seed)
        found = across_halves(RSA, layers, plan_halves(condition, sentence))
        gaps.append(found.disattenuated[0, 1] - true)
        lowered.append(true - found.across[0, 1])
    assert np.mean(lowered) > 0.1
    assert abs(np.mean(gaps)) < 0.05


def test_too_few_conditions() -> None:
    _, _, sentence, _ = noisy(1.0)
    with pytest.raises(InvalidInput, match="Only 1 combinations of feature values stand in both halves"):
        plan_halves(np.zeros(1200), sentence)


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_rsa_from_ranks_of_each_layer_alone(distance: str) -> None:
    """A layer is read once and leaves its ranks; the matrix from these is that of the measure."""
    layers, condition, sentence, _ = noisy(2.0)
    plan = plan_halves(condition, sentence, n_deals=3)
    name = "rsa" if distance == "euclidean" else "rsa-cosine"
    whole = across_halves(get_measure(name), layers, plan)
    found = rsa_across_halves([plan.ranks(X, distance) for X in layers])
    for part, same in zip(found, whole, strict=True):
        np.testing.assert_allclose(part, same, atol=1e-6)


def test_of_many_conditions_a_sample_of_their_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    layers, condition, sentence, _ = noisy(2.0)
    whole = across_halves(RSA, layers, plan_halves(condition, sentence))
    monkeypatch.setattr(halves, "HALF_PAIRS", 150)
    plan = plan_halves(condition, sentence)
    ranks = [plan.ranks(X) for X in layers]
    assert ranks[0][0].shape == (2, 150)
    found = rsa_across_halves(ranks)
    assert found.across[0, 1] == pytest.approx(whole.across[0, 1], abs=0.05)
    assert found.across[0, 1] != pytest.approx(whole.across[0, 1], abs=1e-6)
