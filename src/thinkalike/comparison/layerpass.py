"""One pass over the layers of a comparison: each is read once, and all that needs it is done then.

A layer gives its part of the profile, its row of ranked distances, its map of words, and, where further
measures are asked for, its vectors, which these need all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from thinkalike.activations.store import Activations
from thinkalike.comparison.maps import classical_mds
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import ExaminedLayer, ProfilingPlan, collect_profile, examine_layer
from thinkalike.inference.geometry_tests import Null
from thinkalike.inference.left_out import LeftOut
from thinkalike.inference.sentences import SentencePlan
from thinkalike.labels import Floats, Layer, Row
from thinkalike.measures.rsa import RSA, RankedLayers
from thinkalike.pairs.distances import DistanceLike, QuadraticTarget, make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import standardised_ranks
from thinkalike.parallel import Failure, cores, engine_for, raise_failures, stream_in_order
from thinkalike.stimuli.table import Stimuli

MAPPED_ITEMS = 400
"""Items that are put on maps: all, or a seeded subset of so many"""

Vectors = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Geometry:
    """What the pass found besides profiles; rows are the layers of all compared systems."""

    rows: tuple[Row, ...]
    rsa: RSA
    left_out: LeftOut | None = field(repr=False)
    """RSA without each part of the sentences, if they were to be left out"""
    null: Null | None = field(repr=False)
    """RSA with exchanged sentences, if they were to change places"""
    words: tuple[tuple[Floats, Floats], ...] = field(repr=False)
    """For each row its map of words (n_mapped, 2), and the share of the variance along each axis (2,)"""
    mapped: npt.NDArray[np.int64] = field(repr=False)
    """(n_mapped,) which items are on the maps"""
    vectors: tuple[Vectors, ...] = field(repr=False)
    """The layers themselves, if they were to be kept"""


@dataclass(frozen=True, eq=False)
class LayerTask:
    """One layer, and what is wanted of it."""

    activations: Activations
    layer: Layer
    profile: bool
    geometry: bool
    resampled: bool
    """Whether its profile has ranges: copies have none"""


@dataclass(frozen=True, eq=False)
class LookedAt:
    """What was found of it."""

    examined: ExaminedLayer | None
    ranks: npt.NDArray[np.float32] | None
    words: tuple[Floats, Floats] | None
    vectors: Vectors | None = None


@dataclass(frozen=True, eq=False)
class Look:
    """What is done with a layer once it is read."""

    plan: ProfilingPlan
    bare: ProfilingPlan
    """The same without resamples, for copies"""
    pairs: Pairs
    mapped: npt.NDArray[np.int64]
    keep: bool = False
    """Whether the vectors are part of what was found"""

    @classmethod
    def of(cls, stimuli: Stimuli, plan: ProfilingPlan, *, keep: bool = False) -> Look:
        seed = plan.encoding.settings.seed
        mapped = np.sort(np.random.default_rng(seed).permutation(len(stimuli))[:MAPPED_ITEMS])
        pairs = Pairs.of(len(stimuli), seed=seed)
        return cls(plan, replace(plan, resampling=None), pairs, mapped, keep)

    @property
    def distance(self) -> DistanceLike:
        return self.plan.encoding.settings.distance

    def __call__(self, task: LayerTask) -> LookedAt:
        X = task.activations[task.layer]
        plan = self.plan if task.resampled else self.bare
        examined = examine_layer(plan, task.layer, X) if task.profile else None
        if not task.geometry:
            return LookedAt(examined, None, None)
        X = self.plan.steps(X)
        ranks = standardised_ranks(self.pairs, make_target(X, self.distance))
        return LookedAt(examined, ranks, self._words(X), X if self.keep else None)

    def _words(self, X: Vectors) -> tuple[Floats, Floats]:
        some = X[self.mapped]
        target = make_target(some, self.distance)
        placed = target.coordinates() if isinstance(target, QuadraticTarget) else None
        return classical_mds(some if placed is None else placed)


def pass_over_layers(
    stimuli: Stimuli,
    systems: Sequence[Activations],
    plan: ProfilingPlan,
    *,
    copies: Mapping[str, Sequence[Activations]] | None = None,
    kept: Callable[[Activations, ProfilingPlan], Profile | None] = lambda one, plan: None,
    made: Callable[[Profile], None] = lambda _: None,
    passed: Callable[[str], None] = lambda _: None,
    keep_vectors: bool = False,
    sentences: SentencePlan | None = None,
    root: Path | None = None,
) -> tuple[list[Profile], dict[str, tuple[Profile, ...]], Geometry]:
    """The profiles of all systems, those of their untrained copies, and the geometry of the systems.

    Parameters
    ----------
    copies : untrained copies, by the name of the trained system; they are only profiled, without ranges.
    kept : the profile that a plan has made already, if any.
    made : called with every new profile as soon as it is whole.
    passed : called with the name of every system whose layers have all been looked at.
    keep_vectors : whether further measures will need the layers.
    sentences : what is left out and what changes places, for the certainty of RSA.
    root : the run directory, if there is one, where workers share what is too large for a message.
    """
    everyone = [*systems, *chain(*(copies or {}).values())]
    bare = replace(plan, resampling=None)
    profiles = {one.system: kept(one, plan if k < len(systems) else bare) for k, one in enumerate(everyone)}
    tasks = [
        LayerTask(one, layer, profiles[one.system] is None, place < len(systems), place < len(systems))
        for place, one in enumerate(everyone)
        for layer in one.layers
        if place < len(systems) or profiles[one.system] is None
    ]
    rows = tuple((one.system, layer) for one in systems for layer in one.layers)
    look = Look.of(stimuli, plan, keep=keep_vectors)
    words: list[tuple[Floats, Floats]] = []
    vectors: list[Vectors] = []
    examined: dict[str, list[ExaminedLayer]] = {}
    failures: dict[str, str] = {}
    with ExitStack() as stack:
        ranked = stack.enter_context(RankedLayers(len(rows), look.pairs))
        for task, found in zip(tasks, _looked(look, stimuli, tasks, root, stack), strict=True):
            system, layers = task.activations.system, task.activations.layers
            if isinstance(found, Failure):
                failures[f"{system}:{task.layer}"] = found.reason
                continue
            if found.ranks is not None and found.words is not None:
                ranked.put(len(words), found.ranks)
                words.append(found.words)
            if keep_vectors and task.geometry:
                at_hand = found.vectors
                vectors.append(plan.steps(task.activations[task.layer]) if at_hand is None else at_hand)
            if found.examined is not None:
                examined.setdefault(system, []).append(found.examined)
                if len(examined[system]) == len(layers):
                    used = plan if task.resampled else bare
                    profile = collect_profile(task.activations, stimuli, used, examined.pop(system))
                    profiles[system] = profile
                    made(profile)
            if task.layer == layers[-1]:
                passed(system)
        raise_failures(failures, len(tasks))
        rsa = ranked.correlate(plan.differences)
        left_out = None if sentences is None else sentences.left_out_ranked(ranked, plan.differences)
        null = None if sentences is None else sentences.null_ranked(ranked)
    whole = {name: profile for name, profile in profiles.items() if profile is not None}
    return (
        [whole[one.system] for one in systems],
        {name: tuple(whole[copy.system] for copy in draws) for name, draws in (copies or {}).items()},
        Geometry(rows, rsa, left_out, null, tuple(words), look.mapped, tuple(vectors)),
    )


def _looked(
    look: Look, stimuli: Stimuli, tasks: Sequence[LayerTask], root: Path | None, stack: ExitStack
) -> Iterator[LookedAt | Failure]:
    """What is found of each layer, here or on workers."""
    engine = engine_for("fit")
    if engine is None:
        yield from stream_in_order(look, tasks, description="Looking at layers", threads=cores())
        return
    from thinkalike.comparison.tasks import look_on_workers, shared_folder

    folder = stack.enter_context(shared_folder(root))
    yield from look_on_workers(engine, stimuli, look.plan, tasks, folder)
