"""Some stitches of one job from their fit to their judgement; each comes out the same whichever others do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from thinkalike.progress import progress
from thinkalike.stitching.evaluation import Evaluation, evaluate
from thinkalike.stitching.examples import Examples
from thinkalike.stitching.gathering import Gathered, gather, least_squares
from thinkalike.stitching.job import Job, n_batches
from thinkalike.stitching.material import Material
from thinkalike.stitching.phi import Map, identity_start
from thinkalike.stitching.stitches import Stitch
from thinkalike.stitching.task import TaskFit
from thinkalike.stitching.training import train
from thinkalike.systems.calling import bottom_states, frozen

if TYPE_CHECKING:
    from torch import nn

    from thinkalike.checkpoint import Checkpoint


@dataclass(frozen=True)
class Way:
    """How φ is made.

    Attributes
    ----------
    how
        The settings of a fit by task loss, if it is one.
    """

    kind: str
    how: TaskFit | None
    rank: int | None
    seed: int
    tokens_at_once: int

    @property
    def solves(self) -> bool:
        """Whether least squares give φ, or its start."""
        return self.kind != "identity" and (self.how is None or self.how.start == "least-squares")


@dataclass(frozen=True)
class Trained:
    """How a fit by task loss went; see `Training`."""

    curve: list[tuple[int, str, float]]
    best_step: int
    last_step: int
    stopped: str | None


@dataclass(frozen=True, eq=False)
class Stitched:
    """What came of some stitches.

    Attributes
    ----------
    phis, explained
        The fitted φ, and R² of the top's own states by it (NaN without least squares), by stitch.
    trained
        By stitch, if the fit was by task loss.
    judged
        On the text to judge by.
    """

    phis: dict[Stitch, nn.Module]
    explained: dict[Stitch, float]
    trained: dict[Stitch, Trained]
    judged: Evaluation


def fit_and_judge(job: Job, material: Material, way: Way, checkpoint: Checkpoint | None = None) -> Stitched:
    """Sum the moments, fit every φ, and judge it: one bar. BLAS has one thread, as it has in workers."""
    reference = material.test if material.fit is None else material.fit
    passes = sum(n_batches(part, way.tokens_at_once) for part in (reference, material.test))
    n_updates = 0 if way.how is None else way.how.steps * len(job.stitches)
    at_once = way.tokens_at_once
    with frozen(*job.models), threadpool_limits(1, "blas"), progress("Stitching", passes + n_updates) as step:
        if not way.solves:
            starts = {one: identity_start(way.kind, *_widths(job, one, reference)) for one in job.stitches}
        gathered = gather(
            job, reference, kind=way.kind if way.solves else None, tokens_at_once=at_once, step=step
        )
        if way.solves:
            starts = {one: least_squares(gathered, one, way.kind, way.rank) for one in job.stitches}
        phis = {one: phi.to(job.device) for one, phi in starts.items()}
        trained: dict[Stitch, Trained] = {}
        if way.how is not None:
            assert material.fit is not None
            assert material.validation is not None
            found = train(
                job,
                phis,
                way.how,
                material.fit,
                material.validation,
                seed=way.seed,
                tokens_at_once=at_once,
                step=step,
                checkpoint=checkpoint,
            )
            trained = {
                stitch: Trained(one.curve, one.best_step, one.last_step, one.stopped)
                for stitch, one in found.items()
            }
        judged = evaluate(job, phis, material.test, gathered.top, tokens_at_once=at_once, step=step)
        explained = {stitch: _explained(gathered, stitch, phi) for stitch, phi in phis.items()}
    return Stitched(phis, explained, trained, judged)


def _widths(job: Job, stitch: Stitch, examples: Examples) -> tuple[tuple[int, int], tuple[str, str]]:
    """The widths of the two layers, as the models themselves have them, and what they are called."""
    batch = examples.batch([0], device=job.device)
    system = job.bottoms[stitch.role]
    below = bottom_states(system.stack, {stitch.layer_bottom}, batch.tokens)[stitch.layer_bottom]
    above = bottom_states(job.top.stack, {stitch.layer_top}, batch.tokens)[stitch.layer_top]
    names = f"{system.name}:{stitch.layer_bottom}", f"{job.top.name}:{stitch.layer_top}"
    return (below.shape[-1], above.shape[-1]), names


def _explained(gathered: Gathered, stitch: Stitch, phi: nn.Module) -> float:
    if stitch not in gathered.products or not isinstance(phi, Map):
        return float("nan")
    pair, weight = gathered.pair(stitch), phi.matrix().detach().cpu().double().numpy()
    return pair.explained(weight)
