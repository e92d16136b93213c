"""A comparison as the tables that its charts draw: plain columns, people's names for features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from thinkalike.charts.blocks import CHANCE, OBSERVED, UNTRAINED
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.inference import BlockTest
from thinkalike.comparison.maps import LayerMap
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.rows import Floats, row_name
from thinkalike.comparison.similarity import FEATURES, SimilarityMatrix, stacked_importance
from thinkalike.comparison.words import p_text, readable

TOTAL = "τ_w"
"""The bar that stands for the sum of the contributions"""


@dataclass(frozen=True)
class Item:
    """How the mapped items are coloured by one feature."""

    feature: str
    levels: tuple[str, ...] | None
    """None for a numeric feature"""
    ordered: bool
    values: tuple[str | float | None, ...] = field(repr=False)


def feature_order(comparison: Comparison) -> list[str]:
    """All features, the most important over all layers first: this order gives each its colour."""
    profiles = list(comparison.profiles.values())
    names = list(profiles[0].features)
    importance = np.concatenate([p.mean_importance for p in profiles])
    known = np.isfinite(importance)
    mean = np.where(known, importance, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    mean[~known.any(axis=0)] = -np.inf
    return [names[k] for k in np.argsort(-mean, kind="stable")]


def layer_labels(profile: Profile) -> list[str]:
    return [str(layer) for layer in profile.layers]


def system_layers(comparison: Comparison) -> list[tuple[str, list[str]]]:
    return [(name, layer_labels(profile)) for name, profile in comparison.profiles.items()]


def profile_frame(profile: Profile) -> pd.DataFrame:
    """Importance with the standard deviation over folds as its band."""
    n_layers, n_features = len(profile.layers), len(profile.features)
    mean, spread = profile.mean_importance.ravel(), np.nan_to_num(profile.spread.ravel())
    frame = pd.DataFrame(
        {
            "place": np.repeat(np.arange(n_layers), n_features),
            "layer": np.repeat(layer_labels(profile), n_features),
            "feature": [readable(name) for name in profile.features] * n_layers,
            "importance": mean,
            "low": mean - spread,
            "high": mean + spread,
        }
    )
    return frame.dropna(subset="importance", ignore_index=True)


def score_frame(profile: Profile) -> pd.DataFrame:
    """ρ with its bootstrap interval, or its spread over folds; and the ceiling where it is known."""
    table = profile.layer_frame()
    if "score_low" in table:
        low, high = table["score_low"], table["score_high"]
    else:
        spread = table["score_spread"].fillna(0.0)
        low, high = table["score"] - spread, table["score"] + spread
    frame = pd.DataFrame(
        {
            "place": np.arange(len(table)),
            "layer": layer_labels(profile),
            "score": table["score"],
            "low": low,
            "high": high,
        }
    )
    if "ceiling" in table:
        frame["ceiling"] = table["ceiling"]
    return frame


def importance_domain(comparison: Comparison) -> tuple[float, float]:
    """One axis of importance for all systems and all pairs, with a little room."""
    frames = [profile_frame(profile) for profile in comparison.profiles.values()]
    low = min(0.0, *(frame["low"].min() for frame in frames))
    high = max(0.05, *(frame["high"].max() for frame in frames))
    room = 0.04 * (high - low)
    return float(low - room), float(high + room)


def score_floor(comparison: Comparison) -> float:
    """Where the axis of ρ begins: 0, or below the lowest interval."""
    lowest = min(score_frame(profile)["low"].min() for profile in comparison.profiles.values())
    return float(min(0.0, np.floor(lowest * 10) / 10))


def cell_frame(matrix: SimilarityMatrix) -> pd.DataFrame:
    """One row per cell, by place."""
    n = len(matrix.rows)
    names = [row_name(row) for row in matrix.rows]
    return pd.DataFrame(
        {
            "i": np.repeat(np.arange(n), n),
            "j": np.tile(np.arange(n), n),
            "value": matrix.values.ravel(),
            "a": np.repeat(names, n),
            "b": np.tile(names, n),
        }
    )


def value_domain(matrix: SimilarityMatrix) -> tuple[float, float]:
    """−1 … 1 or 0 … 1 for similarities; 0 … largest for distances."""
    if matrix.kind == "distance":
        return 0.0, float(np.nanmax(matrix.values))
    return (-1.0, 1.0) if is_diverging(matrix) else (0.0, 1.0)


def is_diverging(matrix: SimilarityMatrix) -> bool:
    """Whether 0 should be the middle of the colours: always for τ_w, and where values go clearly below 0."""
    return matrix.kind == "similarity" and (
        matrix.measure == FEATURES or float(np.nanmin(matrix.values)) < -0.1
    )


def blocks_between(comparison: Comparison) -> list[BlockTest]:
    """The tests between different systems, the most alike first."""
    between = [block for block in comparison.matrices[FEATURES].blocks if block.a != block.b]
    return sorted(between, key=lambda block: -block.mean)


def pair_label(block: BlockTest) -> str:
    return f"{block.a} × {block.b}"


def block_frame(blocks: Sequence[BlockTest]) -> pd.DataFrame:
    rows = []
    for block in blocks:
        note = f"{p_text(block.p_mean)}, {p_text(block.q).replace('p', 'q', 1)}"
        for kind, value in ((OBSERVED, block.mean), (UNTRAINED, block.control), (CHANCE, block.null_95)):
            if np.isfinite(value):
                rows.append({"pair": pair_label(block), "kind": kind, "value": value, "note": note})
    return pd.DataFrame(rows, columns=["pair", "kind", "value", "note"])


def block_domain(blocks: Sequence[BlockTest]) -> tuple[float, float]:
    values = [value for b in blocks for value in (b.mean, b.control, b.null_95) if np.isfinite(value)]
    return float(min(-0.1, np.floor(min(values) * 10) / 10)), 1.0


def layer_map_frame(layer_map: LayerMap) -> pd.DataFrame:
    """Coordinates around 0; the first and the last layer of each system are written beside their points."""
    frame = layer_map.to_frame()
    place = frame.groupby("system", sort=False).cumcount()
    last = frame.groupby("system", sort=False)["system"].transform("size") - 1
    centred = centre(layer_map.coordinates)
    return pd.DataFrame(
        {
            "system": frame["system"],
            "layer": frame["layer"].astype(str),
            "place": place,
            "x": centred[:, 0],
            "y": centred[:, 1],
            "end": (place == 0) | (place == last),
        }
    )


def system_map_frame(comparison: Comparison) -> pd.DataFrame:
    centred = centre(comparison.trajectories.coordinates)
    return pd.DataFrame(
        {"system": list(comparison.trajectories.systems), "x": centred[:, 0], "y": centred[:, 1]}
    )


def centre(coordinates: Floats) -> Floats:
    """Moved so that the middle of the range is 0 on both axes."""
    middle = (coordinates.min(axis=0) + coordinates.max(axis=0)) / 2
    return coordinates - middle


def map_extent(frame: pd.DataFrame) -> float:
    """Half the side of a square that holds the map, with room for labels."""
    return float(max(frame["x"].abs().max(), frame["y"].abs().max(), 1e-9) * 1.15)


def correlation_frame(comparison: Comparison, order: Sequence[str]) -> pd.DataFrame:
    """The lower triangle, in the order of `order`."""
    names = [name for name in order if name in comparison.correlations]
    rows = [
        {
            "a": readable(a),
            "b": readable(b),
            "correlation": float(comparison.correlations.loc[a, b]),  # type: ignore[arg-type]
        }
        for i, a in enumerate(names)
        for b in names[:i]
    ]
    return pd.DataFrame(rows, columns=["a", "b", "correlation"]).dropna(ignore_index=True)


def word_points(comparison: Comparison) -> Floats:
    """(n_rows, n_items, 2) each layer's map scaled to −1 … 1; only distances within a map mean anything."""
    assert comparison.word_maps is not None
    centred = np.stack([centre(layer) for layer in comparison.word_maps.coordinates])
    largest = np.abs(centred).max(axis=(1, 2), keepdims=True)
    return centred / np.where(largest > 0, largest, 1.0) * 0.97


