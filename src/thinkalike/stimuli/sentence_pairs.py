"""Pairs of sentences out of a grammar whose rules have two sides."""

from __future__ import annotations

from functools import cache

import numpy as np

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli.grammar import Draw, Grammar, draw, finished_text, load_grammar
from thinkalike.stimuli.grammar.grammar_files import FOLDER


@cache
def pair_grammar(name: str) -> Grammar:
    """One of the shipped grammars of pairs: `grammars/pairs/*.toml`."""
    return load_grammar(FOLDER / "pairs" / f"{name}.toml")


def chosen_values(grammar: Grammar, feature: str, wanted: str | None) -> tuple[str, ...]:
    """The values of a feature of pairs: the one that is wanted, or all of them."""
    known = grammar.domain.values[feature]
    if wanted is None:
        return known
    if wanted not in known:
        raise UnknownName.among(f"{feature} of pairs", wanted, known)
    return (wanted,)


def draw_pairs(grammar: Grammar, n: int, seed: int, groups: list[dict[str, str]]) -> list[Draw]:
    """Draw `n` distinct pairs in random order, equally many (give or take one) of each group of values."""
    if n < 1:
        raise InvalidInput(f"{n} pairs were asked for: ask for at least one.")
    rng = np.random.default_rng(seed)
    drawn: list[Draw] = []
    for place, group in enumerate(groups):
        share = n // len(groups) + (place < n % len(groups))
        frames = [frame for frame in grammar.frames if group.items() <= frame.features.items()]
        drawn += draw(frames, share, rng) if share else []
    return [drawn[i] for i in rng.permutation(len(drawn))]


def pair_texts(grammar: Grammar, one: Draw, *, capital: bool, full_stop: bool) -> tuple[str, str]:
    first, second = (finished_text(grammar, text, one.features, capital, full_stop) for text in one.text)
    return first, second
