"""The table of measures, third part: single units, layers as wholes, sequences, outputs and features."""

from __future__ import annotations

import math

from thinkalike.measures import dynamics, inputs, matching, outputs, probes, spread
from thinkalike.measures.measure import ANGLES, SHAPE, Measure

_UNITS = [
    Measure(
        "matching-hard",
        matching.prepare_units,
        matching.hard_matching,
        kind="similarity",
        range=(-1.0, 1.0),
        invariances=SHAPE - {"rotation"},
        cost="nd² + d³",
        reference="Li et al. 2016",
        question="How well do units correlate, each with one of the other layer?",
    ),
    Measure(
        "matching-soft",
        matching.prepare_units,
        matching.soft_matching,
        kind="similarity",
        range=(-1.0, 1.0),
        invariances=SHAPE - {"rotation"},
        cost="nd²",
        reference="Li et al. 2016",
        question="How well does each unit correlate with the best of the other layer?",
    ),
    Measure(
        "permutation-procrustes",
        inputs.unit_norm,
        matching.permutation_procrustes,
        kind="distance",
        range=(0.0, 2.0),
        invariances=SHAPE - {"rotation"},
        metric=True,
        cost="nd² + d³",
        reference="Williams et al. 2021",
        question="How far apart are the layers after the best order of the units?",
    ),
    Measure(
        "matching-transport",
        matching.prepare_clouds,
        matching.transport_distance,
        kind="distance",
        range=(0.0, 2.0),
        invariances=SHAPE - {"rotation"},
        metric=True,
        cost="nd² + d³",
        reference="Khosla and Williams 2024",
        question="The same for layers of other widths, whose units are divided among each other.",
        needs_extra="matching",
    ),
]

_WHOLE_LAYERS = [
    Measure(
        "imd",
        spread.prepare_heat,
        spread.heat_difference,
        kind="distance",
        range=(0.0, math.inf),
        invariances=SHAPE,
        matches_items=False,
        cost="m³ for m ≤ 2,000 items",
        reference="Tsitsulin et al. 2020",
        question="Does heat spread alike over the graph of neighbours? Which item is which does not count.",
    ),
    Measure(
        "uniformity",
        spread.prepare_uniformity,
        spread.difference,
        kind="distance",
        range=(0.0, 8.0),
        invariances=ANGLES,
        matches_items=False,
        cost="n²d",
        reference="Wang and Isola 2020",
        question="Do the items fill the directions as evenly? Which item is which does not count.",
    ),
    Measure(
        "concentricity",
        spread.prepare_concentricity,
        spread.difference,
        kind="distance",
        range=(0.0, 2.0),
        invariances=ANGLES,
        matches_items=False,
        cost="nd",
        reference="Wang et al. 2022",
        question="Do the items lie as close to their mean direction? Which item is which does not count.",
    ),
]

_OTHERS = [
    dynamics.SequenceMeasure(
        "dsa",
        dynamics.prepare_dynamics,
        dynamics.dsa,
        kind="distance",
        range=(0.0, math.inf),
        invariances=SHAPE,
        cost="nd²",
        reference="Ostrow et al. 2023",
        question="Do both layers move alike through a sequence? Rows are steps in time.",
        takes="sequences",
        needs_extra="dsa",
    ),
    outputs.OutputMeasure(
        "jensen-shannon",
        outputs.prepare_probabilities,
        outputs.jensen_shannon,
        kind="distance",
        range=(0.0, 1.0),
        invariances=frozenset(),
        cost="n × tokens",
        reference="Lin 1991",
        question="How far apart are the predictions of two models? Takes their logits.",
        takes="outputs",
    ),
    outputs.OutputMeasure(
        "disagreement",
        outputs.prepare_logits,
        outputs.disagreement,
        kind="distance",
        range=(0.0, 1.0),
        invariances=frozenset({"scale"}),
        cost="n × tokens",
        reference="Madani et al. 2004",
        question="How often is the likeliest output another? Takes the logits of two models.",
        takes="outputs",
    ),
    probes.Probe(
        "probe",
        probes.prepare_items,
        probes.accuracy,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=frozenset(),
        of_first=frozenset({"translation", "scale", "permutation"}),
        symmetric=False,
        cost="nd per step of a logistic regression",
        reference="Alain and Bengio 2018",
        question="How well can a declared feature be read off a layer? Takes the labels of the items as Y.",
        takes="feature",
    ),
]

OTHER_MEASURES = [*_UNITS, *_WHOLE_LAYERS, *_OTHERS]
