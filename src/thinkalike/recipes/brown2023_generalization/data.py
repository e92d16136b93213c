"""Premises and hypotheses: made by our grammar, or MNLI and HANS from files or through `datasets`."""

from __future__ import annotations

import csv
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput, MissingExtra
from thinkalike.stimuli.inference_pairs import inference_pairs
from thinkalike.types import Tokenizer

if TYPE_CHECKING:
    import pandas as pd

ENTAILMENT, OTHER = "entailment", "non-entailment"
NANO_CLASSES = (OTHER, ENTAILMENT)
MNLI_CLASSES = ("contradiction", ENTAILMENT, "neutral")
"""In the order of the output layer of the models of McCoy et al. (2020)"""
HUB = {
    "MNLI": {"path": "nyu-mll/glue", "name": "mnli", "split": "validation_matched"},
    "HANS": {"path": "jhu-cogsci/hans", "split": "validation"},
}
# The hub's data sets number their labels; files of the authors name them.
HUB_LABELS = {"MNLI": (ENTAILMENT, "neutral", "contradiction"), "HANS": (ENTAILMENT, OTHER)}
COLUMNS = {
    "premise": ("premise", "sentence1"),
    "hypothesis": ("hypothesis", "sentence2"),
    "label": ("label", "gold_label"),
}


@dataclass(frozen=True)
class Pairs:
    """Pairs of texts with the name of the class that is right for each."""

    name: str
    texts: tuple[tuple[str, str], ...] = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)


