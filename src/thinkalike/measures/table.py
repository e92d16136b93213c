"""The table of measures: every one with what it declares, by its name."""

from __future__ import annotations

import math
from functools import partial

from thinkalike.errors import UnknownName
from thinkalike.measures import cca, cka, shapes
from thinkalike.measures.measure import LINEAR, SHAPE, Measure

_CKA = [
    Measure(
        "cka",
        cka.prepare_linear,
        cka.cka,
        kind="similarity",
        range=(-1.0, 1.0),
        invariances=SHAPE,
        cost="min(n²d, nd²)",
        reference="Kornblith et al. 2019; Nguyen et al. 2021",
        question="Do the large directions of both layers order the items alike? 0 for unrelated ones.",
        all_pairs=cka.cka_all_pairs,
    ),
    Measure(
        "cka-biased",
        cka.prepare_linear,
        cka.cka_biased,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=SHAPE,
        cost="min(n²d, nd²)",
        reference="Kornblith et al. 2019",
        question="CKA as first published, to compare with older papers; rises with units per item.",
        all_pairs=partial(cka.cka_all_pairs, biased=True),
    ),
    Measure(
        "cka-angular",
        cka.prepare_linear,
        cka.cka_angular,
        kind="distance",
        range=(0.0, math.pi / 2),
        invariances=SHAPE,
        metric=True,
        cost="min(n²d, nd²)",
        reference="Williams et al. 2021",
        question="CKA as a proper distance, for clustering and maps.",
    ),
    Measure(
        "cka-rbf",
        cka.prepare_gaussian,
        cka.cka_gaussian,
        kind="similarity",
        range=(-1.0, 1.0),
        invariances=SHAPE,
        cost="n²d",
        reference="Kornblith et al. 2019; Song et al. 2012",
        question="Are near neighbours alike too, not only the large directions?",
    ),
]

_CCA = [
    Measure(
        "cca",
        cca.prepare_basis,
        cca.cca,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=LINEAR,
        cost="nd² + d³",
        reference="Raghu et al. 2017; Kornblith et al. 2019",
        question="Do both layers hold the same linear information, however small its variance?",
    ),
    Measure(
        "svcca",
        cca.prepare_leading,
        cca.svcca,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=SHAPE,
        cost="nd² + d³",
        reference="Raghu et al. 2017",
        question="The same, among the directions that hold 99 % of each layer's variance.",
    ),
    Measure(
        "pwcca",
        cca.prepare_basis,
        cca.pwcca,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=frozenset({"translation", "scale"}),
        of_second=LINEAR,
        symmetric=False,
        cost="nd² + d³",
        reference="Morcos et al. 2018",
        question="The same, weighted by how much of X each direction accounts for.",
    ),
]

_SHAPES = [
    Measure(
        "procrustes",
        shapes.prepare_shape,
        shapes.procrustes,
        kind="distance",
        range=(0.0, math.sqrt(2)),
        invariances=SHAPE,
        metric=True,
        cost="nd² + d³",
        reference="Ding et al. 2021; Williams et al. 2021",
        question="How far apart are the layers after the best rotation?",
    ),
    Measure(
        "procrustes-angular",
        shapes.prepare_shape,
        shapes.procrustes_angular,
        kind="distance",
        range=(0.0, math.pi / 2),
        invariances=SHAPE,
        metric=True,
        cost="nd² + d³",
        reference="Williams et al. 2021",
        question="The same as an angle.",
    ),
]

MEASURES: dict[str, Measure] = {measure.name: measure for measure in [*_CKA, *_CCA, *_SHAPES]}


def get_measure(name: str) -> Measure:
    """The measure of that name, or an error that suggests the nearest one."""
    if name not in MEASURES:
        raise UnknownName.among("measure", name, MEASURES)
    return MEASURES[name]
