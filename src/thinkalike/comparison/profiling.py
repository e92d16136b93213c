"""From activations to a `Profile`: the encoding models of all layers, and what qualifies them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd

from thinkalike.activations.given import as_given, as_stimuli
from thinkalike.activations.store import Activations
from thinkalike.comparison.cautions import CautionWarning, constant_features_caution
from thinkalike.comparison.diagnostics import layer_diagnostics
from thinkalike.comparison.profiles import Bootstrap, Collinearity, Profile, mean_over_folds
from thinkalike.encoding.bootstrap import ResamplingPlan, draw_multiplicities, plan_resamples, resample
from thinkalike.encoding.crossval import CrossValidation, cross_validate, make_plan
from thinkalike.encoding.plan import EncodingPlan
from thinkalike.encoding.settings import make_settings
from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.parallel import map_in_order
from thinkalike.stimuli.differences import constant_features
from thinkalike.stimuli.table import Stimuli

STRUCTURE = ("groups", "together", "folds", "duplicates")
"""Options of the plan that are not settings of the encoding models"""


@dataclass(frozen=True, eq=False)
class ProfilingPlan:
    """The side of the features, which is the same for every system shown the same stimuli."""

    encoding: Any
    """From `thinkalike.encoding.crossval.make_plan`"""
    resampling: ResamplingPlan | None
    collinearity: Collinearity
    structure: Mapping[str, Any]
    """What else was asked for: groups, what stays together, folds, duplicates"""
    left_out: tuple[str, ...] = ()
    """Features in which no two of the items differ"""

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that changes the numbers, as plain values."""
        n_resamples = 0 if self.resampling is None else len(self.resampling.multiplicities)
        return {**self.encoding.settings.as_dict(), "resamples": n_resamples, **self.structure}


def plan_profiles(
    stimuli: Stimuli, *, preset: str = "default", resamples: int = 0, **settings: Any
) -> ProfilingPlan:
    """Prepare `profile` for several systems; see there for the parameters."""
    if resamples < 0:
        raise InvalidInput(f"Got resamples={resamples}: give how many, 200 say, or 0 for no intervals.")
    if settings.get("distance") in ("crossnobis", "precomputed"):
        raise InvalidInput(
            f"distance={settings['distance']!r} takes repeated measurements or a matrix of distances, and a "
            "layer is one vector per item: use ta.MLEM with your arrays."
        )
    chosen = make_settings(preset, **{k: v for k, v in settings.items() if k not in STRUCTURE})
    stimuli, left_out = _varying(stimuli, chosen.missing)
    encoding = make_plan(stimuli, preset=preset, **settings)
    correlations = stimuli.correlations(ordered=chosen.ordered, missing=chosen.missing)
    return ProfilingPlan(
        encoding=encoding,
        resampling=_resampling(stimuli, encoding, resamples) if resamples else None,
        collinearity=Collinearity(correlations.names, correlations.values, correlations.variance_inflation),
        structure={k: _in_short(v) for k, v in settings.items() if k in STRUCTURE and v is not None},
        left_out=left_out,
    )


def profile(
    activations: Activations | Any,
    stimuli: Stimuli | pd.DataFrame,
    *,
    preset: str = "default",
    resamples: int = 0,
    plan: ProfilingPlan | None = None,
    **settings: Any,
) -> Profile:
    """What each layer of one system is organised by: held-out importances, ρ, and what qualifies them.

    Parameters
    ----------
    activations : also an array (n_items, n_units), or a mapping of layers to such arrays.
    stimuli : also a DataFrame of features, one row per item, which `Stimuli.from_table` reads.
    preset : {"default", "salle2024"}
    resamples : bootstrap resamples of the sentences, for intervals; 200 is usual, 0 for none.
    plan : from `plan_profiles`, to profile several systems faster; the other options are then not looked at.
    settings : changes to the preset, such as `distance="cosine"` or `n_folds=10`.

    Features in which no two items differ are left out, with a `CautionWarning` that names them.
    """
    activations, stimuli = as_given(activations, "array"), as_stimuli(stimuli)
    activations.check_stimuli(stimuli)
    if plan is None:
        plan = plan_profiles(stimuli, preset=preset, resamples=resamples, **settings)
        if plan.left_out:
            warnings.warn(constant_features_caution(plan.left_out), CautionWarning, stacklevel=2)
    found = cross_validate(stimuli, activations, plan=plan.encoding)
    return Profile(
        system=activations.system,
        layers=activations.layers,
        features=found.names,
        importance=found.importance,
        scores=found.scores,
        settings=plan.settings,
        stimuli_digest=stimuli.digest,
        collinearity=plan.collinearity,
        diagnostics=layer_diagnostics(
            activations, distance=plan.encoding.settings.distance, seed=plan.settings["seed"]
        ),
        bootstrap=None if plan.resampling is None else _bootstrap(activations, plan.resampling, found),
        metadata=dict(activations.metadata),
    )


def _varying(stimuli: Stimuli, missing: str) -> tuple[Stimuli, tuple[str, ...]]:
    """The stimuli without the features in which no two items differ, and the names of these."""
    constant = constant_features(stimuli.features, missing=missing)
    if not constant or len(constant) == len(
        stimuli.kinds
    ):  # with no feature left, the plan says what is wrong
        return stimuli, ()
    return stimuli.choose(drop=constant), constant


def _resampling(stimuli: Stimuli, encoding: Any, resamples: int) -> ResamplingPlan:
    """Sentences drawn with replacement; items that are not words are drawn one by one."""
    if not isinstance(encoding, EncodingPlan):
        raise InvalidInput(
            f"The preset {encoding.settings.preset!r} has folds over pairs, which a bootstrap of sentences "
            "does not fit: use resamples=0 or the default preset."
        )
    items = stimuli.items
    clusters = items["sentence"] if "sentence" in items else np.arange(len(items))
    drawn = draw_multiplicities(clusters, n_resamples=resamples, seed=encoding.settings.seed)
    try:
        return plan_resamples(encoding, drawn)
    except InvalidInput as error:
        raise InvalidInput(f"{error} Or do without intervals: resamples=0 (--resamples 0).") from error


def _in_short(value: Any) -> Any:
    """Names as they are; labels of all items by a digest."""
    if isinstance(value, (str, Mapping)):
        return value
    return sha256("\0".join(map(str, value)).encode()).hexdigest()[:16]


def _bootstrap(activations: Activations, plan: ResamplingPlan, found: CrossValidation) -> Bootstrap:
    def of_layer(k: int) -> tuple[Floats, Floats]:
        drawn = resample(plan, activations[activations.layers[k]], found.alphas[k])
        return mean_over_folds(drawn.scores[:, :, None])[:, 0], mean_over_folds(drawn.importance)

    layers = map_in_order(of_layer, range(len(activations)), description=f"Resampling {activations.system}")
    return Bootstrap(
        scores=np.stack([scores for scores, _ in layers], axis=1),
        importance=np.stack([importance for _, importance in layers], axis=1),
    )
