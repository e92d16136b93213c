"""Universal Dependencies treebanks (CoNLL-U) as stimuli."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import conllu
import pandas as pd
from conllu.exceptions import ParseException

from thinkalike.errors import InvalidInput
from thinkalike.progress import progress
from thinkalike.stimuli.content import check_count
from thinkalike.stimuli.kinds import as_feature
from thinkalike.stimuli.roles import StimuliTables
from thinkalike.stimuli.spans import locate

N_COLUMNS = 10
FEATURES = re.compile(r"_?|[^=|]+=[^=|]*(\|[^=|]+=[^=|]*)*")


@dataclass(frozen=True)
class _Block:
    """The lines of one sentence, and the line of the file that it starts on."""

    lines: list[str]
    first: int
    path: Path

    def error(self, offset: int, message: str) -> InvalidInput:
        return InvalidInput(f"{self.path}, line {self.first + offset}: {message}")


def read_conllu(
    path: str | os.PathLike[str],
    *,
    n_sentences: int | None = None,
    punctuation: bool = False,
    relation: bool = False,
) -> StimuliTables:
    """The arguments of `Stimuli` out of a CoNLL-U file; see `Stimuli.from_conllu`."""
    blocks = list(_blocks(Path(path)))
    if not blocks:
        raise InvalidInput(
            f"{path}, line 1: there is no sentence; CoNLL-U with {N_COLUMNS} columns was expected."
        )
    if n_sentences is not None:
        check_count(n_sentences, len(blocks))
        blocks = blocks[:n_sentences]
    texts: dict[str, str] = {}
    items: list[tuple[str, str, str, int, int]] = []
    annotations: list[Annotation] = []
    with progress("Reading the treebank", len(blocks)) as step:
        for number, block in enumerate(blocks):
            sentence = _parse(block)
            name = sentence.metadata.get("sent_id") or f"s{number}"
            if name in texts:
                raise block.error(0, f"the sentence id {name!r} stands there a second time: ids must differ.")
            tokens, depths = _surface_tokens(sentence, block), _depths(sentence, block)
            texts[name], starts = _text(sentence, tokens, block)
            for place, (token, start) in enumerate(zip(tokens, starts, strict=True)):
                annotation = _annotation(token, depths, relation) | {"word_position": place}
                if punctuation or annotation["part_of_speech"] != "PUNCT":
                    items.append((f"{name}.{place}", name, token.form, start, start + len(token.form)))
                    annotations.append(annotation | {"word_length": len(token.form)})
            step.advance()
    if not items:
        raise InvalidInput(f"{path}: there is nothing but punctuation; punctuation=True keeps it.")
    table = pd.DataFrame(items, columns=["item", "sentence", "word", "start", "end"]).set_index("item")
    return {
        "features": _features(annotations, table.index),
        "items": table,
        "sentences": pd.Series(texts, name="text"),
    }


def _blocks(path: Path) -> Iterator[_Block]:
    """The sentences, as lines between empty lines, each line with the right number of columns."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InvalidInput(f"{path} cannot be read ({reason}): give the path of a CoNLL-U file.") from error
    start = 0
    for number, line in enumerate([*lines, ""]):
        if line.strip():
            if not line.startswith("#"):
                _check_columns(line.split("\t"), f"{path}, line {number + 1}")
            continue
        block = lines[start:number]
        if any(not line.startswith("#") for line in block):
            yield _Block(block, start + 1, path)
        start = number + 1


def _check_columns(cells: list[str], place: str) -> None:
    if len(cells) != N_COLUMNS:
        raise InvalidInput(f"{place}: {len(cells)} columns; {N_COLUMNS}, with tabs between, were expected.")
    if not FEATURES.fullmatch(cells[5]):
        raise InvalidInput(
            f"{place}: the features are {cells[5]!r}; _ or Name=Value|Name=Value was expected."
        )


def _parse(block: _Block) -> conllu.TokenList:
    try:
        return conllu.parse("\n".join(block.lines))[0]
    except ParseException as error:
        for offset, line in enumerate(block.lines):
            try:
                conllu.parse(line)
            except ParseException:
                raise block.error(offset, f"not CoNLL-U: {error}") from error
        raise block.error(0, f"not CoNLL-U: {error}") from error


