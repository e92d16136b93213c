"""The colours: told apart with colour blindness, visible on their surface, ramps that run one way."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
import pytest

from thinkalike.charts.theme import (
    DARK,
    LIGHT,
    SHAPES,
    Theme,
    config,
    counterparts,
    get_theme,
    shapes,
    themed,
)
from thinkalike.errors import UnknownName

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
FAMILIES = pytest.mark.parametrize("family", ["features", "systems", "levels"])

# How the cones see colours: none missing, then Machado et al. 2009 for the whole loss of one kind.
SIGHT = {
    "full": np.eye(3),
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
OKABE_ITO = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")


def linear(color: str) -> np.ndarray:
    """sRGB → linear light."""
    values = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def oklab(light: np.ndarray) -> np.ndarray:
    """Linear light → OKLab (Ottosson 2020), where distance is about as far as people see it."""
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    opponents = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.cbrt(np.clip(light, 0, 1) @ cones.T) @ opponents.T


def nearest(colors: tuple[str, ...], sight: str) -> float:
    """The smallest distance between two colours of a palette, as someone with this sight sees them."""
    seen = oklab(np.clip(np.array([linear(c) for c in colors]) @ np.array(SIGHT[sight]).T, 0, 1))
    distances = np.linalg.norm(seen[:, None] - seen[None], axis=2)
    return float(distances[np.triu_indices(len(colors), k=1)].min())


def contrast(a: str, b: str) -> float:
    """WCAG contrast ratio."""
    first, second = sorted((float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b)), reverse=True)
    return (first + 0.05) / (second + 0.05)


@THEMES
@FAMILIES
@pytest.mark.parametrize("sight", SIGHT)
def test_colours_are_told_apart_as_well_as_those_of_okabe_and_ito(
    theme: Theme, family: str, sight: str
) -> None:
    worst = min(nearest(OKABE_ITO, sight) for sight in SIGHT)
    assert nearest(getattr(theme, family), sight) >= worst


@THEMES
@FAMILIES
def test_colours_stand_out_from_the_surface(theme: Theme, family: str) -> None:
    assert min(contrast(color, theme.surface) for color in getattr(theme, family)) >= 3.0


@THEMES
def test_text_is_readable(theme: Theme) -> None:
    assert contrast(theme.ink, theme.surface) >= 7.0
    assert contrast(theme.muted, theme.surface) >= 4.5
    assert contrast(theme.accent, theme.surface) >= 4.5


@THEMES
def test_no_two_meanings_share_a_colour(theme: Theme) -> None:
    colors = [*theme.features, *theme.systems, *theme.levels]
    assert len(set(colors)) == len(colors)


@THEMES
def test_ramps_run_one_way_in_lightness(theme: Theme) -> None:
    for ramp in (theme.sequential, theme.negative):
        steps = np.diff([oklab(linear(color))[0] for color in ramp])
        assert (steps > 0).all() or (steps < 0).all()


@THEMES
def test_the_middle_of_the_diverging_ramp_is_nearest_the_surface(theme: Theme) -> None:
    away = [contrast(color, theme.surface) for color in theme.diverging]
    assert int(np.argmin(away)) == len(theme.negative)
    assert theme.diverging[len(theme.negative) :] == theme.sequential


@THEMES
@pytest.mark.parametrize("sight", SIGHT)
def test_the_two_ends_of_the_diverging_ramp_are_told_apart(theme: Theme, sight: str) -> None:
    assert nearest((theme.diverging[1], theme.diverging[-2]), sight) > 0.08


def test_features_past_the_palette_are_grey() -> None:
    colors = LIGHT.feature_colors(10)
    assert colors[:8] == list(LIGHT.features)
    assert colors[8:] == [LIGHT.muted] * 2
    assert LIGHT.feature_colors(3) == list(LIGHT.features[:3])


def test_systems_past_the_palette_begin_again() -> None:
    assert len(SHAPES) == len(LIGHT.systems)
    assert LIGHT.system_colors(7)[6] == LIGHT.systems[0]


def test_no_two_systems_share_colour_and_shape() -> None:
    signs = list(zip(LIGHT.system_colors(36), shapes(36), strict=True))
    assert len(set(signs)) == 36
    assert tuple(shapes(6)) == SHAPES


def test_levels_past_the_palette_are_grey() -> None:
    assert LIGHT.level_colors(9)[8] == LIGHT.muted


def test_every_colour_has_its_counterpart_in_the_other_theme() -> None:
    dark = counterparts(LIGHT, DARK)
    assert dark[LIGHT.accent] == DARK.accent
    assert [dark[colour] for colour in LIGHT.diverging] == list(DARK.diverging)
    assert counterparts(DARK, LIGHT) == {theirs: ours for ours, theirs in dark.items()}


def test_an_unknown_theme_is_named() -> None:
    with pytest.raises(
        UnknownName, match=r"There is no theme 'drak'. Did you mean 'dark'\? Known: light, dark"
    ):
        get_theme("drak")


@THEMES
def test_a_themed_chart_carries_the_config_and_is_valid(theme: Theme) -> None:
    chart = alt.Chart(pd.DataFrame({"x": [1.0]})).mark_point().encode(x="x:Q")
    spec = themed(chart, theme).to_dict()
    assert spec["config"]["background"] == theme.surface
    assert spec["config"]["axis"]["titleColor"] == theme.ink
    assert spec["config"]["aria"] is False
    assert set(config(theme)) <= set(spec["config"])
