"""The state of unfinished training on disk, so that the next call goes on: one safetensors file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from thinkalike.errors import StoreError
from thinkalike.stitching.stitches import Stitch
from thinkalike.stitching.task import Training

PLAIN = ("best_loss", "best_step", "first_loss", "looks_in_vain", "curve", "recent", "stopped", "last_step")


class Checkpoint:
    """A file under a key: what was saved for other models, text or settings is passed over."""

    def __init__(self, path: str | Path, key: str) -> None:
        self.path, self.key = Path(path), key

    def save(self, trainings: Mapping[Stitch, Training], step: int) -> None:
        tensors: dict[str, Tensor] = {}
        about: list[dict[str, Any]] = []
        for number, training in enumerate(trainings.values()):
            parts = {"phi": training.phi.state_dict(), "best": training.best, "state": _state(training)}
            for part, named in parts.items():
                tensors |= {f"{number}/{part}/{name}": tensor for name, tensor in named.items()}
            about.append({name: getattr(training, name) for name in PLAIN})
        metadata = {"key": self.key, "step": str(step), "about": json.dumps(about)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part_file = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            copies = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
            save_file(copies, part_file, metadata=metadata)
            os.replace(part_file, self.path)
        except (OSError, SafetensorError) as error:
            raise StoreError(f"{self.path} cannot be written ({error}): free some space.") from error
        finally:
            part_file.unlink(missing_ok=True)

    def resume(self, trainings: Mapping[Stitch, Training]) -> int:
        """Put every training back to where it was; the step to go on from."""
        if not self.path.exists():
            return 0
        try:
            with safe_open(self.path, framework="pt") as file:
                metadata = file.metadata() or {}
                if metadata.get("key") != self.key:
                    return 0
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                about, step = json.loads(metadata["about"]), int(metadata["step"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise StoreError(f"{self.path} is damaged ({error}): delete it to begin anew.") from error
        for number, (training, plain) in enumerate(zip(trainings.values(), about, strict=True)):
            training.phi.load_state_dict(_part(tensors, number, "phi"))
            training.best = _part(tensors, number, "best")
            _restore(training, _part(tensors, number, "state"))
            for name in PLAIN:
                setattr(training, name, plain[name])
            training.curve = [tuple(row) for row in plain["curve"]]
        return step

    def finish(self) -> None:
        self.path.unlink(missing_ok=True)


def _part(tensors: Mapping[str, Tensor], number: int, part: str) -> dict[str, Tensor]:
    prefix = f"{number}/{part}/"
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


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
