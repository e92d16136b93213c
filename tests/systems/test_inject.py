"""A model started in the middle gives its own answer, for every architecture."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import thinkalike as ta
from thinkalike.errors import InvalidInput
from thinkalike.systems.inject import start_from, states_at
from thinkalike.systems.stack import layers_of


def answer(case, inputs):
    with torch.no_grad():
        return case.stack.model(**inputs).last_hidden_state


def other_inputs(case):
    """Inputs of the same shape that say something else, which must not matter any more."""
    other = case.inputs(seed=1)
    if case.tiny.part == "decoder":  # the decoder goes on listening to the encoder
        other["input_ids"] = case.inputs()["input_ids"]
    if case.name == "deberta-v2, convolution":  # reads the embeddings from beside the blocks
        return case.inputs()
    return other


def test_started_from_any_layer_a_model_gives_its_own_answer(case):
    stack, inputs = case.stack, case.inputs()
    expected = answer(case, inputs)
    assert (answer(case, case.inputs(seed=1)) - expected).abs().max() > 1e-3
    for layer in range(stack.n_blocks + 1):
        with torch.no_grad():
            states = states_at(stack, layer, **inputs)
        for _ in range(2):  # the first call learns the form of the answers
            with torch.no_grad(), start_from(stack, layer, states):
                found = stack.model(**other_inputs(case)).last_hidden_state
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(answer(case, inputs), expected, atol=0, rtol=0)


def test_stored_states_lead_to_the_models_own_answer(stored_case, make_tokenizer):
    case = stored_case  # all but decoders beside an encoder, whose start token is no part of the text
    tokenizer = make_tokenizer(case.tiny.kind, specials=False)
    text = "The old woman who sings doesn't see the king."
    stored = ta.extract(case.model, [text], pooling="all", processor=tokenizer, part=case.tiny.part)
    inputs = {"input_ids": tokenizer(text, return_tensors="pt")["input_ids"]}
    assert stored.n_items == inputs["input_ids"].shape[1] > 5
    expected = answer(case, inputs)
    for layer in stored:
        with torch.no_grad(), start_from(case.stack, layer, torch.from_numpy(stored[layer])[None]):
            found = case.stack.model(**inputs).last_hidden_state
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_changed_states_change_the_answer(case):
    stack, inputs = case.stack, case.inputs()
    expected = answer(case, inputs)
    for layer in range(stack.n_blocks + 1):
        with torch.no_grad():
            states = states_at(stack, layer, **inputs)
            with start_from(stack, layer, states.flip(1) + 1.0):
                found = stack.model(**inputs).last_hidden_state
        assert (found - expected).abs().max() > 1e-3


def test_blocks_before_do_not_run_and_blocks_after_do(one_case):
    stack, inputs = one_case("gpt2").stack, one_case("gpt2").inputs()
    states = states_at(stack, 2, **inputs)
    with start_from(stack, 2, states):
        stack.model(**inputs)  # learns the form
    ran = []
    handles = [
        block.mlp.register_forward_hook(lambda *_, number=number: ran.append(number))
        for number, block in enumerate(stack.blocks)
    ]
    try:
        with start_from(stack, 2, states):
            stack.model(**inputs)
        assert ran == [2]
        ran.clear()
        states_at(stack, 1, **inputs)
        assert ran == [0]
    finally:
        for handle in handles:
            handle.remove()


def test_gradients_flow_to_the_states(one_case):
    for name in ("gpt2", "t5, encoder", "albert"):
        stack, inputs = one_case(name).stack, one_case(name).inputs()
        states = states_at(stack, 1, **inputs).detach().requires_grad_()
        with start_from(stack, 1, states):
            stack.model(**inputs).last_hidden_state.pow(2).sum().backward()
        assert states.grad is not None
        assert states.grad.abs().sum() > 0


def test_a_failed_pass_leaves_the_model_as_it_was(one_case):
    case = one_case("albert")
    stack, inputs = case.stack, case.inputs()
    expected = answer(case, inputs)
    with pytest.raises(RuntimeError), start_from(stack, 1, torch.ones(2, 3, 7)):
        stack.model(**inputs)
    torch.testing.assert_close(answer(case, inputs), expected)
    assert all("forward" not in vars(block) for block in stack.blocks)


def test_a_forward_of_the_modules_own_comes_back(one_case):
    case = one_case("gpt2")
    block = case.stack.blocks[0]
    original = block.forward
    block.forward = lambda *args, **kwargs: original(*args, **kwargs)  # as accelerate does
    mine = block.forward
    try:
        states_at(case.stack, 2, **case.inputs())
        assert block.forward is mine
    finally:
        del block.forward


def test_no_such_layer(one_case):
    stack = one_case("gpt2").stack
    with pytest.raises(InvalidInput, match="has the layers 0 to 3; 4 was asked for"):
        states_at(stack, 4, **one_case("gpt2").inputs())
    with pytest.raises(InvalidInput, match="-1 was asked for"), start_from(stack, -1, torch.ones(1)):
        pass


def test_the_stack_of_a_model_with_a_head_starts_the_whole_model():
    import transformers as tf

    torch.manual_seed(0)
    model = tf.GPT2LMHeadModel(
        tf.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=40, n_positions=16)
    ).eval()
    inputs = {"input_ids": torch.arange(5, 13)[None]}
    stack = layers_of(model)
    with torch.no_grad():
        expected = model(**inputs).logits
        states = states_at(stack, 1, **inputs)
        with start_from(stack, 1, states):
            found = model(input_ids=torch.ones(1, 8, dtype=torch.long)).logits
    np.testing.assert_allclose(found, expected, atol=1e-5)
