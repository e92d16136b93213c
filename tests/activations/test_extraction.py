"""From a model and stimuli to the right vectors, whatever the batch."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import thinkalike as ta
from thinkalike.errors import InvalidInput, ModelError, ThinkalikeError, UnknownName
from thinkalike.systems import passes


def extract(case, shown, **options):
    return ta.extract(case.model, shown, processor=case.processor, part=case.tiny.part, **options)


def test_padding_never_matters(text_case, mixed_texts, words_of):
    stimuli = words_of(mixed_texts)
    together = extract(text_case, stimuli, batch_size=32)
    one_by_one = extract(text_case, stimuli, batch_size=1)
    assert together.item_names == one_by_one.item_names == tuple(stimuli.items.index)
    for layer in together:
        np.testing.assert_allclose(together[layer], one_by_one[layer], atol=1e-5, rtol=0)


def test_a_batch_of_signals_equals_one_by_one(signal_case):
    rng = np.random.default_rng(0)
    if signal_case.tiny.kind == "image":
        shown = [rng.integers(0, 256, (size, 40, 3), dtype=np.uint8) for size in (32, 40, 32, 50, 64)]
    else:
        shown = [rng.normal(size=size).astype(np.float32) for size in (900, 1500, 900, 2000, 1100)]
    together = extract(signal_case, shown, batch_size=32)
    one_by_one = extract(signal_case, shown, batch_size=1)
    assert together.layers == tuple(range(signal_case.stack.n_blocks + 1))
    for layer in together:
        assert together[layer].shape[0] == 5
        np.testing.assert_allclose(together[layer], one_by_one[layer], atol=1e-5, rtol=0)


def test_vectors_are_those_of_transformers_at_the_words_last_token(text_case, words_of):
    texts = ["Which men sneezed?", "The king's daughters can't sing loudly."]
    stimuli = words_of(texts)
    found = extract(text_case, stimuli)
    tokenizer, stack = text_case.processor, text_case.stack
    decoder = text_case.tiny.part == "decoder"
    for (_, item), vector in zip(stimuli.items.iterrows(), found[1], strict=True):
        text = stimuli.sentences[item["sentence"]]
        encoded = tokenizer(text)
        last = encoded.char_to_token(item["end"] - 1)
        ids = torch.tensor([encoded["input_ids"]])
        inputs = {"input_ids": ids}
        if decoder:
            start = stack.config.decoder_start_token_id
            inputs["decoder_input_ids"] = torch.cat([torch.tensor([[start]]), ids], 1)
            last += 1
        with torch.no_grad():
            answer = stack.model(**inputs, output_hidden_states=True)
        theirs = answer["decoder_hidden_states" if decoder else "hidden_states"]
        shift = 1 if text_case.tiny.hidden_states == "shifted" else 0
        np.testing.assert_allclose(vector, theirs[1 - shift][0, last], atol=1e-5)


def test_identical_texts_run_once(one_case, words_of):
    case = one_case("gpt2")
    texts = ["The old woman sings."] * 5 + ["Mary fell."]
    sizes = []
    handle = case.stack.blocks[0].register_forward_pre_hook(lambda _, args: sizes.append(len(args[0])))
    try:
        found = extract(case, words_of(texts))
    finally:
        handle.remove()
    assert sum(sizes) == 2
    rows = found[3].reshape(-1, 32)
    np.testing.assert_array_equal(rows[:4], rows[4:8])


def test_poolings_of_a_word(one_case, make_tokenizer):
    case = one_case("bert")
    text = "the unbelievable princes"
    frame = pd.DataFrame({"sentence": ["s"], "text": [text], "word": ["unbelievable"]})
    stimuli = ta.Stimuli.from_table(frame)
    found = {pooling: extract(case, stimuli, pooling=pooling) for pooling in ("last", "first", "mean", "all")}
    offsets = case.processor(text, return_offsets_mapping=True)["offset_mapping"]
    n_tokens = len([1 for start, end in offsets if start >= 4 and end <= 16 and start < end])
    every = found["all"][2]
    assert len(every) == n_tokens > 2
    assert found["all"].item_names == tuple(f"{stimuli.items.index[0]}/{j}" for j in range(n_tokens))
    assert found["all"].stimuli_digest is None
    np.testing.assert_allclose(found["last"][2][0], every[-1], atol=1e-6)
    np.testing.assert_allclose(found["first"][2][0], every[0], atol=1e-6)
    np.testing.assert_allclose(found["mean"][2][0], every.mean(0), atol=1e-6)
    assert np.abs(found["last"][2] - found["first"][2]).max() > 1e-3


def test_poolings_of_a_whole_text(one_case):
    case = one_case("bert")
    texts = ["The old woman sings.", "Mary fell."]
    for number, text in enumerate(texts):
        encoded = case.processor(text, return_tensors="pt")
        with torch.no_grad():
            states = case.model(**encoded, output_hidden_states=True).hidden_states[3][0]
        for pooling, expected in (("cls", states[0]), ("last", states[-2]), ("mean", states[1:-1].mean(0))):
            found = extract(case, texts, pooling=pooling)
            np.testing.assert_allclose(found[3][number], expected, atol=1e-5)


def test_bos_and_drop_first(one_case, words_of):
    case = one_case("gpt2")
    stimuli = words_of(["Mary fell.", "The old woman sings."])
    plain, with_bos = extract(case, stimuli), extract(case, stimuli, bos=True)
    ids = [2, *case.processor("Mary fell.")["input_ids"]]
    with torch.no_grad():
        states = case.model(torch.tensor([ids]), output_hidden_states=True).hidden_states[1][0]
    np.testing.assert_allclose(with_bos[1][1], states[-1], atol=1e-5)
    assert np.abs(plain[1] - with_bos[1]).max() > 1e-3

    n_first = len(case.processor("Mary")["input_ids"])
    dropped = extract(case, stimuli, drop_first=n_first)
    assert dropped.item_names == tuple(stimuli.items.index[[1, 3, 4, 5]])
    np.testing.assert_array_equal(dropped[2], plain[2][[1, 3, 4, 5]])
    assert dropped.stimuli_digest == stimuli.subset([1, 3, 4, 5]).digest
    with pytest.raises(InvalidInput, match="drop_first=99 leaves no token"):
        extract(case, stimuli, drop_first=99)
    with pytest.raises(InvalidInput, match="0 or more; -1 was given"):
        extract(case, stimuli, drop_first=-1)


def test_texts_begin_as_in_training(one_case, words_of, make_tokenizer):
    """One token that both ends and begins texts stood between them; the metadata say what was done."""
    case, stimuli = one_case("gpt2"), words_of(["Mary fell.", "The old woman sings."])
    separated = copy.deepcopy(case.processor)
    separated.eos_token = separated.bos_token
    automatic = ta.extract(case.model, stimuli, processor=separated)
    np.testing.assert_array_equal(automatic[2], extract(case, stimuli, bos=True)[2])
    assert automatic.metadata["beginning"] == {
        "bos": True, "token": "[CLS]", "why": "separator", "unused": None
    }  # fmt: skip
    unknown = extract(case, stimuli)
    assert unknown.metadata["beginning"] == {"bos": None, "token": None, "why": "unknown", "unused": "[CLS]"}
    np.testing.assert_array_equal(unknown[2], extract(case, stimuli, bos=None)[2])


def test_bundled_models_read_as_they_were_trained(words_of):
    """Their windows began with the first word of a sentence (training/batches.py): nothing stands before."""
    stimuli = words_of(["the boy sleeps"])
    begins = {
        name: ta.extract(name, stimuli, cache=False).metadata["beginning"]["token"]
        for name in ("nano-gpt2", "nano-bert")
    }
    assert begins == {"nano-gpt2": None, "nano-bert": "[CLS]"}


def test_bos_taken_away(one_case, words_of):
    case = one_case("bert")
    stimuli = words_of(["Mary fell."])
    ids = case.processor("Mary fell.")["input_ids"][1:]
    with torch.no_grad():
        states = case.model(torch.tensor([ids]), output_hidden_states=True).hidden_states[2][0]
    np.testing.assert_allclose(extract(case, stimuli, bos=False)[2][-1], states[-2], atol=1e-5)
    np.testing.assert_array_equal(extract(case, stimuli, bos=True)[2], extract(case, stimuli)[2])


def test_no_bos_to_put(one_case, words_of, make_tokenizer):
    case = one_case("bert")
    bare = make_tokenizer("wordpiece", specials=False)
    with pytest.raises(InvalidInput, match="no beginning-of-sequence token"):
        ta.extract(case.model, words_of(["Mary fell."]), processor=bare, bos=True)


def test_final_norm_and_sites(one_case, words_of):
    case = one_case("gpt2")
    stimuli = words_of(["Mary fell."])
    found = extract(case, stimuli, final_norm=True)
    assert found.layers == (0, 1, 2, 3, "final_norm")
    with torch.no_grad():
        normed = case.stack.final_norm(torch.from_numpy(found[3]))
    np.testing.assert_allclose(found["final_norm"], normed, atol=1e-5)
    attention, mlp = extract(case, stimuli, site="attention"), extract(case, stimuli, site="mlp")
    assert attention.layers == (1, 2, 3)
    np.testing.assert_allclose(found[2] - found[1], attention[2] + mlp[2], atol=1e-5)
    np.testing.assert_array_equal(extract(case, stimuli, site="block")[2], mlp[2])
    with pytest.raises(ModelError, match="bert model has no final norm"):
        extract(one_case("bert"), stimuli, final_norm=True)
    with pytest.raises(InvalidInput, match="mamba model has no site 'mlp'"):
        extract(one_case("mamba"), stimuli, site="mlp")


@pytest.mark.parametrize("batch_size", [1, 32])
def test_modules_that_answer_together_are_summed(one_case, words_of, batch_size):
    case, stimuli = one_case("gpt_neox"), words_of(["The old woman sings.", "Mary fell."])
    block, attention, mlp = (
        extract(case, stimuli, site=site, batch_size=batch_size) for site in ("block", "attention", "mlp")
    )
    for layer in block:
        np.testing.assert_allclose(block[layer], attention[layer] + mlp[layer], atol=1e-6)
        assert not np.allclose(attention[layer], mlp[layer])


def test_a_norm_that_is_not_at_the_end_is_no_final_norm(one_case):
    sounds = [np.random.default_rng(0).normal(size=900).astype(np.float32)]
    with pytest.raises(ModelError, match="Layer 'final_norm' of this wav2vec2 model gave no answer"):
        extract(one_case("wav2vec2"), sounds, final_norm=True)


def test_the_two_parts_of_t5_are_two_systems(one_case, words_of):
    stimuli = words_of(["The old woman sings."])
    encoder, decoder = (extract(one_case(f"t5, {part}"), stimuli) for part in ("encoder", "decoder"))
    assert encoder.system == "T5Model:encoder"
    assert decoder.system == "T5Model:decoder"
    assert (len(encoder), len(decoder)) == (4, 3)


def test_untrained_copies(one_case, words_of):
    case, stimuli = one_case("gpt2"), words_of(["Mary fell."])
    first, again = (extract(case, stimuli, untrained=True, seed=1) for _ in range(2))
    other, trained = extract(case, stimuli, untrained=True, seed=2), extract(case, stimuli)
    np.testing.assert_array_equal(first[3], again[3])
    assert np.abs(first[3] - other[3]).max() > 1e-2
    assert np.abs(first[3] - trained[3]).max() > 1e-2
    assert first.system == "GPT2Model:untrained"


def test_a_training_model_is_read_in_evaluation_and_goes_on_training(one_case, words_of):
    case, stimuli = one_case("gpt2"), words_of(["Mary fell."])
    expected = extract(case, stimuli)
    case.model.train()
    try:
        np.testing.assert_array_equal(extract(case, stimuli)[3], expected[3])
        assert case.model.training
        assert case.model.h[0].mlp.dropout.training
    finally:
        case.model.eval()


def test_rows_keep_the_order_of_the_stimuli(one_case, mixed_texts, words_of):
    case = one_case("gpt2")
    stimuli = words_of(mixed_texts)
    expected = extract(case, stimuli)
    shuffled = np.random.default_rng(1).permutation(len(stimuli))
    found = extract(case, stimuli.subset(shuffled), batch_size=3)
    assert found.item_names == tuple(np.array(expected.item_names)[shuffled])
    np.testing.assert_allclose(found[3], expected[3][shuffled], atol=1e-5)


def test_fused_scan_equals_transformers_own(one_case, words_of, monkeypatch):
    case, stimuli = one_case("mamba"), words_of(["The old woman sings.", "Mary fell."])
    fused = extract(case, stimuli)
    monkeypatch.setenv("THINKALIKE_FUSED_SCAN", "0")
    plain = extract(case, stimuli)
    assert fused.metadata["fused_scan"]
    assert not plain.metadata["fused_scan"]
    np.testing.assert_allclose(fused[3], plain[3], atol=1e-5)


def test_half_precision_comes_back_as_float32(one_case, words_of):
    case, stimuli = one_case("llama"), words_of(["The old woman sings."])
    exact = extract(case, stimuli)
    found = extract(replace(case, dtype=torch.bfloat16), stimuli, pooling="mean")
    assert found[3].dtype == np.float32
    np.testing.assert_allclose(found[1], extract(case, stimuli, pooling="mean")[1], atol=0.1)
    assert exact.metadata["dtype"] == "float32"
    assert found.metadata["dtype"] == "bfloat16"


def test_nan_names_the_layer_and_the_item(one_case, words_of):
    case, stimuli = one_case("gpt2"), words_of(["The old woman sings.", "Mary fell."])

    def spoil(_, args, output):
        output[-1] = torch.nan  # the shorter text comes last
        return output

    handle = case.stack.blocks[1].register_forward_hook(spoil)
    try:
        with pytest.raises(
            InvalidInput, match=r"NaN or infinite values in layer 2 for item 's1.0' \(2 of 6 items\)"
        ):
            extract(case, stimuli)
    finally:
        handle.remove()


def test_memory_that_is_too_small_for_a_batch_gets_smaller_ones(one_case, mixed_texts, words_of, monkeypatch):
    case, stimuli = one_case("gpt2"), words_of(mixed_texts)
    expected = extract(case, stimuli)

    def limited(most):
        def check(_, args):
            if len(args[0]) > most:
                raise torch.OutOfMemoryError("too much")

        return case.stack.blocks[0].register_forward_pre_hook(check)

    handle = limited(5)
    try:
        np.testing.assert_allclose(extract(case, stimuli)[3], expected[3], atol=1e-5)
    finally:
        handle.remove()
    handle = limited(0)
    try:
        with pytest.raises(ModelError, match="does not hold the model and one input"):
            extract(case, stimuli)
    finally:
        handle.remove()


def test_memory_is_bounded_by_one_batch(one_case, words_of, monkeypatch):
    """Of the states that hooks see, no more than one batch is ever alive."""
    case = one_case("gpt2")
    monkeypatch.setitem(passes.TOKENS_AT_ONCE, "cpu", 32)
    rng = np.random.default_rng(0)
    vocabulary = ["the", "old", "woman", "sings", "a", "king", "and", "why"]
    stimuli = words_of([" ".join(rng.choice(vocabulary, 6)) for _ in range(100)])
    sizes = []
    handle = case.stack.blocks[0].register_forward_pre_hook(
        lambda _, args: sizes.append(args[0].shape[0] * args[0].shape[1])
    )
    try:
        extract(case, stimuli)
    finally:
        handle.remove()
    assert len(sizes) > 10
    assert max(sizes) <= 1.5 * 32 + 20


# What cannot be read


def test_states_that_are_not_laid_out_by_tokens(one_case, words_of):
    """XLNet has positions before texts; taken for granted, every word would get another's vector."""
    case, stimuli = one_case("gpt2"), words_of(["The old woman sings.", "Mary fell."])
    handle = case.stack.blocks[1].register_forward_pre_hook(
        lambda _, args: (args[0].transpose(0, 1), *args[1:])
    )
    try:
        with pytest.raises(ModelError, match="cannot be told apart by tokens"):
            extract(case, stimuli)
    finally:
        handle.remove()


