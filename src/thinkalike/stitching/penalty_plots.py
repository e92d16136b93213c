"""The figures of stitching results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from thinkalike.charts.stitching import CEILING, FLOOR, learning_curves, penalty_lines, penalty_matrix
from thinkalike.charts.theme import get_theme, themed
from thinkalike.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    import altair as alt

    from thinkalike.stitching.result import StitchResult

LABELS = {
    "penalty": "penalty (nats per prediction)",
    "accuracy_drop": "accuracy drop",
    "loss": "stitched loss (nats)",
    "accuracy": "accuracy",
}
BOUNDS = {"penalty": ("low", "high"), "accuracy_drop": ("drop_low", "drop_high")}


def plot_result(result: StitchResult, value: str, *, theme: str = "light") -> alt.TopLevelMixin:
    """Lines over layers for one stitch per layer; the matrix for more."""
    _check(value)
    if is_grid(result):
        return themed(_matrix(result, value, theme), get_theme(theme))
    frame = line_frame(result, value)
    chart = penalty_lines(
        frame,
        series=list(dict.fromkeys(frame["series"])),
        quiet=[name for name in (FLOOR, CEILING) if name in set(frame["series"])],
        label=LABELS[value],
        x=f"layer of {result.bottom}",
        title=f"{result.bottom} → {result.top}: {result.kind}, {result.fit}",
        theme=get_theme(theme),
    )
    return themed(chart, get_theme(theme))


def plot_results(
    results: Sequence[StitchResult],
    value: str = "penalty",
    *,
    baselines: bool = True,
    relative: bool = False,
    theme: str = "light",
) -> alt.TopLevelMixin:
    """Several results in one chart: Figure 1 of Brown et al. 2023, and with `relative` depths their Figure 2.

    The floors of all tops are drawn too, as the paper does, unless `baselines` is False.
    """
    _check(value)
    if not results:
        raise InvalidInput("There are no results to draw: give at least one.")
    parts: list[pd.DataFrame] = []
    floors: dict[str, pd.DataFrame] = {}
    for result in results:
        frame = line_frame(result, value, relative=relative)
        parts.append(frame[frame["series"] == pair_name(result)])
        floor = frame[frame["series"] == FLOOR]
        if baselines and len(floor):
            name = f"{result.top} → {result.top}"
            floors.setdefault(name, floor.assign(series=name))
    data = pd.concat([*parts, *floors.values()], ignore_index=True)
    chart = penalty_lines(
        data,
        series=list(dict.fromkeys(data["series"])),
        quiet=list(floors),
        label=LABELS[value],
        x="share of the bottom's layers" if relative else "layer of the bottom",
        relative=relative,
        theme=get_theme(theme),
    )
    return themed(chart, get_theme(theme))


def plot_curves(result: StitchResult, *, theme: str = "light") -> alt.TopLevelMixin:
    """Validation and training loss of the pairs over the steps of the fit."""
    curves = result.curves[result.curves["role"] == "pair"]
    if curves.empty:
        raise InvalidInput(f"φ was fitted by {result.fit}, which has no learning curve: use fit='task'.")
    names = [f"{a} → {b}" for a, b in zip(curves["layer_bottom"], curves["layer_top"], strict=True)]
    chart = learning_curves(
        curves.assign(series=names),
        series=list(dict.fromkeys(names)),
        title=f"{result.bottom} → {result.top}",
        theme=get_theme(theme),
    )
    return themed(chart, get_theme(theme))


def is_grid(result: StitchResult) -> bool:
    """Whether a layer of the bottom was stitched to several of the top."""
    layers = [stitch.layer_bottom for stitch in result.stitches if stitch.role == "pair"]
    return len(set(layers)) < len(layers)


def pair_name(result: StitchResult) -> str:
    return f"{result.bottom} → {result.top}"


def line_frame(
    result: StitchResult, value: str, *, relative: bool = False, rows: Sequence[int] | None = None
) -> pd.DataFrame:
    """Rows of layer (of the bottom of the pair), series, value, low and high; of all stitches, or of some."""
    frame = result.to_frame(roles=True)
    frame = frame if rows is None else frame.iloc[list(rows)]
    low, high = BOUNDS.get(value, (value, value))
    pairs = frame[frame["role"] == "pair"]
    # The floor of a pair is drawn at the layer of the bottom that it belongs to.
    floor = frame[frame["role"] == "self"].set_index("layer_top")
    series = {
        pair_name(result): pairs,
        FLOOR: floor.reindex(pairs["layer_top"])
        .reset_index()
        .assign(layer_bottom=list(pairs["layer_bottom"])),
        CEILING: frame[frame["role"] == "untrained"],
    }
    depth = result.depths[0] if relative else 1
    parts = [
        pd.DataFrame(
            {
                "layer": rows["layer_bottom"] / depth,
                "series": name,
                "value": rows[value],
                "low": rows[low],
                "high": rows[high],
            }
        )
        for name, rows in series.items()
    ]
    return pd.concat(parts, ignore_index=True).dropna(subset="value")


def _matrix(result: StitchResult, value: str, theme: str) -> alt.LayerChart:
    frame = result.to_frame()
    layers = {"i": frame["layer_bottom"].astype(str), "j": frame["layer_top"].astype(str)}
    data = pd.DataFrame({**layers, "value": frame[value]})
    low, high = float(data["value"].min()), float(data["value"].max())
    return penalty_matrix(
        data,
        names=(f"{result.bottom} (bottom)", f"{result.top} (top)"),
        rows=[str(layer) for layer in range(result.depths[0] + 1)],
        columns=[str(layer) for layer in range(result.depths[1] + 1)],
        domain=(min(low, 0.0), max(high, 0.05)),
        label=LABELS[value],
        low_is_alike=value != "accuracy",
        title=f"{result.bottom} → {result.top}: {result.kind}, {result.fit}",
        theme=get_theme(theme),
    )


def _check(value: str) -> None:
    if value not in LABELS:
        raise UnknownName.among("value to draw", value, LABELS)
