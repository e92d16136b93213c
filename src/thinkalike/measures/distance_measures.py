"""The table of measures, second part: distances between items, and who is near whom."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

from thinkalike.measures import distance_correlation, inputs, neighbours, rdms, topology
from thinkalike.measures.inputs import Vectors
from thinkalike.measures.measure import ANGLES, SHAPE, AllPairs, Measure, Prepared

_RDM_INVARIANCES = {
    "euclidean": SHAPE,
    "cosine": ANGLES,
    # The mean over units, which it removes, is not the same after a rotation.
    "correlation": frozenset({"scale", "permutation"}),
}


def _rsa(distance: str, correlation: str) -> Measure:
    prepare: Callable[[Vectors, str], Prepared] = partial(rdms.prepare_items, distance=distance)
    compare: Callable[..., float] = rdms.spearman
    all_pairs: AllPairs | None = None
    if correlation == "spearman":
        all_pairs = partial(rdms.spearman_all_pairs, distance=distance)
    elif correlation == "pearson":
        compare = partial(rdms.pearson, squared=distance != "euclidean")
        all_pairs = partial(rdms.pearson_all_pairs, distance=distance)
    else:
        prepare, compare = partial(rdms.prepare_kendall, distance=distance), rdms.kendall
    return Measure(
        rdms.rsa_name(distance, correlation),
        prepare,
        compare,
        kind="similarity",
        range=(-1.0, 1.0),
        invariances=_RDM_INVARIANCES[distance],
        bound="cosine",  # of distances or their ranks from the mean; Kendall's, of the signs of differences
        cost="n²d" if correlation == "pearson" else "n²d + n² log n",
        reference="Nili et al. 2014" if correlation == "kendall" else "Kriegeskorte et al. 2008",
        question=f"Are the same pairs of items far apart ({distance}, {correlation.capitalize()})?",
        all_pairs=all_pairs,
    )


_RSA = [_rsa(distance, correlation) for distance in rdms.DISTANCES for correlation in rdms.CORRELATIONS]

_WHOLE_MATRICES = [
    Measure(
        "rsa-rho-a",
        rdms.prepare_rho_a,
        rdms.rho_a,
        kind="similarity",
        range=(-1.0, 1.0),
        invariances=SHAPE,
        cost="n²d + n² log n",
        reference="Schütt et al. 2023",
        question="RSA as it is on average when ties are broken at random: for models that predict ties.",
    ),
    Measure(
        "rsa-whitened",
        distance_correlation.prepare_whitened,
        distance_correlation.inner_product,
        kind="similarity",
        range=(-1.0, 1.0),
        invariances=SHAPE,
        bound="cosine",
        cost="n²d",
        reference="Diedrichsen et al. 2021",
        question="Pearson's r of squared distances, knowing that those of one item err together.",
    ),
    Measure(
        "distance-correlation",
        distance_correlation.prepare_centred_distances,
        distance_correlation.distance_correlation,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=SHAPE,
        bound="root",
        cost="n²d",
        reference="Székely et al. 2007",
        question="Does either layer depend on the other, in any way? Rises with units per item.",
    ),
    Measure(
        "distance-correlation-unbiased",
        partial(distance_correlation.prepare_centred_distances, unbiased=True),
        distance_correlation.inner_product,
        kind="similarity",
        range=(-1.0, 1.0),
        invariances=SHAPE,
        bound="cosine",
        cost="n²d",
        reference="Székely and Rizzo 2013",
        question="The same, squared and without bias: 0 on average for unrelated layers.",
    ),
    Measure(
        "rdm-difference",
        inputs.centred,
        distance_correlation.distances_apart,
        kind="distance",
        range=(0.0, math.inf),
        invariances=SHAPE - {"scale"},
        metric=True,
        cost="n²d",
        reference="Yin and Shen 2018",
        question="How far apart are the two matrices of distances, their sizes counted?",
    ),
    Measure(
        "rtd",
        topology.prepare_distances,
        topology.divergence,
        kind="distance",
        range=(0.0, math.inf),
        invariances=SHAPE,
        cost="m³ and more, on 5 samples of m ≤ 200 items",
        reference="Barannikov et al. 2022",
        question="Which clusters and loops does one layer have and the other not?",
        needs_extra="topology",
    ),
]

_OF_NEIGHBOURS = {
    "mutual": ("Huh et al. 2024", "Do items keep their 10 nearest neighbours? Chance is 10/(n − 1)."),
    "jaccard": ("Wang et al. 2022", "The same, as a share of all that are neighbours in either layer."),
    "rank": ("Wang et al. 2022", "Do shared neighbours keep their ranks, the nearest counting most?"),
    "lcs": ("Huh et al. 2024", "How long a list of neighbours is in the same order in both layers, over 10?"),
    "cycle": ("Huh et al. 2024", "Is an item an X-neighbour of one of its own Y-neighbours?"),
}
_BOUNDS: dict[str, Literal["share", "range"]] = {
    **dict.fromkeys(("mutual", "jaccard", "lcs"), "share"),
    "cycle": "range",  # a layer may do better with others than with itself
}


def _of_neighbours(kind: str, *, cosine: bool) -> Measure:
    reference, question = _OF_NEIGHBOURS[kind]
    return Measure(
        f"{kind}-knn" + "-cosine" * cosine,
        partial(neighbours.prepare_neighbours, cosine=cosine),
        neighbours.FAMILY[kind],
        kind="similarity",
        range=(0.0, 1.0),
        invariances=ANGLES if cosine else SHAPE,
        bound=_BOUNDS.get(kind),
        symmetric=kind != "cycle",
        best_when_equal=kind != "cycle",
        cost="n²d",
        reference=reference,
        question="The same with angles instead of distances, as in the paper." if cosine else question,
    )


_NEIGHBOURS = [
    *(_of_neighbours(kind, cosine=cosine) for kind in _OF_NEIGHBOURS for cosine in (False, True)),
    Measure(
        "second-order-cosine",
        neighbours.prepare_directions,
        neighbours.second_order_cosine,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=ANGLES,
        cost="n²d",
        reference="Hamilton et al. 2016",
        question="Are the neighbours that an item has in either layer as near in both?",
    ),
    Measure(
        "cknna",
        neighbours.prepare_directions,
        neighbours.cknna,
        kind="similarity",
        range=(-math.inf, math.inf),
        invariances=ANGLES,
        symmetric=False,
        cost="n²d",
        reference="Huh et al. 2024",
        question="CKA of the cosines among nearest neighbours alone.",
    ),
]

DISTANCE_MEASURES = [*_RSA, *_WHOLE_MATRICES, *_NEIGHBOURS]
