"""Images and sounds: through the model's own processor, then one vector per item.

Only inputs of equal shape go through the model together, so nothing is ever padded beyond what the processor
itself does (Whisper's always fills up thirty seconds; the filling is left out of the mean).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from thinkalike.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image as Picture

POOLINGS = ("mean", "cls", "last")


def process(processor: Any, one: object, *, kind: str, sampling_rate: int | None) -> dict[str, torch.Tensor]:
    """One image or sound as the model wants it, with a leading axis of length 1.

    `one` is an array, a picture, or the path of an image file. Sounds are arrays of samples; without a
    `sampling_rate` they are taken to have the rate that the model was trained on.
    """
    try:
        if kind == "image":
            prepared = processor(images=_image(one), return_tensors="pt")
        else:
            prepared = processor(
                np.asarray(one, dtype=np.float32),
                sampling_rate=sampling_rate or processor.sampling_rate,
                return_attention_mask=True,
                return_tensors="pt",
            )
    except ValueError as error:
        raise InvalidInput(
            f"The processor does not take this {kind}: {str(error).splitlines()[0]}"
        ) from error
    return dict(prepared)


def _image(one: object) -> Picture:
    """An RGB picture: grey ones get three equal channels, as models are trained on three."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra.needed("pillow", "vision") from error
    if isinstance(one, (str, os.PathLike)):
        with Image.open(one) as file:
            return file.convert("RGB")
    if isinstance(one, Image.Image):
        return one.convert("RGB")
    array = np.asarray(one)
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, axis=2)
    if array.ndim != 3 or array.shape[2] not in (3, 4):
        raise InvalidInput(
            f"An image has shape {array.shape}: expected (height, width) or (height, width, 3)."
        )
    if array.dtype != np.uint8:
        if array.min() < 0 or array.max() > 1:
            raise InvalidInput(
                f"An image of dtype {array.dtype} has values from {array.min():g} to {array.max():g}: "
                "give bytes from 0 to 255, or floats from 0 to 1."
            )
        array = np.round(array * 255).astype(np.uint8)
    return Image.fromarray(array[:, :, :3])


def equal_shapes(prepared: Sequence[Mapping[str, torch.Tensor]]) -> list[list[int]]:
    """Group inputs by the shapes of their tensors, in the order in which the shapes first come."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, inputs in enumerate(prepared):
        shapes = tuple((name, tuple(tensor.shape)) for name, tensor in sorted(inputs.items()))
        groups.setdefault(shapes, []).append(i)
    return list(groups.values())


def as_positions(states: torch.Tensor, *, channels_first: bool) -> torch.Tensor:
    """Hidden states as (batch, position, units)."""
    if states.ndim == 4:
        return states.flatten(2).transpose(1, 2) if channels_first else states.flatten(1, 2)
    return states


def filled_positions(mask: torch.Tensor | None, n_positions: int) -> torch.Tensor | None:
    """Which positions come from the signal rather than from the filling: (batch, n_positions), or None.

    The mask of the processor is finer than the states, by the stride of the convolutions between them.
    """
    if mask is None or mask.shape[1] < n_positions:
        return None
    stride = mask.shape[1] // n_positions
    return mask[:, ::stride][:, :n_positions].bool()


def pool_positions(states: torch.Tensor, filled: torch.Tensor | None, pooling: str) -> torch.Tensor:
    """(batch, position, units) → (batch, units), in float32."""
    import torch

    states = states.to(torch.float32)
    if pooling == "cls":
        return states[:, 0]
    if filled is None:
        return states.mean(1) if pooling == "mean" else states[:, -1]
    if pooling == "last":
        return states[torch.arange(len(states), device=states.device), filled.sum(1) - 1]
    weights = filled.to(states.dtype)[:, :, None]
    return (states * weights).sum(1) / weights.sum(1)
