"""Many items: memory and processor time of profiles, RSA and CKA as the items grow.

    python -m benchmarks.large [WORK]...
    all, or some of: profile, resamples, rsa, cka, cka-ranges, usual, 6-cka, 24-cka, 24-rsa, 24-profile,
    whole, layers, systems

Layers of 1,024 units lie in a store on disk. Profiles and RSA are by at most two million pairs of items in
one go (`max_pairs`), a tenth of what is usual, to spare time; `usual` is a profile with the usual cap. Each
size runs in a process of its own, whose peak memory the system tells, libraries included (`idle MB`: what
they take before anything is read). Times are of the processor, reading included, compiling not. Twice as
many items should take twice as long; `growth` is the power of n between two sizes, 1 for linear. `whole` is
a comparison of 60,000 items × 64 units, `layers` one of 300 layers × 300 items, `systems` one of 40 systems
with 6 layers, all without the page. `24-…` are all 24 layers of a store of 100,000 items (9.8 GB): CKA and
RSA between all of them, and the profile, each in one go of one process; `6-cka` is a quarter of them. Stores
lie in a temporary folder, or in `$LARGE_DIR`, where they stay and are used again.
Results are in benchmarks/results/large.json.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent / "results" / "large.json"
SIZES = (12_500, 25_000, 50_000, 100_000)
UNITS, LAYERS, PAIRS = 1_024, 2, 2_000_000
N_LAYERS = {"6-cka": 6, "24-cka": 24, "24-rsa": 24, "24-profile": 24}
WORKS = (
    "profile",
    "resamples",
    "rsa",
    "cka",
    "cka-ranges",
    "usual",
    *N_LAYERS,
    "whole",
    "layers",
    "systems",
)
ONE_SIZE = {
    "whole": 60_000,
    "layers": 300,
    "systems": 300,
    "usual": 100_000,
    **dict.fromkeys(N_LAYERS, 100_000),
}
SYSTEMS = {"whole": (2, 1, 64), "layers": (2, 150, 64), "systems": (40, 6, 64)}
"""Systems, layers of each, units"""


def stimuli(n: int):  # type: ignore[no-untyped-def]
    """Items with eight features of two to five levels, in clusters of four as words are in sentences."""
    import thinkalike as ta

    rng = np.random.default_rng(0)
    features = {f"f{k}": pd.Categorical(rng.integers(0, 2 + k % 4, n).astype(str)) for k in range(8)}
    return ta.Stimuli.from_table(pd.DataFrame(features, index=[f"i{k}" for k in range(n)]))


def layer(shown, seed: int, n_units: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Noise, and a direction for every level of every feature."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((len(shown), n_units), dtype=np.float32)
    for name in shown.features:
        codes = shown.features[name].cat.codes.to_numpy()
        directions = rng.uniform(0, 0.8) * rng.standard_normal((codes.max() + 1, n_units))
        X += directions.astype(np.float32)[codes]
    return X


def make_store(n: int, path: Path, n_layers: int = LAYERS, n_units: int = UNITS) -> None:
    import thinkalike as ta

    shown = stimuli(n)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # on disk: all layers have no room in memory
        layers = {}
        for k in range(n_layers):
            np.save(Path(folder, f"{k}.npy"), layer(shown, k, n_units))
            layers[k] = np.load(Path(folder, f"{k}.npy"), mmap_mode="r")
        ta.Activations.from_arrays(layers, system="large", stimuli=shown).save(path)


def work(name: str, store: Path | None, n: int) -> None:
    """One piece of work, after a small one of the same kind that loads and compiles all that it needs."""
    import thinkalike as ta

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        make_store(400, Path(folder, "small.zarr"))
        _do(name, ta.Activations.open(Path(folder, "small.zarr")), stimuli(400))
    shown = stimuli(n)
    if name in SYSTEMS:
        found = _arrays(shown, *SYSTEMS[name])
    else:
        assert store is not None
        found = ta.Activations.open(store)
    idle, before, clock = _peak(), time.process_time(), time.perf_counter()
    _do(name, found, shown)
    cpu, clock = time.process_time() - before, time.perf_counter() - clock
    print(json.dumps({"cpu s": round(cpu, 1), "s": round(clock, 1), "idle MB": idle, "peak MB": _peak()}))


def _arrays(shown, n_systems: int, n_layers: int, n_units: int):  # type: ignore[no-untyped-def]
    return {
        f"s{k}": {j: layer(shown, 1000 * k + j, n_units) for j in range(n_layers)} for k in range(n_systems)
    }


def _do(name: str, found, shown) -> None:  # type: ignore[no-untyped-def]
    import thinkalike as ta
    from thinkalike.measures.rsa import rsa_matrix

    if name == "24-profile":
        ta.profile(found, shown, max_pairs=PAIRS)
    elif name in ("profile", "resamples"):  # one layer, as a worker has one at a time
        ta.profile({0: found[0]}, shown, resamples=20 if name == "resamples" else 0, max_pairs=PAIRS)
    elif name == "usual":
        ta.profile({0: found[0]}, shown)
    elif name in ("rsa", "24-rsa"):
        rsa_matrix((found[k] for k in found), names=[str(k) for k in found], max_pairs=PAIRS)
    elif name in ("cka", "6-cka", "24-cka"):
        ta.similarity([found], measure="cka")
    elif name == "cka-ranges":
        ta.similarity([found], measure="cka", stimuli=shown)
    else:
        systems = found if isinstance(found, dict) else {"a": found, "b": dict(found)}
        ta.compare(systems, shown, resamples=0 if name == "whole" else None)


def _peak() -> int:
    """Megabytes of this program; `getrusage` would count what the process that started it had."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) // 1024


def measure(name: str, store: Path | None, n: int) -> dict[str, float]:
    """In a process of its own."""
    command = [sys.executable, "-m", "benchmarks.large", "--one", name, str(store or ""), str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"ended by signal {-done.returncode}"])[-1]
        return {"failed": last[:200]}  # type: ignore[dict-item]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(*names: str) -> None:
    with ExitStack() as stack:
        folder = os.environ.get("LARGE_DIR") or stack.enter_context(tempfile.TemporaryDirectory())
        for name in names or WORKS:
            sizes = (ONE_SIZE[name],) if name in ONE_SIZE else SIZES
            rows: list[dict[str, object]] = []
            for n in sizes:
                n_layers = N_LAYERS.get(name, LAYERS)
                store = None if name in SYSTEMS else Path(folder, f"{n}-{n_layers}.zarr")
                if store is not None and not store.exists():
                    make_store(n, store, n_layers)
                row = {"items": n, **measure(name, store, n), "load": round(os.getloadavg()[0], 1)}
                if rows and "cpu s" in row and "cpu s" in rows[-1]:
                    times = float(row["cpu s"]) / max(float(str(rows[-1]["cpu s"])), 0.1)
                    row["growth"] = round(math.log(times) / math.log(n / int(str(rows[-1]["items"]))), 2)
                rows.append(row)
                print(name, row, flush=True)
            kept = {**(json.loads(RESULTS.read_text()) if RESULTS.exists() else {}), name: rows}
            RESULTS.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        work(sys.argv[2], Path(sys.argv[3]) if sys.argv[3] else None, int(sys.argv[4]))
    else:
        main(*sys.argv[1:])
