"""Stitching beside the bare blocks: a step of the fit by task loss, and least squares.

    python -m benchmarks.stitching

Two random decoders of the size of nano-gelu-3l and nano-solu-3l (3 layers × 128, 4,096 tokens). A step of all
four stitches of equal depth (φ, loss, backward pass, optimiser) is timed beside the same blocks called by
hand: the bottom's once, the top's after each layer forward and backward, with no φ and no hooks. Least
squares, all moments of all four, beside the forward passes of the two models. Every round times all in turn,
so that whatever else the machine does falls on all of them; the best of the rounds counts. One thread. Writes
benchmarks/results/stitching.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS, STEPS, ROWS, LENGTH = 5, 3, 4, 256
RESULTS = Path(__file__).parent / "results" / "stitching.json"
ALLOWED = 1.3


def decoder(activation: str, seed: int) -> Any:
    import torch

    from thinkalike.systems.bundled.solu import NanoDecoderConfig, NanoDecoderForCausalLM

    torch.manual_seed(seed)
    return NanoDecoderForCausalLM(NanoDecoderConfig(activation=activation)).eval()


def make_job() -> tuple[Any, Any]:
    """The four stitches of equal depth, and some random tokens."""
    import numpy as np

    from thinkalike.stitching.examples import Examples
    from thinkalike.stitching.job import Job
    from thinkalike.stitching.stitches import all_stitches
    from thinkalike.systems.batch import Batch
    from thinkalike.systems.system import open_system

    bottom, top = (
        open_system(decoder(name, seed), tokenizer="none", name=name, head="own")
        for seed, name in enumerate(("gelu", "solu"))
    )
    stitches = all_stitches([(k, k) for k in range(4)], floor=False, ceiling=False)
    ids = np.random.default_rng(0).integers(5, 4096, (8 * ROWS, LENGTH))
    targets = np.roll(ids, -1, axis=1)
    targets[:, -1] = -100
    examples = Examples(Batch(ids, np.ones(ids.shape, dtype=bool)), targets, np.zeros_like(ids))
    return Job({"pair": bottom}, top, stitches), examples


def bare_step(job: Any, batch: Any) -> None:
    """The blocks alone, and the loss."""
    import torch
    from torch.nn.functional import cross_entropy

    bottom, top = job.bottoms["pair"].model, job.top.model
    ids, states = torch.from_numpy(batch.tokens.ids), []
    positions = torch.arange(ids.shape[1])[None]
    with torch.no_grad():
        x = bottom.model.embed_tokens(ids) + bottom.model.embed_positions(positions)
        states.append(x)
        for block in bottom.model.layers:
            states.append(x := block(x, None))
    for layer, state in enumerate(states):
        y = start = state.clone().requires_grad_()
        for block in top.model.layers[layer:]:
            y = block(y, None)
        logits = top.lm_head(top.model.norm(y))
        cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=-100).backward()
        assert start.grad is not None


def full_step(job: Any, batch: Any, trainings: Any, how: Any) -> None:
    from thinkalike.stitching.evaluation import mean_loss
    from thinkalike.systems.calling import top_logits

    states = job.states(batch)
    for stitch, one in trainings.items():
        mapped = one.phi(states[stitch.role, stitch.layer_bottom])
        logits = top_logits(job.top.model, job.top.stack, stitch.layer_top, mapped, batch.tokens)
        one.update(mean_loss(logits, batch), 0, how, 10.0)


def two_passes(job: Any, examples: Any) -> None:
    import torch

    from thinkalike.systems.calling import arguments

    with torch.no_grad():
        for batch in job.batches(examples, ROWS * LENGTH):
            for system in (job.bottoms["pair"], job.top):
                system.stack.model(**arguments(system.stack, batch.tokens))


def best_times(ways: dict[str, Callable[[], None]]) -> dict[str, float]:
    """The least processor time of each over all rounds, in seconds."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for _ in range(ROUNDS):
        for name, way in ways.items():
            begin = time.process_time()
            way()
            found[name].append(time.process_time() - begin)
    return {name: min(times) for name, times in found.items()}


def measure() -> dict[str, Any]:
    from thinkalike.stitching.gathering import gather
    from thinkalike.stitching.phi import identity_start
    from thinkalike.stitching.task import TaskFit, Training
    from thinkalike.systems.calling import frozen

    job, examples = make_job()
    how = TaskFit()
    batch = examples.batch(range(ROWS))
    with frozen(*job.models):
        trainings = {
            stitch: Training.begin(identity_start("affine", (128, 128), ("", "")), how)
            for stitch in job.stitches
        }
        step = best_times(
            {
                "bare": lambda: [bare_step(job, batch) for _ in range(STEPS)] and None,
                "stitched": lambda: [full_step(job, batch, trainings, how) for _ in range(STEPS)] and None,
            }
        )
        squares = best_times(
            {
                "two forward passes": lambda: two_passes(job, examples),
                "least squares": lambda: (
                    gather(job, examples, kind="affine", tokens_at_once=ROWS * LENGTH) and None
                ),
            }
        )
    return {
        "tokens of a step": ROWS * LENGTH,
        "seconds of a step of four stitches": {name: value / STEPS for name, value in step.items()},
        "ratio of a step": step["stitched"] / step["bare"],
        "tokens of least squares": examples.n_tokens,
        "seconds of least squares": squares,
        "ratio of least squares": squares["least squares"] / squares["two forward passes"],
        "allowed": ALLOWED,
        "milliseconds of one φ, step by step": 1000 * step["stitched"] / STEPS / len(job.stitches),
    }


def main() -> None:
    import torch

    from thinkalike.provenance import versions

    torch.set_num_threads(1)
    found = {**measure(), "threads": 1, "clock": "processor time", "versions": versions()}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
