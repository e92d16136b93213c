"""Regression, neighbours, GULP, RDM variants, topology and dynamics, each against an oracle of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist, squareform
from scipy.stats import kendalltau, pearsonr, spearmanr
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.neighbors import NearestNeighbors

from thinkalike.errors import InvalidInput, MissingExtra
from thinkalike.measures import MEASURES, rdms
from thinkalike.measures.dynamics import prepare_dynamics
from thinkalike.measures.linear_maps import explained_held_out
from thinkalike.measures.neighbours import nearest
from thinkalike.measures.topology import bar_length, prepare_distances

Layers = Callable[..., tuple[np.ndarray, np.ndarray]]


class TestRDMs:
    @pytest.mark.parametrize("distance", rdms.DISTANCES)
    @pytest.mark.parametrize(
        ("correlation", "oracle"), [("spearman", spearmanr), ("pearson", pearsonr), ("kendall", kendalltau)]
    )
    def test_every_variant_is_scipys(
        self,
        related_layers: Layers,
        distance: str,
        correlation: str,
        oracle: Callable[..., tuple[float, float]],
    ) -> None:
        X, Y = related_layers()
        named = [distance] * (distance != "euclidean") + [correlation] * (correlation != "spearman")
        expected = oracle(pdist(X, distance), pdist(Y, distance))[0]
        assert MEASURES["-".join(["rsa", *named])](X, Y) == pytest.approx(expected, abs=1e-6)

    @pytest.mark.parametrize("measure", ["rsa", "rsa-kendall", "rsa-pearson", "rsa-cosine"])
    @pytest.mark.parametrize("scale", [1e-25, 1e19, 1e30])
    def test_huge_and_tiny_activations(self, related_layers: Layers, measure: str, scale: float) -> None:
        X, Y = related_layers()
        assert MEASURES[measure](X * scale, Y) == pytest.approx(MEASURES[measure](X, Y), abs=1e-6)

    def test_a_row_that_is_the_same_in_every_unit_has_no_correlation(self, related_layers: Layers) -> None:
        X, Y = related_layers()
        X[5] = 0.1
        with pytest.raises(InvalidInput, match="zero in row 5"):
            MEASURES["rsa-correlation"](X, Y)

    def test_pearson_in_blocks(self, related_layers: Layers, monkeypatch: pytest.MonkeyPatch) -> None:
        X, Y = related_layers()
        whole = MEASURES["rsa-pearson"](X, Y)
        monkeypatch.setattr("thinkalike.measures.hsic.BLOCK_BYTES", 2 * 8 * 60 * 7)
        assert MEASURES["rsa-pearson"](X, Y) == pytest.approx(whole, abs=1e-12)

    def test_kendall_samples_the_same_pairs_of_both_layers(
        self, related_layers: Layers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        X, Y = related_layers(noise=0.1)
        whole = MEASURES["rsa-kendall"](X, Y)
        monkeypatch.setattr(rdms, "MOST_PAIRS", 600)
        sampled = MEASURES["rsa-kendall"](X, Y)
        assert sampled != whole
        assert sampled == pytest.approx(whole, abs=0.05)

    @pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
    def test_angles_far_from_the_origin(self, related_layers: Layers, offset: float) -> None:
        X, Y = (layer + offset for layer in related_layers(noise=0.5))

        def angles(layer: np.ndarray) -> np.ndarray:
            exact = layer.astype(np.longdouble)  # half the squared distance of directions is 1 - cosine
            unit = exact / np.sqrt((exact**2).sum(axis=1, keepdims=True))
            i, j = np.triu_indices(len(unit), 1)
            return ((unit[i] - unit[j]) ** 2).sum(axis=1).astype(np.float64)

        expected = np.corrcoef(angles(X), angles(Y))[0, 1]
        assert MEASURES["rsa-cosine-pearson"](X, Y) == pytest.approx(expected, abs=1e-6)

    @pytest.mark.parametrize("name", ["rsa", "rsa-pearson", "rsa-kendall"])
    def test_items_that_are_all_equally_far_apart(self, name: str) -> None:
        X = np.eye(6)
        Y = np.random.default_rng(0).normal(size=(6, 3))
        with pytest.raises(InvalidInput, match="All pairs of items are equally far apart in Y"):
            MEASURES[name](Y, X)
        with pytest.raises(InvalidInput, match="equally far apart in bert:3"):
            MEASURES[name].matrix([Y, X], names_a=["bert:2", "bert:3"])

    @pytest.mark.parametrize(
        "name", ["rsa-cosine", "rsa-cosine-pearson", "rsa-cosine-kendall", "mutual-knn-cosine"]
    )
    def test_a_row_of_zeros_has_no_angle(self, related_layers: Layers, name: str) -> None:
        X, Y = related_layers()
        X[5] = 0
        with pytest.raises(InvalidInput, match="X is zero in row 5: a zero vector has no direction"):
            MEASURES[name](X, Y)


class TestRegression:
    def test_r2_is_sklearns(self, related_layers: Layers) -> None:
        X, Y = related_layers()

        def r2(A: np.ndarray, B: np.ndarray) -> float:
            return r2_score(B, LinearRegression().fit(A, B).predict(A), multioutput="variance_weighted")

        assert MEASURES["regression"](X, Y) == pytest.approx(r2(X, Y), abs=1e-9)
        assert MEASURES["regression-reverse"](X, Y) == pytest.approx(r2(Y, X), abs=1e-9)
        assert MEASURES["regression-mean"](X, Y) == pytest.approx((r2(X, Y) + r2(Y, X)) / 2, abs=1e-9)

    def test_a_layer_that_predicts_anything_is_refused(self) -> None:
        X = np.random.default_rng(0).normal(size=(20, 30))
        with pytest.raises(
            InvalidInput, match="regression from X: it spans 19 directions and 20 items leave 19"
        ):
            MEASURES["regression"](X, X[:, :2])
        with pytest.raises(InvalidInput, match="Use regression-cv, cka or procrustes, or more than 20 items"):
            MEASURES["regression-reverse"](X[:, :2], X)

    def test_held_out_r2_by_explicit_leave_one_out(self, related_layers: Layers) -> None:
        """The penalty by brute-force leave-one-out in each training fold, the score on the test fold."""
        X, Y = (Z - Z.mean(0) for Z in related_layers(n=30, widths=(4, 3), noise=3.0))
        X *= np.sqrt(30) / np.linalg.norm(X)
        order = np.random.default_rng(0).permutation(30)
        missed = total = 0.0
        for test in np.array_split(order, 5):
            train = np.setdiff1d(order, test)
            errors = {}
            for alpha in np.logspace(-4, 4, 9):
                left_out = [
                    Ridge(alpha)
                    .fit(np.delete(X[train], i, 0), np.delete(Y[train], i, 0))
                    .predict(X[train][[i]])[0]
                    for i in range(len(train))
                ]
                errors[alpha] = np.sum((Y[train] - left_out) ** 2)
            best = Ridge(min(errors, key=errors.__getitem__)).fit(X[train], Y[train])
            missed += np.sum((Y[test] - best.predict(X[test])) ** 2)
            total += np.sum((Y[test] - Y[train].mean(0)) ** 2)
        assert explained_held_out(X, Y) == pytest.approx(1 - missed / total, abs=1e-6)

    def test_held_out_r2_of_unrelated_layers_is_about_0_where_the_plain_one_is_not(self) -> None:
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(100, 60)), rng.normal(size=(100, 5))
        assert MEASURES["regression"](X, Y) > 0.5
        assert -0.1 < MEASURES["regression-cv"](X, Y) < 0.1


class TestNeighbours:
    @pytest.mark.parametrize(
        ("name", "metric"), [("mutual-knn", "euclidean"), ("mutual-knn-cosine", "cosine")]
    )
    def test_overlap_of_sklearns_neighbours(self, related_layers: Layers, name: str, metric: str) -> None:
        X, Y = related_layers()
        near = [
            NearestNeighbors(n_neighbors=10, metric=metric).fit(Z).kneighbors(return_distance=False)
            for Z in (X, Y)
        ]
        expected = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(*near, strict=True)])
        assert MEASURES[name](X, Y) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("offset", [1e3, 1e7])
    def test_neighbours_by_angle_far_from_the_origin(self, related_layers: Layers, offset: float) -> None:
        """There the angles are tiny, and so are those that rounding makes."""
        X, Y = (Z + offset for Z in related_layers())
        near = []
        for Z in (X, Y):
            unit = Z.astype(np.longdouble)
            unit /= np.sqrt((unit**2).sum(axis=1, keepdims=True))
            squared = ((unit[:, None] - unit[None]) ** 2).sum(axis=2)
            near.append(squared.argsort(axis=1)[:, 1:11])
        expected = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(*near, strict=True)])
        assert expected < 0.9
        assert MEASURES["mutual-knn-cosine"](X, Y) == pytest.approx(expected, abs=1e-12)

    def test_items_that_all_point_one_way_have_no_neighbours_by_angle(self) -> None:
        X = np.arange(1.0, 31)[:, None] * np.ones(4)
        with pytest.raises(InvalidInput, match="X, every item at length 1, is constant"):
            MEASURES["mutual-knn-cosine"](X, X)
        assert MEASURES["mutual-knn"](X, X) == 1.0

    def test_unrelated_layers_share_as_many_as_chance(self) -> None:
        rng = np.random.default_rng(0)
        values = [
            MEASURES["mutual-knn"](rng.normal(size=(101, 5)), rng.normal(size=(101, 5))) for _ in range(30)
        ]
        assert np.mean(values) == pytest.approx(10 / 100, abs=0.01)

    def test_ties_go_to_the_first_item_whatever_the_rounding(self) -> None:
        X = np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 5, axis=0) + 1e3
        Q = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
        expected = [[j for j in range(i // 5 * 5, i // 5 * 5 + 5) if j != i][:3] for i in range(15)]
        for Z in (X, X @ Q):
            np.testing.assert_array_equal(nearest(Z - Z.mean(0), 3), expected)


def test_gulp_is_the_formula_with_explicit_inverses(related_layers: Layers) -> None:
    X, Y = (Z - Z.mean(0) for Z in related_layers())
    X, Y = X * np.sqrt(60) / np.linalg.norm(X), Y * np.sqrt(60) / np.linalg.norm(Y)
    Sx, Sy, Sxy = X.T @ X / 60, Y.T @ Y / 60, X.T @ Y / 60
    Ix, Iy = np.linalg.inv(Sx + 0.01 * np.eye(8)), np.linalg.inv(Sy + 0.01 * np.eye(6))
    squared = np.trace(Ix @ Sx @ Ix @ Sx) + np.trace(Iy @ Sy @ Iy @ Sy) - 2 * np.trace(Ix @ Sxy @ Iy @ Sxy.T)
    assert MEASURES["gulp"](X, Y) == pytest.approx(np.sqrt(squared), abs=1e-9)


class TestTopology:
    def persistence(self, graph: np.ndarray, limit: float) -> float:
        """Summed lengths of 1-dimensional bars by plain reduction of the boundary matrix over Z/2."""
        n = len(graph)
        simplices = [
            (max((graph[i, j] for i, j in combinations(s, 2)), default=0.0), size, s)
            for size in (1, 2, 3)
            for s in combinations(range(n), size)
        ]
        simplices = sorted(s for s in simplices if s[0] <= limit)
        place = {s: k for k, (_, _, s) in enumerate(simplices)}
        columns: dict[int, set[int]] = {}
        paired: dict[int, int] = {}
        for k, (_, size, s) in enumerate(simplices):
            column = {place[f] for f in combinations(s, size - 1)} if size > 1 else set()
            while column and max(column) in paired:
                column ^= columns[paired[max(column)]]
            if column:
                paired[max(column)] = k
                columns[k] = column
        return sum(simplices[d][0] - simplices[b][0] for b, d in paired.items() if simplices[b][1] == 2)

    @pytest.mark.parametrize("seed", range(4))
    def test_bars_are_those_of_a_plain_boundary_reduction(self, seed: int) -> None:
        pytest.importorskip("ripser")
        rng = np.random.default_rng(seed)
        w, v = (squareform(pdist(rng.normal(size=(6, 2)))) for _ in range(2))
        graph = np.full((13, 13), np.inf)
        graph[:6, :6], graph[6:12, 6:12] = w, np.minimum(w, v)
        for i in range(6):
            graph[12, i] = graph[i, 12] = 0
            for j in range(i, 6):
                graph[i, 6 + j] = graph[6 + j, i] = w[i, j]
        assert bar_length(w, v) == pytest.approx(self.persistence(graph, w.max()), abs=1e-5)

    def test_two_clusters_that_one_layer_merges(self) -> None:
        """By hand: four points; w has two pairs 10 apart, v has all at 1. One bar, from 1 to 10."""
        pytest.importorskip("ripser")
        w = np.full((4, 4), 10.0)
        w[:2, :2] = w[2:, 2:] = 1
        v = np.ones((4, 4))
        np.fill_diagonal(w, 0)
        np.fill_diagonal(v, 0)
        assert bar_length(w, v) == pytest.approx(9.0)
        assert bar_length(v, w) == pytest.approx(0.0)

    def test_large_layers_are_compared_on_the_same_samples(self, related_layers: Layers) -> None:
        X, _ = related_layers(n=90)
        drawn = prepare_distances(X, most=20, draws=3)
        assert drawn.shape == (3, 20, 20)
        assert not np.array_equal(drawn[0], drawn[1])
        np.testing.assert_array_equal(drawn, prepare_distances(2 * X, most=20, draws=3))

    def test_one_item_apart_from_all_others(self) -> None:
        X = np.zeros((30, 2))
        X[0] = 1
        with pytest.raises(InvalidInput, match="X gives nearly all items the same vector"):
            prepare_distances(X)


class TestDynamics:
    def trajectory(self, angle: float, *, n_units: int, seed: int, noise: float = 0.0) -> np.ndarray:
        """A noisy damped rotation in a plane, seen through a random linear map."""
        rng = np.random.default_rng(seed)
        step = 0.97 * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        states = np.zeros((200, 2))
        for t in range(1, 200):
            states[t] = step @ states[t - 1] + 0.1 * rng.normal(size=2)
        return states @ rng.normal(size=(2, n_units)) + noise * rng.normal(size=(200, n_units)) + 1.0

    def test_the_same_dynamics_in_other_coordinates_is_nearer_than_other_dynamics(self) -> None:
        pytest.importorskip("DSA")
        dsa = MEASURES["dsa"]
        slow, same, fast = (
            self.trajectory(0.3, n_units=5, seed=0),
            self.trajectory(0.3, n_units=12, seed=1),
            self.trajectory(1.2, n_units=5, seed=2),
        )
        assert dsa(slow, same) < 0.5 * dsa(slow, fast)

    def test_the_distance_is_the_best_squared_matching_of_eigenvalues(self) -> None:
        pytest.importorskip("DSA")
        X, Y = (self.trajectory(a, n_units=5, seed=s, noise=0.02) for a, s in [(0.3, 0), (0.9, 1)])

        def eigenvalues(Z: np.ndarray) -> np.ndarray:
            Z = Z - Z.mean(0)
            delayed = np.hstack([Z[3 - k : len(Z) - k] for k in range(4)])
            U = np.linalg.svd(delayed, full_matrices=False)[0][:, :10]
            return np.linalg.eigvals(np.linalg.lstsq(U[:-1], U[1:], rcond=None)[0])

        gaps = np.abs(eigenvalues(X)[:, None] - eigenvalues(Y)[None, :]) ** 2
        expected = gaps[linear_sum_assignment(gaps)].mean()
        assert MEASURES["dsa"](X, Y) == pytest.approx(expected, rel=0.02)

    def test_several_runs_of_equal_length(self) -> None:
        pytest.importorskip("DSA")
        runs = np.stack(
            [self.trajectory(0.3, n_units=4, seed=5)[:100], self.trajectory(0.3, n_units=4, seed=5)[100:]]
        )
        assert MEASURES["dsa"](runs, runs) == pytest.approx(0, abs=1e-6)

    def test_too_short_a_sequence(self) -> None:
        with pytest.raises(InvalidInput, match="X has 15 steps: dsa needs at least 16 to see dynamics"):
            prepare_dynamics(np.random.default_rng(0).normal(size=(15, 3)))


@pytest.mark.parametrize(("name", "module", "hint"), [("rtd", "ripser", "topology"), ("dsa", "DSA", "dsa")])
def test_a_missing_extra_says_how_to_get_it(
    name: str, module: str, hint: str, related_layers: Layers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'thinkalike\[{hint}\]'"):
        MEASURES[name](*related_layers())
