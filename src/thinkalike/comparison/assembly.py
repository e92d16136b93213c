"""From profiles and activations to a `Comparison`: every matrix, test, map and sentence of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from thinkalike.activations.rows import check_same_items
from thinkalike.activations.store import Activations
from thinkalike.comparison.answer import answer
from thinkalike.comparison.cautions import Evidence, find_cautions
from thinkalike.comparison.comparison import Comparison, Controls
from thinkalike.comparison.maps import LayerMap, WordMaps, align, classical_mds, smacof
from thinkalike.comparison.power import power_table
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.similarity_matrix import (
    FEATURES,
    SimilarityMatrix,
    by_features,
    by_geometry,
    layers_of,
    stacked_importance,
)
from thinkalike.comparison.trajectories import trajectory_distances
from thinkalike.comparison.worst import geometric_distance
from thinkalike.inference.agreement import agreement
from thinkalike.inference.weighted_tau import contribution_matrix
from thinkalike.labels import Floats, Layer, row_name
from thinkalike.measures.rsa import rsa_matrix
from thinkalike.pairs.distances import QuadraticTarget, make_target
from thinkalike.parallel import map_in_order
from thinkalike.provenance import versions
from thinkalike.stimuli.differences import code_features, constant_features, share_differing
from thinkalike.stimuli.table import Stimuli

MAPPED_ITEMS = 400
SMALLEST_RSA = 0.05
"""Of a geometric similarity nearer to 0 than this, no share is given."""


def assemble(
    stimuli: Stimuli,
    profiles: Sequence[Profile],
    activations: Sequence[Activations],
    *,
    measures: Sequence[str] = (),
    untrained: Mapping[str, Profile] | None = None,
    settings: Mapping[str, Any],
    seed: int = 0,
) -> Comparison:
    """Everything that two or more profiled systems say together.

    Parameters
    ----------
    profiles, activations : of the same systems, in the same order.
    measures : of `MEASURES`, besides features and RSA.
    untrained : profiles of untrained copies, by the name of the trained system.
    settings : of the profiles: `distance`, `ordered`, `missing` and the rest.
    """
    check_same_items(activations)
    features = by_features(profiles, seed=seed)
    controls = _controls(untrained, seed) if untrained else None
    if controls is not None:
        features = _with_controls(features, controls)
    geometric = geometric_distance(settings)
    rsa, explained_share = _rsa(activations, stimuli, settings, distance=geometric, seed=seed)
    others = [by_geometry(activations, m, distance=geometric, seed=seed) for m in measures if m != "rsa"]
    matrices = {m.measure: m for m in (features, rsa, *others)}
    kept = features.settings["features"]
    importance = stacked_importance(profiles, kept)
    named = {profile.system: profile for profile in profiles}
    return Comparison(
        stimuli=stimuli,
        profiles=named,
        matrices=matrices,
        contributions=contribution_matrix(importance),
        explained_share=explained_share,
        agreements=tuple(
            agreement(a, _alike(matrices[a]), b, _alike(matrices[b]), features.rows, seed=seed)
            for a, b in combinations(matrices, 2)
        ),
        layer_maps=_layer_maps(matrices),
        word_maps=_word_maps(activations, stimuli, distance=geometric, seed=seed),
        trajectories=trajectory_distances(
            list(named), [stacked_importance([profile], kept) for profile in profiles]
        ),
        correlations=_correlations(profiles[0]),
        cautions=find_cautions(
            Evidence(
                profiles,
                features,
                (rsa, *others),
                _differing(stimuli, settings),
                constant_features(stimuli.features, missing=settings["missing"]),
            )
        ),
        power=power_table(profiles, len(stimuli)),
        answer=answer(named, matrices),
        settings=dict(settings),
        versions=versions(),
        controls=controls,
        activations={a.system: a for a in activations},
    )


def _rsa(
    activations: Sequence[Activations],
    stimuli: Stimuli,
    settings: Mapping[str, Any],
    *,
    distance: str,
    seed: int,
) -> tuple[SimilarityMatrix, Floats]:
    """The RSA matrix, and the share of each entry that the feature differences explain, from one pass."""
    rows = tuple((a.system, layer) for a in activations for layer in a.layers)
    found = rsa_matrix(
        layers_of(activations),
        names=[row_name(row) for row in rows],
        distance=distance,
        differences=code_features(stimuli.features, ordered=settings["ordered"], missing=settings["missing"]),
        seed=seed,
    )
    assert found.explained is not None
    large = np.abs(found.values) >= SMALLEST_RSA
    share = np.divide(found.explained, found.values, out=np.full(large.shape, np.nan), where=large)
    about = {"distance": distance, "n_pairs": found.n_pairs, "sampled": found.sampled, "seed": seed}
    return SimilarityMatrix("rsa", rows, found.values, settings=about), share


def _controls(untrained: Mapping[str, Profile], seed: int) -> Controls:
    return Controls(dict(untrained), by_features(list(untrained.values()), seed=seed))


def _with_controls(features: SimilarityMatrix, controls: Controls) -> SimilarityMatrix:
    """The block tests with the block means of the untrained copies beside them."""
    copies = {name: profile.system for name, profile in controls.profiles.items()}
    means = {frozenset((block.a, block.b)): block.mean for block in controls.similarity.blocks}
    blocks = tuple(
        replace(block, control=means.get(frozenset((copies.get(block.a), copies.get(block.b))), float("nan")))  # type: ignore[arg-type]
        for block in features.blocks
    )
    return replace(features, blocks=blocks)


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


def _word_maps(activations: Sequence[Activations], stimuli: Stimuli, *, distance: str, seed: int) -> WordMaps:
    """The same items in every layer: all, or a seeded subset of 400."""
    places = np.sort(np.random.default_rng(seed).permutation(len(stimuli))[:MAPPED_ITEMS])
    rows = [(a, layer) for a in activations for layer in a.layers]

    def of_layer(row: tuple[Activations, Layer]) -> tuple[Floats, Floats]:
        system, layer = row
        target = make_target(system[layer][places], distance)
        rows = target.coordinates() if isinstance(target, QuadraticTarget) else None
        return classical_mds(system[layer][places] if rows is None else rows)

    maps = map_in_order(of_layer, rows, description="Maps of words")
    return WordMaps(
        rows=tuple((a.system, layer) for a, layer in rows),
        items=tuple(stimuli.items.index[places]),
        coordinates=np.stack([coordinates for coordinates, _ in maps]),
        explained=np.stack([explained for _, explained in maps]),
    )


def _differing(stimuli: Stimuli, settings: Mapping[str, Any]) -> dict[str, float]:
    coded = code_features(stimuli.features, ordered=settings["ordered"], missing=settings["missing"])
    return {f.name: share_differing(f) for f in coded.features if f.kind != "nominal" and f.is_indicator}


def _correlations(profile: Profile) -> pd.DataFrame:
    assert profile.collinearity is not None
    names = list(profile.collinearity.features)
    return pd.DataFrame(profile.collinearity.correlations, index=names, columns=names)
