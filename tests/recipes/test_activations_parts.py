"""GeLU against SoLU part by part: rows of results, what is stitched with what, verdicts by loops, figures."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.recipes.brown2023_activations import SCALES, figures, verdicts
from thinkalike.recipes.brown2023_activations.experiment import Measured, _both_ways, _seeds, judge
from thinkalike.recipes.brown2023_activations.lens import convert, fetch
from thinkalike.recipes.brown2023_activations.losses import Losses
from thinkalike.recipes.brown2023_activations.stitchings import (
    Workshop,
    curve_rows,
    penalty_rows,
    same_layers,
)
from thinkalike.recipes.steps import Steps
from thinkalike.stitching import StitchResult
from thinkalike.stitching.stitches import Stitch
from thinkalike.streaming.over_text import stream_cka
from thinkalike.systems.bundled.solu import NanoDecoderConfig, NanoDecoderForCausalLM

DOCUMENTS = 12
SIZE = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "max_position_embeddings": 64}


def decoder(seed: int, layers: int = 2) -> Any:
    torch.manual_seed(seed)
    return NanoDecoderForCausalLM(NanoDecoderConfig(num_hidden_layers=layers, **SIZE)).eval()


def result(bottom: str = "GeLU", top: str = "SoLU", *, seed: int = 0) -> StitchResult:
    """Two pairs of layers, the top with itself at one, and a map that learnt nothing."""
    rng = np.random.default_rng(seed)
    stitches = (Stitch("pair", 1, 1), Stitch("pair", 2, 2), Stitch("self", 2, 2), Stitch("untrained", 2, 2))
    counts = np.arange(10.0, 10 + DOCUMENTS)
    losses = counts * (3 + rng.random((len(stitches), DOCUMENTS)))
    curves = [
        {**one._asdict(), "step": step, "split": split, "loss": 4.0 - step}
        for one in stitches
        for step, split in product((0, 1), ("train", "validation"))
    ]
    return StitchResult(
        bottom=bottom,
        top=top,
        task="causal",
        kind="affine",
        fit="task",
        stitches=stitches,
        losses=losses,
        correct=np.zeros_like(losses),
        own_losses=counts * 2.5,
        own_correct=np.zeros(DOCUMENTS),
        counts=counts,
        unit="documents",
        explained=np.full(len(stitches), np.nan),
        checks=pd.DataFrame(),
        curves=pd.DataFrame(curves),
        training=pd.DataFrame(),
    )


class TestRows:
    def test_penalties_are_losses_above_the_tops_own_without_the_untrained(self) -> None:
        found = result()
        rows = penalty_rows(found, "3 layers")
        assert list(zip(rows["bottom"], rows["top"], rows["layer"], strict=True)) == [
            ("GeLU", "SoLU", 1), ("GeLU", "SoLU", 2), ("SoLU", "SoLU", 2),
        ]  # fmt: skip
        expected = found.losses[:3].sum(axis=1) / found.counts.sum() - 2.5
        np.testing.assert_allclose(rows["penalty"], expected)
        assert ((rows["low"] < rows["penalty"]) & (rows["penalty"] < rows["high"])).all()
        assert set(rows["size"]) == {"3 layers"}

    def test_curves_are_named_by_who_is_below_whom(self) -> None:
        rows = curve_rows(result(), "3 layers")
        assert dict(rows.groupby("series").size()) == {"GeLU → SoLU": 8, "SoLU → SoLU": 4}
        assert set(rows["layer"]) == {1, 2}
        assert (rows["loss"] == 4.0 - rows["step"]).all()

    def test_losses_are_means_over_pairs_of_layers(self) -> None:
        there, back = result(seed=0), result("SoLU", "GeLU", seed=1)
        made = Losses.of([there, back], resamples=50, seed=0)
        np.testing.assert_allclose(made.loss("GeLU", "SoLU"), (there.losses[0] + there.losses[1]) / 2)
        np.testing.assert_array_equal(made.loss("SoLU", "SoLU"), there.losses[2])
        assert set(made.stitched) == set(product(("GeLU", "SoLU"), repeat=2))
        gap = sum(made.loss("GeLU", "SoLU") - made.loss("SoLU", "GeLU")) / sum(made.counts)
        assert made.effect(made.asymmetry("GeLU", "SoLU")).value == pytest.approx(gap)

    def test_results_on_other_text_are_refused(self) -> None:
        other = replace(result("SoLU", "GeLU"), counts=np.full(DOCUMENTS, 9.0))
        with pytest.raises(InvalidInput, match="SoLU → GeLU was judged on other text than the rest"):
            Losses.of([result(), other], resamples=50, seed=0)


class TestWorkshop:
    @pytest.fixture
    def text(self, tmp_path: Path) -> Path:
        path = tmp_path / "text.txt"
        path.write_text("\n\n".join(f"The king of place {k} went home to sleep." for k in range(40)))
        return path

    @pytest.fixture
    def workshop(self, tmp_path: Path, text: Path) -> Workshop:
        settings = replace(
            SCALES["smoke"], text=str(text), max_tokens=600, length=16, cka_batches=6, tokenizer="nano-gpt2"
        )
        opened = {name: decoder(k) for k, name in enumerate(("a", "b", "a1", "b1"))} | {"deep": decoder(9, 3)}
        return Workshop(settings, Steps(tmp_path / "run"), opened)

    def test_a_stitch_is_made_once_and_again_when_the_text_is_another(
        self, workshop: Workshop, text: Path
    ) -> None:
        how: dict[str, Any] = {"by_task": False, "layers": [(1, 1)], "floor": False}
        first = workshop.stitch("a", "b", ("A", "B"), **how)
        assert (first.bottom, first.top, first.kind) == ("A", "B", "affine")
        kept = sorted(path.name for path in (workshop.steps.out / "steps").iterdir())
        again = workshop.stitch("a", "b", ("A", "B"), **how)
        np.testing.assert_array_equal(first.losses, again.losses)
        assert sorted(path.name for path in (workshop.steps.out / "steps").iterdir()) == kept
        text.write_text(text.read_text().replace("king", "lord"))  # of the same length, at the same place
        other = workshop.stitch("a", "b", ("A", "B"), **how)
        assert not np.array_equal(first.losses, other.losses)

    def test_both_ways_at_equal_layers(self, workshop: Workshop) -> None:
        there, back = _both_ways(workshop, ("a", "b"), ("A", "B"), by_task=False, floor=False)
        assert [(one.bottom, one.top) for one in (there, back)] == [("A", "B"), ("B", "A")]
        pairs = [(one.layer_bottom, one.layer_top) for one in there.stitches if one.role == "pair"]
        assert pairs == same_layers(2) == [(1, 1), (2, 2)]
        with pytest.raises(InvalidInput, match="a has 2, deep has 3 blocks: choose two of one depth"):
            _both_ways(workshop, ("a", "deep"), ("A", "B"))

    def test_seeds_are_crossed_with_activations(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every pair whose seeds differ, and both second seeds, each way; never two of the first seed."""
        asked: list[tuple[str, str]] = []

        def stitch(
            self: Workshop, bottom: str, top: str, labels: tuple[str, str], **how: Any
        ) -> StitchResult:
            asked.append((bottom, top))
            return result(*labels)

        monkeypatch.setattr(Workshop, "stitch", stitch)
        made = _seeds(workshop, ("a", "b"), ("a1", "b1"))
        expected = {(x, y) for x in ("a", "b") for y in ("a1", "b1")} | {("a1", "b1")}
        assert set(asked) == expected | {(y, x) for x, y in expected}
        assert len(asked) == len(set(asked))
        names = {"a": "GeLU", "b": "SoLU", "a1": "GeLU seed 1", "b1": "SoLU seed 1"}
        assert [(one.bottom, one.top) for one in made] == [(names[x], names[y]) for x, y in asked]

    def test_cka_is_of_all_blocks_of_both(self, workshop: Workshop, text: Path) -> None:
        found = workshop.cka({"A": "a", "B": "b"})
        assert found["depths"].tolist() == [2, 2]
        models = {"A": workshop.model("a"), "B": workshop.model("b")}
        expected = stream_cka(
            models, text, split="paragraphs", length=16, layers=[1, 2], max_batches=6, average="ratio",
            tokenizer=workshop.tokenizer("a"), device="cpu", seed=0,
        )  # fmt: skip
        np.testing.assert_allclose(found["values"], expected.values, rtol=1e-6)
        np.testing.assert_allclose(np.diag(found["values"]), 1.0, atol=1e-5)


