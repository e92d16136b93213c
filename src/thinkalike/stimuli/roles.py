"""Which column of a user's table is what: from a flat table to items, sentences and features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

import pandas as pd

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli.kinds import Kind, as_feature, check_cells, first_few, level_name
from thinkalike.stimuli.spans import goes_on, join, locate
from thinkalike.stimuli.table_files import RawTable

WORD_COLUMNS = ("sentence", "word", "start", "end")
ROLES = ("item", "sentence", "text", "word", "start", "end")


class StimuliTables(TypedDict):
    """The arguments of `Stimuli`, as readers and grammars give them."""

    features: pd.DataFrame
    items: pd.DataFrame
    sentences: pd.Series | None


def assemble(
    raw: RawTable,
    *,
    features: Sequence[str] | None,
    drop: Sequence[str],
    kinds: Mapping[str, Kind],
    columns: Mapping[str, str],
) -> StimuliTables:
    """The arguments of `Stimuli`, out of a flat table; see `Stimuli.from_table`."""
    if len(raw.frame) == 0:
        raise InvalidInput("The table has no rows: one per item was expected.")
    known = _column_names(raw)
    frame = raw.frame.set_axis(known, axis=1).rename(columns=_renaming(raw, columns, known))
    free = [name for name in frame.columns if name not in ROLES]
    # A file of our own says which of its columns are features.
    usual = [name for name in free if raw.kinds is None or name in raw.kinds]
    names = chosen_features(free, usual if features is None else features, drop, raw.place())
    require_features(kinds, free, raw.place())
    free = [name for name in free if name not in drop]
    spans, sentences = _spans(raw, frame)
    ids = _item_ids(raw, frame, spans)
    declared = {**(raw.kinds or {}), **kinds}
    table = {
        name: as_feature(_values(raw, frame[name]), declared.get(name), raw.place, untyped=raw.untyped)
        for name in names
    }
    others = frame[[name for name in free if name not in names]]
    return {
        "features": pd.DataFrame(table, index=frame.index).set_axis(ids, axis=0),
        "items": pd.concat([spans, others], axis=1).set_axis(ids, axis=0),
        "sentences": sentences,
    }


def keyed_table(raw: RawTable) -> pd.DataFrame:
    """The columns of a flat table by their kinds; the first, which may be nameless, names the rows."""
    first, *others = raw.frame.columns.to_list()
    frame = raw.frame.set_axis([str(first).strip() or "name", *others], axis=1)
    keys, *names = _column_names(replace(raw, frame=frame))
    frame = frame.set_axis([keys, *names], axis=1)
    table = {
        name: as_feature(_values(raw, frame[name]), None, raw.place, untyped=raw.untyped) for name in names
    }
    return pd.DataFrame(table, index=frame.index).set_axis(frame[keys].astype(str), axis=0)


def _column_names(raw: RawTable) -> list[str]:
    """The names of the columns, each of its own; those of foreign text files lose spaces around them."""
    names = ["" if pd.isna(name) else str(name) for name in raw.frame.columns.to_list()]
    if raw.untyped and raw.kinds is None:
        names = [name.strip() for name in names]
    for place, name in enumerate(names):
        if not name.strip():
            raise InvalidInput(f"{raw.place()}: column {place + 1} has no name: give it one.")
        if name in names[:place]:
            raise InvalidInput(f"{raw.place()}: the column {name!r} stands there twice: rename or drop one.")
    return names


def chosen_features(
    known: Sequence[str], features: Sequence[str], drop: Sequence[str], place: str
) -> list[str]:
    """The names of the features to keep, without those to drop."""
    for option, given in (("features", features), ("drop", drop)):
        if isinstance(given, str):
            raise InvalidInput(f"{option}={given!r} is one name: give a list of names, {option}=[{given!r}].")
        twice = next((name for k, name in enumerate(given) if name in given[:k]), None)
        if twice is not None:
            raise InvalidInput(f"{place}: {option} names {twice!r} twice: name each feature once.")
    require_features([*features, *drop], known, place)
    names = [name for name in features if name not in drop]
    if known and not names:
        raise InvalidInput(
            f"{place}: no feature is left of {first_few(features or known)}: keep at least one."
        )
    return names


def require_features(names: Iterable[str], known: Sequence[str], place: str) -> None:
    """Raise for a name that is no feature, with the nearest one that is."""
    for name in names:
        if name not in known:
            raise UnknownName(f"{place}: {UnknownName.among('feature', name, known)}")


def _renaming(raw: RawTable, columns: Mapping[str, str], known: list[str]) -> dict[str, str]:
    for role, name in columns.items():
        if role not in ROLES:
            raise UnknownName.among("role of a column", role, ROLES)
        if name not in known:
            raise UnknownName(f"{raw.place()}: {UnknownName.among('column', name, known)}")
        if role in known and role != name:
            raise InvalidInput(
                f"{raw.place()}: {name!r} is to be the {role!r}, but another column has that name: "
                "rename or drop one."
            )
    return {name: role for role, name in columns.items()}


def _values(raw: RawTable, column: pd.Series) -> pd.Series:
    """The column with missing cells made None; cells of foreign text files also lose spaces around them."""
    if raw.lines is None:
        return column
    cells = [cell.strip() for cell in column] if raw.kinds is None else column.to_list()
    return pd.Series(
        [None if c in raw.missing_cells else c for c in cells], column.index, object, column.name
    )


def _spans(raw: RawTable, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series | None]:
    """The columns `sentence`, `word`, `start`, `end`, and the texts; none when the items are not words."""
    for role in ROLES:
        if role in frame:
            check_cells(frame[role], raw.place)
    whole = "text" in frame and "word" not in frame
    frame = _completed(raw, frame)
    if "sentence" not in frame:
        return pd.DataFrame(index=frame.index), None
    sentence, word = (_names(raw, frame[role]) for role in ("sentence", "word"))
    texts = _texts(raw, frame, sentence) if "text" in frame else {}
    if whole:  # the same sentence may be several items, each with features of its own
        starts, ends = [0] * len(word), [len(one) for one in word]
    elif "start" in frame:
        starts, ends = (_offsets(raw, frame[role]) for role in ("start", "end"))
        _check_offsets(raw, word, sentence, texts, starts, ends)
    else:
        starts = _located(raw, word, sentence, texts)
        ends = [start + len(one) for start, one in zip(starts, word, strict=True)]
    spans = pd.DataFrame(
        {"sentence": sentence, "word": word, "start": starts, "end": ends}, index=frame.index
    )
    return spans, pd.Series(texts, name="text", dtype=str)


def _located(raw: RawTable, word: list[str], sentence: list[str], texts: dict[str, str]) -> list[int]:
    """Where each word starts; texts that are not given are made by joining the words."""
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(sentence):
        rows_of.setdefault(name, []).append(row)
    starts = [0] * len(word)
    for name, rows in rows_of.items():
        words = [word[row] for row in rows]
        if name not in texts:
            texts[name], found = join(words)
        else:
            try:
                found = locate(words, texts[name])
            except InvalidInput as error:
                raise InvalidInput(f"{raw.place(rows[0])}: {error}.") from error
        for row, start in zip(rows, found, strict=True):
            starts[row] = start
    return starts


def _completed(raw: RawTable, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with `sentence` and `word` filled in from `text`, or an error saying what lacks."""
    has = {role: role in frame for role in ROLES}
    if has["start"] != has["end"]:
        given, lacking = ("start", "end") if has["start"] else ("end", "start")
        raise InvalidInput(
            f"{raw.place()}: there is a column {given!r} but none called {lacking!r}: give both or neither."
        )
    if has["start"] and not (has["text"] and has["word"]):
        lacking = "text" if not has["text"] else "word"
        raise InvalidInput(f"{raw.place()}: columns 'start' and 'end' need a column {lacking!r} beside them.")
    if has["word"] and not (has["sentence"] or has["text"]):
        raise InvalidInput(
            f"{raw.place()}: there is a column 'word' but no 'sentence' or 'text' to say which sentence "
            "a word is in: add one (a number per word will do if every word stands alone)."
        )
    if has["sentence"] and not (has["word"] or has["text"]):
        raise InvalidInput(
            f"{raw.place()}: there is a column 'sentence' but none called 'word' or 'text': add one."
        )
    if has["text"] and not has["word"]:  # the items are whole sentences
        frame = frame.assign(word=frame["text"])
    if has["text"] and not has["sentence"]:
        together = not has["word"] or has["start"]
        frame = frame.assign(sentence=_sentence_ids(raw, frame, equal_texts_are_one=together))
    return frame


