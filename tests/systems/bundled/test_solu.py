"""The decoder of ours: its maths, its place among the Auto classes, its manners with padding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

from thinkalike.systems.bundled.solu import NanoDecoderConfig, NanoDecoderForCausalLM, solu


def tiny(activation: str = "solu") -> NanoDecoderForCausalLM:
    torch.manual_seed(0)
    config = NanoDecoderConfig(
        activation=activation,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        vocab_size=50,
    )
    return NanoDecoderForCausalLM(config).eval()


@given(st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=8))
@settings(max_examples=50)
def test_solu_is_x_times_softmax_of_x(values: list[float]) -> None:
    x = np.array(values)
    weights = np.exp(x - x.max())
    expected = x * weights / weights.sum()
    assert solu(torch.tensor(values)).numpy() == pytest.approx(expected, abs=1e-5)


def test_the_mlp_has_a_norm_after_solu_and_none_after_gelu() -> None:
    x = torch.randn(3, 16, generator=torch.Generator().manual_seed(0))
    with_solu, with_gelu = (tiny(activation).model.layers[0].mlp for activation in ("solu", "gelu"))
    assert isinstance(with_solu.norm, torch.nn.LayerNorm)
    hidden = torch.nn.functional.gelu(with_gelu.up(x))
    torch.testing.assert_close(with_gelu(x), with_gelu.down(hidden))
    raw = with_solu.up(x) * with_solu.up(x).softmax(-1)
    normal = (raw - raw.mean(-1, keepdim=True)) / (raw.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(with_solu(x), with_solu.down(normal), rtol=1e-4, atol=1e-5)


def test_no_token_sees_a_later_one() -> None:
    model = tiny()
    ids = torch.randint(0, 50, (1, 9), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[0, 5:] = (changed[0, 5:] + 1) % 50
    before, after = model(ids).logits, model(changed).logits
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_nothing(side: str) -> None:
    model = tiny("gelu")
    ids = torch.randint(1, 50, (1, 6), generator=torch.Generator().manual_seed(0))
    zeros, ones = torch.zeros(1, 3, dtype=torch.long), torch.ones_like(ids)
    parts = (lambda a, b: torch.cat([a, b], 1)) if side == "left" else (lambda a, b: torch.cat([b, a], 1))
    padded = model(parts(zeros, ids), attention_mask=parts(zeros, ones)).logits
    real = padded[:, 3:] if side == "left" else padded[:, :6]
    torch.testing.assert_close(real, model(ids).logits, rtol=1e-4, atol=1e-5)
    assert padded.isfinite().all()


def test_hidden_states_are_embeddings_then_blocks_and_the_last_is_normed() -> None:
    model = tiny()
    ids = torch.arange(7)[None]
    output = model.model(ids, output_hidden_states=True)
    assert len(output.hidden_states) == 3
    embedded = model.model.embed_tokens(ids) + model.model.embed_positions(torch.arange(7))
    torch.testing.assert_close(output.hidden_states[0], embedded)
    torch.testing.assert_close(output.hidden_states[1], model.model.layers[0](embedded, None))
    assert output.hidden_states[-1] is output.last_hidden_state
    assert model.model(ids).hidden_states is None


def test_labels_give_the_loss_of_the_next_token() -> None:
    model = tiny()
    ids = torch.randint(0, 50, (2, 8), generator=torch.Generator().manual_seed(0))
    output = model(ids, labels=ids)
    chosen = output.logits.log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None])
    assert output.loss.item() == pytest.approx(-chosen.mean().item(), rel=1e-5)


def test_embeddings_and_tuples_are_taken_and_given_as_transformers_does() -> None:
    model = tiny()
    ids = torch.arange(5)[None]
    as_tuple = model(ids, return_dict=False)
    torch.testing.assert_close(as_tuple[0], model(ids).logits)
    by_embeddings = model(inputs_embeds=model.get_input_embeddings()(ids)).logits
    torch.testing.assert_close(by_embeddings, model(ids).logits)


def test_the_auto_classes_know_it_and_weights_survive_the_disk(tmp_path: Path) -> None:
    model = tiny()
    model.save_pretrained(tmp_path)
    assert type(AutoConfig.from_pretrained(tmp_path)) is NanoDecoderConfig
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(again) is NanoDecoderForCausalLM
    ids = torch.arange(6)[None]
    torch.testing.assert_close(again(ids).logits, model(ids).logits)
    assert again.lm_head.weight is again.model.embed_tokens.weight
    body = AutoModel.from_pretrained(tmp_path)
    torch.testing.assert_close(body(ids).last_hidden_state, model.model(ids).last_hidden_state)


def test_it_generates() -> None:
    found = tiny().generate(torch.arange(4)[None], max_new_tokens=3, do_sample=False, eos_token_id=None)
    assert found.shape == (1, 7)
