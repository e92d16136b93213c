"""Running text → packed chunks of tokens: what CKA and stitching read.

Documents are tokenised one after another, each followed by the end-of-text token, and the stream is cut into
chunks of equal length: no padding, and no token twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput, UnknownName

Split = Literal["files", "paragraphs", "lines"]
SPLITS = ("files", "paragraphs", "lines")
Ints = npt.NDArray[np.int64]

# Capitals, digits, apostrophes, accents, signs and runs of spaces: where tokenizers part ways.
_PROBE = "The 3 women didn't see  Zoë's naïve café, 1,024 times!\nWhy? 🙂 — \tSo it goes."


@dataclass(frozen=True, eq=False, repr=False)
class PackedText:
    """Chunks of equal length, and the document that each token comes from."""

    ids: Ints = field()
    """(n_chunks, length) token ids"""
    documents: Ints = field()
    """(n_chunks, length) number of each token's document; the end-of-text token belongs to the one it ends"""
    names: tuple[str, ...]
    """Of the documents, by number"""
    tokenizer: str
    """Fingerprint of the tokenizer, see `tokenizer_fingerprint`"""
    n_left_out: int
    """Tokens after the last whole chunk"""

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"PackedText({len(self)} chunks of {self.length} tokens from {len(self.names)} documents)"

    @property
    def length(self) -> int:
        return int(self.ids.shape[1])

    @property
    def digest(self) -> str:
        """Hex string over tokens, documents and tokenizer."""
        sha = hashlib.sha256(f"{self.tokenizer} {self.ids.shape} {self.names}".encode())
        sha.update(self.ids.tobytes())
        sha.update(self.documents.tobytes())
        return sha.hexdigest()

    def main_documents(self) -> Ints:
        """(n_chunks,) the document that most tokens of each chunk come from; the earlier one of equals."""
        return np.array([np.bincount(row).argmax() for row in self.documents], dtype=np.int64)


def pack(
    text: str | Path | Iterable[str],
    tokenizer: Any,
    *,
    length: int = 256,
    split: Split = "files",
    bos: bool = False,
    max_chunks: int | None = None,
) -> PackedText:
    """Cut running text into chunks of `length` tokens.

    Parameters
    ----------
    text
        The path of a text file or of a folder of `.txt` files, or the documents themselves.
    split
        What a document is in a file: the whole file, a paragraph (ended by an empty line), or a line. The
        last two are read as they come, so that a file of any size will do.
    bos
        Begin every chunk with the tokenizer's beginning-of-sequence token; it counts towards the length.
    max_chunks
        Stop reading after so many.
    """
    if split not in SPLITS:
        raise UnknownName.among("way to split files into documents", split, SPLITS)
    head = _first_token(tokenizer) if bos else None
    body = length - (head is not None)
    if body < 1:
        raise InvalidInput(f"Chunks of length={length} hold no text: choose a length of at least {1 + bos}.")
    end = _end_token(tokenizer)
    names: list[str] = []
    ids: list[Ints] = []
    owners: list[Ints] = []
    n_tokens = 0
    for number, (name, document) in enumerate(read_documents(text, split=split)):
        tokens = tokenizer(document, add_special_tokens=False, verbose=False)["input_ids"]
        names.append(name)
        ids.append(np.array([*tokens, end], dtype=np.int64))
        owners.append(np.full(len(tokens) + 1, number, dtype=np.int64))
        n_tokens += len(tokens) + 1
        if max_chunks is not None and n_tokens >= max_chunks * body:
            break
    n_chunks = n_tokens // body if max_chunks is None else min(max_chunks, n_tokens // body)
    if n_chunks == 0:
        raise InvalidInput(
            f"The text has {n_tokens} tokens, fewer than one chunk of {body}: "
            "give a longer text or a smaller length."
        )
    cut = n_chunks * body
    chunks = np.concatenate(ids)[:cut].reshape(n_chunks, body)
    of = np.concatenate(owners)[:cut].reshape(n_chunks, body)
    if head is not None:
        chunks = np.column_stack([np.full(n_chunks, head), chunks])
        of = np.column_stack([of[:, 0], of])
    return PackedText(chunks, of, tuple(names), tokenizer_fingerprint(tokenizer), n_tokens - cut)


def read_documents(text: str | Path | Iterable[str], *, split: Split = "files") -> Iterator[tuple[str, str]]:
    """(name, document) one by one; empty ones are passed over, and none at all is an error."""
    n_found = 0
    for name, document in _documents(text, split):
        if document.strip():
            n_found += 1
            yield name, document
    if not n_found:
        where = f"{text} has" if isinstance(text, (str, Path)) else "The documents have"
        raise InvalidInput(f"{where} no text: give a file, a folder of .txt files, or documents with words.")


def _documents(text: str | Path | Iterable[str], split: Split) -> Iterator[tuple[str, str]]:
    if not isinstance(text, (str, Path)):
        yield from ((str(number), document) for number, document in enumerate(text))
        return
    for path in _files(Path(text)):
        if split == "files":
            yield path.stem, path.read_text(encoding="utf-8")
        else:
            yield from (
                (f"{path.stem}:{line}", part) for line, part in _parts(path, by_line=split == "lines")
            )


def _files(path: Path) -> Sequence[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InvalidInput(f"There is no text at {path}: give a file, a folder of .txt files, or documents.")
    return sorted(path.rglob("*.txt"))


def _parts(path: Path, *, by_line: bool) -> Iterator[tuple[int, str]]:
    """Lines or paragraphs, each with the number of its first line."""
    lines: list[str] = []
    first = 1
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                first = first if lines else number
                lines.append(line)
            if lines and (by_line or not line.strip()):
                yield first, "".join(lines).rstrip("\n")
                lines = []
    if lines:
        yield first, "".join(lines).rstrip("\n")


def _end_token(tokenizer: Any) -> int:
    """What stands between documents: the end-of-text token, or the separator of BERT and its kin."""
    for token in (tokenizer.eos_token_id, tokenizer.sep_token_id):
        if token is not None:
            return int(token)
    raise InvalidInput(
        "The tokenizer has neither an end-of-text nor a separator token to put between documents: "
        "set tokenizer.eos_token."
    )


def _first_token(tokenizer: Any) -> int:
    for token in (tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    raise InvalidInput("bos=True, but the tokenizer has no beginning-of-sequence token: leave it out.")


def tokenizer_fingerprint(tokenizer: Any) -> str:
    """Hex string over the vocabulary and the split of a difficult text, special tokens around it left out."""
    sha = hashlib.sha256(repr(sorted(tokenizer.get_vocab().items())).encode())
    sha.update(repr(tokenizer(_PROBE, add_special_tokens=False)["input_ids"]).encode())
    return sha.hexdigest()


def same_tokenizer(a: Any, b: Any) -> bool:
    """Do both split text into the same tokens with the same numbers?"""
    return a is b or tokenizer_fingerprint(a) == tokenizer_fingerprint(b)
