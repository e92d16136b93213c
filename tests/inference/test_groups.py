"""Groups of models: means by hand, intervals that cover, tests that hold their level, planted clusters."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from thinkalike.errors import InvalidInput
from thinkalike.inference.clusters import cluster_models, partition
from thinkalike.inference.groups import compare_groups, relabellings


def distances(
    groups: list[str], rng: np.random.Generator, *, apart: float = 0.0, own: float = 0.5
) -> np.ndarray:
    """Each model shifts all its distances by an effect of its own, so pairs that share a model are alike."""
    m = len(groups)
    effect = own * rng.normal(size=m)
    d = 3 + effect[:, None] + effect[None, :] + 0.1 * rng.normal(size=(m, m))
    d = (d + d.T) / 2 + apart * (np.array(groups)[:, None] != np.array(groups)[None, :])
    np.fill_diagonal(d, 0)
    return d


FIVE = ["a"] * 5 + ["b"] * 5


def test_means_and_separation_by_hand() -> None:
    d = distances(["a", "a", "b", "b", "b"], np.random.default_rng(0))
    found = compare_groups(d, ["a", "a", "b", "b", "b"])
    table = found.to_frame().set_index("pair")
    assert table.loc["a – a", "mean"] == pytest.approx(d[0, 1])
    assert table.loc["b – b", "mean"] == pytest.approx(np.mean([d[2, 3], d[2, 4], d[3, 4]]))
    assert table.loc["a – b", "mean"] == pytest.approx(d[:2, 2:].mean())
    assert table["n_pairs"].to_dict() == {"a – a": 1, "a – b": 6, "b – b": 3}
    assert table["within"].to_dict() == {"a – a": True, "a – b": False, "b – b": True}
    # Every group counts alike, and distances count by their squares.
    within = (d[0, 1] ** 2 + np.mean([d[2, 3] ** 2, d[2, 4] ** 2, d[3, 4] ** 2])) / 2
    between = np.mean(d[:2, 2:] ** 2)
    assert found.separation["separation"][0] == pytest.approx(np.sqrt(between) - np.sqrt(within))
    as_it_is = compare_groups(d, ["a", "a", "b", "b", "b"], squared=False).separation
    within = (d[0, 1] + np.mean([d[2, 3], d[2, 4], d[3, 4]])) / 2
    assert as_it_is["separation"][0] == pytest.approx(d[:2, 2:].mean() - within)
    assert as_it_is[["low", "high"]].isna().all(axis=None)  # a group of two has no jackknife


def test_two_models_have_no_interval() -> None:
    d = distances(["a", "a", "b", "b", "b"], np.random.default_rng(0))
    table = compare_groups(d, ["a", "a", "b", "b", "b"]).to_frame().set_index("pair")
    assert table.loc[["a – a", "a – b"], ["low", "high"]].isna().all(axis=None)
    assert table.loc["b – b", ["low", "high"]].notna().all()


def test_190_comparisons_of_twenty_models() -> None:
    groups = ["top"] * 10 + ["bottom"] * 10
    found = compare_groups(distances(groups, np.random.default_rng(0)), groups, n_permutations=20)
    assert found.means["n_pairs"].sum() == 190


def test_a_planted_difference_is_found_and_similarities_are_read_the_other_way() -> None:
    d = distances(FIVE, np.random.default_rng(1), apart=1.0, own=0.1)
    for values, kind in ((d, "distance"), (-d, "similarity")):
        found = compare_groups(values, FIVE, kind=kind).separation.iloc[0]  # type: ignore[arg-type]
        assert found["separation"] == pytest.approx(1.0, abs=0.15)
        assert found["low"] > 0.8
        assert found["p"] == pytest.approx(
            2 / 252
        )  # of all 252 relabellings only the given one and its mirror


def test_intervals_over_models_cover_where_intervals_over_pairs_do_not() -> None:
    rng = np.random.default_rng(2)
    groups = ["a"] * 10 + ["b"] * 10
    covered, naive, truth = 0, 0, 3.0
    for _ in range(200):
        d = distances(groups, rng)
        row = compare_groups(d, groups, n_permutations=1).means.query("pair == 'a – a'").iloc[0]
        covered += row["low"] <= truth <= row["high"]
        pairs = d[np.triu_indices(10, 1)]
        naive += abs(pairs.mean() - truth) <= 1.96 * pairs.std(ddof=1) / np.sqrt(len(pairs))
    assert 0.92 <= covered / 200 <= 0.98
    assert naive / 200 <= 0.67


def test_p_values_hold_their_level() -> None:
    rng = np.random.default_rng(3)
    groups = ["a"] * 4 + ["b"] * 4
    p = [compare_groups(distances(groups, rng), groups).separation["p"][0] for _ in range(200)]
    assert np.mean(np.array(p) <= 0.1) < 0.16
    assert np.mean(p) == pytest.approx(0.5, abs=0.08)


def test_layer_by_layer_with_a_p_for_having_looked_at_all() -> None:
    rng = np.random.default_rng(4)
    stack = np.stack([distances(FIVE, rng), distances(FIVE, rng), distances(FIVE, rng, apart=2.0)])
    found = compare_groups(stack, FIVE, layers=[1, 2, 3])
    assert found.separation["layer"].tolist() == [1, 2, 3]
    assert found.separation["p_any"][2] == pytest.approx(2 / 252)
    assert (found.separation["p_any"] >= found.separation["p"]).all()
    assert found.separation["p_any"][0] > 0.05
    assert found.means["layer"].value_counts().to_dict() == {1: 3, 2: 3, 3: 3}
    assert found.plot().to_dict()["layer"]


def test_directions_count_where_values_are_not_symmetric() -> None:
    values = np.arange(16.0).reshape(4, 4)
    found = compare_groups(values, ["a", "a", "b", "b"])
    pairs = found.means.set_index("pair")["mean"]
    assert pairs["a – a"] == np.mean([values[0, 1], values[1, 0]])
    assert pairs["a – b"] == np.mean([*values[:2, 2:].ravel(), *values[2:, :2].ravel()])


def test_all_relabellings_are_enumerated_where_they_are_few() -> None:
    codes = np.array([0, 0, 1, 1, 1])
    labels = relabellings(codes, 1000, np.random.default_rng(0))
    expected = {tuple(int(k not in chosen) for k in range(5)) for chosen in combinations(range(5), 2)}
    assert {tuple(one.tolist()) for one in labels} == expected
    assert len(labels) == 10
    drawn = relabellings(codes, 9, np.random.default_rng(0))
    assert len(drawn) == 10
    assert drawn[0].tolist() == codes.tolist()
    assert all(sorted(one) == sorted(codes) for one in drawn)


def test_no_p_where_too_few_relabellings_could_make_it_small() -> None:
    groups = ["a"] * 3 + ["b"] * 3
    found = compare_groups(distances(groups, np.random.default_rng(0), apart=50.0), groups)
    assert found.smallest_p == pytest.approx(0.1)
    assert found.separation[["p", "p_any"]].isna().all(axis=None)
    assert "no p, for so few relabellings give none below 0.1" in repr(found)
    bolder = compare_groups(distances(groups, np.random.default_rng(0), apart=50.0), groups, confidence=0.9)
    assert bolder.why_no_p == ""


@pytest.mark.parametrize("sizes", [(2, 2), (2, 12), (2, 4, 6)])
def test_no_p_with_a_group_of_two(sizes: tuple[int, ...]) -> None:
    """Two models thrice as spread as twelve others, around one centre, had p ≤ 0.05 in a third of draws."""
    groups = [name for name, size in zip("abc", sizes, strict=False) for _ in range(size)]
    found = compare_groups(distances(groups, np.random.default_rng(0), apart=50.0), groups, n_permutations=99)
    assert found.separation[["low", "high", "p", "p_any"]].isna().all(axis=None)
    assert found.separation["separation"][0] > 40
    assert "two models do not tell how far those of their group scatter" in repr(found)


@pytest.mark.parametrize("sizes", [(3, 4), (4, 4), (3, 3, 3)])
def test_the_smallest_p_is_that_of_groups_far_apart(sizes: tuple[int, ...]) -> None:
    groups = [name for name, size in zip("abc", sizes, strict=False) for _ in range(size)]
    found = compare_groups(distances(groups, np.random.default_rng(0), apart=1e4), groups)
    assert found.separation["p"][0] == pytest.approx(found.smallest_p)
    assert f"p {found.smallest_p:.3g}" in repr(found)


def test_the_same_seed_gives_the_same_numbers() -> None:
    d, groups = distances(["a"] * 10 + ["b"] * 10, np.random.default_rng(5)), ["a"] * 10 + ["b"] * 10
    first, again = (compare_groups(d, groups, n_permutations=100, seed=7) for _ in range(2))
    assert first.means.equals(again.means)
    assert first.separation.equals(again.separation)
    other = compare_groups(d, groups, n_permutations=100, seed=8)
    assert not first.separation.equals(other.separation)


def test_values_below_zero_are_no_distances() -> None:
    d = -distances(FIVE, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match=r"below 0 \(-.*say squared=False"):
        compare_groups(d, FIVE)


class TestClusters:
    def test_planted_groups_are_found(self) -> None:
        d = distances(FIVE, np.random.default_rng(6), apart=2.0, own=0.1)
        found = cluster_models(d, groups=FIVE, systems=[f"m{k}" for k in range(10)])
        assert found.adjusted_rand == 1.0
        assert found.p == pytest.approx(2 / 252)
        frame = found.to_frame()
        assert frame.groupby("group")["cluster"].nunique().tolist() == [1, 1]
        assert found.plot().to_dict()["layer"]

    def test_without_structure_there_is_no_agreement(self) -> None:
        rng = np.random.default_rng(7)
        found = [
            cluster_models(distances(FIVE, rng, own=0.1), groups=FIVE, n_permutations=200) for _ in range(20)
        ]
        assert np.mean([one.p <= 0.05 for one in found]) <= 0.2
        assert abs(np.mean([one.adjusted_rand for one in found])) < 0.15

    def test_models_that_are_far_from_all_do_not_hide_the_groups(self) -> None:
        """Each model has an effect of its own, four times as large as the groups: a tree finds nothing."""
        rng = np.random.default_rng(10)
        groups = ["a"] * 10 + ["b"] * 10
        found = [cluster_models(distances(groups, rng, apart=0.12), groups=groups) for _ in range(20)]
        assert np.mean([one.adjusted_rand >= 0.8 for one in found]) >= 0.8

    def test_the_partition_is_the_best_of_all(self) -> None:
        d = distances(FIVE, np.random.default_rng(11), apart=0.02)[:8, :8]
        rows, m = d.sum(axis=1) / 6, 8
        alike = -0.5 * (d - rows[:, None] - rows[None, :] + rows.sum() / 7)

        def worth(labels: np.ndarray) -> float:
            clusters = [np.flatnonzero(labels == c) for c in (0, 1)]
            return sum(alike[i, j] / len(c) for c in clusters for i in c for j in c if i != j)

        every = [np.array([(k >> i) & 1 for i in range(m)]) for k in range(1, 2**m - 1)]
        assert worth(partition(d, 2)) == pytest.approx(max(map(worth, every)))

    def test_agreement_is_sklearns(self) -> None:
        d = distances(FIVE, np.random.default_rng(8), apart=0.3)
        found = cluster_models(d, groups=FIVE, n_clusters=3)
        assert len(set(found.labels)) == 3
        assert found.adjusted_rand == adjusted_rand_score(FIVE, found.labels)

    def test_without_groups_only_the_clusters_are_given(self) -> None:
        found = cluster_models(distances(FIVE, np.random.default_rng(9)), n_clusters=2)
        assert np.isnan(found.adjusted_rand)
        assert list(found.to_frame()) == ["system", "cluster"]
        assert found.plot().to_dict()["layer"]

    def test_three_points_by_hand(self) -> None:
        d = np.array([[0, 1, 5], [1, 0, 7], [5, 7, 0.0]])
        found = cluster_models(d, n_clusters=2)
        assert found.labels[0] == found.labels[1] != found.labels[2]
        assert found.merges[:, 2].tolist() == [1, 6]  # average linkage: (5 + 7) / 2

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "n_clusters is None: give 1 to 10, or the groups to find again"),
            ({"n_clusters": 11}, "n_clusters is 11: give 1 to 10"),
            ({"groups": ["a", "b"]}, "There are 10 models and 2 group labels"),
            ({"n_clusters": 2, "systems": ["x"]}, "There are 10 models and 1 names"),
        ],
    )
    def test_bad_input(self, options: dict[str, object], message: str) -> None:
        with pytest.raises(InvalidInput, match=message):
            cluster_models(distances(FIVE, np.random.default_rng(0)), **options)  # type: ignore[arg-type]

    def test_distances_that_are_none(self) -> None:
        with pytest.raises(
            InvalidInput, match=r"Clustering needs finite distances \(m, m\), not shape \(3, 2\)"
        ):
            cluster_models(np.ones((3, 2)), n_clusters=2)


@pytest.mark.parametrize(
    ("values", "groups", "options", "message"),
    [
        (
            np.ones((4, 4)),
            ["a", "a", "b"],
            {},
            r"shape \(4, 4\) and there are 3 group labels: expected \(3, 3\)",
        ),
        (np.ones((3, 3)), ["a", "a", "b"], {}, "two groups of two models or more"),
        (np.ones((4, 4)), ["a"] * 4, {}, "two groups of two models or more"),
        (np.ones((2, 4, 4)), ["a", "a", "b", "b"], {"layers": [1]}, "There are 2 matrices and 1 layers"),
        (np.full((4, 4), np.nan), ["a", "a", "b", "b"], {}, "no finite value between model 0 and model 1"),
    ],
)
def test_bad_input(values: np.ndarray, groups: list[str], options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        compare_groups(values, groups, **options)  # type: ignore[arg-type]
