"""Effects of brown2023-scaling and salle2026 against plain loops over pairs and layers."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

from thinkalike.errors import InvalidInput
from thinkalike.populations.between_models import Distances
from thinkalike.recipes.brown2023_scaling import measures as scaling
from thinkalike.recipes.brown2023_scaling.flattened import whole_passages
from thinkalike.recipes.salle2026 import measures as population
from thinkalike.recipes.salle2026.measures import Seen
from thinkalike.recipes.salle2026.work import GROUPS, Observation

NAMES = ("a", "b", "c", "d")
DEPTHS = dict(zip(NAMES, (3, 4, 3, 5), strict=True))


@pytest.fixture
def values() -> dict[tuple[str, str], np.ndarray]:
    """CKA between blocks, symmetric; 1 on the diagonals."""
    rng = np.random.default_rng(0)
    found = {}
    for a in NAMES:
        for b in NAMES:
            if (b, a) in found:
                found[a, b] = found[b, a].T
            else:
                found[a, b] = rng.uniform(size=(DEPTHS[a], DEPTHS[b]))
        own = (found[a, a] + found[a, a].T) / 2
        np.fill_diagonal(own, 1.0)
        found[a, a] = own
    return found


def test_mean_within_leaves_out_a_block_with_itself(values: dict[tuple[str, str], np.ndarray]) -> None:
    own = values["d", "d"]
    expected = np.mean([own[i, j] for i in range(5) for j in range(5) if i != j])
    assert scaling.mean_within(own) == pytest.approx(expected)
    assert np.isnan(scaling.mean_within(np.ones((1, 1))))


def test_who_is_odd(values: dict[tuple[str, str], np.ndarray]) -> None:
    """Intermediate blocks alone: neither the first nor the last of either model."""

    def mean_between(a: str, b: str) -> float:
        block = values[a, b]
        inner = [block[i, j] for i in range(1, DEPTHS[a] - 1) for j in range(1, DEPTHS[b] - 1)]
        return float(np.mean(inner))

    found = scaling.oddness(values, NAMES)
    for name in NAMES:
        own = [mean_between(a, b) for a, b in combinations(NAMES, 2) if name in (a, b)]
        rest = [mean_between(a, b) for a, b in combinations(NAMES, 2) if name not in (a, b)]
        assert found[name] == pytest.approx(np.mean(rest) - np.mean(own))
    assert np.isnan(scaling.oddness(values, NAMES[:2])["a"])  # there are no others
    assert scaling.odd_member(values, NAMES[:2], "a") == scaling.odd_member(values, NAMES, "z") == {}
    others = max(score for name, score in found.items() if name != "c")
    assert scaling.odd_member(values, NAMES, "c") == {"c": pytest.approx(found["c"] - others)}


def test_two_blocks_have_no_middle_to_leave_out(values: dict[tuple[str, str], np.ndarray]) -> None:
    np.testing.assert_array_equal(scaling._middle(np.arange(8.0).reshape(2, 4)), [[1.0, 2.0], [5.0, 6.0]])


def test_growth_with_size_is_scipys_spearman(values: dict[tuple[str, str], np.ndarray]) -> None:
    sizes = {"a": 1e6, "b": 9e6, "c": 4e6, "d": 2e6}
    within = [scaling.mean_within(values[name, name]) for name in sizes]
    expected = spearmanr(list(sizes.values()), within).statistic
    assert scaling.grows_with_size(values, sizes) == {"": pytest.approx(expected)}
    assert scaling.grows_with_size(values, {"a": 1.0, "b": 2.0}) == {}  # two have no order to speak of


class Letters:
    """A tokenizer that reads letters."""

    def __call__(self, texts: list[str], **_: object) -> dict[str, list[list[int]]]:
        return {"input_ids": [[ord(letter) for letter in text] for text in texts]}


def test_passages_are_whole_and_spread_over_the_text() -> None:
    texts = ["abcdefgh" * 4, "ijklmnop" * 4]
    found = whole_passages(texts, Letters(), 4, 5)  # type: ignore[arg-type]
    stream = np.array([ord(letter) for text in texts for letter in text]).reshape(16, 4)
    np.testing.assert_array_equal(found.ids, stream[[0, 4, 8, 11, 15]])
    assert found.mask.all()
    more = whole_passages(texts, Letters(), 4, 100)  # type: ignore[arg-type]
    np.testing.assert_array_equal(more.ids, stream)  # none comes twice
    with pytest.raises(InvalidInput, match="has 3 passages of 20 tokens, and 8 are needed"):
        whole_passages(texts, Letters(), 20, 5)  # type: ignore[arg-type]


@pytest.fixture
def seen() -> Seen:
    rng = np.random.default_rng(1)
    names = tuple(f"m{k}" for k in range(9))
    facts = pd.DataFrame(
        {"family": list("xxxyyyzzz"), "date": 2020.0, "depth": np.arange(9)}, index=list(names)
    )
    importance = tuple(rng.normal(size=(2, 3, 5)) for _ in names)
    geometry = rng.normal(size=(9, 40)).astype(np.float32)
    return Seen(Observation(names, tuple("abcde"), importance, geometry), facts, permutations=0)


def test_facts_that_are_the_same_in_all_models_are_in_no_group(seen: Seen) -> None:
    assert seen.groups == {"size": ("depth",)}
    varied = replace(seen, facts=seen.facts.assign(width=np.arange(9) % 4, tokens=1e9))
    assert varied.groups == {"size": ("depth", "width")}
    assert set(GROUPS["size"]) > {"depth", "width"}


def test_geometry_is_the_distance_of_unit_vectors(seen: Seen) -> None:
    ranks = seen.observation.geometry.astype(np.float64)
    unit = ranks / np.linalg.norm(ranks, axis=1, keepdims=True)
    np.testing.assert_allclose(seen.geometry.values, squareform(pdist(unit)), atol=1e-5)


def test_families_are_apart_by_pairs(seen: Seen) -> None:
    distances = seen.warped.values
    family = seen.facts["family"].to_numpy()
    same = [distances[i, j] for i, j in combinations(range(9), 2) if family[i] == family[j]]
    other = [distances[i, j] for i, j in combinations(range(9), 2) if family[i] != family[j]]
    expected = (np.mean(other) - np.mean(same)) / np.mean(same + other)
    assert population.families_apart(seen) == {"": pytest.approx(expected)}
    alone = replace(seen, facts=seen.facts.assign(family=list("abcdefghi")))
    assert population.families_apart(alone) == {}  # no two models of a family
    assert population.families_apart(replace(seen, facts=seen.facts.drop(columns="family"))) == {}


def test_agreement_is_scipys_spearman_over_pairs_of_models(seen: Seen) -> None:
    rng = np.random.default_rng(2)
    one, other = (squareform(rng.uniform(size=36)) for _ in range(2))
    found = population.agreement(
        Distances("x", seen.observation.models, one), Distances("y", seen.observation.models, other)
    )
    pairs = np.triu_indices(9, k=1)
    assert found == pytest.approx(spearmanr(one[pairs], other[pairs]).statistic)
