"""salle2024 from end to end: on the bundled models, and the paper's names on tiny random ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from thinkalike.errors import InvalidInput
from thinkalike.recipes import Reproduction, get_recipe, reproduce
from thinkalike.recipes.salle2024 import SCALES
from thinkalike.recipes.salle2024.beyond import silence_positions, treebank_stimuli
from thinkalike.stimuli import Stimuli

PAPER_FIGURES = {"Figure 2", "Figure 3", "Figure 4", "Figure S5"}


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    return reproduce("salle2024", "smoke", tmp_path_factory.mktemp("smoke") / "run")


def test_smoke_shows_every_figure_and_tests_every_statement(smoke: Reproduction) -> None:
    findings = smoke.findings
    assert {f.of_paper for f in findings.figures} == {*PAPER_FIGURES, ""}
    for figure in findings.figures:
        figure.chart.to_dict()  # valid Vega-Lite
    names = {f.name for f in findings.figures}
    assert all(s.figure in names for s in findings.statements if s.figure)
    own = [s for s in findings.statements if not s.beyond]
    assert len(own) == 11
    assert all(s.verdict != "cannot be tested" for s in own)
    assert len(findings.statements) - len(own) == 6


def test_smoke_is_kept(smoke: Reproduction, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command again computes nothing, and says the same."""
    from thinkalike.activations import extraction

    monkeypatch.setattr(extraction, "_extract", lambda *a, **k: pytest.fail("extracted again"))
    again = smoke.recipe.run(SCALES["smoke"], smoke.page.parent)
    assert again.statements == smoke.findings.statements


def test_paper_scale_on_tiny_models_of_the_same_names(
    tmp_path: Path,
    tiny_models: dict[str, Path],
    save_tiny: Callable[..., Path],
    tiny_neox: Callable[..., Any],
) -> None:
    folder = tmp_path / "models"
    names = {
        "tiny-bert": "bert-base-uncased",
        "tiny-gpt2": "gpt2",
        "tiny-mamba": "state-spaces/mamba-130m-hf",
    }
    for tiny, name in names.items():
        shutil.copytree(tiny_models[tiny], folder / name)
    for seed, revision in enumerate(("@step512", "@step8000", "")):
        save_tiny(f"EleutherAI/pythia-160m-deduped{revision}", tiny_neox(16, 2, 2), seed=seed)
    small = {"sentences": 30, "preset_sentences": 20, "interaction_layers": 1, "treebank_sentences": 25}
    bank = write_treebank(tmp_path / "bank.conllu")
    settings = replace(SCALES["paper"], **small, treebank=str(bank), models_folder=str(folder))
    found = get_recipe("salle2024").run(settings, tmp_path / "run")
    beyond = [s for s in found.statements if s.beyond]
    assert len(beyond) == 7
    assert all(s.verdict != "cannot be tested" for s in beyond)
    assert "state-spaces/mamba-130m-hf" in found.statements[1].found


def write_treebank(path: Path) -> Path:
    """Sentences of the grammar as if they were a treebank."""
    stimuli = Stimuli.from_grammar(40, 5, grammar="salle2024")
    lines = []
    for sentence, words in stimuli.items.groupby("sentence", sort=False):
        lines += [f"# sent_id = {sentence}", f"# text = {stimuli.sentences[sentence]}"]
        for k, (item, word) in enumerate(zip(words.index, words["word"], strict=True), start=1):
            pos = str(stimuli.features.loc[item, "part_of_speech"]).upper()
            number = stimuli.features.loc[item, "number"]
            feats = f"Number={str(number)[:4].title()}" if isinstance(number, str) else "_"
            lines.append(f"{k}\t{word}\t_\t{pos}\t_\t{feats}\t{k - 1}\tdep\t_\t_")
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_of_a_treebank_the_first_sentences_are_shown(tmp_path: Path) -> None:
    stimuli = treebank_stimuli(write_treebank(tmp_path / "bank.conllu"), 7)
    assert len(stimuli.sentences) == 7
    assert "distance_to_head" not in stimuli.kinds  # the same everywhere
    assert "word_position" in stimuli.kinds


def test_positions_are_silenced(tiny_models: dict[str, Path]) -> None:
    from transformers import AutoModel

    model = AutoModel.from_pretrained(tiny_models["tiny-gpt2"]).eval()
    tokens = torch.tensor([[5, 5, 5, 5]])

    def spread() -> float:
        """How much the same token differs from place to place, before the first block."""
        with torch.no_grad():
            first = model(tokens, output_hidden_states=True).hidden_states[0][0]
        return float(np.ptp(first.numpy(), axis=0).max())

    assert spread() > 0
    silence_positions(model)
    assert spread() == 0


def test_a_model_without_positions_cannot_lose_them(tiny_models: dict[str, Path]) -> None:
    from transformers import AutoModel

    with pytest.raises(InvalidInput, match="MambaModel has no position embeddings or rotations"):
        silence_positions(AutoModel.from_pretrained(tiny_models["tiny-mamba"]))


def test_rotary_positions_are_silenced() -> None:
    import transformers as tf

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    marks = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "pad_token_id"), 0)
    config = tf.ModernBertConfig(vocab_size=20, initializer_range=0.5, **marks, **sizes)
    model = tf.ModernBertModel(config).eval()

    def last(*tokens: int) -> torch.Tensor:
        with torch.no_grad():
            return model(torch.tensor([tokens])).last_hidden_state[0, -1]

    # The order of what is attended to makes a difference only as long as there are positions.
    assert (last(5, 6, 7, 8) - last(7, 5, 6, 8)).abs().max() > 1e-4
    silence_positions(model)
    assert (last(5, 6, 7, 8) - last(7, 5, 6, 8)).abs().max() < 1e-5
