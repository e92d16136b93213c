"""Scores of subjects: ranges against the analysis of variance, ceilings and clusters against brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from thinkalike.errors import InvalidInput
from thinkalike.inference.over_subjects import ceilings, cluster_test, p_over_subjects, spread


def table_of(
    rng: np.random.Generator, S: int, G: int, subjects: float, items: float, rest: float
) -> np.ndarray:
    cells = rest * rng.normal(size=(G, S))
    return cells + subjects * rng.normal(size=S) + items * rng.normal(size=(G, 1))


def means_without(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores that are means over parts, and those means without each part."""
    G = len(cells)
    return cells.mean(axis=0), np.stack([np.delete(cells, g, axis=0).mean(axis=0) for g in range(G)])


def test_the_error_over_both_is_that_of_the_two_way_table() -> None:
    """For means over parts the pseudo-values are the cells: mean squares by hand."""
    cells = table_of(np.random.default_rng(0), 7, 9, 1.0, 0.8, 1.5)
    G, S = cells.shape
    scores, without = means_without(cells)
    grand = cells.mean()
    between_subjects = G * ((cells.mean(0) - grand) ** 2).sum() / (S - 1)
    between_parts = S * ((cells.mean(1) - grand) ** 2).sum() / (G - 1)
    rest = cells - cells.mean(0) - cells.mean(1, keepdims=True) + grand
    within = (rest**2).sum() / ((S - 1) * (G - 1))
    expected = np.sqrt((between_subjects + between_parts - within) / (S * G))
    assert spread(scores, without, over="both").error == pytest.approx(expected)
    assert spread(scores, without, over="items").error == pytest.approx(np.sqrt(between_parts / (S * G)))
    assert spread(scores, without, over="subjects").error == pytest.approx(scores.std(ddof=1) / np.sqrt(S))


def test_parts_that_were_dealt_twice_count_once() -> None:
    cells = table_of(np.random.default_rng(0), 5, 6, 1.0, 1.0, 1.0)
    scores, without = means_without(cells)
    twice = np.concatenate([without, without])
    for over in ("items", "both"):
        once = spread(scores, without, over=over)
        assert spread(scores, twice, over=over, parts=6).error == pytest.approx(once.error)


@pytest.mark.parametrize("sizes", [(1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (1.0, 1.0, 0.5)])
def test_ranges_over_both_hold_the_truth(sizes: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        scores, without = means_without(table_of(rng, 8, 10, *sizes))
        low, high = spread(scores, without, over="both").range(scores.mean(axis=0))
        held += bool(low <= 0 <= high)
    assert 0.92 <= held / 400 <= 0.99


def test_p_over_subjects_is_students() -> None:
    scores = np.random.default_rng(0).normal(0.3, 1, size=(9, 4))
    expected = ttest_1samp(scores, 0, axis=0, alternative="greater").pvalue
    np.testing.assert_allclose(p_over_subjects(scores), expected)


def test_what_cannot_be_said_is_refused() -> None:
    one = np.zeros((1, 2))
    with pytest.raises(InvalidInput, match="There is 1 subject: how subjects differ cannot be said"):
        spread(one, None, over="subjects")
    with pytest.raises(InvalidInput, match="Nothing was left out, so there is no range over items"):
        spread(np.zeros((3, 2)), None, over="items")
    with pytest.raises(InvalidInput, match="over is 'people': expected one of subjects, items, both"):
        spread(np.zeros((3, 2)), None, over="people")
    with pytest.raises(InvalidInput, match="There is 1 subject: a noise ceiling needs two or more"):
        ceilings(one)
    with pytest.raises(InvalidInput, match="There are 4 subjects, whose signs can be flipped in 16 ways"):
        cluster_test(np.zeros((4, 3)))


def test_no_vector_scores_above_the_upper_ceiling() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=10) + rng.normal(size=(6, 10))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = ceilings(vectors)
    tried = rng.normal(size=(20_000, 10))
    tried /= np.linalg.norm(tried, axis=1, keepdims=True)
    best = (tried @ vectors.T).mean(axis=1).max()
    assert best <= found.upper.mean() + 1e-12
    assert found.lower.mean() < found.upper.mean()
    others = vectors[1:].sum(axis=0)
    assert found.lower[0] == pytest.approx(vectors[0] @ others / np.linalg.norm(others))


def test_clusters_by_trying_every_flip() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(6, 12))
    scores[:, 3:7] += 1.5

    def masses(values: np.ndarray) -> list[float]:
        t = values.mean(0) / (values.std(0, ddof=1) / np.sqrt(6))
        found, run = [], 0.0
        for value in [*t, -np.inf]:
            if value > 2.0:
                run += value
            elif run:
                found.append(run)
                run = 0.0
        return found

    found = cluster_test(scores, threshold=2.0)
    flips = [np.array(signs)[:, None] for signs in product([1, -1], repeat=6)]
    largest = [max(masses(scores * flip), default=0.0) for flip in flips]
    assert [c.mass for c in found] == pytest.approx(masses(scores))
    for cluster in found:
        assert cluster.p == np.mean([value >= cluster.mass - 1e-9 for value in largest])
    assert any(c.start <= 4 < c.stop and c.p <= 2 / 64 for c in found)


def test_clusters_of_nothing_are_found_in_a_twentieth() -> None:
    rng = np.random.default_rng(0)
    hits = [
        min((c.p for c in cluster_test(rng.normal(size=(8, 20)), n_flips=256)), default=1.0) <= 0.05
        for _ in range(400)
    ]
    assert 0.03 <= np.mean(hits) <= 0.07
