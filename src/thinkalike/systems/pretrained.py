"""From a name to configuration, weights and tokenizer, or to an error that says the way out."""

from __future__ import annotations

import importlib.util
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from thinkalike.errors import InvalidInput, MissingExtra, ModelError, ThinkalikeError, UnknownName, one_line
from thinkalike.systems.architectures import ARCHITECTURES
from thinkalike.systems.loading import loading
from thinkalike.systems.names import ModelName
from thinkalike.systems.quantised import WAY_OUT, class_that_wrote, prepare, quantisation_of, unpacked
from thinkalike.systems.stack import Stack, layers_of
from thinkalike.types import Config

if TYPE_CHECKING:
    import torch
    from torch import nn

DTYPES = ("float32", "bfloat16", "float16", "auto")
UNUSED = {"pooler", "masked_spec_embed", "mask_token"}
"""Parts of base models that no layer depends on in evaluation, and that many checkpoints lack"""


def load_config(name: ModelName, *, gguf_file: str | None = None, trust_remote_code: bool = False) -> Config:
    """The model's configuration, with the fields that our table sets.

    What the hub's cache has is taken from there, and the network is not asked.
    """
    from transformers import AutoConfig

    from thinkalike.systems.bundled import solu  # noqa: F401  # makes our own decoder known to the Auto classes

    for package in ("gguf", "accelerate") if gguf_file else ():
        if importlib.util.find_spec(package) is None:
            raise MissingExtra.needed(package, "gguf")
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code, **_gguf(gguf_file)}
    with _explained(name), loading():
        try:
            config = AutoConfig.from_pretrained(**name.files, **options, local_files_only=True)
        except OSError:
            if name.folder is not None:
                raise
            _check_hub_is_known()
            config = AutoConfig.from_pretrained(**name.files, **options)
    row = ARCHITECTURES.get(config.model_type)
    for setting, value in (row.settings if row else {}).items():
        setattr(config, setting, value)
    if name.untrained:
        config.__dict__.pop("quantization_config", None)  # random weights are plain
    prepare(config, name)
    return config


def load_model(
    name: ModelName,
    config: Config,
    *,
    dtype: str = "float32",
    device: str = "cpu",
    device_map: object = None,
    gguf_file: str | None = None,
    trust_remote_code: bool = False,
    seed: int = 0,
    blocks: str | None = None,
) -> Stack:
    """The model in evaluation mode; with `untrained`, its architecture with random weights from `seed`."""
    import torch
    import transformers
    from transformers import AutoModel

    options: dict[str, Any] = {"dtype": torch_dtype(dtype), "trust_remote_code": trust_remote_code}
    if name.untrained:
        with _explained(name), loading(), torch.random.fork_rng():
            torch.manual_seed(seed)
            model = AutoModel.from_config(config, **options)
        return layers_of(model.to(device).eval(), part=name.part, blocks=blocks)
    if device_map is not None:
        if importlib.util.find_spec("accelerate") is None:
            raise MissingExtra.needed("accelerate", "big")
        options["device_map"] = device_map
    loader = getattr(transformers, class_that_wrote(config) or "AutoModel", AutoModel)
    with _explained(name, quantisation_of(config)), loading():
        model, info = loader.from_pretrained(
            **name.files, config=config, output_loading_info=True, **_gguf(gguf_file), **options
        )
    model = (model if device_map is not None else model.to(device)).eval()
    stack = layers_of(model, part=name.part, blocks=blocks)
    _check_complete(name, model, stack.model, info["missing_keys"])
    unpacked(model, name, options["dtype"])
    return stack


def load_headed(
    name: ModelName,
    config: Config,
    auto_class: str,
    *,
    dtype: str = "float32",
    device: str = "cpu",
    gguf_file: str | None = None,
    trust_remote_code: bool = False,
    seed: int = 0,
) -> nn.Module:
    """The model with the output layer of `auto_class`, such as "AutoModelForCausalLM", ready to run.

    Weights that lack the output layer are refused: it would be random, and nothing would tell.
    """
    import torch
    import transformers

    loader = getattr(transformers, auto_class)
    options: dict[str, Any] = {"dtype": torch_dtype(dtype), "trust_remote_code": trust_remote_code}
    with _for_the_task(name, config, auto_class), _explained(name, quantisation_of(config)), loading():
        if name.untrained:
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                return loader.from_config(config, **options).to(device).eval()
        model, info = loader.from_pretrained(
            **name.files, config=config, output_loading_info=True, **_gguf(gguf_file), **options
        )
    if info["missing_keys"]:
        raise ModelError(
            f"The weights of {name} lack {sorted(info['missing_keys'])[0]!r}, which {auto_class} needs: "
            "they were saved without that output layer. Give a model that was trained for this task."
        )
    return unpacked(model.to(device).eval(), name, options["dtype"])


