"""Streaming CKA over stored activations, and what its result can do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from thinkalike.activations.store import Activations
from thinkalike.comparison.model_distances import model_distances
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.measures import MEASURES
from thinkalike.streaming import activations_cka
from thinkalike.streaming.cka_matrix import CKAMatrix
from thinkalike.streaming.over_activations import whole_groups

N = 600


@pytest.fixture(scope="module")
def systems() -> list[Activations]:
    """Two systems of three layers that drift away from a common start."""
    rng = np.random.default_rng(0)
    start = rng.normal(size=(N, 10))

    def layers(width: int) -> dict[int, np.ndarray]:
        turn = rng.normal(size=(10, width))
        return {k: start @ turn + k * rng.normal(size=(N, width)) * 2 for k in range(3)}

    return [Activations.from_arrays(layers(w), system=name) for name, w in [("a", 12), ("b", 8)]]


@pytest.fixture(scope="module")
def found(systems: list[Activations]) -> CKAMatrix:
    return activations_cka(systems, batch_size=50)


def test_one_batch_is_plain_cka(systems: list[Activations]) -> None:
    layers = [acts[layer] for acts in systems for layer in acts.layers]
    found = activations_cka(systems, batch_size=N)
    np.testing.assert_allclose(found.values, MEASURES["cka"].matrix(layers), atol=1e-9)
    assert np.isnan(found.standard_errors).all()


def test_batches_estimate_the_same_cka_within_their_errors(
    systems: list[Activations], found: CKAMatrix
) -> None:
    whole = activations_cka(systems, batch_size=N).values
    off = ~np.eye(6, dtype=bool)
    assert np.abs((found.values - whole)[off] / found.standard_errors[off]).max() < 3.5
    assert len(found.trace) == 12
    assert found.units == {"batches": 12}
    assert found.stopped == "end"
    assert found.n_items == N


def test_it_stops_when_it_is_precise_enough(systems: list[Activations]) -> None:
    found = activations_cka(systems, batch_size=20, precision=0.06)
    assert found.stopped == "precision"
    assert 10 <= len(found.trace) < 30
    assert found.trace["standard_error"].iloc[-1] <= 0.06
    assert not (found.trace["standard_error"].iloc[9:-1] <= 0.06).any()
    assert found.cautions == ()


def test_it_says_when_the_items_did_not_suffice(systems: list[Activations]) -> None:
    found = activations_cka(systems, batch_size=50, precision=1e-4)
    assert found.stopped == "end"
    assert "ended before the precision of 0.0001 was reached" in found.cautions[0]


def test_it_stops_after_so_many_batches(systems: list[Activations]) -> None:
    found = activations_cka(systems, batch_size=50, max_batches=3)
    assert (found.stopped, len(found.trace)) == ("max_batches", 3)


def test_the_seed_decides_the_batches(systems: list[Activations]) -> None:
    first, again, other = (activations_cka(systems, batch_size=50, seed=s).values for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_large_activations_are_gathered_in_a_file(
    systems: list[Activations], found: CKAMatrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thinkalike.streaming.over_activations.MEMORY", 1000)
    spilled = activations_cka(systems, batch_size=50)
    np.testing.assert_array_equal(spilled.values, found.values)


def test_groups_are_never_cut() -> None:
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 40, 300)
    batches = whole_groups(300, groups, 50)
    assert sorted(np.concatenate(batches)) == list(range(300))
    assert len(batches) == 6
    assert all(35 <= len(rows) <= 65 for rows in batches)
    members = [set(groups[rows]) for rows in batches]
    assert sum(len(one) for one in members) == len(set(groups))


def test_few_items_of_huge_norm_call_for_a_caution(systems: list[Activations]) -> None:
    spiky = {layer: systems[0][layer].copy() for layer in systems[0].layers}
    spiky[1][::50] *= 50
    found = activations_cka([Activations.from_arrays(spiky, system="spiky")], batch_size=100)
    assert found.top_share[1] > 0.5 > found.top_share[0]
    assert found.cautions[0].startswith("1 % of the items carry more than half of the HSIC of spiky:1:")


def test_a_constant_layer_is_named_and_the_rest_is_there(systems: list[Activations]) -> None:
    layers = {0: np.ones((N, 3)), 1: systems[0][1]}
    found = activations_cka([Activations.from_arrays(layers, system="flat")], batch_size=100)
    assert np.isnan(found.values[0, 1])
    assert found.values[1, 1] == 1
    assert found.cautions[0].startswith("flat:0 gave all items of every batch the same vector")


def test_the_result_is_labelled(found: CKAMatrix) -> None:
    assert found.systems == ("a", "b")
    assert found.block("a", "b").shape == (3, 3)
    assert found.block("a", "b")[1, 2] == found.values[1, 5]
    assert found.table().loc["a:1", "b:2"] == found.values[1, 5]
    frame = found.to_frame()
    row = frame.query("system_a == 'a' and layer_a == '1' and system_b == 'b' and layer_b == '2'").iloc[0]
    assert row["value"] == found.values[1, 5]
    assert row["standard_error"] == found.standard_errors[1, 5]
    assert list(found.layer_frame()["top_share"]) == list(found.top_share)
    assert repr(found) == "CKAMatrix(6 layers of a, b; 600 items in 12 batches of 12 batches)"
    assert "<table" in found._repr_html_()
    with pytest.raises(UnknownName, match="There is no system 'c'"):
        found.block("a", "c")


def test_the_figures(found: CKAMatrix) -> None:
    assert found.plot().to_dict()["layer"]
    assert found.plot_convergence(theme="dark").to_dict()["vconcat"]


def test_it_is_saved_whole(found: CKAMatrix, tmp_path: Path) -> None:
    folder = found.save(tmp_path / "run")
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "cka.parquet"), found.to_frame())
    assert len(pd.read_csv(folder / "cka.csv")) == 36
    assert len(pd.read_parquet(folder / "convergence.parquet")) == 12
    about = json.loads((folder / "settings.json").read_text())
    assert about["settings"]["batch_size"] == 50
    assert about["units"] == {"batches": 12}
    assert about["versions"]["thinkalike"]
    assert {path.name for path in folder.iterdir()} == {
        *(f"{name}.{kind}" for name in ("cka", "layers", "convergence") for kind in ("csv", "parquet")),
        "settings.json",
    }


def test_distances_between_models_come_from_it(found: CKAMatrix) -> None:
    expected = np.sqrt(sum(np.arccos(found.block("a", "b")[k, k]) ** 2 for k in (1, 2)))
    assert model_distances(found).values[0, 1] == pytest.approx(expected)


class TestBadInput:
    def test_other_items(self, systems: list[Activations]) -> None:
        shuffled = Activations.from_arrays(
            {0: systems[1][0]}, system="b", items=[str(k) for k in reversed(range(N))]
        )
        with pytest.raises(InvalidInput, match="a and b do not have the same items in the same order"):
            activations_cka([systems[0], shuffled])

    def test_the_same_system_twice(self, systems: list[Activations]) -> None:
        with pytest.raises(InvalidInput, match="Two systems have the same name among a, a"):
            activations_cka([systems[0], systems[0]])

    def test_no_system(self) -> None:
        with pytest.raises(InvalidInput, match="There are no systems to compare"):
            activations_cka([])

    def test_tiny_batches(self, systems: list[Activations]) -> None:
        with pytest.raises(InvalidInput, match="batch_size is 3: unbiased CKA needs at least 4"):
            activations_cka(systems, batch_size=3)

    def test_too_few_items(self, systems: list[Activations]) -> None:
        few = Activations.from_arrays({0: systems[0][0][:3]}, system="few")
        with pytest.raises(InvalidInput, match="gave no batch of 4 items or more"):
            activations_cka([few])

    def test_groups_of_another_length(self, systems: list[Activations]) -> None:
        with pytest.raises(InvalidInput, match="There are 600 items and 2 group labels"):
            activations_cka(systems, groups=["x", "y"])

    def test_a_precision_of_nothing(self, systems: list[Activations]) -> None:
        with pytest.raises(InvalidInput, match="precision is the standard error to stop at, above 0"):
            activations_cka(systems, precision=0.0)
