"""The table of measures: every one with what it declares, by its name."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from thinkalike.errors import InvalidInput
from thinkalike.measures import (
    cca,
    cka,
    dynamics,
    gulp,
    neighbours,
    probes,
    rdms,
    regression,
    shapes,
    topology,
)
from thinkalike.measures.inputs import Array, Layer
from thinkalike.measures.measure import LINEAR, SHAPE, AllPairs, Measure, Prepared
from thinkalike.registry import Registry

LayerFunction = Callable[[Array, Array], float]
"""(X, Y) → number, of two layers (n_items, n_units)"""

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
        all_pairs=cka.cka_angular_all_pairs,
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

_RDM_INVARIANCES = {
    "euclidean": SHAPE,
    "cosine": frozenset({"scale", "rotation"}),
    # The mean over units, which it removes, is not the same after a rotation.
    "correlation": frozenset({"scale"}),
}


def _rsa(distance: str, correlation: str) -> Measure:
    prepare: Callable[[Layer, str], Prepared] = partial(rdms.prepare_items, distance=distance)
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
        cost="n²d" if correlation == "pearson" else "n²d + n² log n",
        reference="Nili et al. 2014" if correlation == "kendall" else "Kriegeskorte et al. 2008",
        question=f"Are the same pairs of items far apart ({distance}, {correlation.capitalize()})?",
        all_pairs=all_pairs,
    )


_RSA = [_rsa(distance, correlation) for distance in rdms.DISTANCES for correlation in rdms.CORRELATIONS]

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
        question="The same as an angle; the α = 1 end of the shape metrics.",
    ),
    Measure(
        "shape-0.5",
        shapes.prepare_basis,
        partial(shapes.shape_distance, alpha=0.5),
        kind="distance",
        range=(0.0, math.pi / 2),
        invariances=SHAPE,
        metric=True,
        cost="nd² + d³",
        reference="Williams et al. 2021",
        question="Half way between Procrustes and CCA, in how much the small directions count.",
    ),
    Measure(
        "shape-0",
        shapes.prepare_basis,
        partial(shapes.shape_distance, alpha=0.0),
        kind="distance",
        range=(0.0, math.pi / 2),
        invariances=LINEAR,
        metric=True,
        cost="nd² + d³",
        reference="Williams et al. 2021",
        question="CCA as a proper distance; the α = 0 end of the shape metrics.",
    ),
]

_REGRESSION = [
    Measure(
        "regression",
        cca.prepare_basis,
        regression.explained,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=SHAPE,
        of_first=LINEAR,
        symmetric=False,
        cost="nd²",
        reference="Romero et al. 2015; Kornblith et al. 2019",
        question="How much of Y does a linear map from X explain (R², on the same items)?",
    ),
    Measure(
        "regression-reverse",
        cca.prepare_basis,
        regression.explained_reverse,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=SHAPE,
        of_second=LINEAR,
        symmetric=False,
        cost="nd²",
        reference="Romero et al. 2015; Kornblith et al. 2019",
        question="How much of X does a linear map from Y explain?",
    ),
    Measure(
        "regression-mean",
        cca.prepare_basis,
        regression.explained_mean,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=SHAPE,
        cost="nd²",
        reference="Kornblith et al. 2019",
        question="The mean of both directions.",
    ),
    Measure(
        "regression-cv",
        regression.prepare_scaled,
        regression.explained_held_out,
        kind="similarity",
        range=(-math.inf, 1.0),
        invariances=SHAPE,
        symmetric=False,
        cost="nd² + d³",
        reference="Schrimpf et al. 2018",
        question="How much of Y does a ridge regression from X predict on held-out items? Works with n < d.",
    ),
]

_OTHERS = [
    Measure(
        "mutual-knn",
        neighbours.prepare_neighbours,
        neighbours.mutual_neighbours,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=SHAPE,
        cost="n²d",
        reference="Huh et al. 2024",
        question="Do items keep their 10 nearest neighbours? Chance is 10/(n − 1).",
    ),
    Measure(
        "mutual-knn-cosine",
        partial(neighbours.prepare_neighbours, cosine=True),
        neighbours.mutual_neighbours,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=frozenset({"scale", "rotation"}),
        cost="n²d",
        reference="Huh et al. 2024",
        question="The same with angles instead of distances, as in the paper.",
    ),
    Measure(
        "gulp",
        gulp.prepare_predictor,
        gulp.gulp,
        kind="distance",
        range=(0.0, math.inf),
        invariances=SHAPE,
        metric=True,
        cost="nd² + d³",
        reference="Boix-Adserà et al. 2022",
        question="How differently do ridge regressions on both layers predict, over all tasks?",
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
    probes.Probe(
        "probe",
        probes.prepare_items,
        probes.accuracy,
        kind="similarity",
        range=(0.0, 1.0),
        invariances=frozenset(),
        of_first=frozenset({"translation", "scale"}),
        symmetric=False,
        cost="nd per step of a logistic regression",
        reference="Alain and Bengio 2018",
        question="How well can a declared feature be read off a layer? Takes the labels of the items as Y.",
        takes="feature",
    ),
]


def _accept(name: str, given: object) -> Measure:
    """A Measure of that name, or a function (X, Y) → number, about which nothing more is known."""
    if isinstance(given, Measure) and given.name == name:
        return given
    if callable(given) and not isinstance(given, Measure):
        return from_function(given, name)
    raise InvalidInput(
        f"The measure {name!r} is {given!r}: give a Measure of that name, or a function (X, Y) → number."
    )


MEASURES: Registry[Measure] = Registry(
    "measure",
    "thinkalike.measures",
    {measure.name: measure for measure in [*_CKA, *_RSA, *_CCA, *_SHAPES, *_REGRESSION, *_OTHERS]},
    accept=_accept,
)
"""Name → measure: `MEASURES["cka"](X, Y)`. Others add to it: `MEASURES.register("mine", function)`"""


def get_measure(name: str) -> Measure:
    """The measure of that name, or an error that suggests the nearest one.

    Parameters
    ----------
    name : a key of `MEASURES`

    Returns
    -------
    Measure
        To be called with two layers.

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.measures import get_measure
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> turned = X @ np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    >>> round(get_measure("cka")(X, turned), 6)
    1.0
    >>> get_measure("kca")
    Traceback (most recent call last):
    ...
    thinkalike.registry.UnknownEntry: There is no measure 'kca'. Did you mean 'cka'? Known: ...
    """
    return MEASURES[name]


def as_measure(measure: str | LayerFunction) -> Measure:
    """A measure by its name; or from a function of two layers, larger for those that are more alike."""
    if isinstance(measure, Measure):
        return measure
    if not callable(measure):
        return get_measure(measure)
    name = str(getattr(measure, "__name__", type(measure).__name__)).strip("<>")
    if name in MEASURES or name == "features":
        raise InvalidInput(f"The function is called {name}, as a measure of ours is: rename it.")
    return from_function(measure, name)


def from_function(function: LayerFunction, name: str) -> Measure:
    """A similarity from any function of two arrays (n_items, n_units) → number; it declares no invariance.

    Examples
    --------
    >>> import numpy as np
    >>> first_unit = from_function(lambda X, Y: np.corrcoef(X[:, 0], Y[:, 0])[0, 1], "first-unit")
    >>> round(first_unit(np.eye(4), np.eye(4)), 6)
    1.0
    """
    return Measure(
        name=name,
        prepare=lambda X, _: X,
        compare=lambda X, Y: _one_number(function(X, Y), name),
        kind="similarity",
        range=(-math.inf, math.inf),
        invariances=frozenset(),
        cost="its own",
        reference="one's own",
        question="What its function says.",
        symmetric=False,
    )


def _one_number(value: float, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"The function {name} gave {type(value).__name__} for two layers: it must give one number."
        ) from None
    return number


def layer_measures() -> list[str]:
    """The names of those that compare two layers: what a matrix over layers can be made of.

    Returns
    -------
    list of str
        In the order of the table.

    Examples
    --------
    >>> from thinkalike.measures import layer_measures
    >>> layer_measures()[:3]
    ['cka', 'cka-biased', 'cka-angular']
    """
    return [name for name, measure in MEASURES.items() if measure.takes == "layers"]
