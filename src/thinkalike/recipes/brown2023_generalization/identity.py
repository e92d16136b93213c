"""Identity stitching of all pairs of classifiers at all layers (Figures 2a and 7): no φ, nothing learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.recipes.brown2023_generalization.classifiers import Questions, is_right
from thinkalike.systems.calling import bottom_states, top_logits
from thinkalike.systems.stack import layers_of

if TYPE_CHECKING:
    from torch import nn


Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def common_depth(models: Mapping[str, nn.Module]) -> int:
    """The number of blocks that all models have; identity stitching needs it to be one number."""
    depths = {name: layers_of(model).n_blocks for name, model in models.items()}
    if len(set(depths.values())) > 1:
        few, many = min(depths, key=depths.__getitem__), max(depths, key=depths.__getitem__)
        raise InvalidInput(
            f"{few} has {depths[few]} blocks and {many} has {depths[many]}: identity stitching at equal "
            "depth needs models of one shape."
        )
    return next(iter(depths.values()))


def stitched_right(
    models: Mapping[str, nn.Module], questions: Questions, rows: slice, layers: Sequence[int]
) -> Bools:
    """Which answers of top_{>l} ∘ bottom_{≤l} are right: (n_layers, n_bottoms, n_tops, n_rows).

    Every bottom runs once; a top runs from layer l on with the states of all bottoms in one batch.
    """
    import torch

    tokens = questions.tokens.take(rows)
    stacks = [layers_of(model) for model in models.values()]
    # One pass per bottom. Of its layers those are kept that are asked for.
    states = [bottom_states(stack, layers, tokens) for stack in stacks]
    n_models, n_rows = len(stacks), len(tokens)
    right = questions.right[rows].repeat(n_models, 1)
    found = np.zeros((len(layers), n_models, n_models, n_rows), dtype=bool)
    for place, layer in enumerate(layers):
        entering = torch.cat([own[layer] for own in states])
        for top, (model, stack) in enumerate(zip(models.values(), stacks, strict=True)):
            with torch.no_grad():
                logits = top_logits(model, stack, layer, entering, tokens.repeated(n_models))
            found[place, :, top] = is_right(logits, right).view(n_models, n_rows).cpu().numpy()
    return found


def penalties(accuracies: Floats) -> Floats:
    """Own accuracy of the top − accuracy of the stitched model, from (n_layers, n_bottoms, n_tops).

    A model's own accuracy stands on the diagonal, for a model stitched with itself is that model.
    """
    own = np.diagonal(accuracies, axis1=1, axis2=2)  # (n_layers, n_tops)
    return own[:, None, :] - accuracies
