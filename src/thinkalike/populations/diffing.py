"""`diff`: what changed from a model to its child, layer against the same layer.

What changes is the strength of every feature. A feature's strength is what it does to the squared distance of
two items, in units of what items alike in everything differ by (`encoding.strengths`). Importance would not
do: one feature that gains takes importance from all others. Every item has a number of its own in the
regression (`ItemEffects`), for the lengths of vectors would move features that are unevenly spread. Both
states lose the same sentences, part by part, so that what they share cancels:

    t = (s' − s) / SE,   SE² = (G − 1)/G · Σ_g (Δ₍g₎ − Δ̄)²,   G − 1 degrees of freedom.

p is corrected by Holm's method for having looked at every feature in every layer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student

from thinkalike.activations.conversion import activations_of, check_extraction
from thinkalike.activations.store import Activations
from thinkalike.comparison.geometry_similarity import sentences_of
from thinkalike.comparison.layer_similarity import similarity
from thinkalike.comparison.profiling import plan_profiles, profile
from thinkalike.encoding.importance import make_feature_sets
from thinkalike.encoding.strengths import StrengthPlan, plan_strengths, strengths
from thinkalike.errors import InvalidInput
from thinkalike.inference.ranges import jackknife_error, leave_parts_out
from thinkalike.labels import Floats, Layer, find_row
from thinkalike.many_tests import holm
from thinkalike.measures.inputs import as_layer
from thinkalike.options import one_name
from thinkalike.pairs.distances import make_target
from thinkalike.saving import Kept
from thinkalike.stimuli.feature_coding import code_features, constant_among
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Chart, Facts
from thinkalike.wording import layer_range, listed, readable

LEVEL = 0.05


class PartedStrengths(NamedTuple):
    """Of the layers of one system.

    Attributes
    ----------
    whole
        Layer → (n_features,) from all sentences.
    without
        Layer → (n_parts, n_features) without each part of them.
    """

    features: tuple[str, ...]
    whole: Mapping[Layer, Floats]
    without: Mapping[Layer, Floats]


class ChangePlan(NamedTuple):
    """What is the same for all states that are shown the same stimuli; made by `plan_changes`."""

    features: tuple[str, ...]
    whole: StrengthPlan
    parts: StrengthPlan


def plan_changes(stimuli: Stimuli, *, seed: int = 0) -> ChangePlan:
    """Deal the sentences into 20 parts, each of which is left out in turn."""
    coded = code_features(stimuli.features)
    coded = coded.without(constant_among(coded))
    part = np.zeros(len(stimuli), dtype=np.int64)
    for g, kept in enumerate(leave_parts_out(sentences_of(stimuli), len(stimuli), seed=seed)):
        part[np.setdiff1d(np.arange(len(stimuli)), kept)] = g
    sets = make_feature_sets(coded.names)
    of_all, of_parts = (plan_strengths(coded, sets, fold, own_effects=True) for fold in (None, part))
    return ChangePlan(coded.names, of_all, of_parts)


def parted_strengths(activations: Activations, plan: ChangePlan) -> PartedStrengths:
    """Strengths from all sentences, and without each part of them."""
    whole, without = {}, {}
    for layer in activations.layers:
        target = make_target(as_layer(activations[layer], f"{activations.system}:{layer}"), "euclidean")
        whole[layer] = strengths(plan.whole, target)[0]
        without[layer] = strengths(plan.parts, target)
    return PartedStrengths(plan.features, whole, without)


def strength_changes(before: PartedStrengths, after: PartedStrengths) -> pd.DataFrame:
    """One row per layer and feature: strength before and after, the change, its 95 % range, p, Holm's p."""
    frames = []
    for layer in before.whole:
        old, new = before.whole[layer], after.whole[layer]
        without = after.without[layer] - before.without[layer]
        degrees = len(without) - 1
        error = jackknife_error(without, parts=len(without))
        reach = float(student.ppf(0.975, degrees)) * error
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.where(new == old, 0.0, (new - old) / error)
        frames.append(
            pd.DataFrame(
                {
                    "layer": np.full(len(old), layer, dtype=object),
                    "feature": before.features,
                    "before": old,
                    "after": new,
                    "change": new - old,
                    "low": new - old - reach,
                    "high": new - old + reach,
                    "p": 2 * student.sf(np.abs(t), degrees),
                }
            )
        )
    frame = pd.concat(frames, ignore_index=True)
    frame["p_holm"] = holm(frame["p"].to_numpy())
    return frame


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
