"""Output layers: what a model predicts, and how transformers calls the class that does it."""

from __future__ import annotations

from typing import Literal

from thinkalike.errors import InvalidInput
from thinkalike.systems.architectures import ARCHITECTURES
from thinkalike.types import Config

Task = Literal["causal", "masked", "classification"]
HEADS: dict[str, str] = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "classification": "AutoModelForSequenceClassification",
}
# What transformers calls a class says what its output layer is for.
_ENDINGS: dict[str, Task] = {
    "ForMaskedLM": "masked",
    "ForPreTraining": "masked",
    "ForSequenceClassification": "classification",
    "ForCausalLM": "causal",
    "LMHeadModel": "causal",
}
_BY_KIND: dict[str, Task] = {"decoder": "causal", "state space": "causal", "encoder": "masked"}


def task_of(class_name: str, config: Config | None) -> Task:
    """What a model of this class predicts; where the name of the class does not say, what its kind does."""
    for ending, task in _ENDINGS.items():
        if class_name.endswith(ending):
            return task
    row = ARCHITECTURES.get(getattr(config, "model_type", ""))
    if row is not None and row.kind in _BY_KIND:
        return _BY_KIND[row.kind]
    raise InvalidInput(
        f"{class_name or 'This model'} does not say what its output layer predicts: give "
        f"task='causal', 'masked' or 'classification'."
    )
