"""`trace`: a model over its training, checkpoint by checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pandas as pd

from thinkalike.activations.conversion import activations_of, check_extraction, named_systems
from thinkalike.errors import InvalidInput
from thinkalike.options import one_name
from thinkalike.populations.diffing import (
    LEVEL,
    PartedStrengths,
    parted_strengths,
    plan_changes,
    strength_changes,
)
from thinkalike.saving import Kept
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Chart, Facts


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Kept):
    """Strengths of features over training; made by `thinkalike.trace`.

    Attributes
    ----------
    checkpoints : names, in the order of training
    steps : of each, as its name says, or 0, 1, 2, …
    strengths : DataFrame, one row per checkpoint, layer and feature
    changes : DataFrame, one row per step from one checkpoint to the next, layer and feature, with tests;
        Holm's correction is within each step

    Examples
    --------
    >>> import pandas as pd
    >>> from thinkalike.populations import Trace
    >>> row = {"from": "m@1", "to": "m@2", "layer": 3, "feature": "tense", "p_holm": 0.001}
    >>> Trace(("m@1", "m@2"), (1.0, 2.0), pd.DataFrame(), pd.DataFrame([row])).changed()["layer"].item()
    3
    """

    checkpoints: tuple[str, ...]
    steps: tuple[float, ...]
    strengths: pd.DataFrame = field()
    changes: pd.DataFrame = field()

    def __repr__(self) -> str:
        return f"Trace({', '.join(self.checkpoints)})"

    def to_frame(self) -> pd.DataFrame:
        """One row per checkpoint, layer and feature."""
        return self.strengths.copy()

    def changed(self) -> pd.DataFrame:
        """What changed from one checkpoint to the next, beyond chance."""
        return self.changes[self.changes["p_holm"] <= LEVEL].reset_index(drop=True)

    def places_for_steps(self) -> str:
        """What to write where some names have a step and others do not, and so none is used; else nothing."""
        without = [name for name in self.checkpoints if _step(name) is None]
        if not 0 < len(without) < len(self.checkpoints):
            return ""
        return (
            f"{without[0]} names no step, so checkpoints stand at 0, 1, 2, …: "
            f"write last@step5000={without[0]}, with its own number."
        )

    def plot(self, *, theme: str = "light") -> Chart:
        """A line for every feature over training, one picture a layer."""
        from thinkalike.populations.charts import trace_chart

        return trace_chart(self.strengths, theme=theme)


@one_name
def trace(
    checkpoints: Sequence[object] | Mapping[str, object],
    stimuli: Stimuli | None = None,
    *,
    extraction: Facts | None = None,
    seed: int = 0,
) -> Trace:
    """How the strengths of features change over training.

    Parameters
    ----------
    checkpoints : two or more, in the order of training: MODEL@REVISION by name, activations, or a mapping of
        names to either. The number in a revision is its step; where not all have one, it is their place.
    stimuli : what all are shown; 200 sentences of the default grammar when None.
    extraction, seed : options of `extract`; of everything that is drawn.

    Returns
    -------
    Trace

    Examples
    --------
    >>> import thinkalike as ta
    >>> shown = ta.Stimuli.from_grammar(40, seed=0)
    >>> found = ta.trace(["nano-pythia-64@step250", "nano-pythia-64@step1000"], shown)
    >>> found.steps, sorted(set(found.strengths["layer"]))
    ((250.0, 1000.0), [0, 1, 2])
    """
    stimuli = Stimuli.from_grammar(seed=seed) if stimuli is None else stimuli
    named = named_systems(checkpoints)
    if len(named) < 2:
        raise InvalidInput(f"Got {len(named)} checkpoint: a line needs two or more.")
    check_extraction(extraction, named.values())
    found = {name: activations_of(one, stimuli, extraction or {}, name) for name, one in named.items()}
    layers = {one.layers for one in found.values()}
    if len(layers) > 1:
        raise InvalidInput("The checkpoints have different layers: give those of one model.")
    steps = _steps(tuple(found))
    plan = plan_changes(stimuli, seed=seed)
    parted = {name: parted_strengths(one, plan) for name, one in found.items()}
    rows = [
        {"checkpoint": name, "step": step, "layer": layer, "feature": feature, "strength": value}
        for (name, one), step in zip(parted.items(), steps, strict=True)
        for layer, values in one.whole.items()
        for feature, value in zip(one.features, values, strict=True)
    ]
    return Trace(tuple(found), steps, pd.DataFrame(rows), changes_along(parted))


def changes_along(parted: Mapping[str, PartedStrengths]) -> pd.DataFrame:
    """The changes from each checkpoint to the next, Holm's correction within each step."""
    changes = [
        strength_changes(parted[a], parted[b]).assign(**{"from": a, "to": b}) for a, b in pairwise(parted)
    ]
    return pd.concat(changes, ignore_index=True)


def _steps(names: Sequence[str]) -> tuple[float, ...]:
    """The numbers of the revisions where all have one, else their places."""
    found = [_step(name) for name in names]
    numbers = [one for one in found if one is not None]
    return tuple(numbers) if len(numbers) == len(names) else tuple(float(k) for k in range(len(names)))


def _step(name: str) -> float | None:
    found = re.search(r"@\D*(\d+)$", name)
    return None if found is None else float(found.group(1))
