"""Making sentences and correlating their features, as the number of sentences grows.

    python -m benchmarks.stimuli

Each size runs in a process of its own, so that its peak memory is its own; `idle` is a process that only
imports. The last lines put the correlations beside `numpy.corrcoef` on materialised pairs.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

SIZES = (1_250, 5_000, 20_000)
PAIR_SIZES = (250, 500, 1_000)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def peak_megabytes() -> float:
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def one_size(n_sentences: int) -> None:
    """Print one row of the table."""
    from thinkalike.stimuli import Stimuli

    if n_sentences == 0:
        print(f"{'idle':>9} {'':>8} {'':>14} {'':>8} {'':>9} {'':>12} {peak_megabytes():>8.0f}")
        return
    stimuli, making = timed(lambda: Stimuli.from_grammar(n_sentences, seed=0, grammar="salle2024"))
    _, digesting = timed(lambda: stimuli.digest)
    correlations, correlating = timed(stimuli.correlations)
    counts = f"{n_sentences:>9,} {len(stimuli):>8,} {correlations.n_pairs:>14,}"
    print(counts, f"{making:>8.2f} {digesting:>9.2f} {correlating:>12.3f} {peak_megabytes():>8.0f}")


def against_pairs(n_sentences: int) -> None:
    import numpy as np

    from thinkalike.stimuli import Stimuli
    from thinkalike.stimuli.feature_coding import code_features

    stimuli = Stimuli.from_grammar(n_sentences, seed=0, grammar="salle2024")
    exact, fast = timed(stimuli.correlations)

    def materialised() -> np.ndarray:
        coded = code_features(stimuli.features)
        i, j = np.triu_indices(len(stimuli), 1)
        return np.corrcoef([feature.squared_differences(i, j) for feature in coded.features])

    expected, slow = timed(materialised)
    error = np.abs(exact.values - expected).max()
    counts = f"{n_sentences:>9,} {len(stimuli):>8,} {exact.n_pairs:>14,}"
    print(counts, f"{fast:>10.3f} {slow:>10.3f} {error:>12.1e}")


def main() -> None:
    print("sentences    words          pairs   make s  digest s  correlate s  peak MB")
    for size in (0, *SIZES):
        subprocess.run([sys.executable, "-m", "benchmarks.stimuli", str(size)], check=True)
    print("\nsentences    words          pairs    tables s    pairs s  largest difference")
    for size in PAIR_SIZES:
        against_pairs(size)


if __name__ == "__main__":
    one_size(int(sys.argv[1])) if len(sys.argv) > 1 else main()
