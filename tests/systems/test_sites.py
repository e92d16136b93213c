"""Inside the layer: heads, neurons, experts and states are what the model itself computes with."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import thinkalike as ta
from tests import tiny
from thinkalike.cli import options
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.systems.architectures import ARCHITECTURES
from thinkalike.systems.hooks import recording
from thinkalike.systems.sites import SITES, find_site, modules_at, n_heads, sites_of
from thinkalike.systems.stack import follow


def having(site):
    """The tiny models whose architecture has a site."""
    rows = {name: ARCHITECTURES[one.config().model_type] for name, one in tiny.TINY.items()}
    return [name for name, row in rows.items() if site in sites_of(row)]


def read(name, site, dtype=torch.float32):
    case = tiny.Case(name, tiny.TINY[name], dtype)
    # Falcon goes on writing into what its MLP answers: what is kept is a copy, as that of extraction is.
    keep = {"keep": lambda layer, states: states.clone()}
    with torch.no_grad(), recording(case.stack, **keep, site=site) as found:
        case.stack.model(**case.inputs())
    return case, found.states


def columns_of(projection):
    """The weights of a projection, (n_in, n_out): GPT-2's own class has them so, torch's the other way."""
    return projection.weight if type(projection).__name__ == "Conv1D" else projection.weight.T


@pytest.mark.parametrize("name", having("heads"))
def test_heads_mixed_are_what_attention_gives(name):
    """Each head through its own columns of the projection; their sum, and its bias, are the projection's."""
    case, heads = read(name, "heads")
    path = case.stack.architecture.heads
    _, mixed = read(name, f".{path}:output")
    number = n_heads(case.stack)
    assert set(heads) == {k for k, group in enumerate(modules_at(case.stack, "heads"), 1) if group}
    for layer, states in heads.items():
        projection = follow(case.stack.blocks[layer - 1], path)
        weight = columns_of(projection)
        total = sum(
            part @ columns
            for part, columns in zip(states.chunk(number, -1), weight.chunk(number, 0), strict=True)
        )
        total = total if projection.bias is None else total + projection.bias
        torch.testing.assert_close(total.reshape(mixed[layer].shape), mixed[layer], atol=1e-5, rtol=1e-4)


