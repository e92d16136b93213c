r"""Scores of subjects: how far they hold for other subjects, for other items, and for both.

With θ_s the score of subject s, and θ_s₍g₎ that without part g of the items, p_sg = G θ_s − (G − 1) θ_s₍g₎
are pseudo-values in a table of subjects × parts. Both are drawn at random, so the mean has the variance

    V_subjects + V_items − V_rest

of its row means, of its column means, and of what is left of the cells, each over its number (the last was
counted twice). What is tested is that the mean is better than chance: by Student's t over subjects, by other
orders of the items of the model over items, and for both by whichever p is larger.

Means over folds of held-out items, as importances are, need no pseudo-values: p_sg is the value of fold g,
whose items no other fold is judged on. Nor should they have any: without some of the items an importance
changes by more than its share, and where it is near 0 the variance of pseudo-values is three to five times
too large.

τ_w jumps, and has no pseudo-values either. There the columns are the scores with the noise of the items added
once more, `step` times as large as it is (`inference.ranges`), and V_items and V_rest are those of the
draws, over step².
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats

BOTH = "both"
OVER = ("subjects", "items", BOTH)


class Spread(NamedTuple):
    """Of the mean of scores over subjects, for one number or many at once.

    Attributes
    ----------
    error : (...) standard error
    freedom : (...) degrees of freedom
    """

    error: Floats
    freedom: Floats

    def range(self, mean: Floats, *, level: float = 0.95) -> tuple[Floats, Floats]:
        """The ends of Student's interval around `mean`."""
        reach = student.ppf((1 + level) / 2, self.freedom) * self.error
        return mean - reach, mean + reach


def check_over(over: str) -> None:
    """What ranges are about must be one of three."""
    if over not in OVER:
        raise InvalidInput(f"over is {over!r}: expected one of {', '.join(OVER)}.")


def spread(scores: Floats, without: Floats | None, *, over: str, parts: int | None = None) -> Spread:
    """How far the mean over subjects may be from that of others.

    Parameters
    ----------
    scores : (n_subjects, ...)
    without : (n_left_out, n_subjects, ...) the scores without parts of the items; None for over="subjects"
    over : {"subjects", "items", "both"}
    parts : G, of which one is left out at a time; as many as `without` has when None
    """
    check_over(over)
    S = len(scores)
    if over != "items" and S < 2:
        raise InvalidInput(f"There is {S} subject: how subjects differ cannot be said. Use over='items'.")
    by_subject = scores.var(axis=0, ddof=1) / S if S > 1 else np.zeros(scores.shape[1:])
    if over == "subjects":
        return Spread(np.sqrt(by_subject), np.full(scores.shape[1:], S - 1.0))
    if without is None:
        raise InvalidInput(f"Nothing was left out, so there is no range over {over}: use over='subjects'.")
    G = len(without) if parts is None else parts
    deals = without.reshape(-1, G, *without.shape[1:])  # the parts may have been dealt more than once
    pseudo = G * scores - (G - 1) * deals  # (n_deals, G, S, ...)
    of_parts = pseudo.mean(axis=2, keepdims=True)
    by_item = (of_parts.var(axis=1, ddof=1) / G).mean(axis=(0, 1))
    if over == "items":
        return Spread(np.sqrt(by_item), np.full(scores.shape[1:], G - 1.0))
    rest = pseudo - of_parts - pseudo.mean(axis=1, keepdims=True) + pseudo.mean(axis=(1, 2), keepdims=True)
    in_both = (rest**2).sum(axis=(1, 2)).mean(axis=0) / ((S - 1) * (G - 1)) / (S * G)
    total = np.maximum(by_subject + by_item - in_both, np.maximum(by_subject, by_item))
    freedom = total**2 / np.maximum(by_subject**2 / (S - 1) + by_item**2 / (G - 1), 1e-300)
    return Spread(np.sqrt(total), np.maximum(freedom, min(S, G) - 1.0))


def spread_of_folds(values: Floats, *, over: str) -> Spread:
    """The same for means over folds of held-out items, from the values (n_folds, n_subjects, ...) of each.

    A fold whose value is not known (NaN) is left out where it is so. Of fewer than two nothing can be said.
    """
    check_over(over)
    S = values.shape[1]
    known = np.isfinite(values).all(axis=1, keepdims=True)
    held = np.where(known, values, 0.0)
    G = known.sum(axis=(0, 1)).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_subjects = held.sum(axis=0) / G
        by_subject = of_subjects.var(axis=0, ddof=1) / S
        if over == "subjects":
            return Spread(np.sqrt(by_subject), np.full(values.shape[2:], S - 1.0))
        of_folds, mean = held.mean(axis=1, keepdims=True), of_subjects.mean(axis=0)
        spare = np.where(G > 1, G - 1, np.nan)
        by_item = (np.where(known, of_folds - mean, 0.0) ** 2).sum(axis=(0, 1)) / spare / G
        if over == "items":
            return Spread(np.sqrt(by_item), spare)
        rest = np.where(known, held - of_folds - of_subjects + mean, 0.0)
        in_both = (rest**2).sum(axis=(0, 1)) / ((S - 1) * spare) / (S * G)
        total = np.maximum(by_subject + by_item - in_both, by_subject)
        freedom = total**2 / np.maximum(by_subject**2 / (S - 1) + by_item**2 / spare, 1e-300)
    return Spread(np.sqrt(total), np.maximum(freedom, np.minimum(S, G) - 1.0))


