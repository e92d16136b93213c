"""A public name is the thing itself, whatever was imported before: no module is called like its content."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

PACKAGES = [
    "thinkalike",
    "thinkalike.activations",
    "thinkalike.comparison",
    "thinkalike.encoding",
    "thinkalike.measures",
    "thinkalike.populations",
    "thinkalike.systems",
    "thinkalike.systems.bundled",
    "thinkalike.streaming",
    "thinkalike.systems.bundled",
    "thinkalike.stimuli",
    "thinkalike.stitching",
]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_public_name_is_not_a_module(package: str) -> None:
    found = importlib.import_module(package)
    for module in pkgutil.iter_modules(found.__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in found.__all__:
        assert not isinstance(getattr(found, name), ModuleType), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    package, name = importlib.import_module("thinkalike.comparison"), "explian"
    with pytest.raises(AttributeError, match=r"module 'thinkalike\.comparison' has no attribute 'explian'"):
        getattr(package, name)
