"""Every statement of salle2024 on planted numbers: it agrees where it should, and differs where it should."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from thinkalike.inference.agreement import Agreement
from thinkalike.recipes.findings import Statement
from thinkalike.recipes.salle2024 import beyond_verdicts as beyond
from thinkalike.recipes.salle2024 import verdicts

FEATURES = ("word_length", "number", "part_of_speech", "word_position")
SYSTEMS = ["bert", "gpt2"]


def table(tops: list[str], **columns: list[float]) -> pd.DataFrame:
    """Importances in which `tops` are the dominant features of layers 0, 1, …"""
    values = pd.DataFrame(0.05, index=range(len(tops)), columns=list(FEATURES))
    for layer, feature in enumerate(tops):
        values.loc[layer, feature] = 0.3
    return values.assign(**columns)


P, W = "part_of_speech", "word_position"


def check(statement: Statement, expected: str) -> None:
    assert statement.verdict == expected, statement.found
    assert statement.found.endswith(".")
    assert all(np.isfinite(v) for v in statement.numbers.values())


def test_pos_in_transformers() -> None:
    mostly = table([W, P, P, P, W])
    check(verdicts.pos_in_transformers({"bert": mostly, "gpt2": table([W] + [P] * 6)}), "agrees")
    check(verdicts.pos_in_transformers({"bert": mostly, "gpt2": table([P, P, W, W, P])}), "differs")


@pytest.mark.parametrize(
    ("tops", "after_norm", "expected"),
    [
        ([W, P, W, W, W, P], None, "agrees"),
        ([P, W, W, W, W, P], None, "agrees"),  # the embeddings are the first layer
        ([W, P, W, W, W, W], P, "agrees"),  # the last layer is after the norm
        ([W, P, W, W, W, W], None, "differs"),
        ([W, P, P, P, P, P], P, "differs"),
        ([W, W, W, W, W, P], None, "differs"),
    ],
)
def test_pos_at_the_ends(tops: list[str], after_norm: str | None, expected: str) -> None:
    check(verdicts.pos_at_the_ends("mamba", table(tops), after_norm), expected)


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ([0.0, 0.02, 0.02, 0.02, 0.02, 0.2, 0.2, 0.2, 0.2], "agrees"),
        ([0.0, 0.2, 0.2, 0.2, 0.2, 0.02, 0.02, 0.02, 0.02], "differs"),  # falls
        ([0.0, 0.10, 0.11, 0.10, 0.09, 0.11, 0.10, 0.11, 0.1], "differs"),  # flat
        ([0.0, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.3], "differs"),  # at the end
    ],
)
def test_position_rises(position: list[float], expected: str) -> None:
    values = table([P] * 9, word_position=position)
    check(verdicts.position_rises("mamba", values, values * 0 + 0.01), expected)


def test_a_rise_within_the_spread_is_none() -> None:
    values = table([P] * 9, word_position=[0.0, *[0.02] * 4, *[0.04] * 4])
    check(verdicts.position_rises("mamba", values, values * 0 + 0.05), "differs")


def test_two_blocks() -> None:
    label = np.repeat([0, 1], 5)
    blocky = np.where(label[:, None] == label, 0.9, 0.1)
    places = np.arange(10)
    fading = 1 - np.abs(places[:, None] - places) / 10
    check(verdicts.two_blocks({"mamba": blocky, "bert": fading}, "mamba"), "agrees")
    check(verdicts.two_blocks({"mamba": fading, "bert": blocky}, "mamba"), "differs")
    check(verdicts.two_blocks({"mamba": np.eye(3), "bert": blocky}, "mamba"), "cannot be tested")


def test_variance_by_level_is_the_ratio_of_sums_of_squares() -> None:
    rng = np.random.default_rng(0)
    levels = [str(k % 3) for k in range(60)]
    points = rng.normal(size=(60, 2)) + 3 * np.array([[int(level), 0] for level in levels])
    frame = pd.DataFrame(points).assign(level=levels)
    means = frame.groupby("level").transform("mean").to_numpy()
    centre = points.mean(axis=0)
    expected = ((means - centre) ** 2).sum() / ((points - centre) ** 2).sum()
    assert verdicts.variance_by_level(points, list(levels)) == pytest.approx(expected)
    more = np.concatenate([points, [[100.0, 100.0]]])
    assert verdicts.variance_by_level(more, [*levels, None]) == pytest.approx(expected)


def test_maps_by_position() -> None:
    check(verdicts.maps_by_position("mamba", (3, 0.05), (9, 0.4)), "agrees")
    check(verdicts.maps_by_position("mamba", (3, 0.4), (9, 0.45)), "differs")


def test_number_falls() -> None:
    falling = table([P] * 7, number=[0.0, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01])
    flat = table([P] * 7, number=[0.0, -0.01, 0.0, -0.01, -0.02, -0.03, -0.04])
    check(verdicts.number_falls({"bert": falling, "mamba": falling}), "agrees")
    check(verdicts.number_falls({"bert": falling, "mamba": flat}), "differs")
    never = verdicts.number_falls({"bert": falling, "mamba": table([P] * 7, number=[0.0] * 7)})
    check(never, "differs")
    assert list(never.numbers) == ["rank correlation with depth, bert"]


def test_matrices_agree() -> None:
    check(verdicts.matrices_agree(Agreement("features", "rsa", 0.6, 0.01, 0.4, 0.3, 99)), "agrees")
    check(verdicts.matrices_agree(Agreement("features", "rsa", 0.6, 0.2, 0.4, 0.3, 99)), "differs")
    check(verdicts.matrices_agree(Agreement("features", "rsa", -0.2, 0.9, 0.4, 0.3, 99)), "differs")


def test_most_and_least_alike() -> None:
    between = ("gpt2:8", "bert:4")
    check(verdicts.most_alike(between, 0.8, (P, P), SYSTEMS), "agrees")
    check(verdicts.most_alike(between, 0.8, (W, W), SYSTEMS), "differs")
    check(verdicts.most_alike(("gpt2:8", "mamba:4"), 0.8, (P, P), SYSTEMS), "differs")
    check(verdicts.least_alike(("mamba:8", "bert:4"), -0.2, (W, P), "mamba"), "agrees")
    check(verdicts.least_alike(("mamba:8", "bert:4"), -0.2, (W, W), "mamba"), "differs")
    check(verdicts.least_alike(between, -0.2, (W, P), "mamba"), "differs")


def test_features_predict() -> None:
    good = np.full((4, 5), 0.4)
    check(verdicts.features_predict({"bert": good}), "agrees")
    check(verdicts.features_predict({"bert": good, "gpt2": good - np.eye(4, 5)}), "differs")


@pytest.mark.parametrize(("strongest", "expected"), [(0.3, "agrees"), (-0.8, "differs")])
def test_features_apart(strongest: float, expected: str) -> None:
    values = np.eye(3)
    values[0, 1] = values[1, 0] = strongest
    check(verdicts.features_apart(pd.DataFrame(values, columns=["a", "b", "c"])), expected)


def test_interactions() -> None:
    rows = [{"system": "bert", "layer": k, "diagonal": 0.3, "full": 0.3, "needed": False} for k in range(4)]
    check(beyond.interactions(rows), "agrees")
    check(beyond.interactions([{**row, "full": 0.4, "needed": True} for row in rows]), "differs")


def test_natural_text() -> None:
    check(beyond.natural_text(0.9, {"bert": P}, 1000), "agrees")
    check(beyond.natural_text(0.3, {"bert": P}, 1000), "differs")
    check(beyond.natural_text_untested(), "cannot be tested")


def test_feature_set_and_presets() -> None:
    check(beyond.feature_set({P: 0.85, W: 0.99}, 0.95, "zipf"), "agrees")
    check(beyond.feature_set({P: 0.5, W: 0.99}, 0.95, "zipf"), "differs")
    check(beyond.feature_set({P: 0.85, W: 0.99}, 0.5, "zipf"), "differs")
    check(beyond.presets(0.9, 1.0, 100), "agrees")
    check(beyond.presets(0.1, 1.0, 100), "differs")


def test_untrained() -> None:
    check(beyond.untrained({"a and b": (0.6, 0.2)}), "agrees")
    check(beyond.untrained({"a and b": (0.6, 0.2), "a and c": (0.3, 0.4)}), "differs")


def test_checkpoints() -> None:
    check(beyond.checkpoints({"m@step250": 0.2, "m@step1000": 0.6}), "agrees")
    check(beyond.checkpoints({"m@step250": 0.6, "m@step1000": 0.2}), "differs")
    check(beyond.checkpoints_untested(["m@step250"]), "cannot be tested")


def test_positions_removed() -> None:
    high, low = np.array([0.2, 0.3]), np.array([0.1, 0.0])
    check(beyond.positions_removed({"gpt2": high}, {"gpt2": low}), "agrees")
    check(beyond.positions_removed({"gpt2": low}, {"gpt2": high}), "differs")


def test_same_story_is_spearman_over_pairs() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(1)
    a, b = (m + m.T for m in rng.normal(size=(2, 6, 6)))
    i, j = np.triu_indices(6, k=1)
    assert beyond.same_story(a, b) == pytest.approx(spearmanr(a[i, j], b[i, j]).statistic)
