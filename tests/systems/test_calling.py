"""One way to call: whoever runs a model on a text gives it the same arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import thinkalike as ta
from tests import tiny
from thinkalike.errors import InvalidInput, ModelError
from thinkalike.recipes.brown2023_generalization.classifiers import Questions, accuracy
from thinkalike.recipes.brown2023_generalization.data import Pairs
from thinkalike.stitching import LabelledTexts, StitchedModel, stitch
from thinkalike.systems.batch import Batch, tokenise
from thinkalike.systems.calling import (
    Reading,
    arguments,
    bottom_states,
    context_length,
    evaluating,
    frozen,
    layer_labels,
    read_layers,
    read_rows,
    text_states,
    top_logits,
)
from thinkalike.systems.stack import layers_of

TEXTS = ["She sings.", "A prince fell into the well.", "No man laughs loudly."]
PAIRS = [("She sings.", "She laughs."), ("A prince fell.", "No prince sings in the library.")]


def heard(body: Any, run: Callable[[], Any]) -> list[tuple[tuple[str, tuple[int, ...]], ...]]:
    """Every sequence that reached the body of a model: its row in each tensor, without the filling."""
    rows: list[tuple[tuple[str, tuple[int, ...]], ...]] = []
    names = inspect.signature(type(body).forward)
    pad = getattr(body.config.get_text_config(), "pad_token_id", None)

    def listen(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        given = names.bind(module, *args, **kwargs).arguments
        given |= given.pop("kwargs", {})
        tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
        for k in range(len(tensors["input_ids"])):
            own = {name: tensors[name][k].tolist() for name in sorted(tensors)}
            length = sum(own.get("attention_mask", [1] * len(own["input_ids"])))
            assert set(own["input_ids"][length:]) <= {pad or 0}
            rows.append(tuple((name, tuple(values[:length])) for name, values in own.items()))

    handle = body.register_forward_pre_hook(listen, with_kwargs=True)
    try:
        run()
    finally:
        handle.remove()
    assert rows
    return sorted(set(rows))


def test_extraction_and_streams_give_equal_arguments_for_equal_text(text_case):
    model, body = text_case.model, text_case.stack.model
    if text_case.tiny.part == "decoder":
        pytest.skip("stream_cka takes the encoder")
    extracted = heard(body, lambda: ta.extract(model, TEXTS, processor=text_case.processor, bos=None))
    streamed = heard(
        body, lambda: ta.stream_cka([model], TEXTS, pack=False, level="token", tokenizer=text_case.processor)
    )
    by_word = heard(body, lambda: ta.stream_cka([model], TEXTS, level="word", tokenizer=text_case.processor))
    assert extracted == streamed == by_word
    assert len(extracted) == len(TEXTS)


@pytest.fixture(scope="module")
def classifier() -> Any:
    torch.manual_seed(0)
    return tf.BertForSequenceClassification(tf.BertConfig(**{**tiny.SIZES, "num_labels": 2})).eval()


@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["texts", "pairs"])
def test_all_clients_give_equal_arguments_for_equal_text(classifier, texts):
    tokenizer, labels = tiny.tokenizer("wordpiece"), [0] * len(texts)
    tokens = tokenise(tokenizer, texts, length=40)
    stack = layers_of(classifier)
    questions = Questions(
        Pairs("pairs", tuple(texts), tuple(labels)), tokens, torch.ones(len(texts), 2, dtype=torch.bool)
    )
    stitched = StitchedModel(classifier, classifier, 1, 1)
    clients: dict[str, Callable[[], Any]] = {
        "streaming": lambda: ta.stream_cka([classifier], texts, pack=False, tokenizer=tokenizer),
        "stitching": lambda: stitch(
            classifier,
            classifier,
            LabelledTexts(texts, labels),
            kind="identity",
            layers=[1],
            tokenizer=tokenizer,
            ceiling=False,
        ),
        "a stitched model": lambda: stitched(**arguments(stack, tokens, classifier)),
        "fine-tuned classifiers": lambda: accuracy(classifier, questions),
    }
    if texts is TEXTS:
        clients["extraction"] = lambda: ta.extract(classifier, texts, processor=tokenizer)
    expected = heard(stack.model, lambda: stack.model(**arguments(stack, tokens)))
    for name, run in clients.items():
        assert heard(stack.model, run) == expected, name


def test_filling_is_the_models_own_padding(text_case):
    stack = text_case.stack
    batch = Batch.of([[5, 6, 7], [8]])
    given = arguments(stack, batch)
    pad = stack.config.pad_token_id if getattr(stack.config, "pad_token_id", None) is not None else 0
    assert given["input_ids"].tolist() == [[5, 6, 7], [8, pad, pad]]
    if "attention_mask" in given:
        assert given["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]


def test_what_stands_in_the_filling_does_not_matter(text_case):
    batch = Batch.of([[5, 6, 7], [8]])
    other = Batch(np.where(batch.mask, batch.ids, 9), batch.mask)
    for name, value in arguments(text_case.stack, batch).items():
        assert torch.equal(torch.as_tensor(value), torch.as_tensor(arguments(text_case.stack, other)[name]))


def test_rows_are_means_over_tokens(text_case):
    stack, batch = text_case.stack, Batch.of([[5, 6, 7, 8], [9, 10]])
    reading = Reading(batch, np.array([[0, 1], [3, 0], [4, 5]]), np.array([[1, 1], [1, 0], [1, 1]], bool))
    labels = layer_labels(stack, "residual")
    with evaluating(stack.model):
        whole = read_layers(
            stack, arguments(stack, batch), lambda layer, states: states, labels=labels, site="residual"
        )
        rows = read_rows(stack, reading, labels=labels, site="residual")
    for found, states in zip(rows, whole.values(), strict=True):
        own = text_states(stack, batch, states)
        expected = torch.stack([own[0, :2].mean(0), own[0, 3], own[1, :2].mean(0)])
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_replacing_a_layer_by_itself_changes_nothing():
    torch.manual_seed(0)
    model = tf.GPT2LMHeadModel(tf.GPT2Config(n_layer=2, n_embd=16, n_head=2, vocab_size=50)).eval()
    stack, batch = layers_of(model), Batch.of([[5, 6, 7], [8, 9]])
    with torch.no_grad():
        expected = model(**arguments(stack, batch, model)).logits
        for layer, states in bottom_states(stack, range(3), batch).items():
            found = top_logits(model, stack, layer, states, batch)
            torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_states_that_cannot_be_told_apart_by_tokens_are_refused():
    stack = layers_of(tiny.build("bert"))
    with pytest.raises(ModelError, match=r"answers with shape \(2, 5, 4\) to 2 texts of 3 tokens"):
        text_states(stack, Batch.of([[1, 2, 3], [4]]), torch.zeros(2, 5, 4))


def test_a_layer_that_gave_no_answer_is_an_error():
    stack = layers_of(tiny.build("bert"))
    batch = arguments(stack, Batch.of([[5, 6]]))
    with pytest.raises(ModelError, match=r"Layer 99 of this bert model gave no answer"):
        read_layers(stack, batch, lambda layer, states: states, labels=[99], site="residual")


def test_a_final_norm_where_there_is_none():
    with pytest.raises(ModelError, match="has no final norm that we know of"):
        layer_labels(layers_of(tiny.build("bert")), "residual", final_norm=True)


def test_a_site_that_is_not_there():
    with pytest.raises(InvalidInput, match="has no site 'attention'"):
        layer_labels(layers_of(tiny.build("mamba")), "attention")


@pytest.mark.parametrize(
    ("name", "part", "expected"),
    [("bert", None, 64), ("roberta", None, 62), ("mamba", None, None), ("bart, decoder", "decoder", 63)],
)
def test_how_many_tokens_of_text_a_model_reads(name, part, expected):
    assert context_length(layers_of(tiny.build(name), part=part)) == expected


def test_frozen_models_are_as_before_afterwards():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout())
    model[0].weight.requires_grad_(False)
    model[1].eval()
    with frozen(model, model):
        assert not any(parameter.requires_grad for parameter in model.parameters())
        assert not any(module.training for module in model.modules())
    assert [parameter.requires_grad for parameter in model.parameters()] == [False, True]
    assert [module.training for module in model.modules()] == [True, True, False]
    with evaluating(model):
        assert torch.is_inference_mode_enabled()
