"""What a step depends on when it depends on a model: its weights, wherever they lie."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def weights_digest(model: nn.Module) -> str:
    """Hex string over names, shapes and values of all parameters and buffers."""
    import torch

    content = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        content.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        content.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return content.hexdigest()
