"""Charts of stitching: valid by the schema, with every series and cell in them."""

from __future__ import annotations

import altair as alt
import pandas as pd
import pytest
import vl_convert

from thinkalike.charts.stitching import FLOOR, learning_curves, penalty_lines, penalty_matrix
from thinkalike.charts.theme import THEMES, themed

LINES = pd.DataFrame(
    [
        {"layer": layer, "series": name, "value": layer / 4 + k, "low": layer / 5 + k, "high": layer / 3 + k}
        for k, name in enumerate(["a → b", "b → a", FLOOR])
        for layer in range(4)
    ]
)


@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
@pytest.mark.parametrize("relative", [False, True])
def test_lines(theme, relative):
    data = LINES.assign(layer=LINES["layer"] / 3) if relative else LINES
    series = list(dict.fromkeys(data["series"]))
    chart = penalty_lines(data, series=series, quiet=[FLOOR], label="penalty", relative=relative, theme=theme)
    spec = themed(chart, theme).to_dict()
    color = spec["layer"][1]["encoding"]["color"]["scale"]
    assert color["domain"] == series
    assert color["range"][2] == theme.muted
    assert len(set(color["range"])) == 3


def test_shapes_in_the_legend_are_whole():
    series = list(dict.fromkeys(LINES["series"]))
    chart = penalty_lines(LINES, series=series, quiet=[FLOOR], label="penalty")
    (legend,) = vl_convert.vegalite_to_vega(chart.to_dict())["legends"]
    assert "strokeDash" not in legend  # it would cut pieces out of their outlines
    assert (
        vl_convert.vegalite_to_svg(chart.to_dict()).count('stroke-dasharray="5,3"') == 1
    )  # the line of the floor


@pytest.mark.parametrize(
    ("options", "first"), [({}, -1), ({"low_is_alike": False}, 0), ({"diverging": True}, None)]
)
def test_matrix(options, first):
    theme = THEMES["light"]
    data = pd.DataFrame({"i": ["0", "0", "1"], "j": ["0", "1", "1"], "value": [0.1, 0.2, 0.9]})
    chart = penalty_matrix(
        data, names=("a", "b"), rows=["0", "1"], columns=["0", "1"], domain=(0, 1), label="penalty", **options
    )
    spec = chart.to_dict()
    ramp = spec["layer"][0]["encoding"]["color"]["scale"]["range"]
    if first is not None:
        assert ramp[0] == theme.sequential[first]
    else:
        assert ramp == list(theme.diverging)
    assert len(spec["layer"]) == 2  # so few cells have room for their numbers
    alt.Chart.from_dict(spec)
    many = [str(k) for k in range(30)]
    assert (
        len(penalty_matrix(data, names=("a", "b"), rows=many, columns=many, domain=(0, 1), label="").layer)
        == 1
    )


def test_curves():
    """The keys of the colours are full, though the lines of the fit are faint."""
    data = pd.DataFrame(
        {
            "step": [0, 100, 100],
            "split": ["validation", "train", "validation"],
            "loss": [2, 1.5, 1.4],
            "series": "1 → 1",
        }
    )
    spec = learning_curves(data, series=["1 → 1"]).to_dict()
    assert spec["layer"][0]["encoding"]["color"]["legend"] == {"symbolOpacity": 1}
    assert [layer["transform"][0]["filter"] for layer in spec["layer"]] == [
        "datum.split === 'train'",
        "datum.split === 'validation'",
    ]
