"""The layers that we read are the model's own, for every architecture of the table."""

from __future__ import annotations

import pytest
import torch
import transformers as tf
from torch import nn

from thinkalike.errors import InvalidInput, ModelError, UnknownName
from thinkalike.registry import Registry
from thinkalike.systems.architectures import ARCHITECTURES
from thinkalike.systems.hooks import recording
from thinkalike.systems.sites import modules_at
from thinkalike.systems.stack import follow, layers_of


def record(case, *, site="residual", final_norm=False):
    with torch.no_grad(), recording(case.stack, site=site, final_norm=final_norm) as found:
        answer = case.stack.model(**case.inputs())
    found.check()
    return found.states, answer


def hidden_states(case):
    with torch.no_grad():
        answer = case.stack.model(**case.inputs(), output_hidden_states=True)
    return answer["decoder_hidden_states" if case.tiny.part == "decoder" else "hidden_states"]


def test_layers_equal_the_hidden_states_that_transformers_exposes(case):
    states, _ = record(case, final_norm=case.has_norm)
    theirs = hidden_states(case)
    depth = case.stack.n_blocks
    expected = {
        "all": dict(enumerate(theirs)),
        "normed": dict(enumerate(theirs[:-1])) | {"final_norm": theirs[-1]},
        "shifted": dict(enumerate(theirs[:-1], start=1)) | {"final_norm": theirs[-1]},
    }[case.tiny.hidden_states]
    assert len(theirs) == depth + 1
    assert set(states) == {*range(depth + 1), *(["final_norm"] if case.has_norm else [])}
    for layer, tensor in expected.items():
        torch.testing.assert_close(states[layer], tensor, atol=1e-6, rtol=0)


def test_the_last_layer_leads_to_the_models_answer(case):
    states, answer = record(case, final_norm=case.has_norm)
    last = states[case.stack.n_blocks]
    if case.has_norm:
        last = case.stack.final_norm(last)
        torch.testing.assert_close(states["final_norm"], last)
    torch.testing.assert_close(last, answer.last_hidden_state)


def test_layers_differ(case):
    states, _ = record(case)
    for layer in range(case.stack.n_blocks):
        if states[layer].shape == states[layer + 1].shape:
            assert (states[layer] - states[layer + 1]).abs().max() > 1e-2


def test_what_attention_and_mlp_add_is_what_the_stream_gains(pre_norm_case):
    case = pre_norm_case
    streams, _ = record(case)
    added = [record(case, site=site)[0] for site in case.tiny.update]
    first = 2 if case.name == "rwkv" else 1  # its first block normalises the embeddings before all else
    for layer in range(first, case.stack.n_blocks + 1):
        gain = sum(site[layer].reshape(streams[layer].shape) for site in added if layer in site)
        torch.testing.assert_close(streams[layer] - streams[layer - 1], gain, atol=2e-5, rtol=1e-5)