def losses(own: dict[str, float], table: dict[tuple[str, str], float]) -> Losses:
    """The same in all documents: ranges are points."""
    counts = np.full(12, 10.0)
    made = Losses(counts, "documents", resamples=50)
    made.own.update({name: value * counts for name, value in own.items()})
    made.stitched.update({pair: value * counts for pair, value in table.items()})
    return made


OWN = {"GeLU": 3.0, "SoLU": 3.1, "GeLU seed 1": 3.2, "SoLU seed 1": 3.3}


class TestVerdicts:
    def test_pairs_of_seeds_were_stitched_both_ways(self) -> None:
        table = {("GeLU", "SoLU"): 4.0, ("SoLU", "GeLU"): 4.0, ("GeLU seed 1", "SoLU"): 4.0}
        assert verdicts.pairs_of_seeds(losses(OWN, table)) == [("GeLU", "SoLU")]

    def test_a_second_seed_is_compared_by_penalties_over_all_crossed_pairs(self) -> None:
        rng = np.random.default_rng(0)
        table = {(a, b): 3 + float(rng.random()) for a, b in product(OWN, repeat=2) if a != b}
        found = verdicts.other_seed(losses(OWN, table))
        groups: dict[bool, list[float]] = {True: [], False: []}
        for (a, b), loss in table.items():
            if ("seed" in a) != ("seed" in b):
                groups[a[:4] == b[:4]].append(loss - OWN[b])
        assert [len(groups[same]) for same in (True, False)] == [4, 4]
        assert found.effects[0].value == pytest.approx(np.mean(groups[False]) - np.mean(groups[True]))
        assert found.numbers["another seed"] == pytest.approx(np.mean(groups[True]))

    def test_one_size_that_does_not_show_it_refutes_every_size(self) -> None:
        small, large = (
            {
                ("SoLU", "GeLU"): 4.0 + gap,
                ("GeLU", "SoLU"): 4.0,
                ("GeLU", "GeLU"): 3.05,
                ("SoLU", "SoLU"): 3.12,
            }
            for gap in (0.3, 0.0)
        )
        sizes = {"3 layers": losses(OWN, small), "4 layers": losses(OWN, large)}
        both, one = verdicts.asymmetric(sizes), verdicts.asymmetric({"3 layers": sizes["3 layers"]})
        assert (one.verdict, both.verdict) == ("agrees", "differs")
        assert both.numbers["own loss of SoLU less that of GeLU, 4 layers, SoLU with GeLU"] == pytest.approx(
            0.1
        )
        assert both.numbers["asymmetry of penalties, 3 layers, SoLU with GeLU"] == pytest.approx(0.4)
        itself = verdicts.self_stitching(sizes)  # 0.05 less 0.02
        assert [effect.value for effect in itself.effects] == pytest.approx([0.03, 0.03])
        above = {effect.about: effect.value for effect in verdicts.cross_above_self(sizes).effects}
        assert above["3 layers, SoLU → GeLU"] == pytest.approx(1.3 - 0.05)
        assert above["4 layers, GeLU → SoLU"] == pytest.approx(0.9 - 0.05)

    def test_what_the_models_lack_in_width_is_said(self) -> None:
        made = losses({"narrow": 3.5, "wide": 3.0}, {("narrow", "wide"): 4.0, ("wide", "narrow"): 4.2})
        found = verdicts.capacity(made)
        assert (found.verdict, found.effects[0].value) == ("differs", pytest.approx(-0.2))
        assert found.numbers == {"own loss of the narrow less that of the wide": pytest.approx(0.5)}

    def test_what_is_missing_is_named_or_said_to_be_of_no_scale(self) -> None:
        assert "it needs x, y." in verdicts.untested("capacity", ("x", "y")).found
        assert "it needs models that this scale has not." in verdicts.untested("capacity", ()).found

    @pytest.mark.parametrize(
        ("losses", "share"),
        [
            ([4.0, 3.0, 3.0, 3.0, 3.0], 0.0),
            ([4.0, 4.0, 4.0, 4.0, 3.0], 1.0),
            ([4.0, 3.5, 3.2, 3.1, 3.0], 0.1),
            ([4.0, 3.0, 3.5, 3.6, 3.7], 0.0),  # what is lost again was gained before
            ([4.0, 4.0, 4.0, 4.0, 3.9995], 0.0),  # nothing to level off
            ([4.0], 0.0),
        ],
    )
    def test_the_share_of_the_gain_that_comes_late(self, losses: list[float], share: float) -> None:
        frame = pd.DataFrame({"step": 10 * np.arange(len(losses)), "loss": losses})
        curves = pd.concat(
            frame.assign(size="3 layers", series="a", layer=layer, split=split)
            for layer in range(6)
            for split in ("validation", "train")
        )
        shuffled = curves.sample(frac=1, random_state=0)
        shuffled.loc[shuffled["split"] == "train", "loss"] = 9.0  # the text of the fit is not looked at
        found = verdicts.levels_off(shuffled)
        assert found.effects[0].value == pytest.approx(share)
        assert found.effects[0].over == "6 maps"
        assert found.verdict == ("agrees" if share <= 0.1 else "differs")


