"""Populations: size of a fingerprint, error of its sketch, and time for 1,000 and 100,000 models.

Goals: at most 20 kB a layer; RSA and CKA within 0.02 in 95 % of pairs of layers; of 1,000 models with 24
layers the nearest in 1 s and all against all in 60 s on two cores; the nearest of 100,000 in 2 s. These are
synthetic: their importances are drawn, and for the nearest of 100,000 only the candidates' files are written.
`python -m benchmarks populations` writes benchmarks/results/populations.json, with the load of the machine.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "populations.json"
LAYERS, MODELS, MANY = 24, 1_000, 100_000
ERRORS_OF = ("nano-bert", "nano-gpt2", "nano-pythia-160")


def main() -> None:
    result = {"load before": round(os.getloadavg()[0], 1), **sizes(), **errors(), **times()}
    for name, value in result.items():
        print(f"{name}: {value}")
    RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def sizes() -> dict[str, float]:
    import thinkalike as ta
    from thinkalike.populations.fingerprint_files import fingerprint_bytes

    result = {}
    for stimuli in ("words-1", "sentences-1"):
        every = ta.Atlas(stimuli=stimuli).fingerprints()
        largest = max(len(fingerprint_bytes(one)) / len(one.layers) for one in every)
        result[f"largest kB a layer, {stimuli}"] = round(largest / 1000, 1)
    return result


def errors() -> dict[str, float]:
    """How far sketches are from the exact values, over all pairs of layers of three bundled models."""
    import thinkalike as ta
    from thinkalike.populations import reference
    from thinkalike.populations.fingerprint_record import similarity_of

    shown = reference("words-1")
    activations = [ta.extract(name, shown) for name in ERRORS_OF]
    fingerprints = ta.Atlas().fingerprints(ERRORS_OF)
    result: dict[str, float] = {}
    for measure in ("rsa", "cka"):
        exact = ta.similarity(activations, measure=measure).values
        found = similarity_of(fingerprints, measure=measure).values
        off = np.abs(found - exact)[np.triu_indices(len(exact), k=1)]
        within = round(float(np.quantile(off, 0.95)), 4)
        result[f"{measure}: 95 % of {len(off)} pairs of layers within"] = within
        result[f"{measure}: share within 0.02"] = round(float((off <= 0.02).mean()), 3)
    return result


def times() -> dict[str, float]:
    import thinkalike as ta
    from thinkalike.populations.mean_tau import compact, compact_tau, mean_tau_matrix

    rng = np.random.default_rng(0)
    drawn = [_importances(rng) for _ in range(MODELS)]
    mean_tau_matrix(drawn[:3])  # compile
    mean_tau_matrix(drawn[:1], drawn[:2])
    result = {
        "all of 200 against all, processor (s)": _seconds(
            lambda: mean_tau_matrix(drawn[:200]), time.process_time
        ),
        f"all of {MODELS:,} against all (s)": _seconds(lambda: mean_tau_matrix(drawn)),
        f"one against all of {MODELS:,}, exact (s)": _seconds(lambda: mean_tau_matrix(drawn[:1], drawn)),
    }
    vectors = np.concatenate([np.stack([compact(one) for one in drawn])] * (MANY // MODELS))
    vectors += 1e-3 * rng.normal(size=vectors.shape).astype(np.float32)
    own = compact(drawn[0])

    def nearest() -> None:
        order = np.argsort(-compact_tau(own, vectors), kind="stable")[:50]
        mean_tau_matrix(drawn[:1], [drawn[k % MODELS] for k in order])

    result[f"nearest of {MANY:,}, index in memory (s)"] = _seconds(nearest)
    with tempfile.TemporaryDirectory() as folder:
        atlas, pattern = ta.Atlas(folder), ta.Atlas()["nano-mamba"]
        for k in range(60):
            atlas.add(replace(pattern, profile=replace(pattern.profile, system=f"model {k}")))
        atlas.nearest("model 0")  # writes the index
        opened = ta.Atlas(folder)
        result["nearest from files, 50 of 13 layers read (s)"] = _seconds(lambda: opened.nearest("model 0"))
    return result


def _importances(rng: np.random.Generator) -> np.ndarray:
    """24 layers × 8 features, some of them exactly 0, as real ones are."""
    values = rng.gamma(0.7, size=(LAYERS, 8)) * rng.gamma(0.7, size=8)
    return np.where(rng.random(values.shape) < 0.2, 0.0, values)


def _seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return round(clock() - start, 3)


if __name__ == "__main__":
    main()
