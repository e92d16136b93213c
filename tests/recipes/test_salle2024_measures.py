"""Every effect of salle2024 on planted observations: its rule agrees where it should, and differs too."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from thinkalike.inference.weighted_tau import tau_matrix
from thinkalike.recipes import Effect
from thinkalike.recipes.salle2024 import beyond, measures, told_apart
from thinkalike.recipes.salle2024.measures import MEASURES, Cast
from thinkalike.recipes.salle2024.observing import Observation, kruskal_mds, taus_of, variance_by_level
from thinkalike.recipes.salle2024.rules import BEYOND_RULES, PAPER_RULES

FEATURES = ("word_length", "number", "part_of_speech", "word_position")
P, W = "part_of_speech", "word_position"
CAST = Cast(("bert", "gpt2"), "mamba")
RULES = {**PAPER_RULES, **BEYOND_RULES}


def table(tops: list[str], **columns: list[float]) -> pd.DataFrame:
    """Importances in which `tops` lead layers 0, 1, …"""
    values = pd.DataFrame(0.05, index=range(len(tops)), columns=list(FEATURES))
    values["number"] = 0.04  # no ties
    values["word_length"] = 0.02
    for layer, feature in enumerate(tops):
        values.loc[layer, feature] = 0.3
    return values.assign(**columns)


def seen(tables: Mapping[str, pd.DataFrame] | None = None, **changes: object) -> Observation:
    usual = {"bert": table([W, P, P, P, P]), "gpt2": table([W, P, P, P, P]), "mamba": table([W, P, W, W, P])}
    tables = {**usual, **(tables or {})}
    n = sum(map(len, tables.values()))
    given = {"geometry": np.eye(n), "strongest": 0.3, "by_position": {}, **changes}
    return Observation(tables=tables, **given)  # type: ignore[arg-type]


def verdict(name: str, observation: Observation, cast: Cast = CAST) -> str:
    """As if every set of sentences had shown this."""
    effects = [Effect.fact(value, about) for about, value in MEASURES[name](observation, cast).items()]
    return RULES[name].decide(effects)


def test_every_rule_of_the_paper_has_a_measure() -> None:
    assert set(PAPER_RULES) | {"architecture"} == set(MEASURES)
    assert all(rule.written and rule.claim.endswith((".", ")")) for rule in RULES.values())


def test_pos_leads() -> None:
    assert measures.pos_leads(seen({"gpt2": table([W, P, P, P, W])}), CAST) == {"bert": 1.0, "gpt2": 0.75}
    assert verdict("pos leads", seen({"gpt2": table([W, P, P, P, W])})) == "agrees"
    assert verdict("pos leads", seen({"gpt2": table([W, P, P, W, W])})) == "differs"


@pytest.mark.parametrize(
    ("tops", "expected"),
    [
        ([W, P, W, W, W, P], "agrees"),
        ([W, P, W, W, W, W], "differs"),
        ([W, P, P, P, P, P], "differs"),
        ([W, W, W, W, W, W], "differs"),
    ],
)
def test_pos_at_the_ends(tops: list[str], expected: str) -> None:
    assert verdict("pos at the ends", seen({"mamba": table(tops)})) == expected


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ([0.0, *[0.02] * 4, *[0.2] * 4], "agrees"),
        ([0.0, *[0.2] * 4, *[0.02] * 4], "differs"),  # falls
        ([0.0, 0.10, 0.11, 0.10, 0.09, 0.11, 0.10, 0.11, 0.1], "differs"),  # flat
        ([0.0, *[0.02] * 7, 0.09], "differs"),  # only at the end
        ([0.0, *[0.001] * 4, *[0.002] * 4], "differs"),  # twice, but of nothing
    ],
)
def test_position_rises(position: list[float], expected: str) -> None:
    assert verdict("position rises", seen({"mamba": table([P] * 9, word_position=position)})) == expected


def test_a_step_leaves_least_of_the_variance() -> None:
    values = np.random.default_rng(3).normal(size=11) + 2 * (np.arange(11) > 4)
    best = min(range(1, 11), key=lambda k: values[:k].var() * k + values[k:].var() * (11 - k))
    expected = (best / 10, values[:best].mean(), values[best:].mean())
    assert measures.step_of(values) == pytest.approx(expected)


def test_two_blocks() -> None:
    low, high = ["part_of_speech"] * 5, ["word_position"] * 5
    blocky = seen({"mamba": table([W, *low, *high])})
    assert verdict("two blocks", blocky) == "agrees"
    start, end = np.random.default_rng(0).random((2, 40))
    depth = np.linspace(0, 1, 11)[:, None]
    fading = pd.DataFrame((1 - depth) * start + depth * end)  # from one ranking to another, step by step
    assert verdict("two blocks", Observation({"mamba": fading}, np.eye(11), 0.3, {})) == "differs"
    assert verdict("two blocks", seen({"mamba": table([W, P, P])})) == "cannot be tested"


def test_maps_by_position_needs_both_kinds_of_map() -> None:
    for gains, expected in (
        ({"MDS": 0.4, "Kruskal": 0.3}, "agrees"),
        ({"MDS": 0.4, "Kruskal": 0.05}, "differs"),
        ({"MDS": -0.4, "Kruskal": -0.3}, "differs"),
    ):
        assert verdict("maps by position", seen(by_position={"mamba": gains})) == expected


def test_number_falls_only_by_what_counts() -> None:
    falling, hardly = (
        [0.0, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01],
        [0.0, 0.003, 0.002, 0.001, 0.0, -0.001, -0.006],
    )
    each = {name: table([P] * 7, number=falling) for name in CAST.models}
    assert verdict("number falls", seen(each)) == "agrees"
    assert verdict("number falls", seen({**each, "mamba": table([P] * 7, number=hardly)})) == "differs"


def test_matrices_agree_beyond_smoothness() -> None:
    rng = np.random.default_rng(0)
    tables = {
        name: pd.DataFrame(rng.random((8, 8)), index=range(8), columns=list("abcdefgh"))
        for name in CAST.models
    }
    same = Observation(tables, taus_of(tables), 0.3, {})
    assert verdict("matrices agree", same) == "agrees"
    other = rng.normal(size=(24, 60))
    unrelated = Observation(tables, np.corrcoef(other), 0.3, {})
    assert verdict("matrices agree", unrelated) == "differs"


def test_most_and_least_alike() -> None:
    assert verdict("most alike feature", seen()) == "agrees"
    reverse = table([W] * 5, number=[0.2] * 5, word_length=[0.25] * 5, part_of_speech=[0.0] * 5)
    odd = seen({"mamba": reverse})
    assert verdict("most alike models", odd) == "agrees"
    assert verdict("least alike models", odd) == "agrees"
    assert verdict("least alike feature", odd) == "agrees"
    swapped = seen({"bert": reverse, "mamba": table([W, P, P, P, P])})
    assert verdict("most alike models", swapped) == "differs"
    assert verdict("least alike models", swapped) == "differs"
    all_position = {name: table([W] * 5) for name in CAST.models}
    assert verdict("most alike feature", seen(all_position)) == "differs"
    assert verdict("least alike feature", seen(all_position)) == "differs"
    assert verdict("architecture", odd) == "agrees"
    assert verdict("architecture", swapped) == "differs"


def test_features_apart() -> None:
    assert verdict("features apart", seen(strongest=0.3)) == "agrees"
    assert verdict("features apart", seen(strongest=0.8)) == "differs"


def test_nothing_is_said_of_mamba_where_there_is_none() -> None:
    two = Cast(("bert", "gpt2"))
    only = Observation({k: v for k, v in seen().tables.items() if k != "mamba"}, np.eye(10), 0.3, {})
    untested = {name for name in MEASURES if verdict(name, only, two) == "cannot be tested"}
    assert untested == {
        "pos at the ends", "position rises", "two blocks", "maps by position", "most alike models",
        "least alike models", "architecture",
    }  # fmt: skip


def test_same_leaders() -> None:
    one, other = {"bert": table([W, P, P, W, P])}, {"bert": table([P, P, W, W, P])}
    assert measures.same_leaders(one, other) == {"bert": 0.75}


def test_taus_are_scipys() -> None:
    from scipy.stats import weightedtau

    rng = np.random.default_rng(1)
    a, b = (pd.DataFrame(rng.random((2, 5)), columns=list("abcde")) for _ in range(2))
    b["extra"] = 1.0
    found = taus_of({"a": a, "b": b})
    expected = weightedtau(a.to_numpy()[1], b[list("abcde")].to_numpy()[0], rank=True).statistic
    assert found[1, 2] == pytest.approx(expected)


def test_variance_by_level_is_the_ratio_of_sums_of_squares() -> None:
    rng = np.random.default_rng(0)
    levels = [str(k % 3) for k in range(60)]
    points = rng.normal(size=(60, 2)) + 3 * np.array([[int(level), 0] for level in levels])
    means = pd.DataFrame(points).assign(level=levels).groupby("level").transform("mean").to_numpy()
    centre = points.mean(axis=0)
    expected = ((means - centre) ** 2).sum() / ((points - centre) ** 2).sum()
    assert variance_by_level(points, levels) == pytest.approx(expected)


def test_kruskals_map_keeps_the_order_of_distances() -> None:
    """Points on a plane, their distances bent by a monotone function: only their order is left."""
    from scipy.spatial.distance import pdist

    rng = np.random.default_rng(0)
    flat = rng.normal(size=(25, 2))
    X = np.concatenate([flat, 0.01 * rng.normal(size=(25, 6))], axis=1)
    assert spearmanr(pdist(kruskal_mds(X)), pdist(X)).statistic > 0.99


def test_same_story_is_spearman_over_pairs() -> None:
    rng = np.random.default_rng(1)
    a, b = (m + m.T for m in rng.normal(size=(2, 6, 6)))
    i, j = np.triu_indices(6, k=1)
    assert beyond.same_story(a, b) == pytest.approx(spearmanr(a[i, j], b[i, j]).statistic)


def test_same_story_does_not_rank_rounding() -> None:
    """Of five features τ_w has few values: against scipy's, equal ones made equal by exact fractions."""
    from fractions import Fraction
    from itertools import combinations

    from scipy.stats import weightedtau

    rng = np.random.default_rng(5)
    one, other = rng.normal(size=(2, 14, 5))

    def exact(x: np.ndarray, y: np.ndarray) -> Fraction:
        """Vigna's τ of values without ties; the mean of both weightings."""

        def by(ranked: np.ndarray) -> Fraction:
            rank = {int(k): Fraction(1, place + 1) for place, k in enumerate(np.argsort(-ranked))}
            pairs = list(combinations(range(5), 2))
            signs = [int(np.sign((x[i] - x[j]) * (y[i] - y[j]))) for i, j in pairs]
            weights = [rank[i] + rank[j] for i, j in pairs]
            return sum(s * w for s, w in zip(signs, weights, strict=True)) / sum(weights)

        return (by(x) + by(y)) / 2

    i, j = np.triu_indices(14, k=1)
    pairs = list(zip(i, j, strict=True))
    fractions = [[exact(values[a], values[b]) for a, b in pairs] for values in (one, other)]
    for values, expected in zip((one, other), fractions, strict=True):
        scipys = [weightedtau(values[a], values[b]).statistic for a, b in pairs]
        np.testing.assert_allclose(scipys, [float(value) for value in expected], atol=1e-12)
    ranks = [[sorted(set(column)).index(value) for value in column] for column in fractions]
    assert len(set(ranks[0])) < len(pairs)  # there are ties
    expected_rho = spearmanr(*ranks).statistic
    assert beyond.same_story(tau_matrix(one), tau_matrix(other)) == pytest.approx(expected_rho, abs=1e-12)


def test_likeness_of_two_models_leaves_the_embeddings_out() -> None:
    a, b = table([W, P, P]), table([P, P, W])
    taus = taus_of({"a": a.iloc[1:], "b": b.iloc[1:]})[:2, 2:]
    assert beyond.mean_between(a, b) == pytest.approx(taus.mean())
    assert told_apart.alike(a, b) == pytest.approx(np.diag(taus).mean())
    assert told_apart.position_of(a) == pytest.approx(0.05)
