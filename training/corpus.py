"""A folder of text → clean documents without duplicates, split into training and held-out ones."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from thinkalike.errors import InvalidInput
from training.sources import read_text

SHINGLE = 8  # words; runs this long are shared by editions of one book, hardly by two books
DUPLICATE = 0.5  # share of a document's shingles already seen that makes it a copy
HELD_OUT = 0.025  # share of each source's characters

_PUNCTUATION = str.maketrans(
    {"“": '"', "”": '"', "‘": "'", "’": "'", "—": "--", "–": "-", "…": "...", "\ufeff": ""}
)
_GUTENBERG_START = re.compile(r"^\*\*\* ?START OF TH[^\n]*\n", re.MULTILINE)
_GUTENBERG_END = re.compile(r"^(End of (the )?Project Gutenberg|\*\*\* ?END OF TH)", re.MULTILINE)
_EDITORIAL = re.compile(r"\[(?:Laughter|Applause|Illustration|Footnote|Transcriber)[^\]]*\]", re.IGNORECASE)
_PRODUCED_BY = re.compile(r"^(Produced by|E-text prepared by)[^\n]*(\n[^\n]+)*", re.MULTILINE)
# A sentence ends at . ! or ?, possibly quoted, before a capital; not after a title or an initial.
_SENTENCE_END = re.compile(
    r"(?<![A-Z])(?<!Mr)(?<!Mrs)(?<!Dr)(?<!St)(?<!Hon)(?<!Messrs)[.!?][\"')]*\s+(?=[\"'(]?[A-Z])"
)


@dataclass(frozen=True)
class Document:
    """One clean document: its place in the folder and its paragraphs."""

    source: str
    name: str
    paragraphs: tuple[str, ...]

    @property
    def n_characters(self) -> int:
        return sum(len(paragraph) + 1 for paragraph in self.paragraphs)


def clean(text: str) -> tuple[str, ...]:
    """Paragraphs of running text: no licence, no markup, plain punctuation, single spaces, lines joined."""
    text = text.replace("\r\n", "\n")
    if start := _GUTENBERG_START.search(text):
        end = _GUTENBERG_END.search(text, start.end())
        text = text[start.end() : end.start() if end else None]
        text = _PRODUCED_BY.sub("", text, count=1)
    text = _EDITORIAL.sub("", text.translate(_PUNCTUATION)).replace("_", "")
    paragraphs = (" ".join(block.split()) for block in re.split(r"\n\s*\n", text))
    return tuple(paragraph for paragraph in paragraphs if re.search(r"[a-z]", paragraph))


def read_documents(folder: Path) -> list[Document]:
    """Every `.txt` file under `folder`, cleaned; the first folder below it is the source."""
    paths = sorted(folder.rglob("*.txt"))
    if not paths:
        raise InvalidInput(f"{folder} holds no .txt file: give a folder with one text file per document.")
    documents = []
    for path in paths:
        parts = path.relative_to(folder).with_suffix("").parts
        source = parts[0] if len(parts) > 1 else folder.name
        documents.append(Document(source, "/".join(parts[1:] or parts), clean(read_text(path))))
    return [document for document in documents if document.paragraphs]


def _shingles(document: Document) -> set[int]:
    words = re.findall(r"[a-z]+", " ".join(document.paragraphs).lower())
    runs = zip(*(words[k:] for k in range(SHINGLE)), strict=False)
    return {_digest(" ".join(run)) for run in runs}


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def drop_duplicates(documents: Iterable[Document]) -> tuple[list[Document], list[Document]]:
    """Kept and dropped: a document is a copy if most of its runs of eight words stand in one before it."""
    seen: set[int] = set()
    kept, dropped = [], []
    for document in documents:
        shingles = _shingles(document)
        if shingles and len(shingles & seen) > DUPLICATE * len(shingles):
            dropped.append(document)
        else:
            kept.append(document)
            seen |= shingles
    return kept, dropped


def split(documents: Sequence[Document], *, share: float = HELD_OUT) -> tuple[list[Document], list[Document]]:
    """Training and held-out documents: of each source at most `share` of the characters, but at least one.

    Documents are considered in the order of a hash of their names, so that the choice depends on neither the
    machine nor the other sources.
    """
    held: set[tuple[str, str]] = set()
    for source in sorted({document.source for document in documents}):
        members = [document for document in documents if document.source == source]
        room = share * sum(document.n_characters for document in members)
        taken = 0
        for document in sorted(members, key=lambda d: _digest(f"{d.source}/{d.name}")):
            if taken + document.n_characters <= room:
                held.add((source, document.name))
                taken += document.n_characters
        if not taken and len(members) > 1:
            smallest = min(members, key=lambda d: d.n_characters)
            held.add((source, smallest.name))
    training = [d for d in documents if (d.source, d.name) not in held]
    return training, [d for d in documents if (d.source, d.name) in held]


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph; joined by single spaces they give it back."""
    ends = [match.end() for match in _SENTENCE_END.finditer(paragraph)]
    pieces = (paragraph[a:b].strip() for a, b in zip([0, *ends], [*ends, len(paragraph)], strict=True))
    return [piece for piece in pieces if piece]


def bare_sentences(documents: Iterable[Document], *, shortest: int = 4, longest: int = 24) -> list[str]:
    """Sentences as stimuli are written: `the boy sees Mary`, no full stop, no capital at the start.

    Only sentences of `shortest` to `longest` words without quotation, brackets or digits are taken. The first
    word loses its capital if the text writes it small more often than not, so names keep theirs.
    """
    plain = re.compile(r"[A-Za-z][A-Za-z ,;'-]*[.!?]+")
    taken, words = [], Counter[str]()
    for document in documents:
        for paragraph in document.paragraphs:
            words.update(re.findall(r"(?<=[a-z,;] )[A-Za-z']+", paragraph))
            taken += [
                s
                for s in sentences(paragraph)
                if plain.fullmatch(s) and shortest <= s.count(" ") + 1 <= longest
            ]
    bare = (_decapitalise(sentence.rstrip(".!?"), words) for sentence in taken)
    return list(dict.fromkeys(bare))


def _decapitalise(sentence: str, words: Counter[str]) -> str:
    first, space, rest = sentence.partition(" ")
    small = first.lower()
    return (small if words[small] > words[first] else first) + space + rest
