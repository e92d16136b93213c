"""Golden numbers: what bundled comparisons gave at a known commit, to hold later ones to.

    python tests/golden/record.py numbers.json [CASE …]     # with PYTHONPATH=<checkout>/src

Only names that have been public throughout are used, so the same script runs on old and new checkouts. Models
compute in float64 and the grammar is named: what is left is the arithmetic itself, on any number of threads.
p-values, and ranges of penalties, are not recorded: how they are made was replaced since, and is tested by
simulation instead.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import thinkalike as ta

Numbers = dict[str, Any]
TRIO = ("nano-bert", "nano-gpt2", "nano-mamba")
OTHERS = ("nano-gelu-3l", "nano-solu-3l", "nano-pythia-64")
GEOMETRY = ("cka", "cka-rbf", "procrustes", "gulp", "rsa-cosine", "mutual-knn")
CASES: dict[str, Callable[[], Numbers]] = {}


def case(function: Callable[[], Numbers]) -> Callable[[], Numbers]:
    CASES[function.__name__] = function
    return function


@cache
def stimuli() -> ta.Stimuli:
    return ta.Stimuli.from_grammar(40, seed=0, grammar="salle2024")


@cache
def model(name: str) -> Any:
    """A bundled model in float64; its tokenizer is found by the model's own path."""
    try:
        from thinkalike.systems.bundled import load
    except ImportError:  # where it stood before
        from thinkalike.models import load  # type: ignore[import-not-found,no-redef]
    return load(name)[0].double()


@cache
def activations(name: str, **options: Any) -> ta.Activations:
    return ta.extract(model(name), stimuli(), system=name, cache=False, **options)


@cache
def profiles() -> tuple[Any, ...]:
    return tuple(ta.profile(activations(name), stimuli(), seed=0) for name in TRIO)


def text() -> Path:
    """English prose that no bundled model was trained on."""
    return next(Path(str(ta.__file__)).parent.rglob("sample.txt"))


def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Two layers that share three of their dimensions."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(40, 3))
    return tuple(np.hstack([common @ rng.normal(size=(3, 4)), rng.normal(size=(40, 3))]) for _ in "xy")  # type: ignore[return-value]


def digest(*values: Any) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()


def of_table(table: pd.DataFrame) -> str:
    return digest(list(table.columns), table.astype(object).where(table.notna(), None).to_numpy().tolist())


@case
def grammars() -> Numbers:
    """The sentences and features of both old grammars, with and without balance and controls."""
    found = {}
    for name, options in {
        "salle2024": {},
        "salle2024 balanced": {"balance": True},
        "clauses": {},
        "clauses sentences": {"items": "sentences", "capital": True, "full_stop": True},
    }.items():
        made = ta.Stimuli.from_grammar(40, seed=1, grammar=name.split()[0], **options)  # type: ignore[arg-type]
        found[name] = {"sentences": digest(made.sentences.tolist()), "features": of_table(made.features)}
        if name == "salle2024":
            found[name]["correlations"] = made.correlations().values
    return found


@case
def states() -> Numbers:
    """Mean and norm of every layer, all families, pretrained and not, and every site and pooling."""
    found: Numbers = {}
    for name in (*TRIO, *OTHERS):
        found[name] = summary(activations(name))
    untrained = ta.extract("nano-gpt2", stimuli(), untrained=True, seed=3, cache=False)
    found["untrained embeddings"] = np.asarray(untrained[0])[:4, :8]
    for pooling in ("first", "mean"):
        found[pooling] = summary(activations("nano-bert", pooling=pooling))
    for site in ("block", "attention", "mlp"):
        found[site] = summary(activations("nano-gpt2", site=site))
    found["bos"] = summary(activations("nano-bert", bos=True, drop_first=1, final_norm=True))
    return found


