"""From a finished training to a folder that ships: float16 weights, tokenizer, card."""

from __future__ import annotations

import copy
import itertools
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thinkalike.progress import without_bars
from thinkalike.systems.bundled.bundle import load_folder
from thinkalike.systems.bundled.cards import Card
from training.batches import Tokens, rows
from training.cards import write_card
from training.figures import Figures, Sample, measure
from training.loop import SHORT
from training.plans import Plan
from training.prepare import ACCOUNT, load_tokenizer
from training.tokens import for_masked_models

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CURVE = 30  # points of the loss curve in a card
WELL_FED = 3.0  # passes over the text below which a card says so

ACTIVATION_NOTE = (
    "The gelu and solu models differ in the activation and, as Nanda's do, in a LayerNorm inside the MLP, "
    "which only SoLU has: a difference between them may come from either."
)


def export(
    name: str,
    model: PreTrainedModel,
    plan: Plan,
    corpus: Path,
    out: Path,
    *,
    tokens: Tokens,
    sample: Sample,
    losses: list[float],
    pairs: dict[str, list[tuple[str, str]]],
) -> Card:
    """Write the folder `out`, whole or not at all, with figures measured on the weights as written."""
    part = out.with_name(out.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    write_folder(model, corpus, part, masked=plan.task == "masked")
    shipped, tokenizer = load_folder(part)
    figures = measure(shipped, tokenizer, sample, pairs)
    card = make_card(
        name, shipped, plan, corpus, figures, losses=losses, seen=tokens_seen(tokens, plan.seed, len(losses))
    )
    write_card(card, part)
    shutil.rmtree(out, ignore_errors=True)
    os.replace(part, out)
    return card


def write_folder(model: PreTrainedModel, corpus: Path, folder: Path, *, masked: bool) -> None:
    """Weights in half precision and the tokenizer; the model itself stays as it is."""
    with without_bars():
        copy.deepcopy(model).half().save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokenizer = load_tokenizer(corpus)
    (for_masked_models(tokenizer) if masked else tokenizer).save_pretrained(folder)


def make_card(
    name: str,
    model: PreTrainedModel,
    plan: Plan,
    corpus: Path,
    figures: Figures,
    *,
    losses: list[float],
    seen: int,
) -> Card:
    """The facts of one model, with the notes that follow from them."""
    account: dict[str, Any] = json.loads((corpus / ACCOUNT).read_text(encoding="utf-8"))
    config = model.config
    card = Card(
        name=name,
        architecture=type(model).__name__,
        task=plan.task,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        layers=config.num_hidden_layers,
        width=config.hidden_size,
        heads=getattr(config, "num_attention_heads", None),
        seed=plan.seed,
        steps=len(losses),
        tokens_seen=seen,
        training=settings(plan),
        corpus=account,
        losses=loss_curve(losses),
        notes=[],
        **asdict(figures),
    )
    card.notes.extend(notes(card, plan))
    return card


def settings(plan: Plan) -> dict[str, Any]:
    """The hyperparameters that a card names."""
    final = plan.decay * plan.steps
    short = f"; the first {plan.short_steps} steps cut into pieces of {SHORT}" if plan.short_steps else ""
    return {
        **({"tokens to predict": masked_share(plan)} if plan.task == "masked" else {}),
        "optimizer, matrices of the blocks": f"Muon, learning rate {plan.matrix_rate}, momentum 0.95",
        "optimizer, all else": f"AdamW, learning rate {plan.rate}, betas 0.9 and 0.98",
        "weight decay": 0.01,
        "gradient norm": "at most 1",
        "schedule": f"{plan.warm_up} steps up, level, the last {final:.0f} of {plan.steps} down to zero",
        "batch": f"4,096 tokens: rows of 256, or of one short sentence each{short}",
        "dropout": 0,
        "precision": "float32",
    }


def masked_share(plan: Plan) -> str:
    """How many of the tokens a masked model was asked for, in words."""
    level, end = plan.masked_share
    share = f"{100 * level:.0f} %, falling to {100 * end:.0f} % with the rate"
    return f"{share}; of these 80 % masked, 10 % random, 10 % as they are"


def notes(card: Card, plan: Plan) -> list[str]:
    """What a reader must be told."""
    found = []
    if plan.shape.get("positions") == "none":
        found.append("It is told nothing of positions: their embeddings are 0, and training left them so.")
    elif card.architecture.startswith(("GPT2", "NanoDecoder")):
        found.append("The position embeddings are sinusoids that training did not change.")
    if "activation" in plan.shape:
        found.append(ACTIVATION_NOTE)
    if card.task == "causal" and not card.beats_kneser_ney:
        found.append("Its perplexity is not below that of the 3-gram baseline.")
    unsure = [kind for kind, pair in card.minimal_pairs.items() if pair["low"] <= 0.5]
    if unsure:
        found.append(f"On minimal pairs of {', '.join(unsure)} it is not above chance.")
    if card.passes < WELL_FED:
        found.append(
            f"It saw {card.tokens_seen / 1e6:.1f} M tokens, {card.passes:.1f} times the text: it would still "
            "gain from more."
        )
    if card.steps < plan.steps:
        found.append(f"A checkpoint in the middle of a training of {plan.steps:,} steps, as it was.")
    return found


def loss_curve(losses: list[float]) -> list[list[float]]:
    """(step, mean loss since the point before), with at most `CURVE` points."""
    edges = np.unique(np.linspace(0, len(losses), CURVE + 1).astype(int))
    return [[int(b), round(float(np.mean(losses[a:b])), 4)] for a, b in itertools.pairwise(edges)]


def tokens_seen(tokens: Tokens, seed: int, steps: int) -> int:
    """How many tokens the first `steps` steps showed."""
    return sum(rows(tokens, seed=seed, step=step).size for step in range(steps))


def restore(plan: Plan, folder: Path) -> PreTrainedModel:
    """The model of a run's revision folder, as saved by the loop."""
    model = plan.build(**plan.shape)
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    model.load_state_dict(weights, strict=False)  # tied weights are stored once
    model.tie_weights()
    return model
