"""How well stitched models predict, unit by unit, and how far their states lie from the top's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.linalg import cholesky, solve_triangular

from thinkalike.progress import Step
from thinkalike.stitching.closed_form import Floats, LayerMoments
from thinkalike.stitching.examples import NOT_ASKED, Examples, TargetBatch
from thinkalike.stitching.job import Job
from thinkalike.stitching.stitches import Stitch
from thinkalike.systems.calling import arguments, top_logits
from thinkalike.systems.hooks import recording

if TYPE_CHECKING:
    from torch import Tensor, nn

# Of the mean variance, added to every direction: what the top's own states never do is far, not infinitely.
SHRINKAGE = 1e-4
OUTSIDE = 0.99


@dataclass(frozen=True, eq=False)
class Scores:
    """Sums over the predictions of each unit, (n_units,) each."""

    loss: Floats = field()
    correct: Floats = field()
    count: Floats = field()


@dataclass(frozen=True)
class StateCheck:
    """Where stitched states lie among the top's own at that layer.

    Attributes
    ----------
    norm, norm_own
        Mean Euclidean norms.
    mahalanobis, mahalanobis_own
        Mean distances from the mean of the top's own states in their own covariance (shrunk by 1e-4 of the
        mean variance).
    outside
        The share of stitched states farther out than 99 % of the top's own; 0.01 if they are alike.
    """

    norm: float
    norm_own: float
    mahalanobis: float
    mahalanobis_own: float
    outside: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    own: Scores
    stitched: dict[Stitch, Scores]
    checks: dict[Stitch, StateCheck]


def evaluate(
    job: Job,
    phis: Mapping[Stitch, nn.Module],
    examples: Examples,
    reference: Mapping[int, LayerMoments],
    *,
    tokens_at_once: int,
    step: Step | None = None,
) -> Evaluation:
    """The top by itself and every stitch over the same examples; each bottom passes once."""
    n_units = int(examples.units.max()) + 1
    own, sums = _Sums(n_units), {stitch: _Sums(n_units) for stitch in phis}
    yardsticks = {layer: Yardstick(moments) for layer, moments in reference.items()}
    distances: dict[Stitch | int, list[Floats]] = {}
    with torch.no_grad():
        for batch in job.batches(examples, tokens_at_once):
            with recording(job.top.stack) as record:
                logits = job.top.model(**arguments(job.top.stack, batch.tokens, job.top.model)).logits
            own.add(logits, batch)
            known: dict[int, Tensor] = dict(record.states)  # type: ignore[arg-type]
            for layer, yardstick in yardsticks.items():
                distances.setdefault(layer, []).append(yardstick(batch.rows(known[layer])))
            states = job.states(batch, among=list(phis), known=known)
            for stitch, phi in phis.items():
                mapped = phi(states[stitch.role, stitch.layer_bottom])
                logits = top_logits(job.top.model, job.top.stack, stitch.layer_top, mapped, batch.tokens)
                sums[stitch].add(logits, batch)
                if stitch.layer_top in yardsticks:
                    yardstick = yardsticks[stitch.layer_top]
                    distances.setdefault(stitch, []).append(yardstick(batch.rows(mapped)))
            if step is not None:
                step.advance()
    measured = {at: np.concatenate(parts, axis=1) for at, parts in distances.items()}
    checks = {
        stitch: _check(measured[stitch], measured[stitch.layer_top]) for stitch in phis if stitch in measured
    }
    return Evaluation(own.scores(), {stitch: one.scores() for stitch, one in sums.items()}, checks)


def mean_losses(
    job: Job, phis: Mapping[Stitch, nn.Module], examples: Examples, *, tokens_at_once: int
) -> dict[Stitch, float]:
    """The mean loss of some stitches, and nothing else."""
    totals, count = dict.fromkeys(phis, 0.0), 0
    with torch.no_grad():
        for batch in job.batches(examples, tokens_at_once):
            count += int((batch.targets != NOT_ASKED).sum())
            states = job.states(batch, among=list(phis))
            for stitch, phi in phis.items():
                mapped = phi(states[stitch.role, stitch.layer_bottom])
                logits = top_logits(job.top.model, job.top.stack, stitch.layer_top, mapped, batch.tokens)
                totals[stitch] += float(mean_loss(logits, batch, reduction="sum"))
    return {stitch: total / count for stitch, total in totals.items()}


def mean_loss(logits: Tensor, batch: TargetBatch, *, reduction: str = "mean") -> Tensor:
    """Cross-entropy of the batch's targets."""
    return torch.nn.functional.cross_entropy(
        logits.float().flatten(0, -2), batch.targets.flatten(), ignore_index=NOT_ASKED, reduction=reduction
    )


class Yardstick:
    """Norms and Mahalanobis distances by the mean and covariance of a layer."""

    def __init__(self, moments: LayerMoments) -> None:
        covariance = moments.covariance
        scale = np.trace(covariance) / len(covariance) or 1.0
        lower = cholesky(covariance + SHRINKAGE * scale * np.eye(len(covariance)), lower=True)
        inverse = solve_triangular(lower, np.eye(len(lower)), lower=True)
        self.mean, self.whitening = torch.from_numpy(moments.mean), torch.from_numpy(inverse.T.copy())

    def __call__(self, rows: Tensor) -> Floats:
        """(2, n): norms, then distances."""
        rows = rows.double()
        white = (rows - self.mean.to(rows.device)) @ self.whitening.to(rows.device)
        return torch.stack([rows.norm(dim=1), white.norm(dim=1)]).cpu().numpy()


class _Sums:
    def __init__(self, n_units: int) -> None:
        self.totals = np.zeros((3, n_units))

    def add(self, logits: Tensor, batch: TargetBatch) -> None:
        asked = batch.targets != NOT_ASKED
        logits, targets = logits[asked].float(), batch.targets[asked]
        losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
        correct = logits.argmax(-1) == targets
        units = batch.units[asked.cpu().numpy()]
        for row, values in enumerate((losses, correct, torch.ones_like(losses))):
            self.totals[row] += np.bincount(
                units, weights=values.double().cpu().numpy(), minlength=self.totals.shape[1]
            )

    def scores(self) -> Scores:
        return Scores(*self.totals)


def _check(stitched: Floats, own: Floats) -> StateCheck:
    limit = np.quantile(own[1], OUTSIDE)
    return StateCheck(
        norm=float(stitched[0].mean()),
        norm_own=float(own[0].mean()),
        mahalanobis=float(stitched[1].mean()),
        mahalanobis_own=float(own[1].mean()),
        outside=float((stitched[1] > limit).mean()),
    )
