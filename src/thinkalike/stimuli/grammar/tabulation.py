"""Sentences of a grammar as tables: items, sentences and features."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from thinkalike.errors import UnknownName
from thinkalike.stimuli.grammar.grammar_files import ITEMS, Grammar
from thinkalike.stimuli.grammar.sampling import Draw
from thinkalike.stimuli.grammar.sentence_frames import Word
from thinkalike.stimuli.kinds import as_feature
from thinkalike.stimuli.roles import StimuliTables
from thinkalike.stimuli.spans import join


def tabulate(
    grammar: Grammar,
    sentences: Sequence[Draw],
    *,
    items: str | None = None,
    capital: bool = False,
    full_stop: bool = False,
) -> StimuliTables:
    """The arguments of `Stimuli` for sentences that were drawn; see `Stimuli.from_grammar`.

    Parameters
    ----------
    grammar : that they are from
    sentences : drawn by `draw`
    items : "words" or "sentences"; None leaves it to the grammar
    capital, full_stop : whether sentences begin with a capital letter and end with a mark

    Returns
    -------
    StimuliTables
        `features` (n_items, n_features), `items` (n_items, 4) and `sentences`.

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.stimuli.grammar import draw, load_grammar, tabulate
    >>> grammar = load_grammar("salle2024")
    >>> tables = tabulate(grammar, draw(grammar.frames, 2, np.random.default_rng(0)))
    >>> list(tables["items"])
    ['sentence', 'word', 'start', 'end']
    """
    items = grammar.items if items is None else items
    if items not in ITEMS:
        raise UnknownName.among("sort of items", items, ITEMS)
    texts, rows, marks = [], [], []
    for number, one in enumerate(sentences):
        words = one.sides[0]
        text, starts = join([word.text for word in words])
        text = finished_text(grammar, text, one.features, capital, full_stop)
        texts.append(text)
        if items == "sentences":
            rows.append((f"s{number}", f"s{number}", text, 0, len(text)))
            marks.append((one.features, 0, len(words)))
            continue
        for place, (word, start) in enumerate(zip(words, starts, strict=True)):
            end = start + len(word.text)
            rows.append((f"s{number}.{place}", f"s{number}", text[start:end], start, end))
            marks.append((_features(one, word), place, 1))
    table = pd.DataFrame(rows, columns=["item", "sentence", "word", "start", "end"]).set_index("item")
    names = pd.Index([f"s{number}" for number in range(len(texts))], name="sentence")
    features = _feature_table(grammar, table, marks, whole=items == "sentences")
    return {"features": features, "items": table, "sentences": pd.Series(texts, names, name="text")}


def _features(one: Draw, word: Word) -> dict[str, str]:
    return {**word.features, **one.features}


def finished_text(
    grammar: Grammar, text: str, features: dict[str, str], capital: bool, full_stop: bool
) -> str:
    """The text with a capital letter in front, and at the end the mark that fits its features, if wanted.

    Parameters
    ----------
    grammar : whose marks are taken
    text : words with spaces between them
    features : of the sentence, feature → value
    capital, full_stop : what is wanted

    Returns
    -------
    str

    Examples
    --------
    >>> from thinkalike.stimuli.grammar import finished_text, load_grammar
    >>> finished_text(load_grammar("salle2024"), "the boy smiles", {}, capital=True, full_stop=True)
    'The boy smiles.'
    """
    mark = next(mark for mark, needs in grammar.full_stops if needs.items() <= features.items())
    return (text[0].upper() + text[1:] if capital else text) + (mark if full_stop else "")


def _feature_table(
    grammar: Grammar, table: pd.DataFrame, marks: list[tuple[dict[str, str], int, int]], *, whole: bool
) -> pd.DataFrame:
    """The columns that the grammar declares; for whole sentences only those that sentences have."""
    domain = grammar.domain
    computed: dict[str, list[int] | list[str | None]] = {
        "characters": table["word"].str.len().tolist(),
        "position": [place for _, place, _ in marks],
        "words": [n_words for _, _, n_words in marks],
    }
    columns = {}
    for name in domain.columns:
        if name in domain.computed:
            source = domain.computed[name]
            if (source == "words") != whole:
                continue
            values = computed[source]
        elif whole and name not in grammar.sentence_features:
            continue
        else:
            values = [features.get(name) for features, _, _ in marks]
        column = pd.Series(
            values, index=table.index, name=name, dtype=None if name in domain.computed else object
        )
        columns[name] = as_feature(column, domain.kind(name), str)
    return pd.DataFrame(columns, index=table.index)