def spread_of_noise(scores: Floats, noisy: Floats, *, over: str, step: float, freedom: float) -> Spread:
    """The same for what jumps, from scores (n_draws, n_subjects, ...) with the noise of the items added.

    Parameters
    ----------
    step : how large the added noise is, as a share of that of the items
    freedom : degrees of freedom that the noise is known with
    """
    check_over(over)
    if over == "subjects":
        return spread(scores, None, over=over)
    S, shape = len(scores), scores.shape[1:]
    of_draws = noisy.mean(axis=1, keepdims=True)
    by_item = of_draws.var(axis=0, ddof=1)[0] / step**2
    if over == "items":
        return Spread(np.sqrt(by_item), np.full(shape, freedom))
    by_subject = spread(scores, None, over="subjects").error ** 2
    rest = noisy - of_draws - noisy.mean(axis=0) + noisy.mean(axis=(0, 1))
    in_both = (rest**2).sum(axis=(0, 1)) / ((S - 1) * (len(noisy) - 1)) / S / step**2
    total = np.maximum(by_subject + by_item - in_both, np.maximum(by_subject, by_item))
    of_both = total**2 / np.maximum(by_subject**2 / (S - 1) + by_item**2 / freedom, 1e-300)
    return Spread(np.sqrt(total), np.maximum(of_both, min(S - 1.0, freedom)))


def p_over_subjects(scores: Floats) -> Floats:
    """One-sided p that the mean over subjects (axis 0) is above 0, by Student's t; NaN for one subject."""
    S = len(scores)
    if S < 2:
        return np.full(scores.shape[1:], np.nan)
    error = scores.std(axis=0, ddof=1) / np.sqrt(S)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = scores.mean(axis=0) / error
    return np.asarray(student.sf(t, S - 1))


class Ceilings(NamedTuple):
    """What a perfect model could reach with subjects as noisy and as different as these.

    Attributes
    ----------
    lower : (n_subjects,) of each subject with the mean of the others
    upper : (n_subjects,) of each with the mean of all, itself among them
    """

    lower: Floats
    upper: Floats


def ceilings(
    vectors: Floats, *, pool: Callable[[Floats], Floats] | None = None, length: float | None = None
) -> Ceilings:
    """Noise ceilings (Nili et al. 2014) of scores that are cosines between vectors (n_subjects, P).

    Parameters
    ----------
    vectors : their sum is what the subjects share, so that all should be of about the same length
    pool : function of the mean vector (P,) → unit vector, as ranks need it; by default its direction
    length : of every vector, for scores that are inner products; by default each has its own
    """
    S = len(vectors)
    if S < 2:
        raise InvalidInput(f"There is {S} subject: a noise ceiling needs two or more.")
    direct = _direction if pool is None else pool
    total = vectors.sum(axis=0)
    units = vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) if length is None else length)
    upper = units @ direct(total)
    lower = np.array([unit @ direct(total - v) for unit, v in zip(units, vectors, strict=True)])
    return Ceilings(lower, upper)


def _direction(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector))


class Cluster(NamedTuple):
    """Neighbouring places, such as times, at which the mean is above 0.

    Attributes
    ----------
    start, stop : first place, and the one after the last
    mass : Σ t
    p : share of sign flips with a cluster of as large a mass anywhere
    """

    start: int
    stop: int
    mass: float
    p: float


def cluster_test(
    scores: Floats, *, threshold: float | None = None, n_flips: int = 2_000, seed: int = 0
) -> list[Cluster]:
    """Clusters along a line of places, corrected for having looked at all (Maris and Oostenveld 2007).

    Signs of whole subjects are flipped, in all ways if these are few; the largest cluster counts in each.

    Parameters
    ----------
    scores : (n_subjects, n_places)
    threshold : t above which a place belongs to a cluster; that of p = 0.05, one-sided, when None
    """
    S = len(scores)
    if S < 5:
        raise InvalidInput(
            f"There are {S} subjects, whose signs can be flipped in {2**S} ways: no cluster could reach "
            "p = 0.05. Measure at least 5."
        )
    at = float(student.ppf(0.95, S - 1)) if threshold is None else threshold
    flips = sign_flips(S, n_flips, seed)
    squares = (scores**2).sum(axis=0)
    means = flips @ scores / S
    variance = (squares - S * means**2) / (S - 1)
    t = means / np.sqrt(np.maximum(variance, 1e-300) / S)
    largest = np.array([max((mass for *_, mass in _runs(row, at)), default=0.0) for row in t])
    return [
        Cluster(start, stop, mass, float((largest >= mass - 1e-9).mean()))
        for start, stop, mass in _runs(t[0], at)
    ]


def sign_flips(n_subjects: int, n_flips: int, seed: int) -> npt.NDArray[np.float64]:
    """(n, n_subjects) of ±1, none flipped first: all ways if there are no more than `n_flips`, else drawn."""
    if 2**n_subjects <= n_flips:
        bits = (np.arange(2**n_subjects)[:, None] >> np.arange(n_subjects)) & 1
        return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(0, 2, (n_flips - 1, n_subjects))
    return np.concatenate([np.ones((1, n_subjects)), 1.0 - 2.0 * drawn])


def _runs(t: Floats, threshold: float) -> list[tuple[int, int, float]]:
    above = np.concatenate([[False], t > threshold, [False]])
    edges = np.flatnonzero(above[1:] != above[:-1])
    return [(int(a), int(b), float(t[a:b].sum())) for a, b in zip(edges[::2], edges[1::2], strict=True)]
