"""MLEM against the same computed on pairs, in time, memory and quality.

    python -m benchmarks encoding

Writes benchmarks/results/encoding.json and docs/figures/benchmark_encoding.png. Ratios are of times measured
in this run, each the best of a few; peak memory and the start of a second process are measured in processes
of their own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "encoding.json"
FIGURE = ROOT / "docs" / "figures" / "benchmark_encoding.png"
D, F = 768, 8
PAIR_SIZES = (1_000, 2_000, 4_000)
ITEM_SIZES = (1_000, 2_000, 4_000, 10_000, 20_000, 50_000, 100_000)


def make_features(n: int, seed: int = 0) -> pd.DataFrame:
    """Eight nominal features of two to nine levels."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({f"f{k}": pd.Categorical(rng.integers(0, k + 2, n).astype(str)) for k in range(F)})


def make_activations(features: pd.DataFrame, seed: int = 0, noise: float = 1.0) -> np.ndarray:
    """float32 (n, 768): a random direction for each level, weaker from feature to feature, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((len(features), D), dtype=np.float32)
    X *= noise
    for k, name in enumerate(features):
        levels = rng.standard_normal((k + 2, D), dtype=np.float32) * np.float32(np.sqrt(F - k) / 3)
        codes = features[name].cat.codes.to_numpy()
        for first in range(0, len(X), 4096):  # no second X in memory
            X[first : first + 4096] += levels[codes[first : first + 4096]]
    return X


def best_of(repeats: int, work: Callable[..., Any], *arguments: Any) -> tuple[float, float]:
    """The shortest of some runs: seconds on the clock, and of computing."""
    runs = [timed(partial(work, *arguments))[1:] for _ in range(repeats)]
    return min(wall for wall, _ in runs), min(cpu for _, cpu in runs)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, seconds on the clock, and of computing: on a busy machine the first are more."""
    start, computed = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - start, time.process_time() - computed


def fit(features: pd.DataFrame, X: np.ndarray) -> np.ndarray:
    from thinkalike.encoding import MLEM

    return MLEM().fit(features, X).weights_.to_numpy()


