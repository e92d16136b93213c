"""Mamba on a CPU: the fused scan beside transformers' fallback and beside the matrix products alone.

    python -m benchmarks selective_scan

Random weights in the shapes of mamba-130m and mamba2-130m (24 layers × 768, batch 8 × 128 tokens, with the
head of the language model) and of a nano Mamba (128 wide, batch 16 × 256 tokens). One thread, and seconds of
the processor, so that whatever else the machine does blurs no ratio; the best of the rounds counts. Writes
benchmarks/results/selective_scan.json. `python -m benchmarks.selective_scan clock` renews one part alone:
mamba-130m by the clock, on all cores, with the load of the machine beside it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).parent / "results" / "selective_scan.json"
ROUNDS, CLOCK_ROUNDS = 5, 20
BASE: dict[str, int] = {"vocab_size": 50_280, "hidden_size": 768, "num_hidden_layers": 24}
# The fallback's backward pass takes minutes for twelve layers. They are alike: two of them tell the ratio.
NANO: dict[str, int] = {"vocab_size": 4_096, "hidden_size": 128, "num_hidden_layers": 2, "state_size": 16}


def seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def matrix_products(model: Any, ids: Any) -> Callable[[], None]:
    """Every linear map of `model`, on inputs of the sizes it has in a forward pass."""
    import torch

    maps = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    inputs = {m.in_features: torch.randn(*ids.shape, m.in_features) for m in maps}

    def multiply() -> None:
        for linear in maps:
            linear(inputs[linear.in_features])

    return multiply


def first_layer(model: Any, ids: Any) -> Any:
    """The states after one block: deeper, random weights amplify the last bit of a float."""
    return model(ids[:2], use_cache=False, output_hidden_states=True).hidden_states[1]


def forward(name: str, config: Any) -> dict[str, float]:
    """Seconds of a forward pass: fused, by transformers' fallback, and the matrix products alone."""
    import torch
    from transformers import AutoModelForCausalLM

    from thinkalike.systems.mamba.selective_scan import fused_scan

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    ids = torch.randint(0, config.vocab_size, (8, 128))
    multiply = matrix_products(model, ids)
    fused, products = [], []
    with torch.no_grad():
        fallback = seconds(lambda: model(ids, use_cache=False))
        expected = first_layer(model, ids)
        with fused_scan(model):
            difference = float((first_layer(model, ids) - expected).norm() / expected.norm())
            for _ in range(ROUNDS):
                fused.append(seconds(lambda: model(ids, use_cache=False)))
                products.append(seconds(multiply))
    row = {"fused": min(fused), "fallback": fallback, "products": min(products), "difference": difference}
    print(
        f"{name}, forward: {row['fused']:.2f} s; the fallback {fallback / row['fused']:.1f} × as long; "
        f"{row['fused'] / row['products']:.2f} × the matrix products; layer 1 differs by {difference:.0e}",
        flush=True,
    )
    return row


def clock() -> dict[str, float]:
    """Seconds by the clock of a forward pass of mamba-130m on all cores, the three ways taking turns.

    Seconds are of the best round, the ratio is the median of those within a round.
    """
    import torch
    from transformers import AutoModelForCausalLM, MambaConfig

    from thinkalike.systems.mamba.selective_scan import fused_scan

    torch.set_num_threads(os.cpu_count() or 1)
    model = AutoModelForCausalLM.from_config(MambaConfig(**BASE, state_size=16)).eval()
    ids = torch.randint(0, BASE["vocab_size"], (8, 128))
    multiply = matrix_products(model, ids)

    def fused() -> None:
        with fused_scan(model):
            model(ids, use_cache=False)

    works = {"fused": fused, "products": multiply, "fallback": lambda: model(ids, use_cache=False)}
    taken: dict[str, list[float]] = {name: [] for name in works}
    with torch.no_grad():
        fused()  # compiled
        for turn in range(CLOCK_ROUNDS):
            for name, work in works.items():
                if name == "fallback" and turn > 1:
                    continue
                start = time.perf_counter()
                work()
                taken[name].append(time.perf_counter() - start)
    ratios = [ours / alone for ours, alone in zip(taken["fused"], taken["products"], strict=True)]
    row = {
        **{name: min(found) for name, found in taken.items()},
        "fused / products": median(ratios),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
    }
    print(
        f"mamba-130m by the clock, {row['threads']} threads, load {row['load']:.1f}: fused "
        f"{row['fused']:.2f} s, fallback {row['fallback']:.2f} s ({row['fallback'] / row['fused']:.1f} ×), "
        f"matrix products {row['products']:.2f} s ({row['fused / products']:.2f} ×)",
        flush=True,
    )
    return row


def training_step(model: Any, ids: Any, *, enabled: bool) -> tuple[float, float]:
    """Seconds of the forward and of the backward pass."""
    from thinkalike.systems.mamba.selective_scan import fused_scan

    model.zero_grad()
    with fused_scan(model, enabled=enabled):
        start = time.process_time()
        loss = model(ids, labels=ids).loss
        middle = time.process_time()
        loss.backward()
        return middle - start, time.process_time() - middle


def backward() -> dict[str, float]:
    """Seconds of a training step at nano size, fused and by transformers' fallback."""
    import torch
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(0)
    model = MambaForCausalLM(MambaConfig(**NANO)).train()
    ids = torch.randint(0, NANO["vocab_size"], (16, 256))
    training_step(model, ids, enabled=True)  # compiled
    steps = [training_step(model, ids, enabled=True) for _ in range(ROUNDS)]
    slow_forward, slow_backward = training_step(model, ids, enabled=False)
    row = {
        "fused_forward": min(step[0] for step in steps),
        "fused_backward": min(step[1] for step in steps),
        "fallback_forward": slow_forward,
        "fallback_backward": slow_backward,
    }
    print(
        f"nano, 2 layers: forward {row['fused_forward']:.3f} s, backward {row['fused_backward']:.3f} s; "
        f"the fallback {slow_forward / row['fused_forward']:.0f} × and "
        f"{slow_backward / row['fused_backward']:.0f} × as long",
        flush=True,
    )
    return row


def main(*names: str) -> None:
    import torch
    from transformers import Mamba2Config, MambaConfig
    from transformers.utils import logging

    logging.set_verbosity_error()  # the fallback announces itself
    mamba2 = {"state_size": 128, "num_heads": 24, "head_dim": 64, "n_groups": 1}
    parts: dict[str, Callable[[], dict[str, float]]] = {
        "mamba-130m": lambda: forward("mamba-130m", MambaConfig(**BASE, state_size=16)),
        "mamba2-130m": lambda: forward("mamba2-130m", Mamba2Config(**BASE, **mamba2)),
        "nano": backward,
        "clock": clock,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or parts:
        torch.set_num_threads(1)
        results[name] = parts[name]()
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
