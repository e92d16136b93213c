"""Figures of recipes on hand-made numbers: what is drawn is what was given, and it is valid Vega-Lite."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from thinkalike.comparison.comparison import Comparison
from thinkalike.inference.blocks import find_blocks
from thinkalike.recipes.brown2023_scaling import experiment
from thinkalike.recipes.brown2023_scaling import figures as scaling
from thinkalike.recipes.brown2023_scaling.rules import RULES
from thinkalike.recipes.findings import Figure
from thinkalike.recipes.salle2024 import figures as salle
from thinkalike.recipes.salle2024.observing import Observation

NAMES = ["org/p-1b", "org/p-2b", "org/p-4b"]


def rows(figure: Figure) -> list[list[dict[str, Any]]]:
    """The tables behind a figure, which must be valid."""
    figure.chart.to_dict()
    return list(cast("dict[str, list[dict[str, Any]]]", figure.spec["datasets"]).values())


def every_row(figure: Figure) -> Iterator[dict[str, Any]]:
    return (row for table in rows(figure) for row in table)


@pytest.fixture
def values() -> dict[tuple[str, str], np.ndarray]:
    """Members of 2, 3 and 4 blocks."""
    rng = np.random.default_rng(0)
    depth = dict(zip(NAMES, (2, 3, 4), strict=True))
    return {(a, b): rng.random((depth[a], depth[b])) for a, b in product(NAMES, NAMES)}


class TestScaling:
    def test_a_heatmap_counts_layers_from_1_and_has_every_value(self) -> None:
        given = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
        chart = scaling.heatmap(given, rows="low", columns="high")
        drawn = chart.data.set_index(["row", "column"])["value"]
        assert {(i, j): drawn[i, j] for i in (1, 2) for j in (1, 2, 3)} == {
            (i + 1, j + 1): given[i, j] for i in range(2) for j in range(3)
        }
        spec = chart.to_dict()
        assert spec["encoding"]["y"]["sort"] == "descending"  # the first layers below
        assert (spec["width"] / 3, spec["height"] / 2) == (56, 56)

    def test_every_member_is_drawn_against_the_largest(
        self, values: dict[tuple[str, str], np.ndarray]
    ) -> None:
        figure = scaling.with_largest(values, NAMES)
        drawn = sorted(len(table) for table in rows(figure))
        assert drawn == [2 * 4, 3 * 4, 4 * 4]
        assert figure.of_paper == "Figure 3"
        assert "p-4b" in figure.title

    def test_the_family_is_one_matrix_of_all_blocks(self, values: dict[tuple[str, str], np.ndarray]) -> None:
        figure = scaling.family(values, NAMES)
        found = {(row["a"], row["b"]): row["value"] for row in every_row(figure) if "a" in row and "b" in row}
        assert len(found) == 9 * 9
        assert found["p-2b:3", "p-4b:1"] == values["org/p-2b", "org/p-4b"][2, 0]
        assert found["p-4b:1", "p-2b:3"] == values["org/p-4b", "org/p-2b"][0, 2]
        assert "'p-'" in figure.caption

    @pytest.mark.parametrize("draw", [scaling.within, scaling.flattened])
    def test_each_member_against_itself(self, draw: Any, values: dict[tuple[str, str], np.ndarray]) -> None:
        figure = draw(values, NAMES)
        assert sorted(len(table) for table in rows(figure)) == [4, 9, 16]
        drawn = sorted(row["value"] for row in every_row(figure))
        assert drawn == sorted(np.concatenate([values[n, n].ravel() for n in NAMES]).tolist())

    def test_size_and_loss_show_members_and_checkpoints(self) -> None:
        facts = {
            name: {"parameters": 10.0**k, "loss": 4.0 - k, "layers": 2, "width": 8}
            for k, name in enumerate(NAMES, start=1)
        }
        within = dict(zip(NAMES, (0.3, 0.5, 0.7), strict=True))
        earlier = {"org/p-1b@step9": {"parameters": 10.0, "loss": 5.0, "within": 0.2}}
        table = experiment._points(facts, within, earlier)
        assert list(table["kind"]) == ["member"] * 3 + ["checkpoint"]
        assert table.iloc[3].to_dict() == {
            "model": "p-1b@step9", "kind": "checkpoint", "within": 0.2, "parameters": 10.0, "loss": 5.0,
        }  # fmt: skip
        figure = scaling.size_and_loss(table)
        assert {row["label"] for row in every_row(figure)} == {"1b", "2b", "4b", "1b@step9"}

    def test_the_odd_member_is_marked(self) -> None:
        figure = scaling.odd({"org/p-1b": 0.1, "org/p-2b": 0.4}, "org/p-2b")
        (table,) = rows(figure)
        assert table == [
            {"model": "p-1b", "score": 0.1, "expected": False},
            {"model": "p-2b", "score": 0.4, "expected": True},
        ]

    def test_a_state_space_model_stands_beside_a_transformer(self) -> None:
        figure = scaling.state_space({"mamba": np.eye(2), "org/gpt": np.eye(3)})
        assert sorted(len(table) for table in rows(figure)) == [4, 9]
        titles = [part["title"] for part in cast("list[dict[str, Any]]", figure.spec["concat"])]
        assert titles == ["mamba", "gpt"]


class TestScalingStatements:
    def test_the_mean_over_parts(self) -> None:
        parts = [{("a", "a"): np.full((2, 2), v)} for v in (0.2, 0.4)]
        np.testing.assert_allclose(experiment.average(parts)["a", "a"], 0.3)

    def test_every_statement_of_the_paper_is_on_every_part(self) -> None:
        names = ["a", "b", "c", "d"]
        fading = 1 - np.abs(np.subtract.outer(np.arange(8), np.arange(8))) / 8
        one = dict.fromkeys(product(names, names), fading)
        facts = {
            name: {"parameters": 2.0**k, "d_head": 64.0, "rotary_dim": 16.0} for k, name in enumerate(names)
        }
        found = experiment.paper_statements([one] * 6, names, "c", facts, {})
        by_rule = {name: s for s in found for name, rule in RULES.items() if s.rule is rule}
        assert list(by_rule) == [name for name in RULES if name in by_rule]
        assert by_rule["fades"].verdict == "agrees"
        assert by_rule["fades"].effects[0].over == "6 parts of the text"
        assert by_rule["fades"].effects[0].value == pytest.approx(7 / 8 - 1 / 8)
        assert by_rule["head sizes"].verdict == "differs"  # all heads are alike
        assert by_rule["blocks between"].found == "It takes members whose layers fall into blocks."
        assert by_rule["odd member"].verdict == "differs"  # nobody is odd

    def test_tables_have_a_row_for_each_member(self) -> None:
        facts = {
            "a": {
                "parameters": 9.0, "layers": 6, "width": 8, "loss": 2.0, "d_head": 4, "rotary_dim": 1,
            }
        }  # fmt: skip
        label = np.arange(6) >= 2
        blocks = find_blocks(np.where(label[:, None] == label, 0.9, 0.2))
        assert blocks is not None
        (row,) = experiment.summary(facts, {"a": 0.5}, {"a": 0.1}, {"a": blocks}).frame.to_dict("records")
        assert (row["blocks"], row["first block"], row["mean CKA within"]) == (6, 2, 0.5)
        (without,) = experiment.summary(facts, {"a": 0.5}, {"a": 0.1}, {}).frame.to_dict("records")
        assert without["first block"] is None
        assert experiment.table_one(facts).frame.to_dict("records") == [
            {"model": "a", "d_head": 4, "rotary_dim": 1}
        ]


def observed(tops: dict[str, list[str]]) -> Observation:
    """Models whose blocks are led by these features."""
    features = sorted({top for own in tops.values() for top in own} | {"tense"})
    tables = {}
    for name, own in tops.items():
        table = pd.DataFrame(0.0, index=range(len(own) + 1), columns=features)
        for layer, top in enumerate(own, start=1):
            table.loc[layer, top] = 1.0
        tables[name] = table
    return Observation(tables, np.eye(sum(map(len, tables.values()))), 0.0, {})


def compared(taus: np.ndarray, layers: int) -> Comparison:
    """As much of a comparison of two models as the figures look at."""
    half = [(name, layer) for name in ("a", "b") for layer in range(layers)]
    return cast(
        "Comparison",
        SimpleNamespace(
            rows=tuple(half),
            matrices={"features": SimpleNamespace(values=taus)},
            profiles={name: SimpleNamespace(layers=tuple(range(layers))) for name in ("a", "b")},
        ),
    )


class TestSalle:
    def test_leaders_are_shares_of_the_layers_over_all_sets(self) -> None:
        first = observed({"bert": ["number", "number"], "gpt2": ["tense", "number"]})
        second = observed({"bert": ["number", "tense"], "gpt2": ["tense", "tense"]})
        figure = salle.led({"the grammar": [first, second]})
        found = {(r["model"], r["feature"]): r["share"] for r in every_row(figure)}
        assert found == pytest.approx(
            {
                ("bert", "number"): 0.75,
                ("bert", "tense"): 0.25,
                ("gpt2", "number"): 0.25,
                ("gpt2", "tense"): 0.75,
            }
        )

    def test_extremes_are_of_different_models_and_not_of_embeddings(self) -> None:
        taus = np.zeros((6, 6))
        taus[0, 3] = taus[3, 0] = 0.99  # embeddings of both
        taus[1, 2] = taus[2, 1] = 0.98  # two layers of one model
        taus[1, 5] = taus[5, 1] = 0.7
        taus[2, 4] = taus[4, 2] = -0.3
        assert salle.extremes(compared(taus, 3)) == ((1, 5), (2, 4))

    @pytest.mark.parametrize(("layers", "expected"), [(5, (2, 3)), (7, (2, 5)), (13, (4, 9))])
    def test_a_low_and_a_high_layer(self, layers: int, expected: tuple[int, int]) -> None:
        blocks = list(range(1, layers))
        low, high = salle.low_and_high(compared(np.eye(2 * layers), layers), "a")
        assert (low, high) == expected
        assert low == blocks[round((len(blocks) - 1) / 4)]
        assert high == blocks[round(3 * (len(blocks) - 1) / 4)]
