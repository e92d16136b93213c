"""What a model is shown: words in texts, whole texts, images or sounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.table import Stimuli
from thinkalike.systems.fingerprints import fingerprint_inputs, fingerprint_texts


@dataclass(frozen=True)
class ModelInputs:
    """What the model is shown: texts in `stimuli`, or images or sounds in `inputs`, one per item."""

    stimuli: Stimuli
    inputs: Sequence[object] | None
    has_digest: bool

    @property
    def fingerprint(self) -> str:
        texts = fingerprint_texts(self.stimuli)
        return texts if self.inputs is None else f"{texts}:{fingerprint_inputs(self.inputs)}"


def as_model_inputs(stimuli: Stimuli | Sequence[object], inputs: Sequence[object] | None) -> ModelInputs:
    """Make items of what was given. A string is a text; anything else is an image or a sound."""
    if isinstance(stimuli, Stimuli):
        if inputs is not None and len(inputs) != len(stimuli):
            raise InvalidInput(f"There are {len(inputs)} inputs for {len(stimuli)} items: give one for each.")
        return ModelInputs(stimuli, inputs, has_digest=True)
    if inputs is not None:
        raise InvalidInput("Give the inputs either as stimuli, or beside `Stimuli` that describe them.")
    if isinstance(stimuli, str) or not hasattr(stimuli, "__len__") or not len(stimuli):
        raise InvalidInput("The stimuli are `Stimuli`, or a list of texts, images or sounds, at least one.")
    ids = pd.Index([str(i) for i in range(len(stimuli))])
    no_features = pd.DataFrame(index=ids)
    if not isinstance(stimuli[0], str):
        return ModelInputs(Stimuli(no_features), stimuli, has_digest=False)
    texts = pd.Series(list(stimuli), index=ids)
    items = pd.DataFrame({"sentence": ids, "word": texts, "start": 0, "end": texts.str.len()}, index=ids)
    return ModelInputs(Stimuli(no_features, items=items, sentences=texts), None, has_digest=True)
