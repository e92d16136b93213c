"""From profiles and activations to a `Comparison`: every matrix, test, map and sentence of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from thinkalike.activations.rows import check_same_items
from thinkalike.activations.store import Activations
from thinkalike.comparison.cautions import Evidence, find_cautions
from thinkalike.comparison.comparison import Comparison, Controls
from thinkalike.comparison.diagnostics import precision_table
from thinkalike.comparison.feature_similarity import by_features, shared_features, stacked_importance
from thinkalike.comparison.geometry_similarity import LayerVectors, between_vectors, with_tests
from thinkalike.comparison.layerpass import Geometry
from thinkalike.comparison.maps import LayerMap, WordMaps, align, smacof
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import ProfilingPlan
from thinkalike.comparison.similarity_matrix import FEATURES, SimilarityMatrix
from thinkalike.comparison.trajectories import block_means, trajectory_distances
from thinkalike.inference.agreement import agreement, beside_untrained, corrected_for_matrices
from thinkalike.inference.block_tests import BlockTest
from thinkalike.inference.geometry_tests import GeometryTest
from thinkalike.inference.halves import AcrossHalves
from thinkalike.inference.ranges import jackknife_range
from thinkalike.inference.sentences import SentencePlan
from thinkalike.inference.weighted_tau import contribution_matrix, tau_matrix
from thinkalike.labels import Floats, span_of
from thinkalike.measures import get_measure
from thinkalike.measures.measure import Measure
from thinkalike.provenance import versions
from thinkalike.stimuli.differences import FeatureDifferences, share_differing
from thinkalike.stimuli.table import Stimuli

Test = TypeVar("Test", BlockTest, GeometryTest)

SMALLEST_RSA = 0.05
"""Of a geometric similarity nearer to 0 than this, no share is given."""


def assemble(
    stimuli: Stimuli,
    profiles: Sequence[Profile],
    activations: Sequence[Activations],
    geometry: Geometry,
    plan: ProfilingPlan,
    *,
    measures: Sequence[Measure] = (),
    sentences: SentencePlan | None = None,
    untrained: Mapping[str, tuple[Profile, ...]] | None = None,
    settings: Mapping[str, Any],
    root: Path | None = None,
) -> Comparison:
    """Everything that two or more profiled systems say together.

    Parameters
    ----------
    profiles, activations : of the same systems, in the same order.
    geometry : from the pass over their layers, with the vectors if measures need them and they have room.
    plan : what the profiles were made by.
    measures : besides features and RSA.
    sentences : what is left out and what changes places, for ranges and p-values of geometric measures.
    untrained : profiles of untrained copies, by the name of the trained system.
    settings : of the profiles and the extraction.
    root : the run directory, if there is one, which workers see too.
    """
    check_same_items(activations)
    seed = plan.encoding.settings.seed
    features = by_features(profiles, seed=seed)
    rsa = _rsa(geometry, distance=settings["distance"], seed=seed)
    controls: Controls | None = None
    drawn: list[tuple[SimilarityMatrix, SimilarityMatrix]] = []
    if untrained:
        drawn = _untrained_matrices(untrained, geometry)
        features, rsa, controls = _with_controls(features, rsa, untrained, drawn)
    share, share_range = _explained(geometry)
    vectors = geometry.vectors or LayerVectors(activations, plan.steps)
    stored = () if plan.steps else activations  # workers read what is stored
    others = [
        between_vectors(vectors, geometry.rows, m, plan=sentences, systems=stored, root=root)
        for m in measures
    ]
    matrices = {m.measure: m for m in (features, rsa, *others)}
    kept = features.settings["features"]
    importance = stacked_importance(profiles, kept)
    named = {profile.system: profile for profile in profiles}
    agreements = corrected_for_matrices(
        [
            agreement(a, _alike(matrices[a]), b, _alike(matrices[b]), features.rows, seed=seed)
            for a, b in combinations(matrices, 2)
        ]
    )
    if untrained and set(untrained) == set(named):  # copies of some of the systems are no match for all
        copies = [(one.values, other.values) for one, other in drawn]
        agreements = tuple(
            beside_untrained(one, copies) if {one.a, one.b} == {FEATURES, "rsa"} else one
            for one in agreements
        )
    return Comparison(
        stimuli=stimuli,
        profiles=named,
        matrices=matrices,
        contributions=contribution_matrix(importance),
        explained_share=share,
        explained_range=share_range,
        agreements=agreements,
        layer_maps=_layer_maps(matrices),
        word_maps=_word_maps(geometry, stimuli),
        trajectories=trajectory_distances(
            list(named),
            [block_means(profile.layers, stacked_importance([profile], kept)) for profile in profiles],
        ),
        correlations=_correlations(profiles[0]),
        cautions=find_cautions(
            Evidence(
                profiles,
                features,
                (rsa, *others),
                _differing(plan.differences),
                plan.left_out,
                len(stimuli),
                agreements,
            )
        ),
        precision=precision_table(profiles, len(stimuli)),
        settings=dict(settings),
        versions=versions(),
        controls=controls,
        activations={a.system: a for a in activations},
    )


def _rsa(geometry: Geometry, *, distance: str, seed: int) -> SimilarityMatrix:
    found, without = geometry.rsa, geometry.left_out
    about = {"distance": distance, "n_pairs": found.n_pairs, "sampled": found.sampled, "seed": seed}
    matrix = SimilarityMatrix("rsa", geometry.rows, found.values, settings=about)
    left_out = None if without is None else without.values
    tested = with_tests(matrix, get_measure("rsa"), left_out, geometry.null)
    return tested if geometry.halves is None else with_reliability(tested, geometry.halves)


def with_reliability(matrix: SimilarityMatrix, found: AcrossHalves) -> SimilarityMatrix:
    """The matrix with what it is across halves of the sentences, and the ceiling of that, beside it."""
    tests = []
    for test in matrix.tests:
        block = span_of(matrix.rows, test.a), span_of(matrix.rows, test.b)
        others = np.ones_like(found.across[block], dtype=bool)
        if test.a == test.b:
            np.fill_diagonal(others, val=False)
        known = others & np.isfinite(found.ceiling[block])
        if known.any():
            across, ceiling = (float(part[block][known].mean()) for part in (found.across, found.ceiling))
            test = replace(test, across=across, ceiling=ceiling)
        tests.append(test)
    return replace(matrix, across=found.across, ceiling=found.ceiling, tests=tuple(tests))


def _explained(geometry: Geometry) -> tuple[Floats, tuple[Floats, Floats] | None]:
    """The share of each entry of RSA that the feature differences explain, and its range."""
    found, without = geometry.rsa, geometry.left_out
    assert found.explained is not None
    share = explained_share(found.values, found.explained)
    if without is None or without.explained is None:
        return share, None
    low, high, _ = jackknife_range(share, explained_share(without.values, without.explained))
    return share, (low, high)


def explained_share(rsa: Floats, explained: Floats) -> Floats:
    """NaN where RSA is too near to 0 to be shared out."""
    large = np.abs(rsa) >= SMALLEST_RSA
    return np.divide(explained, rsa, out=np.full(large.shape, np.nan), where=large)


def _untrained_matrices(
    untrained: Mapping[str, tuple[Profile, ...]], geometry: Geometry
) -> list[tuple[SimilarityMatrix, SimilarityMatrix]]:
    """By features and by RSA, over the layers of the copies of each draw, under the names of the trained."""
    kept = shared_features([copy for draws in untrained.values() for copy in draws])
    assert geometry.copies is not None
    found = []
    for copies in zip(*untrained.values(), strict=True):
        rows = tuple(
            (name, layer) for name, one in zip(untrained, copies, strict=True) for layer in one.layers
        )
        place = np.concatenate([np.r_[span_of(geometry.copied, one.system)] for one in copies])
        by_importance = tau_matrix(stacked_importance(copies, kept))
        found.append(
            (
                SimilarityMatrix(FEATURES, rows, by_importance, settings={"features": kept}),
                SimilarityMatrix("rsa", rows, geometry.copies[np.ix_(place, place)]),
            )
        )
    return found


def _with_controls(
    features: SimilarityMatrix,
    rsa: SimilarityMatrix,
    untrained: Mapping[str, tuple[Profile, ...]],
    drawn: Sequence[tuple[SimilarityMatrix, SimilarityMatrix]],
) -> tuple[SimilarityMatrix, SimilarityMatrix, Controls]:
    """The tests with the means of untrained copies beside them, over all draws of weights."""
    by_importance, by_distance = zip(*drawn, strict=True)
    features = replace(features, blocks=tuple(_beside(b, by_importance) for b in features.blocks))
    rsa = replace(rsa, tests=tuple(_beside(t, by_distance) for t in rsa.tests))
    means = (
        replace(some[0], values=np.mean([one.values for one in some], axis=0))
        for some in (by_importance, by_distance)
    )
    return features, rsa, Controls(dict(untrained), *means)


def _beside(test: Test, drawn: Sequence[SimilarityMatrix]) -> Test:
    """With the mean of the copies, and in how many draws they are as alike."""
    if not {test.a, test.b} <= set(drawn[0].systems):
        return test
    means = np.array([one.block_mean(test.a, test.b) for one in drawn])
    return replace(test, control=float(means.mean()), control_share=float((means >= test.mean).mean()))


def _alike(matrix: SimilarityMatrix) -> Floats:
    """Larger is more alike, for every kind of matrix."""
    return -matrix.values if matrix.kind == "distance" else matrix.values


def _layer_maps(matrices: Mapping[str, SimilarityMatrix]) -> dict[str, LayerMap]:
    """One map per measure, turned to lie as close as can be to the first."""
    maps: dict[str, LayerMap] = {}
    for name, matrix in matrices.items():
        points, stress = smacof(matrix.dissimilarities())
        if maps:
            points = align(points, maps[FEATURES].coordinates)
        maps[name] = LayerMap(name, matrix.rows, points, stress)
    return maps


def _word_maps(geometry: Geometry, stimuli: Stimuli) -> WordMaps:
    return WordMaps(
        rows=geometry.rows,
        items=tuple(stimuli.items.index[geometry.mapped]),
        coordinates=np.stack([coordinates for coordinates, _ in geometry.words]),
        explained=np.stack([explained for _, explained in geometry.words]),
    )


def _differing(coded: FeatureDifferences) -> dict[str, float]:
    return {f.name: share_differing(f) for f in coded.features if f.kind != "nominal" and f.is_indicator}


def _correlations(profile: Profile) -> pd.DataFrame:
    assert profile.collinearity is not None
    names = list(profile.collinearity.features)
    return pd.DataFrame(profile.collinearity.correlations, index=names, columns=names)