class TestFigures:
    def penalties(self) -> pd.DataFrame:
        rows = [
            {"size": size, "bottom": a, "top": b, "layer": layer, "penalty": k, "low": 0.0, "high": 9.0}
            for k, (size, a, b, layer) in enumerate(product(("3 layers", "4 layers"), "GS", "GS", (1, 2)))
        ]
        return pd.DataFrame(rows)

    def tables(self, chart: Any) -> list[dict[str, Any]]:
        return [row for rows in chart.to_dict()["datasets"].values() for row in rows]

    def test_lines_have_every_penalty_once_in_a_panel_per_size(self) -> None:
        given = self.penalties()
        twice = pd.concat([given, given[given["bottom"] == given["top"]]])  # both results have a floor
        chart = figures.lines(twice, quiet=["G → G", "S → S", "narrow → narrow"])
        assert len(chart.to_dict()["hconcat"]) == 2
        drawn = [row for row in self.tables(chart) if "penalty" in row]
        assert sorted(row["penalty"] for row in drawn) == sorted(given["penalty"])
        assert {row["series"] for row in drawn} == {"G → G", "G → S", "S → G", "S → S"}
        assert "hconcat" not in figures.lines(given[given["size"] == "3 layers"]).to_dict()

    def test_curves_are_of_one_layer(self) -> None:
        rows = pd.concat([curve_rows(result(), "3 layers"), curve_rows(result(seed=1), "4 layers")])
        chart = figures.curves(rows, layer=1).to_dict()
        assert [panel["title"] for panel in chart["hconcat"]] == ["3 layers, layer 1", "4 layers, layer 1"]
        assert {row["layer"] for rows in chart["datasets"].values() for row in rows if "layer" in row} == {1}

    def test_a_matrix_names_its_cells_by_model_and_layer(self) -> None:
        values = np.arange(16.0).reshape(4, 4) / 16
        drawn = self.tables(figures.cka_matrix({"values": values}, ("GeLU", "SoLU")))
        cells = {(row["a"], row["b"]): row["value"] for row in drawn if "a" in row and "b" in row}
        assert len(cells) == 16
        assert cells["GeLU:2", "SoLU:1"] == values[1, 2]
        assert cells["SoLU:2", "GeLU:1"] == values[3, 0]


