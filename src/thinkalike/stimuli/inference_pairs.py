"""Premises and hypotheses for the lexical-overlap cases of HANS."""

from __future__ import annotations

from itertools import product

import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.sentence_pairs import chosen_values, draw_pairs, pair_grammar, pair_texts

CASES = ("swap", "preposition", "relative", "passive", "conjunction")
LABELS = ("entailment", "non-entailment")
OVERLAPS = ("full", "partial")


def inference_pairs(
    n: int,
    seed: int,
    *,
    case: str | None = None,
    label: str | None = None,
    overlap: str | None = None,
    capital: bool = False,
    full_stop: bool = False,
) -> pd.DataFrame:
    """Make premise–hypothesis pairs, no two alike, equally many of each sort that is asked for.

    With ``overlap="full"`` every word of the hypothesis is in the premise, and only the construction tells
    whether it follows: the five lexical-overlap cases of HANS (McCoy et al. 2019). With ``"partial"`` a word
    is replaced, and it never follows. So full overlap with label "entailment", together with partial overlap,
    is a set in which overlap predicts entailment; full overlap with label "non-entailment" shows who relied
    on that.

    Parameters
    ----------
    case : one of `CASES`: subject and object swapped, prepositional phrase, relative clause, passive,
        conjunction.
    label : one of `LABELS`.
    overlap : one of `OVERLAPS`.

    Returns
    -------
    DataFrame with columns `premise`, `hypothesis`, `label`, `case`, `overlap`.
    """
    grammar = pair_grammar("inference")
    wanted = {"case": case, "label": label, "overlap": overlap}
    values = {feature: chosen_values(grammar, feature, value) for feature, value in wanted.items()}
    groups = [dict(zip(values, one, strict=True)) for one in product(*values.values())]
    groups = [g for g in groups if (g["label"], g["overlap"]) != ("entailment", "partial")]
    if not groups:
        raise InvalidInput(
            "There are no entailments with partial overlap: ask for overlap='full' or label='non-entailment'."
        )
    drawn = draw_pairs(grammar, n, seed, groups)
    rows = [
        (*pair_texts(grammar, one, capital=capital, full_stop=full_stop), *(one.features[f] for f in wanted))
        for one in drawn
    ]
    frame = pd.DataFrame(rows, columns=["premise", "hypothesis", *wanted])
    return frame[["premise", "hypothesis", "label", "case", "overlap"]]
