"""Plans against what came: processor time, memory and disk of runs of the bundled models.

Goal: within a factor of two. `python -m benchmarks plan` writes benchmarks/results/plan.json. Each job has a
process of its own, in which a small one of the same kind loads libraries and machine code before anything is
timed, and is planned and done twice back to back. Times are of the processor, of all threads, so that a busy
machine matters little; `guess` is the plan that a comparison makes at its start, from configurations alone.
Memory is the peak of the process, libraries and the plan itself included.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "plan.json"
ROUNDS = 2
TWO, THREE = ["nano-bert", "nano-gpt2"], ["nano-bert", "nano-gpt2", "nano-mamba"]
ARRAYS = "arrays"
OVER_TEXT = ("cka", "stitch")
JOBS: dict[str, tuple[str, list[str], int, dict[str, object]]] = {
    "two models, 50 sentences": ("compare", TWO, 50, {}),
    "three models, 200 sentences": ("compare", THREE, 200, {}),
    "three models, 200 sentences, no resamples": ("compare", THREE, 200, {"resamples": 0}),
    "two pythias, 300 sentences, also CKA": (
        "compare",
        ["nano-pythia-64", "nano-pythia-160"],
        300,
        {"measures": "cka"},
    ),
    "profile of mamba, 300 sentences, 20 resamples": ("profile", ["nano-mamba"], 300, {"resamples": 20}),
    "profile of a decoder, 800 sentences": ("profile", ["nano-gelu-4l"], 800, {}),
    "reading bert, 1,500 sentences": ("extract", ["nano-bert"], 1500, {}),
    "CKA of two decoders, 60 batches": (
        "cka",
        ["nano-gelu-3l", "nano-solu-3l"],
        6000,
        {"max_batches": 60, "length": 64},
    ),
    "stitching two decoders, 60,000 tokens": (
        "stitch",
        ["nano-gelu-3l", "nano-solu-3l"],
        6000,
        {"max_tokens": 60_000, "length": 64, "layers": [1, 2]},
    ),
    "arrays, 2 × 20 layers × 256 units, 150 sentences": ("compare", [ARRAYS], 150, {}),
}


def job(name: str) -> None:
    """Plan it, do it, and print both."""
    warnings.simplefilter("ignore")
    work, models, n_sentences, options = JOBS[name]
    stimuli, small = _shown(work, n_sentences), _shown(work, 400 if work in OVER_TEXT else 12)
    systems: object = models
    if models == [ARRAYS]:
        rng = np.random.default_rng(0)
        systems = {
            one: {k: rng.standard_normal((len(stimuli), 256), dtype=np.float32) for k in range(20)}
            for one in ("a", "b")
        }
    with tempfile.TemporaryDirectory() as folder:  # loads what is loaded once
        few = models if models != [ARRAYS] else ["nano-gelu-3l", "nano-solu-3l"]
        _run(work, few, small, Path(folder, "out") if work in ("compare", "extract") else None, options)
    for _ in range(ROUNDS):
        print(json.dumps(_round(work, systems, stimuli, options)))


def _shown(work: str, n_sentences: int):  # type: ignore[no-untyped-def]
    import thinkalike as ta

    if work in OVER_TEXT:
        return [
            f"The king of {k} lands went home, and {7 * k} queens saw the sea." for k in range(n_sentences)
        ]
    return ta.Stimuli.from_grammar(n_sentences, seed=0)


def _round(work: str, systems, stimuli, options) -> dict[str, object]:  # type: ignore[no-untyped-def]
    import thinkalike as ta
    from thinkalike.activations.conversion import as_activations, named_systems
    from thinkalike.comparison import planning

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out") if work in ("compare", "extract") else None
        planned = ta.plan(systems, stimuli, work=work, out=out, **options)
        guess = None
        if work == "compare":
            named = {k: as_activations(one, k) for k, one in named_systems(systems).items()}  # type: ignore[arg-type]
            sizes = [
                planning.size_of(one) or planning.guessed_reading(k, str(one), stimuli, {})
                for k, one in named.items()
            ]
            resamples = options.get("resamples", 20)
            made = planning.plan_profiles(stimuli, resamples=resamples)  # type: ignore[arg-type]
            compared = planning.Compared(null=None if resamples else 0)
            guess = planning.look_ahead(sizes, stimuli, made, compared, out=out).processor_seconds
        start = time.process_time()
        _run(work, systems, stimuli, out, options)
        taken = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        written = 0 if out is None else sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    return {
        "planned s": planned.processor_seconds,
        "guess s": guess,
        "measured s": taken,
        "planned MB": planned.memory / 1e6,
        "measured MB": peak / 1e6,
        "planned disk MB": planned.disk / 1e6,
        "measured disk MB": written / 1e6,
        "steps": {step.name: step.seconds for step in planned.steps},
    }


def _run(work: str, systems, stimuli, out, options) -> None:  # type: ignore[no-untyped-def]
    import thinkalike as ta

    if work == "compare":
        ta.compare(systems, stimuli, out=out, **options)
    elif work == "extract":
        ta.extract(systems[0], stimuli, out=out)
    elif work == "cka":
        ta.stream_cka(systems, stimuli, **options)
    elif work == "stitch":
        ta.stitch(*systems, stimuli, **options)
    else:
        ta.profile(ta.extract(systems[0], stimuli, cache=False), stimuli, **options)


def main(*names: str) -> None:
    from thinkalike.machine import kernels_directory

    rows = {}
    for name in names or JOBS:
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "THINKALIKE_CACHE": cache}
            environment.setdefault("NUMBA_CACHE_DIR", kernels_directory())
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.plan", "--one", name],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode:
            print(name, "failed:", done.stderr[-300:], flush=True)
            continue
        rounds = [json.loads(line) for line in done.stdout.splitlines()[-ROUNDS:]]
        found = rounds[0]
        row = {k: round(v, 2) if isinstance(v, float) else v for k, v in found.items()}
        row["planned ÷ measured"] = [round(one["planned s"] / one["measured s"], 2) for one in rounds]
        if found["guess s"] is not None:
            row["guess ÷ measured"] = [round(one["guess s"] / one["measured s"], 2) for one in rounds]
        row["memory, planned ÷ measured"] = round(found["planned MB"] / found["measured MB"], 2)
        row["load"] = round(os.getloadavg()[0], 1)
        rows[name] = row
        print(f"{name}: {row}", flush=True)
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and names else {}
        RESULTS.write_text(json.dumps({**kept, **rows}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        job(sys.argv[2])
    else:
        main(*sys.argv[1:])
