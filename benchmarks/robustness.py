"""Robustness of three bundled models on 200 sentences, texts read anew for each way of reading.

The grid has 25 analyses; here 24, for no bundled model has a beginning-of-sequence token that it leaves out.

Goal: 60 s of two cores. `python -m benchmarks robustness` writes benchmarks/results/robustness.json, with the
load of the machine before the run: on a busy one the time on the wall says little, the processor's more.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import warnings
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "robustness.json"


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["THINKALIKE_CACHE"] = cache  # nothing is there from earlier runs
        _run()


def _run() -> None:
    import thinkalike as ta
    from thinkalike.comparison.cautions import CautionWarning
    from thinkalike.parallel import cores

    warnings.simplefilter("ignore", CautionWarning)
    stimuli, others = (ta.Stimuli.from_grammar(200, seed=seed) for seed in (0, 1))
    made = ta.compare(["nano-bert", "nano-gpt2", "nano-mamba"], stimuli, resamples=0)
    load = os.getloadavg()[0]
    wall, cpu = time.perf_counter(), time.process_time()
    found = made.robustness(others=others)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{found}: {wall:.0f} s on {cores()} cores, {cpu:.0f} s of processor time")
    print(found.answer)
    result = {
        "analyses": len(found.analyses),
        "left out": dict(found.left_out),
        "seconds": round(wall, 1),
        "processor seconds": round(cpu, 1),
        "cores": cores(),
        "load before": round(load, 1),
        "answer": found.answer,
    }
    RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
