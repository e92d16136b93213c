"""Whatever is imported is there, also inside functions: mypy passes over modules that it cannot find."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "training", "benchmarks", "examples")
OURS = ("thinkalike", "training", "benchmarks")
OF_OLD = REPOSITORY / "tests" / "golden" / "record.py"
"""Runs on old checkouts too, and asks for names that are no more"""


def imported_names(path: Path) -> Iterator[tuple[str, str | None]]:
    """Every module of ours that `path` imports, anywhere in it, with the name that is taken from it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.split(".")[0] in OURS)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS:
            yield from ((node.module, alias.name) for alias in node.names)


@cache
def is_there(module: str, name: str | None) -> bool:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        return (error.name or "").split(".")[0] not in OURS  # what is missing is an extra
    if name is None or hasattr(found, name):
        return True
    return hasattr(found, "__path__") and importlib.util.find_spec(f"{module}.{name}") is not None


def test_whatever_is_imported_is_there() -> None:
    code = {path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py")} - {OF_OLD}
    wanted = {(path, *found) for path in code for found in imported_names(path)}
    missing = [
        f"{path.relative_to(REPOSITORY)}: {module} has no {name}"
        for path, module, name in sorted(wanted, key=str)
        if not is_there(module, name)
    ]
    assert not missing, "\n".join(missing)


def test_a_module_or_name_that_is_gone_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("def f():\n    from thinkalike.files import nonsense\n    import thinkalike.gone\n")
    assert [is_there(*found) for found in imported_names(path)] == [False, False]