def test_text_longer_than_the_context(one_case, words_of):
    text = "the " * 40 + "king"
    for name, most in (("bert", 64), ("gpt2", 64), ("roberta", 62)):
        case = one_case(name)
        long = text if name == "gpt2" else "sneezed " * 40
        said = rf"Sentence 's0' has \d+ tokens, but .* reads at most {most}: .* \(--window {most}\)"
        with pytest.raises(InvalidInput, match=said):
            extract(case, words_of([long * 2]))


def test_a_model_without_positions_reads_any_length(one_case, words_of):
    for name in ("mamba", "t5, encoder"):
        assert extract(one_case(name), words_of(["the king " * 60])).n_items == 120


def test_a_tokenizer_without_offsets(one_case, words_of):
    class Slow:
        is_fast = False

    with pytest.raises(ModelError, match=r"tokenizer of GPT2Model \(Slow\) gives no character offsets"):
        ta.extract(one_case("gpt2").model, words_of(["Mary fell."]), processor=Slow())


def test_a_word_that_maps_to_no_token_is_an_error(one_case):
    frame = pd.DataFrame({"sentence": ["s"], "text": ["Mary \u200b fell."], "word": ["\u200b"]})
    with pytest.raises(
        InvalidInput, match=r"The word '\\u200b' \(item 's.0'\) maps to no token of BertModel"
    ):
        extract(one_case("bert"), ta.Stimuli.from_table(frame))


