"""Comparison: a whole run, RSA beside its peers, the relabelling null.

    python -m benchmarks.comparison [end-to-end | rsa | memory | null]...

A whole run is timed by the clock, on all cores. Beside peers, times are of the processor in one thread, so
that ratios hold on a busy machine; all ways take turns in every round, and the best round counts.
`rsatoolbox` is timed if it is installed. Each part writes its table into benchmarks/results/comparison.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

ROUNDS = 3
RESULTS = Path(__file__).parent / "results" / "comparison.json"
LAYERS = {"like-bert": 13, "like-gpt2": 13, "like-mamba": 25}


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best(works: dict[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, float]:
    """The best time of each in seconds of the processor, all of them timed in turn in every round."""
    times: dict[str, list[float]] = {name: [] for name in works}
    with threadpool_limits(limits=1):
        for _ in range(rounds):
            for name, work in works.items():
                start = time.process_time()
                work()
                times[name].append(time.process_time() - start)
    return {name: min(found) for name, found in times.items()}


def show(part: str, title: str, rows: list[dict[str, Any]]) -> None:
    """Print a table, and keep it beside those of the other parts."""
    print(f"\n{title}")
    print(pd.DataFrame(rows).to_string(index=False), flush=True)
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    kept[part] = {"title": title, "rows": json.loads(pd.DataFrame(rows).to_json(orient="records"))}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def systems(stimuli: Any, n_units: int = 768) -> list[Any]:
    """Synthetic models of the sizes of the paper's, organised by all features in varying degrees."""
    from thinkalike.activations import Activations

    made = []
    for seed, (name, n_layers) in enumerate(LAYERS.items()):
        rng = np.random.default_rng(seed)
        layers = {}
        for layer in range(n_layers):
            X = rng.normal(size=(len(stimuli), n_units)).astype(np.float32)
            for feature in stimuli.features:
                levels = pd.factorize(stimuli.features[feature])[0]
                directions = rng.uniform(0, 0.8) * rng.normal(size=(levels.max() + 1, n_units))
                X += np.where(levels[:, None] >= 0, directions[levels], 0.0).astype(np.float32)
            layers[layer] = X
        made.append(Activations.from_arrays(layers, system=name, stimuli=stimuli))
    return made


def end_to_end() -> None:
    """After extraction: profiles, both matrices and explanations of 51 layers, 1,500 words; resamples."""
    from thinkalike.comparison import compare
    from thinkalike.stimuli import Stimuli

    stimuli = Stimuli.from_grammar(n_sentences=600, seed=0, grammar="salle2024")
    stimuli = stimuli.subset(np.arange(1500))
    shown = systems(stimuli)
    small = stimuli.subset(np.arange(200))
    from thinkalike.activations import Activations

    first = [
        Activations.from_arrays({0: s[0][:200], 1: s[1][:200]}, system=s.system, stimuli=small) for s in shown
    ]
    compare(first, small, resamples=2)  # compiles what is not compiled yet

    def run(resamples: int) -> None:
        made = compare(shown, stimuli, resamples=resamples)
        made.explain("like-bert", 4, "like-gpt2", 8)
        made.explain("like-bert", 4, "like-mamba", 8)

    plain, cpu = time.perf_counter(), time.process_time()
    run(0)
    plain, cpu = time.perf_counter() - plain, time.process_time() - cpu
    more, more_cpu = time.perf_counter(), time.process_time()
    run(200)
    more, more_cpu = time.perf_counter() - more, time.process_time() - more_cpu
    show(
        "end-to-end",
        "51 layers × 1,500 words × 768 units",
        [
            {
                "what": "profiles, matrices, tests, maps, 2 explanations",
                "s": plain,
                "cpu s": cpu,
                "goal s": 10,
                "load": os.getloadavg()[0],
            },
            {
                "what": "the same with 200 resamples",
                "s": more,
                "cpu s": more_cpu,
                "goal s": 30,
                "load": os.getloadavg()[0],
            },
        ],
    )


