"""Where the bundled models are, and how to load them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from thinkalike.errors import UnknownName
from thinkalike.systems.loading import loading

if TYPE_CHECKING:
    from transformers import (
        AutoModelForCausalLM,
        AutoModelForMaskedLM,
        PreTrainedModel,
        PreTrainedTokenizerBase,
    )

WEIGHTS = Path(__file__).parent / "weights"
SAMPLE = Path(__file__).parent / "sample.txt"
SAMPLE_BASELINES = Path(__file__).parent / "sample_baselines.npz"


def names(*, revisions: bool = False) -> tuple[str, ...]:
    """The bundled models, in the order of their families; with `revisions`, `NAME@stepN` as well.

    Parameters
    ----------
    revisions : also the checkpoints of the training that come with some models

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from thinkalike.systems import bundled
    >>> bundled.names()[:3]
    ('nano-bert', 'nano-gpt2', 'nano-mamba')
    """
    found = sorted(folder.name for folder in WEIGHTS.glob("*") if (folder / "config.json").exists())
    # The three architectures first, then their other seeds and positions, then the families.
    order = ("bert", "gpt2", "mamba", "bert-", "gpt2-", "mamba-", "gelu-", "solu-", "pythia-")

    def place(name: str) -> tuple[int, tuple[int, ...], str]:
        _, family, *rest = name.replace("@step", "-").split("-")
        group = f"{family}-" if rest else family
        numbers = tuple(int(part) for part in rest if part.isdigit())
        return order.index(group) if group in order else len(order), numbers, name

    return tuple(name for name in sorted(found, key=place) if revisions or "@" not in name)


def resolve(name: str, revision: str | None = None) -> Path | None:
    """The folder of a bundled model, `NAME` or `NAME@REVISION`; None if the name is not one of ours.

    Parameters
    ----------
    name : of a bundled model, or anything else
    revision : "main", the model itself, or "stepN"; what the name says when None

    Returns
    -------
    Path or None

    Examples
    --------
    >>> from thinkalike.systems import bundled
    >>> bundled.resolve("nano-pythia-64", "step1000").name
    'nano-pythia-64@step1000'
    >>> bundled.resolve("gpt2") is None
    True
    """
    base, _, inside = name.partition("@")
    revision = revision or inside or "main"
    known = names(revisions=True)
    if base not in known:
        return None
    wanted = base if revision == "main" else f"{base}@{revision}"
    if wanted not in known:
        offered = ["main", *(other.partition("@")[2] for other in known if other.startswith(f"{base}@"))]
        raise UnknownName.among(f"revision of {base}", revision, offered)
    return WEIGHTS / wanted


def load(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A bundled model in float32, ready to run (`eval`), and its tokenizer.

    Parameters
    ----------
    name : in `names(revisions=True)`

    Returns
    -------
    model, tokenizer

    Examples
    --------
    >>> from thinkalike.systems import bundled
    >>> model, tokenizer = bundled.load("nano-gpt2")
    >>> model.training, len(tokenizer)
    (False, 4096)
    """
    folder = resolve(name)
    if folder is None:
        raise UnknownName.among("bundled model", name, names(revisions=True))
    return load_folder(folder)


def load_folder(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model of a folder with the head it was trained with, in float32, and its tokenizer."""
    import torch
    from transformers import AutoTokenizer

    import thinkalike.systems.bundled.solu  # noqa: F401  registers the decoder

    with loading():
        model = model_class(folder).from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    return model.eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)


def model_class(folder: Path) -> type[AutoModelForMaskedLM | AutoModelForCausalLM]:
    """The Auto class with the head that the folder's weights were trained with."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    architectures = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"]
    return AutoModelForMaskedLM if "MaskedLM" in architectures[0] else AutoModelForCausalLM


def sample_text() -> Path:
    """A file of English prose that no bundled model was trained on: a paragraph a line, public domain.

    Returns
    -------
    Path

    Examples
    --------
    >>> from thinkalike.systems import bundled
    >>> bundled.sample_text().suffix
    '.txt'
    """
    return SAMPLE
