r"""Mean τ_w between all layers of two models, for many models; and a short vector that nearly gives it.

Without ties τ_w of two profiles is a scalar product: with s the signs of the differences over pairs of
features and w the weights of the pairs, τ = ½ (u_x · v_y + v_x · u_y), where u = w s / √Σ w s² and
v = s / √Σ w s². A scalar product of means is the mean of scalar products: the mean of (u, v) over the layers
of a model is all that the mean τ_w with another model needs. Features that tie make it an estimate, for their
weights then depend on both profiles; the compiled loop is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

from thinkalike.inference.weighted_tau import feature_weights, sign_table, tau_of_signs
from thinkalike.labels import Floats
from thinkalike.machine import compiled

Single = npt.NDArray[np.float32]


def mean_tau_matrix(profiles: Sequence[Floats], others: Sequence[Floats] | None = None) -> Floats:
    """Mean τ_w over all pairs of layers, of `profiles` (n_layers, F) with one another or with `others`.

    Within a model the diagonal is left out. NaN where no pair of layers has a τ_w.
    """
    rows, starts = _stacked(profiles)
    if others is None:
        values = np.full((len(profiles), len(profiles)), np.nan)
        _fill_own(rows, starts, _harmonic(profiles[0]), values)
        return values
    other_rows, other_starts = _stacked(others)
    values = np.full((len(profiles), len(others)), np.nan)
    _fill_between(rows, starts, other_rows, other_starts, _harmonic(profiles[0]), values)
    return values


def compact(importance: Floats) -> Single:
    """The short vector (F(F − 1),) of a model's importances (n_layers, F); layers that are constant left out.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import weightedtau
    >>> x, y = np.random.default_rng(0).normal(size=(2, 1, 6))
    >>> bool(np.isclose(compact_tau(compact(x), compact(y)[None])[0], weightedtau(x[0], y[0]).statistic))
    True
    """
    signs = np.sign(importance[:, :, None] - importance[:, None, :])
    weights = feature_weights(signs, signs)
    first, second = np.triu_indices(importance.shape[1], k=1)
    s = signs[:, first, second]
    w = weights[:, first] + weights[:, second]
    norm = np.sqrt((w * s**2).sum(axis=1))
    known = norm > 0
    if not known.any():
        return np.zeros(2 * len(first), dtype=np.float32)
    s, w, norm = s[known], w[known], norm[known][:, None]
    return np.concatenate([(w * s / norm).mean(axis=0), (s / norm).mean(axis=0)]).astype(np.float32)


def compact_tau(one: Single, others: Single) -> Floats:
    """The estimated mean τ_w of a model with others (n, F(F − 1)), all by their short vectors."""
    half = len(one) // 2
    turned = np.concatenate([one[half:], one[:half]])
    return 0.5 * (others @ turned).astype(np.float64)


def _stacked(profiles: Sequence[Floats]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
    starts = np.concatenate([[0], np.cumsum([len(one) for one in profiles])])
    return sign_table(np.concatenate(profiles)).astype(np.int8), starts


def _harmonic(profile: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, profile.shape[1] + 1))])


@compiled(error_model="numpy")
def _block_mean(x, y, harmonic, own):  # type: ignore[no-untyped-def]
    total, count = 0.0, 0
    for i in range(len(x)):
        for j in range(i if own else len(y)):
            value = tau_of_signs(x[i], y[j], harmonic)
            if value == value:
                total += value
                count += 1
    return total / count if count else np.nan


@compiled(parallel=True, error_model="numpy")
def _fill_own(rows, starts, harmonic, values):  # type: ignore[no-untyped-def]
    n = len(values)
    for k in numba.prange(n):
        a = k // 2 if k % 2 == 0 else n - 1 - k // 2  # short and long rows in turn: equal work
        x = rows[starts[a] : starts[a + 1]]
        for b in range(a):
            values[a, b] = values[b, a] = _block_mean(x, rows[starts[b] : starts[b + 1]], harmonic, False)
        values[a, a] = _block_mean(x, x, harmonic, True)


@compiled(parallel=True, error_model="numpy")
def _fill_between(rows, starts, others, other_starts, harmonic, values):  # type: ignore[no-untyped-def]
    for b in numba.prange(values.shape[1]):
        y = others[other_starts[b] : other_starts[b + 1]]
        for a in range(len(values)):
            values[a, b] = _block_mean(rows[starts[a] : starts[a + 1]], y, harmonic, False)
