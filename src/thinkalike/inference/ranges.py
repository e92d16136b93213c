r"""Ranges over sentences: leave a part of the sentences out, again and again.

With the sentences dealt into G parts, θ₍g₎ is the statistic without part g, and

    SE² = (G − 1)/G · Σ_g (θ₍g₎ − θ̄)²

A bootstrap draws some sentences twice, and two copies of an item are at distance 0, which no two items of the
world are; nothing is drawn twice here. The parts are the same for every layer and every measure, so that
differences between two numbers, and functions of many, have ranges of their own: give them the same function
of θ and of every θ₍g₎.

Numbers that jump, such as τ_w, have ranges of their own: add the noise of the sentences once more, and see
what changes. A rank correlation jumps where two features change places. Leaving a tenth of the sentences out
moves the importances by a third of their error, and the jackknife multiplies by three what that does. A jump
does not shrink with the step, so its variance comes out three times too large.

Here the step is chosen. The jackknife does give the covariance Σ of the importances x, which do not jump.
With e ~ N(0, Σ), drawn again and again, and a step h,

    SE = SD of T(x + h·e) / h,      range: T(x) ± t · SE

h = 1 is right for how T(x) scatters, but T(x) is also off: features that differ by less than the noise have
an order in the truth that no sample knows. With smaller steps jumps count 1/h times, which makes room for
that. h = 0.6 brought cells, means and differences of means nearest to 95 % in the nine worlds in which it was
chosen (`benchmarks/calibration/feature_worlds.py`); docs/certainty.md has what it holds in others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats

Indices = npt.NDArray[np.int64]
Scale = Literal["as it is", "correlation"]

PARTS = 20
"""Parts that the sentences are dealt into"""


class Range(NamedTuple):
    """Of one number, or of many at once."""

    low: Floats
    high: Floats
    error: Floats
    """The standard error"""


def leave_parts_out(
    sentences: Sequence[object] | npt.NDArray[np.generic] | None,
    n_items: int,
    *,
    parts: int = PARTS,
    seed: int = 0,
) -> Iterator[Indices]:
    """For each part, the items that stay when it is left out. Sentences are dealt at random.

    Parameters
    ----------
    sentences : the sentence of each item; None if every item stands for itself.
    """
    labels = np.arange(n_items) if sentences is None else np.asarray(sentences)
    if len(labels) != n_items:
        raise InvalidInput(f"There are {n_items} items and {len(labels)} sentences: give one per item.")
    _, code = np.unique(labels.astype(str), return_inverse=True)
    n = int(code.max()) + 1
    if n < 8:
        raise InvalidInput(f"A range over sentences needs at least 8 of them; there are {n}.")
    parts = min(parts, n)
    part = np.random.default_rng(seed).permutation(np.arange(n) % parts)[code]
    return (np.flatnonzero(part != g) for g in range(parts))


def jackknife_range(
    value: Floats | float,
    without: Floats,
    *,
    parts: int | None = None,
    sentences: int | None = None,
    scale: Scale = "as it is",
    level: float = 0.95,
) -> Range:
    """The range of `value` (…), given its values `without` (n, …) each part of the sentences.

    Parameters
    ----------
    parts : G, of which one is left out at a time; n when None. More values come from other deals into parts.
    sentences : how many were dealt, on which the degrees of freedom rest; as many as parts when None.
    scale : "correlation" for what lies in [−1, 1]: the range is made on the scale of artanh, and stays
        inside. What jumps, as τ_w does, has its range from `noise_range`.
    """
    to, back = _SCALES[scale]
    value, without = np.asarray(value, dtype=np.float64), np.asarray(without, dtype=np.float64)
    moved, centre = to(without), to(value)
    G = len(without) if parts is None else parts
    reach = quantile(level, len(without), parts=G, sentences=sentences) * jackknife_error(moved, parts=G)
    return Range(back(centre - reach), back(centre + reach), jackknife_error(without, parts=G))


def reaching_up(value: Floats, found: Range) -> Range:
    r"""The range of what can hardly be below 0 and whose error grows with it, as that of importances does.

    A sample with too small an importance also has too small an error, and the truth is above the range three
    times as often as below. With r the reach on either side, r²/2(\|value\| + r) is added to the upper end:
    for what is far above 0 that is the range on the scale of the logarithm, at 0 half as much again. The
    lower end stays, so that no feature is said to matter more readily.
    """
    reach = found.high - value
    more = np.divide(
        reach**2, 2 * (np.abs(value) + reach), out=np.zeros_like(reach), where=np.asarray(reach) > 0
    )
    return found._replace(high=found.high + more)


def quantile(level: float, n: int, *, parts: int, sentences: int | None = None) -> float:
    r"""Student's quantile for a range of `level` whose error rests on `n` values (`degrees_of_freedom`)."""
    return float(student.ppf((1 + level) / 2, degrees_of_freedom(n, parts=parts, sentences=sentences)))


