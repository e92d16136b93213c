r"""Penalties with intervals over documents, and the paired test of A→B against B→A: one bootstrap for both.

A penalty is Σ sums / Σ counts over documents. With e what a document loses beyond its share and C = Σ counts,
its standard error is SE² = n / (n − 1) Σ e² / C². Documents are drawn again with replacement, and each
resample gives T* = (its penalty − the penalty) / its own SE. Two ranges come of it (Efron and Tibshirani
1993, ch. 12):

- equal-tailed: its ends lie as far out as T* does on either side, so that it leans with the skew;
- symmetric: it reaches as far as |T*| does, which is right for heavy tails.

Each is too narrow where the other is right, so the wider end counts, and p is the larger of the two p-values:
p ≤ 0.05 exactly where the range does not hold 0. Of fewer than `FEWEST` documents there is neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.many_tests import corrected

if TYPE_CHECKING:
    from thinkalike.stitching.result import StitchResult

LEVEL = 0.95
FEWEST = 10
"""Units that a range takes: with fewer none was simulated (benchmarks/calibration/stitching.py)"""


@dataclass(frozen=True, eq=False)
class Interval:
    """Of one number per stitch; `low`, `high` and `p` are NaN where there is no range, `p` is that of 0."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats


def ratio_interval(sums: Floats, counts: Floats, *, resamples: int, seed: int) -> Interval:
    """Σ sums / Σ counts with 95 % intervals over the units, and p that it is 0 (see above).

    There is no interval of fewer than `FEWEST` units, of fewer than 39 resamples, or where so few units
    differ that many resamples have none of them.

    Parameters
    ----------
    sums : (n_rows, n_units)
        A row per stitch: over the predictions of a unit, the difference from the top's own.
    counts : (n_units,)
    """
    n, total = len(counts), counts.sum()
    value = sums.sum(axis=1) / total
    of_sizes, rank = (int((1 - LEVEL) * (resamples + 1) / ends + 1e-9) for ends in (1, 2))
    if n < FEWEST or rank < 1:
        none = np.full(len(value), np.nan)
        return Interval(value, none, none, none)
    beyond = (sums - value[:, None] * counts).T  # (n_units, n_rows)
    beyond[np.abs(beyond) < 1e-12 * np.abs(sums).max(initial=0.0)] = 0.0
    error = np.sqrt(n / (n - 1) * (beyond**2).sum(axis=0)) / total
    T = _studentised(beyond, counts, resampled(n, resamples, seed))
    ordered, sizes = np.sort(T, axis=0), np.sort(np.abs(T), axis=0)
    low = value - np.maximum(ordered[-rank], sizes[-of_sizes]) * error
    high = value - np.minimum(ordered[rank - 1], -sizes[-of_sizes]) * error
    known = np.isfinite(low) & np.isfinite(high)
    p = _two_sided(_ratio(value, error), T)
    return Interval(value, *(np.where(known, one, np.nan) for one in (low, high, p)))


def _studentised(beyond: Floats, counts: Floats, weights: Floats) -> Floats:
    """T* (resamples, n_rows), from what each unit loses beyond its share."""
    n, totals = len(counts), (weights @ counts)[:, None]
    away = weights @ beyond / totals
    squares = (
        weights @ beyond**2
        - 2 * away * (weights @ (beyond * counts[:, None]))
        + away**2 * (weights @ counts**2)[:, None]
    )
    flat = squares <= 1e-12 * (weights @ beyond**2)
    error = np.sqrt(n / (n - 1) * np.where(flat, 0.0, squares)) / totals
    return _ratio(away, error)


def _ratio(value: Floats, error: Floats) -> Floats:
    """value / error: 0 where both are 0, infinite where only the error is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(value == 0, 0.0, value / error)


def _two_sided(found: Floats, T: Floats) -> Floats:
    """The larger p of the equal-tailed and the symmetric test; what was found counts as one more resample."""
    least = 1 + np.minimum((found <= T).sum(axis=0), (found >= T).sum(axis=0))
    as_far = 1 + (np.abs(T) >= np.abs(found)).sum(axis=0)
    return np.minimum(np.maximum(2 * least, as_far) / (1 + len(T)), 1.0)


def resampled(n_units: int, resamples: int, seed: int) -> Floats:
    """(resamples, n_units) how often each unit is drawn."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_units, np.full(n_units, 1 / n_units), size=resamples).astype(np.float64)


def why_no_range(n_units: int, unit: str) -> list[str]:
    """A sentence for people; none where there are enough units."""
    few = f"There are {n_units} {unit} to judge by, and it takes {FEWEST} for a range or a p: there is none."
    return [few] if n_units < FEWEST else []


def asymmetry(
    forward: StitchResult, backward: StitchResult, *, resamples: int = 9_999, seed: int = 0
) -> pd.DataFrame:
    """Does A→B cost more than B→A? One row per pair of layers, from a test paired over documents.

    difference = penalty(A→B at l, m) − penalty(B→A at m, l), in nats per prediction, with its interval over
    the units that both were judged by, and p: 0.05 or less exactly where the interval does not hold 0.

    Parameters
    ----------
    forward, backward
        From `ta.stitch(a, b, text)` and `ta.stitch(b, a, text)` with the same text, settings and seed.
    resamples, seed
        How often units are drawn again, and with which seed.

    Returns
    -------
    DataFrame
        Of layer_a, layer_b, difference, low, high, p, and q, which is p corrected for the number of rows
        (Benjamini and Hochberg). Ends, p and q are NaN for few units.

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
                "p": interval.p[0],
                "n_units": len(counts),
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(q=corrected(table["p"]))


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
        difference, low, high and p; the last three NaN for few units.

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
        "p": float(interval.p[0]),
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
