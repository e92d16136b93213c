"""Sequence classifiers over pairs of texts: the tokens, the answers, which of them are right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.recipes.brown2023_generalization.data import Pairs, right_classes
from thinkalike.systems.batch import Batch, Ints, tokenise
from thinkalike.systems.calling import arguments
from thinkalike.systems.stack import layers_of
from thinkalike.systems.system import LoadOptions, open_system
from thinkalike.types import Config, Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import nn

Bools = npt.NDArray[np.bool_]
BATCH = 64
Rows = slice | Ints


@dataclass(frozen=True, eq=False)
class Questions:
    """Pairs as tokens, with the classes that are right."""

    pairs: Pairs
    tokens: Batch = field(repr=False)
    right: torch.Tensor = field(repr=False)
    """bool (n, n_classes)"""

    def __len__(self) -> int:
        return len(self.tokens)

    def logits(self, model: nn.Module, rows: Rows) -> torch.Tensor:
        """What a classifier answers to some of the questions: (n_rows, n_classes)."""
        found: torch.Tensor = model(**self.inputs(model, rows)).logits
        return found

    def inputs(self, model: nn.Module, rows: Rows) -> dict[str, object]:
        """What a classifier is called with for some of the questions."""
        return arguments(layers_of(model), self.tokens.take(rows), model)

    def batches(self, size: int = BATCH) -> Iterator[slice]:
        return (slice(start, min(start + size, len(self))) for start in range(0, len(self), size))

    def first(self, n: int) -> Questions:
        """The first `n` of them."""
        kept = slice(0, n)
        pairs = Pairs(self.pairs.name, self.pairs.texts[kept], self.pairs.labels[kept])
        return Questions(pairs, self.tokens.take(kept), self.right[kept])


def ask(
    pairs: Pairs, *, classes: Sequence[str], tokenizer: Tokenizer, longest: int, device: str = "cpu"
) -> Questions:
    """The tokens of `pairs`, cut at `longest`."""
    import torch

    tokens = tokenise(tokenizer, pairs.texts, length=longest)
    return Questions(pairs, tokens, torch.from_numpy(right_classes(pairs.labels, classes)).to(device))


def sets_of(n: int, sets: int) -> list[slice]:
    """`n` questions as sets of about equal size that share none."""
    if n < sets:
        raise InvalidInput(f"{n} questions cannot make {sets} sets: ask more, or make fewer sets.")
    ends = np.linspace(0, n, sets + 1).round().astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


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
        parts = [questions.logits(model, rows) for rows in questions.batches()]
    return torch.cat(parts)


def right_answers(model: nn.Module, questions: Questions) -> Bools:
    """Which questions a classifier answers right: (n,)."""
    found: Bools = is_right(answers(model, questions), questions.right).cpu().numpy()
    return found


def accuracy(model: nn.Module, questions: Questions) -> float:
    return float(right_answers(model, questions).mean())


def load_classifier(source: str | Path, *, tokenizer: Tokenizer, device: str = "cpu") -> nn.Module:
    """A …ForSequenceClassification model by name or folder, in float32 and ready to run."""
    options = LoadOptions(device=device)
    return open_system(source, options, head="classification", tokenizer=tokenizer).model


def class_names(config: Config, default: Sequence[str]) -> tuple[str, ...]:
    """The names of the classes as the model gives them, or `default` where it only numbers them."""
    names: Mapping[int, str] = getattr(config, "id2label", None) or {}
    given = tuple(str(names[k]).lower() for k in sorted(names))
    return given if sorted(given) == sorted(default) else tuple(default)