def summary(acts: ta.Activations) -> Numbers:
    layers = [np.asarray(acts[layer], dtype=float) for layer in acts.layers]
    return {
        "shape": [len(layers), *layers[0].shape],
        "mean": [layer.mean() for layer in layers],
        "norm": [np.linalg.norm(layer) for layer in layers],
        "middle": [layer[len(layer) // 2, :3] for layer in layers],
    }


@case
def profile() -> Numbers:
    """Importances and scores by each preset, distance and importance that there has been throughout."""
    shown = activations("nano-gpt2")
    found: Numbers = {one.system: of_profile(one) for one in profiles()}
    for name, settings in {
        "salle2024": {"preset": "salle2024"},
        "cosine": {"distance": "cosine"},
    }.items():
        found[name] = of_profile(ta.profile(shown, stimuli(), seed=1, **settings))  # type: ignore[arg-type]
    return found


def of_profile(one: Any) -> Numbers:
    found = {"features": list(one.features), "importance": one.mean_importance, "scores": one.scores}
    if one.collinearity is not None:
        found |= {"inflation": one.collinearity.inflation}
    if one.diagnostics is not None:
        found |= {"ceiling": one.diagnostics.ceiling, "top_share": one.diagnostics.top_share}
    return found


@case
def mlem() -> Numbers:
    """Weights, intercept, score of the estimator on one layer."""
    X = activations("nano-gpt2")[2]
    found: Numbers = {}
    for name, options in {
        "diagonal": {},
        "cv": {"alpha": "cv", "seed": 2},
        "interactions": {"interactions": True},
        "minmax": {"ordered": "minmax", "missing": "level"},
        "salle2024": {"preset": "salle2024"},
    }.items():
        fitted = ta.MLEM(**options).fit(stimuli().features, X)  # type: ignore[arg-type]
        found[name] = {
            "weights": np.asarray(fitted.weights_),
            "intercept": fitted.intercept_,
            "alpha": fitted.alpha_,
            "score": fitted.score(stimuli().features, X),
        }
    return found


@case
def compare() -> Numbers:
    """A whole comparison of three bundled models, without resamples."""
    result = ta.compare(
        {name: activations(name) for name in TRIO},
        stimuli(),
        measures=GEOMETRY,
        resamples=0,
        seed=0,
    )
    return {
        "matrices": {name: matrix.values for name, matrix in result.matrices.items()},
        "blocks": [[block.mean, block.maximum] for block in result.matrices["features"].blocks],
        "contributions": result.contributions.sum(axis=0),
        "explained_share": result.explained_share,
        "agreement": {f"{one.a}~{one.b}": [one.rho, one.rho_between] for one in result.agreements},
        "trajectories": [result.trajectories.euclidean, result.trajectories.warped],
        "stress": {name: found.stress for name, found in result.layer_maps.items()},
        "word_maps": result.word_maps.explained if result.word_maps else None,
        "correlations": result.correlations.to_numpy(),
    }


@case
def explain() -> Numbers:
    """Why two layers are alike."""
    found = ta.explain(profiles()[0], 2, profiles()[1], 2)
    return {
        name: getattr(found, name)
        for name in ("tau", "contributions", "without", "shared", "only_a", "only_b")
    }


@case
def measures() -> Numbers:
    """Every measure of two layers."""
    X, Y = arrays()
    table = ta.MEASURES
    return {name: [one(X, Y), one(Y, X)] for name, one in table.items() if one.takes == "layers"}


@case
def probes() -> Numbers:
    from thinkalike.measures import probe_layers

    found = probe_layers(activations("nano-gpt2"), stimuli(), stimuli().features.columns[0])
    return {name: column.to_numpy() for name, column in found.to_frame().items() if column.dtype == float}


def stitched(result: Any) -> Numbers:
    frame = result.to_frame(roles=True)
    ranges = frame.filter(regex="low$|high$").columns
    numbers = {
        name: column.to_numpy()
        for name, column in frame.drop(columns=ranges).items()
        if column.dtype == float
    }
    return numbers | {"losses": result.losses.sum(axis=1), "own": [result.own_loss, result.own_accuracy]}


def stitch(pair: tuple[str, str], **options: Any) -> Numbers:
    settings = {"layers": [1], "length": 24, "max_tokens": 1500, "resamples": 20, "ceiling": False}
    return stitched(ta.stitch(*map(model, pair), text(), **settings | options))  # type: ignore[arg-type]


@case
def stitch_least_squares() -> Numbers:
    kinds = ("identity", "affine", "layernorm-affine", "orthogonal", "low-rank")
    found = {kind: stitch(("nano-gelu-3l", "nano-solu-3l"), kind=kind, floor=False) for kind in kinds}
    return found | {
        "other depth, with floor and ceiling": stitch(
            ("nano-gelu-3l", "nano-solu-3l"), layers=[(1, 2)], ceiling=True
        ),
        "masked": stitch(("nano-bert", "nano-bert"), floor=False),
    }


@case
def stitch_task() -> Numbers:
    from thinkalike.stitching import TaskFit

    how = TaskFit(steps=4, warmup=2, every=2, batch_tokens=128, validation_tokens=256)
    return stitch(("nano-gelu-3l", "nano-solu-3l"), fit=how, floor=False)


def of_stream(found: Any) -> Numbers:
    return {"values": found.values, "errors": found.standard_errors}


@case
def streams() -> Numbers:
    """CKA over running text: tokens, words, sequences; packed and not."""
    causal = {name: model(name) for name in ("nano-gelu-3l", "nano-solu-3l")}
    trio = {name: model(name) for name in TRIO}
    alone = {"nano-bert": model("nano-bert")}
    short = [line[:80] for line in text().read_text(encoding="utf-8").splitlines()[:24] if line]
    few: dict[str, Any] = {"max_batches": 3, "length": 24}
    found = {
        "tokens": ta.stream_cka(causal, text(), **few),
        "ratio": ta.stream_cka(causal, text(), average="ratio", drop_first=1, **few),
        "mixed": ta.stream_cka(causal, text(), batch="tokens", batch_size=40, **few),
        "words": ta.stream_cka(trio, text(), level="word", **few),
        "sequences": ta.stream_cka(trio, short, level="sequence", batch_size=8, pack=False, max_batches=3),
        "padded": ta.stream_cka(alone, short, pack=False, padding="keep", max_batches=3),
    }
    return {name: of_stream(one) for name, one in found.items()}


@case
def stream_activations() -> Numbers:
    try:
        from thinkalike.streaming import activations_cka
    except ImportError:  # where it stood before
        from thinkalike.measures import activations_cka  # type: ignore[attr-defined,no-redef]
    systems = [activations(name) for name in TRIO]
    return of_stream(activations_cka(systems, groups=stimuli().items["sentence"], batch_size=60))


def plain(value: Any) -> Any:
    """As JSON has it; NaN is None."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (np.ndarray, pd.DataFrame, pd.Series)):
        return plain(np.asarray(value).tolist())
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def record(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cautions about so few items
        return plain(CASES[name]())


def main(path: str, *names: str) -> None:
    found = {name: record(name) for name in names or CASES}
    Path(path).write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
