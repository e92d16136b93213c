"""From activations to a `Profile`: the encoding models of all layers, and what qualifies them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.activations.conversion import as_stimuli, open_activations
from thinkalike.activations.store import Activations
from thinkalike.comparison.cautions import Caution, cautions_of_plan, tell
from thinkalike.comparison.diagnostics import (
    POSITIONS,
    Diagnosis,
    collect_diagnostics,
    diagnose,
    several_positions,
    word_positions,
)
from thinkalike.comparison.profiles import Collinearity, Profile, mean_over_folds
from thinkalike.comparison.replicates import Replicates
from thinkalike.encoding.crossval import STRUCTURE, JudgedLayer, LayerJudge, layer_target, make_plan
from thinkalike.encoding.pairfolds import PairPlan
from thinkalike.encoding.plan import EncodingPlan
from thinkalike.encoding.resampling import (
    Resampled,
    ResamplingPlan,
    leave_out,
    plan_resamples,
    resample,
    split_halves,
)
from thinkalike.encoding.settings import make_settings
from thinkalike.encoding.strengths import StrengthPlan, plan_strengths, strengths
from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats, Layer
from thinkalike.options import MOST_RESAMPLES, one_name, whole_number
from thinkalike.pairs.preprocessing import NO_STEPS, Preprocessing, prepare_steps
from thinkalike.parallel import cores, engine_for, stream_in_order
from thinkalike.stimuli.differences import FeatureDifferences
from thinkalike.stimuli.feature_coding import code_features, constant_among
from thinkalike.stimuli.feature_correlations import correlations_from, variance_inflation
from thinkalike.stimuli.table import Stimuli
from thinkalike.systems.names import is_array_file, name_of

SPLITS = 10
"""Splits of the sentences into halves, for reliability"""


STRENGTH_DEALS = 2
"""Deals of the sentences in which strengths are made again: more would make their ranges little narrower"""


@dataclass(frozen=True, eq=False)
class ResampledLayer:
    """One layer without some of the sentences."""

    resampled: Resampled
    strengths: Floats
    """(n, n_features) without each part of the sentences, in the first deals"""


@dataclass(frozen=True, eq=False)
class SentenceResampling:
    """Resamples without a part of the sentences, then two for every split into halves, then those without
    the words at one position of their sentence."""

    plan: ResamplingPlan
    n_resamples: int
    parts: int
    sentences: int
    sides: tuple[StrengthPlan, ...]
    """For strengths without each part, one plan for a deal of the sentences"""
    positions: tuple[int, ...] = ()
    """Which positions the last resamples leave out"""

    def look(self, X: npt.NDArray[np.floating], alphas: Floats) -> ResampledLayer:
        """One layer (n_items, n_units) in every resample, with the penalties that were chosen."""
        encoding = self.plan.plan
        target = layer_target(X, encoding.settings, encoding.n_items, encoding.kept, steps=encoding.steps)
        without = np.concatenate([strengths(side, target) for side in self.sides])
        return ResampledLayer(resample(self.plan, X, alphas), without)

    def collect(self, looked: Sequence[ResampledLayer]) -> tuple[Replicates, Floats | None]:
        """The replicates, and the importance without each position (n_layers, POSITIONS, n_features)."""
        layers = [one.resampled for one in looked]
        scores = np.stack([mean_over_folds(one.scores[:, :, None])[:, 0] for one in layers], axis=1)
        importance = np.stack([mean_over_folds(one.importance) for one in layers], axis=1)
        end = len(importance) - len(self.positions)
        halves = importance[self.n_resamples : end]
        without = None
        if self.positions:
            without = np.full((len(layers), POSITIONS, importance.shape[2]), np.nan)
            without[:, self.positions] = importance[end:].swapaxes(0, 1)
        made = Replicates(
            scores=scores[: self.n_resamples],
            importance=importance[: self.n_resamples],
            halves=halves.reshape(-1, 2, *halves.shape[1:]),
            parts=self.parts,
            sentences=self.sentences,
            strengths=np.stack([one.strengths for one in looked], axis=1),
        )
        return made, without


@dataclass(frozen=True, eq=False)
class ProfilingPlan:
    """The side of the features, which is the same for every system shown the same stimuli."""

    encoding: EncodingPlan | PairPlan
    differences: FeatureDifferences
    """The features of all items, coded once, without those in `left_out`"""
    resampling: SentenceResampling | None
    collinearity: Collinearity
    structure: Mapping[str, object]
    """What else was asked for: groups, what stays together, folds, duplicates"""
    left_out: tuple[str, ...] = ()
    """Features in which no two of the items differ"""
    positions: npt.NDArray[np.int64] | None = None
    """(n_items,) places of the words in their sentences, for the diagnostics"""
    steps: Preprocessing = NO_STEPS
    """What the vectors of all items go through before their geometry is looked at"""
    asked: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The options of `plan_profiles` that made it, by which a worker makes it again"""

    @cached_property
    def judge(self) -> LayerJudge:
        return LayerJudge.of(self.encoding)

    @property
    def settings(self) -> dict[str, object]:
        """Everything that changes the numbers, as plain values."""
        return {**self.encoding.settings.as_dict(), "resamples": self.n_resamples, **self.structure}

    @property
    def n_resamples(self) -> int:
        return 0 if self.resampling is None else self.resampling.n_resamples

    @property
    def cautions(self) -> tuple[Caution, ...]:
        return cautions_of_plan(self.left_out, self.n_resamples)


