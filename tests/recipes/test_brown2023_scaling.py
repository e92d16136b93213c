"""brown2023-scaling: its statements on planted numbers, and the whole of it from end to end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.files import read_arrays
from thinkalike.inference.blocks import find_blocks
from thinkalike.recipes import Effect, reproduce
from thinkalike.recipes.brown2023_scaling import SCALES, measures
from thinkalike.recipes.brown2023_scaling.experiment import available
from thinkalike.recipes.brown2023_scaling.figures import without_prefix
from thinkalike.recipes.brown2023_scaling.flattened import flattened_cka, whole_passages
from thinkalike.recipes.brown2023_scaling.rules import RULES
from thinkalike.recipes.brown2023_scaling.streams import Streams, head_shape
from thinkalike.recipes.steps import Steps

NAMES = ["a", "b", "c", "d"]
FADING = 1 - np.abs(np.subtract.outer(np.arange(8), np.arange(8))) / 8


def blocky(first: int, n: int = 8, *, within: float = 0.9, between: float = 0.3) -> np.ndarray:
    label = np.arange(n) >= first
    return np.where(label[:, None] == label, within, between)


def verdict(name: str, effects: dict[str, float]) -> str:
    """As if every part of the text had shown this."""
    return RULES[name].decide([Effect.fact(value, about) for about, value in effects.items()])


def family(
    *, odd: str | None = None, early: float = 0.9, later: float = 0.6
) -> dict[tuple[str, str], np.ndarray]:
    """Four members of eight blocks; `odd` is unlike the others after its first block."""
    values = {}
    for a, b in product(NAMES, NAMES):
        values[a, b] = np.full((8, 8), 0.1 if odd in (a, b) and a != b else later)
        values[a, b][0, 0] = early
    return values


def test_every_rule_is_written_down() -> None:
    assert all(rule.written and rule.claim.endswith((".", ")")) for rule in RULES.values())


def test_fades_with_distance() -> None:
    assert verdict("fades", measures.fades({("d", "d"): FADING}, "d")) == "agrees"
    assert verdict("fades", measures.fades({("d", "d"): 1 - FADING}, "d")) == "differs"
    assert measures.fades({("d", "d"): FADING[:2, :2]}, "d") == {}


def test_blocks_within() -> None:
    assert verdict("blocks within", measures.blocks_within({("d", "d"): blocky(3)}, "d")) == "agrees"
    assert verdict("blocks within", measures.blocks_within({("d", "d"): FADING}, "d")) == "differs"
    inside_out = blocky(3, within=0.3, between=0.9)
    assert measures.blocks_within({("d", "d"): inside_out}, "d") == {"d": 1.0}
    assert measures.blocks_within({("a", "a"): FADING[:3, :3]}, "a") == {}


def test_blocks_between() -> None:
    values = {("a", "a"): blocky(3), ("b", "b"): blocky(2, 6)}
    found = measures.in_blocks(values, ["a", "b"])
    assert list(found) == ["a", "b"]
    like = np.where((np.arange(8) < 3)[:, None] == (np.arange(6) < 2), 0.8, 0.2)
    assert verdict("blocks between", measures.blocks_between({("a", "b"): like}, found)) == "agrees"
    assert verdict("blocks between", measures.blocks_between({("a", "b"): 1 - like}, found)) == "differs"
    assert measures.in_blocks({("a", "a"): FADING}, ["a"]) == {}
    assert measures.blocks_between({("a", "b"): like}, {"a": found["a"]}) == {}


def test_first_blocks() -> None:
    three, two = find_blocks(blocky(3)), find_blocks(blocky(2))
    assert three is not None
    assert two is not None
    assert verdict("first blocks", measures.first_blocks({"a": three, "c": two}, "c")) == "agrees"
    assert verdict("first blocks", measures.first_blocks({"a": two, "c": three}, "c")) == "differs"
    assert measures.first_blocks({"a": three}, "c") == {}


def test_early_layers() -> None:
    assert verdict("early layers", measures.early_layers(family(), NAMES)) == "agrees"
    assert verdict("early layers", measures.early_layers(family(early=0.62), NAMES)) == "differs"
    assert verdict("early layers", measures.early_layers(family(early=0.5, later=0.8), NAMES)) == "differs"


def test_later_blocks_are_compared_at_the_same_share_of_the_depth() -> None:
    values = np.zeros((3, 5))
    values[[1, 1, 2, 2], [1, 2, 3, 4]] = 1.0  # depths ¼, ½, ¾ and 1
    _, later = measures.early_and_later({("a", "b"): values}, ["a", "b"])
    assert later == pytest.approx(0.75)  # at ¼ the shallow model is still at its first block


def test_odd_member() -> None:
    scores = measures.oddness(family(odd="c"), NAMES)
    assert max(scores, key=lambda name: scores[name]) == "c"
    assert scores["c"] == pytest.approx(0.5)
    assert verdict("odd member", measures.odd_member(family(odd="c"), NAMES, "c")) == "agrees"
    assert verdict("odd member", measures.odd_member(family(odd="c"), NAMES, "b")) == "differs"
    assert verdict("odd member", measures.odd_member(family(), NAMES, "c")) == "differs"
    assert measures.odd_member(family(), ["a", "c"], "c") == {}


def test_head_sizes() -> None:
    heads = {"a": 64, "b": 128, "c": 80, "d": 128}
    rotary = {name: value // 4 for name, value in heads.items()}
    assert measures.head_sizes(heads, rotary, "c") == {"c": 48.0}
    assert verdict("head sizes", measures.head_sizes(heads, rotary, "c")) == "agrees"
    same = measures.head_sizes({**heads, "c": 128}, {**rotary, "c": 32}, "c")
    assert verdict("head sizes", same) == "differs"
    assert verdict("head sizes", measures.head_sizes(heads, {**rotary, "a": 64}, "c")) == "differs"
    assert measures.head_sizes(heads, rotary, "e") == {}


def test_grows_with_size() -> None:
    sizes = dict(zip(NAMES, [1.0, 2.0, 4.0, 8.0], strict=True))
    rising = {(n, n): np.full((3, 3), v) for n, v in zip(NAMES, [0.2, 0.4, 0.5, 0.9], strict=True)}
    assert verdict("grows with size", measures.grows_with_size(rising, sizes)) == "agrees"
    falling = {pair: 1 - v for pair, v in rising.items()}
    assert verdict("grows with size", measures.grows_with_size(falling, sizes)) == "differs"
    assert measures.grows_with_size(rising, {"a": 1.0}) == {}


def test_grows_as_loss_falls() -> None:
    losses = {"m@step1": 7.0, "m@step2": 5.0, "m": 4.0}
    within = {name: np.full((3, 3), v) for name, v in zip(losses, (0.2, 0.4, 0.6), strict=True)}
    found = measures.grows_as_loss_falls(within, losses)
    assert found == pytest.approx({"step2 after step1": 0.2, "the end after step2": 0.2})
    assert verdict("grows as loss falls", found) == "agrees"
    assert (
        verdict(
            "grows as loss falls", measures.grows_as_loss_falls({**within, "m": within["m"] - 0.3}, losses)
        )
        == "differs"
    )


def test_first_tokens() -> None:
    assert verdict("first tokens", measures.first_tokens(family(), family(), NAMES)) == "agrees"
    assert verdict("first tokens", measures.first_tokens(family(), family(later=0.2), NAMES)) == "differs"


def test_same_order_is_spearman_over_pairs_of_different_blocks() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    one, other = ({pair: rng.random((3, 3)) for pair in product("ab", "ab")} for _ in range(2))
    i, j = np.triu_indices(3, k=1)
    flat = [np.concatenate([v["a", "a"][i, j], v["a", "b"].ravel(), v["b", "b"][i, j]]) for v in (one, other)]
    assert measures.same_order(one, other, ["a", "b"])[""] == pytest.approx(spearmanr(*flat).statistic)
    assert verdict("flattened", measures.same_order(one, one, ["a", "b"])) == "agrees"
    assert verdict("flattened", measures.same_order(one, other, ["a", "b"])) == "differs"


def test_flattened_cka_is_that_of_passages_as_vectors() -> None:
    """By the definition: HSIC₁ of the products of all positions of two passages."""
    from thinkalike.systems import bundled

    model, tokenizer = bundled.load("nano-gelu-3l")
    texts = bundled.sample_text().read_text("utf-8").split("\n")
    tokens = whole_passages(texts, tokenizer, 8, 10)
    assert tokens.ids.shape == (10, 8)
    assert tokens.mask.all()
    found = flattened_cka({"m": model}, tokens)["m", "m"]
    import torch

    with torch.no_grad():
        states = model(torch.from_numpy(tokens.ids), output_hidden_states=True).hidden_states
    first, second = (s.double().numpy().reshape(10, -1) for s in states[1:3])

    def hsic(x: np.ndarray, y: np.ndarray) -> float:
        n = len(x)
        k, m = ((z - z.mean(axis=0)) @ (z - z.mean(axis=0)).T for z in (x, y))
        np.fill_diagonal(k, 0)
        np.fill_diagonal(m, 0)
        middle = k.sum() * m.sum() / ((n - 1) * (n - 2))
        return float((np.trace(k @ m) + middle - 2 * (k.sum(0) @ m.sum(0)) / (n - 2)) / (n * (n - 3)))

    expected = hsic(first, second) / np.sqrt(hsic(first, first) * hsic(second, second))
    assert found[0, 1] == pytest.approx(expected, rel=1e-6)
    with pytest.raises(InvalidInput, match="A part of the text has 0 passages of 200 tokens"):
        whole_passages(["short"], tokenizer, 200, 10)


def test_parts_of_the_text_share_no_paragraph(tmp_path: Path) -> None:
    streams = Streams(replace(SCALES["smoke"], parts=4), Steps(tmp_path))
    parts = streams.parts
    assert len(parts) == 4
    assert sum(map(len, parts)) == len({text for part in parts for text in part})
    few = tmp_path / "few.txt"
    few.write_text("one\n\ntwo\n\nthree\n")
    with pytest.raises(InvalidInput, match=r"few\.txt has 3 paragraphs, too few for 4 parts"):
        _ = Streams(replace(SCALES["smoke"], parts=4, text=str(few)), Steps(tmp_path)).parts


def test_table_one_is_read_from_the_configuration(tiny_neox: Callable[..., Any]) -> None:
    config = tiny_neox(64, 3, 4)
    config.rope_parameters = {**config.rope_parameters, "partial_rotary_factor": 0.25}
    shape = head_shape(config)
    assert (shape["d_head"], shape["rotary_dim"], shape["layers"]) == (16, 4, 3)


def test_without_the_family_smoke_makes_one_and_nano_says_what_is_missing(tmp_path: Path) -> None:
    absent = {"family": ["nano-absent-1", "nano-absent-2"], "models_folder": None}
    with pytest.raises(ModelError, match="lacks nano-absent-1, nano-absent-2: reinstall"):
        available(replace(SCALES["nano"], **absent), tmp_path)
    settings, notes = available(replace(SCALES["smoke"], **absent), tmp_path)
    assert "random weights" in notes[0]
    assert all((tmp_path / "models" / name / "config.json").exists() for name in settings.family)
    one_missing = {"family": ["nano-bert", "nano-gpt2", "nano-absent-1"], "models_folder": None}
    settings, notes = available(replace(SCALES["nano"], **one_missing), tmp_path)
    assert settings.family == ("nano-bert", "nano-gpt2")
    assert "lacks nano-absent-1" in notes[0]


def test_loss_is_the_mean_cross_entropy(tmp_path: Path) -> None:
    import torch

    from thinkalike.systems import bundled

    settings = replace(SCALES["smoke"], loss_tokens=100)
    found = Streams(settings, Steps(tmp_path)).loss("nano-gpt2")
    model, tokenizer = bundled.load("nano-gpt2")
    ids = torch.tensor([tokenizer(bundled.sample_text().read_text()[:2000])["input_ids"][:100]])
    with torch.no_grad():
        expected = float(model(ids, labels=ids).loss)
    assert found["loss"] == pytest.approx(expected, rel=1e-4)
    assert found["parameters"] == model.num_parameters()


@pytest.mark.whole_runs
def test_smoke(tmp_path: Path) -> None:
    done = reproduce("brown2023-scaling", "smoke", tmp_path / "run")
    assert {f.of_paper for f in done.findings.figures} >= {"Figure 3", "Figure 9", "Figure 10"}
    assert done.findings.tables[0].of_paper == "Table 1"
    for figure in done.findings.figures:
        figure.chart.to_dict()  # valid Vega-Lite
    names = {f.name for f in done.findings.figures}
    assert all(s.figure in names for s in done.findings.statements if s.figure)
    again = done.recipe.run(SCALES["smoke"], tmp_path / "run")
    assert [s.found for s in again.statements] == [s.found for s in done.findings.statements]
    assert {s.verdict for s in again.statements} <= {"undecided", "cannot be tested", "agrees"}
    assert [s.verdict for s in again.statements if s.rule is RULES["head sizes"]] == ["agrees"]


@pytest.mark.whole_runs
def test_paper_scale_on_tiny_models_of_the_same_names(
    tmp_path: Path,
    tiny_models: dict[str, Path],
    save_tiny: Callable[..., Path],
    tiny_neox: Callable[..., Any],
) -> None:
    """Two members at a time, checkpoints, controls, and a state-space model."""
    sizes = {"70m": (16, 4, 2), "160m": (16, 4, 4), "1.4b": (16, 5, 2)}
    members = {f"EleutherAI/pythia-{size}-deduped": shape for size, shape in sizes.items()}
    for seed, (name, shape) in enumerate(members.items()):
        save_tiny(name, tiny_neox(*shape), seed=seed)
    save_tiny("EleutherAI/pythia-70m-deduped@step512", tiny_neox(16, 4, 2), seed=9)
    shutil.copytree(tiny_models["tiny-mamba"], tmp_path / "models" / "state-spaces" / "mamba-1.4b-hf")
    text = tmp_path / "text.txt"
    text.write_text(
        "\n\n".join(f"{k * k} is a number in this document, beside some words." for k in range(60))
    )
    done = reproduce(
        "brown2023-scaling",
        "paper",
        tmp_path / "run",
        models_folder=tmp_path / "models",
        family=list(members),
        odd="EleutherAI/pythia-160m-deduped",
        checkpoints=["EleutherAI/pythia-70m-deduped@step512", "EleutherAI/pythia-70m-deduped"],
        state_space="EleutherAI/pythia-1.4b-deduped",
        beside="state-spaces/mamba-1.4b-hf",
        text=str(text),
        with_heads=["EleutherAI/pythia-70m-deduped@step512"],
        parts=2,
        length=32,
        flattened_length=16,
        max_batches=4,
        loss_tokens=200,
    )
    untested = [s.paper for s in done.findings.statements if s.verdict == "cannot be tested"]
    assert all("block" in paper for paper in untested)  # random weights need not have any
    assert len(done.findings.tables[0].frame) == 4  # of the fourth only the configuration was looked at
    kept = list((tmp_path / "run" / "steps").glob("cka-*.npz"))
    # In each part, pairs: trained, untrained, first token dropped; four models on their own.
    assert len(kept) == 2 * (3 * 3 + 4)
    about = [read_arrays(path)[1]["about"] for path in kept]
    drawn = {one["part"]: one["seed"] for one in about if one["untrained"]}
    assert len(set(drawn.values())) == 2  # every part has random weights of its own
    assert not list((tmp_path / "run" / "steps").glob("unfinished*"))


def test_labels_leave_out_what_all_names_begin_with() -> None:
    names = ["nano-pythia-64", "nano-pythia-64@step250", "nano-pythia-160"]
    assert without_prefix(names) == (
        "nano-pythia-",
        dict(zip(names, ["64", "64@step250", "160"], strict=True)),
    )
    assert without_prefix(["a/p-70m-deduped", "a/p-1b-deduped"])[1] == {
        "a/p-70m-deduped": "70m-deduped",
        "a/p-1b-deduped": "1b-deduped",
    }
    assert without_prefix(["one", "other"]) == ("", {"one": "one", "other": "other"})
