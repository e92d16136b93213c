"""Stitching on disk: tables, φ, and what they were made with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from thinkalike.errors import StoreError
from thinkalike.files import (
    MARK,
    SEAL,
    ZEROS,
    read_json,
    read_sealed,
    read_table,
    reading,
    write_json,
    write_sealed,
    write_table,
    write_tables,
)
from thinkalike.stitching.result import StitchResult
from thinkalike.stitching.stitches import Stitch
from thinkalike.types import Json

SETTINGS = "stitching.json"
AGAIN = "run the stitching again"
PENALTIES, UNITS, CURVES, PHI = "stitching", "stitching-units", "stitching-curves", "phi.safetensors"


def save_result(result: StitchResult, folder: Path) -> Path:
    """Every table, φ, and last the settings."""
    from thinkalike.provenance import RUNNING_MODELS, versions

    seals = {
        PENALTIES: write_tables(result.to_frame(roles=True), folder / PENALTIES),
        CURVES: write_tables(result.curves, folder / CURVES),
        UNITS: write_table(_unit_table(result), folder / f"{UNITS}.parquet"),
        PHI: _save_phis(result, folder / PHI),
    }
    about = {
        **{name: getattr(result, name) for name in ("bottom", "top", "task", "kind", "fit", "unit")},
        "stitches": [list(stitch) for stitch in result.stitches],
        "depths": list(result.depths),
        "cautions": list(result.cautions),
        "settings": dict(result.settings),
        "versions": versions(RUNNING_MODELS),
        "seals": seals,
    }
    write_json(about, folder / SETTINGS)
    return folder


def load_result(folder: Path) -> StitchResult:
    """What `save_result` wrote, without φ."""
    if not (folder / SETTINGS).exists():
        raise StoreError(
            f"{folder} holds no stitching ({SETTINGS} is missing): give a folder that `thinkalike stitch` "
            "made."
        )
    about = read_json(folder / SETTINGS, way_out=AGAIN)
    with reading(folder / SETTINGS, AGAIN):
        tables = [
            read_table(folder / f"{name}.parquet", seal=about["seals"][name], way_out=AGAIN)
            for name in (PENALTIES, UNITS, CURVES)
        ]
        if about["seals"][PHI] is not None:
            read_sealed(folder / PHI, seal=about["seals"][PHI], way_out=AGAIN)
        return _result(about, *tables)


def _result(
    about: Mapping[str, Any], penalties: pd.DataFrame, units: pd.DataFrame, curves: pd.DataFrame
) -> StitchResult:
    stitches = tuple(Stitch(*one) for one in about["stitches"])
    numbers = range(len(stitches))
    checks = ["norm", "norm_own", "mahalanobis", "mahalanobis_own", "outside"]
    training = [name for name in ("steps", "best_step", "stopped") if name in penalties]
    return StitchResult(
        **{name: about[name] for name in ("bottom", "top", "task", "kind", "fit", "unit")},
        stitches=stitches,
        losses=np.stack([units[f"loss-{k}"].to_numpy(np.float64) for k in numbers]),
        correct=np.stack([units[f"correct-{k}"].to_numpy(np.float64) for k in numbers]),
        own_losses=units["own_loss"].to_numpy(np.float64),
        own_correct=units["own_correct"].to_numpy(np.float64),
        counts=units["count"].to_numpy(np.float64),
        explained=penalties["explained"].to_numpy(np.float64),
        checks=penalties[checks],
        curves=curves,
        training=penalties[training],
        cautions=tuple(about["cautions"]),
        settings=about["settings"],
        depths=(about["depths"][0], about["depths"][1]),
    )


def _unit_table(result: StitchResult) -> pd.DataFrame:
    """One row per unit; of each stitch the summed loss and the number right."""
    columns: Json = {
        "count": result.counts,
        "own_loss": result.own_losses,
        "own_correct": result.own_correct,
    }
    for k in range(len(result.stitches)):
        columns |= {f"loss-{k}": result.losses[k], f"correct-{k}": result.correct[k]}
    return pd.DataFrame(columns)


def _save_phis(result: StitchResult, path: Path) -> str | None:
    """The matrices and biases, named role/layer/layer/…; nothing for the identity. Returns the seal."""
    from safetensors.torch import save

    tensors = {
        "/".join([*map(str, stitch), name]): tensor.detach().cpu().clone()
        for stitch, phi in result.phis.items()
        for name, tensor in phi.state_dict().items()
    }
    return write_sealed(save(tensors, {SEAL: (MARK + ZEROS).decode()}), path) if tensors else None
