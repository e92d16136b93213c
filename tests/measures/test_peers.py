"""Measures that other packages have: against those packages, or their formulas written out plainly."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes, sqrtm
from scipy.optimize import linear_sum_assignment, linprog
from scipy.spatial.distance import cosine, jensenshannon, pdist, squareform
from scipy.special import softmax
from sklearn.neighbors import NearestNeighbors

from thinkalike.errors import InvalidInput, MissingExtra
from thinkalike.measures import MEASURES
from thinkalike.measures.neighbours import FAMILY, prepare_neighbours

Layers = Callable[..., tuple[np.ndarray, np.ndarray]]
K = 10


def neighbours(X: np.ndarray, metric: str) -> np.ndarray:
    return NearestNeighbors(n_neighbors=K + 1, metric=metric).fit(X).kneighbors(X)[1][:, 1:]


@cache
def longest(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """By recursion over all ways to drop an element."""
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + longest(a[1:], b[1:])
    return max(longest(a[1:], b), longest(a, b[1:]))


def by_hand(kind: str, A: np.ndarray, B: np.ndarray) -> float:
    """The measures of the family, item by item, as their papers state them."""
    found = []
    for i, (a, b) in enumerate(zip(A.tolist(), B.tolist(), strict=True)):
        shared = set(a) & set(b)
        if kind == "jaccard":
            found.append(len(shared) / len(set(a) | set(b)))
        elif kind == "mutual":
            found.append(len(shared) / K)
        elif kind == "lcs":
            found.append(longest(tuple(a), tuple(b)) / K)
        elif kind == "cycle":
            found.append(any(i in A[j] for j in b))
        else:
            ranks = [(a.index(j) + 1, b.index(j) + 1) for j in shared]
            most = sum(1 / m for m in range(1, len(ranks) + 1))
            found.append(sum(2 / (1 + abs(r - s)) / (r + s) for r, s in ranks) / most if ranks else 0.0)
    return float(np.mean(found))


class TestNeighbours:
    @pytest.mark.parametrize("noise", [0.1, 3.0])
    @pytest.mark.parametrize(("suffix", "metric"), [("", "euclidean"), ("-cosine", "cosine")])
    @pytest.mark.parametrize("kind", FAMILY)
    def test_the_family_item_by_item(
        self, related_layers: Layers, kind: str, suffix: str, metric: str, noise: float
    ) -> None:
        X, Y = related_layers(noise=noise)
        expected = by_hand(kind, neighbours(X, metric), neighbours(Y, metric))
        assert MEASURES[f"{kind}-knn{suffix}"](X, Y) == pytest.approx(expected, abs=1e-12)

    def test_they_come_in_the_order_of_their_distance(self, related_layers: Layers) -> None:
        X, _ = related_layers()
        np.testing.assert_array_equal(prepare_neighbours(X), neighbours(X, "euclidean"))

    def test_second_order_cosine_item_by_item(self, related_layers: Layers) -> None:
        X, Y = related_layers(noise=2.0)
        A, B = neighbours(X, "cosine"), neighbours(Y, "cosine")
        D, E = (squareform(pdist(Z, "cosine")) for Z in (X, Y))
        either = [sorted(set(a) | set(b)) for a, b in zip(A.tolist(), B.tolist(), strict=True)]
        expected = np.mean([1 - cosine(D[i, u], E[i, u]) for i, u in enumerate(either)])
        assert MEASURES["second-order-cosine"](X, Y) == pytest.approx(expected, abs=1e-9)

    def test_items_that_are_copies_of_each_other_have_the_same_company(self) -> None:
        X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 12, axis=0)
        assert MEASURES["second-order-cosine"](X, X) == 1.0

    def test_cknna_from_dense_matrices(self, related_layers: Layers) -> None:
        X, Y = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in related_layers(noise=2.0))
        n = len(X)

        def hsic(P: np.ndarray, Q: np.ndarray) -> float:
            mask = np.zeros((2, n, n))
            for near, Z in zip(mask, (P, Q), strict=True):
                np.put_along_axis(near, np.argsort(-(Z @ Z.T - 9 * np.eye(n)), axis=1)[:, :K], 1, axis=1)
            k, m = mask.prod(axis=0) * (P @ P.T), mask.prod(axis=0) * (Q @ Q.T)
            one = np.ones(n)
            whole = np.trace(k @ m) + one @ k @ one * (one @ m @ one) / ((n - 1) * (n - 2))
            return float(whole - 2 * one @ k @ m @ one / (n - 2))

        expected = hsic(X, Y) / np.sqrt(hsic(X, X) * hsic(Y, Y))
        assert MEASURES["cknna"](X, Y) == pytest.approx(expected, abs=1e-9)


class TestUnits:
    def test_hard_matching_by_trying_every_order(self, related_layers: Layers) -> None:
        X, Y = related_layers(widths=(4, 6))
        C = np.corrcoef(X.T, Y.T)[:4, 4:]
        best = max(sum(C[i, j] for i, j in enumerate(order)) / 4 for order in permutations(range(6), 4))
        assert MEASURES["matching-hard"](X, Y) == pytest.approx(best, abs=1e-12)
        assert MEASURES["matching-hard"](Y, X) == pytest.approx(best, abs=1e-12)

    def test_soft_matching_is_the_best_correlation_of_each(self, related_layers: Layers) -> None:
        X, Y = related_layers(widths=(4, 6))
        C = np.corrcoef(X.T, Y.T)[:4, 4:]
        expected = (np.mean([max(row) for row in C]) + np.mean([max(row) for row in C.T])) / 2
        assert MEASURES["matching-soft"](X, Y) == pytest.approx(expected, abs=1e-12)

    def test_a_unit_that_is_constant_matches_nothing(self, related_layers: Layers) -> None:
        X, _ = related_layers(widths=(4, 3))
        with_constant = np.column_stack([X[:, 0], np.full(60, 0.1)])
        assert MEASURES["matching-hard"](with_constant, with_constant) == pytest.approx(0.5)

    def test_permutation_procrustes_by_trying_every_order(self, related_layers: Layers) -> None:
        X, Y = ((Z - Z.mean(0)) / np.linalg.norm(Z - Z.mean(0)) for Z in related_layers(widths=(5, 3)))
        wide = np.column_stack([Y, np.zeros((60, 2))])
        best = min(np.linalg.norm(X - wide[:, order]) for order in permutations(range(5)))
        assert MEASURES["permutation-procrustes"](X, Y) == pytest.approx(best, abs=1e-9)

    def test_transport_between_units_is_the_linear_programme(self, related_layers: Layers) -> None:
        pytest.importorskip("ot")
        X, Y = (
            (Z - Z.mean(0)) / np.linalg.norm(Z - Z.mean(0)) * np.sqrt(Z.shape[1])
            for Z in related_layers(widths=(4, 6))
        )
        cost = ((X[:, :, None] - Y[:, None, :]) ** 2).sum(axis=0)
        rows, columns = np.kron(np.eye(4), np.ones(6)), np.kron(np.ones(4), np.eye(6))
        weights = np.concatenate([np.full(4, 1 / 4), np.full(6, 1 / 6)])
        found = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=weights)
        assert MEASURES["matching-transport"](X, Y) == pytest.approx(np.sqrt(found.fun), abs=1e-8)

    def test_transport_between_as_many_units_is_their_best_order(self, related_layers: Layers) -> None:
        pytest.importorskip("ot")
        X, Y = related_layers(widths=(6, 6))
        expected = MEASURES["permutation-procrustes"](X, Y)
        assert MEASURES["matching-transport"](X, Y) == pytest.approx(expected, abs=1e-9)


def test_transport_without_its_package_says_how_to_get_it(
    related_layers: Layers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(MissingExtra, match=r"needs 'POT', .* pip install 'thinkalike\[matching\]'"):
        MEASURES["matching-transport"](*related_layers())


class TestShapes:
    def test_size_and_shape_turns_and_does_not_scale(self, related_layers: Layers) -> None:
        X, Y = (Z - Z.mean(0) for Z in related_layers(widths=(5, 3)))
        wide = np.column_stack([Y, np.zeros((60, 2))])
        Q, _ = orthogonal_procrustes(X, wide)
        assert MEASURES["size-and-shape"](X, Y) == pytest.approx(np.linalg.norm(X @ Q - wide), abs=1e-9)

    def test_bures_from_matrix_roots(self, related_layers: Layers) -> None:
        X, Y = (Z - Z.mean(0) for Z in related_layers(n=12, widths=(5, 4)))
        K, L = X @ X.T, Y @ Y.T
        root = sqrtm(K + 1e-12 * np.eye(12)).real
        fidelity = np.trace(sqrtm(root @ L @ root + 1e-12 * np.eye(12)).real)
        expected = fidelity / np.sqrt(np.trace(K) * np.trace(L))
        assert MEASURES["bures"](X, Y) == pytest.approx(expected, abs=1e-4)

    def test_aligned_cosine_row_by_row(self, related_layers: Layers) -> None:
        X, Y = related_layers(widths=(5, 3))
        wide = np.column_stack([Y, np.zeros((60, 2))])
        Q, _ = orthogonal_procrustes(X, wide)
        expected = np.mean([1 - cosine(x, y) for x, y in zip(X @ Q, wide, strict=True)])
        assert MEASURES["aligned-cosine"](X, Y) == pytest.approx(expected, abs=1e-9)

    def test_eigenspace_overlap_from_projections(self, related_layers: Layers) -> None:
        X, Y = (Z - Z.mean(0) for Z in related_layers(noise=2.0))
        P, Q = (Z @ np.linalg.pinv(Z) for Z in (X, Y))
        assert MEASURES["eigenspace-overlap"](X, Y) == pytest.approx(np.trace(P @ Q) / 8, abs=1e-9)


class TestWholeMatrices:
    def test_distance_correlation_by_its_definition(self, related_layers: Layers) -> None:
        """Székely, Rizzo and Bakirov (2007), and unbiased, Székely and Rizzo (2014), written out."""
        X, Y = related_layers(noise=2.0)
        n = len(X)
        plain, unbiased = [], []
        for D in (squareform(pdist(X)), squareform(pdist(Y))):
            rows, total = D.sum(axis=1), D.sum()
            both = rows[:, None] + rows[None]
            plain.append(D - both / n + total / n**2)
            unbiased.append((D - both / (n - 2) + total / ((n - 1) * (n - 2))) * (1 - np.eye(n)))
        (A, B), (U, V) = plain, unbiased
        expected = np.sqrt((A * B).sum() / np.sqrt((A * A).sum() * (B * B).sum()))
        assert MEASURES["distance-correlation"](X, Y) == pytest.approx(expected, abs=1e-9)
        expected = (U * V).sum() / np.sqrt((U * U).sum() * (V * V).sum())
        assert MEASURES["distance-correlation-unbiased"](X, Y) == pytest.approx(expected, abs=1e-9)

    def test_the_unbiased_one_is_0_for_unrelated_layers_and_the_other_is_not(self) -> None:
        rng = np.random.default_rng(0)
        pairs = [(rng.normal(size=(30, 40)), rng.normal(size=(30, 40))) for _ in range(40)]
        assert np.mean([MEASURES["distance-correlation"](*p) for p in pairs]) > 0.7
        assert abs(np.mean([MEASURES["distance-correlation-unbiased"](*p) for p in pairs])) < 0.02

    def test_rdm_difference_is_the_norm_of_the_difference(self, related_layers: Layers) -> None:
        X, Y = related_layers()
        expected = np.linalg.norm(squareform(pdist(X)) - squareform(pdist(Y)))
        assert MEASURES["rdm-difference"](X, Y) == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize(
        ("name", "method"),
        [
            ("rsa-whitened", "corr_cov"),
            ("cka-biased", "cosine_cov"),
            ("rsa-rho-a", "rho-a"),
            ("rsa", "spearman"),
            ("bures", "bures"),
        ],
    )
    def test_comparisons_of_rdms_are_rsatoolboxes(
        self, related_layers: Layers, name: str, method: str
    ) -> None:
        rsatoolbox = pytest.importorskip("rsatoolbox")
        X, Y = related_layers(n=20, noise=2.0)
        rdms = [rsatoolbox.rdm.RDMs(pdist(Z, "sqeuclidean")[None]) for Z in (X, Y)]
        expected = rsatoolbox.rdm.compare(*rdms, method=method)[0, 0]
        assert MEASURES[name](X, Y) == pytest.approx(expected, abs=1e-6)

    def test_rho_a_of_tied_distances_is_the_mean_over_orders(self) -> None:
        """Three items at one place: three pairs are tied at 0, in whichever order."""
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
        X[1] = X[2] = X[0]
        tied, other = pdist(X), pdist(Y).argsort().argsort() + 1.0
        groups = [np.flatnonzero(np.isclose(tied, v)) for v in np.unique(tied.round(9))]
        base, mean = tied.argsort().argsort() + 1.0, 0.0
        orders = [np.array(o) for o in permutations(range(3))]
        counted = []
        for zero in orders:
            for first in orders:
                for second in orders:
                    ranks = base.copy()
                    for group, order in zip(groups, (zero, first, second), strict=False):
                        if len(group) == 3:
                            ranks[group] = np.sort(base[group])[order]
                    counted.append(np.corrcoef(ranks, other)[0, 1])
        mean = float(np.mean(counted))
        assert MEASURES["rsa-rho-a"](X, Y) == pytest.approx(mean, abs=1e-9)
        assert abs(MEASURES["rsa"](X, Y)) > abs(mean)


class TestWholeLayers:
    def test_uniformity_over_pairs(self, related_layers: Layers) -> None:
        values = []
        for Z in related_layers():
            unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
            values.append(np.log(np.mean(np.exp(-2 * pdist(unit) ** 2))))
        assert MEASURES["uniformity"](*related_layers()) == pytest.approx(
            abs(values[0] - values[1]), abs=1e-9
        )

    def test_concentricity_from_the_mean_direction(self, related_layers: Layers) -> None:
        values = [np.mean([1 - cosine(z, Z.mean(0)) for z in Z]) for Z in related_layers()]
        assert MEASURES["concentricity"](*related_layers()) == pytest.approx(
            abs(values[0] - values[1]), abs=1e-9
        )

    def test_items_whose_mean_is_nothing_have_no_concentricity(self) -> None:
        X = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
        with pytest.raises(InvalidInput, match="the mean of X is zero in row 0"):
            MEASURES["concentricity"](X, X)

    def test_imd_from_the_matrix_exponential(self, related_layers: Layers) -> None:
        from scipy.linalg import expm

        times, heat = np.logspace(-1, 1, 256), []
        for Z in related_layers():
            near = NearestNeighbors(n_neighbors=6).fit(Z).kneighbors(Z)[1][:, 1:]
            graph = np.zeros((60, 60))
            for i, row in enumerate(near):
                graph[i, row] = graph[row, i] = 1
            half = np.diag(graph.sum(1) ** -0.5)
            laplacian = np.eye(60) - half @ graph @ half
            heat.append(np.array([np.trace(expm(-t * laplacian)) / 60 for t in times]))
        weighted = np.exp(-2 * (times + 1 / times)) * np.abs(heat[0] - heat[1])
        assert MEASURES["imd"](*related_layers()) == pytest.approx(1e6 * weighted.max(), rel=1e-6)

    def test_imd_of_many_items_takes_a_sample(
        self, related_layers: Layers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        X, Y = related_layers(n=80)
        whole = MEASURES["imd"](X, Y)
        monkeypatch.setattr("thinkalike.measures.spread.MOST_ITEMS", 50)
        assert MEASURES["imd"](X, Y) != whole
        assert MEASURES["imd"](X, X) == 0


class TestOutputs:
    def test_jensen_shannon_is_scipys(self) -> None:
        X, Y = np.random.default_rng(0).normal(size=(2, 7, 5)) * 4
        each = [jensenshannon(softmax(x), softmax(y), base=2) ** 2 for x, y in zip(X, Y, strict=True)]
        assert MEASURES["jensen-shannon"](X, Y) == pytest.approx(np.mean(each), abs=1e-12)

    def test_certain_and_different_answers_are_one_bit_apart(self) -> None:
        assert MEASURES["jensen-shannon"]([[900.0, 0]], [[0.0, 900]]) == pytest.approx(1.0)

    def test_disagreement_counts_other_answers(self) -> None:
        X = np.array([[1.0, 2, 3], [3, 2, 1], [1, 3, 2], [0, 0, 9]])
        Y = np.array([[1.0, 2, 3], [1, 2, 3], [1, 3, 2], [9, 0, 0]])
        assert MEASURES["disagreement"](X, Y) == 0.5

    def test_models_of_other_vocabularies_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match="X has 5 outputs and Y has 4: disagreement compares models"):
            MEASURES["disagreement"](np.zeros((3, 5)), np.zeros((3, 4)))


def _netrep_half(X: np.ndarray, Y: np.ndarray) -> float:
    """LinearMetric(alpha=0.5): eigenvalues of XᵀX as they are, whatever the scale of X."""
    half = []
    for Z in (X, Y):
        U, sizes, Vt = np.linalg.svd(Z - Z.mean(0), full_matrices=False)
        half.append((U * (0.5 * sizes + 0.5)) @ Vt)
    nuclear = np.linalg.norm(half[0].T @ half[1], "nuc")
    return float(np.arccos(nuclear / np.linalg.norm(half[0]) / np.linalg.norm(half[1])))


def _resi_gulp(X: np.ndarray, Y: np.ndarray) -> float:
    """Without a penalty, and squared: d + e − 2 Σ ρ²."""
    spans = [np.linalg.svd(Z - Z.mean(0), full_matrices=False)[0] for Z in (X, Y)]
    return float(X.shape[1] + Y.shape[1] - 2 * (np.linalg.svd(spans[0].T @ spans[1])[1] ** 2).sum())


def _resi_regression(X: np.ndarray, Y: np.ndarray) -> float:
    """How much of the *first* the second explains."""
    span = np.linalg.svd(Y - Y.mean(0), full_matrices=False)[0]
    C = X - X.mean(0)
    return float((span.T @ C).__pow__(2).sum() / (C**2).sum())


def _resi_uniformity(X: np.ndarray, Y: np.ndarray) -> float:
    return abs(np.subtract(*[np.log(np.exp(-2 * squareform(pdist(Z) ** 2)).mean()) for Z in (X, Y)]))


def _spectral(X: np.ndarray, Y: np.ndarray) -> float:
    return float(np.linalg.norm(squareform(pdist(X)) - squareform(pdist(Y)), 2))


def _raw_permutation(X: np.ndarray, Y: np.ndarray) -> float:
    wide = np.column_stack([Y, np.zeros((len(X), 2))])
    rows, columns = linear_sum_assignment(X.T @ wide, maximize=True)
    return float(np.linalg.norm(X[:, rows] - wide[:, columns]))


def _uncentred_overlap(X: np.ndarray, Y: np.ndarray) -> float:
    spans = [np.linalg.svd(Z, full_matrices=False)[0] for Z in (X, Y)]
    return float(np.linalg.norm(spans[0].T @ spans[1]) ** 2 / 8)


def _lcs_length(X: np.ndarray, Y: np.ndarray) -> float:
    return K * by_hand("lcs", neighbours(X, "cosine"), neighbours(Y, "cosine"))


def _rsatoolbox_corr(X: np.ndarray, Y: np.ndarray) -> float:
    rsatoolbox = pytest.importorskip("rsatoolbox")
    rdms = [rsatoolbox.rdm.calc_rdm(rsatoolbox.data.Dataset(Z), method="euclidean") for Z in (X, Y)]
    return float(rsatoolbox.rdm.compare(*rdms, method="corr")[0, 0])


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("shape-0.5", _netrep_half),
        ("gulp", _resi_gulp),
        ("regression", _resi_regression),
        ("uniformity", _resi_uniformity),
        ("rdm-difference", _spectral),
        ("permutation-procrustes", _raw_permutation),
        ("eigenspace-overlap", _uncentred_overlap),
        ("lcs-knn-cosine", _lcs_length),
        ("rsa-pearson", _rsatoolbox_corr),
    ],
)
def test_the_page_has_both_numbers_where_conventions_differ(
    related_layers: Layers, name: str, peer: Callable[[np.ndarray, np.ndarray], float]
) -> None:
    page = Path(__file__).parents[2] / "docs/measures.md"
    row = next(
        line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{name}` → ")
    )
    X, Y = related_layers()
    assert [cell.strip() for cell in row.split("|")[-3:-1]] == [
        f"{MEASURES[name](X, Y):.3f}",
        f"{peer(X, Y):.3f}",
    ]
