r"""Do two matrices over the same layers tell the same story? Spearman's ρ, beside what smoothness gives.

A layer is much like the one before it, by any measure. So two matrices that have nothing to do with each
other still agree, and permuting layers, which makes neighbours strangers, is no null for that. Here the
second matrix is turned into trajectories (a point per layer, by classical scaling), and those into
*surrogates*, with which the first has nothing to do:

- every system starts where it started;
- each of its steps has the length that it had: where all models make long steps late, so do the surrogates;
- the directions of its steps turn as smoothly as they did: the discrete cosine transform of the unit steps
  keeps the size of every frequency, and each gets a new direction at random, drawn with the spread that steps
  have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.fft import dct, idct
from scipy.stats import rankdata

from thinkalike.labels import Floats, Row, span_of, systems_of
from thinkalike.many_tests import corrected

EUCLIDEAN = 0.01
"""Of the squared distances, the share that no points can have; below it they are taken as those of points"""


@dataclass(frozen=True)
class Agreement:
    """How alike two matrices order the pairs of layers (the ρ = 0.69 of Salle et al. 2024)."""

    a: str
    b: str
    """The measures"""
    rho: float
    """Spearman over all pairs of different layers"""
    p_smooth: float
    """How often unrelated trajectories that are as smooth agree as much; NaN without a step in any system"""
    expected: float
    """The mean ρ of such trajectories: what smoothness alone gives"""
    rho_between: float
    """Spearman over the pairs of layers of different models; NaN for one model"""
    n_surrogates: int
    untrained: float = float("nan")
    """ρ of untrained copies, averaged over draws of weights; NaN where there are none"""
    untrained_share: float = float("nan")
    """The share of the draws in which the copies' matrices agree at least as much"""
    q_smooth: float = float("nan")
    """`p_smooth` after Benjamini–Hochberg over all pairs of matrices"""


def agreement(
    a: str,
    first: Floats,
    b: str,
    second: Floats,
    rows: Sequence[Row],
    *,
    n_surrogates: int = 199,
    seed: int = 0,
) -> Agreement:
    """Compare two similarity matrices (n, n) over the same `rows`; pairs with a NaN in one are left out."""
    valid = _valid(first, second)
    system = np.array([row[0] for row in rows])
    between = valid & (system[:, None] != system)
    spans = [span_of(rows, s) for s in systems_of(rows)]
    rho = spearman(first[valid], second[valid])
    p, expected = float("nan"), float("nan")
    if np.isfinite(rho) and any(span.stop - span.start > 1 for span in spans):
        p, expected = _against_surrogates(first, second, valid, spans, n_surrogates, seed)
    return Agreement(
        a=a,
        b=b,
        rho=rho,
        p_smooth=p,
        expected=expected,
        rho_between=spearman(first[between], second[between]),
        n_surrogates=n_surrogates,
    )


def beside_untrained(found: Agreement, copies: Sequence[tuple[Floats, Floats]]) -> Agreement:
    """With the agreement of untrained copies beside it: both of their matrices, for each draw of weights."""
    rhos = [
        spearman(first[valid], second[valid]) for first, second in copies for valid in [_valid(first, second)]
    ]
    known = np.array([rho for rho in rhos if np.isfinite(rho)])
    if not len(known):
        return found
    return replace(found, untrained=float(known.mean()), untrained_share=float((known >= found.rho).mean()))


def corrected_for_matrices(found: Sequence[Agreement]) -> tuple[Agreement, ...]:
    """With q, for how many pairs of matrices were held against surrogates."""
    q = corrected([one.p_smooth for one in found])
    return tuple(replace(one, q_smooth=float(its)) for one, its in zip(found, q, strict=True))


def _valid(first: Floats, second: Floats) -> npt.NDArray[np.bool_]:
    """Pairs of different layers, each once, that both matrices know."""
    return np.triu(np.isfinite(first) & np.isfinite(second), k=1)