def degrees_of_freedom(n: int, *, parts: int, sentences: int | None = None) -> float:
    r"""Those of an error that rests on `n` values, from one deal or several.

    One deal of the N sentences into G parts has G − 1 degrees of freedom, all deals together have N − 1, and
    the mean over D deals those that its variance has for normal data:
    1/df = 1/(N − 1) + (1/D) (1/(G − 1) − 1/(N − 1)).
    """
    whole = 1 / (max(parts, sentences or parts) - 1)
    deals = max(n / parts, 1.0)
    return 1 / (whole + (1 / (parts - 1) - whole) / deals)


def jackknife_error(without: Floats, *, parts: int) -> Floats:
    """The standard error from values `without` (n, …) each part, n being `parts` or a multiple of it."""
    spread: Floats = ((without - without.mean(axis=0)) ** 2).mean(axis=0)
    return np.sqrt((parts - 1) * spread)


def _artanh(x: Floats) -> Floats:
    return np.arctanh(np.clip(x, -1 + 1e-12, 1 - 1e-12))


_SCALES: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "as it is": (lambda x: x, lambda x: x),
    "correlation": (_artanh, np.tanh),
}


STEP = 0.6
"""The size of the noise that is added, as a share of that of the sentences"""
DRAWS = 100
"""How often: so many know the size of a change to 7 %"""


def with_noise(
    value: Floats,
    without: Floats,
    *,
    parts: int,
    step: float = STEP,
    draws: int = DRAWS,
    seed: int = 0,
) -> Iterator[Floats]:
    """`value` (…) with normal noise, `step` times that which its values `without` (n, …) each part show.

    Parameters
    ----------
    parts : G, of which one is left out at a time; n is G or a multiple of it.

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.inference.ranges import with_noise
    >>> without = np.array([[1.0, 10.0], [3.0, 30.0]])  # two parts
    >>> drawn = np.stack(list(with_noise(np.array([2.0, 20.0]), without, parts=2)))
    >>> bool(np.allclose(drawn[:, 1], 10 * drawn[:, 0]))  # what goes together, stays together
    True
    """
    deviation = step * np.sqrt((parts - 1) / len(without)) * (without - without.mean(axis=0))
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        yield value + np.tensordot(rng.normal(size=len(without)), deviation, axes=1)


def noise_range(
    value: Floats | float,
    spread: Floats | float,
    n: int,
    *,
    parts: int,
    sentences: int | None = None,
    step: float = STEP,
    level: float = 0.95,
) -> Range:
    """The range of `value`, given the standard deviation of its values `with_noise`.

    Parameters
    ----------
    n : how many values without a part the noise was learnt from.
    parts, sentences : as for `jackknife_range`, on which the degrees of freedom rest.
    """
    error = np.asarray(spread, dtype=np.float64) / step
    reach = quantile(level, n, parts=parts, sentences=sentences) * error
    centre = np.asarray(value, dtype=np.float64)
    return Range(centre - reach, centre + reach, error)
