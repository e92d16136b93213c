"""The two models of a stitch, opened with their output layers, and whether they fit together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.stimuli.text import same_tokenizer
from thinkalike.systems.architectures import ARCHITECTURES
from thinkalike.systems.calling import n_embeddings
from thinkalike.systems.heads import Task
from thinkalike.systems.stack import parts_of
from thinkalike.systems.system import LoadOptions, System, check_same_tokens, open_system
from thinkalike.types import Config, Tokenizer

if TYPE_CHECKING:
    from torch import nn


def open_pair(
    bottom: str | Path | nn.Module,
    top: str | Path | nn.Module,
    options: LoadOptions,
    *,
    names: tuple[str, str] | None = None,
    task: Task | None = None,
    tokenizer: Tokenizer | None = None,
) -> tuple[System, System]:
    """Both models; one that stands on both sides is loaded once."""
    head: Task | Literal["own"] = task or "own"
    first, second = names or (None, None)
    below = _opened(bottom, options, name=first, head=head, tokenizer=tokenizer)
    if bottom is top or (isinstance(bottom, (str, Path)) and str(bottom) == str(top)):
        return below, below
    above = _opened(top, options, name=second, head=head, tokenizer=tokenizer)
    if below.name == above.name:  # two models in memory, which have only their class for a name
        below, above = (
            replace(below, name=f"{below.name} (bottom)"),
            replace(above, name=f"{above.name} (top)"),
        )
    check_pair(below, above)
    return below, above


def check_pair(bottom: System, top: System) -> None:
    """Refuse two models that do not read the same tokens, or that are made for different tasks."""
    check_same_tokens(
        [bottom, top],
        "stitching needs a shared tokenizer. Compare them with CKA instead (thinkalike cka --level word).",
    )
    known = [n_embeddings(system.stack) for system in (bottom, top)]
    if known[0] != known[1] and not (_knows_own_tokens(bottom) and _knows_own_tokens(top)):
        raise InvalidInput(
            f"{bottom.name} knows {known[0]} tokens and {top.name} {known[1]}: they do not share the "
            "tokenizer that was given, as stitching needs. Compare them with CKA instead."
        )
    if "masked" in (bottom.task, top.task) and bottom.task != top.task:
        raise InvalidInput(
            f"{bottom.name} is a {bottom.task} and {top.name} a {top.task} model: one reads what the other "
            "must not see. Stitch two of one kind, or compare them with CKA instead."
        )


def _opened(model: str | Path | nn.Module, options: LoadOptions, **how: Any) -> System:
    """Encoder-decoders, images and sounds have no running text that goes through one stack of blocks."""
    if not isinstance(model, (str, Path)):
        _refuse_others(getattr(model, "config", None), type(model).__name__)
    system = open_system(model, options, **how)
    _refuse_others(system.config, system.name)
    own = _own_tokenizer(system)
    if system.tokenizer_given is not None and own is not None and not same_tokenizer(own, system.tokenizer):
        raise InvalidInput(
            f"The tokenizer that was given is not that of {system.name}: its tokens mean something else "
            "there. Leave out tokenizer=."
        )
    return system


def _knows_own_tokens(system: System) -> bool:
    """Whether the tokenizer is known to be its own; of a model in memory nobody knows what was given."""
    return system.tokenizer_given is None or _own_tokenizer(system) is not None


def _own_tokenizer(system: System) -> Tokenizer | None:
    """The tokenizer that lies beside the weights; None where there is none, or no folder."""
    if system.folder is None:
        return None
    try:
        return replace(system, tokenizer_given=None).tokenizer
    except ModelError:
        return None


def _refuse_others(config: Config | None, name: str) -> None:
    model_type = getattr(config, "model_type", name)
    row = ARCHITECTURES.get(model_type)
    kind = "encoder-decoder" if row is None and parts_of(config) else getattr(row, "kind", None)
    if kind in ("encoder-decoder", "vision", "speech", "two towers"):
        what = "an encoder-decoder" if kind == "encoder-decoder" else f"a {kind} model"
        raise InvalidInput(
            f"{name} is {what} ({model_type}): ta.stitch reads text with causal and "
            "masked language models and sequence classifiers. Run it through stitching.StitchedModel with "
            "inputs of your own."
        )
