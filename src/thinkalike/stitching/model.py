"""Running two models as one: the bottom of one, φ, the top of the other. Only φ learns."""

from __future__ import annotations

import torch
from torch import nn

from thinkalike.systems.architectures import Part
from thinkalike.systems.calling import accepted
from thinkalike.systems.inject import start_from, states_at
from thinkalike.systems.mamba.selective_scan import fused_scan
from thinkalike.systems.stack import layers_of


class StitchedModel(nn.Module):
    """top_{>m} ∘ φ ∘ bottom_{≤l}, for any two architectures of the table and any inputs that they take.

    The bottom's embeddings and blocks up to `layer_bottom`, φ, the top's blocks after `layer_top`, its final
    norm and its output layer. Blocks that are not used do not run. Both models are set to evaluation and
    their weights frozen; gradients reach φ only.

    Parameters
    ----------
    bottom, top
        Models, the top with its output layer.
    layer_bottom, layer_top
        0 stands for the embeddings, L for the answer of the last block.
    phi
        (…, width of the bottom) → (…, width of the top); the identity if not given.
    part
        Which stack of an encoder-decoder to stitch.

    Examples
    --------
    The first layer of one bundled model under the last two of another, as they are:

    >>> import torch
    >>> from thinkalike.stitching import StitchedModel
    >>> from thinkalike.systems import bundled
    >>> gelu, solu = bundled.load("nano-gelu-3l")[0], bundled.load("nano-solu-3l")[0]
    >>> stitched = StitchedModel(gelu, solu, 1, 1)
    >>> stitched(input_ids=torch.tensor([[5, 6, 7]])).logits.shape[:2]
    torch.Size([1, 3])
    """

    def __init__(
        self,
        bottom: nn.Module,
        top: nn.Module,
        layer_bottom: int,
        layer_top: int,
        phi: nn.Module | None = None,
        *,
        part: Part | None = None,
    ) -> None:
        super().__init__()
        self.bottom, self.top = bottom, top
        self.phi = nn.Identity() if phi is None else phi
        self.layer_bottom, self.layer_top = layer_bottom, layer_top
        self._stacks = layers_of(bottom, part=part), layers_of(top, part=part)
        for model in (bottom, top):
            model.requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> StitchedModel:
        """Train φ only: dropout stays off in the two models."""
        super().train(False)
        self.phi.train(mode)
        return self

    def forward(self, **inputs: object) -> object:
        """What the top answers, as it answers by itself."""
        bottom, top = self._stacks
        with fused_scan(self.bottom), torch.no_grad():
            states = states_at(bottom, self.layer_bottom, **accepted(bottom, bottom.model, inputs))
        with fused_scan(self.top), start_from(top, self.layer_top, self.phi(states)):
            return self.top(**accepted(top, self.top, inputs))
