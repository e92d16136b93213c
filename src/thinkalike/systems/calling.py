"""Calling a model: the one place that decides what it is given, and how its layers are read or replaced.

Whoever runs models on text, be it for activations, streaming CKA, stitching or fine-tuning, makes a `Batch`
and comes here: so equal text means equal arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from thinkalike.errors import ModelError
from thinkalike.systems.batch import Batch, Bools, Ints
from thinkalike.systems.hooks import FINAL_NORM, Keep, Layer, recording
from thinkalike.systems.inject import start_from, states_of
from thinkalike.systems.mamba.selective_scan import fused_scan
from thinkalike.systems.sites import modules_at
from thinkalike.systems.stack import Stack
from thinkalike.systems.words import mean_over
from thinkalike.types import Config


def arguments(stack: Stack, batch: Batch, model: nn.Module | None = None) -> dict[str, object]:
    """What `model` (the body of `stack` if not given) is called with for a batch, on its device.

    Padding is the model's own token for it. The decoder beside an encoder reads a start token and then the
    text that the encoder reads.
    """
    check_tokens(stack, batch.ids)
    device = next(stack.model.parameters()).device
    ids = torch.from_numpy(np.where(batch.mask, batch.ids, padding_id(stack.config))).to(device)
    mask = torch.from_numpy(batch.mask.astype(np.int64)).to(device)
    given: dict[str, object] = {"input_ids": ids, "attention_mask": mask}
    if batch.segments is not None:
        given["token_type_ids"] = torch.from_numpy(batch.segments).to(device)
    if stack.part == "decoder":
        first = torch.full_like(ids[:, :1], _start_token(stack))
        given["decoder_input_ids"] = torch.cat([first, ids], dim=1)
        given["decoder_attention_mask"] = torch.cat([torch.ones_like(first), mask], dim=1)
    return accepted(stack, model or stack.model, given)


def accepted(stack: Stack, model: nn.Module, inputs: Mapping[str, object]) -> dict[str, object]:
    """Those of the inputs that the model takes; no cache where it could keep one."""
    names = set(inspect.signature(model.forward).parameters)
    if not stack.architecture.reads_mask:
        names.discard("attention_mask")
    taken = {name: value for name, value in inputs.items() if name in names}
    return taken | ({"use_cache": False} if "use_cache" in names else {})


def check_tokens(stack: Stack, ids: npt.NDArray[np.integer]) -> None:
    """Refuse tokens that the model has no embedding for: its tokenizer is another model's."""
    n_tokens = n_embeddings(stack)
    highest = int(ids.max(initial=0))
    if n_tokens is not None and highest >= n_tokens:
        raise ModelError(
            f"The tokenizer gives token {highest}, but this {stack.model_type} model knows only {n_tokens} "
            "tokens: give the model's own tokenizer."
        )


def n_embeddings(stack: Stack) -> int | None:
    """How many tokens the model knows; None where it does not say."""
    try:
        return stack.model.get_input_embeddings().num_embeddings  # type: ignore[operator]
    except (AttributeError, NotImplementedError):  # not of transformers, or not of words
        return None


def padding_id(config: Config) -> int:
    """The token to pad with: the model's own (RoBERTa counts positions by it) if it has one, else any."""
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    pad = getattr(text_config, "pad_token_id", None)
    n_tokens = getattr(text_config, "vocab_size", None)
    in_range = isinstance(pad, int) and pad >= 0 and (n_tokens is None or pad < n_tokens)
    return int(pad) if in_range else 0  # type: ignore[arg-type]


def context_length(stack: Stack) -> int | None:
    """How many tokens of text the model can read; None if any number."""
    rule = stack.architecture.max_length
    config = stack.config.get_text_config() if hasattr(stack.config, "get_text_config") else stack.config
    length = getattr(config, "max_position_embeddings", None)
    if rule == "any" or not isinstance(length, int) or length < 1:
        return None
    length -= config.pad_token_id + 1 if rule == "offset positions" else 0
    return length - (stack.part == "decoder")  # the start token


