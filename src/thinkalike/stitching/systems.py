"""Models with their output layers, opened for stitching: what each predicts, and whether two fit together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thinkalike.errors import InvalidInput, ModelError, UnknownName

if TYPE_CHECKING:
    from torch import nn

    from thinkalike.systems.architectures import Stack
    from thinkalike.systems.subject import Subject

Task = Literal["causal", "masked", "classification"]
HEADS: dict[str, str] = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "classification": "AutoModelForSequenceClassification",
}
# What transformers calls a class says what its output layer is for.
_ENDINGS = {
    "ForMaskedLM": "masked",
    "ForPreTraining": "masked",
    "ForSequenceClassification": "classification",
    "ForCausalLM": "causal",
    "LMHeadModel": "causal",
}
_BY_KIND = {"decoder": "causal", "state space": "causal", "encoder": "masked"}


@dataclass(frozen=True, eq=False)
class System:
    """A loaded model with its output layer.

    Attributes
    ----------
    model
        With the output layer: what gives logits.
    knows_own_tokens
        Whether the tokenizer is known to be its own; of a model in memory nobody knows what was given.
    stack
        Its blocks.
    max_length
        How many tokens it reads; None for any number.
    about
        Where it came from.
    identity
        () → a digest of configuration and weights.
    """

    name: str
    model: nn.Module
    stack: Stack
    task: Task
    tokenizer: Any
    knows_own_tokens: bool
    max_length: int | None
    about: dict[str, Any]
    identity: Callable[[], str]


def open_system(
    model: str | Path | nn.Module,
    *,
    name: str | None = None,
    task: Task | None = None,
    tokenizer: Any = None,
    device: str | None = None,
    dtype: str = "float32",
    seed: int = 0,
) -> System:
    """Load a model by name, or take one that is loaded, with the output layer for its task."""
    from thinkalike.stimuli.text import same_tokenizer
    from thinkalike.systems.architectures import layers_of
    from thinkalike.systems.subject import context_length, in_memory

    if task is not None and task not in HEADS:
        raise UnknownName.among("task", task, HEADS)
    if isinstance(model, (str, Path)):
        loaded, shown, task = _load(model, task, device, dtype, seed)
    else:
        loaded, shown = model, None
    _refuse_others(loaded, shown)
    stack = layers_of(loaded)
    subject = in_memory(loaded, part=None, untrained=False, seed=seed, blocks=None)
    own = subject.processor("text") if tokenizer is None else _tokenizer_of_folder(subject)
    if tokenizer is not None and own is not None and not same_tokenizer(own, tokenizer):
        raise InvalidInput(
            f"The tokenizer that was given is not that of {name or shown or subject.system}: its tokens mean "
            "something else there. Leave out tokenizer=."
        )
    return System(
        name=name or shown or subject.system,
        model=loaded,
        stack=stack,
        task=task or _task_of(type(loaded).__name__, stack.architecture.kind),
        tokenizer=tokenizer or own,
        knows_own_tokens=own is not None,
        max_length=context_length(stack),
        about={**subject.about, "model": shown or subject.system},
        identity=subject.identity,
    )


def _tokenizer_of_folder(subject: Subject) -> Any:
    """The tokenizer that lies beside the weights; None where there is none, or no folder."""
    if not Path(subject.about["model"]).is_dir():
        return None
    try:
        return subject.processor("text")
    except ModelError:
        return None


def untrained_copy(system: System, *, seed: int) -> System:
    """The same architecture with random weights."""
    from thinkalike.systems.architectures import layers_of
    from thinkalike.systems.subject import random_copy

    model = random_copy(system.model, seed=seed)
    return replace(
        system, name=f"{system.name}:untrained", model=model, stack=layers_of(model, part=system.stack.part)
    )


def check_pair(bottom: System, top: System) -> None:
    """Refuse two models that do not read the same tokens, or that are made for different tasks."""
    from thinkalike.stimuli.text import same_tokenizer
    from thinkalike.systems.passes import n_embeddings

    if not same_tokenizer(bottom.tokenizer, top.tokenizer):
        sizes = f"{len(bottom.tokenizer)} against {len(top.tokenizer)} tokens"
        raise InvalidInput(
            f"{bottom.name} and {top.name} split text differently ({sizes}): stitching needs a shared "
            "tokenizer. Compare them with CKA instead (thinkalike cka --level word)."
        )
    known = [n_embeddings(system.stack) for system in (bottom, top)]
    if known[0] != known[1] and not (bottom.knows_own_tokens and top.knows_own_tokens):
        raise InvalidInput(
            f"{bottom.name} knows {known[0]} tokens and {top.name} {known[1]}: they do not share the "
            "tokenizer that was given, as stitching needs. Compare them with CKA instead."
        )
    if "masked" in (bottom.task, top.task) and bottom.task != top.task:
        raise InvalidInput(
            f"{bottom.name} is a {bottom.task} and {top.name} a {top.task} model: one reads what the other "
            "must not see. Stitch two of one kind, or compare them with CKA instead."
        )


def _load(
    model: str | Path, task: Task | None, device: str | None, dtype: str, seed: int
) -> tuple[nn.Module, str, Task]:
    from thinkalike.systems.architectures import ARCHITECTURES
    from thinkalike.systems.loading import load_config, load_headed, pick_device
    from thinkalike.systems.names import parse_name

    name = parse_name(model)
    config = load_config(name)
    _refuse_others(config, str(name))
    row = ARCHITECTURES.get(config.model_type)
    saved_as = (getattr(config, "architectures", None) or [""])[0]
    task = task or _task_of(saved_as, row.kind if row else "unknown")
    # Its commit, where the hub gave one, so that the weights belong to the configuration.
    name = replace(name, commit=getattr(config, "_commit_hash", None), part=None)
    loaded = load_headed(name, config, HEADS[task], dtype=dtype, device=pick_device(device), seed=seed)
    return loaded, str(name), task


def _task_of(class_name: str, kind: str) -> Task:
    for ending, task in _ENDINGS.items():
        if class_name.endswith(ending):
            return task  # type: ignore[return-value]
    if kind in _BY_KIND:
        return _BY_KIND[kind]  # type: ignore[return-value]
    raise InvalidInput(
        f"{class_name or 'This model'} does not say what its output layer predicts: give "
        f"task='causal', 'masked' or 'classification'."
    )


def _refuse_others(model: Any, name: str | None) -> None:
    """Encoder-decoders, images and sounds have no running text that goes through one stack of blocks."""
    from thinkalike.systems.architectures import ARCHITECTURES

    config = getattr(model, "config", model)
    model_type = getattr(config, "model_type", type(model).__name__)
    row = ARCHITECTURES.get(model_type)
    two_stacks = row.two_stacks if row else getattr(config, "is_encoder_decoder", False)
    if two_stacks or (row is not None and row.kind in ("vision", "speech")):
        what = "an encoder-decoder" if two_stacks else f"a {row.kind} model" if row else "no language model"
        raise InvalidInput(
            f"{name or type(model).__name__} is {what} ({model_type}): ta.stitch reads text with causal and "
            "masked language models and sequence classifiers. Run it through stitching.StitchedModel with "
            "inputs of your own."
        )
