"""Every file of ours: written whole or not at all, and verified when it is read.

A file is written beside its place under another name, and then takes its place in one step; at an address of
an object store, which takes a file as a whole, it is put there. JSON, Parquet and arrays carry a *seal*: the
SHA-256 of all their bytes, with zeros where the seal itself stands. It lies where the format has room for
words of one's own, so any other reader takes the file as well. A change of any byte shows before anything is
decoded, and a file needs no other to be checked.

Where several files belong together, the JSON that is written last names the seals of the others.
"""

from __future__ import annotations

import errno
import io
import itertools
import json
import math
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thinkalike.addresses import filesystem, is_local, reaching, store_errors, unreachable
from thinkalike.errors import DamagedFile, StoreError
from thinkalike.leases import HOST, lives
from thinkalike.types import Facts

if TYPE_CHECKING:
    import pandas as pd

MARK = b"thinkalike-sha256:"
ZEROS = b"0" * 64
SEAL = "seal"
"""The key of the seal in JSON, and after `thinkalike.` in Parquet"""
FOLDER_SEALS = "seals.json"
ANEW = "delete it and make it anew"

PART = ".part"
NPY = ".npy"
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_number = itertools.count()


def write_bytes(data: bytes, path: Path) -> None:
    """Write a file: whole, or the one that was there stays.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_bytes(b"all of it", Path(folder, "new", "x.bin"))
    ...     Path(folder, "new", "x.bin").read_bytes()
    b'all of it'
    """
    if not is_local(path):
        files, name = filesystem(path)
        with reaching(path):
            files.pipe_file(name, data)
        return
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        part = _part(path)
        try:
            part.write_bytes(data)
            os.replace(part, path)
        except BaseException:
            with suppress(OSError):  # what went wrong before is what is told
                part.unlink()
            raise


def write_text(text: str, path: Path) -> None:
    """Write a text file (UTF-8), whole or not at all; people read and change it, so it has no seal."""
    write_bytes(text.encode(), path)


def try_place(path: Path | str) -> None:
    """Before long work: raise what a file at `path` would meet at its end. Nothing stays of the trial."""
    if not is_local(path):
        return
    with writing(path):
        folder = next(parent for parent in Path(path).absolute().parents if parent.exists())
        tempfile.TemporaryFile(dir=folder).close()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which takes the place of `path` and all in it when the block ends well."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        part = _part(path)
        try:
            part.mkdir()
            yield part
            shutil.rmtree(path, ignore_errors=True)
            os.replace(part, path)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def seal_folder(folder: Path) -> None:
    """Note the digest of every file of a folder that others wrote, such as a model."""
    write_json(_digests(folder), folder / FOLDER_SEALS)


def is_sealed(folder: Path) -> bool:
    """Whether the folder holds what it held when it was sealed."""
    try:
        return read_json(folder / FOLDER_SEALS) == _digests(folder)
    except DamagedFile:
        return False


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != FOLDER_SEALS)
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Say what the system's refusal to write at `path` means for the user."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.EEXIST, errno.ENOTDIR):
            reason = "a part of the path is a file, not a folder"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            out = "free some space or name another place. What was finished is kept: the same call goes on"
        else:
            out = "name another place"
        raise StoreError(f"{path} cannot be written ({reason}): {out}.") from error


def write_json(content: Mapping[str, object], path: Path) -> str:
    """Write plain values with indentation, NaN as null; returns the seal.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     seal = write_json({"seed": 0, "low": float("nan")}, Path(folder, "x.json"))
    ...     read_json(Path(folder, "x.json"))
    {'seed': 0, 'low': None}
    """
    data = sealed_json(content)
    write_bytes(data, path)
    return str(seal_of(data))


