"""A `Profile` as files: importances as a table, resamples as another, the rest as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from thinkalike.comparison.profiles import Bootstrap, Collinearity, LayerDiagnostics, Profile
from thinkalike.files import numbers, read_json, read_table, reading, write_json, write_table, write_tables
from thinkalike.labels import Floats

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
    if profile.bootstrap is not None:
        seals["resamples"] = _write_resamples(profile, profile.bootstrap, _resamples(path))
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
    bootstrap = None
    if about["bootstrap"] is not None:
        drawn = read_table(_resamples(path), seal=seals["resamples"], way_out=AGAIN)
        n = about["bootstrap"]["n_resamples"]
        bootstrap = Bootstrap(
            scores=_column(drawn, "score", (n, shape[0], shape[2]))[:, :, 0],
            importance=_column(drawn, "importance", (n, shape[0], shape[2])),
            level=about["bootstrap"]["level"],
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
        bootstrap=bootstrap,
        metadata=about["metadata"],
    )


def _about(profile: Profile) -> dict[str, Any]:
    bootstrap = profile.bootstrap
    return {
        "system": profile.system,
        "layers": profile.layers,
        "features": profile.features,
        "n_folds": profile.importance.shape[1],
        "settings": profile.settings,
        "stimuli_digest": profile.stimuli_digest,
        "collinearity": None if profile.collinearity is None else vars(profile.collinearity),
        "diagnostics": None if profile.diagnostics is None else vars(profile.diagnostics),
        "bootstrap": None
        if bootstrap is None
        else {"n_resamples": len(bootstrap.scores), "level": bootstrap.level},
        "metadata": profile.metadata,
    }


def _resamples(path: Path) -> Path:
    return path.with_name(path.name + "-resamples.parquet")


def _write_resamples(profile: Profile, bootstrap: Bootstrap, path: Path) -> str:
    n_resamples, n_layers, n_features = bootstrap.importance.shape
    layers = np.repeat(np.array(profile.layers, dtype=object), n_features)
    return write_table(
        pd.DataFrame(
            {
                "resample": np.repeat(np.arange(n_resamples), n_layers * n_features),
                "layer": np.tile(layers, n_resamples),
                "feature": np.tile(np.array(profile.features, dtype=object), n_resamples * n_layers),
                "importance": bootstrap.importance.ravel(),
                "score": np.repeat(bootstrap.scores.ravel(), n_features),
            }
        ),
        path,
    )


def _column(table: pd.DataFrame, name: str, shape: tuple[int, ...]) -> Floats:
    return table[name].to_numpy(np.float64).reshape(shape)


def _arrays(kind: type[Any], stored: dict[str, Any] | None) -> Any:
    """A dataclass of arrays from nested lists."""
    if stored is None:
        return None
    return kind(
        **{
            f.name: tuple(stored[f.name]) if f.name == "features" else numbers(stored[f.name])
            for f in fields(kind)
        }
    )
