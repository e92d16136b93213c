"""Results as the tables that charts draw: plain columns, people's names for features, axes with room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.charts.profile_charts import name_places
from thinkalike.charts.theme import LIGHT
from thinkalike.comparison.explaining import MATTERS
from thinkalike.comparison.maps import LayerMap, WordMaps
from thinkalike.comparison.profiles import Profile, importance_shares
from thinkalike.comparison.robustness import Robustness
from thinkalike.comparison.similarity_matrix import FEATURES, SimilarityMatrix
from thinkalike.comparison.trajectories import TrajectoryDistances
from thinkalike.labels import Floats, Row, block_of, row_name, systems_of
from thinkalike.stimuli.table import Stimuli
from thinkalike.wording import readable

TOTAL = "weighted τ"
"""The bar that stands for the sum of the contributions"""


def colour_order(features: Sequence[str], importance: Floats) -> list[str]:
    """The order that gives features their colours.

    As in the stimuli, so that a feature has one colour in all runs on them. With more features than colours
    the most important come first, by `importance` (n_layers, n_features), and the rest are grey.
    """
    if len(features) <= len(LIGHT.features):
        return list(features)
    return by_importance(features, importance)


def by_importance(features: Sequence[str], importance: Floats) -> list[str]:
    """Features by their mean over layers, the highest first; those without any value last."""
    known = np.isfinite(importance)
    mean = np.where(known, importance, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    mean[~known.any(axis=0)] = -np.inf
    return [features[k] for k in np.argsort(-mean, kind="stable")]


def profile_table(profile: Profile) -> pd.DataFrame:
    """Importance with its range, or its spread over folds, as a band; and strength."""
    n_layers, n_features = len(profile.layers), len(profile.features)
    mean = profile.mean_importance.ravel()
    if profile.replicates is not None:
        low, high = profile.importance_range().reshape(2, -1)
    else:
        spread = np.nan_to_num(profile.spread.ravel())
        low, high = mean - spread, mean + spread
    table = pd.DataFrame(
        {
            "place": np.repeat(np.arange(n_layers), n_features),
            "layer": np.repeat(layer_labels(profile), n_features),
            "feature": [readable(name) for name in profile.features] * n_layers,
            "importance": mean,
            "low": low,
            "high": high,
            "strength": profile.mean_strengths.ravel(),
            "matters": np.tile(_matter(profile.mean_importance), n_layers),
        }
    )
    return table.dropna(subset="importance", ignore_index=True)


def with_names(table: pd.DataFrame, domain: tuple[float, float]) -> pd.DataFrame:
    """A profile table, and where on an axis of `domain` the names of its features stand."""
    return table.join(name_places(table, domain))


def _matter(importance: Floats) -> npt.NDArray[np.bool_]:
    """(n_features,) whether a feature has a notable share of the importance of some layer."""
    return np.any(importance_shares(importance) >= MATTERS, axis=0)


def important_in_one(a: Floats, b: Floats) -> npt.NDArray[np.bool_]:
    """(n_features,) whether a feature has a notable share of the importance of one of two layers."""
    return _matter(np.stack([a, b]))


def layer_labels(profile: Profile) -> list[str]:
    return [str(layer) for layer in profile.layers]


def score_table(profile: Profile) -> pd.DataFrame:
    """ρ with its range, or its spread over folds; and the ceiling where it is known."""
    layers = profile.layer_frame()
    if "score_low" in layers:
        low, high = layers["score_low"], layers["score_high"]
    else:
        spread = layers["score_spread"].fillna(0.0)
        low, high = layers["score"] - spread, layers["score"] + spread
    columns = {"layer": layer_labels(profile), "score": layers["score"], "low": low, "high": high}
    table = pd.DataFrame({"place": np.arange(len(layers)), **columns})
    return table.assign(ceiling=layers["ceiling"]) if "ceiling" in layers else table


def importance_domain(tables: Sequence[pd.DataFrame]) -> tuple[float, float]:
    """One axis of importance for all profiles, with a little room."""
    low = min(0.0, *(table["low"].min() for table in tables))
    high = max(0.05, *(table["high"].max() for table in tables))
    room = 0.04 * (high - low)
    return float(low - room), float(high + room)


def score_floor(tables: Sequence[pd.DataFrame]) -> float:
    """Where the axis of ρ begins: 0, or below the lowest interval."""
    lowest = min(table["low"].min() for table in tables)
    return float(min(0.0, np.floor(lowest * 10) / 10))


def system_layers(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Each system with the labels of its layers."""
    return [(name, [str(layer) for owner, layer in rows if owner == name]) for name in systems_of(rows)]


