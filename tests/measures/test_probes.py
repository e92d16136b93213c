"""Linear probes: against scikit-learn's cross-validation, on planted features, and their controls."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from thinkalike.activations.store import Activations
from thinkalike.errors import InvalidInput, StoreError, UnknownName
from thinkalike.measures import MEASURES, probe_layers
from thinkalike.measures.probes import control_labels, probe_scores
from thinkalike.stimuli.table import Stimuli

N = 120


@pytest.fixture(scope="module")
def stimuli() -> Stimuli:
    """Forty sentences of three words; number is of the word, tense of the sentence, length a number."""
    rng = np.random.default_rng(0)
    words = [f"word{k}" for k in rng.integers(0, 30, N)]
    sentence = [f"s{k // 3}" for k in range(N)]
    return Stimuli.from_table(
        pd.DataFrame(
            {
                "sentence": sentence,
                "word": words,
                "number": ["singular" if int(w[4:]) % 2 else "plural" for w in words],
                "tense": [None if k % 10 == 0 else ("past" if k // 3 % 2 else "present") for k in range(N)],
                "length": rng.normal(size=N),
            }
        )
    )


@pytest.fixture(scope="module")
def activations(stimuli: Stimuli) -> Activations:
    """Layer 0 is noise; layer 1 carries the number and the length of each word, and the word itself."""
    rng = np.random.default_rng(1)
    number = (stimuli.features["number"] == "singular").to_numpy(dtype=float)
    word = np.eye(30)[[int(w[4:]) for w in stimuli.items["word"]]]
    coded = np.column_stack([number, stimuli.features["length"], word]) + 0.1 * rng.normal(size=(N, 32))
    return Activations.from_arrays({0: rng.normal(size=(N, 8)), 1: coded}, system="planted", stimuli=stimuli)


def test_accuracy_is_that_of_sklearns_cross_validation(activations: Activations, stimuli: Stimuli) -> None:
    X, y = activations[0], stimuli.features["number"].astype(str)
    expected = cross_val_score(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        X.astype(float),
        y,
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
    )
    np.testing.assert_allclose(probe_scores(X, y), expected)
    assert MEASURES["probe"](X, y.to_numpy()) == pytest.approx(expected.mean())


def test_a_planted_feature_is_read_off_the_layer_that_carries_it(
    activations: Activations, stimuli: Stimuli
) -> None:
    table = probe_layers(activations, stimuli, "number").to_frame()
    noise, coded = table.to_dict("records")
    assert coded["accuracy"] > 0.95
    assert noise["accuracy"] < 0.65
    assert coded["chance"] == pytest.approx(stimuli.features["number"].value_counts(normalize=True).max())
    # The words themselves are in this layer, so a probe can learn labels of words by heart.
    assert coded["control"] > 0.8
    assert list(table["layer"]) == [0, 1]
    assert (table["system"] == "planted").all()


def test_on_words_it_has_not_seen_the_probe_cannot_know_by_heart(
    activations: Activations, stimuli: Stimuli
) -> None:
    by_word = probe_layers(activations, stimuli, "number", groups="word")
    assert by_word.scores[1].mean() > 0.95
    assert by_word.control[1] < 0.75
    assert by_word.settings == {"groups": "word", "folds": 5, "seed": 0}


def test_numbers_are_read_by_ridge_and_scored_by_r2(activations: Activations, stimuli: Stimuli) -> None:
    table = probe_layers(activations, stimuli, "length").to_frame()
    assert table["R²"][1] > 0.9
    assert abs(table["R²"][0]) < 0.3
    assert (table["chance"] == 0).all()


def test_items_without_a_label_are_left_out(activations: Activations, stimuli: Stimuli) -> None:
    labels = stimuli.features["tense"]
    kept = labels.notna().to_numpy()
    np.testing.assert_array_equal(
        probe_scores(activations[0], labels), probe_scores(activations[0][kept], labels[kept])
    )


def test_sentences_stay_whole(activations: Activations, stimuli: Stimuli) -> None:
    """Tense is one label per sentence: vectors that name the sentence give it away if sentences are cut."""
    names = np.eye(40)[[k // 3 for k in range(N)]]
    labels = stimuli.features["tense"]
    assert probe_scores(names, labels).mean() > 0.95
    assert probe_scores(names, labels, groups=stimuli.items["sentence"]).mean() < 0.7


def test_control_labels_belong_to_words_and_keep_what_is_missing(stimuli: Stimuli) -> None:
    labels, words = stimuli.features["tense"], stimuli.items["word"]
    control = control_labels(labels, words, seed=3)
    assert (control.isna() == labels.isna()).all()
    assert control.groupby(words).nunique().max() == 1
    assert not control.equals(labels)
    assert control.equals(control_labels(labels, words, seed=3))
    shuffled = control_labels(labels, None, seed=3)
    assert shuffled.value_counts().to_dict() == labels.value_counts().to_dict()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * N, "The feature has 1 level among the labelled items: a probe needs 2"),
        (["a"] * (N - 2) + ["b"] * 2, "The level 'b' has 2 items, fewer than the 5 folds"),
        (["a", "b"], "X has 120 items and the feature 2: give one label per item"),
    ],
)
def test_labels_that_cannot_be_probed_for(activations: Activations, labels: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        probe_scores(activations[0], pd.Series(labels))


def test_too_few_groups(activations: Activations, stimuli: Stimuli) -> None:
    with pytest.raises(InvalidInput, match="There are 2 groups for 5 folds"):
        probe_scores(activations[0], stimuli.features["number"], groups=["a", "b"] * (N // 2))


def test_unknown_features_columns_and_other_stimuli(activations: Activations, stimuli: Stimuli) -> None:
    with pytest.raises(UnknownName, match=r"There is no feature 'nubmer'\. Did you mean 'number'"):
        probe_layers(activations, stimuli, "nubmer")
    with pytest.raises(UnknownName, match=r"There is no column of the items 'wrod'\. Did you mean 'word'"):
        probe_layers(activations, stimuli, "number", groups="wrod")
    with pytest.raises(StoreError, match=r"120 rows .* was shown other stimuli"):
        probe_layers(activations, stimuli.subset(np.arange(60)), "number")
