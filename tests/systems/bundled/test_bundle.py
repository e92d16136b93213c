"""Every bundled model: found by name, whole, loads offline, runs, and is as good as its card says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from thinkalike.errors import UnknownName
from thinkalike.systems import bundled
from thinkalike.systems.bundled import bundle
from thinkalike.systems.bundled.bundle import SAMPLE_BASELINES, WEIGHTS
from training.cards import render

ALL = bundled.names(revisions=True)
MEGABYTE = 1_000_000


def test_the_three_architectures_come_first() -> None:
    assert bundled.names()[:3] == ("nano-bert", "nano-gpt2", "nano-mamba")


def test_controls_come_after_the_architectures_and_before_the_families(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered = (
        *("nano-bert", "nano-gpt2", "nano-mamba"),
        *("nano-bert-seed1", "nano-gpt2-nopos", "nano-gpt2-rotary", "nano-gpt2-seed1", "nano-mamba-seed1"),
        *("nano-gelu-3l", "nano-gelu-3l-seed1", "nano-solu-4l"),
        *("nano-pythia-64", "nano-pythia-64@step250", "nano-pythia-64@step1000", "nano-pythia-128"),
        "of-another-kind",
    )
    for name in ordered:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    monkeypatch.setattr(bundle, "WEIGHTS", tmp_path)
    assert bundled.names(revisions=True) == ordered


def test_sizes_stay_within_what_the_repository_allows() -> None:
    files = [path for path in WEIGHTS.rglob("*") if path.is_file()]
    assert max(path.stat().st_size for path in files) < 8 * MEGABYTE
    assert sum(path.stat().st_size for path in files) <= 59 * MEGABYTE
    assert bundled.sample_text().stat().st_size <= 500_000


@pytest.mark.parametrize("name", ALL)
def test_it_loads_and_runs(name: str) -> None:
    model, tokenizer = bundled.load(name)
    assert len(tokenizer) == 4096
    batch = tokenizer("the king who saw the ships knows Mary", return_tensors="pt")
    with torch.inference_mode():
        output = model(**batch, output_hidden_states=True)
    assert output.logits.isfinite().all()
    card = bundled.card(name)
    assert len(output.hidden_states) == card.layers + 1
    assert output.hidden_states[0].shape[-1] == card.width
    assert sum(p.numel() for p in model.parameters()) == card.parameters
    assert not model.training
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("name", ALL)
def test_the_folder_is_complete_and_the_card_says_what_json_says(name: str) -> None:
    folder = bundled.resolve(name)
    assert folder is not None
    config = json.loads((folder / "config.json").read_text())
    assert config["dtype"] == "float16"
    assert "auto_map" not in config  # no remote code
    card = bundled.card(name)
    assert card.name == name
    assert (folder / "README.md").read_text(encoding="utf-8") == render(card)
    assert card.held_out_tokens > 10_000
    assert card.losses[-1][0] == card.steps
    if card.task == "causal" and not card.beats_kneser_ney:
        assert any("not below" in note for note in card.notes)


def test_all_share_one_vocabulary() -> None:
    vocabularies = {
        json.dumps(json.loads((WEIGHTS / name / "tokenizer.json").read_text())["model"], sort_keys=True)
        for name in ALL
    }
    assert len(vocabularies) == 1


def test_bert_frames_a_text_and_the_others_do_not() -> None:
    framed, plain = (bundled.load(name)[1]("the king")["input_ids"] for name in ("nano-bert", "nano-gpt2"))
    assert framed == [1, *plain, 2]


def test_names_that_are_not_ours_resolve_to_nothing() -> None:
    assert bundled.resolve("bert-base-uncased") is None
    assert bundled.resolve("nano-nothing") is None


def test_main_is_the_model_itself() -> None:
    assert (
        bundled.resolve("nano-bert@main")
        == bundled.resolve("nano-bert")
        == bundled.resolve("nano-bert", "main")
    )


def test_an_unknown_revision_or_name_is_an_error_with_a_way_out() -> None:
    with pytest.raises(UnknownName, match=r"no revision of nano-bert 'step7'\. Known: main"):
        bundled.resolve("nano-bert@step7")
    with pytest.raises(UnknownName, match=r"no bundled model 'nano-brt'\. Did you mean 'nano-bert'"):
        bundled.load("nano-brt")
    with pytest.raises(UnknownName, match="There is no bundled model 'nano-brt'"):
        bundled.card("nano-brt")


def test_the_sample_is_text_that_the_cards_name_as_held_out() -> None:
    text = bundled.sample_text().read_text(encoding="utf-8")
    assert len(text) > 300_000
    for card in bundled.cards():
        assert sum(card.corpus["held_out_characters"].values()) == pytest.approx(len(text), rel=0.01)
    assert SAMPLE_BASELINES.exists()


def test_cards_come_in_the_order_of_names() -> None:
    assert tuple(card.name for card in bundled.cards()) == bundled.names()
    assert tuple(card.name for card in bundled.cards(revisions=True)) == ALL


def test_weights_are_inside_the_package() -> None:
    import thinkalike

    assert WEIGHTS.is_relative_to(Path(thinkalike.__file__).parent)


def test_loading_is_quiet_and_leaves_the_bars_as_they_were(capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    try:
        for wanted in (True, False):
            (logging.enable_progress_bar if wanted else logging.disable_progress_bar)()
            bundled.load("nano-pythia-64")
            assert logging.is_progress_bar_enabled() == wanted
    finally:
        (logging.enable_progress_bar if shown else logging.disable_progress_bar)()
    assert "Loading" not in capfd.readouterr().err
