"""p-values corrected for how many tests there were."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control


def corrected(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """q for p of any shape (Benjamini and Hochberg 1995); NaN, which is no test, stays and does not count.

    Examples
    --------
    >>> from thinkalike.many_tests import corrected
    >>> corrected([0.01, float("nan"), 0.04]).tolist()
    [0.02, nan, 0.04]
    """
    given = np.asarray(p, dtype=np.float64)
    q, tested = np.full(given.shape, np.nan), np.isfinite(given)
    if tested.any():
        q[tested] = false_discovery_control(given[tested])
    return q
