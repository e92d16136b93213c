"""`thinkalike.NAME` is the thing itself, whatever was imported before."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

import thinkalike


@pytest.mark.parametrize("name", thinkalike.__all__)
def test_a_public_name_is_not_the_module_of_that_name(name: str) -> None:
    for module in ("explain", "similarity", "profiling"):
        importlib.import_module(f"thinkalike.comparison.{module}")
    assert not isinstance(getattr(thinkalike, name), ModuleType)
