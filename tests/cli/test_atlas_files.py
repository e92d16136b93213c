"""What `thinkalike atlas add` makes of files: fingerprints, and arrays that are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinkalike as ta
from thinkalike.errors import InvalidInput, StoreError

Run = Callable[..., Any]


def test_a_fingerprint_has_its_name_and_its_facts(run: Run, tmp_path: Path) -> None:
    file = ta.Atlas()["nano-bert"].save(tmp_path / "one.npz")
    for given, message in (
        ([f"mine={file}"], "leave out mine="),
        ([file, "--fact", "a=b"], "leave out --fact"),
    ):
        with pytest.raises(InvalidInput, match=message):
            run("atlas", "add", *given, "--at", tmp_path / "atlas")
    with pytest.raises(InvalidInput, match="is a file, and an atlas is a folder"):
        run("atlas", "list", "--at", file)


def test_a_place_below_a_file_is_refused_before_a_model_is_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    for place in ("notes.txt", "notes.txt/atlas", "notes.txt/a/b"):
        with pytest.raises(InvalidInput, match=r"notes\.txt is a file, and an atlas is a folder"):
            run("atlas", "add", "a-model-that-nobody-has", "--at", place)  # read, it would fail otherwise
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_file_of_arrays_is_no_fingerprint(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "few.npz", **{"0": np.eye(4)})
    with pytest.raises(StoreError, match="has 4 rows but the stimuli have"):
        run("atlas", "add", tmp_path / "few.npz", "--at", tmp_path / "atlas")
