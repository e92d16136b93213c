"""Distances against scipy's, and every way to give bad activations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import cdist, pdist
from sklearn.covariance import LedoitWolf

from thinkalike.encoding.mlem import MLEM
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.pairs.distances import DISTANCES, as_vectors, make_target
from thinkalike.pairs.runs import stack_runs

X = np.random.default_rng(0).normal(size=(20, 6)) + 3
HALVES = np.random.default_rng(1).normal(size=(3, 20, 6))


def crossnobis(runs: np.ndarray) -> np.ndarray:
    """Straight from the definition: mean over ordered pairs of different runs."""
    y = []
    for i, j in itertools.combinations(range(runs.shape[1]), 2):
        delta = runs[:, i] - runs[:, j]
        y.append(np.mean([delta[r] @ delta[s] for r, s in itertools.permutations(range(len(runs)), 2)]))
    return np.array(y)


EXPECTED: dict[str, tuple[Any, np.ndarray]] = {
    "euclidean": (X, pdist(X, "sqeuclidean")),
    "cosine": (X, 2 * pdist(X, "cosine")),
    "correlation": (X, 2 * pdist(X, "correlation")),
    "zscored": (X, pdist(X, "seuclidean", V=X.var(axis=0)) ** 2),
    "mahalanobis": (X, pdist(X, "mahalanobis") ** 2),
    "whitened": (X, pdist(X, "mahalanobis", VI=LedoitWolf().fit(X).precision_) ** 2),
    "crossnobis": (HALVES, crossnobis(HALVES)),
    "manhattan": (X, pdist(X, "cityblock") ** 2),
    "precomputed": (cdist(X, X), pdist(X, "sqeuclidean")),
}


def test_every_distance_has_an_oracle() -> None:
    assert set(EXPECTED) == set(DISTANCES)


@pytest.mark.parametrize("distance", EXPECTED)
def test_distances_equal_scipy(distance: str) -> None:
    given, expected = EXPECTED[distance]
    target = make_target(given, distance)
    everyone = np.arange(20)
    i, j = np.triu_indices(20, 1)
    np.testing.assert_allclose(target.within(everyone)[0], expected, atol=1e-10)
    np.testing.assert_allclose(target.block(everyone, everyone)[i, j], expected, atol=1e-10)
    np.testing.assert_allclose(target.between(i, j)[0], expected, atol=1e-10)
    some = np.array([7, 2, 11, 3])
    a, b = (some[k] for k in np.triu_indices(4, 1))
    at = dict(zip(zip(i, j, strict=True), expected, strict=True))
    wanted = [at[min(pair), max(pair)] for pair in zip(a, b, strict=True)]
    np.testing.assert_allclose(target.within(some)[0], wanted, atol=1e-10)


def test_a_callable_is_a_distance_too() -> None:
    target = make_target(X, lambda a, b: cdist(a, b, "chebyshev"))
    np.testing.assert_allclose(target.within(np.arange(20))[0], pdist(X, "chebyshev") ** 2)


def test_blocks_meet_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thinkalike.pairs.distances.BLOCK_ROWS", 3)
    for distance in ("euclidean", "manhattan"):
        given, expected = EXPECTED[distance]
        np.testing.assert_allclose(
            make_target(given, distance).within(np.arange(20))[0], expected, atol=1e-10
        )


@pytest.mark.parametrize(
    "distance", ["euclidean", "cosine", "correlation", "zscored", "mahalanobis", "whitened", "manhattan"]
)
def test_the_estimator_explains_the_distance_it_is_told(distance: str) -> None:
    features = pd.DataFrame({"a": np.arange(20) % 2 == 0, "b": (np.arange(20) % 3).astype(str)})
    i, j = np.triu_indices(20, 1)
    Z = np.stack([(features[c].to_numpy()[i] != features[c].to_numpy()[j]) for c in features], axis=1)
    mlem = MLEM(alpha=0.0, distance=distance).fit(features, X)
    y = EXPECTED[distance][1]
    A = np.column_stack([np.ones(len(y)), Z])
    free = np.linalg.lstsq(A, y, rcond=None)[0]
    if (free[1:] >= 0).all():
        np.testing.assert_allclose([mlem.intercept_, *mlem.weights_], free, atol=1e-8)
    else:
        assert (mlem.weights_ >= 0).all()
        assert (mlem.weights_ == 0).any()


def test_crossnobis_takes_runs_as_a_column() -> None:
    items = [f"i{k}" for k in range(20)]
    rows = [(item, run) for run in ("r1", "r2", "r3") for item in items]
    features = pd.DataFrame(
        {"a": [int(item[1:]) % 2 == 0 for item, _ in rows], "run": [run for _, run in rows]},
        index=[item for item, _ in rows],
    )
    long = HALVES.reshape(60, 6)
    shuffled = np.random.default_rng(0).permutation(60)
    mlem = MLEM(distance="crossnobis", run="run").fit(features.iloc[shuffled], long[shuffled])
    stacked = MLEM(distance="crossnobis").fit(features[["a"]].iloc[:20], HALVES)
    np.testing.assert_allclose(mlem.weights_, stacked.weights_, atol=1e-12)
    assert mlem.n_items_ == 20
    assert mlem.predict(features).shape == (190,)
    assert mlem.score(features, long) == pytest.approx(stacked.score(features[["a"]].iloc[:20], HALVES))


def test_crossnobis_is_not_biased_by_noise() -> None:
    """Pure noise has squared distances of 2d, but a crossnobis distance of 0 on average."""
    runs = np.random.default_rng(0).normal(size=(2, 200, 10))
    assert abs(make_target(runs, "crossnobis").within(np.arange(200))[0].mean()) < 1
    assert make_target(runs[0], "euclidean").within(np.arange(200))[0].mean() > 15


def test_runs_that_do_not_fit() -> None:
    table = pd.DataFrame({"a": ["x", "y", "x", "y"], "run": [1, 1, 2, 2]}, index=["i", "j", "i", "j"])
    array = np.random.default_rng(0).normal(size=(4, 3))
    with pytest.raises(UnknownName, match=r"no column of runs 'runn'\. Did you mean 'run'"):
        stack_runs(table, array, run="runn")
    with pytest.raises(InvalidInput, match="'run' has 1 run: crossnobis needs at least two"):
        stack_runs(table.iloc[:2], array[:2], run="run")
    with pytest.raises(InvalidInput, match="Item j was not measured in run 2"):
        stack_runs(table.iloc[:3], array[:3], run="run")
    with pytest.raises(InvalidInput, match="different features in different runs"):
        stack_runs(table.assign(a=["x", "y", "x", "x"]), array, run="run")
    with pytest.raises(InvalidInput, match=r"'run' is empty in 1 row\(s\), first in row 2"):
        stack_runs(table.assign(run=[1, 1, None, 2]), array, run="run")
    with pytest.raises(InvalidInput, match="Row 1 of the features has no item in the index"):
        stack_runs(table.set_index(pd.Index(["i", None, "i", "j"])), array, run="run")
    with pytest.raises(InvalidInput, match="Got 1 run: crossnobis needs at least two"):
        make_target(array[None], "crossnobis")
    twice = pd.concat([table, table])
    _, averaged = stack_runs(twice, np.concatenate([array, array + 2]), run="run")
    np.testing.assert_allclose(averaged[0], array[:2] + 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_torch_tensors_are_taken(dtype: torch.dtype) -> None:
    tensor = torch.tensor(X).to(dtype).requires_grad_()
    array = as_vectors(tensor)
    assert array.dtype == (np.float64 if dtype == torch.float64 else np.float32)
    np.testing.assert_allclose(array, X, rtol=1e-2)


def test_other_numbers_are_taken() -> None:
    assert as_vectors([[1, 2], [3, 4]]).dtype == np.float64
    assert as_vectors(np.ones((2, 2), dtype=np.float16)).dtype == np.float32
    assert as_vectors(np.arange(3)).shape == (3, 1)
    assert as_vectors(np.full((2, 2), 3e38, dtype=np.float32)).shape == (
        2,
        2,
    )  # the sum overflows, X does not


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_named(bad: float) -> None:
    broken = X.copy()
    broken[[4, 9], 2] = bad
    with pytest.raises(InvalidInput, match=r"NaN or infinity in 2 row\(s\) of X: 4, 9\. Drop these items"):
        as_vectors(broken)
    broken[:, 0] = bad
    with pytest.raises(InvalidInput, match=r"in 20 row\(s\) of X: 0, 1, 2, 3, 4, …"):
        as_vectors(broken)


def test_arrays_of_the_wrong_form() -> None:
    with pytest.raises(InvalidInput, match=r"shape \(2, 2, 2\): give \(n_items, n_units\)"):
        as_vectors(np.zeros((2, 2, 2)))
    with pytest.raises(InvalidInput, match=r"shape \(3, 2\): give \(n_runs, n_items, n_units\)"):
        as_vectors(np.zeros((3, 2)), dimensions=3)
    with pytest.raises(InvalidInput, match="of type complex128: give real numbers"):
        as_vectors(np.zeros((3, 2), dtype=complex))
    with pytest.raises(InvalidInput, match="without units"):
        as_vectors(np.zeros((3, 0)))
    with pytest.raises(InvalidInput, match="Got 3 rows of activations for 4 items of features"):
        as_vectors(np.zeros((3, 2)), n_items=4)


def test_distances_that_cannot_be() -> None:
    with pytest.raises(UnknownName, match=r"no distance 'euclidian'\. Did you mean 'euclidean'"):
        make_target(X, "euclidian")
    zero = X.copy()
    zero[3] = 0
    with pytest.raises(InvalidInput, match="Row 3 of X is zero, so it has no cosine distance"):
        make_target(zero, "cosine")
    zero[3] = 5
    with pytest.raises(InvalidInput, match="Row 3 of X is the same in every unit, so it has no correlation"):
        make_target(zero, "correlation")
    with pytest.raises(InvalidInput, match="more items than units, got 5 items and 6 units"):
        make_target(X[:5], "mahalanobis")
    with pytest.raises(InvalidInput, match="covariance of X is singular"):
        make_target(np.column_stack([X, X[:, 0]]), "mahalanobis")


def test_matrices_that_are_no_distances() -> None:
    D = cdist(X, X)
    with pytest.raises(InvalidInput, match=r"shape \(20, 6\): give \(n_items, n_items\)"):
        make_target(X, "precomputed")
    skew = D.copy()
    skew[5, 2] += 1
    with pytest.raises(
        InvalidInput, match=r"not symmetric: D\[2, 5\] = .* but D\[5, 2\] = .* Give \(D \+ D\.T\) / 2"
    ):
        make_target(skew, "precomputed")
    with pytest.raises(InvalidInput, match="diagonal that is not 0: give distances, not similarities"):
        make_target(np.exp(-D), "precomputed")
    with pytest.raises(InvalidInput, match="negative entries"):
        make_target(-D, "precomputed")


def test_callables_that_misbehave() -> None:
    everyone = np.arange(20)
    with pytest.raises(InvalidInput, match=r"array of shape \(20,\) for 20 and 20 items"):
        make_target(X, lambda a, b: np.zeros(len(a))).block(everyone, everyone)
    with pytest.raises(InvalidInput, match="gave NaN or infinity"):
        make_target(X, lambda a, b: np.full((len(a), len(b)), np.nan)).block(everyone, everyone)


@pytest.mark.parametrize("value", [0.1, 0.5, 1e8, 1 / 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_that_is_the_same_in_every_unit_has_no_correlation(value: float, dtype: type) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(dtype)
    X[5] = value
    with pytest.raises(InvalidInput, match="Row 5 of X is the same in every unit"):
        make_target(X, "correlation")


def test_a_large_common_offset_is_no_constant_layer() -> None:
    rng = np.random.default_rng(0)
    features = pd.DataFrame({name: rng.choice(list("xyz"), 40) for name in "abc"})
    X = rng.normal(size=(40, 5)) + 3 * (features["a"] == "x").to_numpy()[:, None]
    moved = MLEM().fit(features, X + 1e7)
    np.testing.assert_allclose(moved.weights_, MLEM().fit(features, X).weights_, atol=1e-6)


def test_activations_that_cannot_be_explained() -> None:
    features = pd.DataFrame({"a": list("xyxy") * 5})
    with pytest.raises(InvalidInput, match="too large to be squared"):
        MLEM().fit(features, np.random.default_rng(0).normal(size=(20, 3)) * 1e200)
    with pytest.raises(InvalidInput, match="All pairs of items are equally far apart"):
        MLEM(preset="salle2024").fit(features, np.eye(20))
    with pytest.raises(InvalidInput, match="masked array with 30 values hidden"):
        MLEM().fit(features, np.ma.array(np.ones((20, 3)), mask=np.arange(60).reshape(20, 3) % 2))
    with pytest.raises(InvalidInput, match="Got seed=-1"):
        MLEM(seed=-1).fit(features, np.eye(20))


@pytest.mark.parametrize("distance", ["zscored", "whitened"])
def test_units_that_are_constant_or_repeat_others_do_no_harm(distance: str) -> None:
    """Embeddings have few different rows: their covariance has no inverse."""
    few = np.repeat(X[:4], 5, axis=0)
    y = make_target(np.column_stack([few, np.full(20, 3.0), few[:, 0]]), distance).within(np.arange(20))[0]
    same = np.repeat(np.arange(4), 5)
    i, j = np.triu_indices(20, 1)
    assert np.isfinite(y).all()
    assert (y[same[i] == same[j]] < 1e-12).all()
    assert (y[same[i] != same[j]] > 0.1).all()


def test_a_unit_in_other_units_changes_nothing_once_scored() -> None:
    scaled = X * np.array([1.0, 1000.0, *np.ones(X.shape[1] - 2)])
    everyone = np.arange(20)
    np.testing.assert_allclose(
        make_target(scaled, "zscored").within(everyone)[0], make_target(X, "zscored").within(everyone)[0]
    )
