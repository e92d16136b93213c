"""Profiles of planted systems: what was planted is found, ceilings and intervals hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from scipy.stats import t as student

from tests.planted import replicates
from thinkalike.activations import Activations
from thinkalike.comparison import profile
from thinkalike.comparison.diagnostics import Lengths, duplicated_share, split_half_ceiling, top_share
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import plan_profiles
from thinkalike.encoding import leave_out
from thinkalike.encoding.importance import make_feature_sets
from thinkalike.encoding.strengths import plan_strengths, strengths
from thinkalike.errors import InvalidInput, StoreError
from thinkalike.pairs.distances import make_target
from thinkalike.stimuli import Stimuli
from thinkalike.stimuli.feature_coding import code_features

Plant = Callable[..., Activations]


@pytest.fixture(scope="module")
def planted(sentences: Stimuli, plant: Plant) -> Activations:
    return plant(sentences, "ada", {"part_of_speech": 2.0, "tense": 2.0}, seed=5)


@pytest.fixture(scope="module")
def made(planted: Activations, sentences: Stimuli) -> Profile:
    return profile(planted, sentences)


def test_a_layer_without_distances_is_named_with_its_system(sentences: Stimuli, planted: Activations) -> None:
    flat = {label: planted[label] for label in planted} | {"1.e2": np.zeros((len(sentences), 1))}
    with pytest.raises(InvalidInput, match=r"^ada: Layer '1.e2': All activations are equal"):
        profile(Activations.from_arrays(flat, system="ada", stimuli=sentences), sentences)


def test_the_planted_features_come_first(made: Profile) -> None:
    first_two = np.sort(np.argsort(-made.mean_importance, axis=1)[:, :2], axis=1)
    assert [[made.features[k] for k in row] for row in first_two] == [["part_of_speech", "tense"]] * 3
    assert (made.mean_scores > 0.4).all()
    assert made.importance.shape == (3, 5, 6)
    assert made.settings["preset"] == "default"
    assert made.replicates is None
    assert repr(made) == "Profile(ada: 3 layers × 6 features, 5 folds)"
    assert list(made.table().columns) == list(made.features)
    assert "part_of_speech" in made._repr_html_()


def test_collinearity_is_that_of_the_stimuli(made: Profile, sentences: Stimuli) -> None:
    assert made.collinearity is not None
    np.testing.assert_array_equal(made.collinearity.correlations, sentences.correlations().values)


def test_a_plan_is_as_good_as_its_options(planted: Activations, sentences: Stimuli) -> None:
    plan = plan_profiles(sentences, n_folds=3, distance="cosine")
    by_plan = profile(planted, sentences, plan=plan)
    by_options = profile(planted, sentences, n_folds=3, distance="cosine")
    np.testing.assert_array_equal(by_plan.importance, by_options.importance)
    assert by_plan.settings == by_options.settings
    assert by_plan.settings["distance"] == "cosine"


def test_the_preset_of_the_paper(planted: Activations, sentences: Stimuli) -> None:
    made = profile(planted, sentences, preset="salle2024", n_permutations=2)
    assert made.importance.shape == (3, 2, 6)
    assert made.settings["preset"] == "salle2024"


def test_other_stimuli_are_refused(planted: Activations, sentences: Stimuli) -> None:
    with pytest.raises(StoreError, match=r"ada has 240 rows but .* was shown other stimuli"):
        profile(planted, sentences.subset(np.arange(len(sentences)) > 3))


def test_the_way_out_when_resampling_is_not_possible(sentences: Stimuli) -> None:
    with pytest.raises(InvalidInput, match=r"Resampling is for a diagonal W.*resamples=0"):
        plan_profiles(sentences, resamples=5, interactions=True)


def test_shapes_are_checked(make_profile: Callable[..., Profile]) -> None:
    with pytest.raises(InvalidInput, match="do not fit 3 layers and 8 features"):
        replace(make_profile("a", np.zeros(8)), scores=np.zeros((2, 4)))


def test_spread_and_means_leave_out_missing_folds(make_profile: Callable[..., Profile]) -> None:
    made = make_profile("a", np.arange(8.0))
    values = made.importance.copy()
    values[0, 1, 2] = np.nan
    values[1, :, 3] = np.nan
    made = replace(made, importance=values)
    assert made.mean_importance[0, 2] == pytest.approx(np.nanmean(values[0, :, 2]))
    assert made.spread[0, 2] == pytest.approx(np.nanstd(values[0, :, 2], ddof=1))
    assert np.isnan(made.mean_importance[1, 3])
    assert np.isnan(made.spread[1, 3])


def test_ranges_are_of_the_jackknife(make_profile: Callable[..., Profile]) -> None:
    made = make_profile("a", np.linspace(0.01, 0.5, 8), n_layers=2)
    made = replace(made, replicates=replicates(made, noise=0.02))
    assert made.replicates is not None

    def reach(without: np.ndarray) -> np.ndarray:
        error = np.sqrt(9 * ((without - without.mean(axis=0)) ** 2).mean(axis=0))
        return student.ppf(0.975, 9) * error

    mean, off = made.mean_importance, reach(made.replicates.importance)
    up = off + off**2 / (2 * (np.abs(mean) + off))
    np.testing.assert_allclose(made.importance_range(), [mean - off, mean + up])
    z, off = np.arctanh(made.mean_scores), reach(np.arctanh(made.replicates.scores))
    np.testing.assert_allclose(made.score_range(), np.tanh([z - off, z + off]))
    assert {"importance_low", "rank_best", "strength"} <= set(made.to_frame().columns)
    assert {"score_low", "reliability"} <= set(made.layer_frame().columns)


def test_a_rank_counts_what_is_above_and_below_for_certain(make_profile: Callable[..., Profile]) -> None:
    made = make_profile("a", [0.5, 0.3, 0.299, 0.298, 0.1], features=tuple("vwxyz"), n_layers=1, noise=0.0)
    made = replace(made, replicates=replicates(made, noise=0.01))
    best, worst = made.rank_range()
    np.testing.assert_array_equal(best[0], [1, 2, 2, 2, 5])
    np.testing.assert_array_equal(worst[0], [1, 4, 4, 4, 5])


def test_a_feature_without_importance_has_no_range(make_profile: Callable[..., Profile]) -> None:
    made = make_profile("a", [0.5, 0.3, 0.1], features=tuple("xyz"), n_layers=1)
    without = replicates(made)
    without.importance[3, 0, 1] = np.nan
    low, high = replace(made, replicates=without).importance_range()
    assert low[0, 0] < high[0, 0]
    assert np.isnan([low[0, 1], high[0, 1]]).all()


def test_strengths_are_saved_and_loaded(make_profile: Callable[..., Profile], tmp_path: Path) -> None:
    made = make_profile("a", [0.5, 0.3, 0.1], features=tuple("xyz"))
    made = replace(made, replicates=replicates(made))
    again = Profile.load(made.save(tmp_path / "a"))
    assert again.strengths is not None
    assert again.replicates is not None
    np.testing.assert_array_equal(again.strengths, made.strengths)
    np.testing.assert_array_equal(again.replicates.halves, made.replicates.halves)
    np.testing.assert_array_equal(again.replicates.scores, made.replicates.scores)
    assert again.replicates.parts == 10
    assert again.replicates.sentences is None
    assert again.replicates.strengths is None
    dealt = replace(made.replicates, sentences=80, strengths=made.replicates.importance[:10])
    again = Profile.load(replace(made, replicates=dealt).save(tmp_path / "c"))
    assert again.replicates is not None
    assert again.replicates.sentences == 80
    np.testing.assert_array_equal(again.replicates.strengths, dealt.strengths)
    np.testing.assert_array_equal(again.strength_range(), replace(made, replicates=dealt).strength_range())
    bare = replace(made, strengths=None, replicates=None)
    assert Profile.load(bare.save(tmp_path / "b")).strengths is None


def test_strengths_without_a_part_are_those_of_the_other_sentences(plant: Plant) -> None:
    """By brute force: the strengths of a profile of the sentences that stay, on all of its items."""
    stimuli = Stimuli.from_grammar(n_sentences=40, seed=0, grammar="salle2024")
    shown = plant(stimuli, "s", {"part_of_speech": 1.0, "number": 1.5}, n_layers=1, n_units=12, seed=1)
    made = profile(shown, stimuli, resamples=20)
    assert made.replicates is not None
    assert made.replicates.strengths is not None
    assert made.replicates.strengths.shape == (20, 1, len(made.features))
    assert made.replicates.sentences == 40
    kept, _ = leave_out(stimuli.items["sentence"], n_resamples=20)
    for resample in (0, 3, 14):
        rows = np.flatnonzero(kept[resample])
        coded = code_features(stimuli.features.iloc[rows][list(made.features)])
        alone = strengths(
            plan_strengths(coded, make_feature_sets(made.features)), make_target(shown[0][rows], "euclidean")
        )
        np.testing.assert_allclose(made.replicates.strengths[resample], alone, rtol=1e-6)
    low, high = made.strength_range()
    assert (low < made.mean_strengths).all()
    assert (made.mean_strengths < high).all()
    assert {"strength_low", "strength_high"} <= set(made.to_frame().columns)


def test_intervals_cover_a_planted_truth(plant: Plant) -> None:
    """ρ and importances of a large sample lie in most intervals of small ones (the benchmarks do more)."""
    population = Stimuli.from_grammar(n_sentences=900, seed=0, grammar="salle2024")
    kept = ["part_of_speech", "number", "question"]
    population = Stimuli(population.features[kept], items=population.items, sentences=population.sentences)
    everyone = plant(population, "s", {"part_of_speech": 1.0, "number": 1.5}, n_layers=1, n_units=12, seed=1)
    truth = profile(everyone, population, n_folds=3)
    rng = np.random.default_rng(0)
    names = population.items["sentence"].to_numpy()
    covered = []
    for _ in range(20):
        drawn = np.isin(names, rng.choice(np.unique(names), size=45, replace=False))
        part = population.subset(drawn)
        acts = Activations.from_arrays({0: everyone[0][drawn]}, system="s", stimuli=part)
        found = profile(acts, part, resamples=20, n_folds=3)
        truths = np.append(truth.mean_importance[0], truth.mean_scores[0])
        low, high = np.concatenate([found.importance_range()[:, 0], found.score_range()[:, :1]], axis=1)
        covered.append((low <= truths) & (truths <= high))
    assert np.mean(covered) > 0.85
    assert np.mean(covered, axis=0).min() >= 0.7


def test_the_ceiling_is_what_a_perfect_model_reaches() -> None:
    """Few noisy units: ρ between the noiseless distances and the measured ones is near the ceiling."""
    rng = np.random.default_rng(0)
    reached, ceilings = [], []
    for _ in range(10):
        signal = rng.normal(size=(120, 5)) @ rng.normal(size=(5, 80))
        measured = signal + 2.0 * rng.normal(size=signal.shape)
        reached.append(spearmanr(pdist(signal), pdist(measured)).statistic)
        ceilings.append(split_half_ceiling(measured))
    assert np.mean(ceilings) == pytest.approx(np.mean(reached), abs=0.05)
    assert 0.4 < np.mean(ceilings) < 0.95


def test_ceilings_at_the_ends() -> None:
    rng = np.random.default_rng(0)
    twice = np.repeat(rng.normal(size=(50, 4)), 200, axis=1)
    assert split_half_ceiling(twice) > 0.97
    assert split_half_ceiling(rng.normal(size=(300, 2))) < 0.5
    assert np.isnan(split_half_ceiling(rng.normal(size=(50, 1))))


def test_duplicates_and_top_shares() -> None:
    X = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    assert duplicated_share(X) == 0.0
    X[3] = X[7] = X[9]
    assert duplicated_share(X) == pytest.approx(0.03)
    X[11] = X[13][::-1]  # the same numbers, but elsewhere
    assert duplicated_share(X) == pytest.approx(0.03)
    X[20], X[21] = 0.0, -0.0
    assert duplicated_share(X) == pytest.approx(0.05)
    assert duplicated_share(np.repeat(X, 10, axis=0)) == 1.0
    assert top_share(Lengths.of(X)) < 0.1
    X[0] = 1000.0
    assert top_share(Lengths.of(X)) > 0.95
    assert np.isnan(top_share(Lengths.of(np.ones((5, 2)))))


def test_rounding_is_no_importance() -> None:
    """Features without weight tie at exactly 0; τ_w would rank what rounding leaves of them."""
    rng = np.random.default_rng(2)
    features = pd.DataFrame({name: rng.choice(list("xyz"), 60) for name in "abcd"})
    levels = pd.get_dummies(features["a"]).to_numpy(float)
    layers = {k: 3 * levels @ rng.normal(size=(3, 10)) + rng.normal(size=(60, 10)) for k in range(12)}
    found = profile(layers, features, resamples=20)
    assert found.replicates is not None
    for values in (found.importance, found.replicates.importance):
        size = np.abs(values)
        assert (size == 0).any()
        assert not ((size > 0) & (size < 1e-12)).any()