def _start_token(stack: Stack) -> int:
    """What a decoder beside an encoder reads first."""
    names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
    first = (getattr(stack.config, name, None) for name in names)
    return next((int(token) for token in first if token is not None), 0)


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model reads at once, and the tokens that each row of its answer is the mean of.

    Attributes
    ----------
    positions : (n_rows, most)
        Places in the flattened batch.
    counted : (n_rows, most)
        Which of them count; the others are padding.
    """

    batch: Batch
    positions: Ints
    counted: Bools

    def keep(self, stack: Stack) -> Keep:
        """Layer and states → rows (n_rows, n_units), float32."""

        def means(layer: Layer, states: Tensor) -> Tensor:
            flat = text_states(stack, self.batch, states).flatten(0, 1)
            where = (torch.from_numpy(array).to(flat.device) for array in (self.positions, self.counted))
            return mean_over(flat, *where)

        return means


def text_states(stack: Stack, batch: Batch, states: Tensor) -> Tensor:
    """States as (n_sequences, longest, n_units); that of a decoder's start token belongs to no token."""
    n, length = len(batch), batch.width + (stack.part == "decoder")
    if tuple(states.shape[:-1]) not in ((n, length), (n * length,)):
        raise ModelError(
            f"A layer of this {stack.model_type} model answers with shape {tuple(states.shape)} to "
            f"{n} texts of {length} tokens: its states cannot be told apart by tokens. Read it at another "
            "site, or hand over its vectors as arrays (Activations.from_arrays)."
        )
    return states.reshape(n, length, -1)[:, length - batch.width :]


def layer_labels(stack: Stack, site: str, final_norm: bool = False) -> list[Layer]:
    """Layers 0 … L of the residual stream, those of 1 … L that have any other site, and the final norm."""
    if final_norm and stack.final_norm is None:
        raise ModelError(
            f"A {stack.model_type} model has no final norm that we know of: leave out final_norm."
        )
    labels: list[Layer] = list(range(stack.n_blocks + 1))
    if site != "residual":
        labels = [block for block, modules in enumerate(modules_at(stack, site), start=1) if modules]
    return [*labels, FINAL_NORM] if final_norm else labels


def read_layers(
    stack: Stack, inputs: Mapping[str, object], keep: Keep, *, labels: Sequence[Layer], site: str
) -> dict[Layer, Tensor]:
    """Call the model once; what `keep` makes of each of the wanted layers."""
    with recording(stack, keep, site=site, final_norm=FINAL_NORM in labels) as record:
        stack.model(**inputs)
    record.check()
    for label in labels:
        if label not in record.states:
            raise ModelError(
                f"Layer {label!r} of this {stack.model_type} model gave no answer: its module is not in use."
            )
    return {label: record.states[label] for label in labels}


def read_rows(stack: Stack, reading: Reading, *, labels: Sequence[Layer], site: str) -> list[Tensor]:
    """The rows of the wanted layers, (n_rows, n_units) each, in one call of the model."""
    inputs = arguments(stack, reading.batch)
    return list(read_layers(stack, inputs, reading.keep(stack), labels=labels, site=site).values())


def bottom_states(stack: Stack, layers: Iterable[int], batch: Batch) -> dict[int, Tensor]:
    """The states of several layers from one pass without gradients; no block after the last of them runs."""
    with torch.no_grad():
        return states_of(stack, layers, **arguments(stack, batch))


def top_logits(model: nn.Module, stack: Stack, layer: int, states: Tensor, batch: Batch) -> Tensor:
    """The logits of `model` when `states` stand in for its `layer`."""
    with start_from(stack, layer, states.to(next(model.parameters()).dtype)):
        logits: Tensor = model(**arguments(stack, batch, model)).logits
    return logits


@contextmanager
def frozen(*models: nn.Module) -> Iterator[None]:
    """No weight learns and no dropout acts while this lasts; Mamba runs through the fused scan on a CPU."""
    unique = list(dict.fromkeys(models))
    learning = [p for model in unique for p in model.parameters() if p.requires_grad]
    training = [module for model in unique for module in model.modules() if module.training]
    try:
        with ExitStack() as contexts:
            for model in unique:
                model.eval()
                model.requires_grad_(False)
                contexts.enter_context(fused_scan(model))
            yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)
        for module in training:
            module.training = True


@contextmanager
def evaluating(*models: nn.Module) -> Iterator[None]:
    """The same, and no gradients at all."""
    with frozen(*models), torch.inference_mode():
        yield
