"""Sketches: the pairs, and how near the numbers from them are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from thinkalike.measures import MEASURES
from thinkalike.populations.reference_sets import reference
from thinkalike.populations.sketch import (
    Sketch,
    Sketcher,
    SketchPairs,
    draw_pairs,
    sketch_pairs,
    sketched_cka,
    sketched_rsa,
)
from thinkalike.stimuli import Stimuli


def sketch(layers: list[np.ndarray], pairs: SketchPairs) -> Sketch:
    sketcher = Sketcher(pairs)
    for k, X in enumerate(layers):
        sketcher.add(X, str(k))
    return sketcher.finished()


@pytest.fixture
def few() -> SketchPairs:
    """Of 130 items, all pairs."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(list("xyz"), 130), "b": rng.choice(list("uv"), 130)})
    return draw_pairs(Stimuli.from_table(table))


def test_the_pairs_of_the_package_are_those_that_are_drawn() -> None:
    drawn, kept = draw_pairs(reference("sentences-1")), sketch_pairs("sentences-1")
    np.testing.assert_array_equal(drawn.ranked.sample, kept.ranked.sample)
    np.testing.assert_array_equal(drawn.products.sample, kept.products.sample)
    np.testing.assert_allclose(drawn.weights, kept.weights, rtol=1e-6)


def test_weights_undo_how_often_a_pair_is_drawn() -> None:
    """Σ w over the drawn pairs of one kind is in proportion to how many such pairs there are."""
    stimuli, pairs = reference("words-1"), sketch_pairs("words-1")
    position = stimuli.features["part_of_speech"].astype(object).fillna("–").to_numpy()
    every_i, every_j = np.triu_indices(len(stimuli), k=1)
    share = (position[every_i] == position[every_j]).mean()
    same = position[pairs.products.i] == position[pairs.products.j]
    assert pairs.weights[same].sum() / pairs.weights.sum() == pytest.approx(share, abs=0.01)
    assert same.mean() > share + 0.05  # these are drawn more often


def test_of_few_items_all_pairs_are_there(few: SketchPairs) -> None:
    assert len(few.ranked) == len(few.products) == 130 * 129 // 2
    assert (few.weights == 1).all()


def test_with_all_pairs_the_steps_are_all_that_is_lost(few: SketchPairs) -> None:
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(130, 4))
    layers = [shared @ rng.normal(size=(4, 9)) + rng.normal(size=(130, 9)) for _ in range(3)]
    found = sketch(layers, few)
    for i in range(3):
        for j in range(i):
            rsa, cka = (float(MEASURES[name](layers[i], layers[j])) for name in ("rsa", "cka"))
            assert sketched_rsa(found.ranks)[i, j] == pytest.approx(rsa, abs=0.005)
            assert sketched_cka(found.gram, few.weights)[i, j] == pytest.approx(cka, abs=0.004)


def test_all_blocks_side_by_side(few: SketchPairs) -> None:
    rng = np.random.default_rng(1)
    layers = [rng.normal(size=(130, 5)) * scale for scale in (1.0, 3.0, 1.0)]
    sketcher = Sketcher(few)
    for k, X in enumerate(layers):
        sketcher.add(X, str(k), is_block=k > 0)
    joined = sketch([np.concatenate(layers[1:], axis=1)], few)
    assert (sketcher.finished().together == joined.ranks[0]).mean() > 0.999
