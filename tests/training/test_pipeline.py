"""`python -m training` from a folder of text to a folder that loads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from thinkalike.errors import StoreError
from thinkalike.systems.bundled.bundle import load_folder
from thinkalike.systems.bundled.cards import read_card
from training import pipeline
from training.__main__ import main
from training.export import loss_curve, notes
from training.figures import held_out_ids, load_sample, measure
from training.plans import PLANS
from training.prepare import ACCOUNT, HELD_OUT, load_tokenizer, load_tokens, prepare
from training.tokens import for_masked_models


@pytest.fixture(scope="module")
def run_folder(text_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty steps of the smallest real model, by the command line, with two minimal pairs of each kind."""
    out = tmp_path_factory.mktemp("training")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "PAIRS", 2)
        patch.setattr(pipeline.grammar_pairs, "__defaults__", (2,))
        assert main(["nano-pythia-64", "--text", str(text_folder), "--out", str(out), "--steps", "20"]) == 0
    return out


def test_twenty_steps_give_a_folder_that_transformers_loads(run_folder: Path) -> None:
    folder = run_folder / "models" / "nano-pythia-64"
    found = {path.name for path in folder.iterdir()}
    assert found >= {"config.json", "model.safetensors", "tokenizer.json", "card.json", "README.md"}
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float16"
    model, tokenizer = load_folder(folder)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert model(**tokenizer("the king saw Mary", return_tensors="pt")).logits.shape[-1] == 4096
    size = (folder / "model.safetensors").stat().st_size
    assert size < 2.1 * sum(p.numel() for p in model.parameters())  # tied weights are stored once
    assert not list(run_folder.rglob("*.part"))


def test_the_card_says_what_was_measured(run_folder: Path) -> None:
    folder = run_folder / "models" / "nano-pythia-64"
    card = read_card(folder)
    sample = load_sample(run_folder / "corpus" / pipeline.BASELINES)
    figures = measure(*load_folder(folder), sample, {})
    assert card.perplexity == pytest.approx(figures.perplexity, rel=1e-5)
    assert card.steps == 20
    assert card.losses[-1][0] == 20
    tokens = load_tokens(run_folder / "corpus")
    assert card.tokens_seen / (20 * 4096) == pytest.approx(1, abs=0.05)
    assert card.corpus["training_tokens"] == len(tokens.running)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"| this model | {card.perplexity:.1f} |" in readme
    assert f"{card.tokens_seen:,} tokens in 20 steps" in readme


def test_the_same_command_again_changes_nothing(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = (run_folder / "models" / "nano-pythia-64" / "model.safetensors").read_bytes()
    monkeypatch.setattr(pipeline.grammar_pairs, "__defaults__", (1,))
    assert main(["nano-pythia-64", "--out", str(run_folder), "--steps", "20"]) == 0
    assert (run_folder / "models" / "nano-pythia-64" / "model.safetensors").read_bytes() == weights


def test_preparing_twice_gives_the_same_bytes(text_folder: Path, corpus_folder: Path, tmp_path: Path) -> None:
    prepare(text_folder, tmp_path)
    for path in sorted(corpus_folder.rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / path.relative_to(corpus_folder)).read_bytes(), path.name


def test_held_out_documents_are_not_in_the_training_tokens(corpus_folder: Path) -> None:
    account = json.loads((corpus_folder / ACCOUNT).read_text())
    assert {name.partition("/")[0] for name in account["held_out_documents"]} == {"tales", "letters"}
    tokenizer = load_tokenizer(corpus_folder)
    held = held_out_ids(tokenizer, corpus_folder / HELD_OUT)
    training = load_tokens(corpus_folder).running
    numbers = [word for word in (corpus_folder / HELD_OUT).read_text().split() if word[:-1].isdigit()]
    assert numbers
    decoded = tokenizer.decode(training)
    assert not any(f" {number} " in decoded for number in numbers)
    paragraphs = [line for line in (corpus_folder / HELD_OUT).read_text().split("\n") if line]
    assert tokenizer.decode(held).count("<eos>") == len(paragraphs)


def test_one_vocabulary_two_ways_of_framing(corpus_folder: Path) -> None:
    plain = load_tokenizer(corpus_folder)
    framed = for_masked_models(plain)
    assert len(plain) <= 4096
    assert plain.get_vocab() == framed.get_vocab()
    ids = plain("the king")["input_ids"]
    assert framed("the king")["input_ids"] == [1, *ids, 2]
    assert plain("king")["input_ids"] == plain("the king")["input_ids"][-len(plain("king")["input_ids"]) :]


def test_the_loss_curve_is_means_between_its_points() -> None:
    curve = loss_curve([float(x) for x in range(300)])
    assert curve[0] == [10, 4.5]
    assert curve[-1] == [300, 294.5]
    assert loss_curve([2.0, 4.0]) == [[1, 2.0], [2, 4.0]]


def test_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["names"]) == 0
    assert capsys.readouterr().out.split() == list(PLANS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nano-gtp2"], "There is no plan for a model 'nano-gtp2'. Did you mean 'nano-gpt2'?"),
        (["nano-gpt2", "--out", "{tmp}"], "is not there yet: give --text FOLDER"),
        (["collect"], "collect needs --packages FOLDER (to read) and --text FOLDER (to write)."),
        (["evaluate", "nano-gtp2"], "There is no bundled model 'nano-gtp2'."),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([argument.format(tmp=tmp_path) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_folder_that_is_no_corpus_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a prepared corpus"):
        load_tokens(tmp_path)


def test_baselines_are_kept_in_half_precision_close_enough(run_folder: Path) -> None:
    sample = load_sample(run_folder / "corpus" / pipeline.BASELINES)
    assert len(sample.ids) == len(sample.unigram) + 1 == len(sample.kneser_ney) + 1
    assert sample.part(10).kneser_ney.tolist() == sample.kneser_ney[:9].tolist()
    assert np.isfinite(sample.kneser_ney).all()


def test_a_card_says_where_the_model_is_no_better_than_chance(run_folder: Path) -> None:
    card = read_card(run_folder / "models" / "nano-pythia-64")
    pairs = {
        kind: {"accuracy": 0.6, "low": low, "high": 0.7, "n": 200} for kind, low in (("a", 0.5), ("b", 0.53))
    }
    found = notes(replace(card, minimal_pairs=pairs, perplexity=1e6), PLANS["nano-pythia-64"])
    assert "On minimal pairs of a it is not above chance." in found
    assert "Its perplexity is not below that of the 3-gram baseline." in found
