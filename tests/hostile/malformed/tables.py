"""Tables of stimuli: cells, headers, encodings, declared kinds, Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.hostile.malformed.cases import HEADER, Malformed, csv_text, good_csv, rows, writes

CHECK = ("stimuli", "--check")


def table_cases() -> Iterator[Malformed]:
    yield from _texts()
    yield from _cells()
    yield from _declarations()
    yield from _words()
    yield from _parquet()
    yield from _paths()


def _csv(name: str, content: str | bytes, expected: Any = "refused") -> Malformed:
    return Malformed(f"table: {name}", (*CHECK, "t.csv"), writes("t.csv", content), expected)


def _texts() -> Iterator[Malformed]:
    good = csv_text(HEADER, rows())
    yield _csv("empty", b"")
    yield _csv("one newline", b"\n")
    yield _csv("only spaces", b"   \n  \n")
    yield _csv("a header alone", good.splitlines()[0] + "\n")
    yield _csv("no feature", csv_text(["item"], [[f"i{k}"] for k in range(9)]))
    yield _csv("one row", "\n".join(good.splitlines()[:2]) + "\n")
    yield _csv("a short row", good + "i99,red\n")
    yield _csv("a long row", good + "i99,red,1,a,b\n")
    yield _csv("an open quote", good + 'i99,"red,1,a\n')
    yield _csv("text after a quote", good + 'i99,"red"x,1,a\n')
    yield _csv("a nameless column", good.replace("colour", "", 1))
    yield _csv("two columns of one name", good.replace("shape", "colour", 1))
    yield _csv("two items of one name", good.replace("i5,", "i4,"))
    yield _csv("an item without a name", good.replace("i5,", ","))
    yield _csv("latin-1", good.replace("red", "rosé").encode("latin-1"))
    yield _csv("utf-16", good.encode("utf-16"))
    yield _csv("utf-32", good.encode("utf-32"))
    yield _csv("zero bytes", good.replace("red", "r\0d").encode(), "either")
    yield _csv("nothing but zeros", b"\0" * 4096)
    yield _csv("random bytes", np.random.default_rng(0).bytes(5000))
    yield _csv("PNG", b"\x89PNG\r\n\x1a\n" + bytes(200))
    yield _csv("a Parquet file called .csv", b"PAR1" + bytes(100) + b"PAR1")
    yield _csv("HTML", "<html><body>Not found</body></html>\n")
    yield _csv("JSON", '[{"item": 1, "colour": "red"}]\n')
    yield _csv("a cell of a megabyte", good.replace("red", "r" * 1_000_000, 1), "either")
    yield _csv("three hundred columns", _wide(300), "either")
    yield _csv("old Mac ends of line", good.replace("\n", "\r").encode(), "either")
    yield _csv("a byte order mark", b"\xef\xbb\xbf" + good.encode(), "accepted")
    yield _csv("Windows ends of line", good.replace("\n", "\r\n").encode(), "accepted")
    yield _csv("semicolons", csv_text(HEADER, rows(), ";"))
    yield _csv("tabs in a .csv", csv_text(HEADER, rows(), "\t"))


def _wide(n: int) -> str:
    lines = [[f"i{k}", *("ab"[(k + j) % 2] for j in range(n))] for k in range(3)]
    return csv_text(["item", *(f"f{j}" for j in range(n))], lines)


def _cells() -> Iterator[Malformed]:
    """A number column with one cell that is none."""
    odd = [
        "inf",
        "-inf",
        "Infinity",
        "1e400",
        "-1e999",
        "1,5",
        "1.5.2",
        "1_000",
        "0x10",
        "1e",
        "--1",
        "+-2",
        "½",
    ]
    odd += [
        "٣",
        "１２",
        "n/a",
        "N.A.",
        "none",
        "null",
        "?",
        "-",
        "#DIV/0!",
        "#N/A",
        "TRUE",
        "nan(5)",
        "1 000",
        "5%",
    ]
    for cell in odd:
        lines = rows()
        lines[7][2] = f'"{cell}"'
        # Spellings of no value, and digits of other scripts, may be read as what they mean.
        missing = cell in ("n/a", "null", "none", "#N/A", "٣", "１２")
        yield _csv(f"{cell!r} among numbers", csv_text(HEADER, lines), "either" if missing else "refused")
    for name, values in {
        "integers beyond 2^53": [2**62 + k for k in range(24)],
        "integers beyond 2^64": [2**80 + k for k in range(24)],
        "numbers near the largest": [1.7e308 - k * 1e306 for k in range(24)],
        "numbers near the smallest": [5e-324 * (k + 1) for k in range(24)],
    }.items():
        lines = [[*line[:2], repr(value), line[3]] for line, value in zip(rows(), values, strict=True)]
        yield _csv(name, csv_text(HEADER, lines), "either")
    for name, cell in {"empty": "", "NA": "NA", "NaN": "NaN"}.items():
        lines = [[*line[:2], cell, line[3]] for line in rows()]
        yield _csv(f"a column of {name} alone", csv_text(HEADER, lines), "either")
    lines = [[*line[:2], "7", line[3]] for line in rows()]
    yield _csv("a column of one number", csv_text(HEADER, lines), "either")


def _declarations() -> Iterator[Malformed]:
    good = csv_text(HEADER, rows())
    for text in (
        "", "{", "[]", "null", "3", '"nominal"', '{"colour": 3}', '{"colour": null}', '{"colour": "nomnal"}',
        '{"colour": []}', '{"colour": ["red"]}', '{"colour": ["red", "red", "green", "blue"]}',
        '{"colour": [1, 2, 3]}', '{"colour": [["red"], ["green"], ["blue"]]}', '{"colour": {"red": 1}}',
        '{"taste": "nominal"}', '{"colour": "numeric"}', "[" * 5000,
    ):  # fmt: skip
        yield _csv(f"kinds {text[:60]!r}", f"# kinds: {text}\n{good}")
    yield _csv("kinds of no feature", f"# kinds: {{}}\n{good}", "either")
    yield _csv("kinds twice", f'# kinds: {{"colour": "nominal"}}\n# kinds: {{}}\n{good}')


def _words() -> Iterator[Malformed]:
    for name, text in {
        "a word that is not in its text": "text,word,x\nthe king fell,queen,a\nshe ran,she,b\n",
        "a word without a sentence": "sentence,word,x\n1,the,a\n,king,b\n2,ran,a\n",
        "a sentence without a word": "sentence,word,x\n1,the,a\n1,,b\n2,ran,a\n",
        "an empty text": "text,x\n,a\nshe ran,b\nhe sat,a\n",
        "start after end": "text,word,start,end,x\nthe king,king,8,4,a\nshe ran,she,0,3,b\n",
        "start below zero": "text,word,start,end,x\nthe king,king,-4,8,a\nshe ran,she,0,3,b\n",
        "end beyond the text": "text,word,start,end,x\nthe king,king,4,80,a\nshe ran,she,0,3,b\n",
        "start that is no number": "text,word,start,end,x\nthe king,king,four,8,a\nshe ran,she,0,3,b\n",
        "start that is a fraction": "text,word,start,end,x\nthe king,king,4.5,8,a\nshe ran,she,0,3,b\n",
        "start without end": "text,word,start,x\nthe king,king,4,a\nshe ran,she,0,b\n",
        "a span of another word": "text,word,start,end,x\nthe king,king,0,3,a\nshe ran,she,0,3,b\n",
        "one sentence with two texts": "sentence,text,word,x\n1,the king,king,a\n1,a king,king,b\n",
        "start beyond 2^64": f"text,word,start,end,x\nthe king,king,{2**70},{2**71},a\nshe ran,she,0,3,b\n",
    }.items():
        yield _csv(name, text)
    for name, text in {
        "a text twice": "text,x\na b c,1\nd e f,2\na b c,3\n",
        "surrogates escaped": "text,x\n\\ud800 a,1\nd e,2\n",
        "a text of emoji": "text,word,x\n👩‍👩‍👧 ran,ran,a\nשלום ran,ran,b\n",
        "a text with ends of line": 'text,x\n"a\nb",1\n"c\r\nd",2\n',
    }.items():
        yield _csv(name, text, "accepted")


def _frame(name: str, frame: pd.DataFrame, expected: Any = "refused") -> Malformed:
    return Malformed(
        f"parquet: {name}",
        (*CHECK, "t.parquet"),
        lambda folder: frame.to_parquet(folder / "t.parquet"),
        expected,
    )


def _parquet() -> Iterator[Malformed]:
    good = pd.DataFrame(rows(), columns=HEADER)
    for name, cells in {
        "lists": [[k] for k in range(24)],
        "empty lists": [[] for _ in range(24)],
        "dictionaries": [{"a": k} for k in range(24)],
        "bytes": [bytes([k]) for k in range(24)],
        "arrays": [np.arange(3) for _ in range(24)],
    }.items():
        yield _frame(f"cells that are {name}", good.assign(shape=pd.Series(cells, dtype=object)))
    yield _frame("dates", good.assign(shape=pd.date_range("2020", periods=24)), "either")
    yield _frame("durations", good.assign(shape=pd.to_timedelta(range(24), "D")), "either")
    yield _frame("complex numbers as text", good.assign(shape=[f"{k}j" for k in range(24)]), "either")
    yield _frame("infinity", good.assign(size=[np.inf, *map(float, range(23))]))
    yield _frame("no row", good.head(0))
    yield _frame("no column", pd.DataFrame(index=range(24)))
    yield _frame(
        "columns with numbers for names", good.set_axis([0, 1, 2, 3], axis=1).rename(columns=str), "either"
    )
    yield _frame("nothing but missing values", good.assign(shape=None), "either")
    yield _frame("booleans", good.assign(shape=[k % 3 == 0 for k in range(24)]), "accepted")
    yield _frame("digit strings", good.assign(size=[f"0{k // 6}" for k in range(24)]), "accepted")

    def damaged(folder: Path, cut: slice, flip: int | None) -> None:
        good.to_parquet(folder / "t.parquet")
        data = bytearray((folder / "t.parquet").read_bytes()[cut])
        if flip is not None:
            data[flip] ^= 0xFF
        (folder / "t.parquet").write_bytes(bytes(data))

    for name, cut, flip in (
        ("cut in half", slice(0, 1500), None),
        ("without its end", slice(0, -8), None),
        ("without its beginning", slice(8, None), None),
        ("with a damaged footer", slice(None), -20),
        ("with a damaged length", slice(None), -6),
        ("four bytes", slice(0, 4), None),
    ):
        yield Malformed(f"parquet: {name}", (*CHECK, "t.parquet"), partial(damaged, cut=cut, flip=flip))
    yield Malformed("parquet: empty", (*CHECK, "t.parquet"), writes("t.parquet", b""))
    yield Malformed("parquet: text", (*CHECK, "t.parquet"), writes("t.parquet", "item,x\na,1\n"))


def _paths() -> Iterator[Malformed]:
    for name in (
        "nothing.csv",
        "folder",
        ".",
        "/",
        "",
        "nothing",
        "a\nb.csv",
        "x" * 400 + ".csv",
        "/dev/null",
    ):
        yield Malformed(
            f"path: --check {name[:20]!r}", (*CHECK, name), lambda folder: (folder / "folder").mkdir()
        )
    for suffix in ("txt", "xlsx", "json", "CSV2", "csv.gz"):
        yield Malformed(
            f"path: a table called .{suffix}",
            (*CHECK, f"t.{suffix}"),
            writes(f"t.{suffix}", csv_text(HEADER, rows())),
        )
    yield Malformed(
        "path: a folder called .csv", (*CHECK, "t.csv"), lambda folder: (folder / "t.csv").mkdir()
    )
    yield Malformed(
        "path: a link to itself", (*CHECK, "t.csv"), lambda folder: (folder / "t.csv").symlink_to("t.csv")
    )
    yield Malformed("path: --out with no ending", ("stimuli", "-n", "20", "--out", "t"))
    yield Malformed("path: --out .xlsx", ("stimuli", "-n", "20", "--out", "t.xlsx"))
    yield Malformed("path: --figure .txt", ("stimuli", "--check", "s.csv", "--figure", "t.txt"), good_csv)
    yield Malformed(
        "path: --figure with no ending", ("stimuli", "--check", "s.csv", "--figure", "t"), good_csv
    )
    yield Malformed("path: --out under a file", ("stimuli", "-n", "20", "--out", "s.csv/t.csv"), good_csv)
    yield Malformed("path: --out too long", ("stimuli", "-n", "20", "--out", "x" * 300 + ".csv"))
    yield Malformed("path: --copy-grammar under a file", ("stimuli", "--copy-grammar", "s.csv/t"), good_csv)
