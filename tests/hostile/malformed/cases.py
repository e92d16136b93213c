"""The shape of a malformed input, and the well-formed ones that the others are made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

N_ITEMS = 24
COLOURS = ("red", "green", "blue")
Make = Callable[[Path], None]
Expected = Literal["refused", "accepted", "either"]


@dataclass(frozen=True)
class Malformed:
    """Files to make in an empty folder, and the command that must answer with one clear line.

    "accepted": odd but sound, so the command must succeed. "either": refused or accepted, without a crash.
    """

    name: str
    arguments: tuple[str, ...]
    make: Make = lambda folder: None
    expected: Expected = "refused"


def rows() -> list[list[str]]:
    """A table of items that are no words: three features, none of which says what another says."""
    return [[f"i{k}", COLOURS[k % 3], str(k // 6), "ab"[(k // 2) % 2]] for k in range(N_ITEMS)]


HEADER = ["item", "colour", "size", "shape"]


def csv_text(header: list[str], lines: list[list[str]], mark: str = ",") -> str:
    return "".join(mark.join(cells) + "\n" for cells in [header, *lines])


def good_csv(folder: Path) -> None:
    (folder / "s.csv").write_text(csv_text(HEADER, rows()), encoding="utf-8")


def vectors(seed: int = 0, n_items: int = N_ITEMS, n_units: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_items, n_units))


def good_arrays(folder: Path) -> None:
    np.savez(folder / "b.npz", **{"0": vectors(1), "1": vectors(2)})


def sentences(folder: Path) -> None:
    """Words for a model, in a table."""
    words = ["the king fell", "a queen sang", "she ran", "the dogs slept", "he sat", "two cats ran"]
    lines = [
        [f"{s}", word, "ab"[(s + k) % 2], "xyz"[(s * 2 + k) % 3]]
        for s, text in enumerate(words)
        for k, word in enumerate(text.split())
    ]
    (folder / "w.csv").write_text(csv_text(["sentence", "word", "f", "g"], lines), encoding="utf-8")


def both(*makers: Make) -> Make:
    def make(folder: Path) -> None:
        for one in makers:
            one(folder)

    return make


def writes(name: str, content: str | bytes) -> Make:
    """A maker that writes one file."""

    def make(folder: Path) -> None:
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)

    return make
