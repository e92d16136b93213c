"""What the inside of a layer costs: all heads beside the residual stream, and their profiles beside layers.

    python -m benchmarks.inside [extraction | profiles | latents]...

A random GPT-2 of the usual size (12 blocks × 12 heads × 64) reads short sentences. Every round times both in
turn, by the clock and by the time of the processor; seconds are of the best round, ratios the median of those
within a round. Writes benchmarks/results/inside.json.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.activations import model, seconds, sentences, tokenizer, words

N_SENTENCES, ROUNDS = 48, 3
RESULTS = Path(__file__).parent / "results" / "inside.json"


def compared(first: Any, second: Any, rounds: int = ROUNDS) -> dict[str, float]:
    """Seconds of the processor of two ways, and how many times the first the second takes."""
    first(), second()  # compiled, and read once
    times = [(seconds(first), seconds(second)) for _ in range(rounds)]
    return {
        "first, seconds": round(min(a[1] for a, _ in times), 2),
        "second, seconds": round(min(b[1] for _, b in times), 2),
        "ratio, processor": round(median(b[1] / a[1] for a, b in times), 3),
        "ratio, clock": round(median(b[0] / a[0] for a, b in times), 3),
    }


def extraction() -> dict[str, float]:
    """The residual stream to disk, and all 144 heads to disk."""
    import thinkalike as ta

    network, reader, stimuli = model(), tokenizer(), words(sentences(N_SENTENCES))
    folder = tempfile.TemporaryDirectory()
    places = iter(range(1000))

    def at(site: str) -> Any:
        return lambda: ta.extract(
            network, stimuli, processor=reader, site=site, out=f"{folder.name}/{next(places)}.zarr"
        )

    return compared(at("residual"), at("heads"))


def profiles() -> dict[str, float]:
    """As many plain layers of 64 units, and the 144 heads of a store; beside them the reading of the model,
    and its 13 layers of 768."""
    import thinkalike as ta
    from thinkalike.systems import bundled

    stimuli = ta.Stimuli.from_grammar(n_sentences=60, seed=0)
    rng = np.random.default_rng(0)
    network, reader = model(), bundled.load("nano-gpt2")[1]
    with tempfile.TemporaryDirectory() as folder:
        places = (f"{folder}/heads{k}.zarr" for k in range(ROUNDS + 1))

        def read() -> Any:
            return ta.extract(network, stimuli, processor=reader, site="heads", out=next(places))

        heads = read()
        n = len(heads.layers)
        assert n == 144
        plain = {k: rng.normal(size=(len(stimuli), 64)).astype(np.float32) for k in range(n)}
        layers = ta.Activations.from_arrays(plain, system="layers", stimuli=stimuli)
        found = compared(lambda: ta.profile(layers, stimuli), lambda: ta.profile(heads, stimuli))
        whole = ta.extract(network, stimuli, processor=reader, out=f"{folder}/stream.zarr")
        ta.profile(whole, stimuli)
        stream = min(seconds(lambda: ta.profile(whole, stimuli))[1] for _ in range(ROUNDS))
        reading = min(seconds(read)[1] for _ in range(ROUNDS))
    found |= {
        "reading the 144 heads, seconds": round(reading, 2),
        "13 layers of 768 units, seconds": round(stream, 2),
        "144 heads in the time of so many layers": round(13 * found["second, seconds"] / stream, 1),
    }
    return found


def latents() -> dict[str, float]:
    """16,384 latents of which 50 are active: what is held at most, and what is kept, beside a dense copy."""
    import tracemalloc

    import thinkalike as ta
    from thinkalike.activations.autoencoders import SparseAutoencoder

    rng = np.random.default_rng(0)
    n, units, many, active = 4_000, 768, 16_384, 50
    acts = ta.Activations.from_arrays({1: rng.normal(size=(n, units)).astype(np.float32)}, system="stream")
    sae = SparseAutoencoder(
        rng.normal(size=(units, many)).astype(np.float32),
        np.zeros(many, np.float32),
        np.zeros(units, np.float32),
        k=active,
    )
    tracemalloc.start()
    found = ta.latents(acts, sae, layer=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    kept = found.values.data.nbytes + found.values.indices.nbytes + found.values.indptr.nbytes
    dense = n * many * 4
    return {
        "dense, MB": round(dense / 1e6, 1),
        "held at most, MB": round(peak / 1e6, 1),
        "kept, MB": round(kept / 1e6, 1),
        "held at most ÷ dense": round(peak / dense, 3),
    }


def main() -> None:
    result: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    parts = {
        "extraction: residual, heads": extraction,
        "profiles: 144 layers of 64, 144 heads": profiles,
        "latents: 4,000 items × 16,384": latents,
    }
    asked = sys.argv[1:]
    for name, part in parts.items():
        if asked and part.__name__ not in asked:
            continue
        load = round(os.getloadavg()[0], 1)
        result[name] = {**part(), "load of the machine": load}
        print(json.dumps({name: result[name]}), flush=True)
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
