"""The table of measures: every one with what it declares, by its name."""

from __future__ import annotations

import math
from collections.abc import Callable

from thinkalike.errors import InvalidInput
from thinkalike.measures.distance_measures import DISTANCE_MEASURES
from thinkalike.measures.inputs import Array
from thinkalike.measures.linear_measures import LINEAR_MEASURES
from thinkalike.measures.measure import Measure
from thinkalike.measures.other_measures import OTHER_MEASURES
from thinkalike.registry import Registry

LayerFunction = Callable[[Array, Array], float]
"""(X, Y) → number, of two layers (n_items, n_units)"""


def _accept(name: str, given: object) -> Measure:
    """A Measure of that name, or a function (X, Y) → number, about which nothing more is known."""
    if isinstance(given, Measure) and given.name == name:
        return given
    if callable(given) and not isinstance(given, Measure):
        return from_function(given, name)
    raise InvalidInput(
        f"The measure {name!r} is {given!r}: give a Measure of that name, or a function (X, Y) → number."
    )


OURS = (*LINEAR_MEASURES, *DISTANCE_MEASURES, *OTHER_MEASURES)

MEASURES: Registry[Measure] = Registry(
    "measure",
    "thinkalike.measures",
    {measure.name: measure for measure in OURS},
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
