"""How likely a model finds text: the log-probabilities of its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from thinkalike.systems.mamba.selective_scan import fused_scan

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONTEXT = 256  # tokens that a window holds
STRIDE = CONTEXT // 2  # every token but those at the start is predicted from at least this many
ROWS = 16


def causal_log_probabilities(model: PreTrainedModel, ids: np.ndarray) -> np.ndarray:
    """log P(token | up to 255 before it) for every token of the stream but the first, of shape (n − 1,).

    Windows of 256 overlap by half, and a token counts in the one where it has the longer context.
    """
    scores = np.empty(len(ids) - 1)
    for starts, inputs in windows(ids[:-1].astype(np.int64), STRIDE):
        targets = ids.astype(np.int64)[starts[:, None] + 1 + np.arange(inputs.shape[1])]
        chosen = chosen_log_probabilities(model, inputs, targets)
        for start, row in zip(starts, chosen, strict=True):
            skip = STRIDE if start else 0
            scores[start + skip : start + len(row)] = row[skip:]
    return scores


def windows(
    ids: np.ndarray, stride: int, *, length: int = CONTEXT
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of windows: where each starts, and its ids; the last, shorter one comes alone."""
    last = max(0, -(-(len(ids) - length) // stride))
    full = np.arange(last) * stride
    for k in range(0, last, ROWS):
        starts = full[k : k + ROWS]
        yield starts, ids[starts[:, None] + np.arange(length)]
    yield np.array([last * stride]), ids[None, last * stride :]


@torch.inference_mode()
def chosen_log_probabilities(model: PreTrainedModel, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """log P(target) at every position, of the shape of `inputs`."""
    with fused_scan(model):
        logits = model(input_ids=torch.from_numpy(inputs)).logits
    log_probabilities = logits.log_softmax(-1)
    return log_probabilities.gather(-1, torch.from_numpy(targets)[..., None])[..., 0].double().numpy()
