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
from thinkalike.populations.between_models import Distances
from thinkalike.populations.model_trees import ModelTree, model_tree
from thinkalike.populations.why import why
from thinkalike.report.population_answer import population_answer, why_in_words
from thinkalike.report.population_page import _reasons, render_population, write_population

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
    assert (
        "Left out: heads and context (not known of every model); vocabulary (the same in all models)." in page
    )
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
    with pytest.raises(InvalidInput, match="The page of a population takes three models or more: got 2"):
        render_population(ta.Atlas().fingerprints(("nano-gpt2", "nano-bert")))


def test_facts_of_ones_own() -> None:
    atlas = ta.Atlas()
    table = pd.DataFrame({"house": {name: "a" if "pythia" in name else "b" for name in atlas.names}})
    page = render_population(atlas.fingerprints(), facts=atlas.facts(table), **FEW)
    assert "house" in data_of(page)["facts"]  # type: ignore[operator]


def test_the_answer_names_the_nearest_and_what_goes_with_distance() -> None:
    names = tuple(f"m{k}" for k in range(10))
    places = np.array([0.0, 0.1, 1, 2, 3, 20, 21, 22, 23, 26])
    found = Distances("features", names, np.abs(places[:, None] - places))
    tree = ModelTree("features", names, np.zeros((9, 4)), np.array([0.79] + [0.5] * 8))
    size = (places > 10).astype(float)
    nothing = [1.0, 0.0] * 5
    facts = pd.DataFrame({"size": size, "colour": nothing}, index=list(names))
    said = dict(population_answer(found, tree, why(found, facts, n_permutations=499)))
    assert said["Who is alike?"] == "m0 and m1 are the most alike, m0 and m9 the least."
    assert said["How sure is that?"] == "With other sentences m0 and m1 stand together in 79 of 100 draws."
    assert said["Why?"].startswith("Models alike in size are nearer to one another")
    assert "colour" not in said["Why?"]
    # The facts were told apart, so nothing more is needed for them.
    assert said["What would change it?"].startswith("By geometry, which knows no features")
    assert said["What next?"].startswith("See what m0 and m1 care about")


def test_a_fact_by_itself_is_corrected_for_the_number_of_facts() -> None:
    """Of nine facts that mean nothing one has p below 0.05 rather often."""
    found = why(
        ta.Atlas().distances(), ta.Atlas().facts()[["width", "seed"]], n_permutations=19, ranges=False
    )
    names = {f"fact {k}": (f"fact {k}",) for k in range(9)}
    nine = {name: np.full(9, np.nan) for name in ("p", "q", "low", "high", "share", "conditional")}
    alone = np.array([0.04, *[0.5] * 8])
    weak = replace(found, groups=names, importance=np.arange(9.0), alone=alone, **nine)
    assert why_in_words(weak) == "No fact about them was found to go with how alike they are."
    strong = replace(weak, alone=np.array([0.001, *[0.5] * 8]))
    assert why_in_words(strong) == "Models alike in fact 0 are nearer, but the other facts may be the reason."


def test_facts_that_go_together_are_one_of_several() -> None:
    """Not `width and parameters together, architecture`, which reads as three."""
    facts = ta.Atlas().facts()
    found = why(ta.Atlas().distances(), facts[["width", "seed"]], n_permutations=19, ranges=False)
    names = {"width + parameters": ("width", "parameters"), "family": ("family",)}
    two = {name: np.full(2, np.nan) for name in ("p", "q", "low", "high", "share", "conditional")}
    weak = replace(found, groups=names, importance=np.array([2.0, 1.0]), alone=np.full(2, 0.001), **two)
    assert why_in_words(weak) == (
        "Models alike in width and parameters (which go together) and family are nearer, but the other facts "
        "may be the reason."
    )
    tiny = replace(weak, importance=np.array([-0.0004, 1.0]), conditional=np.array([-0.0001, 0.2]))
    assert [row[1:3] for row in _reasons(tiny)] == [["1.000", "0.200"], ["0.000", "0.000"]]


def test_facts_cannot_break_the_page() -> None:
    bad = "<img src=x onerror=alert(1)>"
    atlas = ta.Atlas()
    facts = atlas.facts()[["depth"]].assign(**{bad: ["</script>", *["b"] * (len(atlas) - 1)]})
    page = render_population(atlas.fingerprints(), facts=facts, **FEW)
    assert bad not in page
    assert page.count("</script>") == 1


def test_the_answer_without_facts_or_draws() -> None:
    found = Distances("rsa", ("a", "b", "c"), np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0.0]]))
    tree = ModelTree("rsa", ("a", "b", "c"), np.zeros((2, 4)), np.full(2, np.nan))
    said = dict(population_answer(found, tree, None))
    assert said["Who is alike?"] == "a and b are the most alike, b and c the least."
    assert said["Why?"].startswith("Not asked")
    assert said["How sure is that?"] == "This distance was not drawn again with other sentences."
    assert said["What would change it?"] == "By features other models may come first (--by features)."
    unsure = ModelTree("rsa", ("a", "b", "c"), np.zeros((2, 4)), np.array([0.2, 1.0]))
    assert (
        "another pair may well come first"
        in dict(population_answer(found, unsure, None))["How sure is that?"]
    )


def test_the_first_fork_of_a_tree_joins_the_nearest_two() -> None:
    atlas = ta.Atlas()
    found = atlas.distances()
    tree = model_tree(atlas.fingerprints(), n_draws=2)
    near = np.argwhere(found.values == found.values[np.triu_indices(len(found.names), 1)].min())[0]
    assert set(tree.merges[0, :2].astype(int)) == set(near.tolist())