def test_notes_and_figures_leave_out_what_was_not_stitched() -> None:
    made = Losses.of([result(), result("SoLU", "GeLU", seed=1)], resamples=50, seed=0)
    rows = pd.concat([penalty_rows(result(), "3 layers"), penalty_rows(result("SoLU", "GeLU"), "3 layers")])
    measured = Measured(
        task={"3 layers": made},
        squares={"3 layers": made},
        penalties=rows,
        squares_penalties=rows,
        curves=curve_rows(result(), "3 layers"),
        cka={"3 layers": {"values": np.eye(4)}},
        missing={"4 layers": ("x", "y"), "second_seeds": ()},
    )
    found = judge(measured, SCALES["nano"])
    assert [figure.name for figure in found.figures] == [
        "figure-1",
        "figure-4",
        "figure-6",
        "squares",
        "effects",
    ]
    assert found.notes[1:] == ("Not here, and so left out (4 layers): x, y.",)
    (table,) = found.tables
    assert len(table.frame) == len(rows)
    by_squares = found.statements[-1]
    assert (by_squares.verdict, by_squares.effects[0].value) == ("agrees", pytest.approx(0.0))


class TestLens:
    def test_a_model_is_looked_for_in_the_folder_alone(self, tmp_path: Path) -> None:
        (tmp_path / "owner" / "model").mkdir(parents=True)
        (tmp_path / "owner" / "model" / "config.json").write_text("{}")
        assert fetch("owner/model", tmp_path) == tmp_path / "owner" / "model"
        with pytest.raises(ModelError, match=r"owner/other is not in .*config\.json"):
            fetch("owner/other", tmp_path)

    def test_heads_become_rows_one_after_the_other(self) -> None:
        """A state x gives q of head h as x @ W_Q[h], which must stand in the rows of that head."""
        heads, width, units = 2, 6, 3
        rng = np.random.default_rng(0)

        def made(*shape: int) -> torch.Tensor:
            return torch.from_numpy(rng.normal(size=shape)).float()

        state = {
            "embed.W_E": made(5, width), "pos_embed.W_pos": made(4, width), "unembed.W_U": made(width, 5),
            "ln_final.w": made(width), "ln_final.b": made(width),
            **{f"blocks.0.{norm}.{part}": made(width) for norm in ("ln1", "ln2") for part in "wb"},
            **{f"blocks.0.attn.W_{which}": made(heads, width, units) for which in "QKV"},
            **{f"blocks.0.attn.b_{which}": made(heads, units) for which in "QKV"},
            "blocks.0.attn.W_O": made(heads, units, width), "blocks.0.attn.b_O": made(width),
            "blocks.0.mlp.W_in": made(width, 8), "blocks.0.mlp.b_in": made(8),
            "blocks.0.mlp.W_out": made(8, width), "blocks.0.mlp.b_out": made(width),
        }  # fmt: skip
        found = convert(state, {"n_layers": 1})
        x = made(width)
        together = found["model.layers.0.attention.qkv.weight"] @ x
        for k, which in enumerate("QKV"):
            for head in range(heads):
                own = together[k * width + head * units : k * width + (head + 1) * units]
                torch.testing.assert_close(own, x @ state[f"blocks.0.attn.W_{which}"][head])
        z = made(heads, units)
        out = found["model.layers.0.attention.out.weight"] @ z.flatten()
        torch.testing.assert_close(out, sum(z[h] @ state["blocks.0.attn.W_O"][h] for h in range(heads)))
        assert torch.equal(found["lm_head.bias"], torch.zeros(5))  # there was none
        assert not any("mlp.norm" in name for name in found)
