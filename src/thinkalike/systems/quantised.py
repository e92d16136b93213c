"""Weights that are not kept as plain floats: which formats are read, with what, and what must come out.

transformers reads a format by the `quantization_config` of a model's configuration, and unpacks the weights
when they are loaded or in each pass. What was tried, and what quantisation does to distances:
docs/bring/models.md.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING

from thinkalike.errors import InvalidInput, MissingExtra, ModelError
from thinkalike.types import Config

if TYPE_CHECKING:
    import torch
    from torch import nn

PACKAGES: dict[str, tuple[str, ...]] = {
    "bitsandbytes": ("bitsandbytes", "accelerate"),
    "compressed-tensors": ("compressed_tensors",),
    "torchao": ("torchao",),
    "fp8": ("accelerate",),
    "mxfp4": ("accelerate",),
}
"""What the formats need that were tried. Of others, transformers says what is missing"""
MISLEADING = {"gptq": ("optimum", "gptqmodel")}
"""What a format needs of which transformers says something else: of the second, that a name is not defined"""
WAY_OUT = "Take its float weights, or a .gguf file of the model."


def quantisation_of(config: Config | None) -> str | None:
    """How the weights of a model are quantised, as its configuration says ("gptq", "bitsandbytes", …)."""
    found = getattr(config, "quantization_config", None)
    if found is None:
        return None
    method = found.get("quant_method") if isinstance(found, Mapping) else getattr(found, "quant_method", None)
    return str(getattr(method, "value", method) or "quantised")


def prepare(config: Config, name: object) -> None:
    """See that the format of a configuration can be read, and ask for floats where that is a choice."""
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    method = quantisation_of(config)
    if method is None:
        return
    # bitsandbytes has one entry for each number of bits.
    if not any(known.startswith(method) for known in AUTO_QUANTIZATION_CONFIG_MAPPING):
        said = "in a format that it does not name, as MLX does" if method == "quantised" else f"by {method!r}"
        raise ModelError(
            f"The weights of {name} are quantised {said}, which transformers does not read. {WAY_OUT}"
        )
    for package in PACKAGES.get(method, ()):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra.needed(package.replace("_", "-"), "quantised")
    lacking = [one for one in MISLEADING.get(method, ()) if importlib.util.find_spec(one) is None]
    if lacking:
        raise ModelError(
            f"The weights of {name} are quantised ({method}), which transformers reads with "
            f"{' and '.join(MISLEADING[method])}: pip install {' '.join(lacking)}. {WAY_OUT}"
        )
    if method == "compressed-tensors":
        # Else they are unpacked when the whole model is first called, and stitching calls its parts.
        config.quantization_config["dequantize"] = True


def class_that_wrote(config: Config) -> str | None:
    """The class that must load the weights, where the base model cannot; None where it can.

    The files of torchao say which tensors they hold by their names in the model that was saved. The base
    model has other names.
    """
    named = getattr(config, "architectures", None)
    return named[0] if named and quantisation_of(config) == "torchao" else None


def unpacked(model: nn.Module, name: object, dtype: torch.dtype | str) -> nn.Module:
    """The model, of which nothing is left packed that should not be, with floats as precise as was asked for.

    A scale that a file lacks leaves its weights packed, and nothing would tell. What comes unpacked, and what
    was never packed, may come in half precision whatever was asked for.
    """
    import torch
    from torch import nn

    for path, module in model.named_modules():
        plain = type(module).__module__.startswith(("torch.", "transformers.models."))
        for kind, weight in module.named_parameters(prefix=path, recurse=False):
            state = getattr(weight, "quant_state", None)  # bitsandbytes may pack the scales in their turn
            if state is not None and not state.nested and not state.absmax.is_floating_point():
                raise _without_scale(name, kind)
            if not plain:
                continue  # it unpacks its own
            if type(weight) is not nn.Parameter:  # of torchao, which unpacks to what it was made of
                if isinstance(dtype, torch.dtype) and weight.dtype != dtype:
                    made_of = str(weight.dtype).removeprefix("torch.")
                    raise ModelError(
                        f"The weights of {name} unpack to {made_of}, and nothing else can run on them: give "
                        f"dtype={made_of!r}."
                    )
                continue
            if weight.element_size() == 1:
                raise _without_scale(name, kind)
            if dtype == torch.float32 and weight.is_floating_point():
                weight.data = weight.data.float()
    return model


def check_in_memory(model: nn.Module) -> None:
    """Refuse a model that unpacks its weights when the whole of it is first called: we call its parts."""
    if any(
        getattr(getattr(module, "quantization_status", None), "value", None) == "compressed"
        for module in model.modules()
    ):
        raise InvalidInput(
            f"The weights of this {type(model).__name__} are still packed (compressed-tensors): give its "
            "folder, or load it with quantization_config=CompressedTensorsConfig(dequantize=True)."
        )


def _without_scale(name: object, tensor: str) -> ModelError:
    return ModelError(f"The weights of {name} lack the scale of {tensor!r}: fetch or save the model again.")
