"""Steps that vectors go through before they are compared: declared by name, fitted on some of the items.

`steps=["zscore", "pca:50"]` are done one after the other. A step learns what it needs from the items that it
is fitted on and is then applied to all: an encoding model that is judged on one fold has steps fitted on the
items of the others; a measure such as RSA or CKA leaves nothing out, and has steps fitted on all items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.linalg import eigh

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.pairs.distances import shrunk_whitening, unit_scales
from thinkalike.registry import Registry

if TYPE_CHECKING:
    from thinkalike.stimuli.table import Stimuli

Array = npt.NDArray[np.floating]
Numbers = npt.NDArray[np.int64]
Argument = int | Numbers | None
"""A whole number, the label of every item as a number (−1: none), or nothing"""
Apply = Callable[[Array, Numbers, Argument], Array]
"""(X of shape (n_items, n_units), which items it is fitted on, argument) → (n_items, n_new_units)"""


@dataclass(frozen=True)
class Step:
    """One way to change vectors; an entry of `STEPS`.

    Attributes
    ----------
    apply : (X, fitted_on, argument) → changed X
        X has shape (n_items, n_units); what is learnt comes from the rows `fitted_on` alone.
    says : what it does, for the methods of a report; "{}" stands for the argument.
    takes : what follows the name after a colon: nothing, a "number", or a "column" of the items.
    """

    apply: Apply
    says: str
    takes: Literal["nothing", "number", "column"] = "nothing"


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """Steps with their arguments, ready for the vectors of certain items; made by `prepare_steps`."""

    names: tuple[str, ...]
    steps: tuple[tuple[Step, Argument], ...]

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __call__(self, X: Array, fitted_on: Numbers | None = None) -> Array:
        """X (n_items, n_units) after all steps, each fitted on the given rows; on all of them if None."""
        if not self.steps:
            return X
        rows = np.arange(len(X)) if fitted_on is None else fitted_on
        changed = np.asarray(X, dtype=float)
        for name, (step, argument) in zip(self.names, self.steps, strict=True):
            changed = _checked(name, step.apply(changed, rows, argument), len(X))
        return changed.astype(X.dtype, copy=False)

    def take(self, items: Numbers) -> Preprocessing:
        """The same for some of the items."""
        kept = tuple((s, a[items] if isinstance(a, np.ndarray) else a) for s, a in self.steps)
        return replace(self, steps=kept)


NO_STEPS = Preprocessing((), ())


def parse_steps(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """The names of steps, checked as far as they can be without data.

    Examples
    --------
    >>> parse_steps(["zscore", "pca:50"])
    ('zscore', 'pca:50')
    """
    names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        _step(name)
    return names


def describe_steps(names: Sequence[str]) -> str:
    """What steps do, in words.

    Examples
    --------
    >>> describe_steps(["zscore", "pca:50"])
    'every unit less its mean, over its standard deviation; then the first 50 principal components'
    """
    return "; then ".join(STEPS[name.partition(":")[0]].says.format(name.partition(":")[2]) for name in names)


def prepare_steps(
    given: str | Sequence[str] | None, shown: Stimuli | pd.DataFrame | None = None
) -> Preprocessing:
    """Steps for the vectors of the items that were `shown`.

    Parameters
    ----------
    given : names in `STEPS`, each with what follows its colon, as ["zscore", "pca:50"]
    shown : Stimuli, or a table with a row per item; where a step such as "demean:word" finds its column

    Returns
    -------
    Preprocessing
        A function (X, fitted_on=None) → changed X; False if there are no steps.

    Examples
    --------
    >>> import numpy as np
    >>> steps = prepare_steps(["remove-top:1", "zscore"])
    >>> X = np.random.default_rng(0).normal(size=(30, 4)) * [100, 1, 1, 1]
    >>> steps(X).shape, bool(abs(np.corrcoef(steps(X).T, X.T)[:4, 4]).max() < 0.1)
    ((30, 4), True)
    """
    names = parse_steps(given)
    found = []
    for name in names:
        step, text = _step(name)
        number = int(text) if step.takes == "number" else None
        found.append((step, _labels(name, text, shown) if step.takes == "column" else number))
    return Preprocessing(names, tuple(found))


def _step(name: object) -> tuple[Step, str]:
    """The step that a name means, and what follows its colon."""
    if not isinstance(name, str):
        raise InvalidInput(f"Got {name!r} as a step: give its name, such as 'zscore' or 'pca:50'.")
    word, _, text = name.partition(":")
    if word not in STEPS:
        raise UnknownName.among("step", word, STEPS)
    step = STEPS[word]
    if step.takes == "nothing" and text:
        raise InvalidInput(f"Got the step {name!r}: {word} takes nothing after a colon.")
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    if step.takes == "number" and not (is_number and int(text) > 0):
        raise InvalidInput(f"Got the step {name!r}: give a number of at least 1, as {word}:50.")
    if step.takes == "column" and not text:
        raise InvalidInput(f"Got the step {name!r}: name a column of the items, as {word}:word.")
    return step, text


def _labels(name: str, column: str, shown: Stimuli | pd.DataFrame | None) -> Numbers:
    """Which of its levels every item has in a column, as numbers; −1 where there is no value."""
    if shown is None:
        raise InvalidInput(f"The step {name!r} needs the column {column!r} of the items: give the stimuli.")
    tables = [shown] if isinstance(shown, pd.DataFrame) else [shown.items, shown.features]
    for table in tables:
        if column in table.columns:
            return np.asarray(pd.factorize(table[column])[0], dtype=np.int64)
    raise UnknownName.among("column of the items", column, [name for table in tables for name in table])


def _checked(name: str, changed: object, n_items: int) -> Array:
    found = np.asarray(changed, dtype=float)
    if found.ndim != 2 or len(found) != n_items or not np.isfinite(found).all():
        raise InvalidInput(
            f"The step {name!r} gave an array of shape {found.shape} for {n_items} items, or numbers that "
            "are not finite: it must give a finite vector for every item."
        )
    return found


def _zscore(X: Array, fitted_on: Numbers, argument: Argument) -> Array:
    return (X - X[fitted_on].mean(axis=0)) * unit_scales(X[fitted_on])


def _pca(X: Array, fitted_on: Numbers, argument: Argument) -> Array:
    mean, directions = _principal(f"pca:{argument}", X[fitted_on], argument)
    return (X - mean) @ directions


def _remove_top(X: Array, fitted_on: Numbers, argument: Argument) -> Array:
    mean, directions = _principal(f"remove-top:{argument}", X[fitted_on], argument)
    centred = X - mean
    return np.asarray(centred - (centred @ directions) @ directions.T)


def _whiten(X: Array, fitted_on: Numbers, argument: Argument) -> Array:
    return np.asarray((X - X[fitted_on].mean(axis=0)) @ shrunk_whitening(X[fitted_on]))


def _demean(X: Array, fitted_on: Numbers, argument: Argument) -> Array:
    """A level that none of the fitted items has, and items without a value, lose the mean of all."""
    assert isinstance(argument, np.ndarray)
    known = fitted_on[argument[fitted_on] >= 0]
    means = np.tile(X[fitted_on].mean(axis=0), (argument.max(initial=-1) + 2, 1))  # the last: no value
    for level in np.unique(argument[known]):
        means[level] = X[known[argument[known] == level]].mean(axis=0)
    return X - means[argument]


def _principal(name: str, X: Array, argument: Argument) -> tuple[Array, Array]:
    """The mean, and the first principal directions (n_units, k); 0 where the items do not vary."""
    assert isinstance(argument, int)
    n, d = X.shape
    if argument > min(n - 1, d):
        raise InvalidInput(
            f"The step {name!r} is fitted on {n} items of {d} units, which have at most {min(n - 1, d)} "
            "components: give fewer."
        )
    mean = X.mean(axis=0)
    centred = X - mean
    wide = d > n  # the smaller of the two matrices of products has the same directions
    products = centred @ centred.T if wide else centred.T @ centred
    values, vectors = eigh(products, subset_by_index=[len(products) - argument, len(products) - 1])
    vary = values > max(values[-1], 0.0) * len(products) * np.finfo(float).eps
    vectors = (centred.T @ vectors if wide else vectors)[:, ::-1]
    scale = np.sqrt(np.maximum(values[::-1], 0.0)) if wide else np.ones(argument)
    return mean, np.where(vary[::-1], vectors / np.where(vary[::-1], scale, 1.0), 0.0)


def _given(name: str, given: object) -> Step:
    """A step that others add: a Step, or a class like scikit-learn's with `fit` and `transform`."""
    if isinstance(given, Step):
        return given
    if not (isinstance(given, type) and hasattr(given, "fit") and hasattr(given, "transform")):
        raise InvalidInput(f"The step {name!r} is {given!r}: give a Step, or a class with fit and transform.")
    made: Callable[[], object] = given

    def apply(X: Array, fitted_on: Numbers, argument: Argument) -> Array:
        transformer = made()
        transformer.fit(X[fitted_on])  # type: ignore[attr-defined]
        return np.asarray(transformer.transform(X))  # type: ignore[attr-defined]

    return Step(apply, says=f"{name} ({given.__qualname__})")


STEPS: Registry[Step] = Registry(
    "step",
    "thinkalike.steps",
    {
        "zscore": Step(_zscore, "every unit less its mean, over its standard deviation"),
        "pca": Step(_pca, "the first {} principal components", takes="number"),
        "whiten": Step(_whiten, "whitening by the covariance of the units, shrunk (Ledoit and Wolf 2004)"),
        "remove-top": Step(
            _remove_top, "less the first {} principal directions (Mu and Viswanath 2018)", takes="number"
        ),
        "demean": Step(_demean, "less the mean vector of each level of {}", takes="column"),
    },
    accept=_given,
)
"""Name → `Step`; others add a Step, or a class with `fit` and `transform` such as scikit-learn has"""
