"""A `Profile` as files: importances as a table, resamples as another, the rest as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from thinkalike.comparison.profiles import Collinearity, LayerDiagnostics, Profile
from thinkalike.comparison.replicates import Replicates
from thinkalike.files import numbers, read_json, read_table, reading, write_json, write_table, write_tables
from thinkalike.labels import Floats

Arrays = TypeVar("Arrays", Collinearity, LayerDiagnostics)

AGAIN = "make the profile again"


def save_profile(profile: Profile, path: Path) -> None:
    """Write `path`.parquet, .csv and .json, and for resamples `path`-resamples.parquet."""
    n_layers, n_folds, n_features = profile.importance.shape
    seals = {
        "profile": write_tables(
            pd.DataFrame(
                {
                    "layer": np.repeat(np.array(profile.layers, dtype=object), n_folds * n_features),
                    "fold": np.tile(np.repeat(np.arange(n_folds), n_features), n_layers),
                    "feature": np.tile(np.array(profile.features, dtype=object), n_layers * n_folds),
                    "importance": profile.importance.ravel(),
                    **({} if profile.strengths is None else {"strength": profile.strengths.ravel()}),
                    "score": np.repeat(profile.scores.ravel(), n_features),
                }
            ),
            path,
        )
    }
    if profile.replicates is not None:
        seals["resamples"] = _write_resamples(profile, profile.replicates, _resamples(path))
    # Last: who reads the JSON finds the tables.
    write_json({**_about(profile), "seals": seals}, path.with_name(path.name + ".json"))


def load_profile(path: Path) -> Profile:
    """What `save_profile` wrote."""
    file = path.with_name(path.name + ".json")
    about = read_json(file, way_out=AGAIN)
    with reading(file, AGAIN):
        return _profile(about, path)


def _profile(about: Mapping[str, Any], path: Path) -> Profile:
    shape = (len(about["layers"]), about["n_folds"], len(about["features"]))
    seals = about["seals"]
    table = read_table(path.with_name(path.name + ".parquet"), seal=seals["profile"], way_out=AGAIN)
    replicates = None
    if about["replicates"] is not None:
        made = read_table(_resamples(path), seal=seals["resamples"], way_out=AGAIN)
        n, layers_and_features = about["replicates"]["n_resamples"], (shape[0], shape[2])
        importance = _column(made, "importance", (-1, *layers_and_features))
        replicates = Replicates(
            scores=_column(made, "score", (-1, *layers_and_features))[:n, :, 0],
            importance=importance[:n],
            halves=importance[n:].reshape(-1, 2, *layers_and_features),
            parts=about["replicates"]["parts"],
            sentences=about["replicates"].get("sentences"),
            strengths=_strengths(made, layers_and_features),
        )
    return Profile(
        system=about["system"],
        layers=tuple(about["layers"]),
        features=tuple(about["features"]),
        importance=_column(table, "importance", shape),
        scores=_column(table, "score", shape)[:, :, 0],
        strengths=_column(table, "strength", shape) if "strength" in table else None,
        settings=about["settings"],
        stimuli_digest=about["stimuli_digest"],
        collinearity=_arrays(Collinearity, about["collinearity"]),
        diagnostics=_arrays(LayerDiagnostics, about["diagnostics"]),
        replicates=replicates,
        metadata=about["metadata"],
    )


def _about(profile: Profile) -> dict[str, object]:
    replicates = profile.replicates
    return {
        "system": profile.system,
        "layers": profile.layers,
        "features": profile.features,
        "n_folds": profile.importance.shape[1],
        "settings": profile.settings,
        "stimuli_digest": profile.stimuli_digest,
        "collinearity": None if profile.collinearity is None else vars(profile.collinearity),
        "diagnostics": None if profile.diagnostics is None else vars(profile.diagnostics),
        "replicates": None
        if replicates is None
        else {"n_resamples": len(replicates.scores), **replicates.dealt},
        "metadata": profile.metadata,
    }


def _resamples(path: Path) -> Path:
    return path.with_name(path.name + "-resamples.parquet")


def _write_resamples(profile: Profile, replicates: Replicates, path: Path) -> str:
    """Those without a part of the sentences, then the halves, which have no ρ."""
    n_layers, n_features = len(profile.layers), len(profile.features)
    importance = np.concatenate([replicates.importance, replicates.halves.reshape(-1, n_layers, n_features)])
    n_resamples = len(importance)
    scores = np.full((n_resamples, n_layers), np.nan)
    scores[: len(replicates.scores)] = replicates.scores
    layers = np.repeat(np.array(profile.layers, dtype=object), n_features)
    return write_table(
        pd.DataFrame(
            {
                "resample": np.repeat(np.arange(n_resamples), n_layers * n_features),
                "layer": np.tile(layers, n_resamples),
                "feature": np.tile(np.array(profile.features, dtype=object), n_resamples * n_layers),
                "importance": importance.ravel(),
                "score": np.repeat(scores.ravel(), n_features),
                "strength": _padded(replicates.strengths, (n_resamples, n_layers, n_features)).ravel(),
            }
        ),
        path,
    )


def _padded(values: Floats | None, shape: tuple[int, ...]) -> Floats:
    """With rows of NaN up to the shape."""
    padded = np.full(shape, np.nan)
    if values is not None:
        padded[: len(values)] = values
    return padded


def _strengths(table: pd.DataFrame, layers_and_features: tuple[int, int]) -> Floats | None:
    """Of the resamples that have some; None if none has."""
    if "strength" not in table:
        return None
    values = _column(table, "strength", (-1, *layers_and_features))
    known = np.isfinite(values).any(axis=(1, 2))
    return values[known] if known.any() else None


def _column(table: pd.DataFrame, name: str, shape: tuple[int, ...]) -> Floats:
    return table[name].to_numpy(np.float64).reshape(shape)


def _arrays(kind: type[Arrays], stored: Mapping[str, list[object]] | None) -> Arrays | None:
    """A dataclass of arrays from nested lists."""
    if stored is None:
        return None
    values: dict[str, Any] = {
        f.name: tuple(stored[f.name]) if f.name == "features" else numbers(stored[f.name])
        for f in fields(kind)
        if stored.get(f.name) is not None
    }
    return kind(**values)