def rsa() -> None:
    """All pairs of 12 layers × 2,000 items × 768 units."""
    from scipy.spatial.distance import pdist
    from scipy.stats import spearmanr

    from thinkalike.measures.rsa import rsa_matrix
    from thinkalike.pairs.distances import make_target
    from thinkalike.pairs.pairset import Pairs
    from thinkalike.pairs.ranks import pair_distances

    rng = np.random.default_rng(0)
    base = rng.normal(size=(2000, 20))
    layers = [
        (base @ rng.normal(size=(20, 768)) + 3 * rng.normal(size=(2000, 768))).astype(np.float32)
        for _ in range(12)
    ]
    names = [str(k) for k in range(12)]
    pairs = Pairs.of(2000)

    def distances_and_sorts() -> None:
        for X in layers:
            np.argsort(pair_distances(pairs, make_target(X, "euclidean"))[0])

    def scipys() -> Any:
        return spearmanr(np.stack([pdist(X) for X in layers], axis=1)).statistic

    works: dict[str, Callable[[], Any]] = {
        "thinkalike": lambda: rsa_matrix(layers, names=names),
        "distances and sorts alone": distances_and_sorts,
        "scipy: pdist + spearmanr": scipys,
    }
    try:
        from rsatoolbox.data import Dataset
        from rsatoolbox.rdm import calc_rdm, compare, concat
    except ImportError:
        print("rsatoolbox is not installed: not timed")
    else:

        def rsatoolboxs() -> Any:
            rdms = concat([calc_rdm(Dataset(X), method="euclidean") for X in layers])
            return compare(rdms, rdms, method="spearman")

        works["rsatoolbox"] = rsatoolboxs
    rsa_matrix(layers[:2], names=names[:2])
    times = best(works)
    error = np.abs(rsa_matrix(layers, names=names).values - scipys()).max()
    ours = times["thinkalike"]
    show(
        "rsa",
        f"RSA of 12 layers × 2,000 items × 768 units (largest difference from scipy {error:.1e})",
        [{"what": name, "cpu s": t, "× ours": t / ours} for name, t in times.items()],
    )


def memory() -> None:
    """Peak memory of RSA over 51 layers, each made when its turn comes, as items grow."""
    script = """
import sys, resource, time, numpy as np
from thinkalike.measures.rsa import rsa_matrix
n, n_layers = int(sys.argv[1]), 51
def layers():
    for seed in range(n_layers):
        yield np.random.default_rng(seed).normal(size=(n, 64)).astype(np.float32)
rsa_matrix((X for X in [next(layers())] * 2), names=["a", "b"])
start = time.perf_counter()
found = rsa_matrix(layers(), names=[str(k) for k in range(n_layers)])
print(found.n_pairs, time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
    rows = []
    for n in (2000, 4000, 8000):
        done = subprocess.run(
            [sys.executable, "-c", script, str(n)], capture_output=True, text=True, check=True
        )
        n_pairs, taken, peak = map(float, done.stdout.split())
        rows.append(
            {
                "items": n,
                "pairs used": int(n_pairs),
                "s": taken,
                "peak MB": round(peak),
                "all ranks at once, MB": round(51 * n * (n - 1) / 2 * 4 / 2**20),
            }
        )
    show("memory", "Memory of RSA, 51 layers × 64 units", rows)


def null() -> None:
    """τ_w of 51 × 51 layers under all 40,320 relabellings of 8 features, with and without ties."""
    from thinkalike.inference.weighted_tau import relabelled_taus, relabellings

    rng = np.random.default_rng(0)
    orders = relabellings(8)
    rows = []
    for name, profiles in (
        ("no ties", rng.normal(size=(51, 8))),
        ("ties at zero", np.maximum(rng.normal(size=(51, 8)), 0)),
    ):

        def run(profiles: Any = profiles) -> None:
            for part in relabelled_taus(profiles, profiles, orders):
                part.max()

        run()
        taken = min(seconds(run) for _ in range(ROUNDS))
        rows.append({"profiles": name, "s": taken, "ns per τ_w": 1e9 * taken / (51 * 51 * len(orders))})
    show("null", "51 × 51 layers × 40,320 relabellings", rows)


PARTS = {
    "end-to-end": end_to_end,
    "rsa": rsa,
    "memory": memory,
    "null": null,
}


def main(*names: str) -> None:
    from thinkalike.comparison.cautions import CautionWarning

    warnings.simplefilter("ignore", CautionWarning)
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(*sys.argv[1:])
