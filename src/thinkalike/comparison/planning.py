"""`plan`: what a run will take, before it starts; and the same in short, for the first line of a run."""

from __future__ import annotations

import inspect
import itertools
import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thinkalike.activations.conversion import as_activations, as_stimuli, named_systems
from thinkalike.activations.reader import is_complete
from thinkalike.activations.store import Activations
from thinkalike.comparison import compared_systems
from thinkalike.comparison.costs import (
    PairCounts,
    SystemSize,
    guessed_reading,
    measured_reading,
    seconds_a_layer,
)
from thinkalike.comparison.layerpass import KEPT_VECTORS, Look
from thinkalike.comparison.profiling import ProfilingPlan, plan_profiles
from thinkalike.comparison.run_plan import MOMENT, RunPlan, Step
from thinkalike.comparison.rundir import RunDirectory
from thinkalike.errors import UnknownName
from thinkalike.inference.sentences import MOST_ITEMS, NULL_PAIRS, PERMUTATIONS
from thinkalike.machine import available_memory, cache_directory, free_disk
from thinkalike.measures.large_cka import is_large, room_for_layers
from thinkalike.measures.measure import Measure
from thinkalike.measures.pair_forms import PAIR_FORMS
from thinkalike.measures.rsa import MEMORY as RANKS_IN_MEMORY
from thinkalike.options import refuse_other_names
from thinkalike.parallel import cores, engine_for
from thinkalike.progress import is_heard, say
from thinkalike.stimuli.table import Stimuli
from thinkalike.systems.names import is_array_file

PREPARING = "folds, resamples and pairs"
WORKS = ("compare", "profile", "extract", "cka", "stitch")
LIBRARIES = 800 << 20
"""Bytes that torch, transformers and the others take"""
SMALL_TABLES = 2 << 20
MORE_TO_TEST = 1 << 28

# What matrices, tests and maps take: seconds of a processor that multiplies `REFERENCE` products a second.
REFERENCE = 2.0e10
FIXED, A_LAYER, A_PAIR_OF_LAYERS = 0.15, 0.02, 2.5e-4
A_RANK, A_LOOK_UP, A_LEFT_OUT_RANK = 5e-8, 1e-8, 1e-6
WRITE_A_LAYER, WRITE_A_PAIR_OF_LAYERS = 0.05, 1.5e-3
TABLES_A_PAIR_OF_LAYERS = 21_000
"""Bytes of all tables of a run, twice: for programs and for people"""
ROBUSTNESS_TIMES = 20
"""Analyses of the grid, each about as long as looking at the layers once"""