def plan_profiles(
    stimuli: Stimuli, *, preset: str = "default", resamples: int = 0, **settings: object
) -> ProfilingPlan:
    """Prepare `profile` for several systems; see there for the parameters."""
    whole_number("resamples", resamples, 0, MOST_RESAMPLES)
    if settings.get("distance") in ("crossnobis", "precomputed"):
        raise InvalidInput(
            f"distance={settings['distance']!r} takes repeated measurements or a matrix of distances, and a "
            "layer is one vector per item: make it one with ta.Activations.from_runs(runs) or "
            "ta.Activations.from_distances(rdm), or use ta.MLEM with your arrays."
        )
    few = few_item_settings(len(stimuli)) if preset == "default" and settings.get("folds") is None else {}
    settings = {**few, **settings}
    chosen = make_settings(preset, **{k: v for k, v in settings.items() if k not in STRUCTURE})
    coded = code_features(stimuli.features, ordered=chosen.ordered, missing=chosen.missing)
    left_out = constant_among(coded)
    if left_out and len(left_out) < coded.n_features:  # with no feature left, the plan says what is wrong
        stimuli, coded = stimuli.choose(drop=left_out), coded.without(left_out)
    encoding = make_plan(stimuli, preset=preset, coded=coded, **settings)
    positions = word_positions(stimuli)
    correlations = correlations_from(coded.pair_moments().covariance())
    return ProfilingPlan(
        encoding=encoding,
        differences=coded,
        resampling=_resampling(stimuli, encoding, resamples, positions) if resamples else None,
        collinearity=Collinearity(coded.names, correlations, variance_inflation(correlations)),
        structure={k: _in_short(v) for k, v in settings.items() if k in STRUCTURE and v is not None},
        left_out=left_out,
        positions=positions,
        steps=prepare_steps(chosen.steps, stimuli),
        asked={"preset": preset, "resamples": resamples, **settings},
    )


