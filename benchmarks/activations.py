"""Extraction beside the forward passes alone, beside one text at a time, and its memory.

    python -m benchmarks.activations [memory | speed | busy]...

A random GPT-2 of the usual size (12 layers × 768) reads 512 short sentences of mixed length. Every round
times all ways in turn, by the clock and by the time of the processor, so that whatever else the machine does
falls on all of them; seconds are of the best round, ratios the median of those within a round. Memory is the
peak of a process of its own, for more and more stimuli. `busy` reads a bundled model beside other processes,
with threads that wait asleep, as ours do, or turning, as OpenMP's do by default.
Writes benchmarks/results/activations.json.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

N_SENTENCES, ROUNDS = 512, 7
BARE = "bare forward, the same batches"
CLOSE = ("extraction to disk", "extraction in memory", BARE)  # what every round times
SIZES = (500, 4_000, 16_000)
RESULTS = Path(__file__).parent / "results" / "activations.json"
WORDS = [
    "the",
    "a",
    "old",
    "young",
    "woman",
    "man",
    "prince",
    "king",
    "sings",
    "plays",
    "vanished",
    "fell",
    "sees",
]
WORDS += [
    "which",
    "who",
    "that",
    "near",
    "with",
    "every",
    "no",
    "some",
    "library",
    "garden",
    "night",
    "and",
    "then",
]


def sentences(n: int, seed: int = 0) -> list[str]:
    import numpy as np

    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size)) for size in rng.integers(3, 16, n)]


def words(texts: list[str]) -> Any:
    """Every word of every text, as stimuli."""
    import pandas as pd

    from thinkalike.stimuli import Stimuli

    rows = [(str(number), text, word) for number, text in enumerate(texts) for word in text.split()]
    return Stimuli.from_table(pd.DataFrame(rows, columns=["sentence", "text", "word"]))


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.train_from_iterator(
        sentences(2_000, seed=1), trainers.BpeTrainer(vocab_size=400, show_progress=False)
    )
    return PreTrainedTokenizerFast(tokenizer_object=core)


def model(n_layers: int = 12, width: int = 768) -> Any:
    import torch
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    return GPT2Model(GPT2Config(n_layer=n_layers, n_embd=width, n_head=width // 64)).eval()


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """By the clock, and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def speed() -> dict[str, Any]:
    import torch

    import thinkalike as ta
    from thinkalike.systems.passes import TextSource, make_plan
    from thinkalike.systems.stack import layers_of
    from thinkalike.systems.texts import Reader

    folder = tempfile.TemporaryDirectory()  # emptied at the end: deleting is no part of extraction
    network, reader = model(), tokenizer()
    stimuli, texts = words(sentences(N_SENTENCES)), sentences(N_SENTENCES)

    sequences = Reader(reader, "gpt2").read(stimuli)
    plan = make_plan(sequences.row_text, sequences.lengths, batch_size="auto", device="cpu")
    source = TextSource(sequences, plan, layers_of(network))
    same_batches = [
        source.prepare(chunk, group).inputs for chunk in range(plan.n_chunks) for group in plan.passes(chunk)
    ]
    ids = [torch.tensor([reader(text)["input_ids"]]) for text in texts]
    plain = []
    for begin in range(0, N_SENTENCES, 32):
        part = ids[begin : begin + 32]
        longest = max(one.shape[1] for one in part)
        filled = torch.cat([torch.nn.functional.pad(one, (0, longest - one.shape[1])) for one in part])
        mask = torch.arange(longest) < torch.tensor([[one.shape[1]] for one in part])
        plain.append({"input_ids": filled, "attention_mask": mask.long(), "use_cache": False})

    def forward(batches: list[dict[str, Any]]) -> None:
        with torch.inference_mode():
            for batch in batches:
                network(**batch)

    places = (Path(folder.name) / f"{number}.zarr" for number in itertools.count())

    def extraction() -> None:
        ta.extract(network, stimuli, processor=reader, out=next(places))

    ways: dict[str, Callable[[], Any]] = {
        "extraction to disk": extraction,
        "extraction in memory": lambda: ta.extract(network, stimuli, processor=reader),
        BARE: lambda: forward(same_batches),
        "bare forward, plain batches of 32": lambda: forward(plain),
        "bare forward, one at a time": lambda: forward(
            [{"input_ids": one, "use_cache": False} for one in ids]
        ),
    }
    forward(same_batches[:1])
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for turn in range(ROUNDS):
        for name, way in ways.items():
            if turn == 0 or name in CLOSE:
                taken[name].append(seconds(way))
    about = {
        "sentences": N_SENTENCES,
        "words": len(stimuli),
        "tokens": int(sequences.lengths.sum()),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
    }
    print(about)
    result: dict[str, Any] = {"about": about}
    for k, kind in enumerate(("clock", "processor")):
        times = {name: min(both[k] for both in found) for name, found in taken.items()}
        alone = times["bare forward, one at a time"]
        bare = [both[k] for both in taken[BARE]]
        ratios = {  # within a round; some ways have one only
            name: median(both[k] / b for both, b in zip(found, bare, strict=False))
            for name, found in taken.items()
        }
        print(f"{kind:<36}{'seconds':>9}{'× bare':>9}{'× faster than one at a time':>30}")
        for name, best in times.items():
            print(f"{name:<36}{best:>9.2f}{ratios[name]:>9.2f}{alone / best:>30.2f}", flush=True)
        result[kind] = times
        result[f"{kind}, × bare"] = ratios
    return result


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def memory(n_sentences: int) -> None:
    """Print what a process needs before it extracts, and at its peak."""
    import thinkalike as ta

    network, reader = model(n_layers=4, width=256), tokenizer()
    ta.extract(network, words(sentences(100)), processor=reader)
    stimuli = words(sentences(n_sentences))
    before = peak_megabytes()
    with tempfile.TemporaryDirectory() as folder:
        found = ta.extract(network, stimuli, processor=reader, out=Path(folder) / "store.zarr")
        on_disk = sum(found.n_units) * found.n_items * 4 / 1e6
    row = {
        "sentences": n_sentences,
        "rows": len(stimuli),
        "MB written": round(on_disk),
        "MB before": round(before),
        "MB peak": round(peak_megabytes()),
    }
    print(json.dumps(row))