def cell_table(matrix: SimilarityMatrix) -> pd.DataFrame:
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
    """Whether 0 is the middle of the colours: always for τ_w, and where values go clearly below 0."""
    if matrix.kind == "distance":
        return False
    return matrix.measure == FEATURES or float(np.nanmin(matrix.values)) < -0.1


def layer_map_table(layer_map: LayerMap) -> pd.DataFrame:
    """Coordinates around 0. Named are the first and the last layer of each system, or all blocks of parts."""
    table = layer_map.to_frame()
    place = table.groupby("system", sort=False).cumcount()
    last = table.groupby("system", sort=False)["system"].transform("size") - 1
    x, y = centred(layer_map.coordinates).T
    labels = table["layer"].astype(str)
    blocks = labels.map(block_of)
    ends = (place == 0) | (place == last) | (blocks != labels)
    return pd.DataFrame(
        {"system": table["system"], "layer": labels, "block": blocks, "place": place, "x": x, "y": y}
        | {"end": ends}
    )


def system_map_table(distances: TrajectoryDistances) -> pd.DataFrame:
    x, y = centred(distances.coordinates).T
    return pd.DataFrame({"system": list(distances.systems), "x": x, "y": y})


def centred(coordinates: Floats) -> Floats:
    """Moved so that the middle of the range is 0 on both axes."""
    return coordinates - (coordinates.min(axis=0) + coordinates.max(axis=0)) / 2


def map_extent(table: pd.DataFrame) -> float:
    """Half the side of a square that holds the map, with room for labels."""
    return float(max(table["x"].abs().max(), table["y"].abs().max(), 1e-9) * 1.15)


def map_aspect(table: pd.DataFrame) -> float:
    """Height ÷ width of a map with as much room above as beside; not too flat for labels."""
    height, width = table["y"].abs().max(), table["x"].abs().max()
    return float(np.clip(height / max(width, 1e-9), 0.45, 1.0)) if height < width else 1.0


def unit_maps(coordinates: Floats) -> Floats:
    """Maps (..., n_items, 2) each scaled to −1 … 1: only distances within a map mean anything."""
    middle = (coordinates.min(axis=-2, keepdims=True) + coordinates.max(axis=-2, keepdims=True)) / 2
    moved = coordinates - middle
    largest = np.abs(moved).max(axis=(-2, -1), keepdims=True)
    return 0.97 * moved / np.where(largest > 0, largest, 1.0)


@dataclass(frozen=True)
class ItemValues:
    """What one feature is in every mapped item, for its colour."""

    feature: str
    levels: tuple[str, ...] | None
    """None for a numeric feature"""
    ordered: bool
    values: tuple[str | float | None, ...] = field(repr=False)


def item_values(words: WordMaps, stimuli: Stimuli, feature: str) -> ItemValues:
    """The values of `feature` in the mapped items; None where it is missing."""
    column = stimuli.features.loc[list(words.items), feature]
    kind = stimuli.kinds[feature]
    if kind == "numeric":
        numbers = tuple(None if pd.isna(v) else round(float(v), 4) for v in column)
        return ItemValues(feature, None, True, numbers)
    levels = tuple(str(level) for level in column.cat.categories)
    texts = tuple(None if pd.isna(v) else str(v) for v in column)
    return ItemValues(feature, levels, kind == "ordinal", texts)


