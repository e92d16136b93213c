"""`thinkalike explain` on a finished run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from thinkalike.errors import InvalidInput, StoreError, UnknownName

Run = Callable[..., Any]


def test_explain_a_pair_of_the_run(finished: tuple[Path, str], run: Run) -> None:
    printed = run(
        "explain", finished[0], "tiny-bert:1", "decoder:2", "--group", "agreement=number,person"
    ).stdout
    assert printed.startswith(
        "tiny-bert:1 and decoder:2 do not rank the features alike beyond chance (τ_w = "
    )
    assert max(len(line) for line in printed.split("\n\n")[0].splitlines()) <= 100
    assert "without agreement: τ_w = " in printed
    assert "The features explain these pairs worst:" in printed
    assert (
        "explain these pairs worst"
        not in run("explain", finished[0], "tiny-bert:1", "decoder:2", "--worst", 0).stdout
    )


def test_what_explain_cannot_find(finished: tuple[Path, str], run: Run, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="There is no layer '9' in decoder"):
        run("explain", finished[0], "tiny-bert:1", "decoder:9")
    with pytest.raises(InvalidInput, match="'decoder' names no layer: write SYSTEM:LAYER"):
        run("explain", finished[0], "tiny-bert:1", "decoder")
    with pytest.raises(InvalidInput, match="'agreement' is no group: write NAME=FEATURE,FEATURE"):
        run("explain", finished[0], "tiny-bert:1", "decoder:1", "--group", "agreement")
    with pytest.raises(StoreError, match="holds no run of thinkalike"):
        run("explain", tmp_path, "a:1", "b:1")