def _against_surrogates(
    first: Floats,
    second: Floats,
    valid: npt.NDArray[np.bool_],
    spans: Sequence[slice],
    n_surrogates: int,
    seed: int,
) -> tuple[float, float]:
    """p of ρ between the first matrix and surrogates of the second, and their mean ρ."""
    rng = np.random.default_rng(seed)
    x, y = _unit_ranks(first[valid]), _unit_ranks(second[valid])
    surrogates = surrogate_distances(trajectories(second), spans, n_surrogates, rng)[:, valid]
    null = _unit_ranks(-surrogates) @ x
    p = (1 + (null >= float(x @ y) - 1e-9).sum()) / (1 + n_surrogates)
    return float(p), float(null.mean())


def trajectories(similarity: Floats) -> Floats:
    """Points (n, k) whose distances are 1 − similarity where such points exist, else its square root.

    1 − s is a distance for some measures and a squared distance for others (of unit vectors with product s).
    """
    own = np.diag(similarity)
    apart = np.maximum((own[:, None] + own[None, :]) / 2 - similarity, 0.0)
    apart[~np.isfinite(apart)] = np.nanmean(apart)
    np.fill_diagonal(apart, 0.0)
    points, missing = _classical(apart**2)
    return points if missing <= EUCLIDEAN else _classical(apart)[0]


def _classical(squared: Floats) -> tuple[Floats, float]:
    """Classical scaling, and the size of what no points can have (negative eigenvalues) beside the rest."""
    n = len(squared)
    J = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * J @ squared @ J)
    kept = values > 1e-9 * max(values.max(), 1e-300)
    missing = -values[values < 0].sum() / max(values[kept].sum(), 1e-300)
    return vectors[:, kept] * np.sqrt(values[kept]), float(missing)


def surrogate_distances(points: Floats, spans: Sequence[slice], n: int, rng: np.random.Generator) -> Floats:
    """Squared distances (n, n_layers, n_layers) of `n` surrogates of the trajectories in `points`."""
    steps = [np.diff(points[span], axis=0) for span in spans]
    every = np.concatenate(steps)
    spread, axes = np.linalg.eigh(every.T @ every)
    colour = np.sqrt(np.maximum(spread, 0.0))[:, None] * axes.T
    drawn = np.concatenate(
        [_surrogates(points[span][0], own, colour, n, rng) for span, own in zip(spans, steps, strict=True)],
        axis=1,
    )
    gram = drawn @ np.swapaxes(drawn, 1, 2)
    norms = np.einsum("kii->ki", gram)
    squared: Floats = norms[:, :, None] + norms[:, None, :] - 2 * gram
    return squared


def _surrogates(start: Floats, steps: Floats, colour: Floats, n: int, rng: np.random.Generator) -> Floats:
    """(n, n_layers, k) trajectories from `start`."""
    begin = np.broadcast_to(start, (n, 1, len(start)))
    if not len(steps):
        return begin
    lengths = np.maximum(np.linalg.norm(steps, axis=1), 1e-300)
    frequencies = np.linalg.norm(dct(steps / lengths[:, None], axis=0, norm="ortho"), axis=1)
    turned = _unit(rng.standard_normal((n, *steps.shape)) @ colour) * frequencies[:, None]
    directions = _unit(idct(turned, axis=1, norm="ortho"))
    return np.concatenate([begin, start + (directions * lengths[:, None]).cumsum(axis=1)], axis=1)


def _unit(vectors: Floats) -> Floats:
    unit: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-300)
    return unit


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's ρ with ties averaged; NaN when it is undefined."""
    if len(x) < 3:
        return float("nan")
    ranks = rankdata(np.stack([x, y]), axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    norms = np.sqrt((ranks**2).sum(axis=1))
    return float(ranks[0] @ ranks[1] / norms.prod()) if norms.all() else float("nan")


def _unit_ranks(values: Floats) -> Floats:
    """Ranks along the last axis, centred and of length 1."""
    ranks = rankdata(values, axis=-1)
    return _unit(ranks - ranks.mean(axis=-1, keepdims=True))
