r"""Ranges of numbers that jump, such as τ_w: add the noise of the sentences once more, and see what changes.

A rank correlation jumps where two features change places. Leaving a tenth of the sentences out moves the
importances by a third of their error, and the jackknife multiplies by three what that does. A jump does not
shrink with the step, so its variance comes out three times too large.

Here the step is chosen. The jackknife does give the covariance Σ of the importances x, which do not jump.
With e ~ N(0, Σ), drawn again and again, and a step h,

    SE = SD of T(x + h·e) / h,      range: T(x) ± t · SE

h = 1 is right for how T(x) scatters, but T(x) is also off: features that differ by less than the noise have
an order in the truth that no sample knows. With smaller steps jumps count 1/h times, which makes room for
that. h = 0.6 brought cells, means and differences of means nearest to 95 % in the nine worlds in which it was
chosen (`benchmarks/calibration/feature_worlds.py`); docs/certainty.md has what it holds in others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from thinkalike.inference.jackknife import Range, quantile
from thinkalike.labels import Floats

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
    >>> from thinkalike.inference.added_noise import with_noise
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