def test_cls_is_for_whole_texts_of_models_that_have_it(one_case, words_of):
    with pytest.raises(InvalidInput, match=r"one vector per sentence, but item 's0.0' is the word 'Mary'"):
        extract(one_case("bert"), words_of(["Mary fell."]), pooling="cls")
    with pytest.raises(InvalidInput, match=r"does not begin a text with a \[CLS\]"):
        extract(one_case("gpt2"), ["Mary fell."], pooling="cls")
    with pytest.raises(InvalidInput, match=r"ConvNextModel has no \[CLS\] position"):
        extract(one_case("convnext"), [np.zeros((32, 32), np.uint8)], pooling="cls")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "lst"}, "no pooling 'lst'. Did you mean 'last'"),
        ({"site": "resid"}, "no site 'resid'. Did you mean 'residual'"),
        ({"batch_size": 0}, "batch_size is a number of texts or 'auto'; 0 was given"),
        ({"batch_size": "all"}, "'all' was given"),
        ({"dtype": "float16"}, "dtype='float16' has no meaning for a model that is already loaded"),
        ({"revision": "main"}, "revision='main' has no meaning"),
        ({"inputs": [1, 2, 3]}, "3 inputs for 2 items"),
    ],
)
def test_options_that_make_no_sense(one_case, words_of, options, message):
    with pytest.raises(InvalidInput, match=message):
        extract(one_case("gpt2"), words_of(["Mary fell."]), **options)


