"""No test depends on how fast it runs."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import settings

HERE = Path(__file__).parent
MAY_KNOW_THE_TIME = ("waiting.py", "hostile")
"""The one that waits for states, and the harness whose business is to end processes at random moments"""


def test_no_other_test_sleeps_or_looks_at_a_clock() -> None:
    clock = re.compile(r"^\s*(import|from) (.*\b)?(time|timeit)\b(?!\.)", re.MULTILINE)
    others = [path for path in HERE.rglob("*.py") if path.relative_to(HERE).parts[0] not in MAY_KNOW_THE_TIME]
    assert others
    assert not [path for path in others if clock.search(path.read_text("utf-8"))]


def test_hypothesis_measures_no_time() -> None:
    assert settings.default is not None
    assert settings.default.deadline is None
