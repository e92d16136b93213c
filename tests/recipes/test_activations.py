"""GeLU against SoLU: the statements on planted tables, the foreign format, and the whole recipe."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.recipes import reproduce
from thinkalike.recipes.brown2023_activations import SCALES
from thinkalike.recipes.brown2023_activations.experiment import Measured, judge
from thinkalike.recipes.brown2023_activations.lens import fetch, load_lens
from thinkalike.recipes.brown2023_activations.losses import Losses
from thinkalike.recipes.brown2023_activations.rules import RULES
from thinkalike.recipes.findings import Findings
from thinkalike.recipes.places import is_there
from thinkalike.systems import bundled

SIZE = "3 layers"
TINY = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "max_position_embeddings": 64}


def losses(table: dict[tuple[str, str], float], own: dict[str, float], noise: float = 0.01) -> Losses:
    """Losses per prediction, planted, with some noise over 40 documents that all models share."""
    rng = np.random.default_rng(0)
    counts = rng.integers(20, 60, 40).astype(float)
    shared = rng.normal(size=40)

    def by_document(mean: float) -> np.ndarray:
        return counts * (mean + shared + noise * rng.normal(size=40))

    made = Losses(counts, "documents", resamples=500)
    made.stitched.update({pair: by_document(loss) for pair, loss in table.items()})
    made.own.update({name: by_document(loss) for name, loss in own.items()})
    return made


def planted(
    *, gap: float = 0.1, solu_own: float = 3.0, solu_self: float = 0.05, other: float = 0.3, late: float = 0.0
) -> Measured:
    """Stitched losses in which SoLU → GeLU is `gap` above GeLU → SoLU; penalties above own losses of 3."""
    own = {"GeLU": 3.0, "SoLU": solu_own, "GeLU seed 1": 3.0, "SoLU seed 1": solu_own}
    table = {("GeLU", "GeLU"): 3.1, ("SoLU", "SoLU"): solu_own + solu_self}
    table |= {("SoLU", "GeLU"): 3.4 + gap, ("GeLU", "SoLU"): 3.4}
    for a in ("GeLU", "SoLU"):
        for b in ("GeLU", "SoLU"):
            step = 0.2 if a == b else other
            extra = gap if (a, b) == ("SoLU", "GeLU") else 0.0
            table |= {(f"{a} seed 1", b): 3 + step + extra, (a, f"{b} seed 1"): 3 + step + extra}
    steps = np.linspace(0, 100, 9)
    falling = 3 - np.where(steps < 50, steps / 50, 1.0) - late * (steps / 100) ** 8
    curves = pd.concat(
        pd.DataFrame(
            {"size": SIZE, "series": "a", "layer": k, "step": steps, "split": "validation", "loss": falling}
        )
        for k in range(8)
    )
    rows = [
        {"size": SIZE, "bottom": a, "top": b, "layer": k, "penalty": 0.1, "low": 0.0, "high": 0.2}
        for a, b in table
        for k in (1, 2)
    ]
    frame = pd.DataFrame(rows)
    square = np.full((6, 6), 0.6) + 0.4 * np.eye(6)
    return Measured(
        task={SIZE: losses(table, own)},
        squares={SIZE: losses(table, own)},
        penalties=frame[~frame["bottom"].str.contains("seed") & ~frame["top"].str.contains("seed")],
        squares_penalties=frame,
        curves=curves,
        cka={SIZE: {"values": square, "depths": np.array([3, 3])}},
        seeds=frame,
        widths=frame,
        capacity=losses(
            {("narrow", "wide"): 3.4 + gap, ("wide", "narrow"): 3.4}, {"narrow": 3.5, "wide": 3.0}
        ),
    )


def found(measured: Measured) -> Findings:
    return judge(measured, SCALES["smoke"])


def verdicts(measured: Measured) -> dict[str, str]:
    names = {rule.claim: name for name, rule in RULES.items()}
    return {names[s.paper]: s.verdict for s in found(measured).statements}


def test_planted_losses_agree_with_every_statement() -> None:
    findings = found(planted())
    assert set(verdicts(planted())) == set(RULES)
    assert {s.verdict for s in findings.statements} == {"agrees"}
    assert {s.figure for s in findings.statements} <= {f.name for f in findings.figures}
    assert findings.statements[0].effects[0].value == pytest.approx(0.1, abs=0.01)


def test_the_own_losses_of_the_models_are_no_asymmetry() -> None:
    """SoLU's own loss is 0.06 higher: penalties are asymmetric, stitched losses are not."""
    measured = planted(gap=0.0, solu_own=3.06)
    assert verdicts(measured)["asymmetry"] == "differs"
    numbers = found(measured).statements[0].numbers
    penalties = [value for name, value in numbers.items() if name.startswith("asymmetry of penalties")]
    own = [value for name, value in numbers.items() if name.startswith("own loss of SoLU")]
    assert penalties == pytest.approx([0.06] * len(penalties), abs=0.01)
    assert own == pytest.approx([0.06] * len(own), abs=0.01)


