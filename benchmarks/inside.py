"""What the inside of a layer costs: all heads beside the residual stream, and their profiles beside layers.

    python -m benchmarks.inside

A random GPT-2 of the usual size (12 blocks × 12 heads × 64) reads short sentences. Every round times both in
turn, by the clock and by the time of the processor; seconds are of the best round, ratios the median of those
within a round. Writes benchmarks/results/inside.json.
"""

from __future__ import annotations

import json
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
    """As many plain layers of 64 units, and the heads of a store."""
    import thinkalike as ta

    stimuli = ta.Stimuli.from_grammar(n_sentences=60, seed=0)
    rng = np.random.default_rng(0)
    n = 36
    plain = {k: rng.normal(size=(len(stimuli), 64)).astype(np.float32) for k in range(n)}
    layers = ta.Activations.from_arrays(plain, system="layers", stimuli=stimuli)
    network, reader = model(n_layers=3), tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        heads = ta.extract(network, stimuli, processor=reader, site="heads", out=f"{folder}/heads.zarr")
        assert len(heads.layers) == n
        found = compared(lambda: ta.profile(layers, stimuli), lambda: ta.profile(heads, stimuli))
    wide = {k: rng.normal(size=(len(stimuli), 768)).astype(np.float32) for k in range(3)}
    three = ta.Activations.from_arrays(wide, system="wide", stimuli=stimuli)
    found |= {
        "three layers of 768 units, seconds": round(
            min(seconds(lambda: ta.profile(three, stimuli))[1] for _ in range(ROUNDS)), 2
        )
    }
    return found


def main() -> None:
    result = {"extraction: residual, heads": extraction(), "profiles: 36 layers of 64, 36 heads": profiles()}
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
