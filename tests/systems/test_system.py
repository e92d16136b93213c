"""A model opened: when needed, by name or in memory, with or without its output layer; tokens and lengths."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import transformers as tf
from transformers.utils.quantization_config import QuantizationMethod

from tests import tiny
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.systems import system as module
from thinkalike.systems.heads import task_of
from thinkalike.systems.system import (
    LoadOptions,
    check_same_tokens,
    open_system,
    open_systems,
    passage_length,
    random_copy,
    untrained_copy,
)


def never(*args, **kwargs):
    raise AssertionError("weights were loaded")


def test_weights_are_loaded_when_they_are_asked_for_and_once(tiny_models, monkeypatch):
    calls = []
    load = module.load_model
    monkeypatch.setattr(module, "load_model", lambda *a, **k: calls.append(a) or load(*a, **k))
    system = open_system(tiny_models["tiny-gpt2"])
    assert system.name == "tiny-gpt2"
    assert system.config.model_type == "gpt2"
    assert len(system.identity) == 64
    assert system.tokenizer.eos_token == "<eos>"
    assert not calls
    assert system.stack.n_blocks == 2
    assert replace(system, name="other").stack is system.stack
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("name", "task", "kind"),
    [
        ("tiny-gpt2", "causal", tf.GPT2LMHeadModel),
        ("tiny-bert", "masked", tf.BertForMaskedLM),
        ("tiny-mamba", "causal", tf.MambaForCausalLM),
    ],
)
def test_the_output_layer_that_a_model_was_saved_with(tiny_models, name, task, kind):
    system = open_system(tiny_models[name], head="own")
    assert system.task == task
    assert isinstance(system.model, kind)
    assert system.stack.model is system.model.base_model
    assert open_system(tiny_models[name]).task is None


def test_a_model_in_memory_stays_as_it_is():
    model = tiny.build("bert", torch.float64)
    try:
        system = open_system(model, name="mine", tokenizer="given")
        assert system.stack.model is model
        assert (system.name, system.tokenizer, system.dtype, system.device) == (
            "mine",
            "given",
            "float64",
            "cpu",
        )
        with pytest.raises(InvalidInput, match=r"does not say where from: give its tokenizer"):
            _ = open_system(model).tokenizer
    finally:
        model.to(torch.float32)


def test_untrained_models_differ_by_their_seed_alone(tiny_models):
    def weights(seed):
        options = LoadOptions(untrained=True, seed=seed)
        return torch.cat(
            [p.flatten() for p in open_system(tiny_models["tiny-gpt2"], options).model.parameters()]
        )

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
    system = open_system(tiny_models["tiny-gpt2"], LoadOptions(untrained=True, seed=1))
    assert system.name == "tiny-gpt2:untrained"
    assert (system.about["untrained"], system.about["seed"]) == (True, 1)


def test_an_untrained_copy_has_the_form_and_not_the_weights(tiny_models):
    system = open_system(tiny_models["tiny-bert"], head="masked")
    copied = untrained_copy(system, seed=9)
    assert copied.name == "tiny-bert:untrained"
    assert type(copied.model) is type(system.model)
    pairs = zip(copied.model.parameters(), system.model.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in pairs)
    assert copied.stack.n_blocks == system.stack.n_blocks
    with pytest.raises(InvalidInput, match="Linear has no config to build an untrained copy from"):
        random_copy(torch.nn.Linear(2, 2), seed=0)


def test_several_systems_have_several_names(tiny_models):
    folder = tiny_models["tiny-gpt2"]
    named = open_systems({"a": folder, "b": folder}, LoadOptions(), tokenizer={"a": "one"})
    assert [system.name for system in named] == ["a", "b"]
    assert named[0].tokenizer == "one"
    assert named[1].tokenizer.eos_token == "<eos>"
    assert [s.tokenizer for s in open_systems([folder], LoadOptions(), tokenizer="all")] == ["all"]
    with pytest.raises(InvalidInput, match=r"tiny-gpt2 comes twice: give the models names"):
        open_systems([folder, folder], LoadOptions())
    with pytest.raises(InvalidInput, match="no models to compare"):
        open_systems([], LoadOptions())
    with pytest.raises(InvalidInput, match=r"give a list of models, such as \['gpt2'\]"):
        open_systems("gpt2", LoadOptions())


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, None),
        ({"quant_method": "gptq", "bits": 4}, "gptq"),
        (SimpleNamespace(quant_method=QuantizationMethod.BITS_AND_BYTES), "bitsandbytes"),
        ({"bits": 4}, "quantised"),
    ],
)
def test_quantised_weights_are_known_from_the_configuration(config, said, one_case):
    model = copy.deepcopy(one_case("gpt2").model)
    if config is not None:
        model.config.quantization_config = config
    assert open_system(model).about["quantised"] == said


def test_a_task_that_is_none(tiny_models):
    with pytest.raises(UnknownName, match="task 'cusal'"):
        open_system(tiny_models["tiny-gpt2"], head="cusal")


@pytest.mark.parametrize(
    ("class_name", "config", "task"),
    [
        ("GPT2LMHeadModel", None, "causal"),
        ("BertForPreTraining", None, "masked"),
        ("RobertaForSequenceClassification", None, "classification"),
        ("BertModel", tf.BertConfig(), "masked"),
        ("MambaModel", tf.MambaConfig(), "causal"),
    ],
)
def test_what_a_class_is_for(class_name, config, task):
    assert task_of(class_name, config) == task


def test_a_class_that_does_not_say_what_it_is_for():
    with pytest.raises(InvalidInput, match="Sequential does not say what its output layer predicts"):
        task_of("Sequential", None)


def test_tokens_are_the_same_or_refused():
    model = tiny.build("gpt2")
    first, same, other = (
        open_system(model, name=name, tokenizer=tiny.tokenizer(kind))
        for name, kind in (("first", "bytes"), ("same", "bytes"), ("other", "spaces"))
    )
    check_same_tokens([first, same], "never said")
    with pytest.raises(InvalidInput, match=r"first and other split text differently \(.*\): do this\."):
        check_same_tokens([first, same, other], "do this.")


def test_the_length_of_a_passage_is_what_all_can_read():
    bert, mamba = (open_system(tiny.build(name), name=name) for name in ("bert", "mamba"))
    assert (bert.max_length, mamba.max_length) == (64, None)
    assert passage_length([bert, mamba], None) == 64
    assert passage_length([mamba], None) == 1024
    assert passage_length([mamba], 2000) == 2000
    assert passage_length([bert, mamba], 50) == 50
    with pytest.raises(InvalidInput, match="length=65, but bert reads at most 64 tokens: choose fewer"):
        passage_length([mamba, bert], 65)