def growing_memory() -> list[dict[str, int]]:
    rows = []
    for size in SIZES:
        command = [sys.executable, "-m", "benchmarks.activations", str(size)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    return rows


READ = """
import time
import thinkalike as ta
stimuli = [ta.Stimuli.from_grammar(200, seed=seed) for seed in range(4)]
ta.extract("nano-gpt2", stimuli[0])
begun = time.perf_counter()
for one in stimuli[1:]:
    ta.extract("nano-gpt2", one)
print(time.perf_counter() - begun)
"""


def busy() -> list[dict[str, Any]]:
    """A bundled model read by threads that wait asleep or turning, beside none and two busy processes."""
    rows = []
    for others in (0, 2):
        load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(others)]
        try:
            taken = {policy: median(_reading(policy) for _ in range(3)) for policy in ("PASSIVE", "ACTIVE")}
        finally:
            for process in load:
                process.kill()
                process.wait()
        asleep, turning = taken["PASSIVE"], taken["ACTIVE"]
        rows.append(
            {
                "busy processes": others,
                "s asleep": round(asleep, 2),
                "s turning": round(turning, 2),
                "ratio": round(turning / asleep, 2),
                "load": round(os.getloadavg()[0], 1),
            }
        )
        print(rows[-1], flush=True)
    return rows


def _reading(policy: str) -> float:
    """Seconds by the clock of a process of its own, with nothing kept from earlier ones."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "OMP_WAIT_POLICY": policy, "THINKALIKE_CACHE": cache}
        command = [sys.executable, "-W", "ignore", "-c", READ]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout.splitlines()[-1])


# Memory first: on Linux, a process counts the peak of the one that started it as its own.
PARTS: dict[str, Callable[[], Any]] = {"memory": growing_memory, "speed": speed, "busy": busy}


def main(*names: str) -> None:
    if names and names[0].isdigit():
        memory(int(names[0]))
        return
    result = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or PARTS:
        result[name] = PARTS[name]()
        RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
