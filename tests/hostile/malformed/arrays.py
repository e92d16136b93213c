"""Arrays of others: shapes, types, values, NumPy and Zarr files that are no such files."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile.malformed.cases import N_ITEMS, Malformed, both, good_arrays, good_csv, vectors, writes

COMPARE = ("--stimuli", "s.csv", "--resamples", "0", "--no-report", "--out", "run")


def array_cases() -> Iterator[Malformed]:
    yield from _values()
    yield from _files()
    yield from _layers()
    yield from _zarr()
    yield from _options()


def _case(name: str, make: Any, expected: Any = "refused", system: str = "a.npz") -> Malformed:
    return Malformed(
        f"array: {name}",
        ("compare", f"a={system}", "b.npz", *COMPARE),
        both(good_csv, good_arrays, make),
        expected,
    )


def _npz(name: str, expected: Any = "refused", /, **arrays: Any) -> Malformed:
    return _case(name, lambda folder: np.savez(folder / "a.npz", **arrays), expected)


def _values() -> Iterator[Malformed]:
    good = vectors()

    def holding(value: float) -> np.ndarray:
        array = good.copy()
        array[3, 2] = value
        return array

    for value in (np.nan, np.inf, -np.inf):
        yield _npz(f"{value} in it", x=holding(value))
    yield _npz("nan alone", x=np.full_like(good, np.nan))
    yield _npz("too few rows", x=good[:-1])
    yield _npz("too many rows", x=vectors(0, N_ITEMS + 1))
    yield _npz("turned on its side", x=good.T)
    yield _npz("no dimension", x=np.float64(3))
    yield _npz("one dimension", x=good[:, 0])
    yield _npz("four dimensions", x=good.reshape(N_ITEMS, 1, 2, 3))
    yield _npz("no rows", x=good[:0])
    yield _npz("no columns", x=good[:, :0])
    yield _npz("complex", x=good + 1j)
    yield _npz("strings", x=good.astype(str))
    yield _npz("bytes", x=good.astype("S8"))
    yield _npz("dates", x=good.astype("M8[s]"))
    yield _npz("objects", x=good.astype(object))
    yield _npz("records", x=np.zeros(N_ITEMS, dtype=[("a", "f8"), ("b", "i4")]))
    yield _npz("all the same", "either", x=np.ones_like(good))
    yield _npz("two rows the same", "accepted", x=np.vstack([good[:1], good[:-1]]))
    yield _npz("booleans", "either", x=good > 0)
    yield _npz("integers", "accepted", x=(good * 100).astype(np.int64))
    yield _npz("half precision", "accepted", x=good.astype(np.float16))
    yield _npz("swapped bytes", "accepted", x=good.astype(">f8"))
    yield _npz("a Fortran order", "accepted", x=np.asfortranarray(good))
    yield _npz("values near 1e308", "either", x=good * 1e307)
    yield _npz("values near 1e-300", "either", x=good * 1e-300)
    yield _npz("values near 1e200", "either", x=good * 1e200)
    yield _npz("long doubles", "either", x=good.astype(np.longdouble))
    yield _npz("unsigned 64-bit integers", "either", x=np.full_like(good, 2**63, dtype=np.uint64) + 1)
    yield _npz("no arrays at all")


def _npy_header(text: str, *, version: bytes = b"\x01\x00") -> bytes:
    body = text.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(body)) + body


def _files() -> Iterator[Malformed]:
    good = io.BytesIO()
    np.save(good, vectors())
    whole = good.getvalue()
    zipped = io.BytesIO()
    np.savez_compressed(zipped, x=vectors())
    packed = zipped.getvalue()
    contents = {
        "empty": b"",
        "one byte": b"\x93",
        "magic alone": whole[:6],
        "header cut": whole[:40],
        "cut in half": whole[: len(whole) // 2],
        "short by a byte": whole[:-1],
        "of version 9": _npy_header("{}", version=b"\x09\x00"),
        "with a header that is no dictionary": _npy_header("[1, 2]"),
        "with a header that is code": _npy_header("__import__('os').system('touch fired')"),
        "with a header without a shape": _npy_header("{'descr': '<f8', 'fortran_order': False}"),
        "of negative shape": _npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 4)}"),
        "of a huge shape": _npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**9, 10**6)}"),
        "of 2^62 rows": _npy_header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**62}, 4)}}"),
        "of an unknown type": _npy_header("{'descr': '<q99', 'fortran_order': False, 'shape': (3, 4)}"),
        "that is a pickle": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
        "that is text": b"1,2,3\n4,5,6\n",
        "of zeros": bytes(1000),
        "of random bytes": np.random.default_rng(0).bytes(1000),
    }
    for name, content in contents.items():
        yield _case(f".npy {name}", writes("a.npy", content), system="a.npy")
        if name.startswith(("empty", "one byte", "that is", "of zeros", "of random")):
            yield _case(f".npz {name}", writes("a.npz", content))
    yield _case(".npz cut in half", writes("a.npz", packed[: len(packed) // 2]))
    yield _case(".npz without its directory", writes("a.npz", packed[:-40]))
    yield _case(".npz with other files", _zip({"readme.txt": b"hello"}), "either")
    yield _case(".npz of an .npy that is text", _zip({"x.npy": b"hello"}))
    yield _case(".npz of an empty .npy", _zip({"x.npy": b""}))
    yield _case(".npz with a path in a name", _zip({"../../x.npy": whole}), "either")
    yield _case(".npz with two arrays of one name", _twice(whole), "either")
    yield _case(".npz that is a bomb", _bomb)
    rng = np.random.default_rng(7)
    for k in range(24):  # a bit of the compressed numbers, anywhere
        place, bit = int(rng.integers(60, len(packed) - 60)), int(rng.integers(8))
        data = bytearray(packed)
        data[place] ^= 1 << bit
        yield _case(
            f".npz with bit {bit} of byte {place} flipped ({k})", writes("a.npz", bytes(data)), "either"
        )
    yield _case("a folder of nothing", lambda folder: (folder / "a").mkdir(), system="a")
    yield _case("a file that is not there", lambda folder: None, system="zzz.npz")
    yield _case("a folder called .npz", lambda folder: (folder / "a.npz").mkdir())
    yield _case("a folder called .npy", lambda folder: (folder / "a.npy").mkdir(), system="a.npy")


def _zip(members: dict[str, bytes]) -> Any:
    def make(folder: Path) -> None:
        with zipfile.ZipFile(folder / "a.npz", "w") as file:
            for name, content in members.items():
                file.writestr(name, content)

    return make


def _twice(content: bytes) -> Any:
    def make(folder: Path) -> None:
        import warnings

        with warnings.catch_warnings(), zipfile.ZipFile(folder / "a.npz", "w") as file:
            warnings.simplefilter("ignore", UserWarning)
            file.writestr("x.npy", content)
            file.writestr("x.npy", content)

    return make


def _bomb(folder: Path) -> None:
    """2 GB of zeros in 2 MB: rows that are too many should be noticed before they are read."""
    header = _npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4000000, 64)}")
    with (
        zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as file,
        file.open("x.npy", "w", force_zip64=True) as member,
    ):
        member.write(header)
        for _ in range(125):
            member.write(bytes(16_384_000))


def _layers() -> Iterator[Malformed]:
    good = vectors()
    yield _npz("layers 0 and 00", **{"0": good, "00": vectors(3)})
    yield _npz("layers 0 and an Arabic zero", **{"0": good, "٠": vectors(3)})
    yield _npz("layers 1 and superscript 1", "either", **{"1": good, "¹": vectors(3)})
    yield _npz("layers of unlike lengths", **{"0": good, "1": vectors(3, N_ITEMS - 2)})
    yield _npz("a layer with a slash", "either", **{"a/b": good, "c": vectors(3)})
    yield _npz("a layer with markup", "accepted", **{"<b>x</b>": good, "c": vectors(3)})
    yield _npz("a layer with a colon", "either", **{"a:1": good, "c": vectors(3)})

    def folder_of(folder: Path, files: dict[str, bytes]) -> None:
        (folder / "a.zarr").mkdir()
        for name, content in files.items():
            (folder / "a.zarr" / name).write_bytes(content)

    buffer = io.BytesIO()
    np.save(buffer, good)
    mixed = {"0.npy": buffer.getvalue(), "1.npy": b"x"}
    yield _case("a folder of a good and a bad .npy", partial(folder_of, files=mixed), system="a.zarr")
    yield _case("a folder of an .npz", partial(folder_of, files={"0.npz": b"x"}), system="a.zarr")


def _group(folder: Path, change: Any = None) -> None:
    import zarr

    group = zarr.open_group(folder / "a.zarr", mode="w")
    for k in range(2):
        group.create_array(str(k), data=vectors(k))
    if change is not None:
        change(folder / "a.zarr")


def _edit(path: str, **fields: Any) -> Any:
    def change(store: Path) -> None:
        about = json.loads((store / path).read_text())
        for key, value in fields.items():
            if value is KeyError:
                about.pop(key)
            else:
                about[key] = value
        (store / path).write_text(json.dumps(about))

    return change


def _replaced(path: str, content: bytes) -> Any:
    return lambda store: (store / path).write_bytes(content)


def _zarr() -> Iterator[Malformed]:
    bad_codec = [{"name": "numcodecs.pickle", "configuration": {}}]
    changes = {
        "null metadata": _replaced("0/zarr.json", b"null"),
        "empty metadata": _replaced("0/zarr.json", b""),
        "metadata that is a list": _replaced("0/zarr.json", b"[]"),
        "metadata cut": _replaced("0/zarr.json", b'{"shape": [24'),
        "group metadata null": _replaced("zarr.json", b"null"),
        "group metadata empty": _replaced("zarr.json", b""),
        "group metadata random": _replaced("zarr.json", bytes(range(256))),
        "format 9": _edit("0/zarr.json", zarr_format=9),
        "an array without a shape": _edit("0/zarr.json", shape=KeyError),
        "an array of negative shape": _edit("0/zarr.json", shape=[-3, 6]),
        "an array of shape null": _edit("0/zarr.json", shape=None),
        "an array of three shapes": _edit("0/zarr.json", shape=[24, 6, 1]),
        "an unknown type": _edit("0/zarr.json", data_type="float99"),
        "a type of text": _edit("0/zarr.json", data_type="string"),
        "no codecs": _edit("0/zarr.json", codecs=[]),
        "an unknown codec": _edit("0/zarr.json", codecs=bad_codec),
        "a grid of zero": _edit(
            "0/zarr.json", chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0, 0]}}
        ),
        "a huge shape": _edit("0/zarr.json", shape=[10**12, 10**6]),
        "a chunk of zeros": _replaced("0/c/0/0", bytes(50)),
        "an empty chunk": _replaced("0/c/0/0", b""),
        "a store of ours that says nothing": _edit("zarr.json", attributes={"thinkalike": {}}),
        "a store of ours that says null": _edit("zarr.json", attributes={"thinkalike": None}),
        "a store of ours of format 99": _edit("zarr.json", attributes={"thinkalike": {"format": 99}}),
        "a store of ours that says 3": _edit("zarr.json", attributes={"thinkalike": 3}),
    }
    for name, change in changes.items():
        yield _case(f"Zarr with {name}", partial(_group, change=change), system="a.zarr")
    yield _case("Zarr as it should be", _group, "accepted", system="a.zarr")


def _options() -> Iterator[Malformed]:
    make = both(good_csv, good_arrays, lambda folder: np.savez(folder / "a.npz", x=vectors()))
    for option in (
        ("--pooling", "mean"), ("--site", "mlp"), ("--dtype", "bfloat16"), ("--device", "cpu"), ("--bos",),
        ("--no-bos",), ("--drop-first", "1"), ("--batch-size", "4"), ("--controls", "untrained"),
        ("--controls", "zzz"), ("--measure", "zzz"), ("--distance", "zzz"), ("--ordered", "zzz"),
        ("--preset", "zzz"), ("--seed", "-1"), ("--seed", "x"), ("--resamples", "-1"), ("--resamples", "x"),
        ("--resamples", "99999999999999999999"), ("--sentences", "10"),
    ):  # fmt: skip
        arguments = (
            "compare",
            "a.npz",
            "b.npz",
            "--stimuli",
            "s.csv",
            "--no-report",
            "--out",
            "run",
            *option,
        )
        yield Malformed(f"array: {' '.join(option)}", arguments, make)
