"""Populations: size of a fingerprint, error of its sketch, and time for 1,000 and 100,000 models.

Goals: at most 20 kB a layer; RSA and CKA within 0.02 in 95 % of pairs of layers; of 1,000 models with 24
layers the nearest in 1 s and all against all in 60 s on two cores, so 120 s of processor; the nearest of
100,000 in 2 s; the page of 200 models open in 2 s. These are synthetic: their importances are drawn, and for
the nearest of 100,000 only the candidates' files are written.
`python -m benchmarks populations` writes benchmarks/results/populations.json, with the load of the machine;
`python -m benchmarks.populations sizes errors times page` some of it, and what is there of the rest stays.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from thinkalike.files import packed_arrays, with_seal
from thinkalike.populations import Fingerprint

RESULTS = Path(__file__).parent / "results" / "populations.json"
LAYERS, MODELS, MANY = 24, 1_000, 100_000
GROWTH = (100, 200, 500, MODELS)
CANDIDATES = 60
ERRORS_OF = ("nano-bert", "nano-gpt2", "nano-pythia-160", "nano-mamba", "nano-solu-4l")
PAGE_MODELS = 200


def main(parts: Sequence[str] = ()) -> None:
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for part in parts or PARTS:
        found = {"load": round(os.getloadavg()[0], 1), **PARTS[part]()}
        for name, value in found.items():
            print(f"{part}: {name}: {value}", flush=True)
        known[part] = found
        text = json.dumps(
            {name: known[name] for name in PARTS if name in known}, indent=1, ensure_ascii=False
        )
        RESULTS.write_text(text + "\n", encoding="utf-8")


def sizes() -> dict[str, float]:
    """The largest of the bundled models, and layers of noise, which nothing packs."""
    import thinkalike as ta
    from thinkalike.populations import reference
    from thinkalike.populations.fingerprint_files import fingerprint_bytes

    result = {}
    for stimuli in ("words-1", "sentences-1"):
        every = ta.Atlas(stimuli=stimuli).fingerprints()
        largest = max(len(fingerprint_bytes(one)) / len(one.layers) for one in every)
        result[f"largest kB a layer, {stimuli}"] = round(largest / 1000, 1)
        rng, n_items = np.random.default_rng(0), len(reference(stimuli))
        for n_layers in (1, 2, 3):
            noise = {k: rng.normal(size=(n_items, 12)) for k in range(1, n_layers + 1)}
            made = replace(ta.fingerprint(noise, stimuli, name="noise"), facts=every[0].facts)
            size = len(fingerprint_bytes(made)) / n_layers / 1000
            result[f"kB a layer of {n_layers} of noise, {stimuli}"] = round(size, 2)
    return result


def errors() -> dict[str, float]:
    """How far sketches are from the exact values, over all pairs of layers of five bundled models."""
    import thinkalike as ta
    from thinkalike.populations import reference
    from thinkalike.populations.fingerprint_record import similarity_of
    from thinkalike.populations.fingerprinting import telling

    result: dict[str, float] = {}
    for stimuli in ("words-1", "sentences-1"):
        shown = reference(stimuli)
        activations = [telling(ta.extract(name, shown), stimuli) for name in ERRORS_OF]
        fingerprints = ta.Atlas(stimuli=stimuli).fingerprints(ERRORS_OF)
        for measure in ("rsa", "cka"):
            exact = ta.similarity(activations, measure=measure, stimuli=shown, n_permutations=0).values
            found = similarity_of(fingerprints, measure=measure)
            cells = np.triu_indices(len(exact), k=1)
            off = np.abs(found.values - exact)[cells]
            assert found.low is not None
            assert found.high is not None
            held = ((found.low <= exact) & (exact <= found.high))[cells]
            name = f"{measure} on {stimuli}"
            within = round(float(np.quantile(off, 0.95)), 4)
            result[f"{name}: 95 % of {len(off)} pairs of layers within"] = within
            result[f"{name}: share within 0.02"] = round(float((off <= 0.02).mean()), 3)
            result[f"{name}: share of ranges that hold the exact value"] = round(float(held.mean()), 3)
    return result


def times() -> dict[str, float]:
    """By the processor, both threads together: a busy machine makes the clock say little."""
    from thinkalike.populations.between_models import mean_tau_matrix

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
    from thinkalike.populations.between_models import compact

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
        place = atlas.store.index("words-1")
        atlas.store.write(place, with_seal(packed_arrays(arrays, about=about), last=True))
        result[f"index of {MANY:,} (MB)"] = round(place.stat().st_size / 1e6, 1)
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


def page() -> dict[str, object]:
    """The page of 200 models of 24 layers in a browser, as `benchmarks.pages` measures those of runs."""
    import thinkalike as ta
    from benchmarks.pages import measure
    from thinkalike.report.population_page import write_population

    rng, pattern = np.random.default_rng(0), ta.Atlas()["nano-mamba"]
    models = [_model(rng, pattern, k) for k in range(PAGE_MODELS)]
    with tempfile.TemporaryDirectory() as folder:
        path = write_population(models, Path(folder) / "atlas.html", n_draws=5, n_permutations=19)
        return {f"{PAGE_MODELS} models: {name}": value for name, value in measure(path).items()}


def _model(rng: np.random.Generator, pattern: Fingerprint, k: int) -> Fingerprint:
    """A model of 24 layers with importances of its own, all else as in `pattern`."""
    made = pattern.profile.replicates
    assert made is not None
    importance = _importances(rng)[:, None] * rng.uniform(0.8, 1.2, size=(1, 5, 1))
    parts = importance.mean(axis=1) * rng.normal(1, 0.05, size=(len(made.importance), LAYERS, 1))
    profile = replace(
        pattern.profile,
        system=f"family-{k % 9}/model-{k}",
        layers=tuple(range(LAYERS)),
        importance=importance,
        scores=np.full(importance.shape[:2], 0.5),
        strengths=None,
        replicates=replace(
            made,
            importance=parts,
            scores=np.full(parts.shape[:2], 0.5),
            halves=np.repeat(made.halves[:, :, :1], LAYERS, axis=2),
        ),
    )
    facts = {"family": f"family-{k % 9}", "depth": int(rng.integers(2, 40)), "width": float(rng.gamma(2))}
    return replace(pattern, profile=profile, facts=facts)


def _importances(rng: np.random.Generator) -> np.ndarray:
    """24 layers × 8 features, some of them exactly 0, as real ones are."""
    values = rng.gamma(0.7, size=(LAYERS, 8)) * rng.gamma(0.7, size=8)
    return np.where(rng.random(values.shape) < 0.2, 0.0, values)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return round(time.process_time() - start, 3)


PARTS: dict[str, Callable[[], Mapping[str, object]]] = {
    "sizes": sizes,
    "errors": errors,
    "times": times,
    "page": page,
}

if __name__ == "__main__":
    main(sys.argv[1:])
