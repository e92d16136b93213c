"""What a model writes after a prompt: its own next tokens, taken greedily, and read as items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.systems.calling import padding_id
from thinkalike.systems.texts import Sequences
from thinkalike.systems.words import Groups
from thinkalike.types import Tokenizer

AT_ONCE = 32


def continue_prompts(
    model: nn.Module, sequences: Sequences, n_tokens: int, *, pooling: str, name: str, max_length: int | None
) -> Sequences:
    """The same texts with up to `n_tokens` more, which the model wrote; the rows are these tokens.

    Each row of `sequences` must be a text of its own. A text ends where the model ends it.
    """
    if not hasattr(model, "generate") or getattr(model, "get_output_embeddings", lambda: None)() is None:
        raise ModelError(
            f"{name} has no output layer to write with: give a model for causal language modelling, such as "
            "one that AutoModelForCausalLM loads."
        )
    longest = int(sequences.lengths.max())
    if max_length is not None and longest + n_tokens > max_length:
        raise InvalidInput(
            f"The longest prompt has {longest} tokens, and {n_tokens} more are to be written, but {name} "
            f"reads at most {max_length}: shorten the prompts, or write fewer."
        )
    ids = [
        np.concatenate([prompt, written]).astype(np.int32)
        for prompt, written in zip(sequences.ids, _written(model, sequences, n_tokens), strict=True)
    ]
    begins = sequences.lengths[sequences.row_text]
    sizes = np.array([len(ids[text]) for text in sequences.row_text]) - begins
    positions = np.concatenate([np.arange(b, b + n) for b, n in zip(begins, sizes, strict=True)])
    tokens = Groups(positions, np.concatenate([[0], np.cumsum(sizes)]))
    if pooling != "all":
        return replace(sequences, ids=ids, row_tokens=tokens.chosen(pooling))
    row = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(row)) - tokens.bounds[row]
    names = tuple(f"{sequences.rows[i]}/{j}" for i, j in zip(row, within, strict=True))
    return replace(
        sequences,
        ids=ids,
        rows=names,
        row_text=sequences.row_text[row],
        row_tokens=tokens.one_by_one(),
    )


def written_texts(tokenizer: Tokenizer, prompts: Sequences, continued: Sequences) -> list[str]:
    """What the model wrote after each prompt, in the order of the rows of `prompts`."""
    return [
        str(tokenizer.decode(continued.ids[text][len(prompts.ids[text]) :]))
        for text in prompts.row_text.tolist()
    ]


def _written(model: Any, sequences: Sequences, n_tokens: int) -> list[np.ndarray]:
    """The tokens that follow each text; texts of equal length go together, so that nothing is padded."""
    found: list[np.ndarray] = [np.zeros(0, np.int32)] * len(sequences.ids)
    lengths = sequences.lengths
    device = next(model.parameters()).device
    ends = _ends(model)
    for length in np.unique(lengths).tolist():
        texts = np.flatnonzero(lengths == length)
        for part in np.array_split(texts, -(-len(texts) // AT_ONCE)):
            ids = torch.from_numpy(np.stack([sequences.ids[text] for text in part]).astype(np.int64))
            with torch.inference_mode():
                answers = model.generate(
                    input_ids=ids.to(device),
                    attention_mask=torch.ones_like(ids).to(device),
                    do_sample=False,
                    num_beams=1,
                    max_new_tokens=n_tokens,
                    pad_token_id=padding_id(model.config),
                )
            for text, answer in zip(part.tolist(), answers[:, length:].cpu().numpy(), strict=True):
                found[text] = _until(answer, ends)
    return found


def _ends(model: nn.Module) -> Sequence[int]:
    """The tokens that end a text."""
    ends = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    return [] if ends is None else [ends] if isinstance(ends, int) else list(ends)


def _until(answer: np.ndarray, ends: Sequence[int]) -> np.ndarray:
    """Up to the first token that ends the text, with it; what follows is filling."""
    at = np.flatnonzero(np.isin(answer, ends))
    return answer if not len(at) else answer[: at[0] + 1]
