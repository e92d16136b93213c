"""The pages about the code name what is there: every stop of the walk, every module of the architecture."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "walk.md"
STOPS = re.findall(r"\[`(\w+)`\]\(\.\./src/([\w/]+)\.py\)", PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "path"), STOPS)
def test_a_stop_is_there(name: str, path: str) -> None:
    module = path.replace("/", ".")
    found = getattr(importlib.import_module(module), name)
    assert found.__module__ == module, f"{name} stands in {found.__module__}"


def test_every_stop_is_a_link_and_the_page_is_a_screen_long() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d+ \|", text, re.MULTILINE)
    assert rows
    assert len(re.findall(r"^\| \d+ \|.*\]\(\.\./src/", text, re.MULTILINE)) == len(rows)
    assert len(text.splitlines()) <= 40


def test_the_architecture_page_names_modules_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`(\w+)/`|\*the ground\*) \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 10
    for _, package, told in rows:
        folder = ROOT / "src" / "thinkalike" / package
        have = {path.name for path in folder.rglob("*.py")}
        lost = set(re.findall(r"`(\w+\.py)`", told)) - have
        assert not lost, f"{package}: {sorted(lost)}"
