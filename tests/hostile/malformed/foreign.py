"""Files of other programs: JSON lines, datasets, MATLAB files, sparse autoencoders."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile.malformed.cases import Malformed, both, good_arrays, good_csv, sentences, vectors, writes

GOOD_LINE = '{"text": "she ran", "x": 1}\n'
LATENTS = ("extract", "nano-pythia-64", "--stimuli", "w.csv", "--autoencoder", "sae", "--layer", "1")
NUMBERS = ("--latents", "1", "--out", "x")
N_UNITS = 64


def foreign_cases() -> Iterator[Malformed]:
    yield from _json_lines()
    yield from _datasets()
    yield from _matlab()
    yield from _autoencoders()


def _json_lines() -> Iterator[Malformed]:
    contents: dict[str, tuple[str | bytes, Any]] = {
        "empty": ("", "refused"),
        "blank": ("\n\n", "refused"),
        "a list": ("[1, 2]\n", "refused"),
        "null": ("null\n", "refused"),
        "cut in a line": (GOOD_LINE + '{"text": "he', "refused"),
        "two objects in a line": (GOOD_LINE.strip() * 2, "refused"),
        "objects of nothing": ("{}\n{}\n", "refused"),
        "a list in a cell": ('{"text": "a", "x": [1]}\n', "refused"),
        "brackets": ('{"text": ' + "[" * 100_000, "refused"),
        "a number of 5,000 digits": ('{"text": "a", "x": ' + "9" * 5_000 + "}\n", "refused"),
        "infinity": (GOOD_LINE + '{"text": "b", "x": Infinity}\n', "refused"),
        "1e999": (GOOD_LINE + '{"text": "b", "x": 1e999}\n', "refused"),
        "half a character": ('{"text": "\\ud800", "x": 1}\n' + GOOD_LINE, "refused"),
        "a name twice": ('{"text": "a", "x": 1, "x": 2}\n', "refused"),
        "a nameless column": ('{"text": "a", "": 1}\n' + GOOD_LINE, "refused"),
        "utf-16": (GOOD_LINE.encode("utf-16"), "refused"),
        "random bytes": (np.random.default_rng(0).bytes(2000), "refused"),
        "a text that is a number": ('{"text": 3, "x": 1}\n{"text": 4, "x": 2}\n', "either"),
        "a text that is null": ('{"text": null, "x": 1}\n' + GOOD_LINE, "refused"),
        "as it should be": (GOOD_LINE + '{"text": "he sat", "x": 2}\n', "accepted"),
    }
    for name, (content, expected) in contents.items():
        make = writes("t.jsonl", content)
        yield Malformed(f"JSON lines: {name}", ("stimuli", "--check", "t.jsonl"), make, expected)


def _datasets() -> Iterator[Malformed]:
    def folder_of(folder: Path, files: dict[str, str]) -> None:
        (folder / "d").mkdir()
        for name, content in files.items():
            (folder / "d" / name).write_text(content)

    for name, content in {"empty": b"", "text": b"hello", "zeros": bytes(500), "cut": b"ARROW1\0\0"}.items():
        arguments = ("stimuli", "--check", "t.arrow")
        yield Malformed(f"dataset: an .arrow file, {name}", arguments, writes("t.arrow", content))
    for name, files in {
        "a state of null": {"state.json": "null"},
        "a state of nothing": {"state.json": "{}"},
        "a state that is cut": {"state.json": '{"_data_files": ['},
        "files that are not there": {
            "state.json": json.dumps({"_data_files": [{"filename": "none.arrow"}], "_split": "train"}),
            "dataset_info.json": "{}",
        },
        "splits that are not there": {"dataset_dict.json": '{"splits": ["train"]}'},
    }.items():
        make = partial(folder_of, files=files)
        yield Malformed(f"dataset: a folder with {name}", ("stimuli", "--check", "d"), make)


def _matlab() -> Iterator[Malformed]:
    from scipy.io import savemat

    def content(value: Any, **options: Any) -> bytes:
        buffer = io.BytesIO()
        savemat(buffer, {"x": value}, **options)
        return buffer.getvalue()

    whole = content(vectors(), do_compression=True)
    newer = whole[:124] + b"\x00\x02IM" + bytes(384) + b"\x89HDF\r\n\x1a\n" + bytes(100)
    contents: dict[str, tuple[bytes, Any]] = {
        "empty": (b"", "refused"),
        "one byte": (b"M", "refused"),
        "text": (b"no MATLAB file " * 30, "refused"),
        "zeros": (bytes(1000), "refused"),
        "random bytes": (np.random.default_rng(0).bytes(3000), "refused"),
        "a header alone": (whole[:128], "refused"),
        "cut in half": (whole[: len(whole) // 2], "refused"),
        "of version 7.3, and cut": (newer, "refused"),
        "of version 4, and cut": (content(vectors(), format="4")[:200], "refused"),
        "of text": (content("hello"), "refused"),
        "of a structure": (content({"a": 1}), "refused"),
        "of complex numbers": (content(vectors() + 1j), "refused"),
        "of too few rows": (content(vectors()[:-1]), "refused"),
        "of NaN": (content(vectors() * np.nan), "refused"),
        "as it should be": (whole, "accepted"),
    }
    rng = np.random.default_rng(3)
    for k in range(12):
        flipped, place = bytearray(whole), int(rng.integers(len(whole)))
        flipped[place] ^= 1 << int(rng.integers(8))
        contents[f"with a bit of byte {place} flipped ({k})"] = (bytes(flipped), "either")
    arguments = ("compare", "a.mat", "b.npz", "--stimuli", "s.csv", "--resamples", "0", "--no-report")
    for name, (data, expected) in contents.items():
        make = both(good_csv, good_arrays, writes("a.mat", data))
        yield Malformed(f".mat {name}", (*arguments, "--out", "run"), make, expected)


def _autoencoders() -> Iterator[Malformed]:
    def save(folder: Path, config: str, **changes: Any) -> None:
        from safetensors.numpy import save_file

        rng = np.random.default_rng(0)
        made: dict[str, Any] = {
            "W_enc": rng.normal(size=(N_UNITS, 128)).astype(np.float32),
            "b_enc": np.zeros(128, np.float32),
            "b_dec": np.zeros(N_UNITS, np.float32),
        }
        (folder / "sae").mkdir()
        save_file({**made, **changes}, folder / "sae" / "sae_weights.safetensors")
        (folder / "sae" / "cfg.json").write_text(config)

    top = '{"architecture": "topk", "k": %s}'
    configs = {
        "null": "null",
        "a list": "[]",
        "3": "3",
        "nothing": "",
        "cut": '{"k": ',
        "brackets": "[" * 100_000,
    }
    configs |= {f"k = {k[:9]}": top % k for k in ("0", "-3", "1.5", '"x"', "null", "[]", "NaN", "1e999")}
    configs["an unknown architecture"] = '{"architecture": ["gated"]}'
    configs["activations of text"] = '{"activation_fn_kwargs": "k=3"}'
    for name, config in configs.items():
        make = both(sentences, partial(save, config=config))
        yield Malformed(f"autoencoder: cfg.json, {name}", (*LATENTS, *NUMBERS), make)
    weights: dict[str, dict[str, Any]] = {
        "one dimension": {"W_enc": np.ones(N_UNITS, np.float32)},
        "another width": {
            "W_enc": np.ones((N_UNITS + 1, 128), np.float32),
            "b_dec": np.zeros(65, np.float32),
        },
        "a bias of another shape": {"b_enc": np.zeros(127, np.float32)},
        "NaN": {"b_enc": np.full(128, np.nan, np.float32)},
        "no latents": {"W_enc": np.ones((N_UNITS, 0), np.float32), "b_enc": np.zeros(0, np.float32)},
    }
    for name, changes in weights.items():
        make = both(sentences, partial(save, config="{}", **changes))
        yield Malformed(f"autoencoder: weights of {name}", (*LATENTS, *NUMBERS), make)
    for words in ("99999", "-1", "x", "1:", ",", "5:2", "1,1", "9" * 30):
        make = both(sentences, partial(save, config="{}"))
        expected: Any = "either" if words == "1,1" else "refused"
        yield Malformed(
            f"autoencoder: --latents {words[:9]}",
            (*LATENTS, "--latents", words, "--out", "x"),
            make,
            expected,
        )
