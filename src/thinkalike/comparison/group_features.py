"""Models beside a group by features: τ_w of importance profiles, subject by subject.

As between two systems (`feature_similarity`) the effect is τ_w of importances, and τ_w of *strengths* carries
the tests: systems that have nothing to do with each other rank importances alike, because a feature that
differs in most pairs is important in all of them. So p over subjects is Student's, of the τ_w of strengths
less its mean over all relabellings; p over items relabels the strengths of the model. Where the features
explain nothing of the group or of the model, strengths are noise, and no p is given.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thinkalike.activations.store import Activations
from thinkalike.comparison.feature_similarity import shared_features
from thinkalike.comparison.group import GroupComparison
from thinkalike.comparison.group_ceilings import WORDS
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import plan_profiles, profile
from thinkalike.inference.block_tests import FEWEST_FEATURES
from thinkalike.inference.over_subjects import Ceilings
from thinkalike.inference.ranges import degrees_of_freedom, quantile, with_noise
from thinkalike.inference.weighted_tau import relabelled_taus, relabellings, tau
from thinkalike.labels import Floats, row_name
from thinkalike.stimuli.table import Stimuli
from thinkalike.wording import listed

RESAMPLES = 20
"""Parts of the items that are left out, in two deals of ten, to know the noise of importances"""
EQUAL = 1e-12
NOTHING = "the features explain nothing of it (ρ is not above 0 over the folds), so that strengths are noise"


def compare_by_features(
    people: list[Activations], systems: list[Activations], stimuli: Stimuli, *, seed: int, **settings: Any
) -> GroupComparison:
    """τ_w of every subject's regions with every layer of the models; see `compare_with_group`."""
    plan = plan_profiles(stimuli, seed=seed, **{"resamples": RESAMPLES, **settings})
    ours, theirs = ([profile(one, stimuli, plan=plan) for one in some] for some in (people, systems))
    kept = shared_features([*ours, *theirs])
    columns = [ours[0].features.index(name) for name in kept]
    subjects = np.stack([one.mean_importance for one in ours])[..., columns]
    models = np.concatenate([one.mean_importance for one in theirs])[:, columns]
    ends = [_ceilings(subjects[:, r]) for r in range(subjects.shape[1])]
    tested = _tests(ours, theirs, columns, seed)
    return GroupComparison(
        "features",
        tuple(one.system for one in people),
        tuple(people[0].layers),
        tuple((one.system, layer) for one in systems for layer in one.layers),
        _taus(subjects, models),
        tested.above,
        np.array([np.full(len(models), end.lower.mean()) for end in ends]),
        np.array([np.full(len(models), end.upper.mean()) for end in ends]),
        tested.p_items,
        people[0].n_items,
        noisy=_noisy(ours, theirs, columns, seed),
        freedom=_freedom(ours[0]),
        untested=tested.why,
        settings={
            **plan.settings,
            "features": list(kept),
            "p": "of τ_w of strengths: over subjects by Student's t, over items by relabelling",
            "ceilings": WORDS["mean profile"],
        },
    )


def _taus(subjects: Floats, models: Floats) -> Floats:
    """(n_subjects, n_regions, n_rows) of importances (n_subjects, n_regions, F) and (n_rows, F)."""
    return tau(subjects[:, :, None, :], models)


class _Tests(NamedTuple):
    """What the strengths say.

    Attributes
    ----------
    above : (n_subjects, n_regions, n_rows) τ_w of strengths less what relabellings give; NaN without a test
    p_items : (n_regions, n_rows)
    why : why some are not tested, in sentences
    """

    above: Floats
    p_items: Floats
    why: tuple[str, ...]


def _tests(ours: list[Profile], theirs: list[Profile], columns: list[int], seed: int) -> _Tests:
    subjects = np.stack([one.mean_strengths for one in ours])[..., columns]
    models = np.concatenate([one.mean_strengths for one in theirs])[:, columns]
    known = np.isfinite(subjects).all(axis=(0, 1)) & np.isfinite(models).all(axis=0)
    above = np.full((*subjects.shape[:2], len(models)), np.nan)
    p_items = np.full(above.shape[1:], np.nan)
    if known.sum() < FEWEST_FEATURES:
        reason = f"There are {known.sum()} features with a strength, and no p of fewer than {FEWEST_FEATURES}"
        return _Tests(above, p_items, (f"{reason}: hardly an order of so few is rare by chance.",))
    orders = relabellings(int(known.sum()), seed=seed)
    heard = np.array([_is_explained(layer[None]) for one in theirs for layer in one.scores])
    names = [row_name(row) for one in theirs for row in one.rows]
    silent = [name for name, is_heard in zip(names, heard, strict=True) if not is_heard]
    why = [f"No p of {listed(silent)}: {NOTHING}."] if silent else []
    for r, region in enumerate(ours[0].layers):
        if not _is_explained(np.stack([one.scores[r] for one in ours])):
            why.append(f"No p of {region} in the subjects: {NOTHING}.")
            continue
        ours_here, theirs_here = subjects[:, r][:, known], models[:, known]
        given = next(relabelled_taus(ours_here, theirs_here, orders[:1]))[0]
        total, means = np.zeros_like(given), []
        for part in relabelled_taus(ours_here, theirs_here, orders):  # (n_orders, n_subjects, n_rows)
            total += part.sum(axis=0)
            means.append(part.mean(axis=1))
        mean = np.concatenate(means)
        above[:, r] = np.where(heard, given - total / len(orders), np.nan)
        p_items[r] = np.where(heard, (mean >= mean[0] - EQUAL).mean(axis=0), np.nan)
    return _Tests(above, p_items, tuple(why))


def _is_explained(scores: Floats) -> bool:
    """Whether the mean ρ (n_subjects, n_folds) is above 0 over folds, as `Profile.explains_something`."""
    by_fold = scores.mean(axis=0)
    if len(by_fold) < 2:
        return True
    error = by_fold.std(ddof=1) / np.sqrt(len(by_fold))
    return bool(by_fold.mean() > quantile(0.95, len(by_fold), parts=len(by_fold)) * error)


def _noisy(ours: list[Profile], theirs: list[Profile], columns: list[int], seed: int) -> Floats | None:
    """τ_w (n_draws, n_subjects, n_regions, n_rows) with the noise of the items added once more."""
    every = [*ours, *theirs]
    made = [one.replicates for one in every if one.replicates is not None]
    if len(made) < len(every):
        return None
    without = np.concatenate([one.importance for one in made], axis=1)[..., columns]
    without = without[np.isfinite(without).all(axis=(1, 2))]
    if len(without) < 2:
        return None
    values = np.concatenate([one.mean_importance for one in every])[:, columns]
    n = len(ours) * len(ours[0].layers)
    shape = (len(ours), len(ours[0].layers), len(columns))
    drawn = with_noise(values, without, parts=made[0].parts, seed=seed)
    return np.stack([_taus(one[:n].reshape(shape), one[n:]) for one in drawn])


def _freedom(one: Profile) -> float | None:
    made = one.replicates
    return None if made is None else degrees_of_freedom(len(made.importance), **made.dealt)


def _ceilings(importance: Floats) -> Ceilings:
    """τ_w of each subject's importances (n_subjects, F) with the means of the others, and of all."""
    S = len(importance)
    if S < 2:
        unknown = np.full(S, np.nan)
        return Ceilings(unknown, unknown)
    total = importance.sum(axis=0)
    others = (total - importance) / (S - 1)
    return Ceilings(tau(importance, others), tau(importance, np.broadcast_to(total / S, importance.shape)))
