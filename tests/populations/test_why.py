"""Why models are alike: facts planted and found, tests against other ways to get them, what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform

import thinkalike as ta
from benchmarks.calibration.populations import p_values, planted_distances, planted_facts
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.inference.dyads import dyad_tests
from thinkalike.populations.between_models import Distances
from thinkalike.populations.fact_table import fact_table, group_facts
from thinkalike.populations.why import why


def test_two_of_six_planted_facts_are_found() -> None:
    rng = np.random.default_rng(0)
    facts = planted_facts(rng)
    found = why(planted_distances(rng, facts, 1.0), facts, groups={}, n_permutations=199)
    frame = found.to_frame()
    assert set(frame["facts"][:2]) == {"category 0", "number 0"}
    assert (frame["p"][:2] <= 0.01).all()
    assert (frame["q"][2:] > 0.05).all()


def test_the_simulation_asks_what_why_asks() -> None:
    simulated = p_values(np.random.default_rng(7), effect=1.0, correlated=0.5)
    rng = np.random.default_rng(7)
    facts = planted_facts(rng, correlated=0.5)
    found = why(planted_distances(rng, facts, 1.0), facts, groups={}, n_permutations=199)
    assert simulated == pytest.approx(dict(zip(found.groups, found.p, strict=True)))


def test_correlated_facts_do_not_lend_their_effect() -> None:
    """Number 1 goes with number 0, which alone matters: alone it would seem to matter too."""
    rng = np.random.default_rng(1)
    facts = planted_facts(rng, correlated=0.9)
    distances = planted_distances(rng, facts, 2.0)
    both = why(distances, facts[["number 0", "number 1", "category 0"]], groups={}, n_permutations=199)
    alone = why(distances, facts[["number 1"]], groups={}, n_permutations=199)
    assert alone.p[0] <= 0.05
    assert dict(zip(both.groups, both.p, strict=True))["number 1"] > 0.05


def test_the_partial_correlation_is_that_of_residuals() -> None:
    rng = np.random.default_rng(2)
    columns = np.stack([pdist(rng.normal(size=(12, 1))) for _ in range(3)], axis=1)
    y = columns @ [1.0, 0.5, 0.0] + rng.normal(size=len(columns))
    rest = np.column_stack([np.ones(len(y)), columns[:, 1:]])
    left = [v - rest @ np.linalg.lstsq(rest, v, rcond=None)[0] for v in (y, columns[:, 0])]
    found = dyad_tests(y, columns, [[0], [0, 1]], n_permutations=99)
    assert found[0].partial == pytest.approx(np.corrcoef(*left)[0, 1])
    only = np.column_stack([np.ones(len(y)), columns[:, 2]])
    whole = np.column_stack([only, columns[:, :2]])
    rss = [((y - d @ np.linalg.lstsq(d, y, rcond=None)[0]) ** 2).sum() for d in (only, whole)]
    assert found[1].partial == pytest.approx(np.sqrt(1 - rss[1] / rss[0]))


def test_permuting_systems_by_brute_force() -> None:
    """One difference alone: a Mantel test, here over the same orders of the systems."""
    rng = np.random.default_rng(3)
    x, y = pdist(rng.normal(size=(9, 1))), pdist(rng.normal(size=(9, 2)))
    found = dyad_tests(y, x[:, None], [[0]], n_permutations=200, seed=5)[0]
    square, at = squareform(x), np.triu_indices(9, k=1)
    orders = [np.random.default_rng((5, k)).permutation(9) for k in range(200)]
    null = [np.corrcoef(square[np.ix_(order, order)][at], y)[0, 1] for order in orders]
    own = np.corrcoef(x, y)[0, 1]
    assert found.partial == pytest.approx(own)
    assert found.p == pytest.approx((1 + np.sum(np.array(null) >= own - 1e-12)) / 201)


def test_a_difference_that_others_make_up_is_not_tested() -> None:
    x = pdist(np.random.default_rng(4).normal(size=(8, 1)))
    found = dyad_tests(x**2 + 1, np.column_stack([x, x]), [[0]], n_permutations=19)[0]
    assert np.isnan(found.p)


def test_facts_that_say_nothing_are_left_out_with_the_reason() -> None:
    facts = pd.DataFrame(
        {
            "depth": [2, 4, 6, 8],
            "size": [1e6, 1e7, 1e8, 1e9],
            "family": ["a", "a", "b", "b"],
            "same": [1, 1, 1, 1],
            "id": list("wxyz"),
            "some": [1.0, None, 2.0, 3.0],
        },
        index=list("ABCD"),
    )
    table = fact_table(facts)
    assert table.names == ("depth", "size", "family")
    assert table.left_out == {
        "same": "the same in all models",
        "id": "different in every model",
        "some": "not known of every model",
    }
    np.testing.assert_allclose(table.features["size"], [6, 7, 8, 9])  # the logarithm: so wide a range
    np.testing.assert_allclose(table.columns[:, 1], table.columns[:, 0])
    assert group_facts(table) == {"depth + size": ("depth", "size"), "family": ("family",)}
    assert list(group_facts(table, {})) == ["depth", "size", "family"]
    assert list(group_facts(table, {"big": ["depth", "size"]})) == ["big", "family"]
    with pytest.raises(UnknownName, match="no fact that differs among these models 'same'"):
        group_facts(table, {"x": ["same"]})
    with pytest.raises(InvalidInput, match="No fact is known of every model and differs"):
        fact_table(facts[["same", "id"]])


def test_what_cannot_be_explained() -> None:
    facts = planted_facts(np.random.default_rng(0))
    few = Distances("features", tuple(facts.index[:5]), squareform(pdist(np.eye(5))))
    with pytest.raises(InvalidInput, match="There are 5 models: to explain how alike they are takes 8"):
        why(few, facts)
    with pytest.raises(InvalidInput, match="There are no facts about model 0"):
        why(few, facts.iloc[2:])


def test_the_bundled_models() -> None:
    found = ta.Atlas().why(n_permutations=99)
    assert found.n_models == 15
    assert found.score > 0
    assert any("depth" in name for name in found.groups)
    assert "vocabulary" in found.left_out
