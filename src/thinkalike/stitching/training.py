"""Fitting all φ by the loss of the task: together, batch by batch, each with its own optimiser."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thinkalike.progress import Step
from thinkalike.stitching import training_state
from thinkalike.stitching.evaluation import mean_loss, mean_losses
from thinkalike.stitching.examples import Examples
from thinkalike.stitching.job import Job, rows_at_once
from thinkalike.stitching.stitches import Stitch
from thinkalike.stitching.task import TaskFit, Training
from thinkalike.systems.batch import Ints
from thinkalike.systems.calling import top_logits

if TYPE_CHECKING:
    from torch import nn

    from thinkalike.checkpoint import Checkpoint


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
    resumed = training_state.resume(checkpoint, trainings) if checkpoint is not None else None
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
                training_state.save(checkpoint, trainings, number)
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
