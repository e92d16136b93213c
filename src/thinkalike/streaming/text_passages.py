"""Text → passages that every model reads: packed tokens, documents one by one, pairs, or words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.table import Stimuli
from thinkalike.stimuli.text import (
    PackedText,
    Split,
    pack,
    read_documents,
    split_of,
    tokenizer_fingerprint,
)
from thinkalike.streaming.passages import OwnTokens, Padding, SharedTokens
from thinkalike.systems.batch import Batch, Document, tokenise
from thinkalike.systems.system import System, check_same_tokens, passage_length

Level = Literal["token", "word", "sequence"]
LEVELS = ("token", "word", "sequence")
WORD = re.compile(r"\w+(?:[-'’]\w+)*")
WORDS_AT_ONCE = 64  # in a passage, so that its tokens fit any model
MOST_OF_A_TEXT = 20_000_000  # tokens that are packed
MOST_PASSAGES = 5_000  # that each model reads in its own tokens

USE_WORDS = "token by token they cannot be compared. Use level='word', where each reads its own tokens."


@dataclass(frozen=True)
class HowToRead:
    """Everything that decides which rows a text gives.

    Attributes
    ----------
    level
        What a row is: a "token", a "word", or a whole "sequence".
    length
        Of a passage at most, in tokens, or in words at the level of words; None for what suits.
    padding
        "mask", or "keep" to make rows of padding.
    pooling
        Of the tokens of a word or passage: "last", "first" or "mean"; None for the last of a word, the mean
        of a passage.
    bos
        True puts a beginning-of-sequence token first, False takes it away, None leaves it to the tokenizer.
    drop_first
        So many tokens at the beginning of each passage are left out of every row.
    split
        What a document is: one of the "files", of the "paragraphs" or of the "lines"; None for the files of a
        folder, and the paragraphs of a file.
    """

    level: Level = "token"
    length: int | None = None
    padding: Padding = "mask"
    pooling: str | None = None
    bos: bool | None = None
    drop_first: int = 0
    split: Split | None = None


def packed_tokens(
    systems: Sequence[System],
    text: PackedText | str | Path | Sequence[str],
    how: HowToRead,
    instead: str = USE_WORDS,
) -> SharedTokens:
    """Running text in passages of equal length, documents joined; `instead`: the way out."""
    check_same_tokens(systems, instead)
    if not isinstance(text, PackedText):
        length, tokenizer = passage_length(systems, how.length), systems[0].tokenizer
        text = pack(
            text,
            tokenizer,
            length=length,
            split=split_of(text, how.split),
            bos=bool(how.bos),
            max_chunks=max(1, MOST_OF_A_TEXT // length),
        )
    elif text.tokenizer != tokenizer_fingerprint(systems[0].tokenizer):
        raise InvalidInput(
            f"The text was packed with another tokenizer than that of {systems[0].name}: pack it with that."
        )
    else:
        passage_length(systems, text.length)
    return SharedTokens(
        Batch(text.ids, text.mask),
        documents=text.main_documents().tolist(),
        level="sequence" if how.level == "sequence" else "token",
        drop_first=how.drop_first,
        pooling=how.pooling or "mean",
    )


def documents_of(text: str | Path | Sequence[Document], split: Split | None) -> list[Document]:
    """The documents of a file, a folder, or a list, which may also have pairs of texts."""
    if isinstance(text, (str, Path)):
        return [document for _, document in read_documents(text, split=split_of(text, split))]
    if not len(text):
        raise InvalidInput("The text has no documents: give at least one.")
    if split is not None:
        raise InvalidInput(f"split={split!r} has a meaning only for files: documents are given here.")
    return list(text)


def shared_documents(
    systems: Sequence[System], documents: Sequence[Document], how: HowToRead
) -> SharedTokens:
    """Documents, or pairs of texts, one passage each, right-padded; longer ones are cut."""
    check_same_tokens(systems, USE_WORDS)
    length = passage_length(systems, how.length)
    if how.bos is not None:
        raise InvalidInput("bos is for packed text; documents begin as their tokenizer begins them.")
    width = length if how.padding == "keep" else None
    return SharedTokens(
        tokenise(systems[0].tokenizer, documents, length=length, width=width),
        documents=range(len(documents)),
        level="sequence" if how.level == "sequence" else "token",
        padding=how.padding,
        drop_first=how.drop_first,
        pooling=how.pooling or "mean",
    )


def own_tokens(
    systems: Sequence[System],
    documents: Sequence[str],
    how: HowToRead,
    *,
    seed: int = 0,
) -> OwnTokens:
    """Words, or whole documents, as every model's own tokenizer cuts them.

    Of very many passages a seeded sample is taken.
    """
    from thinkalike.systems.texts import Reader

    if how.level == "word":
        pieces, of_document = _sampled(*cut_by_words(documents, how.length or WORDS_AT_ONCE), seed=seed)
        spans = [[match.span() for match in WORD.finditer(piece)] for piece in pieces]
    else:
        pieces, of_document = _sampled(list(documents), list(range(len(documents))), seed=seed)
        spans = [[(0, len(piece))] for piece in pieces]
    stimuli = _as_stimuli(pieces, spans)
    found = [
        Reader(
            tokenizer=system.tokenizer,
            name=system.name,
            pooling=how.pooling or ("last" if how.level == "word" else "mean"),
            bos=how.bos,
            drop_first=how.drop_first,
            max_length=system.max_length,
        ).read(stimuli)
        for system in systems
    ]
    # A row that one model has no token left for, after drop_first, is left out of all.
    in_all = set(found[0].rows).intersection(*(other.rows for other in found[1:]))
    common = [row for row in found[0].rows if row in in_all]
    places = []
    for sequences in found:
        place_of = {row: place for place, row in enumerate(sequences.rows)}
        places.append(np.array([place_of[row] for row in common], dtype=np.int64))
    texts = np.array([int(row.partition("/")[0]) for row in common], dtype=np.int64)
    return OwnTokens(found, places, texts, of_document)


def cut_by_words(documents: Sequence[str], n_words: int) -> tuple[list[str], list[int]]:
    """Documents cut into pieces of at most `n_words` words, and the document of each piece."""
    pieces, of_document = [], []
    for number, document in enumerate(documents):
        starts = [match.start() for match in WORD.finditer(document)][::n_words]
        for start, end in pairwise([*starts, len(document)]):
            pieces.append(document[start:end].rstrip())
            of_document.append(number)
    if not pieces:
        raise InvalidInput("The text has no word in it.")
    return pieces, of_document


def _sampled(pieces: list[str], of_document: list[int], *, seed: int) -> tuple[list[str], list[int]]:
    """At most `MOST_PASSAGES` of the pieces, in their order."""
    if len(pieces) <= MOST_PASSAGES:
        return pieces, of_document
    drawn = np.sort(np.random.default_rng(seed).choice(len(pieces), MOST_PASSAGES, replace=False))
    return [pieces[k] for k in drawn], [of_document[k] for k in drawn]


def _as_stimuli(pieces: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> Stimuli:
    """Every span an item, named PIECE/NUMBER."""
    rows = [
        (f"{piece}/{k}", str(piece), pieces[piece][start:end], start, end)
        for piece, own in enumerate(spans)
        for k, (start, end) in enumerate(own)
    ]
    items = pd.DataFrame(rows, columns=["item", "sentence", "word", "start", "end"]).set_index("item")
    sentences = pd.Series(list(pieces), index=[str(k) for k in range(len(pieces))])
    return Stimuli(pd.DataFrame(index=items.index), items=items, sentences=sentences)
