"""A model's card as it is written: `card.json`, and the `README.md` that says the same in words."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from thinkalike.systems.bundled.cards import FILE, Card


def write_card(card: Card, folder: Path) -> None:
    """Write `card.json`, and the `README.md` that says the same in words."""
    (folder / FILE).write_text(json.dumps(asdict(card), indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(render(card), encoding="utf-8")


def render(card: Card) -> str:
    """The card as Markdown."""
    sections = [_header(card), _figures(card), _data(card), _training(card), _notes(card)]
    return "\n".join(section for section in sections if section)


def _header(card: Card) -> str:
    predicts = "masked tokens" if card.task == "masked" else "the next token"
    heads = f", {card.heads} heads of {card.width // card.heads}" if card.heads else ""
    return f"""---
license: apache-2.0
language: en
library_name: transformers
---
# {card.name}

A very small language model ({card.architecture}, {card.parameters:,} parameters,
{card.layers} layers of width {card.width}{heads}) that predicts {predicts}.
It comes with `thinkalike` so that everything can be tried without a network. It is good for comparing
representations, and for nothing else: it knows some English of the 17th to 21st century, no facts.
"""


def _figures(card: Card) -> str:
    masked = card.task == "masked"
    what = "15 % of the tokens, chosen by seed and masked" if masked else "all tokens but the first"
    rows = [
        f"| this model | {card.perplexity:.1f} |",
        f"| interpolated Kneser–Ney 3-gram | {card.kneser_ney_perplexity:.1f} |",
        f"| unigram | {card.unigram_perplexity:.1f} |",
    ]
    verdict = "below" if card.beats_kneser_ney else "**not below**"
    aside = " (which sees only the two tokens before; this model sees both sides)" if masked else ""
    pairs = [
        f"| {kind} | {pair['accuracy']:.1%} | {pair['low']:.1%} – {pair['high']:.1%} | {pair['n']:.0f} |"
        for kind, pair in card.minimal_pairs.items()
    ]
    parts = [
        "## How good it is",
        f"Perplexity on the bundled held-out sample ({card.held_out_tokens:,} tokens scored: {what}; "
        "context at most 256), all three on the same tokens:\n",
        "| | perplexity |\n|---|---|\n" + "\n".join(rows) + "\n",
        f"It is {verdict} the 3-gram baseline{aside}.\n",
    ]
    if pairs:
        how = "the words' probabilities when masked" if masked else "the sentence's probability"
        parts += [
            f"Minimal pairs from our own grammar: the share in which the right form is the likelier by {how} "
            "(chance is 50 %):\n",
            "| kind | right | 95 % interval | pairs |\n|---|---|---|---|\n" + "\n".join(pairs) + "\n",
        ]
    parts.append("`python -m training evaluate` computes these anew from the weights and the sample.\n")
    return "\n".join(parts)


def _data(card: Card) -> str:
    corpus = card.corpus
    sources = ", ".join(f"{name} ({n / 1e6:.1f} MB)" for name, n in corpus["training_characters"].items())
    return f"""## Data
{sources}: {corpus["training_tokens"]:,} tokens of running text after
de-duplication; {card.data_licence}. Whole documents were held out: {", ".join(corpus["held_out_documents"])}.

A quarter of the steps showed single short sentences of the same text ({corpus["bare_sentences"]:,} of them)
without the full stop and without the capital at the start, because that is how stimuli are written.

The vocabulary (byte-level BPE, 4,096 tokens) is shared by all nano models.
"""


def _training(card: Card) -> str:
    settings = "\n".join(f"| {name.replace('_', ' ')} | {value} |" for name, value in card.training.items())
    curve = "\n".join(f"| {step:.0f} | {loss:.3f} |" for step, loss in card.losses)
    return f"""## Training
{card.tokens_seen:,} tokens in {card.steps:,} steps: {card.passes:.1f} times the running text.
Seed {card.seed}.

| setting | value |
|---|---|
{settings}

Training loss (nats per predicted token, mean since the row above):

| step | loss |
|---|---|
{curve}
"""


def _notes(card: Card) -> str:
    return "## Notes\n" + "\n".join(f"- {note}" for note in card.notes) + "\n" if card.notes else ""