def item_labels(comparison: Comparison) -> tuple[list[str], list[str]]:
    """The word and the sentence of each mapped item; the id where items are not words."""
    assert comparison.word_maps is not None
    ids = list(comparison.word_maps.items)
    items = comparison.stimuli.items
    if "word" not in items:
        return ids, [""] * len(ids)
    chosen = items.loc[ids]
    return list(chosen["word"]), list(comparison.stimuli.sentences.loc[chosen["sentence"]])


def item_colours(comparison: Comparison, order: Sequence[str]) -> list[Item]:
    """For each feature the value of every mapped item."""
    assert comparison.word_maps is not None
    table = comparison.stimuli.features.loc[list(comparison.word_maps.items)]
    kinds: Mapping[str, str] = comparison.stimuli.kinds
    items = []
    for name in order:
        column = table[name]
        if kinds[name] == "numeric":
            values = tuple(None if pd.isna(v) else round(float(v), 4) for v in column)
            items.append(Item(name, None, True, values))
        else:
            levels = tuple(str(level) for level in column.cat.categories)
            texts = tuple(None if pd.isna(v) else str(v) for v in column)
            items.append(Item(name, levels, kinds[name] == "ordinal", texts))
    return items


def scatter_frame(comparison: Comparison, i: int, j: int) -> pd.DataFrame:
    importance = row_importance(comparison)
    names = [readable(name) for name in comparison.features]
    return pd.DataFrame({"feature": names, "a": importance[i], "b": importance[j]})


def bar_frame(comparison: Comparison, i: int, j: int) -> pd.DataFrame:
    parts = comparison.contributions[i, j]
    names = [readable(name) for name in comparison.features]
    return pd.DataFrame({"feature": [*names, TOTAL], "contribution": [*parts, parts.sum()]})


def word_frame(comparison: Comparison, row: int, item: Item) -> pd.DataFrame:
    words, contexts = item_labels(comparison)
    points = word_points(comparison)[row]
    frame = pd.DataFrame({"x": points[:, 0], "y": points[:, 1], "word": words, "context": contexts})
    return frame.assign(value=pd.Series(item.values, dtype=object))


def row_importance(comparison: Comparison) -> Floats:
    """(n_rows, n_features) over the features of the comparison."""
    return stacked_importance(list(comparison.profiles.values()), comparison.features)


def scatter_domain(comparison: Comparison) -> tuple[float, float]:
    """One axis of importance for every pair."""
    importance = row_importance(comparison)
    low, high = min(0.0, float(np.nanmin(importance))), max(0.05, float(np.nanmax(importance)))
    return low - 0.002 * (high - low), high + 0.12 * (high - low)


def contribution_domain(comparison: Comparison) -> tuple[float, float]:
    """One axis for the bars of every pair, which holds τ_w too."""
    parts = comparison.contributions
    low = min(-0.1, float(np.nanmin(parts)), float(np.nanmin(parts.sum(axis=2))))
    return low - 0.15, 1.3
