"""Running text → packed chunks of tokens: what CKA and stitching read.

Documents are tokenised one after another, each followed by the end-of-text token, and the stream is cut into
chunks of equal length: no token twice, and no padding unless the rest of the text is wanted too.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Literal, TextIO

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Split = Literal["files", "paragraphs", "lines"]
SPLITS = ("files", "paragraphs", "lines")
Ints = npt.NDArray[np.int64]

PIECE = 1_000_000  # characters of a file read and tokenised at a time
PADDING = -1  # the document of a token that fills the last chunk

# Capitals, digits, apostrophes, accents, signs and runs of spaces: where tokenizers part ways.
_PROBE = "The 3 women didn't see  Zoë's naïve café, 1,024 times!\nWhy? 🙂 — \tSo it goes."


@dataclass(frozen=True, eq=False, repr=False)
class PackedText:
    """Chunks of equal length, and the document that each token comes from."""

    ids: Ints = field()
    """(n_chunks, length) token ids"""
    documents: Ints = field()
    """(n_chunks, length) number of each token's document, the end-of-text token included; −1 for padding"""
    starts: Ints
    """(n_chunks,) place of each chunk's first token of text in the whole stream"""
    names: tuple[str, ...]
    """Of the documents, by number"""
    tokenizer: str
    """Fingerprint of the tokenizer, see `tokenizer_fingerprint`"""
    n_left_out: int
    """Tokens read after the last chunk"""

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"PackedText({len(self)} chunks of {self.length} tokens from {len(self.names)} documents)"

    @property
    def length(self) -> int:
        return int(self.ids.shape[1])

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """(n_chunks, length) True for tokens, False for padding."""
        return self.documents != PADDING

    @property
    def digest(self) -> str:
        """Hex string over tokens, documents and tokenizer."""
        sha = hashlib.sha256(f"{self.tokenizer} {self.ids.shape} {self.names}".encode())
        sha.update(self.ids.tobytes())
        sha.update(self.documents.tobytes())
        return sha.hexdigest()

    def main_documents(self) -> Ints:
        """(n_chunks,) the document that most tokens of each chunk come from; the earlier one of equals."""
        return np.array([np.bincount(row[row != PADDING]).argmax() for row in self.documents], dtype=np.int64)


