"""A vector per item and layer, from any model or array: in memory, in stores, from elsewhere."""

from __future__ import annotations

from thinkalike.activations.store import Activations
from thinkalike.lazy import loader

_HOMES = {
    "extract": "thinkalike.activations.extraction",
    "from_epochs": "thinkalike.activations.brain_files",
    "from_nifti": "thinkalike.activations.brain_files",
    "from_rsatoolbox": "thinkalike.activations.brain_files",
    "latents": "thinkalike.activations.sparse_latents",
    "Latents": "thinkalike.activations.sparse_latents",
    "SparseAutoencoder": "thinkalike.activations.autoencoders",
    "load_autoencoder": "thinkalike.activations.autoencoders",
}

__all__ = [
    "Activations",
    "Latents",
    "SparseAutoencoder",
    "extract",
    "from_epochs",
    "from_nifti",
    "from_rsatoolbox",
    "latents",
    "load_autoencoder",
]


__getattr__ = loader(__name__, _HOMES)
