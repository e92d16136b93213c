"""Every public name says what it takes and gives, with an example; and every example runs."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import thinkalike
from thinkalike.comparison.cautions import CautionWarning

SOURCE = Path(str(thinkalike.__file__)).parent
PACKAGES = sorted(
    {"thinkalike"}
    | {found.name for found in pkgutil.walk_packages(thinkalike.__path__, "thinkalike.") if found.ispkg}
)
NAMES = [
    (package, name)
    for package in PACKAGES
    # The command line has help of its own; a recipe's package has the two names that its `Recipe` asks for.
    if package != "thinkalike.cli" and not package.startswith("thinkalike.recipes.")
    for name in getattr(importlib.import_module(package), "__all__", ())
    if name != "__version__"
]
HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """Heading → what stands under it, of a numpydoc docstring."""
    parts = HEADING.split(inspect.cleandoc(text))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(section: str) -> set[str]:
    """The names that a section explains: `a`, `a, b` or `a : kind`, at the margin, several by `;`."""
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    entries = [entry for line in lines for entry in line.split(";")]
    return {name.strip(" *") for entry in entries for name in entry.split(" : ")[0].split(",")}


def parameters(function: Callable[..., Any]) -> set[str]:
    """What a caller can give."""
    return {
        name
        for name in inspect.signature(function).parameters
        if name not in ("self", "cls") and not name.startswith("_")
    }


def lacks(found: Any) -> Iterator[str]:
    """What is missing from the docstring of a function or class."""
    text = inspect.cleandoc(found.__doc__ or "")
    if not text:
        yield "a docstring"
        return
    parts = sections(text)
    if isinstance(found, type):
        told = described(parts.get("Parameters", "")) | described(parts.get("Attributes", ""))
        told |= documented_fields(found)
        for name, member in vars(found).items():
            callable_member = inspect.isfunction(member) or isinstance(member, (property, classmethod))
            if callable_member and not name.startswith("_") and not inspect.getdoc(getattr(found, name)):
                yield f"a docstring of {name}"
    else:
        told = described(parts.get("Parameters", ""))
        returns = inspect.signature(found).return_annotation
        if returns not in (None, "None", inspect.Signature.empty) and "Returns" not in parts:
            yield "Returns"
    if not (isinstance(found, type) and issubclass(found, Exception)):
        yield from sorted(f"parameter {name}" for name in parameters(found) - told)
    if ">>>" not in parts.get("Examples", ""):
        yield "Examples"


def documented_fields(found: type) -> set[str]:
    """Attributes with a string under them, alone or as the last of a few that it speaks of."""
    told: set[str] = set()
    for kind in found.__mro__[:-1]:
        if not kind.__module__.startswith("thinkalike"):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
        waiting: list[str] = []
        for node in getattr(tree.body[0], "body", []):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                waiting.append(node.target.id)
            elif isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
                told.update(waiting[-1:])
                waiting = []
    return told


def home(package: str, name: str) -> Path:
    """The module that a public constant is written in."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))) if path.name == "__init__.py" else ():
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return home(str(node.module), name)
        if isinstance(node, ast.Dict):  # the table of names that are loaded when first used
            table = {getattr(k, "value", None): getattr(v, "value", None) for k, v in _entries(node)}
            if name in table:
                return home(str(table[name]), name)
    return path


def _entries(node: ast.Dict) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    return zip(node.keys, node.values, strict=True)


def has_a_string_under_it(path: Path, name: str) -> bool:
    """A constant is documented by the string that follows it."""
    body = ast.parse(path.read_text("utf-8")).body
    for node, after in pairwise(body):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if any(getattr(target, "id", None) == name for target in targets):
            return isinstance(after, ast.Expr) and isinstance(getattr(after.value, "value", None), str)
    return False


@pytest.mark.parametrize(("package", "name"), NAMES, ids=lambda value: str(value))
def test_a_public_name_is_documented(package: str, name: str) -> None:
    found = getattr(importlib.import_module(package), name)
    if isinstance(found, type) or inspect.isroutine(found):
        assert not list(lacks(found))
    else:
        assert has_a_string_under_it(home(package, name), name), f"{name}: a string under it"


@pytest.mark.parametrize(
    "module",
    [
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(SOURCE.rglob("*.py"))
        if ">>>" in path.read_text("utf-8")
    ],
)
def test_the_examples_run(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THINKALIKE_CACHE", str(tmp_path / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)  # so few items do call for caution
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        result = doctest.testmod(importlib.import_module(module), optionflags=flags)
    assert result.attempted
    assert not result.failed


def a_bare_function(x: int, y: int = 0) -> int:
    """Adds.

    Parameters
    ----------
    x
        The first.
    """
    return x + y


def test_what_is_missing_is_seen() -> None:
    assert list(lacks(a_bare_function)) == ["Returns", "parameter y", "Examples"]
    assert not has_a_string_under_it(Path(__file__), "HEADING")
