"""Maps: classical MDS against scikit-learn's PCA, SMACOF against its MDS, alignment by construction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.decomposition import PCA
from sklearn.manifold import MDS

from thinkalike.comparison.maps import align, classical_mds, smacof


@pytest.mark.parametrize("shape", [(40, 6), (10, 30)])
def test_classical_mds_is_pca(shape: tuple[int, int]) -> None:
    X = np.random.default_rng(0).normal(size=shape) * np.linspace(3, 0.5, shape[1]) + 7
    coordinates, explained = classical_mds(X)
    pca = PCA(2).fit(X)
    np.testing.assert_allclose(np.abs(coordinates), np.abs(pca.transform(X)), atol=1e-8)
    np.testing.assert_allclose(explained, pca.explained_variance_ratio_, atol=1e-10)


def test_classical_mds_of_a_line_and_of_a_point() -> None:
    coordinates, explained = classical_mds(np.arange(5.0)[:, None])
    np.testing.assert_allclose(np.abs(np.diff(coordinates[:, 0])), 1.0)
    np.testing.assert_allclose(coordinates[:, 1], 0.0)
    assert explained == pytest.approx([1.0, 0.0])
    _, nothing = classical_mds(np.ones((4, 3)))
    assert nothing == pytest.approx([0.0, 0.0])


def test_points_in_the_plane_are_found_again() -> None:
    points = np.random.default_rng(1).normal(size=(12, 2))
    found, stress = smacof(squareform(pdist(points)))
    np.testing.assert_allclose(pdist(found), pdist(points), atol=1e-5)
    assert stress < 1e-5


def test_stress_is_no_worse_than_scikit_learns() -> None:
    X = np.random.default_rng(2).normal(size=(25, 5))
    target = squareform(pdist(X))
    found, stress = smacof(target)
    theirs = MDS(2, n_init=4, random_state=0, metric="precomputed", init="random").fit(target).embedding_

    def raw(points: np.ndarray) -> float:
        return float(((pdist(points) - pdist(X)) ** 2).sum())

    assert raw(found) <= 1.02 * raw(theirs)
    assert stress == pytest.approx(np.sqrt(raw(found) / (pdist(found) ** 2).sum()))


def test_missing_and_negative_dissimilarities_are_borne() -> None:
    target = squareform(pdist(np.random.default_rng(3).normal(size=(6, 3))))
    target[0, 1] = target[1, 0] = np.nan
    target[2, 3] = target[3, 2] = -1e-9
    found, stress = smacof(target)
    assert np.isfinite(found).all()
    assert np.isfinite(stress)


@pytest.mark.parametrize("n", [1, 2])
def test_tiny_maps(n: int) -> None:
    found, stress = smacof(1.0 - np.eye(n))
    assert found.shape == (n, 2)
    assert stress == pytest.approx(0.0, abs=1e-9)


def test_alignment_undoes_a_turned_mirror_image() -> None:
    points = np.random.default_rng(4).normal(size=(9, 2))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]]) @ np.diag([1.0, -1.0])
    np.testing.assert_allclose(align(points @ turn + 3, points), points, atol=1e-10)


def test_a_map_of_nothing_known_is_a_point() -> None:
    points, stress = smacof(np.full((3, 3), np.nan))
    assert not points.any()
    assert not stress > 0
