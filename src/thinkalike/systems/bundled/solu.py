"""A small decoder whose MLP uses either SoLU or GELU, after Nanda's `solu-*l` and `gelu-*l` models.

SoLU(x) = x · softmax(x) (Elhage et al. 2022, *Softmax Linear Units*). As in the originals, the SoLU MLP has a
LayerNorm between the activation and the output projection, and the GELU one has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput


class NanoDecoderConfig(PreTrainedConfig):
    """Sizes of the decoder; `activation` is `"solu"` or `"gelu"`."""

    model_type = "thinkalike_nano_decoder"

    vocab_size: int = 4096
    hidden_size: int = 128
    intermediate_size: int = 512
    num_hidden_layers: int = 3
    num_attention_heads: int = 4
    max_position_embeddings: int = 256
    activation: str = "gelu"
    layer_norm_eps: float = 1e-5
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    eos_token_id: int | None = 4
    tie_word_embeddings: bool = True


def solu(x: torch.Tensor) -> torch.Tensor:
    """x · softmax(x) over the last axis."""
    return x * x.softmax(-1)


class NanoAttention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, config: NanoDecoderConfig) -> None:
        super().__init__()
        self.n_heads = config.num_attention_heads
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        queries, keys, values = (
            part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        mixed = nn.functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, is_causal=mask is None
        )
        return self.out(mixed.transpose(1, 2).flatten(2))


class NanoMLP(nn.Module):
    """Up, activation (with LayerNorm after SoLU), down."""

    def __init__(self, config: NanoDecoderConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        if config.activation == "solu":
            self.activation: Callable[[torch.Tensor], torch.Tensor] = solu
            self.norm: nn.Module = nn.LayerNorm(config.intermediate_size, eps=config.layer_norm_eps)
        else:
            self.activation = nn.functional.gelu
            self.norm = nn.Identity()
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.norm(self.activation(self.up(x))))


class NanoBlock(nn.Module):
    """Pre-norm attention and MLP on the residual stream."""

    def __init__(self, config: NanoDecoderConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.attention = NanoAttention(config)
        self.mlp_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.mlp = NanoMLP(config)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), mask)
        return x + self.mlp(self.mlp_norm(x))


class NanoPreTrainedModel(PreTrainedModel):
    config_class = NanoDecoderConfig
    base_model_prefix = "model"


class NanoDecoder(NanoPreTrainedModel):
    """Token and position embeddings, the blocks, a last LayerNorm."""

    def __init__(self, config: NanoDecoderConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.embed_positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.layers = nn.ModuleList([NanoBlock(config) for _ in range(config.num_hidden_layers)])
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: object,
    ) -> BaseModelOutput | tuple[object, ...]:
        """Hidden states in transformers' order: embeddings, then each block; the last one after the norm."""
        x = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        x = x + self.embed_positions(_positions(x, attention_mask))
        mask = _causal_mask(attention_mask)
        states = [x]
        for layer in self.layers:
            x = layer(x, mask)
            states.append(x)
        states[-1] = x = self.norm(x)
        asked = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        output = BaseModelOutput(last_hidden_state=x, hidden_states=tuple(states) if asked else None)
        return output if return_dict in (None, True) else output.to_tuple()


def _positions(x: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
    """Positions count only real tokens, so padding on either side changes nothing."""
    if attention_mask is None:
        return torch.arange(x.shape[1], device=x.device)[None]
    return (attention_mask.cumsum(-1) - 1).clamp(min=0)


def _causal_mask(attention_mask: torch.Tensor | None) -> torch.Tensor | None:
    """True where a query (row) may look: back, and not at padding; a padded query looks at itself."""
    if attention_mask is None or bool(attention_mask.all()):
        return None
    n = attention_mask.shape[1]
    square = torch.ones(n, n, dtype=torch.bool, device=attention_mask.device)
    return (square.tril() & attention_mask.bool()[:, None, None, :]) | square.triu().tril()


class NanoDecoderForCausalLM(NanoPreTrainedModel, GenerationMixin):
    """The decoder with its embeddings as the output layer."""

    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}  # noqa: RUF012

    def __init__(self, config: NanoDecoderConfig) -> None:
        super().__init__(config)
        self.model = NanoDecoder(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.model.embed_tokens

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        return_dict: bool | None = None,
        **kwargs: object,
    ) -> CausalLMOutput | tuple[object, ...]:
        """Logits of the next token; with `labels`, their mean cross-entropy (shifted here)."""
        kwargs.pop("use_cache", None)
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask, return_dict=True, **kwargs)
        logits = self.lm_head(hidden.last_hidden_state)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        output = CausalLMOutput(
            loss=cast("torch.FloatTensor | None", loss), logits=logits, hidden_states=hidden.hidden_states
        )
        return output if return_dict in (None, True) else output.to_tuple()


def register() -> None:
    """Make the Auto classes of transformers know the decoder; calling it again changes nothing."""
    AutoConfig.register(NanoDecoderConfig.model_type, NanoDecoderConfig, exist_ok=True)
    AutoModel.register(NanoDecoderConfig, NanoDecoder, exist_ok=True)
    AutoModelForCausalLM.register(NanoDecoderConfig, NanoDecoderForCausalLM, exist_ok=True)


register()