def item_labels(words: WordMaps, stimuli: Stimuli) -> tuple[list[str], list[str]]:
    """The word and the sentence of each mapped item; the id where items are not words."""
    ids = list(words.items)
    if "word" not in stimuli.items:
        return ids, [""] * len(ids)
    chosen = stimuli.items.loc[ids]
    return list(chosen["word"]), list(stimuli.sentences.loc[chosen["sentence"]])


def word_table(words: WordMaps, stimuli: Stimuli, row: int, item: ItemValues) -> pd.DataFrame:
    """One layer's map with the values of one feature."""
    labels, contexts = item_labels(words, stimuli)
    x, y = unit_maps(words.coordinates[row]).T
    table = pd.DataFrame({"x": x, "y": y, "word": labels, "context": contexts})
    return table.assign(value=pd.Series(item.values, dtype=object))


def scatter_domain(scatter: pd.DataFrame) -> tuple[float, float]:
    """One axis of importance for both layers, with room for a label above the highest."""
    values = scatter[["a", "b"]].to_numpy()
    low, high = min(0.0, float(np.nanmin(values))), max(0.01, float(np.nanmax(values)))
    return low, high + 0.15 * (high - low)


_ACRONYMS = frozenset({"rsa", "cka", "cca", "svcca", "pwcca", "rbf", "gulp", "rtd", "dsa"})


def measure_name(measure: str) -> str:
    """As people write it: `rsa-cosine` → `RSA-cosine`, `procrustes` → `Procrustes`."""
    parts = (part.upper() if part in _ACRONYMS else part for part in measure.split("-"))
    return "-".join(parts).replace("procrustes", "Procrustes")


def measure_title(measure: str) -> str:
    """`By features`, `By geometry (RSA)`."""
    return "By features" if measure == FEATURES else f"By geometry ({measure_name(measure)})"


def value_label(measure: str) -> str:
    """What a value of the measure is called on an axis."""
    return {FEATURES: "weighted τ", "rsa": "ρ (RSA)"}.get(measure, measure_name(measure))


@dataclass(frozen=True, eq=False)
class SpecificationTables:
    """What `specification_curve` draws."""

    values: pd.DataFrame
    dominant: pd.DataFrame
    choices: pd.DataFrame
    analyses: list[str]
    pairs: list[str]
    features: list[str]
    rows: list[str]


def specification_tables(found: Robustness) -> SpecificationTables:
    """Analyses ordered by the likeness of the pair that the first of them finds most alike."""
    names = [one.name for one in found.analyses]
    first = np.nan_to_num(found.likeness[0], nan=-np.inf)
    order = np.argsort(np.nan_to_num(found.likeness[:, int(first.argmax())], nan=-np.inf), kind="stable")
    values = found.to_frame()
    values = values.assign(
        pair=values["a"] + ", " + values["b"], value=values["tau_w"], main=values["analysis"] == names[0]
    )[["analysis", "pair", "value", "main"]].dropna()
    dominant = pd.DataFrame(
        {"analysis": name, "system": system, "feature": readable(feature), "share": float(share)}
        for name, features, shares in zip(names, found.dominant, found.shares, strict=True)
        for system, feature, share in zip(found.systems, features, shares, strict=True)
        if feature is not None
    )
    choices = pd.DataFrame(
        {"analysis": name, "choice": f"{kind}: {value}", "changed": value != found.choices[0][kind]}
        for name, made in zip(names, found.choices, strict=True)
        for kind, value in made.items()
    )
    kinds = list(found.choices[0])
    rows = sorted(dict.fromkeys(choices["choice"]), key=lambda row: kinds.index(row.partition(":")[0]))
    return SpecificationTables(
        values=values,
        dominant=dominant,
        choices=choices,
        analyses=[names[k] for k in order],
        pairs=list(dict.fromkeys(values["pair"])),
        features=list(dict.fromkeys(dominant["feature"])),
        rows=rows,
    )