@pytest.mark.parametrize("shown", ["Mary fell.", [], 5])
def test_stimuli_of_no_known_form(one_case, shown):
    with pytest.raises(InvalidInput, match="a list of texts, images or sounds"):
        extract(one_case("gpt2"), shown)


def test_models_and_stimuli_that_do_not_fit(one_case, words_of):
    words, image = words_of(["Mary fell."]), [np.zeros((32, 32), np.uint8)]
    with pytest.raises(InvalidInput, match="ViTModel reads images, but the stimuli are text"):
        extract(one_case("vit"), words)
    with pytest.raises(InvalidInput, match="GPT2Model reads text, but the stimuli are images or sounds"):
        extract(one_case("gpt2"), image)
    with pytest.raises(InvalidInput, match=r"items have no text for GPT2Model to read: .*--column text=NAME"):
        extract(one_case("gpt2"), ta.Stimuli(pd.DataFrame({"size": [1.0, 2.0]})))
    with pytest.raises(InvalidInput, match="either as stimuli, or beside"):
        extract(one_case("vit"), image, inputs=image)
    with pytest.raises(InvalidInput, match="only its encoder can be read"):
        ta.extract(one_case("whisper").model, [np.zeros(100)], part="decoder", processor=object())


def test_a_loaded_model_that_does_not_say_where_from(one_case, words_of):
    with pytest.raises(InvalidInput, match="does not say where from: give its tokenizer"):
        ta.extract(one_case("gpt2").model, words_of(["Mary fell."]))


def test_errors_are_ours():
    assert issubclass(UnknownName, ThinkalikeError)
