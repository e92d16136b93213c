"""Stitching on disk: tables, φ, and what they were made with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from thinkalike.errors import StoreError
from thinkalike.stimuli.files import replacing
from thinkalike.stitching.result import StitchResult
from thinkalike.stitching.stitches import Stitch

SETTINGS = "stitching.json"
PENALTIES, UNITS, CURVES, PHI = "stitching", "stitching-units", "stitching-curves", "phi.safetensors"


def save_result(result: StitchResult, folder: Path) -> Path:
    """Every table, φ, and last the settings."""
    from thinkalike.provenance import RUNNING_MODELS, versions

    folder.mkdir(parents=True, exist_ok=True)
    for name, table in ((PENALTIES, result.to_frame(roles=True)), (CURVES, result.curves)):
        with replacing(folder / f"{name}.parquet") as path:
            table.to_parquet(path, index=False)
        with replacing(folder / f"{name}.csv") as path:
            table.to_csv(path, index=False)
    with replacing(folder / f"{UNITS}.parquet") as path:
        _unit_table(result).to_parquet(path, index=False)
    _save_phis(result, folder / PHI)
    about = {
        **{name: getattr(result, name) for name in ("bottom", "top", "task", "kind", "fit", "unit")},
        "stitches": [list(stitch) for stitch in result.stitches],
        "depths": list(result.depths),
        "cautions": list(result.cautions),
        "settings": dict(result.settings),
        "versions": versions(RUNNING_MODELS),
    }
    with replacing(folder / SETTINGS) as path:
        text = json.dumps(about, indent=1, ensure_ascii=False, default=str)
        path.write_text(text + "\n", encoding="utf-8")
    return folder


def load_result(folder: Path) -> StitchResult:
    """What `save_result` wrote, without φ."""
    try:
        about = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        penalties = pd.read_parquet(folder / f"{PENALTIES}.parquet")
        units = pd.read_parquet(folder / f"{UNITS}.parquet")
        curves = pd.read_parquet(folder / f"{CURVES}.parquet")
        return _result(about, penalties, units, curves)
    except FileNotFoundError as error:
        raise StoreError(
            f"{folder} holds no stitching ({Path(error.filename).name} is missing): give a folder that "
            "`thinkalike stitch` made."
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise StoreError(f"The stitching in {folder} cannot be read ({error}): stitch again.") from error


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
    columns: dict[str, Any] = {
        "count": result.counts,
        "own_loss": result.own_losses,
        "own_correct": result.own_correct,
    }
    for k in range(len(result.stitches)):
        columns |= {f"loss-{k}": result.losses[k], f"correct-{k}": result.correct[k]}
    return pd.DataFrame(columns)


def _save_phis(result: StitchResult, path: Path) -> None:
    """The matrices and biases, named role/layer/layer/…; nothing for the identity."""
    from safetensors.torch import save_file

    tensors = {
        "/".join([*map(str, stitch), name]): tensor.detach().cpu().clone()
        for stitch, phi in result.phis.items()
        for name, tensor in phi.state_dict().items()
    }
    if tensors:
        part = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            save_file(tensors, part)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
