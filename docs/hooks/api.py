"""The names of a package, made from the package itself when the site is built."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- api: (\S+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the public names of a package where `<!-- api: PACKAGE -->` is."""
    return MARK.sub(lambda found: "\n\n".join(f"::: {path}" for path in public(found[1])), markdown)


def public(package: str) -> list[str]:
    """The full path of every name in the package's `__all__`: functions and classes, then tables."""
    module = importlib.import_module(package)
    homes = {
        **imported(Path(str(module.__file__)).read_text(encoding="utf-8")),
        **getattr(module, "_HOMES", {}),
    }
    names = [name for name in module.__all__ if not name.startswith("__")]
    ordered = sorted(names, key=lambda name: (name.isupper(), name.lower()))
    return [f"{homes.get(name, package)}.{name}" for name in ordered]


def imported(source: str) -> dict[str, str]:
    """Name → the module it comes from, for the `from … import` lines of a file."""
    lines = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.asname or alias.name: str(node.module) for node in lines for alias in node.names}
