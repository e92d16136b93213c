"""The training loop: seeded, resumable, and over when the learning rate has gone to zero."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from thinkalike.errors import StoreError
from thinkalike.progress import progress, without_bars
from thinkalike.systems.mamba.selective_scan import fused_scan
from training.batches import IGNORED, Tokens, causal_batch, cut, masked_batch, rows
from training.loss import linear_cross_entropy
from training.muon import Muon
from training.plans import Plan

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CHECKPOINT = "checkpoint.pt"
LEVEL = "level.pt"  # the state when the rate began to fall: a longer training goes on from here
CLIP = 1.0
SHORT = 32  # tokens of a row while `short_steps` last: attention spread over few finds its aim sooner


@dataclass
class Run:
    """The state of a training: all of it is in the checkpoint."""

    model: PreTrainedModel
    optimizers: list[torch.optim.Optimizer]
    step: int
    losses: list[float]
    seconds: float


def last_phase(plan: Plan) -> int:
    """The step from which the learning rate falls."""
    return math.ceil((1 - plan.decay) * plan.steps)


def rate_factor(step: int, *, steps: int, warm_up: int, decay: float) -> float:
    """The learning rate's factor: up in a line, level, then down in a line to zero (warm-up, stable, decay).

    While it is level the run has no end in mind: `steps` may still be changed on resuming.
    """
    return min((step + 1) / warm_up, fall(step, steps=steps, decay=decay))


def fall(step: int, *, steps: int, decay: float) -> float:
    """1 until the last phase, in which it falls in a line to 0."""
    return min(1.0, max(0.0, (steps - step) / max(1.0, decay * steps)))


def share_to_predict(plan: Plan, step: int) -> float:
    """The share of tokens that a masked model is asked for: many while it learns, few at the end."""
    level, end = plan.masked_share
    return end + (level - end) * fall(step, steps=plan.steps, decay=plan.decay)


def new_run(plan: Plan) -> Run:
    """A model with fresh weights and the optimizers of the plan."""
    torch.manual_seed(plan.seed)
    model = plan.build(**plan.shape)
    model.train()
    matrices, others = _split_parameters(model) if plan.matrix_rate else ([], list(model.parameters()))
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(others, lr=plan.rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    ]
    if matrices:
        optimizers.append(Muon(matrices, lr=plan.matrix_rate))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return Run(model, optimizers, 0, [], 0.0)


def _split_parameters(model: PreTrainedModel) -> tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]]:
    """The blocks' weight matrices, for Muon, and the rest, for AdamW.

    Embeddings are tables rather than maps, and Mamba's `A_log`, `x_proj` and `dt_proj` set time constants:
    these stay with AdamW.
    """
    matrices: list[torch.nn.Parameter] = []
    others: list[torch.nn.Parameter] = []
    for name, parameter in model.named_parameters():
        inside = ".layer" in name or ".h." in name
        small = name.endswith(("A_log", "x_proj.weight", "dt_proj.weight"))
        (matrices if inside and parameter.ndim == 2 and not small else others).append(parameter)
    return matrices, others


def train(
    plan: Plan,
    tokens: Tokens,
    special: dict[str, int],
    folder: Path,
    *,
    description: str,
    save_every: float = 120.0,
) -> Run:
    """Train to the plan's last step, going on from the checkpoint in `folder` if there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    run = new_run(plan)
    _resume(run, plan, folder)
    saved = time.monotonic()
    with progress(description, total=plan.steps) as bar, fused_scan(run.model):
        bar.advance(run.step)
        while run.step < plan.steps:
            began = time.monotonic()
            if run.step == last_phase(plan):
                save_checkpoint(run, folder, LEVEL)
            run.losses.append(_step(run, plan, tokens, special))
            run.step += 1
            run.seconds += time.monotonic() - began
            bar.advance()
            if run.step in plan.revisions:
                save_weights(run.model, folder / f"step{run.step}")
            if time.monotonic() - saved > save_every or run.step == plan.steps:
                save_checkpoint(run, folder)
                saved = time.monotonic()
    return run


def _resume(run: Run, plan: Plan, folder: Path) -> None:
    """Load the checkpoint, or the level state if the plan has become longer than the one that has ended."""
    if (folder / LEVEL).exists():
        load_checkpoint(run, folder, LEVEL)
        if run.step < last_phase(plan):
            os.replace(folder / LEVEL, folder / CHECKPOINT)
    if (folder / CHECKPOINT).exists():
        load_checkpoint(run, folder)


def _step(run: Run, plan: Plan, tokens: Tokens, special: dict[str, int]) -> float:
    ids = rows(tokens, seed=plan.seed, step=run.step)
    if run.step < plan.short_steps:
        ids = cut(ids, SHORT)
    if plan.task == "masked":
        vocabulary = run.model.config.vocab_size
        share = share_to_predict(plan, run.step)
        inputs, labels = masked_batch(
            ids, seed=plan.seed, step=run.step, special=special, n_tokens=vocabulary, share=share
        )
    else:
        inputs, labels = causal_batch(ids)
    loss = language_model_loss(run.model, torch.from_numpy(inputs), torch.from_numpy(labels))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(run.model.parameters(), CLIP)
    factor = rate_factor(run.step, steps=plan.steps, warm_up=plan.warm_up, decay=plan.decay)
    for optimizer in run.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = factor * group["peak"]
        optimizer.step()
        optimizer.zero_grad()
    return float(loss.detach())


def language_model_loss(model: Any, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over the labelled positions; logits are made for those alone."""
    hidden = model.base_model(inputs).last_hidden_state
    wanted = labels != IGNORED
    hidden, head = hidden[wanted], model.get_output_embeddings()
    if hasattr(model, "head"):
        hidden = model.head(hidden)
    return linear_cross_entropy(hidden, head.weight, labels[wanted], head.bias)


def save_checkpoint(run: Run, folder: Path, name: str = CHECKPOINT) -> None:
    """Write the state, and the losses in readable form, whole or not at all."""
    state = {
        "model": run.model.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in run.optimizers],
        "step": run.step,
        "losses": run.losses,
        "seconds": run.seconds,
    }
    _replace(folder / name, lambda part: torch.save(state, part))
    progress_line = {
        "step": run.step,
        "seconds": round(run.seconds, 1),
        "losses": [round(x, 4) for x in run.losses],
    }
    _replace(
        folder / "losses.json", lambda part: part.write_text(json.dumps(progress_line), encoding="utf-8")
    )


def load_checkpoint(run: Run, folder: Path, name: str = CHECKPOINT) -> None:
    """Put a saved state into the run."""
    try:
        state = torch.load(folder / name, weights_only=True)
        run.model.load_state_dict(state["model"])
        for optimizer, saved in zip(run.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
    except Exception as error:
        raise StoreError(
            f"{folder / name} is damaged or of another model: remove it to start anew."
        ) from error
    run.step, run.losses, run.seconds = state["step"], state["losses"], state["seconds"]


def save_weights(model: PreTrainedModel, folder: Path) -> None:
    """The model as a transformers folder, in its training precision."""
    part = folder.with_name(folder.name + ".part")
    with without_bars():
        model.save_pretrained(part)
    if not folder.exists():
        os.replace(part, folder)


def _replace(path: Path, write: Any) -> None:
    part = path.with_name(path.name + ".part")
    write(part)
    os.replace(part, path)