def test_heads_are_attention_over_values_by_hand():
    """Llama with two heads to a key: softmax(q k / √d) v, with rotary positions, worked out here."""
    case, heads = read("llama", "heads", torch.float64)
    model, ids = case.model, case.inputs()["input_ids"]
    block, width = model.layers[0], 8
    with torch.no_grad():
        x = block.input_layernorm(model.embed_tokens(ids))
        shape = (*ids.shape, -1, width)
        q, k, v = (getattr(block.self_attn, f"{p}_proj")(x).view(shape).transpose(1, 2) for p in "qkv")
        rates = 10000.0 ** (-torch.arange(0, width, 2).double() / width)
        angles = torch.arange(ids.shape[1]).double()[:, None] * rates
        places = torch.arange(ids.shape[1])[None]
        # The model turns in single precision, which scores amplify: its own cosines, held to their formula.
        cos, sin = (part[0] for part in model.rotary_emb(x, places))
        torch.testing.assert_close(cos, torch.cos(angles).repeat(1, 2), atol=1e-5, rtol=0)
        torch.testing.assert_close(sin, torch.sin(angles).repeat(1, 2), atol=1e-5, rtol=0)

        def turned(z):
            return z * cos + torch.cat([-z[..., width // 2 :], z[..., : width // 2]], -1) * sin

        k, v = (z.repeat_interleave(2, dim=1) for z in (turned(k), v))
        scores = turned(q) @ k.transpose(-1, -2) / width**0.5
        scores = scores.masked_fill(torch.ones_like(scores[0, 0]).triu(1).bool(), -torch.inf)
        by_hand = scores.softmax(-1) @ v
    for head in range(4):
        found = heads[1][..., head * width : (head + 1) * width]
        torch.testing.assert_close(found, by_hand[:, head], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", having("neurons"))
def test_neurons_lead_to_what_the_mlp_gives(name):
    case, neurons = read(name, "neurons")
    path = case.stack.architecture.neurons
    _, out = read(name, f".{path}:output")
    assert set(neurons) == set(out)
    for layer, states in neurons.items():
        projection = follow(case.stack.blocks[layer - 1], path)
        weight = columns_of(projection)
        total = states @ weight + (0 if projection.bias is None else projection.bias)
        torch.testing.assert_close(total.reshape(out[layer].shape), out[layer], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", having("router"))
def test_routers_choose_the_experts(name):
    """The logits are the router's matrix times what enters it; two experts of four get a weight."""
    case, logits = read(name, "router")
    _, chosen = read(name, "experts")
    path = case.stack.architecture.router
    _, entering = read(name, f"{path}:input")
    for layer, weights in chosen.items():
        router = follow(case.stack.blocks[layer - 1], path)
        x = entering[layer].reshape(-1, tiny.WIDTH)
        by_hand = F.linear(x, router.weight, getattr(router, "bias", None))
        torch.testing.assert_close(logits[layer], by_hand)
        assert ((weights > 0).sum(1) == 2).all()
        if name == "mixtral":
            top = by_hand.softmax(-1).topk(2)
            expected = torch.zeros_like(by_hand).scatter(1, top.indices, top.values)
            torch.testing.assert_close(weights, expected / expected.sum(1, keepdim=True))


def test_blocks_without_experts_have_no_layer_of_them():
    _, chosen = read("deepseek_v3", "experts")
    assert set(chosen) == {2, 3}  # its first block is dense
    _, attention = read("jamba", "attention")
    assert set(attention) == {2, 4}


@pytest.mark.parametrize("name", [name for name in having("state") if name != "rwkv"])
def test_states_are_those_after_the_text_so_far(name, words_of):
    """Token by token in a padded batch, against each beginning of each text read at once by itself."""
    case = tiny.Case(name, tiny.TINY[name])
    stimuli = words_of(tiny.TEXTS[:3])
    acts = ta.extract(case.model, stimuli, processor=case.processor, site="state", bos=False)
    reads = "cache_params" if "mamba" in name else "past_key_values"
    rows = 0
    for text in tiny.TEXTS[:3]:
        encoded = case.processor(text, return_offsets_mapping=True)
        ends = [end for _, end in encoded["offset_mapping"]]
        for word in text.split():
            end = text.index(word) + len(word)
            last = max(k for k, stop in enumerate(ends) if stop <= end)
            ids = torch.tensor([encoded["input_ids"][: last + 1]])
            with torch.no_grad():
                cache = case.model(input_ids=ids, use_cache=True)[reads]
            for layer in acts.layers:
                expected = cache.get_recurrent_state(layer - 1).flatten().numpy()
                np.testing.assert_allclose(acts[layer][rows], expected, atol=2e-5, rtol=1e-3)
            rows += 1
    assert rows == len(stimuli)


def test_the_state_of_mamba_by_hand():
    """h ← exp(Δ A) h + Δ B x, worked out token by token from the mixer's own matrices."""
    case = tiny.Case("mamba", tiny.TINY["mamba"])
    mixer, ids = case.model.layers[0].mixer, case.inputs()["input_ids"][:1]
    with torch.no_grad():
        entering = case.model.layers[0].norm(case.model.embeddings(ids))
        x = mixer.in_proj(entering).chunk(2, -1)[0].transpose(1, 2)
        x = F.silu(mixer.conv1d(x)[..., : ids.shape[1]]).transpose(1, 2)
        sizes = [mixer.time_step_rank, mixer.ssm_state_size, mixer.ssm_state_size]
        dt, B, _ = mixer.x_proj(x).split(sizes, -1)
        dt = F.softplus(mixer.dt_proj(dt))
        state = torch.zeros(x.shape[2], mixer.ssm_state_size)
        for t in range(ids.shape[1]):
            decay = torch.exp(dt[0, t][:, None] * -torch.exp(mixer.A_log))
            state = decay * state + dt[0, t][:, None] * B[0, t] * x[0, t][:, None]
        text = case.processor.decode(ids[0])
        cache = case.model(input_ids=ids, use_cache=True).cache_params
    assert text
    torch.testing.assert_close(cache.get_recurrent_state(0)[0], state, atol=1e-5, rtol=1e-4)


def test_the_state_of_rwkv_by_hand(words_of):
    """Σ exp(k_i − (t − i) e^w) v_i over the sum of these weights, from the first block's own matrices."""
    case = tiny.Case("rwkv", tiny.TINY["rwkv"])
    text = tiny.TEXTS[0]
    stimuli = words_of([text])
    acts = ta.extract(case.model, stimuli, processor=case.processor, site="state", bos=False)
    assert acts.layers == (1, 2, 3)
    encoded = case.processor(text, return_offsets_mapping=True, return_tensors="pt")
    ends = [int(end) for _, end in encoded["offset_mapping"][0]]
    block, mixer = case.model.blocks[0], case.model.blocks[0].attention
    with torch.no_grad():
        x = block.ln1(block.pre_ln(case.model.embeddings(encoded["input_ids"])))[0]
        before = torch.cat([torch.zeros_like(x[:1]), x[:-1]])
        mix = mixer.time_mix_key[0], mixer.time_mix_value[0]
        k, v = (
            layer(x * own + before * (1 - own))
            for layer, own in zip((mixer.key, mixer.value), mix, strict=True)
        )
        decay = mixer.time_decay.exp()
    for row, word in enumerate(text.split()):
        t = ends.index(text.index(word) + len(word))
        ago = (t - torch.arange(t + 1))[:, None]
        weights = (k[: t + 1] - ago * decay).double().softmax(0)
        expected = (weights * v[: t + 1]).sum(0)
        np.testing.assert_allclose(acts[1][row], expected.numpy(), atol=1e-5, rtol=1e-4)


def test_parts_are_layers_of_their_own(one_case, words_of, tmp_path):
    """In memory, in a store, and saved again: the same heads, side by side the whole."""
    case, stimuli = one_case("gpt2"), words_of(tiny.TEXTS)
    heads = ta.extract(case.model, stimuli, processor=case.processor, site="heads")
    assert heads.layers == tuple(f"{block}.h{head}" for block in (1, 2, 3) for head in range(4))
    assert set(heads.n_units) == {tiny.WIDTH // 4}
    whole = ta.extract(case.model, stimuli, processor=case.processor, site="attn.c_proj:input")
    for block in (1, 2, 3):
        together = np.hstack([heads[f"{block}.h{head}"] for head in range(4)])
        np.testing.assert_array_equal(together, whole[block])
    stored = ta.extract(
        case.model, stimuli, processor=case.processor, site="heads", out=tmp_path / "heads.zarr"
    )
    heads.save(tmp_path / "again.zarr")
    for other in (stored, ta.Activations.open(tmp_path / "again.zarr")):
        assert other.layers == heads.layers
        assert other.n_units == heads.n_units
        for layer in heads.layers:
            np.testing.assert_array_equal(other[layer], heads[layer])
    assert len(list((tmp_path / "again.zarr" / "layers").glob("[0-9]*"))) == 3  # blocks, not heads


def test_experts_are_layers_of_one_unit(one_case, words_of):
    case = one_case("mixtral")
    acts = ta.extract(case.model, words_of(tiny.TEXTS), processor=case.processor, site="experts")
    assert acts.layers[:2] == ("1.e0", "1.e1")
    assert set(acts.n_units) == {1}


def test_any_path_within_a_block(one_case, words_of):
    case, stimuli = one_case("llama"), words_of(tiny.TEXTS[:2])
    mlp = ta.extract(case.model, stimuli, processor=case.processor, site="mlp")
    same = ta.extract(case.model, stimuli, processor=case.processor, site=".mlp")
    for layer in mlp.layers:
        np.testing.assert_array_equal(mlp[layer], same[layer])
    queries = ta.extract(case.model, stimuli, processor=case.processor, site="self_attn.q_proj")
    assert queries.n_units == (32, 32, 32)


def test_paths_that_lead_nowhere(one_case):
    stack = one_case("llama").stack
    for path in ("self_attn.nothing", "mlp.0", "self_attn.layer_idx"):
        with pytest.raises(InvalidInput, match=r"no site .* The first block consists of self_attn, mlp"):
            modules_at(stack, path)
    with pytest.raises(UnknownName, match=r"Did you mean 'heads'.*path of a module"):
        find_site("haeds")
    with pytest.raises(UnknownName, match="no site 'mlp:inputs'"):
        find_site("mlp:inputs")


def test_sites_that_a_model_lacks(one_case):
    with pytest.raises(InvalidInput, match=r"gpt2 model has no site 'experts'"):
        modules_at(one_case("gpt2").stack, "experts")
    with pytest.raises(InvalidInput, match=r"bert model has no site 'state'"):
        modules_at(one_case("bert").stack, "state")


def test_heads_of_a_model_that_has_none(one_case, words_of):
    case = one_case("mamba")
    with pytest.raises(
        InvalidInput, match=r"mamba model has no site 'heads'.* choose residual or block or state"
    ):
        ta.extract(case.model, words_of(tiny.TEXTS[:1]), processor=case.processor, site="heads")


def test_a_head_beyond_the_model(one_case, words_of):
    case = one_case("gpt2")
    heads = ta.extract(case.model, words_of(tiny.TEXTS[:1]), processor=case.processor, site="heads")
    with pytest.raises(UnknownName, match=r"no layer '3.h4' in .*3.h3"):
        heads["3.h4"]


def test_the_final_norm_has_no_parts(one_case, words_of):
    case = one_case("gpt2")
    with pytest.raises(InvalidInput, match="final norm has no parts"):
        ta.extract(
            case.model, words_of(tiny.TEXTS[:1]), processor=case.processor, site="heads", final_norm=True
        )


def test_every_site_is_read_of_some_model():
    for site in SITES:
        assert site == "residual" or having(site), site


def test_the_docs_say_what_was_tried():
    """Every architecture of the table stands on the page, with the sites it has."""
    page = (Path(__file__).parents[2] / "docs" / "bring" / "models.md").read_text("utf-8")
    said = {}
    for line in page.partition("## What was tried")[2].partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[1] not in ("`model_type`", "---"):
            sites = [] if cells[2] == "–" else cells[2].split(", ")
            said |= dict.fromkeys(cells[1].split(", "), sites)
    assert said == {name: sites_of(row) for name, row in ARCHITECTURES.items()}
    built = {one.config().model_type for one in tiny.TINY.values()}
    assert set(said) <= built | {"thinkalike_nano_decoder"}, "what is said to be tried is built"


def test_the_docs_and_the_command_line_name_every_site():
    page = (Path(__file__).parents[2] / "docs" / "activations.md").read_text("utf-8")
    rows = page.partition("| `site=` |")[2].partition("\n\n")[0].splitlines()[2:]
    named = [name for row in rows for name in re.findall(r'`"([^"]+)"`', row.split("|")[1])]
    assert [name for name in named if "." not in name and not name.startswith(":")] == list(SITES.own)
    help = typing.get_args(options.Site)[1].help
    assert help.startswith(", ".join(SITES.own))
