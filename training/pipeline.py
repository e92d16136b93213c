"""The whole way of one model: text → corpus → training → a folder that can ship."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.minimal_pairs import KINDS, minimal_pairs
from thinkalike.systems.bundled.cards import Card
from training.export import export, restore
from training.figures import (
    PAIRS,
    PAIRS_SEED,
    Sample,
    fit_baselines,
    held_out_ids,
    load_sample,
    save_sample,
)
from training.loop import train
from training.plans import Plan, plan
from training.prepare import HELD_OUT, is_prepared, load_tokenizer, load_tokens, prepare
from training.tokens import special_ids

if TYPE_CHECKING:
    from transformers import PreTrainedModel

BASELINES = "held_out_baselines.npz"


def train_model(name: str, text: Path | None, out: Path, *, steps: int | None = None) -> Card:
    """Train the model and export it to `out/models/NAME`, doing only what is not done yet.

    Parameters
    ----------
    text
        A folder of `.txt` files; needed only while `out/corpus` does not exist.
    steps
        In place of the plan's; may be changed between two calls until the learning rate has begun to fall.
    """
    corpus = prepared(text, out)
    chosen = replace(plan(name), steps=steps) if steps else plan(name)
    tokenizer, tokens = load_tokenizer(corpus), load_tokens(corpus)
    run = train(chosen, tokens, special_ids(tokenizer), out / name, description=f"training {name}")
    return export_run(name, chosen, out, model=run.model, losses=run.losses)


def prepared(text: Path | None, out: Path) -> Path:
    """The corpus folder of `out`, made from `text` if it is not there yet."""
    corpus = out / "corpus"
    if not is_prepared(corpus):
        if text is None:
            raise InvalidInput(f"{corpus} is not there yet: give --text FOLDER, a folder of .txt files.")
        prepare(text, corpus)
    return corpus


def held_out_sample(corpus: Path) -> Sample:
    """The held-out tokens with the baselines' probabilities, fitted once and kept."""
    path = corpus / BASELINES
    if not path.exists():
        tokenizer = load_tokenizer(corpus)
        ids = held_out_ids(tokenizer, corpus / HELD_OUT)
        eos = special_ids(tokenizer)["eos"]
        save_sample(fit_baselines(load_tokens(corpus).running, ids, n_tokens=len(tokenizer), eos=eos), path)
    return load_sample(path)


def export_run(name: str, chosen: Plan, out: Path, *, model: PreTrainedModel, losses: list[float]) -> Card:
    """Write `out/models/NAME`, and `NAME@stepN` for each revision that the run kept."""
    corpus = out / "corpus"
    shared: dict[str, Any] = {
        "tokens": load_tokens(corpus),
        "sample": held_out_sample(corpus),
        "pairs": grammar_pairs(),
    }
    target = out / "models"
    target.mkdir(exist_ok=True)
    for step in chosen.revisions:
        if (folder := out / name / f"step{step}").exists():
            revision = f"{name}@step{step}"
            early = restore(chosen, folder)
            export(revision, early, chosen, corpus, target / revision, losses=losses[:step], **shared)
    return export(name, model, chosen, corpus, target / name, losses=losses, **shared)


def grammar_pairs(n: int = PAIRS) -> dict[str, list[tuple[str, str]]]:
    """The minimal pairs of the cards: `n` of every kind.

    Questions are written out, with a capital and their mark: "when he did stay" is wrong only before "?".
    """
    written = {kind: kind == "inversion" for kind in KINDS}
    return {
        kind: minimal_pairs(n, PAIRS_SEED, kind, capital=written[kind], full_stop=written[kind])
        for kind in KINDS
    }
