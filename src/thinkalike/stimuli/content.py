"""What the parts of stimuli must be like, and the digest of their content."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.kinds import declaration, kind_of
from thinkalike.stimuli.roles import ROLES, WORD_COLUMNS

NO_SENTENCES = pd.Series([], index=pd.Index([], name="sentence", dtype=str), name="text", dtype=str)


def checked_index(index: pd.Index) -> pd.Index:
    """The item ids as strings, which must differ."""
    if len(index) == 0:
        raise InvalidInput("There are no items: stimuli need at least one.")
    ids = pd.Index([str(item) for item in index.to_list()], name="item", dtype=str)
    if not ids.is_unique:
        raise InvalidInput(f"The item id {ids[ids.duplicated()][0]!r} stands there twice: ids must differ.")
    return ids


def check_feature_names(names: pd.Index) -> None:
    """Features must have names of their own."""
    for name in names:
        if name in ROLES:
            raise InvalidInput(
                f"A feature cannot be called {name!r}, which names a column of the items: rename it."
            )
    if not names.is_unique:
        raise InvalidInput(
            f"The feature {names[names.duplicated()][0]!r} stands there twice: names must differ."
        )


def checked_items(items: pd.DataFrame, index: pd.Index) -> pd.DataFrame:
    """The items with the columns of words first and in their types; all of these columns or none."""
    if [str(item) for item in items.index.to_list()] != index.to_list():
        raise InvalidInput(
            "The items and the features have different ids: they must have the same, in the same order."
        )
    given = [column for column in WORD_COLUMNS if column in items]
    if given and len(given) < len(WORD_COLUMNS):
        lacking = [column for column in WORD_COLUMNS if column not in items]
        raise InvalidInput(
            f"The items have a column {given[0]!r} but none called {lacking[0]!r}: words need both."
        )
    items = items.set_axis(index, axis=0)
    for column in given:
        items[column] = items[column].astype(np.int64 if column in ("start", "end") else str)
    return items[given + [column for column in items if column not in WORD_COLUMNS]]


def checked_sentences(items: pd.DataFrame, sentences: pd.Series | None) -> pd.Series:
    """The texts of the sentences that have an item; each item must be the span that it says it is."""
    if "sentence" not in items:
        return NO_SENTENCES
    texts = dict(zip(map(str, sentences.index), sentences, strict=True)) if sentences is not None else {}
    used = list(dict.fromkeys(items["sentence"].to_list()))
    columns = [items.index.to_list(), *(items[column].to_list() for column in WORD_COLUMNS)]
    for item, sentence, word, start, end in zip(*columns, strict=True):
        if sentence not in texts:
            raise InvalidInput(
                f"Item {item!r} is in sentence {sentence!r}, which has no text: give it in `sentences`."
            )
        if not word or texts[sentence][start:end] != word:
            raise InvalidInput(
                f"Item {item!r} is the word {word!r}, but characters {start} to {end} of its sentence "
                f"{texts[sentence]!r} are {texts[sentence][start:end]!r}."
            )
    return pd.Series(
        [texts[s] for s in used], index=pd.Index(used, name="sentence", dtype=str), name="text", dtype=str
    )


def check_count(asked: int, there: int) -> None:
    """So many sentences can be taken."""
    if asked < 1:
        raise InvalidInput(f"{asked} sentences were asked for: ask for at least one.")
    if asked > there:
        raise InvalidInput(
            f"The first {asked:,} sentences were asked for, but there are {there:,}: ask for fewer."
        )


def content_digest(items: pd.DataFrame, sentences: pd.Series, features: pd.DataFrame) -> str:
    """SHA-256 over names, kinds, levels and values, free of how they happen to be stored."""
    content = hashlib.sha256()

    def add(*parts: object) -> None:
        content.update(
            json.dumps(parts, ensure_ascii=True, separators=(",", ":"), default=str).encode() + b"\n"
        )

    add("items", items.index.to_list())
    for name in items:
        # As they stand in a text file, where a missing value is an empty cell.
        values, missing = items[name].to_list(), items[name].isna().to_list()
        add(name, ["" if is_missing else str(one) for one, is_missing in zip(values, missing, strict=True)])
    add("sentences", sentences.index.to_list(), sentences.to_list())
    for name in features:
        column = features[name]
        add("feature", name, kind_of(column), declaration(column))
        if kind_of(column) == "numeric":
            numbers = column.to_numpy(np.float64)
            # One bit pattern for every NaN, and one for zero.
            content.update(np.where(np.isnan(numbers), np.nan, numbers + 0.0).astype("<f8").tobytes())
        else:
            add(list(column.cat.categories))
            content.update(column.cat.codes.to_numpy("<i4").tobytes())
    return content.hexdigest()
