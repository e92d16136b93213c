"""Populations: size of a fingerprint, error of its sketch, and time for 1,000 and 100,000 models.

Goals: at most 20 kB a layer; RSA and CKA within 0.02 in 95 % of pairs of layers; of 1,000 models with 24
layers the nearest in 1 s and all against all in 60 s on two cores, so 120 s of processor; the nearest of
100,000 in 2 s. These are
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
from functools import partial
from pathlib import Path

import numpy as np

from thinkalike.files import packed_arrays, with_seal

RESULTS = Path(__file__).parent / "results" / "populations.json"
LAYERS, MODELS, MANY = 24, 1_000, 100_000
GROWTH = (100, 200, 500, MODELS)
CANDIDATES = 60
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
        found = similarity_of(fingerprints, measure=measure)
        cells = np.triu_indices(len(exact), k=1)
        off = np.abs(found.values - exact)[cells]
        assert found.low is not None
        assert found.high is not None
        held = ((found.low <= exact) & (exact <= found.high))[cells]
        within = round(float(np.quantile(off, 0.95)), 4)
        result[f"{measure}: 95 % of {len(off)} pairs of layers within"] = within
        result[f"{measure}: share within 0.02"] = round(float((off <= 0.02).mean()), 3)
        result[f"{measure}: share of ranges that hold the exact value"] = round(float(held.mean()), 3)
    return result


def times() -> dict[str, float]:
    """By the processor, both threads together: a busy machine makes the clock say little."""
    from thinkalike.populations.mean_tau import mean_tau_matrix

    rng = np.random.default_rng(0)
    drawn = [_importances(rng) for _ in range(MODELS)]
    mean_tau_matrix(drawn[:3])  # compile
    mean_tau_matrix(drawn[:1], drawn[:2])
    result = {}
    for n in GROWTH:
        result[f"all of {n:,} against all (processor s)"] = _seconds(partial(mean_tau_matrix, drawn[:n]))
    result[f"one against all of {MODELS:,}, exact (processor s)"] = _seconds(
        lambda: mean_tau_matrix(drawn[:1], drawn)
    )
    return {**result, **searches(rng, drawn)}


def searches(rng: np.random.Generator, drawn: list[np.ndarray]) -> dict[str, float]:
    """The nearest of 100,000, whose index is written and of whom the candidates have files; adding one."""
    import thinkalike as ta
    from thinkalike.populations.atlas_store import INDEX
    from thinkalike.populations.mean_tau import compact

    result = {}
    with tempfile.TemporaryDirectory() as folder:
        atlas, pattern = ta.Atlas(folder), ta.Atlas()["nano-mamba"]
        for k in range(CANDIDATES):
            atlas.add(replace(pattern, profile=replace(pattern.profile, system=f"model {k}")))
        names, vectors = atlas._index()
        far = np.stack([compact(one) for one in drawn])
        many = np.concatenate([far] * (MANY // len(far)))[: MANY - len(names)]
        many = 0.5 * many + 1e-3 * rng.normal(size=many.shape).astype(np.float32)
        others = [f"other {k}" for k in range(len(many))]
        kept = atlas._kept
        assert kept is not None
        files = {**kept.files, **dict.fromkeys((f"{name}.npz" for name in others), "0 0")}
        about = {"names": [*names, *others], "files": files, "stamp": kept.stamp}
        arrays = {"vectors": np.concatenate([vectors, many.astype(np.float32)])}
        place = f"{atlas.store.root}/words-1{INDEX}"
        atlas.store.write(place, with_seal(packed_arrays(arrays, about=about), last=True))
        result[f"index of {MANY:,} (MB)"] = round(Path(place).stat().st_size / 1e6, 1)
        opened = ta.Atlas(folder)
        label = f"nearest of {MANY:,}, {CANDIDATES} of 13 layers read"
        result[f"{label}, atlas just opened (processor s)"] = _seconds(lambda: opened.nearest("model 0"))
        result[f"{label}, again (processor s)"] = _seconds(lambda: opened.nearest("model 0"))
    with tempfile.TemporaryDirectory() as folder:
        atlas = ta.Atlas(folder)
        for k in range(100):
            atlas.add(replace(pattern, profile=replace(pattern.profile, system=f"model {k}")))
        atlas.nearest("model 0")
        atlas.add(replace(pattern, profile=replace(pattern.profile, system="one more")))
        opened = ta.Atlas(folder)
        result["names after one more of 100, from files (processor s)"] = _seconds(lambda: opened.names)
    return result


def _importances(rng: np.random.Generator) -> np.ndarray:
    """24 layers × 8 features, some of them exactly 0, as real ones are."""
    values = rng.gamma(0.7, size=(LAYERS, 8)) * rng.gamma(0.7, size=8)
    return np.where(rng.random(values.shape) < 0.2, 0.0, values)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return round(time.process_time() - start, 3)


if __name__ == "__main__":
    main()