def test_post_norm_blocks_are_rebuilt_from_their_sites(post_norm_case):
    case = post_norm_case
    streams, _ = record(case)
    attention, _ = record(case, site="attention")
    mlp, _ = record(case, site="mlp")
    block, _ = record(case, site="block")
    for layer, module in enumerate(case.stack.blocks, start=1):
        after_attention, after_mlp = (follow(module, path) for path in case.tiny.norms)
        middle = after_attention(streams[layer - 1] + attention[layer])
        shape = middle.shape
        rebuilt = after_mlp(middle + mlp[layer].reshape(shape))
        torch.testing.assert_close(rebuilt, streams[layer], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(block[layer], mlp[layer])


def test_the_table_is_tested_whole(tested_model_types):
    assert tested_model_types == set(ARCHITECTURES)


def test_a_shared_block_is_as_many_layers_as_it_runs(one_case):
    stack = one_case("albert").stack
    assert len(stack.blocks) == 3
    assert len(set(stack.blocks)) == 1
    first, second = dict.fromkeys(one_case("albert, two groups").stack.blocks)
    assert one_case("albert, two groups").stack.blocks == (first, first, second, second)


def test_positions_that_come_first_inside_are_turned_round(one_case):
    """As many texts as tokens, so that shapes do not tell the two apart."""
    case = one_case("xlnet")
    stack, ids = case.stack, case.inputs()["input_ids"].repeat(6, 1)[:11]
    ids[3:] = ids[3:].flip(1)
    assert ids.shape == (11, 11)
    with torch.no_grad(), recording(stack) as found:
        theirs = stack.model(input_ids=ids, output_hidden_states=True).hidden_states
    for layer, states in found.states.items():
        torch.testing.assert_close(states, theirs[layer], atol=1e-6, rtol=0)
        assert (states - theirs[layer].transpose(0, 1)).abs().max() > 0.1
    with torch.no_grad(), recording(stack, site="mlp") as one, recording(stack, site="mlp") as other:
        stack.model(input_ids=ids[:1])
        alone = other.states[2]
        stack.model(input_ids=ids)
    torch.testing.assert_close(one.states[2][:1], alone, atol=1e-5, rtol=0)


def test_a_head_on_top_does_not_matter(one_case):
    for name, head in (
        ("gpt2", tf.GPT2LMHeadModel),
        ("bert", tf.BertForMaskedLM),
        ("t5, encoder", tf.T5ForConditionalGeneration),
    ):
        config = one_case(name).tiny.config()
        assert layers_of(head(config)).n_blocks == 3


class Unknown(nn.Module):
    """Home-made: a short list of heads, a long one of blocks."""

    def __init__(self, n_blocks=3):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.trunk = nn.Module()
        self.trunk.steps = nn.ModuleList(nn.Linear(4, 4) for _ in range(n_blocks))

    def forward(self, x):
        for step in self.trunk.steps:
            x = step(x)
        return x


def test_an_unknown_architecture_is_discovered_with_a_warning():
    model = Unknown()
    with pytest.warns(
        UserWarning, match=r"'Unknown' is not in the table: taking the 3 equal blocks at 'trunk.steps'"
    ):
        stack = layers_of(model)
    assert stack.blocks == tuple(model.trunk.steps)


def test_the_user_names_the_blocks():
    model = Unknown(n_blocks=1)
    assert layers_of(model, blocks="trunk.steps").blocks == tuple(model.trunk.steps)


def test_no_such_list_of_blocks():
    with pytest.raises(ModelError, match=r"no list of blocks at 'trunk.nothing'.*heads, trunk.steps"):
        layers_of(Unknown(), blocks="trunk.nothing")


def test_nothing_to_discover():
    with pytest.raises(ModelError, match="No list of equal blocks"):
        layers_of(nn.Linear(2, 2))


def test_blocks_of_two_kinds_are_no_layers():
    model = nn.Module()
    model.steps = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])
    with pytest.raises(ModelError, match="not of one kind"):
        layers_of(model, blocks="steps")


def test_another_version_of_transformers_is_discovered(one_case, monkeypatch):
    moved = Registry("architecture", "thinkalike.architectures", {"bert": ARCHITECTURES["gpt2"]})
    monkeypatch.setattr("thinkalike.systems.stack.ARCHITECTURES", moved)
    with pytest.warns(UserWarning, match=r"taking the 3 equal blocks at 'encoder.layer'"):
        assert layers_of(one_case("bert").model).n_blocks == 3


def test_lists_that_do_not_run_in_order_are_refused():
    class Branches(Unknown):
        def forward(self, x):
            return sum(step(x) for step in reversed(self.trunk.steps))

    stack = layers_of(Branches(), blocks="trunk.steps")
    with pytest.raises(ModelError, match="do not run one after the other"), recording(stack):
        stack.model(torch.ones(1, 4))


def test_lists_that_run_in_part_are_refused():
    class Half(Unknown):
        def forward(self, x):
            return self.trunk.steps[0](x)

    stack = layers_of(Half(), blocks="trunk.steps")
    with recording(stack) as found:
        stack.model(torch.ones(1, 4))
    with pytest.raises(ModelError, match="Only 1 of the 3 blocks"):
        found.check()


def test_blocks_without_states_are_refused():
    class Odd(Unknown):
        def forward(self, x):
            return self.trunk.steps[0](input=x)

    stack = layers_of(Odd(), blocks="trunk.steps")
    with pytest.raises(ModelError, match="called without hidden states"), recording(stack):
        stack.model(torch.ones(1, 4))


def test_sites_that_are_not_there(one_case):
    with pytest.raises(
        InvalidInput, match=r"mamba model has no site 'attention'.*residual or block or state"
    ):
        modules_at(one_case("mamba").stack, "attention")
    with pytest.raises(UnknownName, match=r"no site 'atention'. Did you mean 'attention'"):
        modules_at(one_case("bert").stack, "atention")


def test_a_part_that_is_not_there():
    class OneStack(Unknown):
        config = tf.PretrainedConfig(is_encoder_decoder=True)

    with pytest.raises(ModelError, match="has no encoder of its own"):
        layers_of(OneStack())


def test_parts(one_case):
    with pytest.raises(InvalidInput, match="bert model is one stack"):
        layers_of(one_case("bert").model, part="decoder")
    with pytest.raises(UnknownName, match="no part 'encodr'"):
        layers_of(one_case("t5, encoder").model, part="encodr")
    assert layers_of(one_case("t5, encoder").model).part == "encoder"