def pack(
    text: str | Path | Iterable[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    length: int = 256,
    split: Split = "files",
    bos: bool = False,
    partial: bool = False,
    max_chunks: int | None = None,
) -> PackedText:
    """Cut running text into chunks of `length` tokens.

    Parameters
    ----------
    text
        The path of a text file or of a folder of `.txt` files, or the documents themselves.
    split
        What a document is in a file: the whole file, a paragraph (ended by an empty line), or a line. A file
        of any size will do: it is read as it comes. A long document is tokenised a million characters at a
        time, cut at an end of line.
    bos
        Begin every chunk with the tokenizer's beginning-of-sequence token; it counts towards the length.
    partial
        Keep what is left after the last whole chunk too, filled up with padding.
    max_chunks
        Stop reading after so many.
    """
    head = _first_token(tokenizer) if bos else None
    body = length - (head is not None)
    if body < 1:
        raise InvalidInput(f"Chunks of length={length} hold no text: choose a length of at least {1 + bos}.")
    enough = None if max_chunks is None else max_chunks * body
    ids, owners, names = _stream(text, tokenizer, split, enough)
    n_tokens = len(ids)
    n_chunks = -(-n_tokens // body) if partial else n_tokens // body
    n_chunks = n_chunks if max_chunks is None else min(n_chunks, max_chunks)
    if n_chunks == 0:
        raise InvalidInput(
            f"The text has {n_tokens} tokens, fewer than one chunk of {body}: "
            "give a longer text or a smaller length, or keep the rest with partial=True."
        )
    # Only so that `ids` can be read as text: a model is given its own padding (`systems.calling.arguments`).
    chunks = _chunks(ids, n_chunks, body, fill=_padding_token(tokenizer))
    of = _chunks(owners, n_chunks, body, fill=PADDING)
    if head is not None:
        chunks = np.column_stack([np.full(n_chunks, head), chunks])
        of = np.column_stack([of[:, 0], of])
    starts = np.arange(n_chunks, dtype=np.int64) * body
    n_left_out = max(n_tokens - n_chunks * body, 0)
    return PackedText(chunks, of, starts, names, tokenizer_fingerprint(tokenizer), n_left_out)


def _stream(
    text: str | Path | Iterable[str], tokenizer: PreTrainedTokenizerBase, split: Split, enough: int | None
) -> tuple[Ints, Ints, tuple[str, ...]]:
    """The tokens of all documents, of each the number of its document, and the documents' names."""
    end = _end_token(tokenizer)
    ids: list[Ints] = []
    owners: list[Ints] = []
    names: list[str] = []
    n_tokens = 0
    for number, (name, pieces) in enumerate(_documents(text, split)):
        names.append(name)
        for tokens in itertools.chain((_tokens(tokenizer, piece) for piece in pieces), [[end]]):
            ids.append(np.array(tokens, dtype=np.int64))
            owners.append(np.full(len(tokens), number, dtype=np.int64))
            n_tokens += len(tokens)
            if enough is not None and n_tokens >= enough:
                return np.concatenate(ids), np.concatenate(owners), tuple(names)
    return np.concatenate(ids), np.concatenate(owners), tuple(names)


def _tokens(tokenizer: PreTrainedTokenizerBase, piece: str) -> list[int]:
    return list(tokenizer(piece, add_special_tokens=False, verbose=False)["input_ids"])


def _chunks(stream: Ints, n_chunks: int, body: int, *, fill: int) -> Ints:
    """The first chunks of the stream, (n_chunks, body), filled up if it is too short."""
    missing = max(n_chunks * body - len(stream), 0)
    return np.pad(stream, (0, missing), constant_values=fill)[: n_chunks * body].reshape(n_chunks, body)


def split_of(text: object, split: Split | None) -> Split:
    """What a document is: a file of a folder, a paragraph of a file, unless it is said."""
    if split is not None:
        return split
    return "files" if isinstance(text, (str, Path)) and Path(text).is_dir() else "paragraphs"


def read_documents(text: str | Path | Iterable[str], *, split: Split = "files") -> Iterator[tuple[str, str]]:
    """(name, document) one by one; empty ones are passed over, and none at all is an error."""
    for name, pieces in _documents(text, split):
        yield name, "".join(pieces)


def _documents(text: str | Path | Iterable[str], split: Split) -> Iterator[tuple[str, Iterator[str]]]:
    """(name, pieces) of the documents that have any text."""
    n_found = 0
    for name, pieces in _all_documents(text, split):
        first = next((piece for piece in pieces if piece.strip()), None)
        if first is not None:
            n_found += 1
            yield name, itertools.chain([first], pieces)
    if not n_found:
        where = f"{text} has" if isinstance(text, (str, Path)) else "The documents have"
        raise InvalidInput(f"{where} no text: give a file, a folder of .txt files, or documents with words.")


def _all_documents(text: str | Path | Iterable[str], split: Split) -> Iterator[tuple[str, Iterator[str]]]:
    if split not in SPLITS:
        raise UnknownName.among("way to split files into documents", split, SPLITS)
    if not isinstance(text, (str, Path)):
        yield from ((str(number), iter([document])) for number, document in enumerate(text))
        return
    for path in _files(Path(text)):
        if split == "files":
            yield path.stem, _pieces(path)
        else:
            for line, part in _parts(path, by_line=split == "lines"):
                yield f"{path.stem}:{line}", iter([part])


@contextmanager
def _reading(path: Path) -> Iterator[TextIO]:
    try:
        with path.open(encoding="utf-8") as file:
            yield file
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not text in UTF-8 ({error.reason}): convert it first.") from error


def _pieces(path: Path) -> Iterator[str]:
    """The file in pieces that end with a line, so that none but very long ones is cut inside a word."""
    with _reading(path) as file:
        while piece := file.read(PIECE):
            yield piece + file.readline(PIECE)


def _files(path: Path) -> Sequence[Path]:
    with suppress(OSError):  # a text taken for a path may be too long for one
        if path.is_file():
            _refuse_tables(path)
            return [path]
        if path.is_dir():
            return sorted(path.rglob("*.txt"))
    where = shorten(str(path), 80)
    raise InvalidInput(
        f"There is no text at {where}: give a file, a folder of .txt files, or a list of texts."
    )


def _refuse_tables(path: Path) -> None:
    """A table would be read as it stands in the file, with its commas, numbers and names of columns."""
    from thinkalike.stimuli.table_files import JSON_LINES, SUFFIXES

    if path.suffix.lower() in (*SUFFIXES, *JSON_LINES):
        raise InvalidInput(
            f"{path} is a table, and what is wanted is running text: save its texts as a .txt file, one "
            "paragraph each."
        )


def _parts(path: Path, *, by_line: bool) -> Iterator[tuple[int, str]]:
    """Lines or paragraphs, each with the number of its first line."""
    lines: list[str] = []
    first = 1
    with _reading(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                first = first if lines else number
                lines.append(line)
            if lines and (by_line or not line.strip()):
                yield first, "".join(lines).rstrip("\n")
                lines = []
    if lines:
        yield first, "".join(lines).rstrip("\n")


def _end_token(tokenizer: PreTrainedTokenizerBase) -> int:
    """What stands between documents: the end-of-text token, or the separator of BERT and its kin."""
    for token in (tokenizer.eos_token_id, tokenizer.sep_token_id):
        if token is not None:
            return int(token)
    raise InvalidInput(
        "The tokenizer has neither an end-of-text nor a separator token to put between documents: "
        "set tokenizer.eos_token."
    )


def _padding_token(tokenizer: PreTrainedTokenizerBase) -> int:
    padding = tokenizer.pad_token_id
    return _end_token(tokenizer) if padding is None else int(padding)


def _first_token(tokenizer: PreTrainedTokenizerBase) -> int:
    for token in (tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    raise InvalidInput("bos=True, but the tokenizer has no beginning-of-sequence token: leave it out.")


def tokenizer_fingerprint(tokenizer: PreTrainedTokenizerBase) -> str:
    """Hex string over the vocabulary and the split of a difficult text, special tokens around it left out."""
    sha = hashlib.sha256(repr(sorted(tokenizer.get_vocab().items())).encode())
    sha.update(repr(tokenizer(_PROBE, add_special_tokens=False)["input_ids"]).encode())
    return sha.hexdigest()


def same_tokenizer(a: PreTrainedTokenizerBase, b: PreTrainedTokenizerBase) -> bool:
    """Do both split text into the same tokens with the same numbers?"""
    return a is b or tokenizer_fingerprint(a) == tokenizer_fingerprint(b)