def test_the_asymmetry_must_be_there_with_every_pair_of_seeds() -> None:
    measured = planted()
    assert len(found(measured).statements[0].effects) == 3  # both of the first seed, and each with a second
    measured.task[SIZE].stitched["SoLU seed 1", "GeLU"] -= 0.2 * measured.task[SIZE].counts
    assert verdicts(measured)["asymmetry"] == "differs"


def test_the_reverse_asymmetry_differs() -> None:
    back = verdicts(planted(gap=-0.1))
    assert {back["asymmetry"], back["capacity"]} == {"differs"}


def test_an_effect_on_the_threshold_is_undecided() -> None:
    measured = planted()
    wide = losses({("SoLU", "GeLU"): 3.41, ("GeLU", "SoLU"): 3.4}, {"GeLU": 3.0, "SoLU": 3.0}, noise=0.3)
    wide.stitched.update({("GeLU", "GeLU"): wide.own["GeLU"], ("SoLU", "SoLU"): wide.own["SoLU"]})
    assert verdicts(replace(measured, task={SIZE: wide}, seeds=pd.DataFrame()))["asymmetry"] == "undecided"


def test_baselines_that_are_not_as_the_paper_has_them_differ() -> None:
    assert verdicts(planted(solu_self=0.2))["self-stitching"] == "differs"
    measured = planted()
    measured.task[SIZE].stitched["GeLU", "GeLU"] += 0.5 * measured.task[SIZE].counts
    assert verdicts(measured)["cross above self"] == "differs"
    assert verdicts(planted(other=0.1))["other seed"] == "differs"


def test_another_activation_is_held_against_another_seed_with_another_seed() -> None:
    """Models of one seed saw the same text: what they cost each other must not matter."""
    measured = planted()
    for pair in (("SoLU", "GeLU"), ("GeLU", "SoLU")):
        measured.task[SIZE].stitched[pair] -= 0.4 * measured.task[SIZE].counts
    assert verdicts(measured)["other seed"] == "agrees"


def test_least_squares_must_show_the_same_and_not_merely_not_another() -> None:
    other = planted(gap=0.3)
    assert verdicts(replace(planted(), squares=other.task))["least squares"] == "differs"


def test_a_loss_that_still_falls_has_not_levelled_off() -> None:
    assert verdicts(planted(late=2.0))["levels off"] == "differs"


def test_models_that_are_missing_are_named() -> None:
    measured = replace(
        planted(),
        seeds=pd.DataFrame(),
        widths=pd.DataFrame(),
        capacity=None,
        missing={"second_seeds": ("nano-gelu-3l-seed1",), "narrow_and_wide": ()},
    )
    assert {verdicts(measured)[name] for name in ("capacity", "other seed")} == {"cannot be tested"}
    assert any("nano-gelu-3l-seed1" in s.found for s in found(measured).statements)
    assert any("nano-gelu-3l-seed1" in note for note in found(measured).notes)


def test_losses_are_per_prediction_and_over_documents() -> None:
    made = losses({("a", "b"): 3.5, ("b", "a"): 3.2}, {"a": 3.0, "b": 3.0}, noise=0.0)
    effect = made.effect(made.asymmetry("a", "b"), "a and b")
    assert (effect.value, effect.low, effect.high) == pytest.approx((0.3, 0.3, 0.3))
    assert effect.over == "40 documents"
    assert made.mean(made.penalty("a", "b")) == pytest.approx(0.5)


def tiny(activation: str, seed: int, layers: int = 2) -> Any:
    from thinkalike.systems.bundled.solu import NanoDecoderConfig, NanoDecoderForCausalLM

    torch.manual_seed(seed)
    config = NanoDecoderConfig(activation=activation, num_hidden_layers=layers, initializer_range=0.2, **TINY)
    return NanoDecoderForCausalLM(config).eval()


def save(model: Any, folder: Path) -> None:
    from transformers import AutoTokenizer

    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(bundled.resolve("nano-gpt2"), local_files_only=True).save_pretrained(folder)


