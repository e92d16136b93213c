"""The vectors of another analysis: texts read in another way, other sentences, some of the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from thinkalike.activations.rows import shared_items, subset_activations
from thinkalike.activations.sparse_latents import options_again
from thinkalike.activations.store import Activations
from thinkalike.comparison.analyses import Analysis
from thinkalike.errors import InvalidInput
from thinkalike.stimuli.table import Stimuli

AGAIN = (
    "revision", "part", "untrained", "gguf_file", "pooling", "site", "final_norm", "blocks", "bos",
    "drop_first", "chat", "system_turn", "window", "generate", "dtype", "device", "batch_size",
    "sampling_rate",
)  # fmt: skip
"""What activations say of how they were made that `extract` is told again"""


def read_otherwise(
    stimuli: Stimuli,
    base: Sequence[Activations],
    changes: Mapping[str, object],
    *,
    others: Stimuli | None = None,
    elsewhere: bool = False,
) -> tuple[Stimuli, list[Activations]]:
    """The stimuli and the activations of all systems, read in another way where that has a meaning.

    Parameters
    ----------
    changes : options of `extract`; none for the activations as they are.
    others, elsewhere : other sentences, and whether these are to be read.
    """
    if not changes and not elsewhere:
        return stimuli, list(base)
    if elsewhere and others is None:
        raise InvalidInput("no other sentences were given")
    shown = others if elsewhere and others is not None else stimuli
    lacking = [one.system for one in base if "model" not in one.metadata]
    if elsewhere and lacking:
        raise InvalidInput(f"{lacking[0]} is an array, which no other sentences can be shown to")
    again = [one for one in base if elsewhere or _reads_otherwise(one, changes)]
    if not again:
        raise InvalidInput("no system would read the text otherwise")
    found = [read_again(one, shown, changes) if one in again else one for one in base]
    shared = shared_items(shown, found)
    if shared is None:
        return shown, found
    shown = shown.subset(shared)
    return shown, [subset_activations(one, shown) for one in found]


def _reads_otherwise(one: Activations, changes: Mapping[str, object]) -> bool:
    """Whether a change of reading has a meaning for a system, as far as that is known beforehand."""
    about = one.metadata
    if "model" not in about or not any(name in about for name in changes):
        return False
    beginning = about.get("beginning")
    if set(changes) == {"bos"} and beginning is not None:
        return bool(beginning["unused"] if changes["bos"] else beginning["token"])
    return any(about.get(name) != value for name, value in changes.items())


def read_again(one: Activations, stimuli: Stimuli, changes: Mapping[str, object]) -> Activations:
    from thinkalike.activations import extract

    about = one.metadata
    options = {name: about[name] for name in AGAIN if about.get(name) is not None}
    options |= options_again(about)
    if about.get("seed") is not None:
        options["seed"] = about["seed"]
    return extract(about["model"], stimuli, system=one.system, **{**options, **changes})


def chosen_items(stimuli: Stimuli, one: Analysis) -> npt.NDArray[np.bool_] | None:
    """Which items an analysis looks at; None for all."""
    if one.words == "all" and one.sentences in ("these", "others"):
        return None
    if "sentence" not in stimuli.items:
        raise InvalidInput("the items are not words in sentences")
    kept = np.ones(len(stimuli), dtype=bool)
    if one.words == "not first":
        kept &= ~first_words(stimuli)
    if one.sentences in ("one half", "other half"):
        codes = np.unique(stimuli.items["sentence"].to_numpy(), return_inverse=True)[1]
        half = np.zeros(codes.max() + 1, dtype=bool)
        half[np.random.default_rng(0).permutation(len(half))[: len(half) // 2]] = True
        kept &= half[codes] == (one.sentences == "one half")
    return kept


def first_words(stimuli: Stimuli) -> npt.NDArray[np.bool_]:
    """Which items begin their sentence, for words in sentences."""
    items = stimuli.items
    leads = {name: len(text) - len(text.lstrip()) for name, text in stimuli.sentences.items()}
    return items["start"].to_numpy() == items["sentence"].map(leads).to_numpy()
