"""Two workers beside one, and what a comparison costs as systems, layers and items grow.

    python -m benchmarks.workers [efficiency | growth | cores]...

Efficiency is that of the fitting part: the time of one worker over twice that of two, 1 if nothing is lost.
Goal: 0.8. Rounds of one and of two take turns, workers started and warm; the clock is believed only where the
machine is idle. Beside it stands what a busy machine does not touch: processor time of the one worker over
twice that of the busier of the two, with what the caller itself spent added to both. Growth is in processor
seconds of whole comparisons of arrays. `cores`: one process, two threads; the processor time of all of its
threads over that of the busiest is how many cores it would keep busy on an idle machine, beside what the
clock says on this one. Results: benchmarks/results/workers.json.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "workers.json"
ROUNDS, UNITS, SENTENCES = 2, 256, 170
LAYERS = (24, 40, 60)


def _systems(stimuli, n_systems: int, n_layers: int, n_units: int):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    return {
        f"s{k}": {j: rng.standard_normal((len(stimuli), n_units), dtype=np.float32) for j in range(n_layers)}
        for k in range(n_systems)
    }


def _processor_seconds() -> dict[int, float]:
    """Of every process that this one has started, and of itself."""
    ticks = os.sysconf("SC_CLK_TCK")
    found = {os.getpid(): time.process_time()}
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        found[int(child.pid or 0)] = (int(fields[11]) + int(fields[12])) / ticks
    return found


def efficiency() -> list[dict[str, object]]:
    """With fewer and with more layers: every worker makes the plan of the folds for itself."""
    return [_efficiency(n_layers) for n_layers in LAYERS]


def _efficiency(n_layers: int) -> dict[str, object]:
    import thinkalike as ta

    stimuli = ta.Stimuli.from_grammar(SENTENCES, seed=0)
    few = ta.Stimuli.from_grammar(12, seed=1)
    rounds: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        layers = _systems(stimuli, 1, n_layers, UNITS)["s0"]
        store = ta.Activations.from_arrays(layers, system="s", stimuli=stimuli).save(Path(folder, "s.zarr"))
        found, small = ta.Activations.open(store), _systems(few, 1, 8, UNITS)["s0"]
        for _ in range(ROUNDS):
            for n in rounds:
                with ta.workers(n):
                    ta.profile(small, few, resamples=20)  # every worker has loaded what it needs
                    before, start = _processor_seconds(), time.perf_counter()
                    ta.profile(found, stimuli, resamples=20)
                    clock = time.perf_counter() - start
                    spent = {pid: end - before.get(pid, 0.0) for pid, end in _processor_seconds().items()}
                own = spent.pop(os.getpid())
                rounds[n].append((clock, own + max(spent.values())))
                print(n, "workers:", rounds[n][-1], spent, flush=True)
    by_clock, by_processor = (
        [one[k] / (2 * two[k]) for one, two in zip(rounds[1], rounds[2], strict=True)] for k in (0, 1)
    )
    return {
        "layers": n_layers,
        "items": len(stimuli),
        "efficiency by the clock": [round(x, 2) for x in by_clock],
        "efficiency by processor time": [round(x, 2) for x in by_processor],
        "median by processor time": round(statistics.median(by_processor), 2),
        "load": round(os.getloadavg()[0], 1),
    }


def growth() -> dict[str, object]:
    import thinkalike as ta

    few = ta.Stimuli.from_grammar(20, seed=0)
    ta.compare(_systems(few, 2, 2, 64), few)
    sizes = [(2, 4, 60), (4, 4, 60), (8, 4, 60), (2, 8, 60), (2, 16, 60), (2, 4, 120), (2, 4, 240)]
    rows = []
    for n_systems, n_layers, n_sentences in sizes:
        stimuli = ta.Stimuli.from_grammar(n_sentences, seed=0)
        systems = _systems(stimuli, n_systems, n_layers, 128)
        start = time.process_time()
        ta.compare(systems, stimuli)
        row = {"systems": n_systems, "layers of each": n_layers, "items": len(stimuli)}
        row["processor s"] = round(time.process_time() - start, 2)  # type: ignore[assignment]
        rows.append(row)
        print(row, flush=True)
    return {"rows": rows, "load": round(os.getloadavg()[0], 1)}


def threads_of(work: Callable[[], object]) -> dict[str, object]:
    """What the work took, and how evenly its threads shared it; they are watched while they live."""
    ticks, done = os.sysconf("SC_CLK_TCK"), threading.Event()
    first, last = _threads(), dict[int, int]()

    def watch() -> None:
        while not done.wait(0.02):
            last.update(_threads())

    watcher = threading.Thread(target=watch)
    watcher.start()
    cpu, clock = time.process_time(), time.perf_counter()
    work()
    cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
    last.update(_threads())
    done.set()
    watcher.join()
    last.pop(watcher.native_id or 0, None)
    busiest = max(end - first.get(thread, 0) for thread, end in last.items()) / ticks
    return {
        "processor s": round(cpu, 2),
        "busiest thread s": round(busiest, 2),
        "cores": round(cpu / busiest, 2),
        "processor ÷ clock": round(cpu / clock, 2),
    }


def _threads() -> dict[int, int]:
    """Ticks of the processor of every thread of this process."""
    found = {}
    for path in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            found[int(path.name)] = int(fields[11]) + int(fields[12])
    return found


def cores() -> dict[str, object]:
    import thinkalike as ta

    stimuli, few = ta.Stimuli.from_grammar(SENTENCES, seed=0), ta.Stimuli.from_grammar(12, seed=1)
    layers, small = (_systems(shown, 2, 12, UNITS) for shown in (stimuli, few))
    works: dict[str, Callable[[dict, ta.Stimuli], object]] = {
        "profiles": lambda found, shown: ta.profile(found["s0"], shown),
        "profiles with 20 resamples": lambda found, shown: ta.profile(found["s0"], shown, resamples=20),
        "RSA": lambda found, shown: ta.similarity(
            [ta.Activations.from_arrays(one, system=name) for name, one in found.items()], measure="rsa"
        ),
        "a comparison, with RSA and maps": lambda found, shown: ta.compare(found, shown),
    }
    rows = {}
    for name, work in works.items():
        work(small, few)
        rows[name] = threads_of(partial(work, layers, stimuli))
        print(name, rows[name], flush=True)
    return {"items": len(stimuli), **rows, "load": round(os.getloadavg()[0], 1)}


PARTS = {"efficiency": efficiency, "growth": growth, "cores": cores}


def main(*names: str) -> None:
    warnings.simplefilter("ignore")
    for name in names or PARTS:
        found = PARTS[name]()
        print(name, found, flush=True)
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**kept, name: found}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