def plan(
    systems: Any,
    stimuli: Any = None,
    *,
    work: str = "compare",
    out: str | os.PathLike[str] | None = None,
    **options: Any,
) -> RunPlan:
    """What a run will take, before it starts: tasks, time, memory of a worker, disk.

    Every model is opened and reads a few of the texts; one invented layer is looked at, of all items if they
    are at most 2,000, else of fewer, and the known growth does the rest. Nothing is written to `out`.

    Parameters
    ----------
    systems, stimuli, out : as in `compare`; for the other works also a single system.
    work : {"compare", "profile", "extract", "cka", "stitch"}, what is to be planned. The last two take a text
        in the place of stimuli, and make the call itself (`stream_cka`, or `stitch` of two models) on a
        little of it.
    options : those of `compare`, of `profile`, or of that call.

    Returns
    -------
    RunPlan
        It prints as a table. `fits` says whether there is room, `check()` refuses if not.

    Notes
    -----
    Times are of this machine and its processors; on workers elsewhere they are as good as those are alike.
    They leave out what the operating system has to wait for (a network, other programs), and the page.

    Examples
    --------
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(20, seed=0)
    >>> planned = ta.plan(["nano-bert", "nano-gpt2"], stimuli, resamples=0)
    >>> [step.name for step in planned.steps]
    ['reading models', 'folds, resamples and pairs', 'looking at layers', 'matrices, tests and maps']
    """
    from thinkalike.comparison import comparing

    if work not in WORKS:
        raise UnknownName.among("work to plan", work, WORKS)
    if work in ("cka", "stitch"):
        from thinkalike.comparison.text_planning import plan_cka, plan_stitch

        return (plan_cka if work == "cka" else plan_stitch)(systems, stimuli, out=out, **options)
    given = _options(comparing.compare, options)
    refuse_other_names((name for name in options if name not in given), given)
    if work != "compare" and (
        isinstance(systems, (str, os.PathLike, Activations)) or hasattr(systems, "shape")
    ):
        systems = [systems]
    stimuli = None if stimuli is None else as_stimuli(stimuli)
    named = {name: as_activations(system, name) for name, system in named_systems(systems).items()}
    compared_systems.check_systems(named, stimuli, given["controls"], least=2 if work == "compare" else 1)
    settings = {name: value for name, value in options.items() if name not in given}
    compared_systems.check_settings(settings, given["extraction"], named, given["controls"])
    if stimuli is None:
        stimuli = Stimuli.from_grammar(seed=settings.get("seed") or 0)
    extraction = dict(given["extraction"] or {})
    sizes = [
        size_of(system) or measured_reading(name, str(system), stimuli, extraction)
        for name, system in named.items()
    ]
    if work == "extract":
        return look_ahead(sizes, stimuli, out=out)
    usual = comparing.usual_resamples(given["preset"]) if work == "compare" else 0
    resamples = usual if given["resamples"] is None else given["resamples"]
    start = time.process_time()
    made = plan_profiles(stimuli, preset=given["preset"], resamples=resamples, **settings)
    if work == "compare":
        Look.of(stimuli, made)
    preparing = time.process_time() - start
    if work == "profile":
        return look_ahead(sizes, stimuli, made, out=out, preparing=preparing)
    asked = Compared(
        measures=comparing.further_measures(given["measures"]),
        null=given["null"] if given["null"] is not None or resamples else 0,
        copies=compared_systems.UNTRAINED_DRAWS if given["controls"] else 0,
        robustness=given["robustness"] is not False,
    )
    apart = comparing.goes_apart(
        named, extraction, keep=given["keep"], measures=asked.measures, robustness=asked.robustness
    )
    asked = replace(asked, apart=apart)
    return look_ahead(sizes, stimuli, made, asked, out=out, preparing=preparing)


def _options(function: Callable[..., object], given: Mapping[str, object]) -> dict[str, Any]:
    """The options of `function` with its own defaults, less those that are settings."""
    own = inspect.signature(function).parameters
    known = {name: p.default for name, p in own.items() if p.kind is p.KEYWORD_ONLY and name != "out"}
    return {name: given.get(name, default) for name, default in known.items()}


def size_of(system: object) -> SystemSize | None:
    """Of activations and files of arrays, which are there; None for a model."""
    if not isinstance(system, Activations):
        if not is_array_file(system):
            return None
        system = Activations.open(str(system))
    return SystemSize(system.system, system.n_units)


def refuse_without_room(
    named: Mapping[str, object],
    stimuli: Stimuli,
    made: ProfilingPlan,
    compared: Compared,
    *,
    extraction: Mapping[str, Any],
    run: RunDirectory | None,
) -> Callable[[], None]:
    """Before a comparison starts: refuse what has no room. Returns what says in one line what it will take.

    No weights are loaded: models are as large as their configurations and files say. Of a run directory, what
    is there is not read again. The line is made, by a short measurement, only if anyone listens.
    """
    sizes = []
    for name, system in named.items():
        stored = run is not None and is_complete(run.activations_path(name))
        size = size_of(system) or guessed_reading(name, str(system), stimuli, extraction)
        sizes.append(SystemSize(name, size.n_units, stored=True) if stored else size)
    out = None if run is None else run.root
    look_ahead(sizes, stimuli, made, compared, out=out, timed=False).check()

    def announce() -> None:
        if is_heard():
            ahead = look_ahead(sizes, stimuli, made, compared, out=out)
            if ahead.seconds is None or ahead.seconds >= MOMENT:
                say(ahead.line)

    return announce


@dataclass(frozen=True)
class Compared:
    """What a comparison is asked for besides profiles: the options of `compare`, worked out."""

    measures: Sequence[Measure] = ()
    null: int | None = None
    copies: int = 0
    """Untrained ones of each model"""
    robustness: bool = False
    apart: bool = False
    """Whether the vectors of each model go before the next is read"""


