r"""What changed between two states of a model: the strength of every feature, layer against the same layer.

A feature's strength is what it does to the squared distance of two items, in units of what items alike in
everything differ by (`encoding.strengths`). Importance would not do: one feature that gains takes importance
from all others. Every item has a number of its own in the regression (`encoding.item_effects`), for the
lengths of vectors would move features that are unevenly spread. Both states lose the same sentences, part by
part, so that what they share cancels:

    t = (s' − s) / SE,   SE² = (G − 1)/G · Σ_g (Δ₍g₎ − Δ̄)²,   G − 1 degrees of freedom.

p is corrected by Holm's method for having looked at every feature in every layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student

from thinkalike.activations.store import Activations
from thinkalike.comparison.geometry_similarity import sentences_of
from thinkalike.encoding.importance import make_feature_sets
from thinkalike.encoding.strengths import StrengthPlan, plan_strengths, strengths
from thinkalike.inference.ranges import jackknife_error, left_out
from thinkalike.labels import Floats, Layer
from thinkalike.measures.inputs import as_layer
from thinkalike.pairs.distances import make_target
from thinkalike.stimuli.feature_coding import code_features, constant_among
from thinkalike.stimuli.table import Stimuli


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
    for g, kept in enumerate(left_out(sentences_of(stimuli), len(stimuli), seed=seed)):
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


def holm(p: Floats) -> Floats:
    """p-values corrected for their number (Holm 1979); NaN stays and does not count.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    known = np.isfinite(p)
    order = np.argsort(p[known], kind="stable")
    steps = np.maximum.accumulate(p[known][order] * np.arange(len(order), 0, -1))
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(steps, 1.0)
    result = np.full(len(p), np.nan)
    result[known] = corrected
    return result