def few_item_settings(n_items: int) -> dict[str, float]:
    """Folds of four items at least, and no penalty to be chosen, where five folds would be smaller."""
    return {"n_folds": max(2, n_items // 4), "alpha": 0.0} if 8 <= n_items < 20 else {}


@one_name
def profile(
    activations: Activations | object,
    stimuli: Stimuli | pd.DataFrame,
    *,
    preset: str = "default",
    resamples: int = 0,
    plan: ProfilingPlan | None = None,
    **settings: object,
) -> Profile:
    """What each layer of one system is organised by: held-out importances, ρ, and what qualifies them.

    Parameters
    ----------
    activations : also an array (n_items, n_units), or a mapping of layers to such arrays.
    stimuli : also a DataFrame of features, one row per item, which `Stimuli.from_table` reads.
    preset : {"default", "salle2024"}
    resamples : how often the profile is made again without a tenth of the sentences, for ranges and
        reliability; 20 is usual, 0 for none.
    plan : from `plan_profiles`, to profile several systems faster; it holds all other options.
    settings : changes to the preset, such as `distance="cosine"`, `n_folds=10`, or what vectors go through
        first, `steps=["zscore", "pca:50"]`, which are fitted on the items of the training folds.

    Returns
    -------
    Profile
        Features in which no two items differ are left out, with a `CautionWarning` that names them; another
        says when the resamples are too few for ranges.

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(30, seed=0, grammar="salle2024")
    >>> rng = np.random.default_rng(0)
    >>> past = (stimuli.features["tense"] == "past").to_numpy()[:, None]
    >>> X = rng.normal(size=(len(stimuli), 8)) + 3 * past
    >>> ta.profile({"layer 1": X}, stimuli).table().loc["layer 1"].idxmax()
    'tense'
    """
    activations, stimuli = _activations(activations), as_stimuli(stimuli)
    activations.check_stimuli(stimuli)
    if plan is not None and (settings or resamples or preset != "default"):
        raise InvalidInput(
            "A plan was given, which holds all settings: make it with the others, or leave it out."
        )
    if plan is None:
        plan = plan_profiles(stimuli, preset=preset, resamples=resamples, **settings)
        tell(plan.cautions)
    engine = engine_for("fit")
    if engine is not None:
        from thinkalike.comparison.tasks import profile_on_workers

        return profile_on_workers(engine, activations, stimuli, plan)
    found = list(
        stream_in_order(
            partial(_read_and_examine, plan, activations),
            activations.layers,
            description=f"Profiling {activations.system}",
            threads=cores(),
        )
    )
    return collect_profile(activations, stimuli, plan, found)


@dataclass(frozen=True, eq=False)
class ExaminedLayer:
    """All that a profile says of one layer."""

    judged: JudgedLayer
    diagnostics: Diagnosis
    resampled: ResampledLayer | None


def examine_layer(
    plan: ProfilingPlan, system: str, label: Layer, X: npt.NDArray[np.floating]
) -> ExaminedLayer:
    """Judge one layer (n_items, n_units), look at what qualifies it, and resample it if the plan says so."""
    try:
        judged = plan.judge(label, X)
    except InvalidInput as error:
        raise type(error)(f"{system}: {error}") from error
    settings = plan.encoding.settings
    return ExaminedLayer(
        judged,
        diagnose(plan.steps(X), distance=settings.distance, positions=plan.positions, seed=settings.seed),
        None if plan.resampling is None else plan.resampling.look(X, judged.alphas),
    )


def collect_profile(
    activations: Activations, stimuli: Stimuli, plan: ProfilingPlan, examined: Sequence[ExaminedLayer]
) -> Profile:
    """The layers of one system together."""
    found = plan.judge.collect(activations.layers, [one.judged for one in examined])
    diagnostics = collect_diagnostics([one.diagnostics for one in examined])
    replicates = None
    if plan.resampling is not None:
        replicates, without = plan.resampling.collect([one.resampled for one in examined if one.resampled])
        diagnostics = replace(diagnostics, without_position=without)
    return Profile(
        system=activations.system,
        layers=activations.layers,
        features=found.names,
        importance=found.importance,
        scores=found.scores,
        strengths=found.strengths,
        settings=plan.settings,
        stimuli_digest=stimuli.digest,
        collinearity=plan.collinearity,
        diagnostics=diagnostics,
        replicates=replicates,
        metadata=dict(activations.metadata),
    )


def _activations(given: object) -> Activations:
    found = open_activations(
        given, name_of(str(given)) if is_array_file(given) else getattr(given, "system", "array")
    )
    if not isinstance(found, Activations):
        raise InvalidInput(
            f"Got {given if isinstance(given, str) else type(given).__name__}: give activations "
            "(ta.extract(model, stimuli)), arrays, or their file. ta.compare also takes models by name."
        )
    return found


def _read_and_examine(plan: ProfilingPlan, activations: Activations, label: Layer) -> ExaminedLayer:
    return examine_layer(plan, activations.system, label, activations[label])


def _resampling(
    stimuli: Stimuli,
    encoding: EncodingPlan | PairPlan,
    resamples: int,
    positions: npt.NDArray[np.int64] | None,
) -> SentenceResampling:
    """Sentences are left out; of items that are not words, the items themselves. Then each position."""
    if resamples == 1:
        raise InvalidInput("One resample has no spread: give resamples=0 for no ranges, or 2 and more.")
    if not isinstance(encoding, EncodingPlan):
        raise InvalidInput(
            f"The preset {encoding.settings.preset!r} has folds over pairs, in which sentences cannot "
            "be left out: use resamples=0 or the default preset."
        )
    items = stimuli.items
    clusters = items["sentence"] if "sentence" in items else np.arange(len(items))
    seed = encoding.settings.seed
    kept, parts = leave_out(clusters, n_resamples=resamples, seed=seed)
    if parts < 2:
        raise InvalidInput("All items are of one sentence, so none can be left out: use resamples=0.")
    halves = split_halves(clusters, n_splits=min(SPLITS, resamples), seed=seed)
    places: list[int] = []
    if positions is not None and several_positions(positions):
        places = np.unique(positions).tolist()
    without = np.array([positions != place for place in places], dtype=np.int64).reshape(-1, len(items))
    try:
        plan = plan_resamples(encoding, np.concatenate([kept, halves, without]))
    except InvalidInput as error:
        raise InvalidInput(f"{error} Or do without ranges: resamples=0 (--resamples 0).") from error
    sides = tuple(
        plan_strengths(
            encoding.differences, encoding.feature_sets, kept[deal : deal + parts, encoding.kept].argmin(0)
        )
        for deal in range(0, min(STRENGTH_DEALS, resamples // parts) * parts, parts)
    )
    return SentenceResampling(plan, resamples, parts, len(np.unique(clusters)), sides, tuple(places))


def _in_short(value: Any) -> object:
    """Names as they are; labels of all items by a digest."""
    if isinstance(value, (str, Mapping)):
        return value
    return sha256("\0".join(map(str, value)).encode()).hexdigest()[:16]
