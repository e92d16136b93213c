"""p-values corrected for how many tests there were."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

from thinkalike.labels import Floats


def corrected(p: npt.ArrayLike) -> Floats:
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


def holm(p: Floats) -> Floats:
    """p-values corrected for their number (Holm 1979); NaN stays and does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.many_tests import holm
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    known = np.isfinite(p)
    order = np.argsort(p[known], kind="stable")
    steps = np.maximum.accumulate(p[known][order] * np.arange(len(order), 0, -1))
    raised = np.empty(len(order))
    raised[order] = np.minimum(steps, 1.0)
    result = np.full(len(p), np.nan)
    result[known] = raised
    return result
