"""The prepared corpus on disk: tokenizer, token arrays, held-out text and an account of what was done."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thinkalike.errors import StoreError
from training.batches import Tokens
from training.corpus import Document, bare_sentences, drop_duplicates, read_documents, split
from training.sources import write_text
from training.tokens import encode_running, encode_sentences, train_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

FIELDS = ("running", "running_starts", "bare", "bare_starts")
HELD_OUT = "held_out.txt"
ACCOUNT = "corpus.json"


def prepare(text: Path, out: Path) -> dict[str, object]:
    """Clean, de-duplicate, split and encode the folder `text` into `out`; return the account of it."""
    documents, dropped = drop_duplicates(read_documents(text))
    training, held_out = split(documents)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer(paragraph for document in training for paragraph in document.paragraphs)
    tokenizer.save_pretrained(out / "tokenizer")
    bare = bare_sentences(training)
    arrays = (*encode_running(tokenizer, training), *encode_sentences(tokenizer, bare))
    for name, array in zip(FIELDS, arrays, strict=True):
        _save(out / f"{name}.npy", array)
    write_text(out / HELD_OUT, as_text(held_out))
    account = {
        "documents": len(documents),
        "dropped_as_copies": sorted(f"{d.source}/{d.name}" for d in dropped),
        "training_characters": _characters(training),
        "training_tokens": len(arrays[0]),
        "bare_sentences": len(bare),
        "bare_tokens": len(arrays[2]),
        "held_out_documents": [f"{d.source}/{d.name}" for d in held_out],
        "held_out_characters": _characters(held_out),
    }
    write_text(out / ACCOUNT, json.dumps(account, indent=1))  # last: it marks the folder as complete
    return account


def is_prepared(folder: Path) -> bool:
    return (folder / ACCOUNT).exists()


def load_tokens(folder: Path) -> Tokens:
    """The token arrays of a prepared corpus."""
    if not is_prepared(folder):
        raise StoreError(f"{folder} is not a prepared corpus: run `python -m training prepare` first.")
    return Tokens(**{name: np.load(folder / f"{name}.npy") for name in FIELDS})


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast.from_pretrained(folder / "tokenizer")


def as_text(documents: list[Document]) -> str:
    """One paragraph a line, an empty line between documents."""
    return "\n".join("\n".join(document.paragraphs) + "\n" for document in documents)


def _characters(documents: list[Document]) -> dict[str, int]:
    counts = Counter[str]()
    for document in documents:
        counts[document.source] += document.n_characters
    return dict(sorted(counts.items()))


def _save(path: Path, array: np.ndarray) -> None:
    part = path.with_name("part-" + path.name)
    np.save(part, array)
    os.replace(part, path)