def sealed_json(content: Mapping[str, object]) -> bytes:
    """What `write_json` writes."""
    marked = {SEAL: (MARK + ZEROS).decode(), **plain(content)}
    text = json.dumps(marked, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return _sealed(text.encode(), last=False)


def read_json(path: Path, *, way_out: str = ANEW) -> dict[str, Any]:
    """What `write_json` wrote; `DamagedFile` if it is not there or not that."""
    with reading(path, way_out):
        content: dict[str, object] = json.loads(read_sealed(path, way_out=way_out))
        del content[SEAL]
        return content


def write_table(frame: pd.DataFrame, path: Path, *, words: Mapping[str, str] | None = None) -> str:
    """Write a Parquet file without the index; `words` go into its schema metadata. Returns the seal."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    own = {**(words or {}), f"thinkalike.{SEAL}": (MARK + ZEROS).decode()}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), **own}), buffer)
    return write_sealed(buffer.getvalue(), path, last=True)  # metadata stands at the end


def write_tables(frame: pd.DataFrame, path: Path) -> str:
    """Write `path`.parquet, and for people `path`.csv; returns the seal of the former."""
    frame = frame.copy()
    for name in frame.columns:
        if frame[name].dtype == object and len({type(value) for value in frame[name]}) > 1:
            frame[name] = frame[name].astype(str)  # layers may be numbers in one system and names in another
    write_text(frame.to_csv(index=False), path.with_name(f"{path.name}.csv"))
    return write_table(frame, path.with_name(f"{path.name}.parquet"))


def read_table(path: Path, *, seal: str | None = None, way_out: str = ANEW) -> pd.DataFrame:
    """What `write_table` wrote; with `seal` it must be the very file that bore it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = read_sealed(path, seal=seal, way_out=way_out)
    with reading(path, way_out):
        return pq.read_table(pa.BufferReader(data)).to_pandas()


def write_arrays(arrays: Mapping[str, np.ndarray], path: Path, *, about: Mapping[str, object]) -> str:
    """Write an .npz file of arrays, and of plain values under the name `about`; returns the seal."""
    return write_sealed(packed_arrays(arrays, about=about), path, last=True)


def packed_arrays(arrays: Mapping[str, np.ndarray], *, about: Facts) -> bytes:
    """What `write_arrays` writes, with room for the seal."""
    buffer = io.BytesIO()
    text = json.dumps(plain(about), ensure_ascii=False, allow_nan=False)
    np.savez_compressed(buffer, about=np.array(text), allow_pickle=False, **arrays)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = MARK + ZEROS
    return buffer.getvalue()


def read_arrays(path: Path, *, way_out: str = ANEW) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the plain values that `write_arrays` wrote."""
    data = read_sealed(path, way_out=way_out)
    with reading(path, way_out):
        return unpacked_arrays(data)


def unpacked_arrays(
    data: bytes, *, most_bytes: int | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and plain values from the bytes of such a file; ValueError if they are anything else.

    They may come from a stranger. Nothing in them is run, arrays of Python objects are refused, and no more
    is unfolded than `most_bytes`, nor more than the file has: sizes that headers claim are checked first.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            _check_entries(entries, most_bytes)
            arrays = {
                entry.filename.removesuffix(NPY): _array(_unpacked(archive, entry)) for entry in entries
            }
        about = json.loads(str(arrays.pop("about")))
    except (ValueError, LookupError, zipfile.BadZipFile):
        raise
    except Exception as error:  # whatever the decoders of others make of bytes that were made to mislead them
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if not isinstance(about, dict):
        raise ValueError(f"its words are a {type(about).__name__}, names and values were expected")
    return arrays, about


def _check_entries(entries: Sequence[zipfile.ZipInfo], most_bytes: int | None) -> None:
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names) or not all(name.endswith(NPY) for name in names):
        raise ValueError("entries that are no arrays, or two of one name")
    if any(entry.flag_bits & 1 or entry.compress_type not in PACKINGS for entry in entries):
        raise ValueError("entries that are encrypted, or packed in another way than ours")
    total = sum(entry.file_size for entry in entries)
    if most_bytes is not None and total > most_bytes:
        raise ValueError(f"{total:,} bytes when unpacked, at most {most_bytes:,} were expected")


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """So many bytes as the entry claims: to ask for all would unfold what is there, however much it is."""
    with archive.open(entry) as file:
        return file.read(entry.file_size)


def _array(data: bytes) -> np.ndarray:
    """An array from the bytes of an .npy file, whose header must tell the truth about its size."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"an array in format {version}, {tuple(HEADERS)} were expected")
    shape, _, dtype = HEADERS[version](file)
    told, there = math.prod(shape) * dtype.itemsize, len(data) - file.tell()
    if told != there and not dtype.hasobject:
        raise ValueError(f"an array of {told:,} bytes by its header, and {there:,} are there")
    file.seek(0)
    found: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    return found


def with_seal(data: bytes, *, last: bool = False) -> bytes:
    """Bytes with the seal where its mark stands, the first or the last of such."""
    return _sealed(data, last=last)


def write_sealed(data: bytes, path: Path, *, last: bool = False) -> str:
    """Write bytes with the seal where its mark stands, the first or the last of such; returns the seal."""
    sealed = _sealed(data, last=last)
    write_bytes(sealed, path)
    return str(seal_of(sealed))


def _sealed(data: bytes, *, last: bool) -> bytes:
    place = (data.rfind if last else data.find)(MARK + ZEROS)
    if place < 0:
        raise ValueError("There is no room for a seal in what is to be written.")
    start = place + len(MARK)
    return data[:start] + sha256(data).hexdigest().encode() + data[start + len(ZEROS) :]


def read_sealed(path: Path, *, seal: str | None = None, way_out: str = ANEW) -> bytes:
    """The bytes of a file whose seal is right; with `seal` it must also be that one."""
    with reading(path, way_out):
        data = path.read_bytes()
    found = seal_of(data)
    if found is None:
        raise DamagedFile(f"{path} is damaged, or was changed since it was written: {way_out}.")
    if seal is not None and found != seal:
        raise DamagedFile(f"{path} is another file than was written there: {way_out}.")
    return data


def seal_of(data: bytes) -> str | None:
    """The seal that the bytes of a file carry, if it is right."""
    for place in {data.find(MARK), data.rfind(MARK)} - {-1}:  # a text may hold a mark of its own
        start = place + len(MARK)
        seal = data[start : start + len(ZEROS)]
        digest = sha256(data[:start])
        digest.update(ZEROS)
        digest.update(data[start + len(ZEROS) :])
        if digest.hexdigest().encode() == seal:
            return seal.decode()
    return None


@contextmanager
def reading(path: Path, way_out: str = ANEW) -> Iterator[None]:
    """Say in one line that a file is gone, or does not hold what belongs there.

    A store that does not answer is no reason to make anything anew: that is a bare `StoreError`.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise DamagedFile(f"{path} is missing: {way_out}.") from error
    except store_errors() as error:
        if not is_local(path):
            raise unreachable(path, error) from error
        reason = getattr(error, "strerror", None) or error
        raise DamagedFile(f"{path} cannot be read ({reason}): {way_out}.") from error
    except (ValueError, TypeError, LookupError, AttributeError, zipfile.BadZipFile) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise DamagedFile(f"{path} does not hold what belongs there ({reason}): {way_out}.") from error


def plain(value: object) -> Any:
    """Tuples as lists, NumPy as Python, NaN and infinities as None.

    Examples
    --------
    >>> plain({"layers": (0, 1), "mean": np.float64(0.5), "low": float("nan")})
    {'layers': [0, 1], 'mean': 0.5, 'low': None}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def numbers(values: Sequence[object]) -> np.ndarray:
    """An array from nested lists in which null stands for NaN."""
    return np.array(values, dtype=np.float64)


def file_name(name: str) -> str:
    """A name for a file that a system's name gives, different for different systems.

    Examples
    --------
    >>> file_name("gpt2"), file_name("google/bert")
    ('gpt2', 'google-bert-60e6289c')
    """
    clean = re.sub(r"[^\w.@-]+", "-", name).strip("-.")[:60]
    return (
        clean if clean and clean == name else f"{clean or 'system'}-{sha256(name.encode()).hexdigest()[:8]}"
    )


def _part(path: Path) -> Path:
    """Where `path` is written until it is whole: nobody else's name, and ours to recognise."""
    return path.with_name(f".{path.name[:100]}.{HOST}.{os.getpid()}.{next(_number)}{PART}")


def is_part(path: Path) -> bool:
    """Whether this is what a process left that was killed while it wrote."""
    return path.name.startswith(".") and path.name.endswith(PART)


def _sweep(path: Path) -> None:
    """Delete what processes of this machine that are no more left unfinished of `path`."""
    for left in path.parent.glob(f".{_escaped(path.name[:100])}.{HOST}.*{PART}"):
        if not lives(left.name.split(".")[-3]):
            with suppress(OSError):
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