@pytest.mark.whole_runs
def test_smoke_runs_from_end_to_end(tmp_path: Path) -> None:
    for k, activation in enumerate(("gelu", "solu")):
        save(tiny(activation, k), tmp_path / "models" / f"nano-{activation}-3l")
    few = {"max_tokens": 1000}
    done = reproduce(
        "brown2023-activations", "smoke", tmp_path / "run", models_folder=tmp_path / "models", **few
    )
    kept = sorted((tmp_path / "run" / "steps").rglob("*.safetensors"))
    written = [file.stat().st_mtime_ns for file in kept]
    again = reproduce(
        "brown2023-activations", "smoke", tmp_path / "run", models_folder=tmp_path / "models", **few
    )
    assert [s.verdict for s in again.findings.statements] == [s.verdict for s in done.findings.statements]
    assert len(kept) == 4
    assert [file.stat().st_mtime_ns for file in kept] == written
    assert {f.of_paper for f in done.findings.figures} >= {"Figure 1", "Figure 4", "Figure 6"}


@pytest.mark.whole_runs
def test_seeds_and_widths_are_stitched_where_there_are_such_models(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    names = ("gelu-a", "solu-a", "gelu-b", "solu-b")
    for k, name in enumerate(names):
        save(tiny("gelu" if "gelu" in name else "solu", k), folder / name)
    save(tiny("gelu", 7), folder / "narrow")
    few = {"max_tokens": 800, "steps": 1, "second_seeds": ["gelu-b", "solu-b"]}
    few |= {"sizes": {"2 layers": ["gelu-a", "solu-a"]}}
    few |= {"narrow_and_wide": ["narrow", "gelu-b"]}
    done = reproduce("brown2023-activations", "smoke", tmp_path / "run", models_folder=folder, **few)
    assert "cannot be tested" not in {s.verdict for s in done.findings.statements}
    assert {f.name for f in done.findings.figures} >= {"seeds", "capacity"}
    assert len(done.findings.statements[0].effects) == 4  # two activations, two seeds, crossed
    save(tiny("gelu", 7, layers=1), folder / "shallow")
    few |= {"narrow_and_wide": ["shallow", "gelu-b"]}
    with pytest.raises(InvalidInput, match="stitched at equal depth, and shallow has 1, gelu-b has 2 blocks"):
        reproduce("brown2023-activations", "smoke", tmp_path / "run", models_folder=folder, **few)


def test_without_any_pair_of_models_it_says_what_it_needs(tmp_path: Path) -> None:
    sizes = {"5 layers": ["nano-gelu-5l", "nano-solu-5l"]}
    with pytest.raises(ModelError, match="needs nano-gelu-5l, nano-solu-5l, which this installation lacks"):
        reproduce("brown2023-activations", "smoke", tmp_path / "run", sizes=sizes)
    assert is_there("nano-gpt2", None)
    assert is_there("NeelNanda/GELU_3L512W_C4_Code", None)
    assert not is_there("NeelNanda/GELU_3L512W_C4_Code", tmp_path)


def lens_weights(activation: str, seed: int) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """A random model as TransformerLens has it."""
    torch.manual_seed(seed)
    sizes = {
        "d_model": 16,
        "n_layers": 2,
        "d_mlp": 32,
        "d_head": 8,
        "n_heads": 2,
        "n_ctx": 64,
        "d_vocab": 4096,
    }
    d, m, h, e, v = (sizes[k] for k in ("d_model", "d_mlp", "n_heads", "d_head", "d_vocab"))
    shapes: dict[str, tuple[int, ...]] = {"embed.W_E": (v, d), "pos_embed.W_pos": (64, d)}
    shapes |= {"unembed.W_U": (d, v), "unembed.b_U": (v,), "ln_final.w": (d,), "ln_final.b": (d,)}
    for k in range(2):
        block = {f"attn.W_{x}": (h, d, e) for x in "QKV"} | {f"attn.b_{x}": (h, e) for x in "QKV"}
        block |= {"attn.W_O": (h, e, d), "attn.b_O": (d,), "mlp.W_in": (d, m), "mlp.b_in": (m,)}
        block |= {"mlp.W_out": (m, d), "mlp.b_out": (d,)}
        block |= {f"{ln}.{x}": (d,) for ln in ("ln1", "ln2") for x in "wb"}
        if activation == "solu_ln":
            block |= {f"mlp.ln.{x}": (m,) for x in "wb"}
        shapes |= {f"blocks.{k}.{name}": shape for name, shape in block.items()}
    return sizes | {"act_fn": activation}, {name: 0.3 * torch.randn(shape) for name, shape in shapes.items()}


def lens_logits(state: dict[str, torch.Tensor], activation: str, ids: torch.Tensor) -> torch.Tensor:
    """The same model by the definition, head by head."""

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        x = x - x.mean(-1, keepdim=True)
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * state[f"{name}.w"] + state[f"{name}.b"]

    x = state["embed.W_E"][ids] + state["pos_embed.W_pos"][: len(ids)]
    ahead = torch.ones(len(ids), len(ids)).triu(1).bool()
    for k in range(2):
        at = f"blocks.{k}"
        y = norm(x, f"{at}.ln1")
        out = state[f"{at}.attn.b_O"].clone()
        for head in range(2):
            q, key, v = (y @ state[f"{at}.attn.W_{c}"][head] + state[f"{at}.attn.b_{c}"][head] for c in "QKV")
            pattern = ((q @ key.T) / 8**0.5).masked_fill(ahead, float("-inf")).softmax(-1)
            out = out + pattern @ v @ state[f"{at}.attn.W_O"][head]
        x = x + out
        y = norm(x, f"{at}.ln2") @ state[f"{at}.mlp.W_in"] + state[f"{at}.mlp.b_in"]
        y = torch.nn.functional.gelu(y) if activation == "gelu" else norm(y * y.softmax(-1), f"{at}.mlp.ln")
        x = x + y @ state[f"{at}.mlp.W_out"] + state[f"{at}.mlp.b_out"]
    return norm(x, "ln_final") @ state["unembed.W_U"] + state["unembed.b_U"]


def save_lens(folder: Path, activation: str, seed: int, **changes: Any) -> dict[str, torch.Tensor]:
    sizes, state = lens_weights(activation, seed)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**sizes, **changes}))
    torch.save(state, folder / "model_final.pth")
    return state


