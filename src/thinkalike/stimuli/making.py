"""From a grammar's name to stimuli: draw, and choose among the drawn when they are to be balanced."""

from __future__ import annotations

import os

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.options import MOST_SENTENCES, whole_number
from thinkalike.stimuli.balance import choose_balanced
from thinkalike.stimuli.grammar import draw, load_grammar, tabulate
from thinkalike.stimuli.roles import StimuliTables

POOL = 4
"""How many times the sentences asked for are drawn to choose from when they are to be balanced."""


def stimuli_arguments(
    n_sentences: int,
    seed: int,
    *,
    grammar: str | os.PathLike[str],
    lexicon: str | os.PathLike[str] | None,
    items: str | None,
    balance: bool,
    capital: bool,
    full_stop: bool,
) -> StimuliTables:
    """The arguments of `Stimuli`; see `Stimuli.from_grammar`."""
    n_sentences = whole_number("n_sentences", n_sentences, 1, MOST_SENTENCES)
    read = load_grammar(grammar, lexicon)
    if read.n_sides > 1:
        raise InvalidInput(
            f"{read.path} makes pairs of sentences: stimuli need rules with one side, without //."
        )
    rng = np.random.default_rng(seed)
    if balance:
        drawn = draw(read.frames, POOL * n_sentences, rng, at_least=n_sentences)
        table = tabulate(read, drawn, items=items)
        chosen = choose_balanced(table["features"], table["items"]["sentence"], n_sentences, rng)
        drawn = [drawn[i] for i in chosen]
    else:
        drawn = draw(read.frames, n_sentences, rng)
    return tabulate(read, drawn, items=items, capital=capital, full_stop=full_stop)
