"""Geometric measures against peers: CKA, RSA and Procrustes over all pairs of layers.

    pip install --no-deps torch-cka ckatorch seaborn rsatoolbox h5py scikit-image lazy-loader
    python -m benchmarks measures

Peers that are not installed are left out, and said so. Times are of the processor, in one thread, so that
ratios hold on a busy machine too. Each part is written to benchmarks/results/measures.json as soon as it is
there, and docs/figures/benchmark_measures.png at the end; named parts are renewed alone.
"""

from __future__ import annotations

import importlib.util
import io
import json
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.linalg  # noqa: F401  the limit of threads holds for libraries that are loaded before it is set
import torch
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "measures.json"
FIGURE = ROOT / "docs" / "figures" / "benchmark_measures.png"
DEPTHS, N, D = (13, 25), 1024, 768


def best_of(repeats: int, work: Callable[[], Any]) -> float:
    """The shortest of some runs, in seconds of the processor."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def interleaved(works: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The shortest time of each, taking turns, so that a busy machine is busy for all of them."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(best_of(1, work))
    return {name: min(found) for name, found in times.items()}


def make_layers(count: int, *, n: int = N, d: int = D, seed: int = 0) -> list[torch.Tensor]:
    """float32 layers (n, d) that drift away from a common start."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(n, d, generator=generator)
    return [start + 0.3 * k * torch.randn(n, d, generator=generator) for k in range(count)]


def stream(layers: list[torch.Tensor], dtype: str = "float64") -> np.ndarray:
    from thinkalike.streaming.sums import StreamingCKA

    found = StreamingCKA([str(k) for k in range(len(layers))], dtype=dtype)
    found.add(layers)
    return found.estimate()


def products_alone(layers: list[torch.Tensor], dtype: torch.dtype = torch.float64) -> None:
    """What no implementation by Grams can do without: XXᵀ of every layer, and the stack times itself."""
    n = len(layers[0])
    wide = [X.to(dtype) for X in layers]
    stack = torch.empty(len(layers), n, n, dtype=dtype)
    for gram, X in zip(stack, wide, strict=True):
        torch.matmul(X, X.T, out=gram)
    flat = stack.reshape(len(layers), -1)
    _ = flat @ flat.T


