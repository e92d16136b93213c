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
from thinkalike.recipes.salle2024.beyond import silence_positions
from thinkalike.recipes.salle2024.sets import NATURAL, NOT_FIRST, PAPER, UNTANGLED, draw_sets
from thinkalike.stimuli import Stimuli

PAPER_FIGURES = {"Figure 2", "Figure 3", "Figure 4", "Figure S5"}


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    return reproduce("salle2024", "smoke", tmp_path_factory.mktemp("smoke") / "run")


@pytest.mark.whole_runs
def test_smoke_shows_every_figure_and_tests_every_statement(smoke: Reproduction) -> None:
    findings = smoke.findings
    assert {f.of_paper for f in findings.figures} == {*PAPER_FIGURES, ""}
    for figure in findings.figures:
        figure.chart.to_dict()  # valid Vega-Lite
    names = {f.name for f in findings.figures}
    assert all(s.figure in names for s in findings.statements if s.figure)
    own = [s for s in findings.statements if not s.beyond]
    assert len(own) == 12
    # Two sets of sentences have no range, so that nothing can be decided, and nothing is.
    assert {s.verdict for s in own} == {"undecided"}
    assert all(s.rule is not None for s in findings.statements)
    untested = {s.rule.effect for s in findings.statements if s.rule and s.verdict == "cannot be tested"}
    assert len(untested) == len([s for s in findings.statements if not s.effects])


@pytest.mark.whole_runs
def test_every_kind_of_sentence_has_a_verdict_on_every_claim(smoke: Reproduction) -> None:
    (kinds,) = smoke.findings.tables
    assert list(kinds.frame) == ["claim", PAPER, NOT_FIRST, UNTANGLED]
    assert len(kinds.frame) == 12


@pytest.mark.whole_runs
def test_smoke_is_kept(smoke: Reproduction, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command again computes nothing, and says the same."""
    from thinkalike.activations import extraction

    monkeypatch.setattr(extraction, "run_extraction", lambda *a, **k: pytest.fail("extracted again"))
    again = smoke.recipe.run(SCALES["smoke"], smoke.page.parent)
    for kept, made in zip(again.statements, smoke.findings.statements, strict=True):
        assert (kept.found, kept.verdict) == (made.found, made.verdict)


@pytest.mark.whole_runs
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
    small = {"sets": 2, "sentences": 16, "preset_sentences": 12, "interaction_layers": 1}
    bank = str(write_treebank(tmp_path / "bank.conllu"))
    given = {"treebank": bank, "other_language": bank, "reads_other_language": ("gpt2",)}
    settings = replace(
        SCALES["paper"], **small, **given, treebank_sentences=20, models_folder=str(folder), analyses=False
    )
    found = get_recipe("salle2024").run(settings, tmp_path / "run")
    tested = [s for s in found.statements if s.beyond and s.effects]
    assert len(tested) == 11  # all but second seeds and models trained without positions
    assert "state-spaces/mamba-130m-hf" in found.statements[2].found
    assert any("bank.conllu" in note and str(tmp_path) not in note for note in found.notes)


def test_other_analyses_count_how_often_a_claim_comes_out_alike(tmp_path: Path) -> None:
    """On one small model with itself: each analysis of the grid that can be made gives an observation."""
    from thinkalike.recipes.salle2024.other_analyses import tried
    from thinkalike.recipes.salle2024.work import Work
    from thinkalike.recipes.steps import Steps

    settings = replace(
        SCALES["smoke"], transformers=("nano-pythia-64",), state_space=None, sentences=14, analyses=True
    )
    found = tried(Work(settings, Steps(tmp_path)))
    assert {"cosine", "no first words", "other sentences", "first token of a word"} <= set(found)
    assert not {"euclidean", "last token of a word", "expected importance"} & set(found)
    assert all(list(one.tables) == ["nano-pythia-64"] for one in found.values())


def test_the_real_scale_names_models_that_packages_carry() -> None:
    from thinkalike.recipes.places import PACKAGED

    real = SCALES["real"]
    assert set(real.transformers) <= set(PACKAGED)
    assert real.state_space is None


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


def test_sets_of_natural_sentences_share_none(tmp_path: Path) -> None:
    bank = str(write_treebank(tmp_path / "bank.conllu"))
    settings = replace(SCALES["smoke"], sets=3, treebank_sentences=8)
    sets = draw_sets(NATURAL, settings, bank)
    names = [set(one.items["sentence"]) for one in sets]
    assert [len(own) for own in names] == [8, 8, 8]
    assert len(set.union(*names)) == 24
    assert set(sets[0].kinds) <= {"word_length", "number", "part_of_speech", "word_position", "question"}
    assert "number" in sets[0].kinds
    with pytest.raises(InvalidInput, match="too few for 50 sets"):
        draw_sets(NATURAL, replace(settings, sets=50), bank)


def test_a_sentence_that_asks_is_a_question(tmp_path: Path) -> None:
    from thinkalike.recipes.salle2024.sets import with_paper_features

    lines = []
    for name, end in (("a", "?"), ("b", ".")):
        lines += [f"# sent_id = {name}", f"# text = who sings{end}"]
        lines += [f"{k}\t{w}\t_\tVERB\t_\t_\t0\tdep\t_\tSpaceAfter=No" for k, w in ((1, "who"), (2, "sings"))]
        lines = [line.replace("\tSpaceAfter=No", "\t_") if "\twho\t" in line else line for line in lines]
        lines += [f"3\t{end}\t_\tPUNCT\t_\t_\t0\tdep\t_\t_", ""]
    path = tmp_path / "two.conllu"
    path.write_text("\n".join(lines) + "\n")
    found = with_paper_features(Stimuli.from_conllu(path))
    assert list(found.features["question"]) == ["True", "True", "False", "False"]


def test_sets_differ_and_first_words_can_be_left_out() -> None:
    settings = replace(SCALES["smoke"], sets=2, sentences=10)
    one, other = draw_sets(PAPER, settings)
    assert one.digest != other.digest
    without = draw_sets(NOT_FIRST, settings)[0]
    assert set(one.items.index) - set(without.items.index) == set(one.items.groupby("sentence").head(1).index)
    assert draw_sets(UNTANGLED, settings)[0].digest != one.digest
    assert draw_sets(PAPER, replace(settings, seed=1))[0].digest not in (one.digest, other.digest)


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
