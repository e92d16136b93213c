"""A `Fingerprint` as one file: numbers, and words about them, sealed.

The file may come from a stranger. Whoever changes it can seal it again, so a right seal says that it arrived
as it was sent, and everything else is checked here: what it unfolds to, kinds and shapes of the arrays,
numbers that are finite, and its words. Names go to terminals, pages and names of files, facts to tables: each
is of one plain kind, and short. Nothing in a file is run.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.replicates import Replicates
from thinkalike.errors import DamagedFile, InvalidInput
from thinkalike.files import packed_arrays, plain, reading, seal_of, unpacked_arrays, with_seal, write_bytes
from thinkalike.populations.fingerprint_record import Fingerprint
from thinkalike.populations.reference_sets import DIGESTS, reference
from thinkalike.populations.sketch import GRAM_LEVELS, RANK_LEVELS, Sketch, sketch_pairs
from thinkalike.provenance import versions
from thinkalike.types import Facts, Json, Value

FORMAT = 3
SUFFIX = ".npz"
MOST_BYTES = 64_000_000
"""Of a file, unfolded: 2,000 layers and more"""
LARGEST = 1e30
"""Of a number: its square is still one"""
UNIT = 4096
"""One, in the whole numbers by which layers lean"""
ALWAYS_KNOWN = ("importance", "resampled_importance", "halves")
"""Every feature of the reference stimuli differs in each part of them"""
WAY_OUT = "ask for it again, or make the fingerprint anew"

Arrays = dict[str, np.ndarray]


def save_fingerprint(fingerprint: Fingerprint, path: Path) -> Path:
    """Write one file, whole or not at all; returns its path, which ends in .npz."""
    path = path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)
    write_bytes(fingerprint_bytes(fingerprint), path)
    return path


def load_fingerprint(path: Path) -> Fingerprint:
    """What `save_fingerprint` wrote."""
    with reading(path, WAY_OUT):
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path.stat().st_size:,} bytes, at most {MOST_BYTES:,} were expected")
        data = path.read_bytes()
    return fingerprint_from(data, path)


def is_fingerprint(path: Path) -> bool:
    """Whether this is the file of a fingerprint, whole or not, rather than arrays, or no file at all."""
    if path.suffix != SUFFIX or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "about.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return True


def fingerprint_bytes(fingerprint: Fingerprint) -> bytes:
    """The file's bytes: about 17 kB a layer and 4 kB a model."""
    profile, sketch = fingerprint.profile, fingerprint.sketch
    leaning = _leaning(sketch.ranks, sketch.together)
    arrays: Arrays = {
        "importance": profile.importance,
        "scores": profile.scores,
        "ranks": _halved(sketch.ranks),
        "gram": sketch.gram,
        "leaning": leaning,
        "together": _halved((sketch.together - _guessed(sketch.ranks, leaning))[None] % RANK_LEVELS)[0],
    }
    if profile.strengths is not None:
        arrays["strengths"] = profile.strengths.astype(np.float32)
    made = profile.replicates
    if made is not None:
        arrays |= {
            "resampled_importance": made.importance.astype(np.float32),
            "resampled_scores": made.scores.astype(np.float32),
            "halves": made.halves.astype(np.float32),
        }
    about: Json = {
        "format": FORMAT,
        "reference": fingerprint.reference,
        "stimuli_digest": profile.stimuli_digest,
        "system": profile.system,
        "layers": profile.layers,
        "features": profile.features,
        "settings": profile.settings,
        "parts": None if made is None else made.parts,
        "metadata": profile.metadata,
        "facts": fingerprint.facts,
        "versions": versions(),
    }
    try:
        check_words(plain(about))
    except ValueError as error:
        raise InvalidInput(f"This fingerprint cannot be written: {error}.") from error
    return with_seal(packed_arrays(arrays, about=about), last=True)


def fingerprint_from(data: bytes, path: Path | str) -> Fingerprint:
    """A fingerprint from the bytes of its file, all of it checked; `path` for messages."""
    if seal_of(data) is None:
        raise DamagedFile(f"{path} is damaged, or is no fingerprint: {WAY_OUT}.")
    with reading(Path(str(path)), WAY_OUT):
        arrays, about = unpacked_arrays(data, most_bytes=MOST_BYTES)
        return _fingerprint(arrays, about)


