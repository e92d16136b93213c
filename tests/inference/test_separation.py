"""The separation of groups: Q by hand, the jackknife by brute force, levels and ranges in small worlds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import ortho_group
from scipy.stats import t as student

from thinkalike.inference.separation import _turned, separations

TEN = np.repeat([0, 1], 5)


def points(
    rng: np.random.Generator, codes: np.ndarray, *, apart: float, spread: tuple[float, ...]
) -> np.ndarray:
    """Squared distances of points around the centres of their groups, in 5 dimensions."""
    X = rng.normal(size=(len(codes), 5)) * np.array(spread)[codes][:, None]
    X[:, 0] += apart * codes
    return ((X[:, None] - X[None]) ** 2).sum(axis=-1)


def by_hand(V: np.ndarray, codes: np.ndarray) -> float:
    groups = [np.flatnonzero(codes == g) for g in np.unique(codes)]
    within = [np.mean([V[i, j] for i in g for j in g if i != j]) for g in groups]
    between = [V[np.ix_(a, b)].mean() for k, a in enumerate(groups) for b in groups[:k]]
    return float(np.mean(between) - np.mean(within))


def T_of(V: np.ndarray, codes: np.ndarray) -> float:
    """Q over its jackknife error, by hand."""
    left_out = np.array(
        [by_hand(np.delete(np.delete(V, i, 0), i, 1), np.delete(codes, i)) for i in range(len(codes))]
    )
    variance = sum(
        (n - 1) / n * ((left_out[codes == g] - left_out[codes == g].mean()) ** 2).sum()
        for g, n in enumerate(np.bincount(codes))
    )
    return by_hand(V, codes) / float(np.sqrt(variance))


def relabelled(codes: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return np.stack([codes, *(rng.permutation(codes) for _ in range(n))])


@pytest.mark.parametrize("codes", [TEN, np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])])
def test_value_p_and_upper_end_by_brute_force(codes: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    V = points(rng, codes, apart=1.0, spread=(1.0, 2.0, 1.0))
    labels = relabelled(codes, 60, rng)

    found = separations(V[None], codes, labels)[0]
    value = by_hand(V, codes)
    error = value / T_of(V, codes)
    T = np.array([T_of(V, one) for one in labels])
    assert found.value == pytest.approx(value)
    assert found.p == (T[0] - 1e-9 <= T).mean()
    free = 10 - len(np.unique(codes))
    once_in_200 = student.ppf(0.995, free)  # a tenth of what the lower end may miss
    assert found.high == pytest.approx(value + once_in_200 * error)


def test_the_range_starts_above_0_exactly_where_p_is_small() -> None:
    rng = np.random.default_rng(1)
    found = [
        separations(points(rng, TEN, apart=a, spread=(1.0, 1.5))[None], TEN, relabelled(TEN, 99, rng))[0]
        for a in np.linspace(0, 4, 30)
    ]
    assert {(one.low > 0) == (one.p <= 0.05) for one in found} == {True}
    assert 5 <= sum(one.p <= 0.05 for one in found) <= 25
    assert all(one.low <= max(one.value, 0) <= one.high for one in found)


def test_an_effect_of_single_models_cancels() -> None:
    rng = np.random.default_rng(2)
    V = points(rng, TEN, apart=1.0, spread=(1.0, 1.0))
    effect = rng.normal(size=10)
    labels = relabelled(TEN, 50, rng)
    a, b = separations(np.stack([V, V + effect[:, None] + effect[None, :]]), TEN, labels)
    assert a.value == pytest.approx(b.value)
    assert a.p == b.p


def test_p_any_is_that_of_the_largest_over_the_matrices() -> None:
    rng = np.random.default_rng(3)
    stack = np.stack([points(rng, TEN, apart=a, spread=(1.0, 1.0)) for a in (0.0, 0.5, 3.0)])
    labels = relabelled(TEN, 99, rng)
    found = separations(stack, TEN, labels)
    alone = [separations(one[None], TEN, labels)[0] for one in stack]
    assert [one.p for one in found] == [one.p for one in alone]
    assert all(one.p_any >= one.p for one in found)


@pytest.mark.parametrize("spread", [(1.0, 1.0), (1.0, 3.0), (3.0, 1.0)])
def test_level_and_lack_of_bias_whatever_the_spread(spread: tuple[float, float]) -> None:
    """150 draws of groups of 5 and 15 models with one centre; the whole table is in docs/certainty.md."""
    rng, codes = np.random.default_rng(4), np.repeat([0, 1], [5, 15])
    found = [
        separations(points(rng, codes, apart=0.0, spread=spread)[None], codes, relabelled(codes, 99, rng))[0]
        for _ in range(150)
    ]
    assert 0.01 <= np.mean([one.p <= 0.05 for one in found]) <= 0.10
    values = np.array([one.value for one in found])
    assert abs(values.mean()) <= 3 * values.std() / np.sqrt(len(values))


def test_turned_models_by_brute_force() -> None:
    """T of points that were turned around the centre of their group, with scipy's rotations."""
    rng, codes = np.random.default_rng(5), np.repeat([0, 1], [4, 7])
    X = rng.normal(size=(11, 3)) * np.array([3.0, 1.0])[codes][:, None]

    expected = []
    for _ in range(400):
        Y = np.empty_like(X)
        for g, n in enumerate((4, 7)):
            own = X[codes == g] - X[codes == g].mean(axis=0)
            Y[codes == g] = np.sqrt(n / (n - 1)) * ortho_group.rvs(n, random_state=rng) @ own
        expected.append(T_of(squareform(pdist(Y, "sqeuclidean")), codes))
    found = _turned(squareform(pdist(X, "sqeuclidean"))[None], codes, 4000, seed=0)[0]
    for level in (0.25, 0.5, 0.75, 0.95):
        below = (found <= np.quantile(expected, level)).mean()
        assert abs(below - level) < 4 * np.sqrt(level * (1 - level) / 400)


def test_p_is_the_larger_of_relabelled_and_turned() -> None:
    rng, codes = np.random.default_rng(6), np.repeat([0, 1], [5, 15])
    larger = 0
    for _ in range(20):
        V = points(rng, codes, apart=1.0, spread=(3.0, 1.0))[None]
        found = separations(V, codes, relabelled(codes, 199, rng), seed=0)[0]
        turned = _turned(V, codes, 200, seed=0)[0]
        share = (1 + (turned >= T_of(V[0], codes)).sum()) / 201
        assert found.p >= share - 1e-9
        larger += found.p == pytest.approx(share)
    assert 0 < larger < 20  # now the one, now the other
