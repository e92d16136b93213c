"""`diff`: what changed from a model to its child, layer against the same layer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from thinkalike.activations.conversion import check_extraction, is_model, name_of, open_activations
from thinkalike.activations.store import Activations
from thinkalike.comparison.layer_similarity import similarity
from thinkalike.comparison.profiling import plan_profiles, profile
from thinkalike.errors import InvalidInput
from thinkalike.labels import Layer, find_row
from thinkalike.options import one_name
from thinkalike.populations.layer_changes import parted_strengths, plan_changes, strength_changes
from thinkalike.saving import Kept
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Chart, Facts
from thinkalike.wording import layer_range, listed, readable

LEVEL = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Kept):
    """How far each layer moved, and which features gained or lost; made by `thinkalike.diff`.

    Attributes
    ----------
    layers : DataFrame, one row per layer: τ_w, RSA and CKA between the two states, each with its range
    features : DataFrame, one row per layer and feature, see `strength_changes`
    base, tuned : names

    Examples
    --------
    >>> import pandas as pd
    >>> from thinkalike.populations import Difference
    >>> row = {"layer": 3, "feature": "tense", "change": 1.2, "p_holm": 0.001}
    >>> print(Difference("base", "chat", pd.DataFrame(), pd.DataFrame([row])))
    From base to chat tense (layer 3) gained strength.
    """

    base: str
    tuned: str
    layers: pd.DataFrame = field()
    features: pd.DataFrame = field()

    def __repr__(self) -> str:
        return f"Difference({self.base} → {self.tuned}: {len(self.layers)} layers)"

    def to_frame(self) -> pd.DataFrame:
        """One row per layer and feature: its strength before and after, the change, its range and p."""
        return self.features.copy()

    def plot(self, *, theme: str = "light") -> Chart:
        """How the strength of every feature changed, with its range, one picture a layer."""
        from thinkalike.populations.charts import change_chart

        return change_chart(self, theme=theme)

    def changed(self) -> pd.DataFrame:
        """The features and layers whose strength changed, with 5 % for one false finding among them all."""
        return self.features[self.features["p_holm"] <= LEVEL].reset_index(drop=True)

    def __str__(self) -> str:
        """What gained and what lost, in one sentence."""
        return f"From {self.base} to {self.tuned} {changes_in_words(self.changed())}."


def changes_in_words(changed: pd.DataFrame) -> str:
    """Which features gained strength and which lost it, each with its layers.

    Examples
    --------
    >>> found = pd.DataFrame({"layer": [2, 3], "feature": ["tense", "tense"], "change": [0.1, 0.2]})
    >>> changes_in_words(found)
    'tense (layers 2–3) gained strength'
    """
    said = []
    for verb, rows in (("gained", changed[changed["change"] > 0]), ("lost", changed[changed["change"] < 0])):
        named = [
            f"{readable(str(feature))} ({layer_range(list(some['layer']))})"
            for feature, some in rows.groupby("feature", sort=False)
        ]
        if named:
            said.append(f"{listed(named)} {verb} strength")
    return "; ".join(said) or "no feature gained or lost strength beyond chance"


@one_name
def diff(
    base: str | os.PathLike[str] | Activations | Mapping[object, object] | np.ndarray,
    tuned: str | os.PathLike[str] | Activations | Mapping[object, object] | np.ndarray,
    stimuli: Stimuli | None = None,
    *,
    extraction: Facts | None = None,
    base_extraction: Facts | None = None,
    tuned_extraction: Facts | None = None,
    resamples: int = 20,
    seed: int = 0,
) -> Difference:
    """What changed from a model to its child: layer i against layer i, by features and by geometry.

    Parameters
    ----------
    base, tuned : models by name, their activations, or mappings of layers to arrays.
    stimuli : what both are shown; 200 sentences of the default grammar when None.
    extraction, base_extraction, tuned_extraction : options of `extract` for both, and what is different for
        one of them: `tuned_extraction={"chat": True}` shows the child each text in its chat template.
    resamples, seed : for the range of τ_w; of everything that is drawn.

    Returns
    -------
    Difference

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import thinkalike as ta
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"size": rng.choice(["small", "large"], 80), "live": rng.choice(list("yn"), 80)})
    >>> X = rng.normal(size=(80, 6))
    >>> grown = X + 3 * (table["size"] == "large").to_numpy()[:, None]
    >>> print(ta.diff({1: X}, {1: grown}, ta.Stimuli.from_table(table), resamples=2))
    From base to tuned size (layer 1) gained strength.
    """
    check_extraction(extraction, (base, tuned))
    check_extraction(base_extraction, (base,))
    check_extraction(tuned_extraction, (tuned,))
    stimuli = Stimuli.from_grammar(seed=seed) if stimuli is None else stimuli
    first, second = (
        activations_of(one, stimuli, {**(extraction or {}), **(own or {})}, name)
        for one, own, name in ((base, base_extraction, "base"), (tuned, tuned_extraction, "tuned"))
    )
    if first.system == second.system:
        second = replace(second, system=f"{second.system} (tuned)")
    if first.layers != second.layers:
        raise InvalidInput(
            f"{first.system} has {len(first.layers)} layers and {second.system} {len(second.layers)}, or "
            "layers of other names: a layer of one has no partner in the other. Use ta.compare."
        )
    plan = plan_changes(stimuli, seed=seed)
    changes = strength_changes(*(parted_strengths(one, plan) for one in (first, second)))
    return Difference(first.system, second.system, _moved(first, second, stimuli, resamples, seed), changes)


def _moved(
    first: Activations, second: Activations, stimuli: Stimuli, resamples: int, seed: int
) -> pd.DataFrame:
    """How alike a layer and the same layer of the other are, by features and by geometry."""
    plan = plan_profiles(stimuli, resamples=resamples, seed=seed)
    profiles = [profile(one, stimuli, plan=plan) for one in (first, second)]
    matrices = {"tau": similarity(profiles)}
    for measure in ("rsa", "cka"):
        matrices[measure] = similarity([first, second], measure=measure, stimuli=stimuli, n_permutations=0)
    columns: dict[str, list[Layer | float]] = {"layer": list(first.layers)}
    for name, matrix in matrices.items():
        places = [
            (find_row(matrix.rows, first.system, layer), find_row(matrix.rows, second.system, layer))
            for layer in first.layers
        ]
        columns[name] = [float(matrix.values[place]) for place in places]
        if matrix.low is not None and matrix.high is not None:
            columns[f"{name}_low"] = [float(matrix.low[place]) for place in places]
            columns[f"{name}_high"] = [float(matrix.high[place]) for place in places]
    return pd.DataFrame(columns)


def activations_of(
    given: object,
    stimuli: Stimuli,
    extraction: Mapping[str, Any],
    name: str,
) -> Activations:
    """A model's answers to the stimuli, or those that were given."""
    if isinstance(given, Activations):
        given.check_stimuli(stimuli)
        return given
    if not is_model(given):
        found: Activations = open_activations(given, name)
        found.check_stimuli(stimuli)
        return found
    from thinkalike.activations.extraction import extract

    if not isinstance(given, (str, os.PathLike)):
        raise InvalidInput(f"{name} is {type(given).__name__}: give a model by name, activations or arrays.")
    model = os.fspath(given)
    return extract(model, stimuli, system=name_of(model), **extraction)
