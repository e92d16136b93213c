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


PACKAGE = ROOT / "src" / "thinkalike"
TABLE = re.findall(
    r"^\| (?:`(\w+)/`|\*the ground\*) \| (.*) \|$",
    (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize(("package", "told"), TABLE, ids=[package or "the ground" for package, _ in TABLE])
def test_the_architecture_page_names_all_modules_and_no_others(package: str, told: str) -> None:
    """Of recipes, which are packages of twins, and of commands, the page names the kind."""
    folder = PACKAGE / package
    have = {path.name for path in (folder.rglob("*.py") if package else folder.glob("*.py"))}
    named = set(re.findall(r"`(\w+\.py)`", told))
    assert not named - have, "named, and not there"
    if package == "recipes":
        have = {path.name for path in folder.glob("*.py")}
    if package == "cli":
        commands = (folder / "commands.py").read_text(encoding="utf-8")
        have -= {
            f"{name}.py" for name in re.findall(r"^from thinkalike.cli import (\w+)", commands, re.MULTILINE)
        }
    assert not {name for name in have if not name.startswith("__")} - named, "there, and not named"


def test_every_package_has_a_row() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {package for package, _ in TABLE} == packages | {""}
