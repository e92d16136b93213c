"""Leaving sentences out: every matrix against the measure of the items that stay; ranges by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import rankdata, spearmanr
from scipy.stats import t as student

from thinkalike.errors import InvalidInput
from thinkalike.inference.left_out import has_range, left_out_matrices
from thinkalike.inference.ranges import jackknife_range, leave_parts_out
from thinkalike.measures import get_measure, layer_measures
from thinkalike.stimuli.feature_coding import code_features

CALIBRATION = Path(__file__).parents[2] / "benchmarks" / "results" / "calibration.json"
RNG = np.random.default_rng(0)
SENTENCES = np.repeat(np.arange(12), 3)
LAYERS = [RNG.normal(size=(36, d)) + 3 for d in (4, 6, 5)]
LAYERS[1][:, :4] += LAYERS[0]
KEPT = list(leave_parts_out(SENTENCES, 36, parts=5, seed=1))


def test_parts_are_whole_sentences_and_each_is_left_out_once() -> None:
    gone = [np.setdiff1d(np.arange(36), items) for items in KEPT]
    assert sorted(np.concatenate(gone)) == list(range(36))
    for one in gone:
        assert set(SENTENCES[one]).isdisjoint(SENTENCES[np.setdiff1d(np.arange(36), one)])
    assert {len(one) for one in gone} <= {6, 9}
    with pytest.raises(InvalidInput, match="needs at least 8 of them; there are 3"):
        leave_parts_out([1, 1, 2, 3], 4)
    with pytest.raises(InvalidInput, match="There are 4 items and 2 sentences"):
        leave_parts_out([1, 2], 4)


@pytest.mark.parametrize("measure", ["rsa", "rsa-pearson", "rsa-cosine", "rsa-correlation-pearson", "cka"])
def test_every_matrix_is_the_measure_of_the_items_that_stay(measure: str) -> None:
    found = left_out_matrices(measure, LAYERS, KEPT)
    compare = get_measure(measure)
    for items, got in zip([np.arange(36), *KEPT], [found.whole, *found.values], strict=True):
        expected = np.array([[compare(x[items], y[items]) for y in LAYERS] for x in LAYERS])
        off = ~np.eye(3, dtype=bool)
        assert got[off] == pytest.approx(expected[off], abs=1e-6)


def test_what_has_a_range_is_what_simulations_hold_to_it() -> None:
    rows = json.loads(CALIBRATION.read_text(encoding="utf-8"))
    for measure in layer_measures():
        found = rows.get(f"ranges-{measure}", [])
        assert has_range(measure) == (len(found) >= 12 and all(row["holds"] for row in found)), measure


def test_what_features_explain_by_least_squares_on_the_pairs_that_stay() -> None:
    table = pd.DataFrame({"a": RNG.integers(0, 3, 36).astype(str), "b": RNG.integers(0, 2, 36).astype(str)})
    differences = code_features(table.astype("category"))
    found = left_out_matrices("rsa", LAYERS, KEPT, differences=differences)
    assert found.explained is not None
    items = KEPT[2]
    i, j = np.triu_indices(len(items), 1)
    X = np.stack([table[c].to_numpy()[items][i] != table[c].to_numpy()[items][j] for c in "ab"], axis=1) * 1.0
    X = np.column_stack([np.ones(len(X)), X])
    ranks = [rankdata(pdist(layer[items])) for layer in LAYERS]
    ranks = [(r - r.mean()) / r.std() for r in ranks]
    fits = [X @ np.linalg.lstsq(X, r, rcond=None)[0] for r in ranks]
    expected = np.array([[f @ g / len(X) for g in fits] for f in fits])
    assert found.explained[2] == pytest.approx(expected, abs=1e-6)


def test_range_by_hand() -> None:
    without = np.array([0.5, 0.55, 0.45, 0.6])
    z = np.arctanh(without)
    error = np.sqrt(3 / 4 * ((z - z.mean()) ** 2).sum())
    found = jackknife_range(0.52, without, scale="correlation")
    assert found.high == pytest.approx(np.tanh(np.arctanh(0.52) + student.ppf(0.975, 3) * error))
    assert found.low == pytest.approx(np.tanh(np.arctanh(0.52) - student.ppf(0.975, 3) * error))
    assert found.error == pytest.approx(np.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum()))


def test_the_mean_of_numbers_gets_the_usual_standard_error() -> None:
    x = np.random.default_rng(3).normal(size=20)
    without = np.array([np.delete(x, k).mean() for k in range(20)])
    assert jackknife_range(x.mean(), without).error == pytest.approx(x.std(ddof=1) / np.sqrt(20))


def test_ranges_of_rsa_and_cka_cover() -> None:
    """80 samples of 30 sentences in one world; the table with all worlds is in docs/certainty.md."""
    rng = np.random.default_rng(4)

    def draw(n: int) -> tuple[np.ndarray, list[np.ndarray]]:
        sentence = np.repeat(np.arange(n), 3)
        shared = rng.normal(size=(3 * n, 3)) + rng.normal(size=(n, 3))[sentence]
        return sentence, [shared @ m + rng.normal(size=(3 * n, 5)) for m in MAPS]

    _, large = draw(400)
    truth = {
        "rsa": spearmanr(pdist(large[0]), pdist(large[1])).statistic,
        "cka": get_measure("cka")(large[0], large[1]),
    }
    covered = dict.fromkeys(truth, 0)
    for _ in range(80):
        sentence, layers = draw(30)
        kept = list(leave_parts_out(sentence, 90))
        for measure, true in truth.items():
            found = left_out_matrices(measure, layers, kept)
            got = jackknife_range(found.whole[0, 1], found.values[:, 0, 1], scale="correlation")
            covered[measure] += got.low <= true <= got.high
    assert all(70 <= count <= 80 for count in covered.values()), covered


MAPS = [np.random.default_rng(k).normal(size=(3, 5)) for k in (1, 2)]