def form_pairs(features: pd.DataFrame, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Differences (n_pairs, 8) and squared distances (n_pairs,), as one would form them with NumPy."""
    i, j = np.triu_indices(len(X), 1)
    codes = np.stack([features[name].cat.codes.to_numpy() for name in features], axis=1)
    Z = (codes[i] != codes[j]).astype(float)
    x = X.astype(float)
    squares = (x**2).sum(axis=1)
    return Z, (squares[:, None] + squares[None, :] - 2 * x @ x.T)[i, j]


def ridge_on_pairs(features: pd.DataFrame, X: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import Ridge

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(Ridge(alpha=1.0, positive=True).fit(*form_pairs(features, X)).coef_)


def normal_equations_on_pairs(features: pd.DataFrame, X: np.ndarray) -> np.ndarray:
    from scipy.optimize import nnls

    Z, y = form_pairs(features, X)
    means = Z.mean(axis=0)
    gram = Z.T @ Z - len(y) * np.outer(means, means) + np.eye(F)
    root = np.linalg.cholesky(gram).T
    return nnls(root, np.linalg.solve(root.T, Z.T @ y - means * y.sum()))[0]


def fits_against_pairs() -> list[dict[str, float]]:
    rows = []
    for n in PAIR_SIZES:
        features = make_features(n)
        X = make_activations(features)
        row: dict[str, float] = {"n": n}
        row["ours"], row["ours_cpu"] = best_of(9, fit, features, X)
        row["ridge"], row["ridge_cpu"] = best_of(3, ridge_on_pairs, features, X)
        row["normal"], row["normal_cpu"] = best_of(3, normal_equations_on_pairs, features, X)
        weights = fit(features, X)
        row["difference_from_normal"] = float(
            np.abs(weights / normal_equations_on_pairs(features, X) - 1).max()
        )
        rows.append(row)
        print(
            f"n = {n:>6,}: {row['ours']:.4f} s; Ridge(positive=True) {row['ridge'] / row['ours']:.0f} ×, "
            f"normal equations {row['normal'] / row['ours']:.0f} × as long, same weights to "
            f"{row['difference_from_normal']:.0e}",
            flush=True,
        )
    return rows


def fits_by_size() -> list[dict[str, float]]:
    rows = []
    for n in ITEM_SIZES:
        features = make_features(n)
        X = make_activations(features)
        seconds, computing = best_of(7, fit, features, X)
        rows.append({"n": n, "seconds": seconds, "seconds_cpu": computing})
        pairs = f"{n * (n - 1) // 2:>13,} pairs"
        print(f"n = {n:>7,} ({pairs}): {seconds:.3f} s, {computing:.3f} s of CPU", flush=True)
    return rows


def peak_bytes() -> float:
    """Of this process alone: on Linux `ru_maxrss` would count the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return 1024.0 * float(line.split()[1])
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def measure_memory(n: int) -> None:
    """In a process of its own: print the peak over the idle process, in units of the size of X."""
    small = make_features(200)
    fit(small, make_activations(small))  # compiled code and libraries are loaded
    idle = peak_bytes()
    features = make_features(n)
    X = make_activations(features)
    fit(features, X)
    print((peak_bytes() - idle) / X.nbytes)


def importances() -> dict[str, float]:
    """All 2 M pairs of 2,000 items, eight features: fit, distances, ranks and importances, from X."""
    from scipy.stats import rankdata, spearmanr
    from sklearn.inspection import permutation_importance
    from sklearn.linear_model import Ridge

    from thinkalike.encoding import MLEM

    features = make_features(2_000)
    X = make_activations(features)

    def complete() -> pd.Series:
        return MLEM().fit(features, X).importance(features, X)

    found = complete()
    ours, computing = best_of(7, complete)
    Z, y = form_pairs(features, X)
    model = Ridge(alpha=1.0, positive=True).fit(Z, y)
    ranks = rankdata(y)
    spread = ranks - ranks.mean()

    def spearman_scorer(estimator: Any, Z: np.ndarray, y: np.ndarray) -> float:
        return float(spearmanr(estimator.predict(Z), y).statistic)

    def ranked_once(estimator: Any, Z: np.ndarray, y: np.ndarray) -> float:
        r = rankdata(estimator.predict(Z))
        r -= r.mean()
        return float(r @ spread / np.sqrt((r @ r) * (spread @ spread)))

    row = {"ours": ours, "ours_cpu": computing}
    for name, scorer in (("spearman", spearman_scorer), ("ranked_once", ranked_once)):
        asked = partial(permutation_importance, model, Z, y, scoring=scorer, n_repeats=10, random_state=0)
        theirs, row[name], row[f"{name}_cpu"] = timed(asked)
        row[f"{name}_largest_difference"] = float(np.abs(theirs.importances_mean - found).max())
        print(
            f"importance: {ours:.2f} s; permutation_importance ({name}) {row[name]:.1f} s, "
            f"{row[name] / ours:.0f} × as long; differing by {row[f'{name}_largest_difference']:.1e} at most",
            flush=True,
        )
    return row


def profiles() -> dict[str, float]:
    """51 layers of 1,500 words: the cross-validated profile, and 200 bootstrap resamples of sentences."""
    from thinkalike.encoding import cross_validate, leave_out, make_plan, plan_resamples, resample

    features = make_features(1_500)
    layers = {k: make_activations(features, seed=k) for k in range(51)}
    cross_validate(features, {0: layers[0]})  # compiled code is loaded

    alphas, row = np.empty((51, 5)), {}

    def cross_validation() -> None:
        alphas[:] = cross_validate(features, layers).alphas

    def bootstrap() -> None:
        drawn, _ = leave_out(np.arange(1_500) // 5, n_resamples=200)
        resamples = plan_resamples(make_plan(features), drawn)
        for k, X in layers.items():
            resample(resamples, X, alphas[k])

    for work in (cross_validation, bootstrap):
        name = work.__name__
        _, row[name], row[f"{name}_cpu"] = timed(work)
        print(f"51 layers, {name}: {row[name]:.1f} s, {row[f'{name}_cpu']:.1f} s of CPU", flush=True)
    return row


def first_use() -> None:
    """In a process of its own: print the CPU seconds to import, fit, score and ask for importances."""
    from thinkalike.encoding import MLEM, cross_validate

    features = make_features(200)
    X = make_activations(features)
    MLEM().fit(features, X).importance(features, X)
    cross_validate(features, X)
    print(time.process_time())


def own_process(what: str, **environment: str) -> float:
    """What a function of this module prints when it is run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.encoding", what]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}
    )
    return float(done.stdout)


def starts() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as empty:
        compiling = own_process("first_use", NUMBA_CACHE_DIR=empty)
        cached = own_process("first_use", NUMBA_CACHE_DIR=empty)
    print(f"first process {compiling:.1f} s of CPU (compiles), second {cached:.1f} s (from disk)", flush=True)
    return {"compiling_cpu": compiling, "cached_cpu": cached}


def draw(result: dict[str, Any]) -> Any:
    """CPU seconds: of a fit, by the number of items; of the importances of one layer."""
    import altair as alt

    colours = {
        "thinkalike, no pairs": "#1f6f8b",
        "normal equations on pairs": "#8a8a8a",
        "Ridge(positive=True) on pairs": "#c2571a",
    }
    ours, normal, ridge = colours
    sizes = pd.DataFrame(result["by_size"]).assign(method=ours).rename(columns={"seconds_cpu": "cpu"})
    pairs = pd.DataFrame(result["against_pairs"]).melt("n", ["ridge_cpu", "normal_cpu"], "method", "cpu")
    pairs["method"] = pairs["method"].map({"ridge_cpu": ridge, "normal_cpu": normal})
    decades = {
        "x": alt.Axis(values=[1_000, 10_000, 100_000], format="~s", title="items"),
        "y": alt.Axis(values=[0.01, 0.1, 1, 10, 100], format="~g", title="seconds of CPU"),
    }
    lines = alt.Chart(
        pd.concat([sizes, pairs]), title="A fit: 768 units, 8 features", width=330, height=230
    ).encode(
        x=alt.X("n:Q", scale=alt.Scale(type="log"), axis=decades["x"]),
        y=alt.Y("cpu:Q", scale=alt.Scale(type="log"), axis=decades["y"]),
        color=alt.Color(
            "method:N", scale=alt.Scale(domain=[*colours], range=[*colours.values()]), legend=None
        ),
    )
    largest = pairs[pairs["n"] == pairs["n"].max()].assign(n=1.15 * pairs["n"].max())
    middle = sizes[sizes["n"] == 10_000].assign(n=12_000)
    last = alt.Chart(pd.concat([largest, middle]))
    names = last.mark_text(align="left", baseline="top", fontSize=11).encode(
        x="n:Q", y="cpu:Q", text="method:N", color=lines.encoding.color
    )
    row = result["importance"]
    bars = pd.DataFrame(
        {
            "method": ["thinkalike", "scikit-learn, target ranked once", "scikit-learn"],
            "cpu": [row["ours_cpu"], row["ranked_once_cpu"], row["spearman_cpu"]],
            "colour": ["#1f6f8b", "#8a8a8a", "#c2571a"],
        }
    )
    bar = alt.Chart(bars, title="Importances: 2,000 items, 2 M pairs", width=330, height=120).encode(
        x=alt.X("cpu:Q", title="seconds of CPU", scale=alt.Scale(domainMax=1.15 * bars["cpu"].max())),
        y=alt.Y("method:N", sort=list(bars["method"]), title=None, axis=alt.Axis(labelLimit=300)),
    )
    filled = bar.mark_bar().encode(color=alt.Color("colour:N", scale=None))
    value = bar.mark_text(align="left", dx=4, fontSize=11).encode(text=alt.Text("cpu:Q", format=".2~f"))
    fits = lines.mark_line(point=True) + names
    return (
        alt.hconcat(fits, filled + value, spacing=40, background="white")
        .configure_view(stroke=None)
        .configure_axis(grid=False, labelFontSize=11, titleFontSize=11, titleFontWeight="normal")
        .configure_title(fontSize=13, anchor="start")
    )


def main() -> None:
    result: dict[str, Any] = {"units": D, "features": F, "cores": os.cpu_count()}
    result["against_pairs"] = fits_against_pairs()
    result["by_size"] = fits_by_size()
    result["peak_memory_over_X"] = own_process("memory")
    print(f"peak memory at n = 50,000: {result['peak_memory_over_X']:.2f} × the size of X", flush=True)
    result["profiles"] = profiles()
    result["starts"] = starts()
    result["importance"] = importances()
    result["load_average"] = os.getloadavg()[0]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    draw(result).save(str(FIGURE), scale_factor=2)


if __name__ == "__main__":
    {"memory": lambda: measure_memory(50_000), "first_use": first_use}.get(" ".join(sys.argv[1:]), main)()
