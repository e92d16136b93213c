"""Sparse autoencoders: the residual stream as a few active latents out of many.

Weights come in two common layouts, each a folder with `cfg.json` beside a safetensors file: that of SAELens
(`W_enc`, `b_enc`, `b_dec`, for JumpReLU also `threshold`) and that of EleutherAI's sparsify
(`encoder.weight`, `encoder.bias`, `b_dec`, and k in the configuration).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput, ModelError, one_line
from thinkalike.foreign_json import parse_json
from thinkalike.options import whole_number
from thinkalike.types import Json

Floats32 = npt.NDArray[np.float32]
CONFIG = "cfg.json"
SAELENS = ("standard", "jumprelu", "topk")
NORMS = ("none", "expected_average_only_in")
"""What SAELens does to states first, as far as we can: the second is folded into the weights"""


@dataclass(frozen=True, eq=False)
class SparseAutoencoder:
    """The half of a sparse autoencoder that reads: states (n, n_units) → latents (n, n_latents).

    f(x) = σ((x − c) W + b), where σ is ReLU, ReLU above a threshold of each latent (JumpReLU), or ReLU of the
    k largest (top-k).

    Attributes
    ----------
    weights : (n_units, n_latents)
    bias : (n_latents,)
    centre : (n_units,)
        Taken from the states first.
    threshold : (n_latents,), optional
    k : optional
    name
        Where it came from.

    Examples
    --------
    >>> import numpy as np
    >>> sae = SparseAutoencoder(np.eye(2, dtype="f4"), np.zeros(2, "f4"), np.zeros(2, "f4"), k=1)
    >>> sae.encode(np.array([[1.0, 3.0], [-1.0, -2.0]], dtype="f4")).tolist()
    [[0.0, 3.0], [0.0, 0.0]]
    """

    weights: Floats32 = field(repr=False)
    bias: Floats32 = field(repr=False)
    centre: Floats32 = field(repr=False)
    threshold: Floats32 | None = field(default=None, repr=False)
    k: int | None = None
    name: str = "autoencoder"

    def __post_init__(self) -> None:
        if self.weights.ndim != 2:
            raise ModelError(
                f"The weights of {self.name} have shape {self.weights.shape}, where (n_units, n_latents) was "
                "expected: the file is of another layout."
            )
        n_units, n_latents = self.weights.shape
        shapes = {"bias": (n_latents,), "centre": (n_units,), "threshold": (n_latents,)}
        for part, shape in shapes.items():
            found = getattr(self, part)
            if found is not None and found.shape != shape:
                raise ModelError(
                    f"The {part} of {self.name} has shape {found.shape}, where its weights "
                    f"{self.weights.shape} need {shape}: the file is not whole, or of another layout."
                )
        for part in ("weights", *shapes):
            found = getattr(self, part)
            if found is not None and not np.isfinite(found).all():
                raise ModelError(f"The {part} of {self.name} hold values that are not finite.")
        if self.k is not None:
            object.__setattr__(self, "k", whole_number(f"k of {self.name}", self.k, 1))

    @property
    def n_units(self) -> int:
        """The width of the residual stream that it reads."""
        return int(self.weights.shape[0])

    @property
    def n_latents(self) -> int:
        """How many latents it has."""
        return int(self.weights.shape[1])

    def encode(self, states: Floats32) -> Floats32:
        """The latents of some states, (n, n_latents), most of them 0."""
        raw = (states - self.centre) @ self.weights + self.bias
        kept = raw > (0 if self.threshold is None else np.maximum(self.threshold, 0))
        if self.k is not None and self.k < self.n_latents:
            least = np.partition(raw, -self.k, axis=1)[:, [-self.k]]
            kept &= raw >= least
        return np.where(kept, raw, np.float32(0))


def load_autoencoder(path: str | Path) -> SparseAutoencoder:
    """Read an autoencoder from its folder, or its safetensors file.

    Parameters
    ----------
    path
        A folder with one safetensors file and `cfg.json`, as SAELens and sparsify write it; or the file.

    Returns
    -------
    SparseAutoencoder

    Examples
    --------
    >>> import torch
    >>> from safetensors.torch import save_file
    >>> made = {"W_enc": torch.ones(3, 8), "b_enc": torch.zeros(8), "b_dec": torch.zeros(3)}
    >>> save_file(made, "sae_weights.safetensors")
    >>> load_autoencoder("sae_weights.safetensors").n_latents
    8
    """
    file = _weights_file(Path(path))
    tensors, config = _tensors(file), _config(file.parent / CONFIG)
    if "W_enc" in tensors:
        return _of_saelens(tensors, config, file)
    if "encoder.weight" in tensors:
        return _of_sparsify(tensors, config, file)
    raise ModelError(
        f"{file} holds {', '.join(sorted(tensors)[:5])}: neither W_enc (SAELens) nor encoder.weight "
        "(sparsify) is among them, so it is no sparse autoencoder that we can read."
    )


def _of_saelens(tensors: Mapping[str, Floats32], config: dict[str, Any], file: Path) -> SparseAutoencoder:
    _need(tensors, ("W_enc", "b_enc", "b_dec"), file)
    kind = config.get("architecture", "jumprelu" if "threshold" in tensors else "standard")
    activation = config.get("activation_fn", config.get("activation_fn_str", "relu"))
    normed = config.get("normalize_activations") or "none"
    k = config.get("k", (config.get("activation_fn_kwargs") or {}).get("k"))
    if kind not in SAELENS or activation not in ("relu", "topk") or normed not in NORMS:
        raise ModelError(
            f"{file} is of a kind that we cannot read (architecture {kind!r}, activation {activation!r}, "
            f"normalize_activations {normed!r}): give one of {', '.join(SAELENS)} on states as they are."
        )
    top = kind == "topk" or activation == "topk"
    if top and k is None:
        raise ModelError(f"{file} keeps the k largest latents, and {CONFIG} beside it does not say k.")
    if kind == "jumprelu":
        _need(tensors, ("threshold",), file)
    centre = tensors["b_dec"] if config.get("apply_b_dec_to_input", True) else np.zeros_like(tensors["b_dec"])
    return SparseAutoencoder(
        weights=tensors["W_enc"],
        bias=tensors["b_enc"],
        centre=centre,
        threshold=tensors["threshold"] if kind == "jumprelu" else None,
        k=k if top else None,
        name=str(file),
    )


def _of_sparsify(tensors: Mapping[str, Floats32], config: dict[str, Any], file: Path) -> SparseAutoencoder:
    _need(tensors, ("encoder.weight", "encoder.bias", "b_dec"), file)
    if config.get("activation", "topk") != "topk" or "k" not in config:
        raise ModelError(
            f"{file} needs {CONFIG} beside it that says k, how many latents are kept, for activation topk."
        )
    transcodes = bool(config.get("transcode", False))
    return SparseAutoencoder(
        weights=np.ascontiguousarray(tensors["encoder.weight"].T),
        bias=tensors["encoder.bias"],
        centre=np.zeros_like(tensors["b_dec"]) if transcodes else tensors["b_dec"],
        k=config["k"],
        name=str(file),
    )


def _need(tensors: Mapping[str, Floats32], names: tuple[str, ...], file: Path) -> None:
    lacking = [name for name in names if name not in tensors]
    if lacking:
        raise ModelError(f"{file} lacks {', '.join(lacking)}: it is not whole, or of another layout.")


def _weights_file(path: Path) -> Path:
    if path.is_file():
        return path
    found = sorted(path.glob("*.safetensors"))
    # SAELens keeps statistics of the training in a file of its own.
    found = [file for file in found if file.name != "sparsity.safetensors"]
    if len(found) != 1:
        what = f"There are {len(found)} safetensors files in" if path.is_dir() else "There is nothing at"
        raise InvalidInput(f"{what} {path}: give the safetensors file of the autoencoder.")
    return found[0]


def _tensors(file: Path) -> dict[str, Floats32]:
    from safetensors.torch import load_file

    try:
        return {name: tensor.float().numpy() for name, tensor in load_file(file).items()}
    except Exception as error:  # of safetensors, or of the system
        raise ModelError(
            f"{file} cannot be read as safetensors ({one_line(error)}): give the weights that SAELens or "
            "sparsify saved, or their folder."
        ) from error


def _config(file: Path) -> Json:
    if not file.is_file():
        return {}
    found = parse_json(file.read_text(encoding="utf-8", errors="replace"), str(file))
    kept = found.get("activation_fn_kwargs") if isinstance(found, dict) else found
    if not isinstance(found, dict) or not isinstance(kept, dict | None):
        raise ModelError(f"{file} holds no settings of an autoencoder: they are names with values.")
    return found
