"""The barrier of the loss on the straight line between two classifiers (Frankle et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.labels import Floats
from thinkalike.recipes.brown2023_generalization.classifiers import Questions, loss_of

if TYPE_CHECKING:
    from torch import nn

BETWEEN = (0.25, 0.5, 0.75)


def losses_between(
    a: nn.Module, b: nn.Module, questions: Questions, shares: Sequence[float] = BETWEEN
) -> Floats:
    """The mean loss at (1 − s)·θ_a + s·θ_b, head and all, for each share s."""
    import torch
    from torch.func import functional_call

    first, second = dict(a.named_parameters()), dict(b.named_parameters())
    found = []
    with torch.no_grad():
        for share in shares:
            mixed = {name: torch.lerp(first[name], second[name], share) for name in first}
            parts = [
                loss_of(
                    functional_call(a, mixed, (), questions.inputs(a, rows)).logits, questions.right[rows]
                )
                for rows in questions.batches()
            ]
            found.append(float(torch.cat(parts).mean()))
    return np.array(found)


def barrier(losses: Floats, shares: Sequence[float] = (0.0, *BETWEEN, 1.0)) -> float:
    """max_s L(s) − ((1 − s)·L(0) + s·L(1)): how far the loss rises above the straight line; at least 0."""
    along = np.asarray(shares)
    line = (1 - along) * losses[0] + along * losses[-1]
    return float((losses - line).max())


def barriers(
    models: Mapping[str, nn.Module], questions: Questions, wanted: npt.NDArray[np.bool_] | None = None
) -> Floats:
    """Between all pairs of models, or those `wanted`: (m, m), symmetric, 0 on the diagonal, else NaN."""
    from thinkalike.progress import progress

    every = list(models.values())
    ends = [losses_between(model, model, questions, (0.0,))[0] for model in every]
    found = np.full((len(every), len(every)), np.nan)
    np.fill_diagonal(found, 0.0)
    pairs = [(i, j) for i, j in combinations(range(len(every)), 2) if wanted is None or wanted[i, j]]
    with progress("barriers", len(pairs)) as step:
        for i, j in pairs:
            between = losses_between(every[i], every[j], questions)
            found[i, j] = found[j, i] = barrier(np.array([ends[i], *between, ends[j]]))
            step.advance()
    return found
