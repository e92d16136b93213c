"""Sequence classifiers over pairs of texts: the tokens, the answers, which of them are right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from thinkalike.recipes.brown2023_generalization.data import Pairs, right_classes

if TYPE_CHECKING:
    import torch
    from torch import nn

Bools = npt.NDArray[np.bool_]
BATCH = 64


@dataclass(frozen=True, eq=False)
class Questions:
    """Pairs as tokens, with the classes that are right."""

    pairs: Pairs
    ids: torch.Tensor = field(repr=False)
    """(n, length), right-padded"""
    mask: torch.Tensor = field(repr=False)
    segments: torch.Tensor | None = field(repr=False)
    right: torch.Tensor = field(repr=False)
    """bool (n, n_classes)"""

    def __len__(self) -> int:
        return len(self.ids)

    def inputs(self, rows: torch.Tensor | slice) -> dict[str, torch.Tensor]:
        """What a model is called with, no wider than its longest row."""
        width = int(self.mask[rows].sum(1).max())
        found = {"input_ids": self.ids[rows, :width], "attention_mask": self.mask[rows, :width]}
        return found | ({} if self.segments is None else {"token_type_ids": self.segments[rows, :width]})

    def batches(self, size: int = BATCH) -> Iterator[slice]:
        return (slice(start, min(start + size, len(self))) for start in range(0, len(self), size))


def ask(
    pairs: Pairs, *, classes: Sequence[str], tokenizer: Any, longest: int, device: str = "cpu"
) -> Questions:
    """The tokens of `pairs`, cut at `longest`."""
    import torch

    encoded = tokenizer(
        [premise for premise, _ in pairs.texts],
        [hypothesis for _, hypothesis in pairs.texts],
        truncation=True,
        max_length=longest,
        padding=True,
        return_tensors="pt",
    ).to(device)
    right = torch.from_numpy(right_classes(pairs.labels, classes)).to(device)
    return Questions(
        pairs, encoded["input_ids"], encoded["attention_mask"], encoded.get("token_type_ids"), right
    )


def loss_of(logits: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """−log of the probability of the right classes together: (n,)."""
    import torch

    every = torch.logsumexp(logits, -1)
    return every - torch.logsumexp(logits.masked_fill(~right, float("-inf")), -1)


def is_right(logits: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Whether the likeliest class is a right one: bool (n,)."""
    return right.gather(-1, logits.argmax(-1, keepdim=True))[..., 0]


def answers(model: nn.Module, questions: Questions) -> torch.Tensor:
    """Logits (n, n_classes), without gradients."""
    import torch

    model.eval()
    with torch.no_grad():
        parts = [model(**questions.inputs(rows)).logits for rows in questions.batches()]
    return torch.cat(parts)


def accuracy(model: nn.Module, questions: Questions) -> float:
    return float(is_right(answers(model, questions), questions.right).float().mean())


def load_classifier(source: str | Path, *, tokenizer: Any, device: str = "cpu") -> nn.Module:
    """A …ForSequenceClassification model by name or folder, in float32 and ready to run."""
    from thinkalike.stitching.systems import open_system

    return open_system(source, task="classification", tokenizer=tokenizer, device=device).model


def class_names(config: Any, default: Sequence[str]) -> tuple[str, ...]:
    """The names of the classes as the model gives them, or `default` where it only numbers them."""
    names: Mapping[int, str] = getattr(config, "id2label", None) or {}
    given = tuple(str(names[k]).lower() for k in sorted(names))
    return given if sorted(given) == sorted(default) else tuple(default)