def _sentence_ids(raw: RawTable, frame: pd.DataFrame, *, equal_texts_are_one: bool) -> list[str]:
    """A name for the sentence of each row, by its text.

    Where the places of words are to be found, a text whose words begin anew is another sentence: it may come
    several times.
    """
    texts, words = _names(raw, frame["text"]), _names(raw, frame["word"])
    begun: dict[str, tuple[str, list[str]]] = {}
    ids = []
    n_sentences = 0
    for text, word in zip(texts, words, strict=True):
        if text not in begun or not (equal_texts_are_one or goes_on(begun[text][1], word, text)):
            begun[text] = (f"s{n_sentences}", [])
            n_sentences += 1
        begun[text][1].append(word)
        ids.append(begun[text][0])
    return ids


def _names(raw: RawTable, column: pd.Series) -> list[str]:
    """A column of ids or words as strings; none may be missing."""
    names = ["" if pd.isna(value) else level_name(value) for value in column]
    for row, name in enumerate(names):
        if not name.strip():
            raise InvalidInput(f"{raw.place(row)}: the {column.name!r} is missing.")
    return names


def _texts(raw: RawTable, frame: pd.DataFrame, sentence: list[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for row, (name, text) in enumerate(zip(sentence, _names(raw, frame["text"]), strict=True)):
        if texts.setdefault(name, text) != text:
            raise InvalidInput(
                f"{raw.place(row)}: sentence {name!r} has another text here, {text!r}, than before."
            )
    return texts


def _offsets(raw: RawTable, column: pd.Series) -> list[int]:
    numbers = as_feature(_values(raw, column), "numeric", raw.place)
    for row, number in enumerate(numbers):
        if not (number >= 0 and float(number).is_integer()):
            raise InvalidInput(
                f"{raw.place(row)}: {column.name!r} is {column.iloc[row]!r}; a whole number was expected."
            )
    return [int(number) for number in numbers]


def _check_offsets(
    raw: RawTable,
    word: list[str],
    sentence: list[str],
    texts: dict[str, str],
    starts: list[int],
    ends: list[int],
) -> None:
    for row, (one, name, start, end) in enumerate(zip(word, sentence, starts, ends, strict=True)):
        if end > len(texts[name]) or texts[name][start:end] != one:
            raise InvalidInput(
                f"{raw.place(row)}: the word is {one!r}, but characters {start} to {end} of the sentence "
                f"{texts[name]!r} are {texts[name][start:end]!r}."
            )


def _item_ids(raw: RawTable, frame: pd.DataFrame, spans: pd.DataFrame) -> pd.Index:
    if "item" in frame:
        ids = _names(raw, frame["item"])
    elif "sentence" in spans and "word" in frame:
        places = spans.groupby("sentence").cumcount()
        ids = [f"{sentence}.{place}" for sentence, place in zip(spans["sentence"], places, strict=True)]
    else:
        ids = [level_name(label) for label in frame.index]
    seen: set[str] = set()
    for row, one in enumerate(ids):
        if one in seen:
            raise InvalidInput(
                f"{raw.place(row)}: the item id {one!r} stands there a second time: ids must differ."
            )
        seen.add(one)
    return pd.Index(ids, name="item", dtype=str)