def load_processor(
    name: ModelName, kind: str, *, gguf_file: str | None = None, trust_remote_code: bool = False
) -> Any:
    """The model's own tokenizer ("text"), image processor ("image") or feature extractor ("audio")."""
    import transformers

    loader: Any = {
        "text": transformers.AutoTokenizer,
        "image": transformers.AutoImageProcessor,
        "audio": transformers.AutoFeatureExtractor,
    }[kind]
    with _explained(name), loading():
        return loader.from_pretrained(**name.files, trust_remote_code=trust_remote_code, **_gguf(gguf_file))


def torch_dtype(dtype: str) -> torch.dtype | str:
    import torch

    if dtype not in DTYPES:
        raise UnknownName.among("dtype", dtype, DTYPES)
    found: torch.dtype | str = dtype if dtype == "auto" else getattr(torch, dtype)
    return found


def pick_device(device: str | None) -> str:
    """The device that was asked for and never another; if none was, a GPU where there is one."""
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InvalidInput(f"device={device!r} was asked for, but torch sees no GPU: use device='cpu'.")
    try:
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InvalidInput(f"device={device!r} cannot compute here: use cpu. ({one_line(error)})") from error
    return device


def _check_complete(name: ModelName, model: nn.Module, called: nn.Module, missing: Iterable[str]) -> None:
    """Refuse a checkpoint that lacks weights of the part that is called: they would be random, and silent."""
    lacking = set(missing)
    used = {id(tensor) for tensor in called.state_dict(keep_vars=True).values()}
    lost = [
        key
        for key, tensor in model.state_dict(keep_vars=True).items()
        if key in lacking and id(tensor) in used and not UNUSED & set(key.split("."))
    ]
    if lost:
        raise ModelError(
            f"The weights of {name} lack {len(lost)} of its tensors, such as {lost[0]!r}: the files do not "
            "belong to this configuration, or are not all there. Fetch or save the model again."
        )


def _gguf(gguf_file: str | None) -> dict[str, str]:
    return {} if gguf_file is None else {"gguf_file": gguf_file}


def _check_hub_is_known() -> None:
    """Raise at once where the hub's name cannot be looked up: its client would retry for half a minute."""
    from huggingface_hub import constants

    host = urllib.parse.urlparse(constants.ENDPOINT).hostname
    if constants.HF_HUB_OFFLINE or urllib.request.getproxies() or host is None:
        return  # the client knows better
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        raise OSError(f"{host} cannot be reached") from error


@contextmanager
def _for_the_task(name: ModelName, config: Config, auto_class: str) -> Iterator[None]:
    """Say of an architecture that it cannot do the task, where transformers lists all that can."""
    try:
        yield
    except ModelError as error:
        if "Unrecognized configuration class" not in str(error.__cause__):
            raise
        raise ModelError(
            f"{name} is a {config.model_type} model, of which there is none with the output layer that "
            f"{auto_class} loads: give a model that was trained for this task."
        ) from error


@contextmanager
def _explained(name: ModelName, quantised: str | None = None) -> Iterator[None]:
    """Turn what transformers and the hub raise into one line that says the way out."""
    try:
        yield
    except ThinkalikeError:
        raise
    except Exception as error:  # what comes of a damaged file depends on where it is damaged
        reason = one_line(error)
        if quantised is not None:
            if "automatic conversion of the weights" in reason:  # a table follows, which is not shown
                reason = "Tensors of this format are not all there: fetch or save the model again"
            raise ModelError(
                f"{name} cannot be loaded: its weights are quantised ({quantised}). {reason}. {WAY_OUT}"
            ) from error
        if name.folder is not None:
            raise ModelError(
                f"{name} cannot be loaded from {name.folder}: {reason}. Check its files, or save it again."
            ) from error
        raise ModelError(
            f"{name} cannot be loaded: it is no folder, no bundled model, and not to be had from the hub "
            f"or its cache ({reason.partition('. ')[0]}). Offline, give the path of a local folder that "
            "holds config.json and the weights."
        ) from error
