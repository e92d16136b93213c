"""Presets, and settings that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thinkalike.encoding.settings import PRESETS, change_settings, make_settings
from thinkalike.errors import InvalidInput, UnknownName


def test_the_presets_are_those_of_the_docs() -> None:
    default, salle = PRESETS["default"], PRESETS["salle2024"]
    assert default.preset == "default"
    assert (default.target, default.select, default.folds_over, default.n_folds) == (
        "squared",
        "spearman",
        "items",
        5,
    )
    assert default.importance == "expected"
    assert salle.preset == "salle2024"
    assert (salle.target, salle.select, salle.folds_over, salle.n_folds) == ("minmax", "mse", "pairs", 2)
    assert (salle.importance, salle.n_permutations) == ("permutation", 50)
    for preset in PRESETS.values():
        assert preset.intercept
        assert (preset.missing, preset.ordered) == ("ignore", "indicator")
        assert preset.alphas == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3, 1e4])


def test_settings_are_plain_values() -> None:
    assert json.loads(json.dumps(make_settings().as_dict()))["preset"] == "default"
    assert make_settings(distance=max).as_dict()["distance"] == "max"


def test_none_keeps_what_the_preset_says() -> None:
    assert make_settings("salle2024", n_folds=None, seed=3) == change_settings(PRESETS["salle2024"], seed=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "salle"}, r"no preset 'salle'\. Did you mean 'salle2024'"),
        ({"alpa": 1}, r"no setting 'alpa'\. Did you mean 'alpha'"),
        ({"distance": "cosin"}, r"no distance 'cosin'\. Did you mean 'cosine'"),
        ({"target": "square"}, "no target 'square'"),
        ({"ordered": "min"}, "no difference of ordered features 'min'"),
        ({"missing": "zero"}, "no treatment of missing values 'zero'"),
        ({"select": "r2"}, "no way to choose alpha 'r2'"),
        ({"folds_over": "stimuli"}, "no unit of folds 'stimuli'"),
        ({"importance": "gain"}, "no importance 'gain'"),
    ],
)
def test_unknown_names(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        make_settings(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": -1.0}, "alpha=-1.0: give a number that is not negative, or 'cv'"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"alpha": "auto"}, "alpha='auto'"),
        ({"alphas": ()}, r"alphas=\(\)"),
        ({"alphas": (1.0, -1.0)}, "give numbers that are not negative"),
        ({"target": "minmax"}, "need all pairs: give folds_over='pairs'"),
        ({"select": "mse"}, "need all pairs: give folds_over='pairs'"),
        ({"n_permutations": 0}, "n_permutations=0"),
    ],
)
def test_values_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make_settings(**changes)