def look_ahead(
    sizes: Sequence[SystemSize],
    stimuli: Stimuli,
    made: ProfilingPlan | None = None,
    compared: Compared | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    timed: bool = True,
    preparing: float | None = None,
) -> RunPlan:
    """The plan from the sizes of all systems.

    Parameters
    ----------
    made : of the profiles; None if layers are only read.
    compared : None if the systems are only profiled.
    timed : whether to measure; without, only memory and disk are told.
    preparing : seconds of what is made once for all layers, folds and resamples and pairs; None if that has
        been done.
    """
    widths = [width for size in sizes for width in size.n_units or ()]
    known = all(size.n_units is not None for size in sizes) and bool(widths)
    speed = _products_a_second() / REFERENCE if timed else None
    steps = _reading(sizes, len(stimuli), compared or Compared(), speed, kept=out is not None)
    if made is not None and known:
        of_layers = _analysis(stimuli, made, sizes, compared, speed)
        if preparing is not None:
            makers = 1 if engine_for("fit") is None else _side_by_side()  # each worker for itself
            steps.append(Step(PREPARING, makers, makers * preparing, of_layers[0].memory, 0))
        steps += of_layers
        if compared is not None and out is not None:
            writing = None if speed is None else WRITE_A_PAIR_OF_LAYERS * len(widths) ** 2 / speed
            disk = SMALL_TABLES + TABLES_A_PAIR_OF_LAYERS * len(widths) ** 2
            steps.append(Step("writing tables", 1, writing, steps[-1].memory, disk))
    free = available_memory()
    place = str(out) if out is not None else cache_directory()
    return RunPlan(
        tuple(steps),
        workers=_side_by_side(),
        place=place,
        memory_free=None if free is None else free + _used(),
        disk_free=free_disk(place),
        about={
            "systems": len(sizes),
            "layers": len(widths),
            "copies": 0 if compared is None else compared.copies,
            "items": len(stimuli),
            "known": known,
        },
    )


def _reading(
    sizes: Sequence[SystemSize], n: int, compared: Compared, speed: float | None, *, kept: bool
) -> list[Step]:
    """Models are read into stores, with their copies; what is given is `kept` in a run directory."""
    copies = compared.copies
    models = [size for size in sizes if size.seconds != 0]
    given = [size for size in sizes if size.seconds == 0 and not size.stored] if kept else []
    if not models and not given:
        return []
    times = [size.seconds for size in models]
    seconds = None if None in times or speed is None else (1 + copies) * sum(filter(None, times))
    if seconds is not None and speed is not None:
        seconds += WRITE_A_LAYER * sum(len(size.n_units or ()) for size in given) / speed
    widest = max((max(size.n_units or (0,)) for size in sizes), default=0)
    memory = LIBRARIES + 2 * max((size.memory for size in models), default=0) + 8 * n * widest
    units, of_given = ([sum(size.n_units or ()) for size in some] for some in (models, given))
    of_models = (1 + copies) * sum(units)
    if compared.apart:  # as many at once as there are workers
        of_models = min(of_models, max(units, default=0) * (_side_by_side() if engine_for("extract") else 1))
    return [
        Step(
            "reading models" if models else "keeping activations",
            max(len(models) * (1 + copies), 1),
            seconds,
            memory,
            4 * n * (sum(of_given) + of_models),
        )
    ]


