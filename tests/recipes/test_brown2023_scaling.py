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

from thinkalike.errors import ModelError
from thinkalike.inference.blocks import find_blocks
from thinkalike.recipes import reproduce
from thinkalike.recipes.brown2023_scaling import SCALES, verdicts
from thinkalike.recipes.brown2023_scaling.experiment import available
from thinkalike.recipes.brown2023_scaling.figures import without_prefix
from thinkalike.recipes.brown2023_scaling.streams import Streams, head_shape
from thinkalike.recipes.findings import Statement
from thinkalike.recipes.steps import Steps

NAMES = ["a", "b", "c", "d"]
FADING = 1 - np.abs(np.subtract.outer(np.arange(8), np.arange(8))) / 8


def blocky(first: int, n: int = 8, *, within: float = 0.9, between: float = 0.3) -> np.ndarray:
    label = np.arange(n) >= first
    return np.where(label[:, None] == label, within, between)


def check(statement: Statement, expected: str) -> None:
    assert statement.verdict == expected, statement.found
    assert statement.found.endswith(".")
    assert all(np.isfinite(v) for v in statement.numbers.values())


def family(
    *, odd: str | None = None, early: float = 0.9, later: float = 0.6
) -> dict[tuple[str, str], np.ndarray]:
    """Four members of eight blocks; `odd` is unlike the others after its first block."""
    values = {}
    for a, b in product(NAMES, NAMES):
        values[a, b] = np.full((8, 8), 0.1 if odd in (a, b) and a != b else later)
        values[a, b][0, 0] = early
    return values


def test_fades_with_distance() -> None:
    check(verdicts.fades_with_distance("d", FADING), "agrees")
    check(verdicts.fades_with_distance("d", 1 - FADING), "differs")
    check(verdicts.fades_with_distance("d", FADING[:2, :2]), "cannot be tested")


def test_blocks_within() -> None:
    found = {"a": None, "d": find_blocks(blocky(3))}
    check(verdicts.blocks_within(found), "agrees")
    assert verdicts.blocks_within(found).numbers["first block, d"] == 3
    check(verdicts.blocks_within({"d": find_blocks(FADING)}), "differs")
    check(verdicts.blocks_within({"a": None}), "cannot be tested")


def test_blocks_between() -> None:
    found = {"a": find_blocks(blocky(3)), "b": find_blocks(blocky(2, 6))}
    like = np.where((np.arange(8) < 3)[:, None] == (np.arange(6) < 2), 0.8, 0.2)
    check(verdicts.blocks_between({("a", "b"): like}, found), "agrees")
    check(verdicts.blocks_between({("a", "b"): 1 - like}, found), "differs")
    check(verdicts.blocks_between({("a", "b"): like}, {"a": found["a"], "b": None}), "cannot be tested")
    fading = find_blocks(FADING)
    check(verdicts.blocks_between({("a", "b"): like}, {"a": found["a"], "b": fading}), "cannot be tested")


def test_early_layers() -> None:
    check(verdicts.early_layers(family(), NAMES), "agrees")
    check(verdicts.early_layers(family(early=0.5, later=0.8), NAMES), "differs")
    check(verdicts.early_layers(family(early=0.3, later=0.1), NAMES), "differs")
    with_control = verdicts.early_layers(family(), NAMES, untrained=family(early=0.25))
    assert with_control.numbers["first blocks, untrained"] == pytest.approx(0.25)


def test_later_blocks_are_compared_at_the_same_share_of_the_depth() -> None:
    values = np.zeros((3, 5))
    values[[1, 1, 2, 2], [1, 2, 3, 4]] = 1.0  # depths ¼, ½, ¾ and 1
    _, later = verdicts.early_and_later({("a", "b"): values}, ["a", "b"])
    assert later == pytest.approx(0.75)  # at ¼ the shallow model is still at its first block


def test_odd_member() -> None:
    scores = verdicts.oddness(family(odd="c"), NAMES)
    assert max(scores, key=lambda name: scores[name]) == "c"
    assert scores["c"] == pytest.approx(0.5)
    check(verdicts.odd_member(scores, "c"), "agrees")
    check(verdicts.odd_member(scores, "b"), "differs")
    check(verdicts.odd_member(verdicts.oddness(family(), NAMES), "c"), "differs")
    check(verdicts.odd_member({"a": 0.1, "c": 0.3}, "c"), "cannot be tested")
    check(verdicts.odd_member({"a": 0.1, "b": 0.3, "d": 0.1}, "c"), "cannot be tested")