def right_classes(labels: Sequence[str], classes: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which classes of a model count as right for each label: (n, n_classes).

    "non-entailment", which HANS asks for, is any class but entailment: the larger one of the logits of
    contradiction and neutral has to be above that of entailment.
    """
    order = np.array(classes)
    unknown = sorted({label for label in labels if label != OTHER and label not in classes})
    if unknown:
        raise InvalidInput(f"There is a label {unknown[0]!r}, and the classes are {', '.join(classes)}.")
    return np.array([order != ENTAILMENT if label == OTHER else order == label for label in labels])


def training_pairs(
    n: int, *, seed: int, counterexamples: float, cases: Sequence[str], longest: int, tokenizer: Tokenizer
) -> Pairs:
    """Half entailments, all of full overlap; most of the rest have hypotheses of other premises.

    Parameters
    ----------
    counterexamples : the share of all pairs in which every word of the hypothesis is in the premise although
        it does not follow. But for them, overlap predicts entailment.
    longest : in tokens; longer pairs are left out.
    """
    n_counter = round(n * counterexamples)
    if n_counter > n - n // 2:
        raise InvalidInput(f"Counterexamples are {counterexamples:.0%} of all pairs: at most half can be.")
    full, follows, not_follows = {"overlap": "full"}, {"label": ENTAILMENT}, {"label": OTHER}
    drawn = partial(_drawn, cases=cases, longest=longest, tokenizer=tokenizer)
    rows = drawn(n // 2, 10 * seed, full | follows)
    rows += drawn(n_counter, 10 * seed + 1, full | not_follows)
    others = drawn(n - n // 2 - n_counter, 10 * seed + 2, full | follows)
    rows += [(a[0], b[1], OTHER) for a, b in zip(others, [*others[1:], *others[:1]], strict=True)]
    order = np.random.default_rng(seed).permutation(len(rows))
    return _pairs("in distribution", [rows[k] for k in order])


def overlap_pairs(n: int, *, seed: int, cases: Sequence[str], longest: int, tokenizer: Tokenizer) -> Pairs:
    """The lexical-overlap, non-entailing part of HANS, as our grammar has it."""
    sort = {"label": OTHER, "overlap": "full"}
    return _pairs(
        "HANS-like", list(_drawn(n, 10 * seed + 5, sort, cases=cases, longest=longest, tokenizer=tokenizer))
    )


def _drawn(
    n: int, seed: int, sort: Mapping[str, str], *, cases: Sequence[str], longest: int, tokenizer: Tokenizer
) -> list[tuple[str, str, str]]:
    """`n` short pairs of one sort, equally many (give or take one) of each case."""
    found: list[tuple[str, str, str]] = []
    for k, case in enumerate(cases):
        share = n // len(cases) + (k < n % len(cases))
        if not share:
            continue
        for wanted in (4 * share + 50, 40 * share + 500):  # most are short enough; look on if not
            frame = inference_pairs(wanted, seed, case=case, **sort)  # type: ignore[arg-type]
            short = frame[_n_tokens(frame, tokenizer) <= longest][:share]
            if len(short) == share:
                break
        else:
            raise InvalidInput(
                f"Only {len(short)} of {share} pairs of the case {case} have at most {longest} tokens: "
                "allow more tokens."
            )
        found += zip(short["premise"], short["hypothesis"], short["label"], strict=True)
    return found


def _n_tokens(frame: pd.DataFrame, tokenizer: Tokenizer) -> npt.NDArray[np.int64]:
    encoded = tokenizer(list(frame["premise"]), list(frame["hypothesis"]))["input_ids"]
    return np.array([len(ids) for ids in encoded])


def _pairs(name: str, rows: Sequence[tuple[str, str, str]]) -> Pairs:
    return Pairs(name, tuple((a, b) for a, b, _ in rows), tuple(label for _, _, label in rows))


def dealt(pairs: Pairs, n_first: int, *, seed: int) -> tuple[Pairs, Pairs]:
    """Two parts that share no pair: `n_first` drawn at random, and the rest.

    Where there are fewer than twice as many, each part has half.
    """
    n_first = min(n_first, len(pairs) // 2)
    order = np.random.default_rng(seed).permutation(len(pairs))
    rows = [(*texts, label) for texts, label in zip(pairs.texts, pairs.labels, strict=True)]
    chosen = [np.sort(part) for part in (order[:n_first], order[n_first:])]
    first, second = (_pairs(pairs.name, [rows[k] for k in part]) for part in chosen)
    return first, second


def mnli(n: int, *, seed: int, file: str | Path | None = None) -> Pairs:
    """`n` pairs of the matched validation part of MNLI, from `file` or through `datasets`."""
    return _sampled("MNLI", _rows("MNLI", file), n, seed)


def hans(n: int, *, seed: int, file: str | Path | None = None) -> Pairs:
    """`n` pairs of HANS: lexical overlap and no entailment."""
    rows = [
        row
        for row in _rows("HANS", file)
        if row["label"] == OTHER and row.get("heuristic", "lexical_overlap") == "lexical_overlap"
    ]
    return _sampled("HANS", rows, n, seed)


def _sampled(name: str, rows: Sequence[Mapping[str, str]], n: int, seed: int) -> Pairs:
    if not rows:
        raise InvalidInput(f"There is no pair to use in {name}: its labels or heuristics are others.")
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:n])
    return _pairs(name, [(rows[k]["premise"], rows[k]["hypothesis"], rows[k]["label"]) for k in chosen])


def _rows(name: str, file: str | Path | None) -> list[dict[str, str]]:
    """Premise, hypothesis and label (by name) of every pair with a label, and the heuristic of HANS."""
    rows = _from_hub(name) if file is None else _from_file(Path(file))
    return [row for row in (_named(name, row) for row in rows) if row["label"] not in ("-", "-1")]


def _from_hub(name: str) -> Iterator[Mapping[str, object]]:
    if importlib.util.find_spec("datasets") is None:
        raise MissingExtra(
            f"{name} comes through 'datasets', which is not installed: pip install datasets, or give a "
            f"JSONL, CSV or TSV file as {name.lower()}_file."
        )
    from datasets import load_dataset

    return iter(load_dataset(**HUB[name]))


def _from_file(file: Path) -> list[Mapping[str, object]]:
    if not file.exists():
        raise InvalidInput(f"{file} does not exist: give a JSONL, CSV or TSV file of pairs.")
    text = file.read_text(encoding="utf-8")
    if text.lstrip().startswith("{"):
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    # The authors' own tab-separated files do not quote.
    quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    return list(csv.DictReader(text.splitlines(), delimiter=delimiter, quoting=quoting))


def _named(name: str, row: Mapping[str, object]) -> dict[str, str]:
    found = {}
    for column, spellings in COLUMNS.items():
        spelling = next((s for s in spellings if s in row), None)
        if spelling is None:
            raise InvalidInput(
                f"{name} has the columns {', '.join(row)}: {' or '.join(spellings)} is missing."
            )
        found[column] = str(row[spelling])
    if found["label"].isdigit():
        found["label"] = HUB_LABELS[name][int(found["label"])]
    return found | ({"heuristic": str(row["heuristic"])} if "heuristic" in row else {})
