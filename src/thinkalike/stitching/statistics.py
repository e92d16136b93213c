"""Penalties with intervals over documents, and the paired test of A→B against B→A."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from thinkalike.errors import InvalidInput

if TYPE_CHECKING:
    from thinkalike.stitching.result import StitchResult

Floats = npt.NDArray[np.float64]
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Interval:
    value: Floats
    low: Floats
    high: Floats


def ratio_interval(sums: Floats, counts: Floats, *, resamples: int, seed: int) -> Interval:
    """Σ sums / Σ counts with expanded percentile intervals from a bootstrap of the units.

    Percentiles of a bootstrap are too narrow for few units, as normal quantiles with the variance over n are.
    So those are taken that reach as far as Student's interval would (Hesterberg 2015).

    Parameters
    ----------
    sums : (n_rows, n_units)
        A row per stitch: over the predictions of a unit, the difference from the top's own.
    counts : (n_units,)
    """
    value = sums.sum(axis=1) / counts.sum()
    if resamples < 1 or len(counts) < 2:
        return Interval(value, np.full(len(value), np.nan), np.full(len(value), np.nan))
    weights = resampled(len(counts), resamples, seed)
    means = (weights @ sums.T) / (weights @ counts)[:, None]
    tail = expanded_tail(len(counts))
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return Interval(value, low, high)


def expanded_tail(n_units: int) -> float:
    """The share of resamples to leave out at either end: Φ(−√(n / (n − 1)) t), t Student's for n − 1.

    >>> round(expanded_tail(10), 4), round(expanded_tail(1000), 4)
    (0.0086, 0.0248)
    """
    reach = student.ppf((1 + LEVEL) / 2, n_units - 1) * np.sqrt(n_units / (n_units - 1))
    return float(norm.cdf(-reach))


def resampled(n_units: int, resamples: int, seed: int) -> Floats:
    """(resamples, n_units) how often each unit is drawn."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_units, np.full(n_units, 1 / n_units), size=resamples).astype(np.float64)


def sign_flip_p(differences: Floats, *, resamples: int, seed: int) -> float:
    """Two-sided p of Σ differences = 0 when each unit's sign is a coin toss; the observed counts as one."""
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, size=(resamples, len(differences))) * 2.0 - 1.0
    observed = abs(differences.sum())
    as_far = (np.abs(signs @ differences) >= observed * (1 - 1e-12)).sum()
    return float((1 + as_far) / (1 + resamples))


def asymmetry(
    forward: StitchResult, backward: StitchResult, *, resamples: int = 9_999, seed: int = 0
) -> pd.DataFrame:
    """Does A→B cost more than B→A? One row per pair of layers, from a test paired over documents.

    difference = penalty(A→B at l, m) − penalty(B→A at m, l), in nats per prediction, with its bootstrap
    interval and a two-sided sign-flip test over the units that both were judged by.

    Parameters
    ----------
    forward, backward
        From `ta.stitch(a, b, text)` and `ta.stitch(b, a, text)` with the same text, settings and seed.
    resamples, seed
        Bootstrap resamples and sign flips, and their seed.

    Returns
    -------
    DataFrame
        Of layer_a, layer_b, difference, low, high, p and more.

    Examples
    --------
    >>> import thinkalike as ta
    >>> from thinkalike.stitching import asymmetry
    >>> text = ["The king went home and the queen went to sleep. " * 8] * 10
    >>> few = {"layers": [1], "floor": False, "ceiling": False}
    >>> there = ta.stitch("nano-gelu-3l", "nano-solu-3l", text, **few)
    >>> back = ta.stitch("nano-solu-3l", "nano-gelu-3l", text, **few)
    >>> len(asymmetry(there, back, resamples=99))
    1
    """
    counts = forward.counts
    rows = []
    for layer_a, layer_b, there, differences in _paired(forward, backward):
        interval = ratio_interval(differences[None], counts, resamples=resamples, seed=seed)
        rows.append(
            {
                "layer_a": layer_a,
                "layer_b": layer_b,
                "a_to_b": there.sum() / counts.sum(),
                "b_to_a": (there - differences).sum() / counts.sum(),
                "difference": interval.value[0],
                "low": interval.low[0],
                "high": interval.high[0],
                "p": sign_flip_p(differences, resamples=resamples, seed=seed),
                "n_units": len(counts),
            }
        )
    return pd.DataFrame(rows)


def mean_asymmetry(
    forward: StitchResult, backward: StitchResult, *, resamples: int = 9_999, seed: int = 0
) -> dict[str, float]:
    """The mean of `asymmetry` over its pairs of layers, as one test: difference, low, high, p.

    Layers are judged by the same units, so their differences go up and down together; a unit's mean over the
    layers is what is resampled.

    Parameters
    ----------
    forward, backward, resamples, seed
        See `asymmetry`.

    Returns
    -------
    dict
        difference, low, high and p.

    Examples
    --------
    >>> import thinkalike as ta
    >>> from thinkalike.stitching import mean_asymmetry
    >>> text = ["The king went home and the queen went to sleep. " * 8] * 10
    >>> same = ta.stitch("nano-gelu-3l", "nano-gelu-3l", text, layers=[1], floor=False, ceiling=False)
    >>> mean_asymmetry(same, same, resamples=99)["difference"]
    0.0
    """
    differences = np.mean([one for *_, one in _paired(forward, backward)], axis=0)
    interval = ratio_interval(differences[None], forward.counts, resamples=resamples, seed=seed)
    return {
        "difference": float(interval.value[0]),
        "low": float(interval.low[0]),
        "high": float(interval.high[0]),
        "p": sign_flip_p(differences, resamples=resamples, seed=seed),
    }


def _paired(forward: StitchResult, backward: StitchResult) -> list[tuple[int, int, Floats, Floats]]:
    """Of each pair of layers: the two layers, what A→B costs by unit, and how much more than B→A."""
    if (forward.bottom, forward.top) != (backward.top, backward.bottom):
        raise InvalidInput(
            f"{forward.bottom} → {forward.top} and {backward.bottom} → {backward.top} are not the two ways "
            "of one pair: swap bottom and top in the second."
        )
    if forward.settings["test_digest"] != backward.settings["test_digest"]:
        raise InvalidInput("The two were judged by different texts: give both the same text and seed.")
    pairs = []
    for stitch in forward.stitches:
        layers = stitch.layer_bottom, stitch.layer_top
        if stitch.role == "pair" and backward.find("pair", *layers[::-1]) is not None:
            there = forward.excess(*layers)
            pairs.append((*layers, there, there - backward.excess(*layers[::-1])))
    if not pairs:
        raise InvalidInput("The two results share no pair of layers: stitch the same layers both ways.")
    return pairs
