"""From what the caller gives to three sets of examples: to fit φ, to know when to stop, to judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.text import PackedText, Split, pack, read_documents, split_of
from thinkalike.stitching.examples import Examples, LabelledTexts, labelled_examples, text_examples
from thinkalike.stitching.statistics import FEWEST
from thinkalike.systems.batch import Ints
from thinkalike.systems.system import System

RunningText = str | Path | Sequence[str]
Text = RunningText | LabelledTexts

CHARACTERS_OF_A_TOKEN = 8  # more than any tokenizer has on English; only bounds what is read
SHARES = {"test": 0.2, "validation": 0.1}


@dataclass(frozen=True, eq=False)
class Material:
    """Examples by use; `fit` and `validation` are None where nothing is fitted.

    Attributes
    ----------
    unit
        What intervals are over: "documents", "passages" or "examples".
    """

    test: Examples
    fit: Examples | None
    validation: Examples | None
    unit: str
    cautions: tuple[str, ...] = ()


def read_material(
    text: Text,
    test: Text | None,
    top: System,
    *,
    parts: Sequence[str],
    length: int,
    split: Split | None,
    max_tokens: int,
    seed: int,
) -> Material:
    """Divide what was given into the `parts` that are needed, whole documents each.

    With `test`, all of `text` is for fitting. No document is in two parts.
    """
    if isinstance(text, LabelledTexts) or isinstance(test, LabelledTexts):
        return _labelled(text, test, top, parts, length, seed)
    if top.task == "classification":
        raise InvalidInput(
            f"{top.name} is a classifier and was given running text: give LabelledTexts(texts, labels)."
        )
    documents = _documents(text, split, max_tokens)
    apart = None if test is None else _documents(test, split, max_tokens)
    wanted = [part for part in parts if part != "test" or apart is None]
    divided = _divided(documents, wanted, seed) if len(documents) >= len(wanted) else None
    if divided is None:
        return _by_passages(documents, apart, wanted, top, length, max_tokens, seed)
    if apart is not None:
        divided["test"] = apart
    shares = dict.fromkeys(divided, max_tokens) | _sizes(max_tokens, wanted)
    packed = {part: _pack(own, top, length, shares[part]) for part, own in divided.items()}
    return _material(packed, top)


def _material(packed: dict[str, PackedText], top: System, *cautions: str) -> Material:
    n_documents = len(np.unique(packed["test"].documents[packed["test"].mask]))
    by_document = n_documents >= FEWEST
    if not by_document:
        cautions = (
            *cautions,
            f"Documents in the text to judge by: {n_documents}, too few to resample. Intervals are over "
            "passages and may be too narrow, for neighbouring passages are alike.",
        )
    made = {
        part: text_examples(one, task=top.task, tokenizer=top.tokenizer, by_document=by_document)
        for part, one in packed.items()
    }
    unit = "documents" if by_document else "passages"
    return Material(made["test"], made.get("fit"), made.get("validation"), unit, tuple(cautions))


def _by_passages(
    documents: list[str],
    apart: list[str] | None,
    parts: Sequence[str],
    top: System,
    length: int,
    max_tokens: int,
    seed: int,
) -> Material:
    """Too few documents to divide: divide the passages, in the order of the text."""
    whole = _pack(documents, top, length, max_tokens)
    if len(whole) < len(parts):
        raise InvalidInput(
            f"The text has {len(whole)} passages of {length} tokens, too few to fit φ on some and judge it "
            "on others: give a longer text, a smaller length, or another text as test=…"
        )
    cuts = _sizes(len(whole), parts)
    places = np.split(np.arange(len(whole)), np.cumsum(list(cuts.values()))[:-1])
    packed = {part: _rows(whole, rows) for part, rows in zip(cuts, places, strict=True)}
    if apart is not None:
        packed["test"] = _pack(apart, top, length, max_tokens)
    note = () if len(parts) < 2 else ("The text is one document: it was cut into parts to fit and to judge.",)
    return _material(packed, top, *note)


def _labelled(
    data: Text, test: Text | None, top: System, parts: Sequence[str], length: int, seed: int
) -> Material:
    if (
        top.task != "classification"
        or not isinstance(data, LabelledTexts)
        or not (test is None or isinstance(test, LabelledTexts))
    ):
        raise InvalidInput(
            f"Labelled texts are for sequence classifiers, and {top.name} is a {top.task} model: give "
            "running text, or two …ForSequenceClassification models."
        )
    n_classes = int(getattr(top.model.config, "num_labels", 0))
    for one in (data,) if test is None else (data, test):
        worst = max(one.labels) if min(one.labels) >= 0 else min(one.labels)
        if not 0 <= worst < n_classes:
            raise InvalidInput(
                f"There is a label {worst}, but {top.name} has the classes 0 to {n_classes - 1}: number the "
                "classes as its output layer does."
            )
    wanted = [part for part in parts if part != "test" or test is None]
    if len(data) < len(wanted):
        raise InvalidInput(f"{len(data)} labelled texts cannot be divided into {' and '.join(wanted)}.")
    order = np.random.default_rng(seed).permutation(len(data))
    cuts = _sizes(len(data), wanted)
    divided = np.split(order, np.cumsum(list(cuts.values()))[:-1])
    texts = {part: data.subset(np.sort(rows)) for part, rows in zip(cuts, divided, strict=True)}
    if test is not None:
        texts["test"] = test
    made = {
        part: labelled_examples(own, tokenizer=top.tokenizer, length=length) for part, own in texts.items()
    }
    return Material(made["test"], made.get("fit"), made.get("validation"), "examples")


def _documents(text: RunningText, split: Split | None, max_tokens: int) -> list[str]:
    """As many documents as `max_tokens` can need."""
    enough = max_tokens * CHARACTERS_OF_A_TOKEN
    found: list[str] = []
    for _, document in read_documents(text, split=split_of(text, split)):
        found.append(document[:enough])
        enough -= len(document)
        if enough <= 0:
            break
    return found


def _divided(documents: list[str], parts: Sequence[str], seed: int) -> dict[str, list[str]] | None:
    """Documents by part, each near its share of the characters; None if one part would be empty.

    A document that would overfill a part goes to the one that has no share of its own.
    """
    sizes = [len(document) for document in documents]
    rest = [int(row) for row in np.random.default_rng(seed).permutation(len(documents))]
    found: dict[str, list[int]] = {}
    for part in parts if len(parts) > 1 else ():
        if part not in SHARES:
            continue
        room = SHARES[part] * sum(sizes)
        found[part] = []
        for row in list(rest):
            if sizes[row] <= room:
                found[part].append(row)
                rest.remove(row)
                room -= sizes[row]
    main = next(part for part in parts if part not in found)
    found[main] = rest
    if not all(found.values()):
        return None
    return {part: [documents[k] for k in sorted(rows)] for part, rows in found.items()}


def _sizes(n: int, parts: Sequence[str]) -> dict[str, int]:
    """How many of `n` go to each part: at least one, the rest to the first that has no share of its own."""
    sizes = {part: max(1, round(SHARES[part] * n)) for part in parts if part in SHARES and len(parts) > 1}
    main = next(part for part in parts if part not in sizes)
    return {main: n - sum(sizes.values()), **sizes}


def _pack(documents: Iterable[str], top: System, length: int, max_tokens: int) -> PackedText:
    return pack(
        documents,
        top.tokenizer,
        length=length,
        bos=top.task == "masked",  # as such models were trained: behind their first token
        partial=True,
        max_chunks=max(1, max_tokens // length),
    )


def _rows(packed: PackedText, rows: Ints) -> PackedText:
    return PackedText(
        packed.ids[rows], packed.documents[rows], packed.starts[rows], packed.names, packed.tokenizer, 0
    )