Annotation = dict[str, str | int | None]
"""Feature of a word → its value"""


@dataclass(frozen=True)
class _Token:
    """A word as it stands in the text, and the syntactic words that it is made of: two for French "du"."""

    form: str
    words: list[conllu.Token]
    spaced: bool
    """Whether a space follows."""


def _surface_tokens(sentence: conllu.TokenList, block: _Block) -> list[_Token]:
    numbers = [word["id"] for word in sentence if isinstance(word["id"], int)]
    if numbers != list(range(1, len(numbers) + 1)):
        raise block.error(0, f"its words have the ids {numbers[:8]}: 1, 2, 3, … in order were expected.")
    tokens: list[_Token] = []
    last = 0  # the last word of the multi-word token that we are in
    for word in sentence:
        spaced = (word["misc"] or {}).get("SpaceAfter") != "No"
        if not isinstance(word["id"], int):
            # Empty nodes such as 8.1 are left out: nobody says them.
            if word["id"][1] == "-":
                tokens.append(_Token(word["form"], [], spaced))
                last = word["id"][2]
        elif word["id"] <= last:
            tokens[-1].words.append(word)
        else:
            tokens.append(_Token(word["form"], [word], spaced))
    if not all(token.words for token in tokens):
        raise block.error(0, "a multi-word token has no words below it.")
    return tokens


def _text(sentence: conllu.TokenList, tokens: list[_Token], block: _Block) -> tuple[str, list[int]]:
    """The text of the sentence and where each token starts in it."""
    text = sentence.metadata.get("text")
    if not text:
        text = "".join(token.form + " " * token.spaced for token in tokens).rstrip()
    try:
        return text, locate([token.form for token in tokens], text)
    except InvalidInput as error:
        raise block.error(0, f"{error}.") from error


def _annotation(token: _Token, depths: dict[int, int | None], relation: bool) -> Annotation:
    """The features of a token. Of several syntactic words the highest in the tree gives depth and head."""
    words = token.words
    head = min(words, key=lambda word: (depths[word["id"]] is None, depths[word["id"]]))
    upos = [word["upos"] for word in words if word["upos"] not in (None, "_")]
    found: Annotation = {"part_of_speech": "+".join(upos) or None}
    for word in words:
        for name, value in (word["feats"] or {}).items():
            found[name] = value or None if found.get(name, value) == value else None
    found["depth"] = depths[head["id"]]
    found["distance_to_head"] = abs(head["head"] - head["id"]) if head["head"] else None
    if relation:
        found["relation"] = (head["deprel"] or "_").split(":")[0]
    return found


def _depths(sentence: conllu.TokenList, block: _Block) -> dict[int, int | None]:
    """How many heads stand above each word; None where the file does not say."""
    heads = {word["id"]: word["head"] for word in sentence if isinstance(word["id"], int)}
    depths: dict[int, int | None] = {}
    for word in heads:
        depth, at = 0, word
        while heads[at]:
            depth, at = depth + 1, heads[at]
            if at not in heads:
                raise block.error(0, f"the head {at} of a word is no word of the sentence.")
            if depth > len(heads):
                raise block.error(0, f"the heads go round in a circle from word {word}.")
        depths[word] = depth if heads[at] == 0 else None
    return depths


NUMERIC = ("depth", "distance_to_head", "word_position", "word_length")


def _features(annotations: list[Annotation], index: pd.Index) -> pd.DataFrame:
    """Part of speech, then the morphological features by name, then relation and numbers."""
    first, last = ["part_of_speech"], [name for name in ("relation", *NUMERIC) if name in annotations[0]]
    names = {name for annotation in annotations for name in annotation} - {*first, *last}
    columns = {}
    for name in [*first, *sorted(names), *last]:
        column = pd.Series([one.get(name) for one in annotations], index=index, name=name, dtype=object)
        columns[name] = as_feature(column, "numeric" if name in NUMERIC else "nominal", str)
    return pd.DataFrame(columns, index=index)
