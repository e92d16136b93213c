"""Identity stitching of all pairs of classifiers at all layers (Figures 2a and 7): no φ, nothing learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.recipes.brown2023_generalization.classifiers import Questions, is_right
from thinkalike.systems.architectures import layers_of

if TYPE_CHECKING:
    import torch
    from torch import nn

    from thinkalike.systems.architectures import Stack

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

    from thinkalike.stitching.model import bottom_states

    inputs = questions.inputs(rows)
    stacks = [layers_of(model) for model in models.values()]
    # One pass per bottom. Of its layers those are kept that are asked for.
    states = [bottom_states(stack, set(layers), inputs) for stack in stacks]
    n_models, n_rows = len(stacks), len(inputs["input_ids"])
    right = questions.right[rows].repeat(n_models, 1)
    found = np.zeros((len(layers), n_models, n_models, n_rows), dtype=bool)
    for place, layer in enumerate(layers):
        entering = torch.cat([own[layer] for own in states])
        for top, (model, stack) in enumerate(zip(models.values(), stacks, strict=True)):
            logits = _from_layer(model, stack, layer, entering, inputs, n_models)
            found[place, :, top] = is_right(logits, right).view(n_models, n_rows).cpu().numpy()
    return found


def _from_layer(
    model: nn.Module,
    stack: Stack,
    layer: int,
    states: torch.Tensor,
    inputs: Mapping[str, torch.Tensor],
    n_copies: int,
) -> torch.Tensor:
    """The logits of `model` when `states` of `n_copies` bottoms stand in for its layer."""
    import torch

    from thinkalike.stitching.model import top_output

    repeated = {name: value.repeat(n_copies, 1) for name, value in inputs.items()}
    with torch.no_grad():
        return top_output(model, stack, layer, states, repeated)


def penalties(accuracies: Floats) -> Floats:
    """Own accuracy of the top − accuracy of the stitched model, from (n_layers, n_bottoms, n_tops).

    A model's own accuracy stands on the diagonal, for a model stitched with itself is that model.
    """
    own = np.diagonal(accuracies, axis1=1, axis2=2)  # (n_layers, n_tops)
    return own[:, None, :] - accuracies
