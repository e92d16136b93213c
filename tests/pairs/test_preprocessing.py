"""Steps against scikit-learn and pandas, what they may learn from, and what they refuse."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import PCA
from sklearn.preprocessing import RobustScaler, StandardScaler

import thinkalike as ta
from thinkalike.encoding import cross_validate, leave_out, make_plan, plan_resamples, resample
from thinkalike.errors import InvalidInput, StoreError, UnknownName
from thinkalike.pairs.preprocessing import STEPS, Step, describe_steps, parse_steps, prepare_steps

EXAMPLES = {
    "zscore": "zscore",
    "pca": "pca:3",
    "whiten": "whiten",
    "remove-top": "remove-top:2",
    "demean": "demean:word",
}


@pytest.fixture
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.asarray(rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6)) * [9, 1, 1, 0.1, 3, 1] + 50)


@pytest.fixture
def shown() -> pd.DataFrame:
    return pd.DataFrame({"word": np.random.default_rng(1).choice(["cat", "dog", "owl"], 40)})


TRAINING = np.arange(28)


def test_zscore_is_that_of_scikit_learn(X: np.ndarray) -> None:
    expected = StandardScaler().fit(X[TRAINING]).transform(X)
    np.testing.assert_allclose(prepare_steps("zscore")(X, TRAINING), expected, rtol=1e-9)


def test_a_constant_unit_is_no_nan(X: np.ndarray) -> None:
    X[:, 2] = 7.1
    assert (prepare_steps("zscore")(X, TRAINING)[:, 2] == 0).all()


@pytest.mark.parametrize("units", [6, 60])
def test_pca_is_that_of_scikit_learn(units: int) -> None:
    X = np.random.default_rng(0).normal(size=(40, units)) * np.linspace(1, 3, units)
    expected = PCA(4, svd_solver="full").fit(X[TRAINING]).transform(X)
    np.testing.assert_allclose(pdist(prepare_steps("pca:4")(X, TRAINING)), pdist(expected), rtol=1e-8)


def test_directions_in_which_nothing_varies_are_left_out() -> None:
    """Else an arbitrary direction would tell items apart that the fitted ones know nothing of."""
    X = np.random.default_rng(0).normal(size=(40, 3)) @ np.ones((3, 6))
    assert np.linalg.matrix_rank(prepare_steps("pca:4")(X, TRAINING)) == 1


@pytest.mark.parametrize("units", [6, 60])
def test_remove_top_leaves_what_pca_does_not_have(units: int) -> None:
    X = np.random.default_rng(0).normal(size=(40, units)) * np.linspace(1, 3, units)
    pca = PCA(2, svd_solver="full").fit(X[TRAINING])
    expected = X - pca.inverse_transform(pca.transform(X))
    np.testing.assert_allclose(prepare_steps("remove-top:2")(X, TRAINING), expected, atol=1e-9)


def test_whiten_gives_mahalanobis_distances(X: np.ndarray) -> None:
    fitted = LedoitWolf().fit(X[TRAINING])
    found = prepare_steps("whiten")(X, TRAINING)
    np.testing.assert_allclose((found**2).sum(axis=1), fitted.mahalanobis(X), rtol=1e-7)


def test_demean_takes_the_mean_of_each_word(X: np.ndarray, shown: pd.DataFrame) -> None:
    expected = X - pd.DataFrame(X).groupby(shown["word"].to_numpy()).transform("mean").to_numpy()
    np.testing.assert_allclose(prepare_steps("demean:word", shown)(X), expected, atol=1e-9)


def test_a_word_that_was_not_fitted_loses_the_mean_of_all(X: np.ndarray, shown: pd.DataFrame) -> None:
    shown.loc[39, "word"], shown.loc[38, "word"] = "newt", None
    found = prepare_steps("demean:word", shown)(X, TRAINING)
    np.testing.assert_allclose(found[38:], X[38:] - X[TRAINING].mean(axis=0))


def test_steps_come_one_after_the_other(X: np.ndarray) -> None:
    scaled = StandardScaler().fit(X[TRAINING]).transform(X)
    expected = PCA(3, svd_solver="full").fit(scaled[TRAINING]).transform(scaled)
    found = prepare_steps(["zscore", "pca:3"])(X, TRAINING)
    np.testing.assert_allclose(pdist(found), pdist(expected), rtol=1e-8)


def test_there_is_an_example_of_every_step() -> None:
    assert set(EXAMPLES) == set(STEPS)


@pytest.mark.parametrize("name", EXAMPLES.values())
def test_no_step_learns_from_items_that_it_is_not_fitted_on(
    name: str, X: np.ndarray, shown: pd.DataFrame
) -> None:
    steps = prepare_steps(name, shown)
    before, everything = steps(X, TRAINING), steps(X)
    other = X.copy()
    other[28:] = 1000 * np.random.default_rng(2).normal(size=(12, 6))
    after = steps(other, TRAINING)
    np.testing.assert_array_equal(before[TRAINING], after[TRAINING])
    assert not np.allclose(everything[TRAINING], steps(other)[TRAINING])  # fitted on all, it would


def planted(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    features = pd.DataFrame(
        {name: pd.Categorical(rng.choice(["no", "yes"], n)) for name in ("number", "tense", "gender")}
    )
    scale = np.array([30.0, 1, 1, 1, 1, 1, 1, 1])  # one unit drowns the rest
    X = rng.normal(size=(n, 8))
    for k, name in enumerate(features):
        X[:, k + 1] += 3 * (features[name] == "yes")
    return features, X * scale


def test_each_fold_is_fitted_with_the_steps_of_its_training_items() -> None:
    """By scikit-learn for every fold, and then without steps on the same folds."""
    features, X = planted()
    fold = np.arange(60) % 4
    found = cross_validate(features, X, folds=fold, steps=["zscore", "pca:5"])
    for k in range(4):
        scaler = StandardScaler().fit(X[fold != k])
        pca = PCA(5, svd_solver="full").fit(scaler.transform(X[fold != k]))
        alone = cross_validate(features, pca.transform(scaler.transform(X)), folds=fold)
        np.testing.assert_allclose(found.scores[0, k], alone.scores[0, k], rtol=1e-9)
        np.testing.assert_allclose(found.weights[0, k], alone.weights[0, k], rtol=1e-7)
        np.testing.assert_allclose(found.importance[0, k], alone.importance[0, k], atol=1e-9)
        np.testing.assert_allclose(found.strengths[0, k], alone.strengths[0, k], rtol=1e-6)
    assert found.scores.mean() > cross_validate(features, X, folds=fold).scores.mean() + 0.1


def test_test_items_do_not_move_the_fit() -> None:
    features, X = planted()
    fold = np.arange(60) % 4
    other = X.copy()
    other[fold == 2] *= 50

    def weights(given: np.ndarray, **options: object) -> np.ndarray:
        return cross_validate(features, given, folds=fold, alpha=1.0, **options).weights[0, 2]

    np.testing.assert_allclose(weights(X, steps="zscore"), weights(other, steps="zscore"), rtol=1e-9)
    assert not np.allclose(weights(X, distance="zscored"), weights(other, distance="zscored"))


def test_resamples_use_the_distances_of_each_fold() -> None:
    features, X = planted()
    plan = make_plan(features, steps=["zscore"], n_folds=3)
    found = cross_validate(features, X, plan=plan)
    everyone = plan_resamples(plan, np.ones((1, 60), dtype=int))
    again = resample(everyone, X, found.alphas[0])
    np.testing.assert_allclose(again.scores[0], found.scores[0], rtol=1e-9)
    np.testing.assert_allclose(again.importance[0], found.importance[0], atol=1e-9)
    some = plan_resamples(plan, leave_out(range(60), n_resamples=4)[0])
    assert np.isfinite(resample(some, X, found.alphas[0]).scores).all()


def test_folds_over_pairs_have_all_items_in_training() -> None:
    features, X = planted(40)
    found = cross_validate(features, X, preset="salle2024", steps=["zscore"])
    alone = cross_validate(features, StandardScaler().fit_transform(X), preset="salle2024")
    np.testing.assert_allclose(found.scores, alone.scores, rtol=1e-9)


def test_measures_have_steps_fitted_on_all_items(X: np.ndarray) -> None:
    Y = np.random.default_rng(5).normal(size=(40, 9)) * np.linspace(0.1, 5, 9)
    found = ta.similarity({"a": X, "b": Y}, measure="rsa", steps=["zscore", "pca:4"])
    expected = [
        pdist(PCA(4, svd_solver="full").fit_transform(StandardScaler().fit_transform(M))) for M in (X, Y)
    ]
    assert found["a", "a", "b", "b"] == pytest.approx(spearmanr(*expected).statistic, abs=1e-6)
    assert found.settings["steps"] == ["zscore", "pca:4"]
    changed = [StandardScaler().fit_transform(M) for M in (X, Y)]
    cka = ta.similarity({"a": X, "b": Y}, measure="cka", steps="zscore")
    plain = ta.similarity(dict(zip("ab", changed, strict=True)), measure="cka")
    np.testing.assert_allclose(cka.values, plain.values, atol=1e-6)


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
def test_a_comparison_says_its_steps_and_uses_them_everywhere(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from thinkalike.report.methods import methods

    features, X = planted(60)
    stimuli = ta.Stimuli.from_table(features.astype(str))
    systems = {"one": X, "other": X[:, ::-1] + 1}
    asked = ["zscore", "pca:4"]
    found = ta.compare(systems, stimuli, steps=asked, measures="cka", out=tmp_path / "run")
    assert found.settings["steps"] == asked
    assert found.profiles["one"].settings["steps"] == asked
    text = dict(methods(found))["Before anything else"]
    assert "the first 4 principal components" in text
    assert "fitted on the items of the training folds" in text
    for measure in ("rsa", "cka"):
        alone = ta.similarity(systems, measure=measure, steps=asked)
        np.testing.assert_allclose(found.matrices[measure].values, alone.values, atol=1e-6)
    profile = ta.profile(systems["one"], stimuli, steps=asked)
    np.testing.assert_allclose(found.profiles["one"].mean_scores, profile.mean_scores, rtol=1e-9)
    assert found.explain("one", "one", "other", "other").worst_pairs is not None
    again = ta.compare(systems, stimuli, steps=asked, measures="cka", out=tmp_path / "run")
    np.testing.assert_array_equal(again.matrices["features"].values, found.matrices["features"].values)
    with pytest.raises(StoreError, match="steps: zscore, pca:4 there, zscore here"):
        ta.compare(systems, stimuli, steps=["zscore"], out=tmp_path / "run")
    plain = ta.compare(systems, stimuli, resamples=0)
    assert "steps" not in plain.settings
    assert "Before anything else" not in dict(methods(plain))


def test_the_means_of_words_from_stimuli() -> None:
    stimuli = ta.Stimuli.from_grammar(40, seed=0)
    X = np.random.default_rng(0).normal(size=(len(stimuli), 5))
    found = prepare_steps("demean:word", stimuli)(X)
    means = pd.DataFrame(found).groupby(stimuli.items["word"].to_numpy()).mean()
    np.testing.assert_allclose(means, 0, atol=1e-12)
    assert ta.profile({"1": X}, stimuli, steps=["demean:word"]).settings["steps"] == ["demean:word"]


def test_others_add_steps_like_scikit_learn_has(X: np.ndarray) -> None:
    STEPS.register("robust", RobustScaler)
    STEPS.register("negate", Step(lambda X, fitted_on, argument: -X, "with the other sign"))
    try:
        expected = -RobustScaler().fit(X[TRAINING]).transform(X)
        np.testing.assert_allclose(prepare_steps(["robust", "negate"])(X, TRAINING), expected)
        assert describe_steps(["robust", "negate"]) == "robust (RobustScaler); then with the other sign"
    finally:
        STEPS.unregister("robust")
        STEPS.unregister("negate")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("pca:0", "Got the step 'pca:0': give a number of at least 1, as pca:50"),
        ("pca", "give a number of at least 1"),
        ("pca:many", "give a number of at least 1"),
        ("zscore:3", "zscore takes nothing after a colon"),
        ("demean", "name a column of the items, as demean:word"),
        (["zscore", 3], "Got 3 as a step: give its name"),
    ],
)
def test_what_is_no_step(given: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse_steps(given)


def test_steps_that_do_not_fit_the_data(X: np.ndarray, shown: pd.DataFrame) -> None:
    with pytest.raises(UnknownName, match=r"There is no step 'zscor'.* Did you mean 'zscore'"):
        parse_steps("zscor")
    with pytest.raises(InvalidInput, match="fitted on 28 items of 6 units, which have at most 6 components"):
        prepare_steps("pca:7")(X, TRAINING)
    with pytest.raises(InvalidInput, match="fitted on 5 items of 6 units, which have at most 4 components"):
        prepare_steps("remove-top:5")(X, np.arange(5))
    with pytest.raises(UnknownName, match=r"There is no column of the items 'wort'.* Did you mean 'word'"):
        prepare_steps("demean:wort", shown)
    with pytest.raises(InvalidInput, match="needs the column 'word' of the items: give the stimuli"):
        prepare_steps("demean:word")
    with pytest.raises(InvalidInput, match="Layer 0: The step 'pca:50'"):
        cross_validate(planted()[0], planted()[1], steps="pca:50")
    with pytest.raises(InvalidInput, match="a:a: The step 'pca:50'"):
        ta.similarity({"a": X, "b": X}, measure="cka", steps="pca:50")
    with pytest.raises(InvalidInput, match="Steps change one vector per item"):
        make_plan(planted()[0], distance="precomputed", steps="zscore")
    with pytest.raises(InvalidInput, match="profiles were made with theirs"):
        ta.similarity([ta.profile(X, ta.Stimuli.from_table(planted(40)[0].astype(str)))], steps="zscore")
    STEPS.register("broken", Step(lambda X, fitted_on, argument: X[fitted_on], "nonsense"))
    try:
        with pytest.raises(InvalidInput, match="The step 'broken' gave an array of shape"):
            prepare_steps("broken")(X, TRAINING)
    finally:
        STEPS.unregister("broken")
