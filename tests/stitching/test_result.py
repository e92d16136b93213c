"""A result worked out by hand: penalties, floors, ceilings, both ways, what is drawn, what is on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from thinkalike.errors import InvalidInput, StoreError, UnknownName
from thinkalike.stitching import StitchResult, asymmetry, mean_asymmetry
from thinkalike.stitching.penalty_plots import is_grid, line_frame, plot_curves, plot_result, plot_results
from thinkalike.stitching.stitches import Stitch

PAIRS = (
    Stitch("pair", 0, 0),
    Stitch("pair", 1, 2),
    Stitch("self", 0, 0),
    Stitch("self", 2, 2),
    Stitch("untrained", 1, 2),
)
COUNTS = np.array([2.0, 4.0])  # predictions of two documents
OWN = np.array([2.0, 4.0])  # 1 nat per prediction
EXTRA = np.array([[0.0, 0.0], [1.0, 2.0], [0.2, 0.4], [0.0, 0.6], [6.0, 6.0]])  # what each stitch adds


@pytest.fixture
def make_result() -> Callable[..., StitchResult]:
    def make(**changes: Any) -> StitchResult:
        stitches = changes.pop("stitches", PAIRS)
        n = len(stitches)
        fields: dict[str, Any] = {
            "bottom": "a",
            "top": "b",
            "task": "causal",
            "kind": "affine",
            "fit": "least-squares",
            "stitches": stitches,
            "losses": OWN + EXTRA[:n],
            "correct": np.tile([1.0, 1.0], (n, 1)),
            "own_losses": OWN,
            "own_correct": np.array([2.0, 2.0]),
            "counts": COUNTS,
            "unit": "documents",
            "explained": np.linspace(1.0, 0.0, n),
            "checks": pd.DataFrame(
                {k: np.ones(n) for k in ("norm", "norm_own", "mahalanobis", "mahalanobis_own", "outside")}
            ),
            "curves": pd.DataFrame(columns=["role", "layer_bottom", "layer_top", "step", "split", "loss"]),
            "training": pd.DataFrame(index=range(n)),
            "settings": {"resamples": 200, "seed": 0, "test_digest": "text"},
            "depths": (1, 2),
        }
        return StitchResult(**(fields | changes))

    return make


def test_penalties_floors_and_ceilings_by_hand(make_result):
    result = make_result()
    assert (result.own_loss, result.own_accuracy) == (1.0, pytest.approx(4 / 6))
    frame = result.to_frame()
    np.testing.assert_allclose(frame["penalty"], [0.0, 3 / 6])
    np.testing.assert_allclose(frame["loss"], [1.0, 1.5])
    np.testing.assert_allclose(frame["accuracy_drop"], [2 / 6, 2 / 6])
    np.testing.assert_allclose(frame["floor"], [0.6 / 6, 0.6 / 6])
    np.testing.assert_allclose(frame["ceiling"], [np.nan, 12 / 6])
    assert frame[["low", "high"]].isna().all(axis=None)  # of two documents
    names = result.to_frame(roles=True).set_index("role")["bottom"]
    assert names.to_dict() == {"pair": "a", "self": "b", "untrained": "a:untrained"}
    np.testing.assert_array_equal(result.excess(1, 2), [1.0, 2.0])
    assert "2 pairs of layers, affine by least-squares; 6 predictions in 2 documents" in repr(result)
    assert "0.500" in result._repr_html_()


def test_the_matrix_has_a_place_for_every_layer(make_result):
    table = make_result().matrix()
    assert table.shape == (2, 3)
    assert table.notna().sum().sum() == 2
    assert table.loc[1, 2] == pytest.approx(0.5)
    assert make_result().matrix("accuracy").loc[0, 0] == pytest.approx(2 / 6)


def test_a_model_stitched_with_itself_is_its_own_floor(make_result):
    alone = make_result(top="a", stitches=PAIRS[:1])
    assert alone.to_frame()["floor"].tolist() == [0.0]


def test_what_a_mismatch_of_depth_costs(make_result):
    result = make_result()
    assert np.isnan(result.depth_mismatch())  # two pairs are too few
    three = tuple(Stitch("pair", 0, m) for m in range(3))
    rho = make_result(stitches=three, losses=OWN + np.array([[0, 0], [1, 1], [3, 3]])).depth_mismatch()
    assert rho == pytest.approx(1.0)
    even = tuple(Stitch("pair", k, 2 * k) for k in (0, 1, 0))
    assert np.isnan(make_result(stitches=even).depth_mismatch())  # no mismatch to go by


def test_what_was_not_stitched_is_not_there(make_result):
    result = make_result()
    assert result.find("pair", 1, 1) is None
    with pytest.raises(InvalidInput, match="Layer 1 of a was not stitched to layer 1 of b"):
        result.excess(1, 1)
    with pytest.raises(InvalidInput, match=r"must be of shape \(5, 2\), a row per stitch"):
        make_result(losses=OWN[None])


def test_both_ways_by_hand(make_result):
    there = make_result()
    back_stitches = (Stitch("pair", 0, 0), Stitch("pair", 2, 1))
    back = make_result(
        bottom="b", top="a", stitches=back_stitches, losses=OWN + np.array([[1.0, 1.0], [0.0, 0.0]])
    )
    table = asymmetry(there, back, resamples=99)
    assert table[["layer_a", "layer_b"]].to_numpy().tolist() == [[0, 0], [1, 2]]
    np.testing.assert_allclose(table["difference"], [-2 / 6, 3 / 6])
    np.testing.assert_allclose(table["a_to_b"] - table["b_to_a"], table["difference"])
    assert mean_asymmetry(there, back, resamples=99)["difference"] == pytest.approx((3 - 2) / 2 / 6)
    with pytest.raises(InvalidInput, match="not the two ways of one pair"):
        asymmetry(there, there)
    with pytest.raises(InvalidInput, match="judged by different texts"):
        asymmetry(there, make_result(bottom="b", top="a", settings={"test_digest": "other"}))
    with pytest.raises(InvalidInput, match="share no pair of layers"):
        asymmetry(there, make_result(bottom="b", top="a", stitches=(Stitch("pair", 2, 0),)))


def test_lines_have_the_floor_at_the_layer_of_the_bottom(make_result):
    frame = line_frame(make_result(), "penalty").set_index(["series", "layer"])["value"]
    assert frame["a → b", 1] == pytest.approx(0.5)
    floor, ceiling = [name for name in frame.index.unique("series") if name != "a → b"]
    assert frame[floor].index.tolist() == [0, 1]  # that of layer 2 of the top stands at layer 1
    assert frame[ceiling].to_dict() == {1: pytest.approx(2.0)}
    assert line_frame(make_result(), "loss", relative=True)["layer"].max() == 1.0
    assert len(line_frame(make_result(), "penalty", rows=[0])) == 1


def test_a_grid_is_drawn_as_a_matrix_and_lines_as_lines(make_result):
    grid = make_result(stitches=(Stitch("pair", 0, 0), Stitch("pair", 0, 1)))
    assert is_grid(grid)
    assert not is_grid(make_result())
    marks = [
        {layer["mark"]["type"] for layer in plot_result(one, "penalty").to_dict()["layer"]}
        for one in (grid, make_result())
    ]
    assert "rect" in marks[0]
    assert "line" in marks[1]
    both = plot_results([make_result(), make_result(bottom="c")], relative=True).to_dict()
    drawn = {row["series"] for rows in both["datasets"].values() for row in rows}
    assert drawn == {"a → b", "c → b", "b → b"}
    alone = plot_results([make_result()], baselines=False).to_dict()
    assert {row["series"] for rows in alone["datasets"].values() for row in rows} == {"a → b"}


def test_what_cannot_be_drawn(make_result):
    with pytest.raises(UnknownName, match=r"no value to draw 'penalti'.*Did you mean 'penalty'"):
        plot_result(make_result(), "penalti")
    with pytest.raises(InvalidInput, match="no results to draw"):
        plot_results([])
    with pytest.raises(InvalidInput, match="least-squares, which has no learning curve: use fit='task'"):
        plot_curves(make_result())


def test_it_comes_back_from_disk_as_it_was(make_result, tmp_path):
    result = make_result(cautions=("Few documents.",))
    loaded = StitchResult.load(result.save(tmp_path / "out"))
    assert loaded.to_frame(roles=True).equals(result.to_frame(roles=True))
    assert (loaded.settings, loaded.depths, loaded.cautions) == (
        result.settings,
        result.depths,
        result.cautions,
    )
    table = tmp_path / "out" / "stitching-units.parquet"
    table.write_bytes(table.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreError, match="run the stitching again"):
        StitchResult.load(tmp_path / "out")
