"""What goes through the model at once, and which rows of the answer come out of it.

A source cuts its rows into chunks, a chunk into groups of inputs, and turns a group into one `Pass`.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from thinkalike.errors import ModelError
from thinkalike.systems import signals
from thinkalike.systems.architectures import Stack
from thinkalike.systems.hooks import Keep, Layer
from thinkalike.systems.plan import Plan, check_batch_size
from thinkalike.systems.texts import Sequences
from thinkalike.systems.words import Ints, mean_over

if TYPE_CHECKING:
    import torch

SIGNALS_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class Pass:
    """One call of the model.

    Attributes
    ----------
    inputs
        The keyword arguments of the call.
    places
        Where in the chunk the rows belong that come out.
    keep
        Layer and hidden states as the model has them → (n_places, n_units), float32.
    """

    inputs: dict[str, Any]
    places: Ints
    keep: Keep


class Source(Protocol):
    """Rows in the order in which they are computed."""

    rows: tuple[str, ...]
    order: Ints
    chunk_rows: int

    def groups(self, chunk: int) -> list[Ints]: ...

    def prepare(self, chunk: int, group: Ints) -> Pass: ...


def n_chunks(source: Source) -> int:
    return -(-len(source.order) // source.chunk_rows)


class TextSource:
    """Texts as right-padded token ids, longest first."""

    def __init__(self, sequences: Sequences, plan: Plan, stack: Stack) -> None:
        self.sequences, self.plan, self.stack = sequences, plan, stack
        self.device = next(stack.model.parameters()).device
        self.rows, self.order, self.chunk_rows = sequences.rows, plan.order, plan.chunk_rows
        self.accepted = set(inspect.signature(stack.model.forward).parameters)
        self.pad = padding_id(stack.config)
        check_tokens(stack, np.concatenate(sequences.ids))

    def groups(self, chunk: int) -> list[Ints]:
        return self.plan.passes(chunk)

    def prepare(self, chunk: int, group: Ints) -> Pass:
        import torch

        rows = self.plan.rows(chunk)
        length = int(self.plan.lengths[group].max())
        offset_of_text = np.full(len(self.plan.lengths), -1)
        offset_of_text[group] = np.arange(len(group)) * length
        offsets = offset_of_text[self.sequences.row_text[rows]]
        places = np.flatnonzero(offsets >= 0)
        positions, mask = self.sequences.row_tokens.padded(rows[places])
        where = torch.from_numpy(positions + offsets[places, None]), torch.from_numpy(mask)

        def keep(layer: Layer, states: torch.Tensor) -> torch.Tensor:
            shape, n_tokens = tuple(states.shape), len(group) * length
            if shape[:-1] not in ((len(group), length), (n_tokens,)):
                raise ModelError(
                    f"A layer of this {self.stack.model_type} model answers with shape {shape} to "
                    f"{len(group)} texts of {length} tokens: its states cannot be told apart by tokens."
                )
            flat = states.reshape(n_tokens, -1)
            return mean_over(flat, *(tensor.to(states.device) for tensor in where))

        return Pass(self._arguments([self.sequences.ids[text] for text in group]), places, keep)

    def _arguments(self, ids: Sequence[np.ndarray]) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        if self.stack.part == "decoder":
            # The encoder reads the text, the decoder a start token and then the same text.
            arguments |= self._padded([tokens[1:] for tokens in ids])
            arguments |= {f"decoder_{name}": tensor for name, tensor in self._padded(ids).items()}
        else:
            arguments |= self._padded(ids)
        if not self.stack.architecture.reads_mask or "attention_mask" not in self.accepted:
            arguments.pop("attention_mask")
        if "use_cache" in self.accepted:
            arguments["use_cache"] = False
        return arguments

    def _padded(self, ids: Sequence[np.ndarray]) -> dict[str, torch.Tensor]:
        import torch

        lengths = np.array([len(tokens) for tokens in ids])
        mask = np.arange(lengths.max()) < lengths[:, None]
        filled = np.full(mask.shape, self.pad, dtype=np.int64)
        filled[mask] = np.concatenate(ids)
        return {
            "input_ids": torch.from_numpy(filled).to(self.device),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)).to(self.device),
        }


class SignalSource:
    """Images or sounds, processed chunk by chunk; those of equal shape go together."""

    def __init__(
        self,
        rows: Sequence[str],
        inputs: Sequence[Any],
        *,
        kind: str,
        processor: Any,
        pooling: str,
        sampling_rate: int | None,
        batch_size: int | str,
        stack: Stack,
    ) -> None:
        self.rows, self.inputs = tuple(rows), inputs
        self.kind, self.processor, self.sampling_rate = kind, processor, sampling_rate
        self.pooling, self.stack = pooling, stack
        self.order = np.arange(len(self.rows))
        at_once = SIGNALS_AT_ONCE if batch_size == "auto" else check_batch_size(batch_size)
        self.chunk_rows = min(at_once, len(self.rows))
        self._prepared: tuple[int, list[dict[str, Any]]] = (-1, [])

    def groups(self, chunk: int) -> list[Ints]:
        places = signals.equal_shapes(self._process(chunk))
        return [np.array(group) for group in places]

    def prepare(self, chunk: int, group: Ints) -> Pass:
        import torch

        prepared = self._process(chunk)
        batch = {name: torch.cat([prepared[i][name] for i in group]) for name in prepared[group[0]]}
        mask = batch.pop("attention_mask", None)
        like = next(self.stack.model.parameters())
        inputs = {
            name: tensor.to(like) if tensor.is_floating_point() else tensor.to(like.device)
            for name, tensor in batch.items()
        }

        def keep(layer: Layer, states: torch.Tensor) -> torch.Tensor:
            states = signals.as_positions(states, channels_first=self.stack.architecture.channels_first)
            filled = signals.filled_positions(mask, states.shape[1])
            filled = None if filled is None else filled.to(states.device)
            return signals.pool_positions(states, filled, self.pooling)

        return Pass(inputs, group, keep)

    def _process(self, chunk: int) -> list[dict[str, Any]]:
        if self._prepared[0] != chunk:
            begin = chunk * self.chunk_rows
            prepared = [
                signals.process(self.processor, one, kind=self.kind, sampling_rate=self.sampling_rate)
                for one in self.inputs[begin : begin + self.chunk_rows]
            ]
            self._prepared = chunk, prepared
        return self._prepared[1]


def check_tokens(stack: Stack, ids: Ints) -> None:
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


def padding_id(config: Any) -> int:
    """The token to pad with: the model's own (RoBERTa counts positions by it) if it has one, else any."""
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    pad = getattr(text_config, "pad_token_id", None)
    n_tokens = getattr(text_config, "vocab_size", None)
    in_range = isinstance(pad, int) and pad >= 0 and (n_tokens is None or pad < n_tokens)
    return int(pad) if in_range else 0  # type: ignore[arg-type]
