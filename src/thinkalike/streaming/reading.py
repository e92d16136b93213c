"""Text → passages that every model reads: packed tokens, documents one by one, pairs, or words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.table import Stimuli
from thinkalike.stimuli.text import (
    PackedText,
    Split,
    pack,
    read_documents,
    same_tokenizer,
    tokenizer_fingerprint,
)
from thinkalike.streaming.passages import Ints, OwnTokens, Padding, SharedTokens

Level = Literal["token", "word", "sequence"]
LEVELS = ("token", "word", "sequence")
WORD = re.compile(r"\w+(?:[-'’]\w+)*")
WORDS_AT_ONCE = 64  # in a passage, so that its tokens fit any model
MOST_TOKENS = 1024  # in a passage, as in Brown et al. 2023
MOST_OF_A_TEXT = 20_000_000  # tokens that are packed
MOST_PASSAGES = 5_000  # that each model reads in its own tokens

Document = str | tuple[str, str]


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


@dataclass(frozen=True)
class ReadingModel:
    """A model's name, its tokenizer, and how many tokens it reads (None: any number)."""

    name: str
    tokenizer: Any
    max_length: int | None


def check_same_tokens(models: Sequence[ReadingModel]) -> None:
    """Refuse models whose tokenizers differ: their tokens are not the same items."""
    first = models[0]
    for other in models[1:]:
        if not same_tokenizer(first.tokenizer, other.tokenizer):
            sizes = f"{len(first.tokenizer)} against {len(other.tokenizer)} tokens"
            raise InvalidInput(
                f"{first.name} and {other.name} split text differently ({sizes}): token by token they cannot "
                "be compared. Use level='word', where each reads its own tokens."
            )


def packed_tokens(
    models: Sequence[ReadingModel],
    text: PackedText | str | Path | Sequence[str],
    how: HowToRead,
) -> SharedTokens:
    """Running text in passages of equal length, documents joined."""
    check_same_tokens(models)
    if not isinstance(text, PackedText):
        length, tokenizer = passage_length(models, how.length), models[0].tokenizer
        text = pack(
            text,
            tokenizer,
            length=length,
            split=_split_of(text, how.split),
            bos=bool(how.bos),
            max_chunks=max(1, MOST_OF_A_TEXT // length),
        )
    elif text.tokenizer != tokenizer_fingerprint(models[0].tokenizer):
        raise InvalidInput(
            f"The text was packed with another tokenizer than that of {models[0].name}: pack it with that."
        )
    else:
        passage_length(models, text.length)
    return SharedTokens(
        ids=text.ids,
        mask=text.mask,
        documents=text.main_documents().tolist(),
        level="sequence" if how.level == "sequence" else "token",
        drop_first=how.drop_first,
        pooling=how.pooling or "mean",
    )


def documents_of(text: str | Path | Sequence[Document], split: Split | None) -> list[Document]:
    """The documents of a file, a folder, or a list, which may also have pairs of texts."""
    if isinstance(text, (str, Path)):
        return [document for _, document in read_documents(text, split=_split_of(text, split))]
    if not len(text):
        raise InvalidInput("The text has no documents: give at least one.")
    if split is not None:
        raise InvalidInput(f"split={split!r} has a meaning only for files: documents are given here.")
    return list(text)


def _split_of(text: Any, split: Split | None) -> Split:
    """What a document is: a file of a folder, a paragraph of a file, unless it is said."""
    if split is not None:
        return split
    return "files" if isinstance(text, (str, Path)) and Path(text).is_dir() else "paragraphs"


def shared_documents(
    models: Sequence[ReadingModel], documents: Sequence[Document], how: HowToRead
) -> SharedTokens:
    """Documents, or pairs of texts, one passage each, right-padded; longer ones are cut."""
    check_same_tokens(models)
    length = passage_length(models, how.length)
    pairs = [document if isinstance(document, tuple) else (document, None) for document in documents]
    texts, seconds = [a for a, _ in pairs], [b for _, b in pairs]
    tokenizer = models[0].tokenizer
    if how.bos is not None:
        raise InvalidInput("bos is for packed text; documents begin as their tokenizer begins them.")
    encoded = tokenizer(
        texts,
        None if seconds[0] is None else seconds,
        truncation=True,
        max_length=length,
        padding=False,
        return_token_type_ids=seconds[0] is not None,
        verbose=False,
    )
    ids = _filled(encoded["input_ids"], length if how.padding == "keep" else None)
    mask = _filled([[1] * len(tokens) for tokens in encoded["input_ids"]], ids.shape[1]).astype(bool)
    segments = encoded.get("token_type_ids")
    return SharedTokens(
        ids=ids,
        mask=mask,
        documents=range(len(documents)),
        level="sequence" if how.level == "sequence" else "token",
        padding=how.padding,
        drop_first=how.drop_first,
        pooling=how.pooling or "mean",
        segments=None if segments is None else _filled(segments, ids.shape[1]),
    )


def own_tokens(
    models: Sequence[ReadingModel],
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
            tokenizer=model.tokenizer,
            name=model.name,
            pooling=how.pooling or ("last" if how.level == "word" else "mean"),
            bos=how.bos,
            drop_first=how.drop_first,
            max_length=model.max_length,
        ).read(stimuli)
        for model in models
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


def passage_length(models: Sequence[ReadingModel], length: int | None) -> int:
    """As asked for, if every model can read that much; else what the shortest reader reads, 1,024 at most."""
    for model in models:
        if length is not None and model.max_length is not None and length > model.max_length:
            raise InvalidInput(
                f"length={length}, but {model.name} reads at most {model.max_length} tokens: choose fewer."
            )
    return length or min(MOST_TOKENS, *(model.max_length or MOST_TOKENS for model in models))


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


def _filled(rows: Sequence[Sequence[int]], width: int | None) -> Ints:
    """Rows of unequal length as one matrix, zeros at the end."""
    matrix = np.zeros((len(rows), width or max(map(len, rows), default=0)), dtype=np.int64)
    for row, values in zip(matrix, rows, strict=True):
        row[: len(values)] = values
    return matrix