@pytest.mark.parametrize("activation", ["gelu", "solu_ln"])
def test_models_of_transformerlens_give_their_own_logits(activation: str, tmp_path: Path) -> None:
    state = save_lens(tmp_path / "m", activation, 0)
    model: Any = load_lens(tmp_path / "m")
    ids = torch.tensor([5, 9, 400, 9, 17])
    with torch.no_grad():
        ours = model(input_ids=ids[None]).logits[0]
    torch.testing.assert_close(ours, lens_logits(state, activation, ids), rtol=1e-4, atol=1e-4)


def test_what_is_no_such_model_is_refused(tmp_path: Path) -> None:
    save_lens(tmp_path / "odd", "relu", 0)
    with pytest.raises(ModelError, match="has the activation relu"):
        load_lens(tmp_path / "odd")
    save_lens(tmp_path / "short", "gelu", 0, shortformer_pos=True)
    with pytest.raises(ModelError, match="has shortformer_pos"):
        load_lens(tmp_path / "short")
    save_lens(tmp_path / "mixed", "gelu", 0, act_fn="solu_ln")
    with pytest.raises(ModelError, match=r"model\.layers\.0\.mlp\.norm\.bias is in one only"):
        load_lens(tmp_path / "mixed")
    (tmp_path / "mixed" / "model_final.pth").unlink()
    with pytest.raises(ModelError, match=r"a file \*final.pth was expected"):
        load_lens(tmp_path / "mixed")
    with pytest.raises(ModelError, match="NeelNanda/none is not in"):
        fetch("NeelNanda/none", tmp_path)


def test_a_hub_that_cannot_be_reached_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def fail(name: str, **options: Any) -> str:
        raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(ModelError, match="could not be fetched from the hub"):
        fetch("NeelNanda/GELU_3L512W_C4_Code", None)


@pytest.mark.whole_runs
def test_paper_scale_on_tiny_models_of_the_same_names(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = tmp_path / "models"
    sizes = SCALES["paper"].sizes
    for k, name in enumerate(name for pair in sizes.values() for name in pair):
        save_lens(folder / name, "gelu" if "GELU" in name else "solu_ln", k)
    place = folder / SCALES["paper"].tokenizer
    AutoTokenizer.from_pretrained(bundled.resolve("nano-gpt2"), local_files_only=True).save_pretrained(place)
    (place / "config.json").write_text("{}")
    few = SCALES["smoke"].only("length", "steps", "warmup", "batch_tokens", "every")
    few |= {"max_tokens": 1000, "validation_tokens": 128, "cka_batches": 5, "resamples": 100}
    done = reproduce("brown2023-activations", "paper", tmp_path / "run", models_folder=folder, **few)
    assert {f.of_paper for f in done.findings.figures} >= {"Figure 1", "Figure 4", "Figure 5", "Figure 6"}
    assert set(done.findings.tables[0].frame["size"]) == set(sizes)
