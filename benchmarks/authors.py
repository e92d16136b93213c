"""Beside the authors' package: weights, ρ, importances and times of both, in one run.

The package (github.com/LouisJalouzot/MLEM, `mlem.MLEM`) is not on PyPI and needs a fork of another package
from GitHub. `MLEM_PACKAGE` names a folder from which `import mlem` gives it. Beside it runs `TheirWay`,
written anew from reading it, which shares no code with it or with ours, and stands in for it where no folder
is given: batches of sampled pairs, as many as make the correlations of the features steady; positive weights
of unit length by AdamW on a soft Spearman's ρ; the fall of ρ when a feature is permuted over the pairs.

Its soft ranks (Blondel et al. 2020, strength 1) are the values plus a constant whenever all values lie closer
than the ranks do, as distances scaled to 0 … 1 do: `soft_rank_error` says how exactly. Soft ρ is Pearson's r
then, which is what `TheirWay` maximises.

`MLEM_PACKAGE=/folder python -m benchmarks authors` writes benchmarks/results/authors.json.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.optimize import isotonic_regression
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

import thinkalike as ta

RESULTS = Path(__file__).parent / "results" / "authors.json"
MODELS = ("nano-bert", "nano-gpt2", "nano-mamba")
SENTENCES = 60
SEEDS = (0, 1, 2)


class Package:
    """The package itself, with its defaults."""

    def __init__(self, seed: int) -> None:
        from mlem import MLEM

        self.model = MLEM(random_seed=seed)

    def fit(self, features: pd.DataFrame, X: np.ndarray) -> Package:
        self.model.fit(features, X)
        self.weights = torch.tensor(self.model.get_weights()["Weight"].to_numpy())
        self.batch = int(self.model.batch_size_fit_)
        return self

    def importance(self) -> np.ndarray:
        return np.asarray(self.model.score()[0].mean(), dtype=float)


class TheirWay:
    """The published procedure with its defaults, diagonal W."""

    def __init__(self, seed: int) -> None:
        self.rng = torch.Generator().manual_seed(seed)

    def fit(self, features: pd.DataFrame, X: np.ndarray) -> TheirWay:
        self.codes, self.nominal = _coded(features)
        self.X = torch.as_tensor(X, dtype=torch.float32)
        self.largest = 0.0
        self.batch = self._batch_size()
        free = torch.rand(self.codes.shape[1], generator=self.rng).requires_grad_()
        optimiser = torch.optim.AdamW([free], lr=0.1, weight_decay=0.0, maximize=True)
        best, waited = -np.inf, 0
        for _ in range(1000):
            differences, distances = self._sample(self.batch)
            optimiser.zero_grad()
            score = _pearson(differences @ _positive(free), distances)
            score.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            best, waited = (score.item(), 0) if score.item() > best else (best, waited + 1)
            if waited >= 50:
                break
        self.weights = _positive(free).detach()
        return self

    def importance(self) -> np.ndarray:
        """The mean fall of ρ over five permutations, each on a new batch."""
        falls = np.zeros((5, len(self.weights)))
        for k in range(len(self.weights)):
            for turn in range(len(falls)):
                differences, distances = self._sample(self.batch)
                before = spearmanr(differences @ self.weights, distances).statistic
                order = torch.randperm(self.batch, generator=self.rng)
                differences[:, k] = differences[order, k]
                falls[turn, k] = before - spearmanr(differences @ self.weights, distances).statistic
        return falls.mean(axis=0)

    def _batch_size(self) -> int:
        """Pairs from which the correlations of feature differences vary by less than 0.01 in 16 draws."""
        size = 256
        i, j = np.triu_indices(self.codes.shape[1], 1)
        while size < 2**20:
            drawn = [np.corrcoef(self._sample(size)[0].numpy().T)[i, j] for _ in range(16)]
            if np.std(drawn, axis=0, ddof=1).max() < 0.01:
                break
            size = int(1.2 * size)
        return size

    def _sample(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        a, b = torch.randint(0, len(self.X), (2, size), generator=self.rng)
        apart = (self.codes[a] - self.codes[b]).nan_to_num(0.0).abs()
        apart = torch.where(self.nominal, (apart > 0).float(), apart)
        distances = torch.linalg.norm(self.X[a] - self.X[b], dim=1)
        self.largest = max(self.largest, float(distances.max()))
        return apart**2, (distances / self.largest) ** 2


def _coded(features: pd.DataFrame) -> tuple[torch.Tensor, torch.Tensor]:
    """Levels as numbers, ordered ones from 0 to 1; which of them are nominal."""
    columns, nominal = [], []
    for name in features:
        column = features[name]
        named = isinstance(column.dtype, pd.CategoricalDtype)
        values = column.cat.codes.replace(-1, np.nan) if named else column
        values = values.astype(float).to_numpy()
        nominal.append(named and not column.cat.ordered)
        columns.append(
            values if nominal[-1] else (values - np.nanmin(values)) / np.ptp(values[~np.isnan(values)])
        )
    return torch.as_tensor(np.stack(columns, axis=1), dtype=torch.float32), torch.tensor(nominal)


def _positive(free: torch.Tensor) -> torch.Tensor:
    positive = torch.nn.functional.softplus(free)
    return positive / positive.norm()


def _pearson(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x, y = x - x.mean(), y - y.mean()
    return (x * y).sum() / (x.norm() * y.norm())


def soft_rank_error(values: np.ndarray) -> float:
    """How far soft ranks of strength 1 are from the values plus a constant."""
    order = np.argsort(-values, kind="stable")
    z = values[order]
    soft = z - isotonic_regression(z - np.arange(len(z), 0, -1.0), increasing=False).x
    return float(np.ptp(soft - z))


def one_layer(features: pd.DataFrame, X: np.ndarray, way: type[Package | TheirWay]) -> dict[str, Any]:
    """Theirs, by the package or by `TheirWay`, and ours on the same vectors; ρ on all pairs."""
    start = time.process_time()
    ours = ta.MLEM(ordered="minmax").fit(features, X)
    fitted = time.process_time()
    importance = np.asarray(ours.importance(features, X))
    judged = time.process_time()
    weights = ours.weights_.to_numpy()
    found: dict[str, Any] = {
        "ours": {
            "fit (s)": fitted - start,
            "importance (s)": judged - fitted,
            "rho": _rho(features, X, weights),
            "weights": _unit(weights),
            "importance": importance.round(4).tolist(),
        },
        "theirs": [],
    }
    for seed in SEEDS:
        start = time.process_time()
        theirs = way(seed).fit(features, X)
        fitted = time.process_time()
        falls = theirs.importance()
        judged = time.process_time()
        given = theirs.weights.numpy().astype(float)
        written = theirs if isinstance(theirs, TheirWay) else TheirWay(seed).fit(features, X)
        found["theirs"].append(
            {
                "pairs in a batch": theirs.batch,
                "fit (s)": fitted - start,
                "importance (s)": judged - fitted,
                "rho": _rho(features, X, given),
                "weights": _unit(given),
                "importance": falls.round(4).tolist(),
                "cosine of the weights": float(np.dot(_unit(given), _unit(weights))),
                "r of the importances": float(np.corrcoef(falls, importance)[0, 1]),
                "same first feature": bool(falls.argmax() == importance.argmax()),
                "difference from what we wrote": float((theirs.weights - written.weights).abs().max()),
                "soft rank error": soft_rank_error(written._sample(written.batch)[1].numpy().astype(float)),
            }
        )
    return found


def _rho(features: pd.DataFrame, X: np.ndarray, weights: np.ndarray) -> float:
    codes, nominal = (value.numpy() for value in _coded(features))
    i, j = np.triu_indices(len(X), 1)
    apart = np.abs(np.nan_to_num(codes[i] - codes[j]))
    apart = np.where(nominal, apart > 0, apart) ** 2
    return float(spearmanr(np.round(apart @ weights, 6), pdist(X)).statistic)


def _unit(weights: np.ndarray) -> list[float]:
    return [float(w) for w in (weights / np.linalg.norm(weights)).round(4)]


def main() -> None:
    torch.set_num_threads(1)
    folder = os.environ.get("MLEM_PACKAGE")
    sys.path[:0] = [folder] if folder else []
    way = Package if folder else TheirWay
    stimuli = ta.Stimuli.from_grammar(SENTENCES, seed=0)
    features = stimuli.features
    noise = np.random.default_rng(0).normal(size=(len(stimuli), 4))
    ta.MLEM(ordered="minmax").fit(features, noise).importance(features, noise)  # compile first
    layers = {}
    for model in MODELS:
        acts = ta.extract(model, stimuli)
        layer = acts.layers[len(acts.layers) // 2]
        layers[f"{model}:{layer}"] = one_layer(features, np.asarray(acts[layer], dtype=float), way)
        print(model, layer, flush=True)
    about = {"items": len(stimuli), "features": list(map(str, features)), "load": os.getloadavg()[0]}
    found = {**about, "way": way.__name__, "layers": layers}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
