"""`.plot()` of every result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import pytest

from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.explaining import explain
from thinkalike.errors import UnknownName

PLOTS: dict[str, Callable[[Comparison, str | None], Any]] = {
    "profile": lambda c, theme: c.profiles["alpha"].plot(theme=theme),
    "matrix": lambda c, theme: c.matrices["rsa"].plot(theme=theme),
    "layer map": lambda c, theme: c.layer_maps["rsa"].plot(theme=theme),
    "word map": lambda c, theme: c.word_maps.plot(c.stimuli, "beta", 1, feature="tense", theme=theme),  # type: ignore[union-attr]
    "trajectories": lambda c, theme: c.trajectories.plot(theme=theme),
    "explanation": lambda c, theme: explain(c.profiles["alpha"], 0, c.profiles["beta"], 1).plot(theme=theme),
    "comparison": lambda c, theme: c.plot(theme=theme),
}


@pytest.fixture(scope="module")
def small(plant: Callable[..., Comparison]) -> Comparison:
    return plant({"alpha": 2, "beta": 3}, n_sentences=40, n_mapped=20)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PLOTS)
def test_every_result_has_a_valid_chart(small: Comparison, name: str, theme: str) -> None:
    spec = PLOTS[name](small, theme).to_dict()
    assert spec["config"]["background"] == {"light": "#ffffff", "dark": "#16191d"}[theme]


@pytest.mark.parametrize("name", PLOTS)
def test_a_chart_without_theme_can_be_joined(small: Comparison, name: str) -> None:
    joined = alt.hconcat(PLOTS[name](small, None), PLOTS[name](small, None))
    assert len(joined.to_dict(validate=False)["hconcat"]) == 2


def test_a_chart_shows_in_a_notebook(small: Comparison) -> None:
    bundle = small.profiles["alpha"].plot()._repr_mimebundle_()
    assert "text/html" in (bundle[0] if isinstance(bundle, tuple) else bundle)


@pytest.mark.parametrize(("renderer", "form"), [("svg", "image/svg+xml"), ("png", "image/png")])
def test_a_chart_shows_in_a_notebook_without_a_network(small: Comparison, renderer: str, form: str) -> None:
    with alt.renderers.enable(renderer):
        bundle = small.profiles["alpha"].plot()._repr_mimebundle_()
    assert list(bundle[0] if isinstance(bundle, tuple) else bundle) == [form]  # a picture, and no script


def test_words_are_coloured_by_the_first_feature_unless_another_is_named(small: Comparison) -> None:
    assert small.word_maps is not None
    spec = small.word_maps.plot(small.stimuli, "alpha", 0).to_dict()
    assert spec["encoding"]["color"]["condition"]["legend"]["title"] == "part of speech"


def test_an_unknown_feature_is_named(small: Comparison) -> None:
    assert small.word_maps is not None
    with pytest.raises(UnknownName, match=r"There is no feature 'tens'. Did you mean 'tense'\?"):
        small.word_maps.plot(small.stimuli, "alpha", 0, feature="tens")


def test_an_unknown_theme_is_named(small: Comparison) -> None:
    with pytest.raises(UnknownName, match="There is no theme 'pink'"):
        small.plot(theme="pink")


def test_explanation_shows_importances_contributions_and_their_sum(small: Comparison) -> None:
    found = explain(small.profiles["alpha"], 0, small.profiles["beta"], 2)
    rows = [row for rows in found.plot().to_dict()["datasets"].values() for row in rows]
    bars = {row["feature"]: row["contribution"] for row in rows if "contribution" in row}
    assert bars.pop("weighted τ") == pytest.approx(sum(bars.values()))
    scatter = {row["feature"]: (row["a"], row["b"]) for row in rows if "b" in row and "feature" in row}
    assert scatter["tense"] == pytest.approx(
        (small.profiles["alpha"].mean_importance[0, 4], small.profiles["beta"].mean_importance[2, 4])
    )
