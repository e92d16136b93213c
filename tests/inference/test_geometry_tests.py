"""Ranges and tests of a geometric matrix: by hand, by brute force, and their level in a small world."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import false_discovery_control, spearmanr

from thinkalike.errors import InvalidInput
from thinkalike.inference.geometry_tests import Null, geometry_tests
from thinkalike.inference.ranges import jackknife_range
from thinkalike.inference.sentences import MOST_ITEMS, plan_sentences
from thinkalike.measures import get_measure
from thinkalike.measures.rsa import ranked_layers

ROWS = (("a", 0), ("a", 1), ("b", "x"), ("b", "y"), ("b", "z"))
SENTENCES = np.repeat(np.arange(14), 2)
RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(28, 3))
LAYERS = [np.hstack([SHARED, RNG.normal(size=(28, k))]) for k in (1, 3, 2, 4, 6)]
NAMES = [f"{system}:{layer}" for system, layer in ROWS]


def made(n: int = 40) -> tuple[np.ndarray, Null]:
    rng = np.random.default_rng(1)
    values = 0.4 * rng.normal(size=(5, 5))
    null = 0.3 * rng.normal(size=(n, 5, 5))
    values, null = values + values.T, null + np.swapaxes(null, 1, 2)
    return values, Null(values, null)


@pytest.mark.parametrize("distance", [False, True])
def test_means_and_bests_are_held_against_the_same_of_every_permutation(distance: bool) -> None:
    values, null = made()
    cells, tests = geometry_tests(values, ROWS, null=null, distance=distance, best=-2.0 if distance else 2.0)
    block, drawn = values[:2, 2:], null.values[:, :2, 2:]
    test = next(t for t in tests if (t.a, t.b) == ("a", "b"))
    sign = -1 if distance else 1
    best = sign * (sign * block).max()
    bests = sign * (sign * drawn).max(axis=(1, 2))
    assert test.mean == pytest.approx(block.mean())
    assert test.best == best
    i, j = np.argwhere(block == best)[0]
    assert (test.layer_a, test.layer_b) == (ROWS[i][1], ROWS[2 + j][1])
    assert test.p_mean == (1 + (sign * drawn.mean(axis=(1, 2)) >= sign * block.mean()).sum()) / 41
    assert test.p_best == (1 + (sign * bests >= sign * best).sum()) / 41
    expected = np.sort(sign * np.append(drawn.mean(axis=(1, 2)), block.mean()))[38]  # ⌈0.95 · 41⌉ = 39
    assert test.chance == pytest.approx(sign * expected)
    score = (sign * block.mean() - expected) / (2.0 - expected)
    assert test.calibrated == pytest.approx(max(0, score))
    assert cells.p_block is not None
    assert cells.p_block[0, 3] == (1 + (sign * bests >= sign * block[0, 1]).sum()) / 41
    assert cells.p_block[3, 0] == cells.p_block[0, 3]
    assert np.isnan(np.diag(cells.p_block)).all()


def test_within_a_system_the_diagonal_is_left_out_and_q_is_over_pairs_of_systems() -> None:
    values, null = made()
    _, tests = geometry_tests(values, ROWS, null=null)
    within = next(t for t in tests if (t.a, t.b) == ("b", "b"))
    off = ~np.eye(3, dtype=bool)
    assert within.mean == pytest.approx(values[2:, 2:][off].mean())
    assert within.p_mean == (1 + (null.values[:, 2:, 2:][:, off].mean(axis=1) >= within.mean).sum()) / 41
    assert np.isnan(within.q)
    between = next(t for t in tests if t.a != t.b)
    assert between.q == between.p_mean  # one pair of systems
    rows = (("a", 0), ("b", 0), ("c", 0), ("d", 0), ("d", 1))
    several = [t for t in geometry_tests(values, rows, null=null)[1] if t.a != t.b]
    for q, p in (("q", "p_mean"), ("q_best", "p_best")):
        corrected = false_discovery_control([getattr(t, p) for t in several])
        assert [getattr(t, q) for t in several] == pytest.approx(corrected)


def test_a_measure_with_a_direction_has_a_null_for_each() -> None:
    _, null = made()
    other = Null(null.observed + np.triu(np.ones((5, 5)), 1), null.values + np.tril(np.ones((5, 5)), -1))
    cells, _ = geometry_tests(other.observed, ROWS, null=other, symmetric=False)
    bests = other.values[:, 2:, :2].max(axis=(1, 2))
    assert cells.p_block is not None
    assert cells.p_block[3, 1] == (1 + (bests >= other.observed[3, 1]).sum()) / 41


def test_ranges_are_those_of_the_jackknife() -> None:
    plan = plan_sentences(SENTENCES, 28, permutations=0)
    without = plan.left_out("cka", LAYERS)
    assert without is not None
    values = get_measure("cka").matrix(LAYERS)
    cells, tests = geometry_tests(values, ROWS, left_out=without.values)
    assert cells.low is not None
    assert cells.p_block is None
    by_hand = np.array([get_measure("cka")(LAYERS[1][k], LAYERS[4][k]) for k in plan.kept])
    assert cells.low[1, 4] == pytest.approx(
        float(jackknife_range(values[1, 4], by_hand, scale="correlation").low)
    )
    means = without.values[:, :2, 2:].mean(axis=(1, 2))
    block = next(t for t in tests if t.a != t.b)
    assert block.high == pytest.approx(float(jackknife_range(block.mean, means, scale="correlation").high))


def test_equal_layers_have_a_range_of_no_width() -> None:
    """Of a layer and itself, and of its copy: on the scale of artanh rounding alone made it −1 to 1."""
    layers = [*LAYERS[:2], LAYERS[1].copy()]
    rows = [("a", 0), ("a", 1), ("b", 0)]
    plan = plan_sentences(SENTENCES, 28, permutations=0)
    for measure in ("rsa", "cka"):
        without = plan.left_out(measure, layers)
        assert without is not None
        values = get_measure(measure).matrix(layers)
        cells, _ = geometry_tests(values, rows, left_out=without.values)
        assert cells.low is not None
        assert cells.high is not None
        for i, j in ((0, 0), (1, 1), (1, 2), (2, 1)):
            assert (cells.low[i, j], cells.high[i, j]) == (1.0, 1.0)
        assert cells.low[0, 1] < values[0, 1] < cells.high[0, 1]


def test_layers_without_a_value_are_left_out() -> None:
    values, null = made()
    values[0] = values[:, 0] = np.nan
    cells, tests = geometry_tests(values, ROWS, null=null)
    assert next(t for t in tests if t.a != t.b).mean == pytest.approx(values[1, 2:].mean())
    assert all(t.a != "a" or t.b != "a" for t in tests)
    assert cells.calibrated is not None
    assert np.isnan(cells.calibrated[0]).all()


def test_from_ranks_that_are_there_or_from_vectors_is_the_same() -> None:
    plan = plan_sentences(SENTENCES, 28, permutations=30)
    with ranked_layers(iter(LAYERS), names=NAMES) as ranked:
        left_out, null = plan.left_out_ranked(ranked), plan.null_ranked(ranked)
    assert left_out is not None
    assert null is not None
    from_vectors = plan.null(get_measure("rsa"), LAYERS, NAMES)
    assert from_vectors is not None
    assert null.values == pytest.approx(from_vectors.values, abs=1e-5)
    order = plan.orders[7]
    assert null.values[7, 0, 3] == pytest.approx(
        spearmanr(pdist(LAYERS[0]), pdist(LAYERS[3][order])).statistic, abs=1e-5
    )
    items = plan.kept[3]
    expected = spearmanr(pdist(LAYERS[1][items]), pdist(LAYERS[2][items])).statistic
    assert left_out.values[3, 1, 2] == pytest.approx(expected, abs=1e-5)


def test_a_sample_of_the_pairs_is_near_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    layers = [rng.normal(size=(120, 4)) for _ in range(2)]
    layers[1][:, :2] += layers[0][:, :2]
    plan = plan_sentences(None, 120, permutations=20)
    whole = plan.null(get_measure("cka"), layers, NAMES[:2])
    monkeypatch.setattr("thinkalike.inference.sentences.NULL_PAIRS", 3000)
    some = plan.null(get_measure("cka"), layers, NAMES[:2])
    assert whole is not None
    assert some is not None
    gap = np.abs(some.values - whole.values)[:, 0, 1]
    assert 0 < gap.max() < 4 / np.sqrt(3000)


def test_measures_that_need_everything_again_have_a_null_only_when_asked() -> None:
    usual = plan_sentences(SENTENCES, 28)
    assert len(usual.orders) == 200
    assert usual.null(get_measure("procrustes"), LAYERS, NAMES) is None
    assert usual.left_out("procrustes", LAYERS) is None
    asked = plan_sentences(SENTENCES, 28, permutations=3)
    found = asked.null(get_measure("procrustes"), LAYERS, NAMES)
    assert found is not None
    assert found.values[2, 0, 1] == pytest.approx(
        get_measure("procrustes")(LAYERS[0], LAYERS[1][asked.orders[2]])
    )


def test_too_few_sentences_are_said_and_not_an_error_unless_asked_for() -> None:
    plan = plan_sentences([0, 0, 1, 2, 2], 5)
    assert (plan.kept, len(plan.orders)) == ((), 0)
    assert plan.why_not[0] == "A range over sentences needs at least 8 of them; there are 3."
    assert "can change places in only 2 ways" in plan.why_not[1]
    with pytest.raises(InvalidInput, match="can change places in only 2 ways"):
        plan_sentences([0, 0, 1, 2, 2], 5, permutations=50)
    assert "not computed for more than 6,000 items" in plan_sentences(None, MOST_ITEMS + 1).why_not[0]
