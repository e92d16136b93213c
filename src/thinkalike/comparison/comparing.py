"""`compare`: from models and stimuli to an answer, in one call that can be repeated and extended."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from thinkalike.activations.conversion import as_activations, as_stimuli, named_systems
from thinkalike.activations.rows import shared_items, subset_activations
from thinkalike.activations.store import Activations
from thinkalike.addresses import place
from thinkalike.comparison.assembly import assemble
from thinkalike.comparison.cautions import tell
from thinkalike.comparison.compared_systems import (
    UNTRAINED_DRAWS,
    Gathering,
    GivenSystem,
    can_go_apart,
    check_settings,
    check_systems,
    models_among,
    opened,
)
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.expiring import LastLook, look_last, model_by_model
from thinkalike.comparison.geometry_similarity import layer_measure, sentences_of
from thinkalike.comparison.layerpass import Looked, pass_over_layers
from thinkalike.comparison.planning import Compared, refuse_without_room
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import ProfilingPlan, plan_profiles
from thinkalike.comparison.rundir import RunDirectory
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.inference.sentences import plan_sentences
from thinkalike.measures.measure import Measure
from thinkalike.options import MOST_PERMUTATIONS, one_name, whole_number
from thinkalike.provenance import digest_of, versions
from thinkalike.stimuli.table import Stimuli

MEANS = ("device", "device_map", "batch_size")
"""Options of `extract` that say with what it is done, not what comes out: a run may change them"""
KEEPS = ("activations", "profiles")
RESAMPLES = 20
"""How often everything is computed without a tenth of the sentences, unless told otherwise"""

AnyMeasure = str | Measure | Callable[[np.ndarray, np.ndarray], float]


@one_name
def compare(
    systems: Sequence[GivenSystem] | Mapping[str, GivenSystem],
    stimuli: Stimuli | pd.DataFrame | None = None,
    *,
    measures: AnyMeasure | Sequence[AnyMeasure] = (),
    controls: str | None = None,
    resamples: int | None = None,
    robustness: bool | Stimuli = False,
    null: int | None = None,
    preset: str = "default",
    extraction: Mapping[str, object] | None = None,
    out: str | os.PathLike[str] | None = None,
    keep: str = "activations",
    last_look: LastLook | None = None,
    **settings: Any,
) -> Comparison:
    """Compare two or more systems: what each layer cares about, how alike layers and systems are, and why.

    Parameters
    ----------
    systems : models by name, activations, arrays (n_items, n_units), mappings of layers to such arrays, or
        .npy, .npz and .zarr files of them, in any mixture; a mapping gives them names of its own.
    stimuli : what to show; 200 sentences of the default grammar when None. A DataFrame is read by
        `Stimuli.from_table`, its index being the items if it names them.
    measures : one or more, besides the feature-based measure and RSA: names in `MEASURES`, or functions of
        one's own, as in `similarity`.
    controls : `"untrained"` also profiles copies of the models with random weights, ten draws of each.
    resamples : how often the profiles are made again without a tenth of the sentences, for ranges and
        reliability; 0 for none. When None 20, or none with the preset "salle2024", whose folds over pairs
        leave nothing to resample.
    robustness : whether to ask the same question under other reasonable analyses (`Comparison.robustness`,
        about as long again); or other sentences, with which to do so.
    null : orders of the sentences that geometric measures are held against; 0 for none. When None 200 for
        RSA and CKA in all their forms, which take them cheaply, and none for other measures or where nothing
        is resampled.
    preset, settings : of the encoding models, as in `profile`. Among them `steps`, what vectors go through
        first, as `["zscore", "pca:50"]`: fitted on the items of the training folds for profiles, on all items
        for RSA, other measures and maps.
    extraction : options of `extract`, such as `{"pooling": "mean"}`, or `{"autoencoder": "sae/", "layer": 3,
        "best": "number"}` for latents in place of layers. They hold for all models.
    out : a run directory, a path or an address such as s3://BUCKET/RUN; what it holds of this run is re-used.
        `thinkalike report OUT` adds the page.
    keep : what stays in the run directory. With "profiles", the vectors of a model are deleted when it has
        been looked at, before the next is read (by one worker); if further measures or `robustness` need them
        all, or arrays are among the systems, at the end. Reports, explanations and τ_w remain, the worst
        explained pairs of words and `Comparison.reliability` do not. A call that needs the vectors again
        makes them again.
    last_look : with `keep="profiles"`, called with every system (`LookedOver`) before its vectors are
        deleted, where they were made; a function of a module, such as
        `thinkalike.populations.leave_fingerprint`.

    Returns
    -------
    Comparison
        Its cautions are also given as `CautionWarning`.

    Examples
    --------
    Two systems that are given as arrays, one of which knows the number of a word:

    >>> import numpy as np
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(30, seed=0, grammar="salle2024")
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(2, len(stimuli), 8))
    >>> plural = (stimuli.features["number"] == "plural").to_numpy()[:, None]
    >>> found = ta.compare({"one": noise[0] + 3 * plural, "other": noise[1]}, stimuli, resamples=0)
    >>> sorted(found.matrices), found.matrices["features"].values.shape
    (['features', 'rsa'], (2, 2))
    >>> found.profiles["one"].table().iloc[0].idxmax()
    'number'
    """
    root = None if out is None else place(out)
    _check_keep(keep, out, last_look)
    stimuli = None if stimuli is None else as_stimuli(stimuli)
    named = {name: as_activations(system, name) for name, system in named_systems(systems).items()}
    check_systems(named, stimuli, controls)
    asked_measures = [measures] if isinstance(measures, str) or callable(measures) else measures
    others = further_measures(asked_measures)
    check_settings(settings, extraction, named, controls)
    new_sentences = robustness if isinstance(robustness, Stimuli) else None
    if stimuli is None:
        if robustness is True:
            new_sentences = Stimuli.from_grammar(seed=(settings.get("seed") or 0) + 1)
        stimuli = Stimuli.from_grammar(seed=settings.get("seed") or 0)
    resamples = usual_resamples(preset) if resamples is None else resamples
    if null is not None:
        whole_number("null", null, 0, MOST_PERMUTATIONS)
    elif not resamples:
        null = 0

    def make_plan(shown: Stimuli) -> ProfilingPlan:
        return plan_profiles(shown, preset=preset, resamples=resamples, **settings)

    plan = make_plan(stimuli)
    asked = dict(extraction or {})
    about = {**plan.settings, "extraction": {k: v for k, v in asked.items() if k not in MEANS}}
    named = {name: opened(name, system) for name, system in named.items()}
    apart = goes_apart(named, asked, keep=keep, measures=others, robustness=robustness is not False)
    there = None if root is None else RunDirectory(root)
    announce = None
    if there is None or not there.has_results():
        copied = UNTRAINED_DRAWS if controls else 0
        compared = Compared(others, null, copied, robustness is not False, apart)
        announce = refuse_without_room(named, stimuli, plan, compared, extraction=asked, run=there)
    with ExitStack() as stack:
        run = None
        if root is not None:
            run = stack.enter_context(RunDirectory.owned(root, stimuli, about))
        if announce is not None:
            announce()
        work, with_copies = Gathering(stimuli, asked, run), controls is not None

        def look_apart() -> Looked | None:
            if run is None or not apart:
                return None
            wanted, kept = work.to_read(named, copies=with_copies), partial(_kept, stimuli, run)
            return stack.enter_context(
                model_by_model(wanted, stimuli, plan, run, kept=kept, last_look=last_look)
            )

        has_all = not apart or work.has_all(named, copies=with_copies)
        looked = None if has_all else look_apart()
        found, copies = work.gathered(named, copies=with_copies)
        tried = {"asked": robustness is not False, "others": new_sentences and new_sentences.digest}
        call = _call(run, plan, asked_measures, null, [*found, *chain(*copies.values())], tried)
        result = None if run is None else run.finished(call)
        everyone = [one.system for one in (*found, *chain(*copies.values()))]
        if result is None and looked is None:
            looked = look_apart()
        needed = keep == "activations" or (result is None and looked is None)
        if run is not None and needed and run.revive(everyone):
            found, copies = work.gathered(named, copies=with_copies)
            result = None if result is None else run.finished(call)
        if result is None:
            result = _compute(stimuli, found, copies, plan, make_plan, others, null, about, run, looked)
            if robustness is not False:
                result = replace(result, tried=result.robustness(others=new_sentences))
            if run is not None:
                run.write_results(result, call)
        if run is not None and keep == "profiles":
            if last_look is not None and looked is None:
                models = {name: str(named[name]) for name in models_among(named)}
                look_last(last_look, found, result.profiles, models, asked, run)
            for system in everyone:
                run.expire(system)
            result = replace(result, activations=None)
    tell(result.cautions)
    return result


def further_measures(measures: AnyMeasure | Sequence[AnyMeasure]) -> list[Measure]:
    """Besides features and RSA, which are always there."""
    asked = [measures] if isinstance(measures, str) or callable(measures) else measures
    return [found for found in (layer_measure(m) for m in asked if m != FEATURES) if found.name != "rsa"]


def _call(
    run: RunDirectory | None,
    plan: ProfilingPlan,
    measures: Sequence[AnyMeasure],
    null: int | None,
    systems: Sequence[Activations],
    robustness: Mapping[str, object],
) -> str | None:
    """A digest of all that the results depend on; None if something has a name, but no identity."""
    if run is None or callable(plan.encoding.settings.distance):
        return None
    if not all(isinstance(measure, str) for measure in measures):
        return None
    return digest_of(
        {
            "systems": {one.system: run.store_seal(one.system) for one in systems},
            "order": [one.system for one in systems],
            "measures": list(measures),
            "robustness": robustness,
            "null": null,
            "settings": plan.settings,
            "versions": versions(),
        }
    )


def _compute(
    stimuli: Stimuli,
    found: list[Activations],
    copies: dict[str, tuple[Activations, ...]],
    plan: ProfilingPlan,
    make_plan: Callable[[Stimuli], ProfilingPlan],
    measures: list[Measure],
    null: int | None,
    about: Mapping[str, object],
    run: RunDirectory | None,
    looked: Looked | None,
) -> Comparison:
    """Profile the systems and put the results together, over the items that all of them answer to."""
    shared = shared_items(stimuli, [*found, *chain(*copies.values())])
    if shared is not None:
        stimuli = stimuli.subset(shared)
        found = [subset_activations(one, stimuli) for one in found]
        copies = {
            name: tuple(subset_activations(copy, stimuli) for copy in draws) for name, draws in copies.items()
        }
        plan = make_plan(stimuli)
    sentences = plan_sentences(
        sentences_of(stimuli),
        len(stimuli),
        ranges=plan.resampling is not None,
        permutations=null,
        seed=plan.encoding.settings.seed,
    )
    profiles, untrained, geometry = pass_over_layers(
        stimuli,
        found,
        plan,
        copies=copies,
        kept=lambda one, plan: None if run is None else _kept(stimuli, run, one.system, plan),
        made=lambda profile: None if run is None else run.save_profile(profile),
        keep_vectors=bool(measures),
        sentences=sentences,
        root=None if run is None else run.root,
        looked=looked,
    )
    return assemble(
        stimuli,
        profiles,
        found,
        geometry,
        plan,
        measures=measures,
        sentences=sentences,
        untrained=untrained,
        settings=about,
        root=None if run is None else run.root,
    )


def _kept(stimuli: Stimuli, run: RunDirectory, system: str, plan: ProfilingPlan) -> Profile | None:
    """The profile that an earlier call of this run made, if any."""
    if callable(plan.encoding.settings.distance):  # a function has a name, but no identity
        return None
    kept = run.profile(system, plan.settings)
    return kept if kept is not None and kept.stimuli_digest == stimuli.digest else None


def goes_apart(
    named: Mapping[str, GivenSystem],
    extraction: Mapping[str, object],
    *,
    keep: str,
    measures: Sequence[Measure],
    robustness: bool,
) -> bool:
    """Whether the vectors of each model go before the next is read: nothing needs them all at once."""
    return keep == "profiles" and not measures and not robustness and can_go_apart(named, extraction)


def _check_keep(keep: str, out: object, last_look: LastLook | None) -> None:
    if last_look is not None and keep != "profiles":
        raise InvalidInput("last_look is called before vectors are deleted: give keep='profiles' too.")
    if keep not in KEEPS:
        raise UnknownName.among("thing to keep", keep, KEEPS)
    if keep == "profiles" and out is None:
        raise InvalidInput("keep='profiles' says what stays in a run directory: give out=… too.")


def usual_resamples(preset: str) -> int:
    """Folds over pairs, as in the paper's code, leave nothing to resample."""
    return 0 if preset == "salle2024" else RESAMPLES