def test_first_blocks() -> None:
    three, two = find_blocks(blocky(3)), find_blocks(blocky(2))
    check(verdicts.first_blocks({"a": three, "c": two}, "c"), "agrees")
    check(verdicts.first_blocks({"a": two, "c": three}, "c"), "differs")
    check(verdicts.first_blocks({"a": three, "c": None}, "c"), "cannot be tested")
    check(verdicts.first_blocks({"a": three, "c": find_blocks(FADING)}, "c"), "cannot be tested")


def test_head_sizes() -> None:
    heads = {"a": 64, "b": 128, "c": 80, "d": 128}
    rotary = {name: value // 4 for name, value in heads.items()}
    check(verdicts.head_sizes(heads, rotary, "c"), "agrees")
    check(verdicts.head_sizes({**heads, "c": 128}, {**rotary, "c": 32}, "c"), "differs")
    check(verdicts.head_sizes(heads, {**rotary, "a": 64}, "c"), "differs")
    check(verdicts.head_sizes(heads, rotary, "e"), "cannot be tested")


def test_grows_with_size() -> None:
    sizes = dict(zip(NAMES, [1.0, 2.0, 4.0, 8.0], strict=True))
    rising = dict(zip(NAMES, [0.2, 0.4, 0.5, 0.9], strict=True))
    falling = dict(zip(NAMES, [0.9, 0.4, 0.5, 0.2], strict=True))
    check(verdicts.grows_with_size(rising, sizes), "agrees")
    check(verdicts.grows_with_size(falling, sizes), "differs")
    check(verdicts.grows_with_size({"a": 0.1, "b": 0.2}, sizes), "cannot be tested")


def test_grows_as_loss_falls() -> None:
    losses = {"m@step1": 7.0, "m@step2": 5.0, "m": 4.0}
    check(verdicts.grows_as_loss_falls({"m@step1": 0.2, "m@step2": 0.4, "m": 0.6}, losses), "agrees")
    check(verdicts.grows_as_loss_falls({"m@step1": 0.6, "m@step2": 0.4, "m": 0.5}, losses), "differs")
    check(verdicts.checkpoints_untested(["m@step1"]), "cannot be tested")


def test_state_space() -> None:
    check(verdicts.state_space("mamba", FADING * 0.5, "gpt2", blocky(3)), "agrees")
    check(verdicts.state_space("mamba", blocky(3), "gpt2", blocky(3)), "differs")
    check(verdicts.state_space("mamba", FADING, "gpt2", blocky(3) * 0.5), "differs")
    check(verdicts.state_space("mamba", FADING * 0.5, "gpt2", FADING), "cannot be tested")


def test_first_tokens() -> None:
    check(verdicts.first_tokens(family(), family(), NAMES), "agrees")
    check(verdicts.first_tokens(family(), family(later=0.2), NAMES), "differs")


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


def test_smoke(tmp_path: Path) -> None:
    done = reproduce("brown2023-scaling", "smoke", tmp_path / "run")
    assert {f.of_paper for f in done.findings.figures} >= {"Figure 3", "Figure 9", "Figure 10"}
    assert done.findings.tables[0].of_paper == "Table 1"
    for figure in done.findings.figures:
        figure.chart.to_dict()  # valid Vega-Lite
    names = {f.name for f in done.findings.figures}
    assert all(s.figure in names for s in done.findings.statements if s.figure)
    again = done.recipe.run(SCALES["smoke"], tmp_path / "run")
    assert again.statements == done.findings.statements


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
    text.write_text("\n\n".join(f"A document with the number {k} in it, and some words." for k in range(60)))
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
        length=32,
        max_batches=5,
        loss_tokens=200,
    )
    untested = [s.paper for s in done.findings.statements if s.verdict == "cannot be tested"]
    assert all("block" in paper for paper in untested)  # random weights need not have any
    kept = list((tmp_path / "run" / "steps").glob("cka-*.npz"))
    assert len(kept) == 3 * 3 + 4  # pairs: trained, untrained, first token dropped; four models on their own
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
