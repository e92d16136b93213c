"""Results that are written, read again, pickled, copied and printed."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thinkalike as ta
from thinkalike.comparison import SimilarityMatrix
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.model_distances import ModelDistances, model_distances
from thinkalike.errors import StoreError
from thinkalike.streaming import activations_cka
from thinkalike.streaming.cka_matrix import CKAMatrix

N_ITEMS = 60


@pytest.fixture(scope="module")
def systems() -> dict[str, dict[Any, np.ndarray]]:
    rng = np.random.default_rng(0)
    return {name: {k: rng.normal(size=(N_ITEMS, 6)) for k in range(3)} for name in ("one", "two", "three")}


@pytest.fixture(scope="module")
def comparison(systems: dict[str, dict[Any, np.ndarray]]) -> Any:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({name: rng.choice(list("pqr"), N_ITEMS) for name in ("colour", "size", "shape")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)  # the systems are noise
        return ta.compare(systems, ta.Stimuli.from_table(table), measures=["rsa", "cka"], resamples=20)


@pytest.mark.parametrize("measure", ["features", "rsa", "cka"])
def test_a_matrix_comes_back_as_it_was(comparison: Any, tmp_path: Path, measure: str) -> None:
    matrix = comparison.matrices[measure]
    found = SimilarityMatrix.load(matrix.save(tmp_path / "m"))
    pd.testing.assert_frame_equal(found.to_frame(), matrix.to_frame())
    assert (found.rows, found.measure, found.kind) == (matrix.rows, matrix.measure, matrix.kind)
    assert len(found.blocks) == len(matrix.blocks)
    assert repr(found) == repr(matrix)
    assert found["one", 1, "two", 2] == matrix["one", 1, "two", 2]


def test_a_damaged_matrix_is_noticed(comparison: Any, tmp_path: Path) -> None:
    comparison.matrices["cka"].save(tmp_path / "m")
    data = bytearray((tmp_path / "m.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "m.parquet").write_bytes(bytes(data))
    with pytest.raises(StoreError, match=r"m\.parquet .*compute the similarity again"):
        SimilarityMatrix.load(tmp_path / "m")


def test_distances_between_models_come_back(comparison: Any, tmp_path: Path) -> None:
    for align in ("depth", "warped"):
        distances = model_distances(comparison.matrices["cka"], align=align)
        found = ModelDistances.load(distances.save(tmp_path / align))
        np.testing.assert_allclose(found.values, distances.values, rtol=1e-12)
        assert found.paths == distances.paths
        assert (found.systems, found.align, found.clipped) == (distances.systems, align, distances.clipped)


def test_streamed_cka_comes_back(systems: Any, tmp_path: Path) -> None:
    acts = [ta.Activations.from_arrays(arrays, system=name) for name, arrays in systems.items()]
    matrix = activations_cka(acts)
    found = CKAMatrix.load(matrix.save(tmp_path / "cka"))
    np.testing.assert_array_equal(found.values, matrix.values)
    np.testing.assert_array_equal(found.standard_errors, matrix.standard_errors)
    np.testing.assert_array_equal(found.top_share, matrix.top_share)
    pd.testing.assert_frame_equal(found.trace, matrix.trace)
    assert (found.rows, found.units, found.stopped) == (matrix.rows, matrix.units, matrix.stopped)
    assert (found.cautions, found.kind, repr(found)) == (matrix.cautions, matrix.kind, repr(matrix))


def test_a_comparison_as_one_table(comparison: Any) -> None:
    frame = comparison.to_frame()
    assert set(frame["measure"]) == {"features", "rsa", "cka"}
    assert len(frame) == 3 * 9**2
    one = frame[(frame.measure == "cka") & (frame.system_a == "one") & (frame.layer_a == 1)]
    value = one[(one.system_b == "two") & (one.layer_b == 2)]["value"].item()
    assert value == comparison.matrices["cka"]["one", 1, "two", 2]


@pytest.mark.parametrize("remake", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])  # noqa: S301
def test_comparisons_pickle_and_copy(comparison: Any, remake: Callable[[Any], Any]) -> None:
    again = remake(comparison)
    pd.testing.assert_frame_equal(again.to_frame(), comparison.to_frame())
    assert repr(again) == repr(comparison)


def test_extracted_activations_pickle(tiny_models: dict[str, Path], tmp_path: Path) -> None:
    stimuli = ta.Stimuli.from_grammar(4, seed=0)
    for options in ({"cache": False}, {"out": tmp_path / "acts"}):
        acts = ta.extract(tiny_models["tiny-gpt2"], stimuli, **options)
        again = pickle.loads(pickle.dumps(acts))  # noqa: S301
        assert again.item_names == acts.item_names
        for layer in acts:
            np.testing.assert_array_equal(again[layer], acts[layer])
