"""`thinkalike report`: the page and the figures of a finished run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from thinkalike.errors import InvalidInput, StoreError, UnknownName

Run = Callable[..., Any]


@pytest.fixture
def folder(finished: tuple[Path, str], tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished[0], tmp_path / "run"))


def test_the_page_is_written_again_to_the_letter(folder: Path, run: Run) -> None:
    page = folder / "index.html"
    before = page.read_text(encoding="utf-8")
    page.unlink()
    assert run("report", folder).stdout.split() == [str(page)]
    assert page.read_text(encoding="utf-8") == before


def test_it_links_to_the_tables_of_the_run(folder: Path) -> None:
    html = (folder / "index.html").read_text(encoding="utf-8")
    for path in (folder / "tables").iterdir():
        assert f'href="tables/{path.name}"' in html


def test_figures_are_written_with_a_chosen_pair(folder: Path, run: Run) -> None:
    printed = run("report", folder, "--figures", "svg", "--pair", "tiny-bert:1", "decoder:2").stdout.split()
    drawn = {path.name for path in (folder / "figures").iterdir()}
    assert {
        "profiles.svg",
        "matrix-features.svg",
        "pair-most-alike.svg",
        "pair-tiny-bert-1-and-decoder-2.svg",
    } <= drawn
    assert {Path(line).name for line in printed} == drawn | {"index.html"}


def test_an_unknown_format_is_named_and_nothing_is_drawn(folder: Path, run: Run) -> None:
    with pytest.raises(UnknownName, match=r"There is no figure format 'jpg'. Did you mean 'png'\?"):
        run("report", folder, "--figures", "jpg")
    assert not (folder / "figures").exists()


def test_a_pair_needs_figures(folder: Path, run: Run) -> None:
    with pytest.raises(
        InvalidInput, match="--pair names charts to write as files: give --figures png, svg or pdf too"
    ):
        run("report", folder, "--pair", "tiny-bert:1", "decoder:2")


def test_a_layer_that_is_not_there_is_named(folder: Path, run: Run) -> None:
    with pytest.raises(UnknownName, match="There is no layer '7' in tiny-bert"):
        run("report", folder, "--figures", "svg", "--pair", "tiny-bert:7", "decoder:2")


def test_a_folder_without_a_run_is_named(tmp_path: Path, run: Run) -> None:
    with pytest.raises(StoreError, match=str(tmp_path)):
        run("report", tmp_path)
