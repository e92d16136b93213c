r"""Ranges of numbers that jump, such as τ_w: add the noise of the sentences once more, and see what changes.

A rank correlation jumps where two features change places. Leaving a tenth of the sentences out moves the
importances by a third of their error, and the jackknife multiplies by three what that does: of jumps, which
do not shrink with the step, it makes up to √3 times too much.

Here the step has its true size. The jackknife does give the covariance Σ of the importances x, which do not
jump. With e ~ N(0, Σ), drawn again and again,

    RMS² = mean of (T(x + e) − T(x))²

If every truth is as likely as the noise says, x being seen, this is how far the printed T(x) is from the T of
the truth, the shift of a noisy T included (a Bayesian's mean square error, under a flat prior). The range is
T(x) ± t · RMS. Nothing in it was tuned; docs/certainty.md has what it holds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from thinkalike.inference.jackknife import Range, quantile
from thinkalike.labels import Floats

DRAWS = 100
"""Draws of noise: so many know the size of a change to 7 %"""


def with_noise(
    value: Floats, without: Floats, *, parts: int, draws: int = DRAWS, seed: int = 0
) -> Iterator[Floats]:
    """`value` (…) with normal noise of the covariance that its values `without` (n, …) each part show.

    Parameters
    ----------
    parts : G, of which one is left out at a time; n is G or a multiple of it.

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.inference.added_noise import with_noise
    >>> without = np.array([[1.0, 10.0], [3.0, 30.0]])  # two parts
    >>> drawn = np.stack(list(with_noise(np.array([2.0, 20.0]), without, parts=2, draws=1000)))
    >>> bool(np.allclose(drawn[:, 1], 10 * drawn[:, 0]))  # what goes together, stays together
    True
    """
    deviation = np.sqrt((parts - 1) / len(without)) * (without - without.mean(axis=0))
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        yield value + np.tensordot(rng.normal(size=len(without)), deviation, axes=1)


def noise_range(
    value: Floats | float,
    mean_square: Floats | float,
    n: int,
    *,
    parts: int,
    sentences: int | None = None,
    level: float = 0.95,
) -> Range:
    """The range of `value`, given the mean square of its changes under noise from `n` values left out.

    Parameters
    ----------
    parts, sentences : as for `jackknife_range`, on which the degrees of freedom rest.
    """
    error = np.sqrt(np.asarray(mean_square, dtype=np.float64))
    reach = quantile(level, n, parts=parts, sentences=sentences) * error
    centre = np.asarray(value, dtype=np.float64)
    return Range(centre - reach, centre + reach, error)
