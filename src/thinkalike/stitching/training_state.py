"""The state of unfinished training on disk, so that the next call goes on: one file of arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from thinkalike.checkpoint import Checkpoint
from thinkalike.stitching.stitches import Stitch
from thinkalike.stitching.task import Training
from thinkalike.types import Json

PLAIN = ("best_step", "looks_in_vain", "stopped", "last_step")
FLOATS = ("best_loss", "first_loss")
"""Which may be infinite or NaN, so they are kept as arrays"""


def save(saved: Checkpoint, trainings: Mapping[Stitch, Training], step: int) -> None:
    """Keep where every training stands, after it has looked at the validation text at `step`."""
    arrays: dict[str, np.ndarray] = {}
    about: list[Json] = []
    for number, training in enumerate(trainings.values()):
        parts = {"phi": training.phi.state_dict(), "best": training.best, "state": _state(training)}
        for part, named in parts.items():
            arrays |= {f"{number}/{part}/{name}": _array(tensor) for name, tensor in named.items()}
        arrays[f"{number}/floats"] = np.array([getattr(training, name) for name in FLOATS])
        arrays[f"{number}/losses"] = np.array([loss for _, _, loss in training.curve])
        places = [(step, split) for step, split, _ in training.curve]
        about.append({"places": places, **{name: getattr(training, name) for name in PLAIN}})
    saved.save(arrays, {"step": step, "trainings": about})


def resume(saved: Checkpoint, trainings: Mapping[Stitch, Training]) -> int | None:
    """Put every training back to where it was; the step to go on from, None to begin."""
    found = saved.load()
    if found is None:
        return None
    arrays, about = found
    for number, (training, kept) in enumerate(zip(trainings.values(), about["trainings"], strict=True)):
        training.phi.load_state_dict(_part(arrays, number, "phi"))
        training.best = _part(arrays, number, "best")
        _restore(training, _part(arrays, number, "state"))
        for name in PLAIN:
            setattr(training, name, kept[name])
        for name, value in zip(FLOATS, arrays[f"{number}/floats"], strict=True):
            setattr(training, name, float(value))
        losses = arrays[f"{number}/losses"].tolist()
        training.curve = [
            (step, split, loss) for (step, split), loss in zip(kept["places"], losses, strict=True)
        ]
    return int(about["step"])


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def _part(arrays: Mapping[str, np.ndarray], number: int, part: str) -> dict[str, Tensor]:
    prefix = f"{number}/{part}/"
    return {
        name.removeprefix(prefix): torch.from_numpy(array)
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _state(training: Training) -> dict[str, Tensor]:
    """The optimiser's memory by the number of the parameter and the name of the field."""
    state = training.optimizer.state_dict()["state"]
    return {
        f"{parameter}.{name}": torch.as_tensor(value)
        for parameter, fields in state.items()
        for name, value in fields.items()
        if value is not None
    }


def _restore(training: Training, saved: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in saved.items():
        parameter, name = key.split(".", 1)
        state.setdefault(int(parameter), {})[name] = tensor
    groups = training.optimizer.state_dict()["param_groups"]
    training.optimizer.load_state_dict({"state": state, "param_groups": groups})
