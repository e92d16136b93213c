"""Identity stitching of all pairs of classifiers at all layers (Figures 2a and 7): no φ, nothing learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.recipes.brown2023_generalization.classifiers import Questions, is_right
from thinkalike.systems.calling import bottom_states, top_logits
from thinkalike.systems.stack import layers_of

if TYPE_CHECKING:
    from torch import nn


Bools = npt.NDArray[np.bool_]


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
    models: Mapping[str, nn.Module],
    questions: Questions,
    rows: slice,
    layers: Sequence[int],
    wanted: Bools | None = None,
) -> Floats:
    """Accuracy of top_{>l} ∘ bottom_{≤l} on some questions: (n_layers, n_bottoms, n_tops).

    Every bottom runs once; a top runs from layer l on with the states of all its bottoms in one batch.

    Parameters
    ----------
    wanted : (n_bottoms, n_tops) which pairs to stitch, all if not given; the others are NaN.
    """
    import torch

    tokens = questions.tokens.take(rows)
    stacks = [layers_of(model) for model in models.values()]
    # One pass per bottom. Of its layers those are kept that are asked for.
    states = [bottom_states(stack, layers, tokens) for stack in stacks]
    n_models, n_rows = len(stacks), len(tokens)
    asked = np.ones((n_models, n_models), dtype=bool) if wanted is None else wanted
    found = np.full((len(layers), n_models, n_models), np.nan)
    for place, layer in enumerate(layers):
        for top, (model, stack) in enumerate(zip(models.values(), stacks, strict=True)):
            bottoms = np.flatnonzero(asked[:, top])
            entering = torch.cat([states[bottom][layer] for bottom in bottoms])
            with torch.no_grad():
                logits = top_logits(model, stack, layer, entering, tokens.repeated(len(bottoms)))
            right = is_right(logits, questions.right[rows].repeat(len(bottoms), 1))
            found[place, bottoms, top] = right.view(-1, n_rows).double().mean(1).cpu().numpy()
    return found


def penalties(accuracies: Floats) -> Floats:
    """Own accuracy of the top − accuracy of the stitched model, from (…, n_bottoms, n_tops).

    A model's own accuracy stands on the diagonal, for a model stitched with itself is that model.
    """
    own = np.diagonal(accuracies, axis1=-2, axis2=-1)  # (…, n_tops)
    return own[..., None, :] - accuracies