def _fingerprint(arrays: Arrays, about: Mapping[str, Any]) -> Fingerprint:
    if about.get("format") != FORMAT:
        raise ValueError(f"a fingerprint of format {about.get('format')!r}, {FORMAT} was expected")
    name = about["reference"]
    if not isinstance(name, str) or name not in DIGESTS or about["stimuli_digest"] != DIGESTS[name]:
        raise ValueError(f"made from stimuli {name!r} that this version does not have")
    check_words(about)
    layers = tuple(about["layers"])
    features = tuple(str(feature) for feature in about["features"])
    if features != tuple(str(f) for f in reference(name).features.columns):
        raise ValueError(f"its features are not those of {name}")
    n_layers, n_features = len(layers), len(features)
    n_folds = arrays["scores"].shape[-1]
    if not n_folds:
        raise ValueError("importances of no folds")
    shape = (n_layers, n_folds, n_features)
    replicates = None
    if about["parts"] is not None:
        replicates = Replicates(
            scores=_numbers(arrays, "resampled_scores", (None, n_layers)),
            importance=_numbers(arrays, "resampled_importance", (None, n_layers, n_features)),
            halves=_numbers(arrays, "halves", (None, 2, n_layers, n_features)),
            parts=about["parts"],
            sentences=len(reference(name).sentences),
        )
    profile = Profile(
        system=about["system"],
        layers=layers,
        features=features,
        importance=_numbers(arrays, "importance", shape),
        scores=_numbers(arrays, "scores", shape[:2]),
        strengths=_numbers(arrays, "strengths", shape) if "strengths" in arrays else None,
        settings=about["settings"],
        stimuli_digest=about["stimuli_digest"],
        replicates=replicates,
        metadata=about["metadata"],
    )
    return Fingerprint(name, profile, _sketch(arrays, name, n_layers), about["facts"])