def _analysis(
    stimuli: Stimuli,
    made: ProfilingPlan,
    sizes: Sequence[SystemSize],
    compared: Compared | None,
    speed: float | None,
) -> list[Step]:
    n, settings = len(stimuli), made.encoding.settings
    widths = [width for size in sizes for width in size.n_units or ()]
    copies = 0 if compared is None else compared.copies
    untrained = [w for size in sizes if size.seconds != 0 for w in size.n_units or ()] * copies
    counts = PairCounts.of(n, made, geometry=compared is not None)
    seconds = None
    if speed is not None:
        of_one = seconds_a_layer(stimuli, made, widths, geometry=compared is not None)
        seconds = None if of_one is None else sum(of_one[width] for width in [*widths, *untrained])
    pairs = min(n * (n - 1) // 2, settings.max_pairs)
    ranks = 0 if compared is None else 4 * pairs * len(widths)
    vectors = min(4 * n * sum(widths), KEPT_VECTORS) if compared is not None and compared.measures else 0
    side = 1 if engine_for("fit") is not None else min(cores(), len(widths))
    held = LIBRARIES + counts.shared_memory + min(ranks, RANKS_IN_MEMORY) + vectors
    memory = held + side * (counts.working_memory + 6 * n * max(widths))
    steps = [Step("looking at layers", len(widths) + len(untrained), seconds, memory, 0)]
    if compared is None:
        return steps
    orders = 0 if n > MOST_ITEMS else PERMUTATIONS if compared.null is None else compared.null
    tests = None
    if speed is not None:
        tests = _tests_seconds(len(widths), pairs, orders, made.n_resamples > 0) / speed
    spilled = ranks if ranks > RANKS_IN_MEMORY or compared.apart else 0
    steps.append(Step("matrices, tests and maps", 1, tests, held + MORE_TO_TEST, spilled))
    for measure in compared.measures:
        counted = None if speed is None else _measure_seconds(measure, n, widths, orders) / speed
        layers = 4 * n * sum(widths) - vectors + 8 * n * sum(widths)  # all of them, and prepared in float64
        if is_large(measure.name, n, widths):
            layers = room_for_layers(n, widths)
        steps.append(Step(f"measure {measure.name}", 1, counted, held + layers, 0))
    if compared.robustness:
        again = None if seconds is None else ROBUSTNESS_TIMES * seconds
        steps.append(Step("other analyses", ROBUSTNESS_TIMES, again, memory, 0))
    return steps


def _tests_seconds(n_layers: int, pairs: int, orders: int, ranges: bool) -> float:
    """On the processor of reference."""
    seconds = FIXED + A_LAYER * n_layers + A_PAIR_OF_LAYERS * n_layers**2
    seconds += n_layers**2 * pairs * 2 / REFERENCE + A_RANK * pairs * n_layers
    chosen = min(pairs, NULL_PAIRS)
    seconds += orders * chosen * (A_LOOK_UP * n_layers + n_layers**2 * 2 / (2 * REFERENCE))
    return seconds + (A_LEFT_OUT_RANK * min(pairs, 100_000) * n_layers if ranges else 0.0)


def _measure_seconds(measure: Measure, n: int, widths: Sequence[int], orders: int) -> float:
    """By the growth that the measure declares for one pair of layers."""
    width, count = float(np.mean(widths)), len(widths)
    if measure.name.startswith("cka") and measure.name != "cka-rbf":
        total = sum(widths)
        by_features = n * (total**2 + sum(w**2 for w in widths))  # every pair of layers once
        flops = min(by_features, 2.0 * n**2 * (total + count**2))
    else:
        flops = 2 * count**2 / 2 * _growth(measure.cost, n, width)
    if orders and measure.name in PAIR_FORMS:
        flops += orders * min(n * n / 2, NULL_PAIRS) * count**2 * 2
    return flops / REFERENCE + 0.05


def _growth(cost: str, n: float, d: float) -> float:
    """`nd² + d³` in numbers; unknown letters count for nothing."""
    powers = {"²": 2, "³": 3}
    total = 0.0
    for term in cost.split("+"):
        value, letters = 1.0, [*term.strip(), ""]
        for letter, power in itertools.pairwise(letters):
            base = {"n": n, "d": d}.get(letter)
            value *= 1.0 if base is None else base ** powers.get(power, 1)
        total += value
    return total


def _products_a_second() -> float:
    """Multiplications and additions in single precision of one thread, from a short measurement."""
    from threadpoolctl import threadpool_limits

    A = np.ones((256, 256), dtype=np.float64)
    times = []
    with threadpool_limits(1, "blas"):
        for _ in range(5):
            start = time.thread_time()
            A @ A
            times.append(time.thread_time() - start)
    return 2 * 256**3 / max(min(times), 1e-7)


def _side_by_side() -> int:
    """Tasks that run at once; of an engine that does not tell, as many as here."""
    engine = engine_for("fit")
    return int(getattr(engine, "number", 0) or getattr(engine, "_max_workers", 0) or cores())


def _used() -> int:
    """Bytes that this process holds now: they are counted in what it needs."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
