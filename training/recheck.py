"""The figures of the bundled models' cards, computed anew from the shipped weights and the bundled sample."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from thinkalike.errors import UnknownName
from thinkalike.systems.bundled import Card, card, load, names
from thinkalike.systems.bundled.bundle import SAMPLE_BASELINES
from training.figures import Figures, load_sample, measure
from training.pipeline import grammar_pairs, held_out_sample

TOLERANCE = 0.005  # of a perplexity; other processors round otherwise
PAIR_TOLERANCE = 0.02  # of an accuracy: a few near-ties may fall the other way


def recheck(wanted: Sequence[str], *, n_tokens: int | None, corpus: Path | None) -> int:
    """Print card and recomputed figures side by side; 0 if they agree, 1 if not.

    With `n_tokens` only a part of the sample is used, and nothing is held against the cards.
    """
    known = names(revisions=True)
    for name in wanted:
        if name not in known:
            raise UnknownName.among("bundled model", name, known)
    sample = load_sample(SAMPLE_BASELINES) if corpus is None else held_out_sample(corpus)
    sample = sample if n_tokens is None else sample.part(n_tokens)
    pairs = grammar_pairs()
    print(f"{'model':24} {'figure':24} {'card':>9} {'now':>9}")
    agreed = True
    for name in wanted or known:
        now = measure(*load(name), sample, pairs)
        for figure, on_card, found, tolerance in compare(card(name), now):
            fine = abs(found - on_card) <= tolerance
            agreed &= fine
            mark = "" if fine else "  <- differs"
            print(f"{name:24} {figure:24} {on_card:9.3f} {found:9.3f}{mark}")
    if n_tokens is not None:
        return 0
    print("all figures agree" if agreed else "some figures differ", file=sys.stderr)
    return 0 if agreed else 1


def compare(written: Card, now: Figures) -> list[tuple[str, float, float, float]]:
    """(figure, on the card, found now, how far apart they may be), for every figure."""
    found = asdict(now)
    rows = []
    for field in ("perplexity", "kneser_ney_perplexity", "unigram_perplexity"):
        value = getattr(written, field)
        rows.append((field.replace("_", " "), value, found[field], TOLERANCE * value))
    for kind, pair in now.minimal_pairs.items():
        on_card = written.minimal_pairs.get(kind, {}).get("accuracy", np.nan)
        rows.append((f"pairs: {kind}", on_card, pair["accuracy"], PAIR_TOLERANCE))
    return rows
