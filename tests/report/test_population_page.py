"""The page of a population: what it holds, that names cannot break it, and who is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import thinkalike as ta
from thinkalike.errors import InvalidInput
from thinkalike.report.population_page import render_population, write_population

FEW = {"n_draws": 5, "n_permutations": 19}


def data_of(page: str) -> dict[str, object]:
    found = re.search(r"const DATA = (\{.*\});$", page, re.MULTILINE)
    assert found is not None
    return json.loads(found.group(1))  # type: ignore[no-any-return]


def test_the_page_of_the_bundled_models(tmp_path: Path) -> None:
    atlas = ta.Atlas()
    path = write_population(atlas.fingerprints(), tmp_path / "page.html", **FEW)
    page = path.read_text(encoding="utf-8")
    data = data_of(page)
    assert data["names"] == atlas.names
    np.testing.assert_allclose(np.array(data["distances"]), atlas.distances().values, atol=1e-4)
    assert set(data["facts"]) >= {"architecture", "family"}
    assert "vocabulary was left out: it is the same in all models" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_names_cannot_break_the_page() -> None:
    some = ta.Atlas().fingerprints(("nano-gpt2", "nano-bert", "nano-mamba"))
    bad = "</script><script>alert(1)</script>"
    first = replace(some[0], profile=replace(some[0].profile, system=bad))
    page = render_population([first, *some[1:]], **FEW)
    assert bad not in page
    assert data_of(page)["names"][0] == bad  # type: ignore[index]
    assert "Too few models" in page


def test_two_are_no_population() -> None:
    with pytest.raises(InvalidInput, match="There are 2 models: the page of a population takes three"):
        render_population(ta.Atlas().fingerprints(("nano-gpt2", "nano-bert")))


def test_facts_of_ones_own() -> None:
    atlas = ta.Atlas()
    table = pd.DataFrame({"house": {name: "a" if "pythia" in name else "b" for name in atlas.names}})
    page = render_population(atlas.fingerprints(), facts=atlas.facts(table), **FEW)
    assert "house" in data_of(page)["facts"]  # type: ignore[operator]
