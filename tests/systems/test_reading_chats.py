"""Chats, windows of long texts, and what a model writes itself: against plain passes without any of it."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import thinkalike as ta
from tests import tiny
from thinkalike.errors import InvalidInput, ModelError
from thinkalike.systems import bundled
from thinkalike.systems.chats import chat_frame
from thinkalike.systems.windows import Windows
from thinkalike.systems.words import Groups

TEMPLATE = (
    "{% for turn in messages %}<|{{ turn['role'] }}|>{{ turn['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + TEMPLATE
)


def chatting(template=TEMPLATE):
    tokenizer = copy.deepcopy(tiny.tokenizer("bytes"))
    tokenizer.chat_template = template
    return tokenizer


def states(model, tokenizer, text, layer):
    """The residual stream after block `layer` of a text as it stands, and where its tokens are."""
    encoded = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    ids = torch.tensor([encoded["input_ids"]])
    with torch.no_grad():
        hidden = model(input_ids=ids, output_hidden_states=True).hidden_states[layer][0]
    return hidden.numpy(), encoded["offset_mapping"]


@pytest.mark.parametrize("system_turn", [None, "The old woman sings."])
def test_items_are_words_inside_the_turn(one_case, words_of, system_turn):
    """The system says the same sentence: its words must not be taken for those of the user."""
    model, tokenizer = one_case("llama").model, chatting()
    texts = tiny.TEXTS[:3]
    acts = ta.extract(
        model, words_of(texts), processor=tokenizer, chat=True, system_turn=system_turn, system="chat"
    )
    rows = 0
    for text in texts:
        before = f"<|system|>{system_turn}<|end|><|user|>" if system_turn else "<|user|>"
        hidden, offsets = states(model, tokenizer, f"{before}{text}<|end|>", 1)
        for word in text.split():
            end = len(before) + text.index(word) + len(word)
            last = max(k for k, (start, _) in enumerate(offsets) if start < end)
            np.testing.assert_allclose(acts[1][rows], hidden[last], atol=1e-5)
            rows += 1
    assert rows == acts.n_items
    assert acts.metadata["beginning"]["why"] == "template"
    assert acts.metadata["chat"] is True


@pytest.mark.parametrize(
    ("template", "options", "message"),
    [
        (None, {"chat": True}, "has no chat template: leave out chat"),
        (NO_SYSTEM, {"chat": True, "system_turn": "Be kind."}, "no system role.*leave out the system turn"),
        (
            "{{ bos_token }}",
            {"chat": True},
            "user's turn not at all, or changed.*mend tokenizer.chat_template",
        ),
        (f"{TEMPLATE}{TEMPLATE}", {"chat": True}, "shows the user's turn twice or more"),
        ("{% for turn in messages %}", {"chat": True}, r"refuses this chat \(.*\): mend .* leave out chat"),
        (TEMPLATE, {"system_turn": "Be kind."}, "without a chat: give chat=True"),
        (TEMPLATE, {"chat": True, "bos": True}, "leave out bos"),
        (TEMPLATE, {"chat": True, "window": 16}, "leave out window, or chat"),
        (
            TEMPLATE,
            {"chat": True, "system_turn": "long " * 40},
            r"tokens with the chat around it, but .* at most 64",
        ),
        (TEMPLATE, {"window": 100}, "window=100, but .* reads at most 64 tokens: give as many or fewer"),
        (TEMPLATE, {"window": 3}, "8 at least"),
        (TEMPLATE, {"generate": 2}, "give whole texts as items"),
        (TEMPLATE, {"generate": -1}, "generate=-1"),
        (TEMPLATE, {"generate": 2, "window": 16}, "leave out window, or generate"),
        (TEMPLATE, {"generate": 2, "pooling": "cls"}, "no .CLS. token"),
    ],
)
def test_chats_that_cannot_be_shown(one_case, words_of, template, options, message):
    tokenizer = chatting(template)
    with pytest.raises(InvalidInput, match=message):
        ta.extract(one_case("llama").model, words_of(tiny.TEXTS[:2]), processor=tokenizer, **options)


def test_what_the_template_puts_around_a_turn():
    frame = chat_frame(chatting(), "mine", system_turn="Hi.", answers=True)
    assert frame.around("Yes?") == "<|system|>Hi.<|end|><|user|>Yes?<|end|><|assistant|>"


def test_long_texts_are_read_in_windows(one_case, words_of):
    """Every word against a plain pass over the window that must hold it, worked out here."""
    case, window = one_case("gpt2"), 16
    text = " ".join(tiny.TEXTS)
    acts = ta.extract(
        case.model, words_of([text]), processor=case.processor, window=window, bos=True, system="mine"
    )
    encoded = case.processor(text, return_offsets_mapping=True)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    assert len(ids) > 3 * window
    room, first = window - 1, case.processor.bos_token_id
    at = 0
    for row, word in enumerate(text.split()):
        at = text.index(word, at)
        last = max(k for k, (start, _) in enumerate(offsets) if start < at + len(word))
        at += len(word)
        begins = [begin for begin in range(0, len(ids), room // 2) if begin <= last < begin + room]
        shown = torch.tensor([[first, *ids[begins[0] : begins[0] + room]]])
        with torch.no_grad():
            hidden = case.model(input_ids=shown, output_hidden_states=True).hidden_states[2][0]
        np.testing.assert_allclose(acts[2][row], hidden[1 + last - begins[0]], atol=1e-5)


def test_short_texts_need_no_windows(one_case, words_of):
    case, stimuli = one_case("bert"), words_of(tiny.TEXTS[:2])
    whole = ta.extract(case.model, stimuli, processor=case.processor)
    windows = ta.extract(case.model, stimuli, processor=case.processor, window=40)
    np.testing.assert_allclose(windows[3], whole[3], atol=1e-6)


def test_items_that_no_window_holds():
    offsets = np.array([(k, k + 1) for k in range(40)], dtype=np.int32)
    item = Groups(np.arange(5, 25), np.array([0, 20]))
    with pytest.raises(InvalidInput, match="more than half a window of 16"):
        Windows(16).cut([np.arange(40, dtype=np.int32)], [offsets], np.zeros(1, np.int64), item)
    marked = np.concatenate([[(0, 0)], offsets]).astype(np.int32)
    mark = Groups(np.array([0]), np.array([0, 1]))
    with pytest.raises(InvalidInput, match="choose another pooling"):
        Windows(16).cut([np.arange(41, dtype=np.int32)], [marked], np.zeros(1, np.int64), mark)


PROMPTS = ["The king and the", "In the beginning God", "It was a dark"]


@pytest.mark.parametrize("pooling", ["last", "mean", "all"])
def test_what_a_model_writes_is_the_likeliest_token_each_time(pooling):
    import transformers as tf

    acts = ta.extract("nano-gpt2", PROMPTS, generate=4, pooling=pooling, bos=False, cache=False)
    model = tf.AutoModelForCausalLM.from_pretrained(
        bundled.resolve("nano-gpt2", None), dtype=torch.float32
    ).eval()
    tokenizer = bundled.load("nano-gpt2")[1]
    for number, prompt in enumerate(PROMPTS):
        ids = tokenizer(prompt)["input_ids"]
        begin = len(ids)
        for _ in range(4):
            with torch.no_grad():
                ids = [*ids, int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())]
        assert acts.metadata["written"][number] == tokenizer.decode(ids[begin:])
        with torch.no_grad():
            hidden = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states[3][0]
        written = hidden[begin:].numpy()
        if pooling == "all":
            assert acts.item_names[4 * number : 4 * number + 4] == tuple(f"{number}/{k}" for k in range(4))
            np.testing.assert_allclose(acts[3][4 * number : 4 * number + 4], written, atol=1e-4)
        else:
            expected = written.mean(0) if pooling == "mean" else written[-1]
            np.testing.assert_allclose(acts[3][number], expected, atol=1e-4)


def test_models_that_cannot_write(one_case):
    case = one_case("gpt2")
    with pytest.raises(ModelError, match="no output layer to write with"):
        ta.extract(case.model, ["The old woman"], processor=case.processor, generate=2)
    with pytest.raises(ModelError, match=r"nano-bert is a modernbert model.*trained for this task"):
        ta.extract("nano-bert", ["The old woman"], generate=2, cache=False)


def test_prompts_that_leave_no_room():
    with pytest.raises(InvalidInput, match=r"longest prompt has \d+ tokens, and 10 more .* at most 256"):
        ta.extract("nano-gpt2", ["the king " * 125], generate=10, cache=False)
    with pytest.raises(
        InvalidInput, match=r"shorten the prompts, or write fewer\.$"
    ):  # a window is no way out
        ta.extract("nano-gpt2", ["the king " * 500], generate=10, cache=False)


def test_images_are_no_chats(one_case):
    with pytest.raises(InvalidInput, match="Images and sounds are not text"):
        ta.extract(one_case("vit").model, [np.zeros((8, 8))], processor=tiny.processor("image"), chat=True)
