"""The page about measures says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from thinkalike import comparison
from thinkalike.errors import InvalidInput
from thinkalike.measures import MEASURES
from thinkalike.measures.describe import main, measures_table, renewed

PAGE = Path(__file__).parents[2] / "docs" / "measures.md"


def test_the_tables_are_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert renewed(page) == page, "run: python -m thinkalike.measures.describe docs/measures.md"


def test_every_measure_has_its_row() -> None:
    rows = measures_table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(MEASURES)


def test_a_row_by_hand() -> None:
    assert (
        "| `pwcca` | similarity | 0 … 1 | ✓ | ✓ | ✓ | ✓ of Y | ✓ of Y |  | nd² + d³ | Morcos et al. 2018 |"
        in measures_table().splitlines()
    )


def test_every_name_that_the_page_uses_exists() -> None:
    known = {*MEASURES, "ta.explain", "probe_layers", *comparison.__all__}
    in_short = (
        PAGE.read_text(encoding="utf-8").partition("## In short")[2].partition("The published names")[0]
    )
    for name in re.findall(r"`([^`]+)`", in_short):
        assert name in known, name


def test_the_page_is_renewed_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- measures: begin -->\nstale lines\n<!-- measures: end -->\nafter\n", encoding="utf-8"
    )
    monkeypatch.setattr("sys.argv", ["describe", str(page)])
    main()
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert measures_table() in text
    assert "stale" not in text


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(InvalidInput, match="The page has no <!-- measures: begin -->"):
        renewed("nothing here")
