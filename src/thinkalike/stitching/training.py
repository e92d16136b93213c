"""Fitting all φ by the loss of the task: together, batch by batch, each with its own optimiser.

The state of unfinished training is one file of arrays, so that the next call goes on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from thinkalike.checkpoint import Checkpoint
from thinkalike.progress import Step
from thinkalike.stitching.evaluation import mean_loss, mean_losses
from thinkalike.stitching.examples import Examples
from thinkalike.stitching.job import Job, rows_at_once
from thinkalike.stitching.stitches import Stitch
from thinkalike.stitching.task import TaskFit, Training
from thinkalike.systems.batch import Ints
from thinkalike.systems.calling import top_logits
from thinkalike.types import Json

if TYPE_CHECKING:
    from torch import nn


def train(
    job: Job,
    phis: Mapping[Stitch, nn.Module],
    how: TaskFit,
    fit: Examples,
    validation: Examples,
    *,
    seed: int,
    tokens_at_once: int,
    step: Step | None = None,
    checkpoint: Checkpoint | None = None,
) -> dict[Stitch, Training]:
    """Fit every φ; afterwards each is the one that was best on the validation text."""
    trainings = {stitch: Training.begin(phi.to(job.device), how) for stitch, phi in phis.items()}
    resumed = resume_training(checkpoint, trainings) if checkpoint is not None else None
    begun = resumed or 0
    looked_at = validation.first(rows_at_once(validation, how.validation_tokens))
    guessing = math.log(_n_answers(job))
    if step is not None:
        step.advance(begun * len(trainings))
    for number in range(begun, how.steps + 1):
        running = {stitch: one for stitch, one in trainings.items() if one.stopped is None}
        looking = number % how.every == 0 or number == how.steps
        if running and looking and number != resumed:  # where it goes on, it has looked already
            losses = mean_losses(
                job, {s: one.phi for s, one in running.items()}, looked_at, tokens_at_once=tokens_at_once
            )
            for stitch, one in running.items():
                one.look(losses[stitch], number, how)
            if checkpoint is not None and number < how.steps:
                save_training(checkpoint, trainings, number)
            running = {stitch: one for stitch, one in running.items() if one.stopped is None}
        if not running or number == how.steps:
            break
        rows, epoch = _rows(fit, number, how.batch_tokens, seed)
        batch = fit.batch(rows, device=job.device, draw=epoch + 1)
        states = job.states(batch, among=list(running))
        for stitch, one in running.items():
            mapped = one.phi(states[stitch.role, stitch.layer_bottom])
            logits = top_logits(job.top.model, job.top.stack, stitch.layer_top, mapped, batch.tokens)
            one.update(mean_loss(logits, batch), number, how, guessing)
        if step is not None:
            step.advance(len(trainings))
    for one in trainings.values():
        if one.stopped is None:
            one.stop("end", how.steps)
        one.phi.load_state_dict(one.best)
    return trainings


def _rows(examples: Examples, number: int, batch_tokens: int, seed: int) -> tuple[Ints, int]:
    """The rows of a step, and how often all examples have been seen: a new order each time."""
    size = min(rows_at_once(examples, batch_tokens), len(examples))
    per_epoch = len(examples) // size
    epoch, place = divmod(number, per_epoch)
    order = np.random.default_rng((seed, epoch)).permutation(len(examples))
    return order[place * size : (place + 1) * size], epoch


def _n_answers(job: Job) -> int:
    config: Any = job.top.model.config
    if job.task == "classification":
        return int(config.num_labels)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    return int(text.vocab_size)


PLAIN = ("best_step", "looks_in_vain", "stopped", "last_step")
FLOATS = ("best_loss", "first_loss")
"""Which may be infinite or NaN, so they are kept as arrays"""


def save_training(saved: Checkpoint, trainings: Mapping[Stitch, Training], step: int) -> None:
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


def resume_training(saved: Checkpoint, trainings: Mapping[Stitch, Training]) -> int | None:
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
