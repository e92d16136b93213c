"""Every chart is valid Vega-Lite in both themes, shows the values it was given, and computes none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
import vl_convert

from thinkalike.charts.block_charts import OBSERVED, UNTRAINED, system_pairs
from thinkalike.charts.heatmap import feature_correlations, similarity_matrix
from thinkalike.charts.map_charts import layer_map, system_map, word_map
from thinkalike.charts.pair import contribution_bars, importance_scatter
from thinkalike.charts.profile_charts import importance_profile, score_profile
from thinkalike.charts.range_charts import ranges
from thinkalike.charts.subject_charts import scores_of_models
from thinkalike.charts.theme import DARK, LIGHT, Theme, themed

FEATURES = ("part of speech", "tense", "number")
SYSTEMS = (("one", ("0", "1")), ("two", ("V1", "V2", "IT")))


def profile_data() -> pd.DataFrame:
    rows = [
        {
            "place": k,
            "layer": f"L{k}",
            "feature": f,
            "importance": 0.1 * j,
            "low": 0.1 * j - 0.01,
            "high": 0.1 * j + 0.01,
            "strength": 0.3 * j,
            "matters": j == 2,
            "named": j == 2 and k == 1,
            "above": True,
            "align": "left",
        }
        for k in range(3)
        for j, f in enumerate(FEATURES)
    ]
    return pd.DataFrame(rows)


def cells() -> pd.DataFrame:
    i, j = (part.ravel() for part in np.indices((5, 5)))
    return pd.DataFrame({"i": i, "j": j, "value": np.cos(i - j), "a": i.astype(str), "b": j.astype(str)})


def pair_data() -> pd.DataFrame:
    matters = [True, False, True]
    return pd.DataFrame(
        {"feature": FEATURES, "a": [0.3, 0.01, 0.02], "b": [0.2, 0.012, 0.0], "matters": matters}
    )


def bar_data() -> pd.DataFrame:
    names, parts = [*FEATURES, "weighted τ"], [0.4, -0.1, 0.2, 0.5]
    return pd.DataFrame({"feature": names, "contribution": parts, "matters": [True, False, True, True]})


def word_data(values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {"x": [0.0, 0.5, -1.0], "y": [1.0, 0.0, 0.2], "word": ["a", "b", "c"], "context": "", "value": values}
    )


def layer_data() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "system": ["one", "one", "two"],
            "layer": ["0", "1", "V1"],
            "place": [0, 1, 0],
            "x": [0.0, 0.5, -1.0],
            "y": [1.0, 0.0, 0.2],
            "end": [True, True, True],
        }
    )


def block_data() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "pair": "one × two",
            "kind": [OBSERVED, UNTRAINED],
            "value": [0.7, 0.2],
            "note": "q = 0.01",
            "low": [0.6, np.nan],
            "high": [0.8, np.nan],
        }
    )


Maker = Callable[[Theme], alt.Chart | alt.LayerChart]
CHARTS: dict[str, tuple[Maker, Callable[[], pd.DataFrame], str]] = {
    "importance": (
        lambda t: importance_profile(
            profile_data(), layers=["L0", "L1", "L2"], features=FEATURES, domain=(-0.1, 0.4), theme=t
        ),
        profile_data,
        "importance",
    ),
    "score": (
        lambda t: score_profile(score_data(), layers=["L0", "L1"], theme=t),
        lambda: score_data(),
        "score",
    ),
    "matrix": (
        lambda t: similarity_matrix(
            cells(), systems=SYSTEMS, domain=(-1, 1), label="τ_w", diverging=True, selectable=True, theme=t
        ),
        cells,
        "value",
    ),
    "correlations": (
        lambda t: feature_correlations(correlation_data(), features=FEATURES, theme=t),
        lambda: correlation_data(),
        "correlation",
    ),
    "scatter": (
        lambda t: importance_scatter(
            pair_data(), names=("one:0", "two:V1"), features=FEATURES, domain=(0, 0.4), theme=t
        ),
        pair_data,
        "b",
    ),
    "bars": (
        lambda t: contribution_bars(bar_data(), features=FEATURES, domain=(-1, 1), theme=t),
        bar_data,
        "contribution",
    ),
    "words": (
        lambda t: word_map(word_data(["x", "y", None]), feature="tense", levels=["x", "y"], theme=t),
        lambda: word_data(["x", "y", None]),
        "x",
    ),
    "words, ordered": (
        lambda t: word_map(
            word_data(["x", "y", "z"]), feature="f", levels=["x", "y", "z"], ordered=True, theme=t
        ),
        lambda: word_data(["x", "y", "z"]),
        "y",
    ),
    "words, numeric": (
        lambda t: word_map(word_data([1.0, 2.0, 3.0]), feature="length", levels=None, theme=t),
        lambda: word_data([1.0, 2.0, 3.0]),
        "value",
    ),
    "layers": (
        lambda t: layer_map(layer_data(), systems=["one", "two"], extent=1.2, theme=t),
        layer_data,
        "x",
    ),
    "systems": (
        lambda t: system_map(layer_data().iloc[[0, 2]], systems=["one", "two"], extent=1.2, theme=t),
        lambda: layer_data().iloc[[0, 2]],
        "x",
    ),
    "blocks": (
        lambda t: system_pairs(block_data(), pairs=["one × two"], domain=(0, 1), controls=True, theme=t),
        block_data,
        "value",
    ),
}


def score_data() -> pd.DataFrame:
    return pd.DataFrame(
        {"place": [0, 1], "layer": ["L0", "L1"], "score": [0.5, 0.6], "low": 0.4, "high": 0.7, "ceiling": 0.9}
    )


def correlation_data() -> pd.DataFrame:
    return pd.DataFrame({"a": ["tense", "number"], "b": ["number", "tense"], "correlation": [-0.3, 0.9]})


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", CHARTS)
def test_chart_is_valid_and_shows_the_values_it_was_given(name: str, theme: Theme) -> None:
    make, data, column = CHARTS[name]
    spec = themed(make(theme), theme).to_dict(validate=True)
    shown = [[row.get(column) for row in rows] for rows in spec["datasets"].values()]
    assert list(data()[column]) in shown


@pytest.mark.parametrize("name", CHARTS)
def test_chart_is_drawn(name: str) -> None:
    make, *_ = CHARTS[name]
    svg = vl_convert.vegalite_to_svg(themed(make(LIGHT)).to_dict())
    assert "NaN" not in svg
    assert svg.count("<path") > 3


def test_the_same_feature_has_the_same_colour_in_every_chart() -> None:
    def scale(chart: alt.LayerChart) -> dict[str, str]:
        found = next(colors for colors in _color_scales(chart.to_dict()) if FEATURES[0] in colors["domain"])
        return dict(zip(found["domain"], found["range"], strict=True))

    charts = [CHARTS[name][0](LIGHT) for name in ("importance", "scatter", "bars")]
    for feature, color in zip(FEATURES, LIGHT.features, strict=False):
        assert {scale(chart)[feature] for chart in charts} == {color}


def test_the_diverging_ramp_only_where_asked() -> None:
    def ramp(diverging: bool) -> list[str]:
        chart = similarity_matrix(cells(), systems=SYSTEMS, domain=(0, 1), label="", diverging=diverging)
        return next(_color_scales(chart.to_dict()))["range"]

    assert ramp(True) == list(LIGHT.diverging)
    assert ramp(False) == list(LIGHT.sequential)


def test_matrix_names_systems_and_layers() -> None:
    svg = drawn(similarity_matrix(cells(), systems=SYSTEMS, domain=(-1, 1), label="τ_w", diverging=True))
    for text in ("one", "two", "V1", "IT"):
        assert text in texts(svg)


def test_what_is_near_is_blue_also_where_values_are_distances() -> None:
    shape = {"systems": SYSTEMS, "domain": (0, 1), "label": "distance", "diverging": False}
    ramps = [
        similarity_matrix(cells(), **shape, distance=d).to_dict()["layer"][0]["encoding"]["color"]["scale"]
        for d in (False, True)
    ]
    assert ramps[0]["range"] == list(LIGHT.sequential) == ramps[1]["range"][::-1]


def test_matrix_leaves_out_layer_labels_that_would_crowd() -> None:
    chart = similarity_matrix(cells(), systems=SYSTEMS, domain=(-1, 1), label="τ_w", diverging=True, every=2)
    assert "V1" in texts(drawn(chart))
    assert "V2" not in texts(drawn(chart))


@pytest.mark.parametrize(
    ("every", "n", "told"), [(1, 3, [0, 1, 2]), (2, 7, [0, 2, 4, 6]), (5, 13, [0, 5, 12])]
)
def test_the_last_layer_of_a_matrix_has_its_tick(every: int, n: int, told: list[int]) -> None:
    names = [f"L{k}" for k in range(n)]
    data = pd.DataFrame({"i": [0], "j": [0], "value": [1.0], "a": "", "b": ""})
    chart = similarity_matrix(
        data, systems=[("one", names)], domain=(-1, 1), label="τ", diverging=True, every=every
    )
    shown = [text for text in texts(drawn(chart)) if text in names]
    assert sorted(set(shown), key=names.index) == [names[k] for k in told]


def test_what_does_not_matter_is_grey_and_what_does_is_named() -> None:
    svg = drawn(
        importance_profile(
            profile_data(), layers=["L0", "L1", "L2"], features=FEATURES, domain=(-0.1, 0.4), legend=False
        )
    )
    assert [text for text in texts(svg) if text in FEATURES] == [FEATURES[2]]
    assert LIGHT.features[2] in svg
    assert LIGHT.features[0] not in svg
    assert LIGHT.muted in svg
    bars = drawn(contribution_bars(bar_data(), features=FEATURES, domain=(-1, 1)))
    assert LIGHT.features[0] in bars
    assert LIGHT.features[1] not in bars


def test_contributions_stand_from_the_largest_to_the_smallest_with_their_sum_last() -> None:
    svg = drawn(contribution_bars(bar_data(), features=FEATURES, domain=(-1, 1)))
    shown = [text for text in texts(svg) if text in (*FEATURES, "weighted τ")]
    assert shown == ["part of speech", "number", "tense", "weighted τ"]


def test_parts_that_are_not_known_have_no_bar_and_no_number() -> None:
    data = pd.DataFrame({"feature": ["tense", "weighted τ"], "contribution": [None, 1.0]})
    shown = texts(drawn(contribution_bars(data, features=["tense"], domain=(-0.1, 1.02))))
    assert "+1.00" in shown
    assert "null" not in shown
    assert "tense" not in shown


def test_the_number_of_a_long_bar_stands_within_it() -> None:
    data = pd.DataFrame({"feature": ["tense", "weighted τ"], "contribution": [0.2, 1.0]})
    svg = drawn(contribution_bars(data, features=["tense"], domain=(-0.1, 1.02)))
    anchors = dict(re.findall(r'text-anchor="(start|end)"[^>]*>(\+\d\.\d\d)<', svg))
    assert anchors == {"start": "+0.20", "end": "+1.00"}


def test_a_part_that_rounds_to_0_has_no_sign() -> None:
    data = pd.DataFrame(
        {"feature": [*FEATURES, "weighted τ"], "contribution": [-0.004, 0.004, -0.006, -0.01]}
    )
    shown = texts(drawn(contribution_bars(data, features=FEATURES, domain=(-0.1, 1.02))))
    assert [text for text in shown if re.fullmatch(r"[+−]?0\.\d\d", text)] == [
        "0.00",
        "0.00",
        "−0.01",
        "−0.01",
    ]


def test_a_line_at_0_crosses_every_range() -> None:
    data = pd.DataFrame({"name": ["a", "b"], "value": [0.1, 0.4], "low": [0.0, 0.3], "high": [0.2, 0.5]})
    chart = ranges(data, label="importance").to_dict()
    assert all(all(one.values()) for one in (layer["encoding"] for layer in chart["layer"]))  # none is empty
    assert "0.0" in texts(drawn(ranges(data, label="importance")))


def test_few_models_stand_apart_and_their_names_are_whole() -> None:
    names = ["sees categories:sees categories", "sees colours:sees colours"]
    data = pd.DataFrame({"model": names, "score": [0.4, 0.0], "low": [0.3, -0.1], "high": [0.5, 0.1]})
    data = data.assign(chance=0.0, ceiling_lower=0.5, ceiling_upper=0.6, q_both=0.1)
    chart = scores_of_models(data, subjects=data[["model", "score"]], models=names, label="rsa")
    assert set(names) <= set(texts(drawn(chart)))
    assert chart.to_dict()["width"] == 160


@pytest.mark.parametrize("seed", range(4))
def test_no_two_labels_of_the_scatter_overlap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"feature {k}" for k in range(8)]
    values = rng.normal(0.01, 0.01, (8, 2))
    values[0] = 0.4, 0.38
    data = pd.DataFrame({"feature": names, "a": values[:, 0], "b": values[:, 1], "matters": True})
    chart = importance_scatter(data, names=("a", "b"), features=names, domain=(-0.03, 0.45))
    labels = [t for t in marks(vl_convert.vegalite_to_scenegraph(chart.to_dict())) if t.get("text") in names]
    assert len(labels) == 8
    for side in ("left", "right"):
        heights = sorted(label["y"] for label in labels if label["align"] == side)
        assert min(np.diff(heights), default=99.0) > 10  # the letters are 11 pixels high


def test_what_matters_in_neither_layer_is_grey_and_has_no_name_in_the_scatter() -> None:
    chart = importance_scatter(pair_data(), names=("a", "b"), features=FEATURES, domain=(0, 0.4))
    svg = drawn(chart)
    assert {FEATURES[0], FEATURES[2]} == set(FEATURES) & set(texts(svg))
    points = re.findall(r'aria-roledescription="point"[^>]*fill="([^"]*)"', svg)
    assert points.count(LIGHT.muted) == 1
    assert len(set(points)) == 3


def test_untrained_copies_are_in_the_legend_only_where_they_exist() -> None:
    without = block_data()[lambda d: d["kind"] != UNTRAINED]
    assert UNTRAINED in texts(
        drawn(system_pairs(block_data(), pairs=["one × two"], domain=(0, 1), controls=True))
    )
    assert UNTRAINED not in texts(drawn(system_pairs(without, pairs=["one × two"], domain=(0, 1))))


def drawn(chart: alt.Chart | alt.LayerChart) -> str:
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def texts(svg: str) -> list[str]:
    return [text.replace("&amp;", "&") for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def marks(scene: Any) -> Iterator[dict[str, Any]]:
    """All drawn items of a scenegraph."""
    if isinstance(scene, dict):
        if "text" in scene:
            yield scene
        for value in scene.values():
            yield from marks(value)
    elif isinstance(scene, list):
        for value in scene:
            yield from marks(value)


def _color_scales(spec: Any) -> Iterator[dict[str, Any]]:
    if isinstance(spec, dict):
        color = spec.get("color") if isinstance(spec.get("color"), dict) else {}
        scale = color.get("scale", color.get("condition", {}).get("scale"))
        if isinstance(scale, dict) and isinstance(scale.get("range"), list):
            yield scale
        for value in spec.values():
            yield from _color_scales(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from _color_scales(value)


@pytest.mark.parametrize("name", ["one", "a name that is longer than its few layers have room for"])
def test_names_of_systems_are_drawn_whole(name: str) -> None:
    systems = ((name, ("0", "1")), ("two", ("V1", "V2", "IT")))
    chart = similarity_matrix(cells(), systems=systems, domain=(-1, 1), label="τ_w", diverging=True)
    drawn = vl_convert.vegalite_to_svg(themed(chart).to_dict())
    assert drawn.count(f">{name}<") == 2  # above and beside, nothing cut
