"""A cache of its own for every test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the cache of the user, or of another test."""
    monkeypatch.setenv("THINKALIKE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
