"""Distances between layers and between models, maps and trees, each against another way to get them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import pearsonr, weightedtau

import thinkalike as ta
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.inference.ranges import jackknife_error
from thinkalike.populations.between_models import (
    between_folds,
    between_models,
    compact,
    compact_tau,
    euclidean_matrix,
    mean_tau_matrix,
    r_squared_matrix,
    warped,
    warped_matrix,
)
from thinkalike.populations.model_maps import model_map
from thinkalike.populations.model_trees import clades, model_tree, sentence_draws

NAMES = ("nano-pythia-64", "nano-pythia-96", "nano-gpt2", "nano-gelu-3l")


@pytest.fixture(scope="module")
def models() -> list[ta.Fingerprint]:
    return ta.Atlas().fingerprints(NAMES)


def test_r_squared_and_euclidean() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 4, 6))
    for i in range(4):
        for j in range(4):
            assert r_squared_matrix(x, y)[i, j] == pytest.approx(pearsonr(x[i], y[j]).statistic ** 2)
            assert euclidean_matrix(x, y)[i, j] == pytest.approx(np.sqrt(((x[i] - y[j]) ** 2).sum()))
    assert np.isnan(r_squared_matrix(np.ones((1, 6)), y)).all()


def test_pairs_of_layers_by_every_measure() -> None:
    one, other = ta.Atlas().fingerprints(["nano-gpt2", "nano-mamba"])
    found = one.layer_pairs(other)
    assert len(found) == len(one.layers) * len(other.layers)
    assert found["tau"].is_monotonic_decreasing
    x, y = one.profile.mean_importance, other.profile.mean_importance
    for row in found.iloc[::17].itertuples():
        i, j = one.layers.index(row.layer), other.layers.index(row.other_layer)
        assert row.euclidean == pytest.approx(np.linalg.norm(x[i] - y[j]))
        assert row.r_squared == pytest.approx(pearsonr(x[i], y[j]).statistic ** 2)
        for measure, value in (("features", row.tau), ("rsa", row.rsa), ("cka", row.cka)):
            matrix = one.similarity(other, measure=measure)
            assert value == matrix[one.name, row.layer, other.name, row.other_layer]


@pytest.mark.parametrize(("n", "m"), [(5, 7), (1, 4), (12, 3), (6, 6)])
def test_warping_is_that_of_dtw_python(n: int, m: int) -> None:
    dtw = pytest.importorskip("dtw")
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(n, 5)), rng.normal(size=(m, 5))
    expected = dtw.dtw(x, y, dist_method="euclidean", step_pattern="symmetric2").normalizedDistance
    assert warped(x, y) == pytest.approx(expected, abs=1e-12)
    assert warped_matrix([x, y])[0, 1] == pytest.approx(expected, abs=1e-12)


def test_mean_tau_is_the_mean_of_scipys() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(3, 6)), rng.normal(size=(4, 6))
    expected = np.mean([weightedtau(x, y).statistic for x in one for y in other])
    within = np.mean([weightedtau(x, y).statistic for x, y in combinations(one, 2)])
    found = mean_tau_matrix([one, other])
    assert found[0, 1] == pytest.approx(expected)
    assert found[0, 0] == pytest.approx(within)
    assert mean_tau_matrix([one], [other])[0, 0] == pytest.approx(expected)
    assert compact_tau(compact(one), compact(other)[None])[0] == pytest.approx(expected, abs=1e-6)


def test_mean_tau_with_ties_and_constant_layers() -> None:
    one, other = np.array([[3.0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]), np.array([[2.0, 3, 1, 0, 0]])
    from thinkalike.inference.weighted_tau import tau

    assert mean_tau_matrix([one], [other])[0, 0] == pytest.approx(float(tau(one[0], other[0])))
    assert np.isnan(mean_tau_matrix([one[1:]], [other])[0, 0])
    assert (compact(one[1:]) == 0).all()


def test_by_features_is_one_less_the_block_mean(models: list[ta.Fingerprint]) -> None:
    found, matrix = between_models(models), ta.similarity([one.profile for one in models])
    for i, a in enumerate(NAMES):
        for j, b in enumerate(NAMES):
            if i != j:
                assert found.values[i, j] == pytest.approx(1 - matrix.block_mean(a, b), abs=1e-9)
    assert found.to_frame().shape == (6, 3)


def test_rsa_of_all_blocks_side_by_side(models: list[ta.Fingerprint]) -> None:
    from thinkalike.populations import reference

    chosen = [one for one in models if one.name in ("nano-pythia-64", "nano-gelu-3l")]
    distances = []
    for one in chosen:
        found = ta.extract(one.name, reference())
        distances.append(pdist(np.concatenate([found[k] for k in found.layers if k != 0], axis=1)))
    from scipy.stats import spearmanr

    expected = np.sqrt(2 * (1 - spearmanr(*distances).statistic))
    assert between_models(chosen, by="rsa").values[0, 1] == pytest.approx(expected, abs=0.03)


def test_the_embeddings_are_left_out_of_warpings(models: list[ta.Fingerprint]) -> None:
    found = between_models(models, by="warped").values
    x, y = (one.profile.mean_importance[1:] for one in models[:2])
    assert found[0, 1] == pytest.approx(warped(x, y))


def test_maps_by_fold_lie_on_one_another(models: list[ta.Fingerprint]) -> None:
    found = model_map(models, by="warped")
    assert found.folds is not None
    each = between_folds(models, by="warped")
    for fold, values in zip(found.folds, each, strict=True):  # turning keeps distances
        from thinkalike.comparison.maps import smacof

        np.testing.assert_allclose(pdist(fold), pdist(smacof(values)[0]), atol=1e-9)
    place = found.ellipses()[0]
    assert place[0] ** 2 + place[1] ** 2 == pytest.approx(found.folds[:, 0].var(axis=0, ddof=1).sum())
    assert {"semi_axis", "angle"} <= set(found.to_frame().columns)
    assert model_map(models, by="rsa").folds is None


def test_draws_have_the_spread_that_leaving_out_gives(models: list[ta.Fingerprint]) -> None:
    drawn = np.stack([importances[0] for importances in sentence_draws(models, n_draws=4000)])
    replicates = models[0].profile.replicates
    assert replicates is not None
    expected = jackknife_error(replicates.importance, parts=replicates.parts)
    np.testing.assert_allclose(drawn.std(axis=0), expected, rtol=0.1)
    np.testing.assert_allclose(drawn.mean(axis=0), models[0].profile.mean_importance, atol=0.003)


def test_a_tree_with_support(models: list[ta.Fingerprint]) -> None:
    found = model_tree(models, n_draws=20)
    assert sorted(found.order) == sorted(NAMES)
    assert found.support[-1] == 1  # all models stand below the last merge, in every draw
    assert ((found.support >= 0) & (found.support <= 1)).all()
    assert clades(found.merges)[-1] == frozenset(range(4))
    assert len(found.to_frame()) == 3


def test_what_cannot_be_asked(models: list[ta.Fingerprint]) -> None:
    with pytest.raises(UnknownName, match="no distance between models 'cka'"):
        between_models(models, by="cka")
    with pytest.raises(InvalidInput, match="There is 1 model"):
        between_models(models[:1])
    with pytest.raises(InvalidInput, match="which have no folds"):
        between_folds(models, by="rsa")
    with pytest.raises(UnknownName, match="no model 'gpt3'"):
        between_models(models).nearest("gpt3")


def test_nearest_of_distances() -> None:
    from thinkalike.populations.between_models import Distances

    found = Distances("features", ("a", "b", "c"), squareform([3.0, 1.0, 2.0]))
    assert found.nearest("a", 2)["model"].tolist() == ["c", "b"]