class Replay(torch.nn.Module):
    """A model whose layers answer what they were given; it costs no time of its own."""

    def __init__(self, answers: list[torch.Tensor]) -> None:
        super().__init__()
        self.answers = answers
        self.layers = torch.nn.ModuleList(torch.nn.Identity() for _ in answers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, answer in zip(self.layers, self.answers, strict=True):
            x = layer(answer)
        return x


def torch_cka(first: list[torch.Tensor], second: list[torch.Tensor]) -> np.ndarray:
    from torch_cka import CKA

    names = [[f"layers.{k}" for k in range(len(layers))] for layers in (first, second)]
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        cka = CKA(Replay(first), Replay(second), "a", "b", names[0], names[1])
        items = torch.utils.data.TensorDataset(torch.zeros(len(first[0]), 1))
        cka.compare(torch.utils.data.DataLoader(items, batch_size=len(first[0])))
    return np.asarray(cka.hsic_matrix)


def ckatorch(first: list[torch.Tensor], second: list[torch.Tensor]) -> np.ndarray:
    from ckatorch.core import cka_batch  # what its class calls for every pair of layers

    with torch.no_grad():
        return np.array([[float(cka_batch(X[None], Y[None])) for Y in second] for X in first])


def cka_against_peers() -> dict[str, Any]:
    layers = make_layers(sum(DEPTHS))
    first, second = layers[: DEPTHS[0]], layers[DEPTHS[0] :]
    stream(make_layers(3, n=64, d=16))  # libraries are loaded
    row: dict[str, Any] = interleaved(
        {
            "ours": lambda: stream(layers),
            "products": lambda: products_alone(layers),
            "ours_float32": lambda: stream(layers, "float32"),
            "products_float32": lambda: products_alone(layers, torch.float32),
        },
        repeats=3,
    )
    print(
        f"13 × 25 layers, a batch of {N} × {D}: {row['ours']:.2f} s (float64), "
        f"{row['ours'] / row['products']:.2f} × the matrix products alone; "
        f"{row['ours_float32']:.2f} s (float32), {row['ours_float32'] / row['products_float32']:.2f} ×",
        flush=True,
    )
    ours = stream(layers)[: DEPTHS[0], DEPTHS[0] :]
    row["float32_difference"] = float(
        np.abs(stream(layers, "float32")[: DEPTHS[0], DEPTHS[0] :] - ours).max()
    )
    for name, peer in (("torch_cka", torch_cka), ("ckatorch", ckatorch)):
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed: left out", flush=True)
            continue
        start = time.process_time()
        theirs = peer(first, second)
        row[name] = time.process_time() - start
        row[f"{name}_ratio"] = row[name] / row["ours"]
        row[f"{name}_difference"] = float(np.abs(theirs - ours).max())
        print(
            f"{name}: {row[name]:.1f} s, {row[f'{name}_ratio']:.0f} × as long; "
            f"values differ by {row[f'{name}_difference']:.0e} at most",
            flush=True,
        )
    return row


def offsets() -> dict[str, Any]:
    """Three of 64 units with a common offset of 1,000, in float32: does CKA of a layer with itself stay 1?"""
    clean = make_layers(2, n=256, d=64)
    shifted = [X.clone() for X in clean]
    for X in shifted:
        X[:, :3] += 1000
    row: dict[str, Any] = {"clean": float(stream(clean)[0, 1]), "ours": float(stream(shifted)[0, 1])}
    for name, peer in (("torch_cka", torch_cka), ("ckatorch", ckatorch)):
        if importlib.util.find_spec(name) is not None:
            try:
                row[name] = float(peer(shifted[:1], shifted[1:])[0, 0])
            except AssertionError as error:
                row[name] = str(error)
    print("an offset of 1,000 in three units:", row, flush=True)
    return row


def growth() -> list[dict[str, Any]]:
    """Time of one batch as layers, tokens and width grow, the other two at 12, 1,024 and 512."""
    rows = []
    usual = {"layers": 12, "tokens": 1024, "width": 512}
    for axis, sizes in (
        ("layers", (3, 6, 12, 24, 48, 96)),
        ("tokens", (128, 256, 512, 1024, 2048, 4096)),
        ("width", (64, 128, 256, 512, 1024, 2048)),
    ):
        for size in sizes:
            shape = {**usual, axis: size}
            layers = make_layers(shape["layers"], n=shape["tokens"], d=shape["width"])
            rows.append({"axis": axis, "size": size, "seconds": best_of(2, lambda: stream(layers))})  # noqa: B023
            print(f"{axis} = {size:>5}: {rows[-1]['seconds']:.3f} s", flush=True)
    return rows


def procrustes_against_scipy() -> dict[str, float]:
    from scipy.spatial import procrustes

    from thinkalike.measures import MEASURES

    layers = [X.numpy().astype(np.float64) for X in make_layers(12, n=1500, d=256)]
    ours = MEASURES["procrustes"]

    def theirs() -> list[float]:
        return [procrustes(X, Y)[2] for X, Y in combinations(layers, 2)]

    row = interleaved({"ours": lambda: ours.matrix(layers), "scipy": theirs}, repeats=2)
    found = ours.matrix(layers)[np.triu_indices(12, 1)]
    expected = np.sqrt(2 - 2 * np.sqrt(1 - np.array(theirs())))
    row["difference"] = float(np.abs(found - expected).max())
    print(
        f"Procrustes, all pairs of 12 layers of 1,500 × 256: {row['ours']:.2f} s; scipy pair by pair "
        f"{row['scipy'] / row['ours']:.1f} × as long, same values to {row['difference']:.0e}",
        flush=True,
    )
    return row


def rsa_against_peers() -> dict[str, float]:
    from scipy.spatial.distance import pdist
    from scipy.stats import spearmanr

    from thinkalike.measures import MEASURES

    layers = [X.numpy() for X in make_layers(6, n=1000)]
    MEASURES["rsa"].matrix([X[:50] for X in layers])  # compiled code is loaded

    def scipys() -> np.ndarray:
        return np.asarray(spearmanr(np.array([pdist(X) for X in layers]), axis=1).statistic)

    works: dict[str, Callable[[], Any]] = {"ours": lambda: MEASURES["rsa"].matrix(layers), "scipy": scipys}
    if importlib.util.find_spec("rsatoolbox") is not None:
        works["rsatoolbox"] = lambda: rsatoolbox(layers)
    row = interleaved(works, repeats=2)
    row["difference"] = float(np.abs(MEASURES["rsa"].matrix(layers) - scipys()).max())
    ratios = ", ".join(f"{name} {row[name] / row['ours']:.1f} ×" for name in works if name != "ours")
    print(f"RSA, 6 layers of 1,000 × 768: {row['ours']:.2f} s; {ratios} as long", flush=True)
    return row


def rsatoolbox(layers: list[np.ndarray]) -> np.ndarray:
    import rsatoolbox as toolbox

    rdms = toolbox.rdm.calc_rdm([toolbox.data.Dataset(X) for X in layers], method="euclidean")
    return np.asarray(toolbox.rdm.compare(rdms, rdms, method="spearman"))


def draw(result: dict[str, Any]) -> Any:
    import altair as alt

    from thinkalike.charts.theme import LIGHT, themed

    table = pd.DataFrame(result["growth"])
    lines = [
        alt.Chart(table[table["axis"] == axis], title=f"CKA of a batch, {title}")
        .mark_line(point={"color": LIGHT.systems[0]}, color=LIGHT.systems[0])
        .encode(
            x=alt.X(
                "size:Q",
                scale=alt.Scale(type="log", base=2, nice=False, padding=8),
                axis=alt.Axis(values=sorted(table.loc[table["axis"] == axis, "size"]), format="d"),
                title=axis,
            ),
            y=alt.Y(
                "seconds:Q",
                scale=alt.Scale(type="log", domain=[0.02, 5]),
                axis=alt.Axis(values=[0.03, 0.1, 0.3, 1, 3]),
                title="seconds of one processor",
            ),
        )
        .properties(width=200, height=180)
        for axis, title in (
            ("layers", "1,024 × 512"),
            ("tokens", "12 layers × 512"),
            ("width", "12 layers × 1,024"),
        )
    ]
    cka = result["cka"]
    named = {
        "thinkalike": "ours",
        "matrix products alone": "products",
        "torch-cka": "torch_cka",
        "ckatorch": "ckatorch",
    }
    bars = pd.DataFrame([{"method": name, "seconds": cka[key]} for name, key in named.items() if key in cka])
    dots = (
        alt.Chart(bars, title="CKA of 13 × 25 layers, a batch of 1,024 tokens × 768")
        .mark_point(filled=True, size=90, opacity=1, color=LIGHT.systems[0])
        .encode(
            x=alt.X(
                "seconds:Q",
                scale=alt.Scale(type="log", domain=[0.5, 120]),
                axis=alt.Axis(values=[1, 3, 10, 30, 100]),
                title="seconds of one processor, logarithmic",
            ),
            y=alt.Y("method:N", sort=list(bars["method"]), title=None, axis=alt.Axis(labelLimit=300)),
        )
        .properties(width=640, height=110)
    )
    label = dots.mark_text(align="left", dx=9).encode(text=alt.Text("seconds:Q", format=".3~r"))
    return themed(alt.vconcat(alt.layer(dots, label), alt.hconcat(*lines)))


PARTS: dict[str, Callable[[], Any]] = {
    "cka": cka_against_peers,
    "offsets": offsets,
    "growth": growth,
    "procrustes": procrustes_against_scipy,
    "rsa": rsa_against_peers,
}


def main(*names: str) -> None:
    torch.set_num_threads(1)
    result: dict[str, Any] = json.loads(RESULTS.read_text()) if names and RESULTS.exists() else {}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(limits=1):
        for name in names or PARTS:
            result[name] = PARTS[name]()
            RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    if {"cka", "growth"} <= result.keys():
        draw(result).save(str(FIGURE), scale_factor=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