def _sketch(arrays: Arrays, name: str, n_layers: int) -> Sketch:
    pairs = sketch_pairs(name)
    n_pairs = len(pairs.ranked)
    ranks = _whole(_codes(arrays, "ranks", np.uint8, (n_layers, -(-n_pairs // 2))), n_pairs)
    left = _whole(_codes(arrays, "together", np.uint8, (-(-n_pairs // 2),))[None], n_pairs)[0]
    leaning = _codes(arrays, "leaning", np.int32, (n_layers + 1,))
    together = ((left + _guessed(ranks, leaning)) % RANK_LEVELS).astype(np.uint8)
    gram = _codes(arrays, "gram", np.int8, (n_layers, len(pairs.products)))
    if (np.abs(gram.astype(np.int64)) > GRAM_LEVELS).any():
        raise ValueError("Gram entries out of range")
    return Sketch(ranks, gram, together)


def _leaning(ranks: np.ndarray, together: np.ndarray) -> np.ndarray:
    """How each layer's ranks foretell those of all side by side, which then take few bytes: whole numbers."""
    columns = np.vstack([ranks, np.ones(ranks.shape[1])]).T
    weights = np.linalg.lstsq(columns, together.astype(np.float64), rcond=None)[0]
    most = np.iinfo(np.int32).max // (RANK_LEVELS * len(weights))
    return np.clip(np.rint(weights * UNIT), -most, most).astype(np.int32)


def _guessed(ranks: np.ndarray, leaning: np.ndarray) -> np.ndarray:
    """Ranks of all layers side by side as those of each lean: in whole numbers, so the same everywhere."""
    total = leaning[:-1].astype(np.int64) @ ranks.astype(np.int64) + leaning[-1]
    return np.clip((total + UNIT // 2) // UNIT, 0, RANK_LEVELS - 1)


def _halved(codes: np.ndarray) -> np.ndarray:
    """Codes below 16 (n, k), two in a byte."""
    even = np.zeros((len(codes), -(-codes.shape[1] // 2) * 2), dtype=np.uint8)
    even[:, : codes.shape[1]] = codes
    packed: np.ndarray = even[:, ::2] * RANK_LEVELS + even[:, 1::2]
    return packed


def _whole(packed: np.ndarray, n: int) -> np.ndarray:
    codes = np.empty((len(packed), 2 * packed.shape[1]), dtype=np.uint8)
    codes[:, ::2], codes[:, 1::2] = packed // RANK_LEVELS, packed % RANK_LEVELS
    return codes[:, :n]


def _codes(arrays: Arrays, name: str, kind: type, shape: tuple[int, ...]) -> np.ndarray:
    found = arrays[name]
    if found.dtype != kind or found.shape != shape:
        raise ValueError(f"{name} is {found.dtype} {found.shape}, {np.dtype(kind)} {shape} was expected")
    return found


def _numbers(arrays: Arrays, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    found = arrays[name]
    fits = found.ndim == len(shape) and all(
        a > 0 if b is None else a == b for a, b in zip(found.shape, shape, strict=True)
    )
    if found.dtype not in (np.float32, np.float64) or not fits:
        raise ValueError(f"{name} is {found.dtype} {found.shape}: numbers {shape} were expected")
    if (np.abs(found) > LARGEST).any():
        raise ValueError(f"{name} has numbers beyond {LARGEST:g}")
    if name in ALWAYS_KNOWN and np.isnan(found).any():
        raise ValueError(f"{name} has places without a number")
    return found.astype(np.float64)


MOST_WORDS = 200_000
"""Characters of all the words"""
MOST_NAME, MOST_TEXT = 200, 1_000
"""Characters of a name, and of a fact"""
MOST_NESTED = 20
LARGEST_FACT = 2**53
"""Whole numbers that tables keep exactly"""


def check_words(about: Facts) -> None:
    """ValueError that says what is wrong, if these are not the words of a fingerprint."""
    _check_printable(about)
    if len(json.dumps(about)) > MOST_WORDS:
        raise ValueError(f"more than {MOST_WORDS:,} characters about the numbers")
    _check_name("the name of the system", about["system"])
    _check_layers(about["layers"])
    for group in ("settings", "metadata", "facts"):
        if not isinstance(about[group], dict):
            raise ValueError(f"{group} are a {type(about[group]).__name__}, names and values were expected")
    for fact, value in mapping(about["facts"]).items():
        _check_name("the name of a fact", fact)
        if not _is_fact(value):
            raise ValueError(
                f"the fact {fact!r} is {_short(value)}: one number or a text of at most {MOST_TEXT:,} "
                "characters was expected"
            )
    parts = about["parts"]
    if parts is not None and (isinstance(parts, bool) or not isinstance(parts, int) or parts < 2):
        raise ValueError(f"{_short(parts)} parts of the sentences, two or more were expected")


def mapping(value: Value) -> dict[str, Any]:
    """Names and values; nothing where there are none."""
    return value if isinstance(value, dict) else {}


def _check_printable(value: Value, depth: int = 0) -> None:
    """No control characters anywhere: they could move the cursor of a terminal, or turn a text around."""
    if depth > MOST_NESTED:
        raise ValueError(f"words that are nested more than {MOST_NESTED} times")
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_printable(key, depth + 1)
            _check_printable(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_printable(inner, depth + 1)
    elif isinstance(value, str) and not value.isprintable():
        raise ValueError("words with control characters")


def _check_name(what: str, name: Value) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > MOST_NAME:
        raise ValueError(f"{what} is {_short(name)}: 1 to {MOST_NAME} characters were expected")


def _check_layers(layers: Value) -> None:
    if not isinstance(layers, list) or not layers:
        raise ValueError(f"its layers are {_short(layers)}: a list of one or more was expected")
    for layer in layers:
        whole = isinstance(layer, int) and not isinstance(layer, bool) and 0 <= layer < LARGEST_FACT
        if not whole and not (isinstance(layer, str) and layer.strip() and len(layer) <= MOST_NAME):
            raise ValueError(f"{_short(layer)} names no layer")
    if len(set(map(str, layers))) < len(layers):
        raise ValueError("two layers of one name")


def _is_fact(value: Value) -> bool:
    if isinstance(value, str):
        return len(value) <= MOST_TEXT
    if isinstance(value, int):  # also true and false
        return abs(value) <= LARGEST_FACT
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _short(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
