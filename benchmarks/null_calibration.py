"""Null calibration of all layers × all layers, beside the package `calibrated-similarity`.

    python -m benchmarks null_calibration

13 × 25 layers, 1,000 items, 200 permutations. Its side is measured on some permutations and scaled up to all:
every permutation costs it the same, one call of the measure for every pair of layers with all items
(tests/inference/test_null_calibration.py counts them). Both get the same permutations, and the numbers are
compared.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import calibrated_similarity
import numpy as np
import torch

from thinkalike.inference.null_calibration import calibrate, null_values, sentence_orders

LAYERS, ITEMS, UNITS, PERMUTATIONS = (13, 25), 1000, 768, 200
PART = 20
"""Permutations that the other side is measured on"""
RESULTS = Path(__file__).parent / "results" / "null_calibration.json"


def systems(seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(ITEMS, 8))
    made = [
        [
            (shared @ rng.normal(size=(8, UNITS)) * 0.1 * k / depth + rng.normal(size=(ITEMS, UNITS))).astype(
                np.float32
            )
            for k in range(depth)
        ]
        for depth in LAYERS
    ]
    return made[0], made[1]


def cka(X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
    """Linear CKA as the package's own example has it."""
    X, Y = X - X.mean(dim=0), Y - Y.mean(dim=0)
    return (X.T @ Y).norm() ** 2 / ((X.T @ X).norm() * (Y.T @ Y).norm())


def main() -> None:
    torch.set_num_threads(1)
    a, b = systems()
    orders = sentence_orders(None, ITEMS, n=PERMUTATIONS)
    null_values("cka-biased", a[:1], b[:1], orders[:1])  # compiles
    start = time.process_time()
    observed, null = null_values("cka-biased", a, b, orders)
    ours = time.process_time() - start
    drawn = iter(orders[:PART])
    start = time.process_time()
    theirs = calibrated_similarity.calibrate_layers(
        [torch.from_numpy(x) for x in a],
        [torch.from_numpy(y) for y in b],
        cka,
        agg="max",
        K=PART,
        perm_fn=lambda n, device: torch.from_numpy(next(drawn)),
    )
    part = time.process_time() - start
    found = calibrate(observed.max(), null[:PART].max(axis=(1, 2)))
    gaps = [
        abs(float(x) - float(y)) for x, y in zip(theirs, (found.score, found.p, found.threshold), strict=True)
    ]
    scaled = part * (PERMUTATIONS + 1) / (PART + 1)
    result = {
        "layers": LAYERS,
        "items": ITEMS,
        "units": UNITS,
        "permutations": PERMUTATIONS,
        "our processor seconds": round(ours, 2),
        "their processor seconds": round(scaled, 1),
        "theirs were measured on permutations": PART,
        "ratio": round(scaled / ours, 1),
        "largest gap of score, p and threshold": max(gaps),
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
