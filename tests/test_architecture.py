"""The shape of the code: who may import whom, and what must stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import thinkalike

ROOT = Path(thinkalike.__file__).parent

# A package may import only from those that stand before it.
ORDER = [
    "types",
    "errors",
    "machine",
    "addresses",
    "leases",
    "files",
    "foreign_json",
    "checkpoint",
    "options",
    "progress",
    "ownership",
    "lazy",
    "provenance",
    "saving",
    "parallel",
    "dispatch",
    "registry",
    "labels",
    "wording",
    "many_tests",
    "charts",
    "stimuli",
    "systems",
    "activations",
    "pairs",
    "encoding",
    "measures",
    "streaming",
    "stitching",
    "inference",
    "comparison",
    "populations",
    "report",
    "serving",
    "recipes",
    "cli",
    "__main__",
]


def imported_packages(path: Path) -> set[str]:
    """The thinkalike packages that the module at `path` imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where a name comes from"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "thinkalike" and len(parts) > 1:
                found.add(parts[1])
    return found & set(ORDER)


def modules() -> list[Path]:
    return sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


def test_every_package_has_a_place_in_the_order() -> None:
    packages = {p.relative_to(ROOT).parts[0].removesuffix(".py") for p in modules()}
    assert packages == set(ORDER)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    later = {name for name in imported_packages(path) if ORDER.index(name) > ORDER.index(own)}
    assert not later, f"{path.relative_to(ROOT)} imports from {sorted(later)}, which stand below it"


@pytest.mark.parametrize(
    "code",
    ["import thinkalike", "from thinkalike.cli import app; app(['--help'], standalone_mode=False)"],
    ids=["import", "help"],
)
def test_torch_is_not_loaded_for(code: str) -> None:
    script = f"import sys\n{code}\nassert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize("name", [n for n in thinkalike.__all__ if n != "__version__"])
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(thinkalike, name) is not None


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = thinkalike.nonsense
