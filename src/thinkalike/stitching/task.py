"""Fitting one φ by the loss of the task: the schedule, the optimiser, when to stop."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from thinkalike.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from torch import Tensor, nn

OPTIMIZERS = ("sgd", "adamw")
STARTS = ("least-squares", "identity")
LEARNING_RATES = {"sgd": 0.1, "adamw": 1e-3}
MUCH_WORSE = 3.0  # times the loss at the start, or that of guessing: nothing comes back from there
SMALLEST_GAIN = 1e-4  # in validation loss that counts as better


@dataclass(frozen=True)
class TaskFit:
    """How φ is fitted by task loss; the defaults are the schedule of Brown et al. 2023.

    SGD with Nesterov momentum 0.9, `steps` steps, the learning rate rising over `warmup` steps and falling
    linearly to 0 at the end, gradients clipped to norm `clip`. The paper's "learning rate 1.0" follows
    tuned-lens, whose 1.0 is 0.1 in torch's terms, lr · (1 − momentum). Its batches of 2¹⁸ tokens are out of
    reach on a CPU: ours have `batch_tokens`.

    Attributes
    ----------
    optimizer
        "sgd" or "adamw".
    steps, batch_tokens
        How many steps, each on about so many tokens.
    clip
        The largest norm of a gradient.
    learning_rate
        0.1 for SGD and 0.001 for AdamW unless given.
    warmup
        200 steps, or a tenth of `steps` if that is fewer, unless given.
    weight_decay
        Pulls φ to its start, not to 0.
    start
        "least-squares", or "identity" for layers of equal width.
    every
        Steps between two looks at the validation text; the φ that was best there is kept.
    patience
        Looks without a better one until this stitch stops; None never stops early.
    validation_tokens
        How many are looked at.

    Examples
    --------
    >>> from thinkalike.stitching import TaskFit
    >>> how = TaskFit(steps=100)
    >>> [round(how.rate(step), 3) for step in (0, 9, 99)]
    [0.01, 0.1, 0.001]
    """

    optimizer: Literal["sgd", "adamw"] = "sgd"
    learning_rate: float | None = None
    steps: int = 2000
    warmup: int | None = None
    clip: float = 1.0
    weight_decay: float = 1e-3
    batch_tokens: int = 1024
    start: Literal["least-squares", "identity"] = "least-squares"
    every: int = 100
    patience: int | None = 5
    validation_tokens: int = 8192

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise UnknownName.among("optimizer", self.optimizer, OPTIMIZERS)
        if self.start not in STARTS:
            raise UnknownName.among("start", self.start, STARTS)
        for name in ("steps", "every", "batch_tokens", "validation_tokens", "clip"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{name}={getattr(self, name)}: it must be above 0.")
        if self.learning_rate is not None and not 0 < self.learning_rate < math.inf:
            raise InvalidInput(f"learning_rate={self.learning_rate}: give a number above 0, such as 0.1.")
        if not 0 <= self.weight_decay < math.inf:
            raise InvalidInput(f"weight_decay={self.weight_decay}: give 0 or more.")

    def rate(self, step: int) -> float:
        """The learning rate of a step, from 0."""
        peak = LEARNING_RATES[self.optimizer] if self.learning_rate is None else self.learning_rate
        warmup = min(200, self.steps // 10) if self.warmup is None else min(self.warmup, self.steps)
        if step < warmup:
            return peak * (step + 1) / warmup
        return peak * (self.steps - step) / max(1, self.steps - warmup)

    def optimise(self, phi: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of the parameters of φ."""
        if self.optimizer == "adamw":
            return torch.optim.AdamW(phi.parameters(), lr=self.rate(0), weight_decay=self.weight_decay)
        return torch.optim.SGD(
            phi.parameters(), lr=self.rate(0), momentum=0.9, nesterov=True, weight_decay=self.weight_decay
        )


@dataclass
class Training:
    """One stitch on its way: φ, the best φ so far, and the curve.

    Attributes
    ----------
    curve
        Rows of step, split ("train" or "validation") and loss.
    stopped
        None while it runs, then "end", "patience" or "diverged".
    last_step
        The step that it stopped at.
    """

    phi: nn.Module
    optimizer: torch.optim.Optimizer
    best: dict[str, Tensor]
    best_loss: float = math.inf
    best_step: int = 0
    first_loss: float = math.nan
    looks_in_vain: int = 0
    curve: list[tuple[int, str, float]] = field(default_factory=list)
    recent: list[float] = field(default_factory=list)
    stopped: str | None = None
    last_step: int = 0

    @classmethod
    def begin(cls, phi: nn.Module, how: TaskFit) -> Training:
        return cls(phi, how.optimise(phi), deepcopy(phi.state_dict()))

    def update(self, loss: Tensor, step: int, how: TaskFit, guessing: float) -> None:
        """One step of the optimiser, unless the loss has run away."""
        value = float(loss.detach())
        if math.isnan(self.first_loss):
            self.first_loss = value
        for group in self.optimizer.param_groups:
            group["lr"] = how.rate(step)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self.phi.parameters(), how.clip))
        limit = MUCH_WORSE * max(self.first_loss, guessing)
        if not math.isfinite(value) or not math.isfinite(norm) or value > limit:
            self.stop("diverged", step)
            return
        self.optimizer.step()
        self.recent.append(value)

    def look(self, loss: float, step: int, how: TaskFit) -> None:
        """Take note of a validation loss after `step` steps; keep φ if it is the best so far."""
        if self.recent:
            self.curve.append((step, "train", float(np.mean(self.recent))))
            self.recent.clear()
        self.curve.append((step, "validation", loss))
        if not math.isfinite(loss):
            self.stop("diverged", step)
        elif loss < self.best_loss:
            self.looks_in_vain = 0 if loss < self.best_loss - SMALLEST_GAIN else self.looks_in_vain + 1
            self.best_loss, self.best_step = loss, step
            self.best = deepcopy(self.phi.state_dict())
        else:
            self.looks_in_vain += 1
        if self.stopped is None and how.patience is not None and self.looks_in_vain >= how.patience:
            self.stop("patience", step)

    def stop(self, why: str, step: int) -> None:
        self.stopped, self.last_step = why, step
