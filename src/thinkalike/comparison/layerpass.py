"""One pass over the layers of a comparison: each is read once, and all that needs it is done then.

A layer gives its part of the profile, its row of ranked distances, its map of words, and, where further
measures are asked for, its vectors, which these need all at once; so many that they have no room are read
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from thinkalike.activations.store import Activations
from thinkalike.comparison.geometry_similarity import halves_of
from thinkalike.comparison.maps import classical_mds
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import ExaminedLayer, ProfilingPlan, collect_profile, examine_layer
from thinkalike.dispatch import Failure, raise_failures, shared_folder
from thinkalike.inference.geometry_tests import Null
from thinkalike.inference.halves import AcrossHalves, HalvesPlan, Ranks, rsa_across_halves
from thinkalike.inference.left_out import LeftOut
from thinkalike.inference.sentences import SentencePlan
from thinkalike.labels import Floats, Layer, Row
from thinkalike.measures.rsa import RSA, RankedLayers
from thinkalike.pairs.distances import DistanceLike, QuadraticTarget, make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import standardised_ranks
from thinkalike.parallel import cores, engine_for, stream_in_order
from thinkalike.stimuli.table import Stimuli

KEPT_VECTORS = 1 << 30
"""Bytes of vectors that are kept for further measures; more are read again when they are needed"""
MAPPED_ITEMS = 400
"""Items that are put on maps: all, or a seeded subset of so many"""

COPY_PAIRS = 30_000
"""Pairs of items from which RSA of copies is computed: of more, a seeded sample. It moves ρ by 0.006"""

Vectors = npt.NDArray[np.floating]
OfGeometry = Literal["nothing", "all", "sample"]
"""What is wanted of the geometry of a layer: for a compared system all of it, for a copy ranks of a sample"""


@dataclass(frozen=True, eq=False)
class Geometry:
    """What the pass found besides profiles; rows are the layers of all compared systems."""

    rows: tuple[Row, ...]
    rsa: RSA
    left_out: LeftOut | None = field(repr=False)
    """RSA without each part of the sentences, if they were to be left out"""
    null: Null | None = field(repr=False)
    """RSA with exchanged sentences, if they were to change places"""
    halves: AcrossHalves | None = field(repr=False)
    """RSA across halves of the sentences, if they were to be left out"""
    copies: Floats | None = field(repr=False)
    """RSA between the layers of all untrained copies, in the order of `copied`"""
    copied: tuple[Row, ...]
    """(copy, layer)"""
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
    geometry: OfGeometry
    resampled: bool
    """Whether its profile has ranges: copies have none"""


@dataclass(frozen=True, eq=False)
class LookedAt:
    """What was found of it."""

    examined: ExaminedLayer | None
    ranks: npt.NDArray[np.float32] | None
    words: tuple[Floats, Floats] | None
    halves: Sequence[Ranks] | None = None
    vectors: Vectors | None = None


Looked = Callable[[Sequence[LayerTask]], Iterator[LookedAt]]
"""Gives what was found of layers that have been looked at before"""


@dataclass(frozen=True, eq=False)
class Look:
    """What is done with a layer once it is read."""

    plan: ProfilingPlan
    bare: ProfilingPlan
    """The same without resamples, for copies"""
    pairs: Pairs
    few: Pairs
    """For copies"""
    mapped: npt.NDArray[np.int64]
    halves: HalvesPlan | None
    """None where nothing is resampled, or too few combinations of features stand in both halves"""
    keep: bool = False
    """Whether the vectors are part of what was found"""

    @classmethod
    def of(cls, stimuli: Stimuli, plan: ProfilingPlan, *, keep: bool = False) -> Look:
        settings = plan.encoding.settings
        seed = settings.seed
        mapped = np.sort(np.random.default_rng(seed).permutation(len(stimuli))[:MAPPED_ITEMS])
        pairs = Pairs.of(len(stimuli), max_pairs=settings.max_pairs, seed=seed)
        few = Pairs.of(len(stimuli), max_pairs=COPY_PAIRS, seed=seed)
        halves = None if plan.resampling is None else halves_of(stimuli, settings)
        return cls(plan, replace(plan, resampling=None), pairs, few, mapped, halves, keep)

    @property
    def distance(self) -> DistanceLike:
        return self.plan.encoding.settings.distance

    def __call__(self, task: LayerTask) -> LookedAt:
        X = task.activations[task.layer]
        plan = self.plan if task.resampled else self.bare
        examined = examine_layer(plan, task.activations.system, task.layer, X) if task.profile else None
        if task.geometry == "nothing":
            return LookedAt(examined, None, None)
        X = self.plan.steps(X)
        target = make_target(X, self.distance)
        if task.geometry == "sample":
            return LookedAt(examined, standardised_ranks(self.few, target), None)
        ranks = standardised_ranks(self.pairs, target)
        halves = None if self.halves is None else self.halves.ranks(X, self.distance)
        return LookedAt(examined, ranks, self._words(X), halves, X if self.keep else None)

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
    keep_vectors: bool = False,
    sentences: SentencePlan | None = None,
    root: Path | None = None,
    looking: Callable[[Look, LayerTask], LookedAt] | None = None,
    looked: Looked | None = None,
) -> tuple[list[Profile], dict[str, tuple[Profile, ...]], Geometry]:
    """The profiles of all systems, those of their untrained copies, and the geometry of the systems.

    Parameters
    ----------
    copies : untrained copies, by the name of the trained system; without ranges.
    kept : the profile that a plan has made already, if any.
    made : called with every new profile as soon as it is whole.
    keep_vectors : whether further measures will need the layers, which are kept if they have room.
    sentences : what is left out and what changes places, for the certainty of RSA.
    root : the run directory, if there is one, where workers share what is too large for a message.
    looking : how a layer is looked at here, such as one that remembers; never on workers.
    looked : if all layers have been looked at before.
    """
    everyone = [*systems, *chain(*(copies or {}).values())]
    bare = replace(plan, resampling=None)
    profiles = {one.system: kept(one, plan if k < len(systems) else bare) for k, one in enumerate(everyone)}
    tasks = [
        LayerTask(one, layer, profiles[one.system] is None, geometry, resampled=geometry == "all")
        for geometry, some in _wanted(systems, everyone[len(systems) :])
        for one in some
        for layer in one.layers
    ]
    rows, copied = (
        tuple((task.activations.system, task.layer) for task in tasks if task.geometry == kind)
        for kind in ("all", "sample")
    )
    if 4 * len(stimuli) * sum(sum(one.n_units) for one in systems) > KEPT_VECTORS:
        keep_vectors = False
    look = Look.of(stimuli, plan, keep=keep_vectors)
    words: list[tuple[Floats, Floats]] = []
    halves: list[Sequence[Ranks]] = []
    vectors: list[Vectors] = []
    n_copied = 0
    examined: dict[str, list[ExaminedLayer]] = {}
    failures: dict[str, str] = {}
    with ExitStack() as stack:
        ranked = stack.enter_context(RankedLayers(len(rows), look.pairs))
        ranked_copies = stack.enter_context(RankedLayers(len(copied), look.few))
        outcomes: Iterator[LookedAt | Failure]
        outcomes = looked(tasks) if looked else _looked(look, looking, stimuli, tasks, root, stack)
        for task, found in zip(tasks, outcomes, strict=True):
            system, layers = task.activations.system, task.activations.layers
            if isinstance(found, Failure):
                failures[f"{system}:{task.layer}"] = found.reason
                continue
            if found.ranks is not None and found.words is not None:
                ranked.put(len(words), found.ranks)
                words.append(found.words)
                halves += [] if found.halves is None else [found.halves]
            elif found.ranks is not None:
                ranked_copies.put(n_copied, found.ranks)
                n_copied += 1
            if keep_vectors and task.geometry == "all":
                at_hand = found.vectors
                vectors.append(plan.steps(task.activations[task.layer]) if at_hand is None else at_hand)
            if found.examined is not None:
                examined.setdefault(system, []).append(found.examined)
                if len(examined[system]) == len(layers):
                    used = plan if task.resampled else bare
                    profile = collect_profile(task.activations, stimuli, used, examined.pop(system))
                    profiles[system] = profile
                    made(profile)
        raise_failures(failures, len(tasks))
        rsa = ranked.correlate(plan.differences)
        left_out = None if sentences is None else sentences.left_out_ranked(ranked, plan.differences)
        null = None if sentences is None else sentences.null_ranked(ranked)
        of_copies = ranked_copies.correlate().values if copied else None
    whole = {name: profile for name, profile in profiles.items() if profile is not None}
    return (
        [whole[one.system] for one in systems],
        {name: tuple(whole[copy.system] for copy in draws) for name, draws in (copies or {}).items()},
        Geometry(
            rows,
            rsa,
            left_out,
            null,
            rsa_across_halves(halves) if halves else None,
            of_copies,
            copied,
            tuple(words),
            look.mapped,
            tuple(vectors),
        ),
    )


def _wanted(
    systems: Sequence[Activations], copies: Sequence[Activations]
) -> tuple[tuple[OfGeometry, Sequence[Activations]], ...]:
    """What is wanted of the geometry of whom."""
    return ("all", systems), ("sample", copies)


def _looked(
    look: Look,
    looking: Callable[[Look, LayerTask], LookedAt] | None,
    stimuli: Stimuli,
    tasks: Sequence[LayerTask],
    root: Path | None,
    stack: ExitStack,
) -> Iterator[LookedAt | Failure]:
    """What is found of each layer, here or on workers."""
    engine = engine_for("fit")
    if engine is None or looking is not None:
        own = look if looking is None else partial(looking, look)
        yield from stream_in_order(own, tasks, description="Looking at layers", threads=cores())
        return
    from thinkalike.comparison.tasks import look_on_workers

    folder = stack.enter_context(shared_folder(root))
    yield from look_on_workers(engine, stimuli, look.plan, tasks, folder)
