"""A planted comparison: alpha and beta care about the same features, gamma about others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from thinkalike.comparison.cautions import Caution
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.maps import LayerMap, WordMaps
from thinkalike.comparison.profiles import (
    Collinearity,
    LayerDiagnostics,
    Profile,
    relative_depth,
)
from thinkalike.comparison.replicates import Replicates
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.comparison.trajectories import TrajectoryDistances
from thinkalike.inference.agreement import Agreement
from thinkalike.inference.block_tests import BlockTest
from thinkalike.inference.weighted_tau import contribution_matrix
from thinkalike.stimuli.table import Stimuli

FEATURES = (
    "part of speech",
    "position",
    "word length",
    "number",
    "tense",
    "gender",
    "frequency",
    "clause type",
)
SYSTEMS = {"alpha": 7, "beta": 7, "gamma": 13}
WORDS = ("the", "a", "old", "small", "child", "teacher", "dogs", "saw", "reads", "quickly", "river", "never")


def plant_stimuli(n_sentences: int, features: Sequence[str], rng: np.random.Generator) -> Stimuli:
    """Six words a sentence; the first feature is nominal, the second ordinal, the last numeric."""
    words = rng.choice(WORDS, size=(n_sentences, 6))
    texts = [" ".join(row) for row in words]
    starts = [np.concatenate([[0], np.cumsum([len(w) + 1 for w in row[:-1]])]) for row in words]
    n_items = n_sentences * 6
    items = pd.DataFrame(
        {
            "sentence": np.repeat([f"s{k}" for k in range(n_sentences)], 6),
            "word": words.ravel(),
            "start": np.concatenate(starts),
            "end": [int(s) + len(w) for s, w in zip(np.concatenate(starts), words.ravel(), strict=True)],
        },
        index=[f"s{k // 6}-{k % 6}" for k in range(n_items)],
    )
    columns: dict[str, object] = {}
    for k, name in enumerate(features):
        if k == 1:
            columns[name] = pd.Categorical(
                [str(p % 6 + 1) for p in range(n_items)], [str(p) for p in range(1, 7)], ordered=True
            )
        elif k == len(features) - 1:
            columns[name] = rng.normal(4.0, 1.0, n_items)
        else:
            levels = ["noun", "verb", "determiner", "adjective", "adverb"][: 2 + (3 - k) * (k < 3)]
            values = pd.Series(rng.choice(levels, n_items))
            columns[name] = pd.Categorical(values.mask(rng.random(n_items) < 0.1 * (k > 3)))
    frame = pd.DataFrame(columns, index=items.index)
    sentences = pd.Series(texts, index=[f"s{k}" for k in range(n_sentences)])
    return Stimuli(frame, items=items, sentences=sentences)


def plant_profile(
    system: str,
    n_layers: int,
    features: Sequence[str],
    rng: np.random.Generator,
    *,
    other: bool,
    n_folds: int = 5,
) -> Profile:
    """Importances that run smoothly over depth; `other` moves the weight to the features in the middle."""
    depth = relative_depth(n_layers)[:, None]
    rank = np.arange(len(features))[None, :]
    early, late = 0.30 * 0.55**rank, 0.30 * 0.55 ** np.abs(rank - 1)
    if other:
        late = 0.34 * 0.5 ** np.abs(rank - len(features) // 2)
    mean = early * (1 - depth) + late * depth
    noise = rng.normal(0, 0.008, (n_layers, n_folds, len(features)))
    scores = 0.75 - 0.25 * depth + rng.normal(0, 0.01, (n_layers, n_folds))
    draws = rng.normal(0, 0.012, (40, n_layers, len(features)))
    correlations = np.full((len(features), len(features)), 0.05) + 0.95 * np.eye(len(features))
    return Profile(
        system=system,
        layers=tuple(range(n_layers)),
        features=tuple(features),
        importance=mean[:, None, :] + noise,
        scores=scores,
        settings={"preset": "default", "distance": "euclidean", "folds": 5, "alpha": "cv"},
        stimuli_digest="0" * 64,
        collinearity=Collinearity(tuple(features), correlations, np.full(len(features), 1.2)),
        diagnostics=LayerDiagnostics(
            ceiling=np.full(n_layers, 0.93), duplicated=np.zeros(n_layers), top_share=np.full(n_layers, 0.04)
        ),
        replicates=Replicates(
            scores=scores.mean(axis=1) + rng.normal(0, 0.005, (40, n_layers)),
            importance=mean + draws,
            halves=(mean + draws[:20]).reshape(10, 2, *mean.shape),
            parts=10,
        ),
        metadata={"model": system, "revision": "main"},
    )


def plant_comparison(
    systems: dict[str, int] = SYSTEMS,
    features: Sequence[str] = FEATURES,
    *,
    n_sentences: int = 250,
    n_mapped: int = 300,
    seed: int = 0,
) -> Comparison:
    rng = np.random.default_rng(seed)
    names = tuple(systems)
    stimuli = plant_stimuli(n_sentences, features, rng)
    profiles = {
        name: plant_profile(name, n, features, rng, other=name == names[-1] and len(names) > 1)
        for name, n in systems.items()
    }
    rows = tuple(row for profile in profiles.values() for row in profile.rows)
    n = len(rows)
    means = np.concatenate([profile.mean_importance for profile in profiles.values()])
    contributions = contribution_matrix(means)
    tau = contributions.sum(axis=2)
    depth = np.concatenate([relative_depth(k) for k in systems.values()])
    owner = np.array([names.index(system) for system, _ in rows])
    rsa = 0.95 - 0.4 * np.abs(depth[:, None] - depth[None]) - 0.3 * (owner[:, None] != owner[None])
    rsa = (rsa + 0.1 * tau) / 1.05
    np.fill_diagonal(rsa, 1.0)
    upper = np.triu_indices(n, 1)
    reliability = np.concatenate([profile.reliability for profile in profiles.values()])
    ceiling = np.sqrt(np.outer(reliability, reliability))
    by_features = SimilarityMatrix(
        measure="features",
        rows=rows,
        values=tau,
        p_block=np.clip(1.4 - tau, 0.002, 1),
        low=tau - 0.1,
        high=np.minimum(tau + 0.08, 1),
        blocks=tuple(plant_blocks(tau, owner, names, rows)),
        settings={"features": tuple(features), "n_relabellings": 40320},
        ceiling=ceiling,
    )
    by_geometry = SimilarityMatrix(measure="rsa", rows=rows, values=rsa)
    angle = np.linspace(0, 2 * np.pi, n_mapped)
    words = np.stack(
        [
            np.c_[np.cos(angle + k) * (1 + 0.2 * k), np.sin(angle) * 2] + rng.normal(0, 0.3, (n_mapped, 2))
            for k in range(n)
        ]
    )
    far = np.abs(means[:, None] - means[None]).sum(axis=2)
    coordinates = np.c_[depth + owner, depth**2 - owner * 0.3]
    system_far = np.array(
        [
            [far[owner == a][:, owner == b].mean() * (a != b) for b in range(len(names))]
            for a in range(len(names))
        ]
    )
    mapped = list(stimuli.items.index[:: max(1, len(stimuli) // n_mapped)][:n_mapped])
    return Comparison(
        stimuli=stimuli,
        profiles=profiles,
        matrices={"features": by_features, "rsa": by_geometry},
        contributions=contributions,
        explained_share=np.clip(0.5 + 0.3 * tau, 0, 1),
        agreements=(
            Agreement(
                a="features",
                b="rsa",
                rho=float(spearmanr(tau[upper], rsa[upper]).statistic),
                p_smooth=0.012,
                q_smooth=0.012,
                expected=0.35,
                rho_between=0.41,
                n_surrogates=199,
            ),
        ),
        layer_maps={
            "features": LayerMap("features", rows, coordinates, 0.08),
            "rsa": LayerMap("rsa", rows, coordinates[:, ::-1].copy(), 0.14),
        },
        word_maps=WordMaps(rows, tuple(mapped), words, np.full((n, 2), [0.31, 0.12])),
        trajectories=TrajectoryDistances(
            systems=names,
            euclidean=system_far,
            warped=system_far * 0.8,
            coordinates=np.c_[np.arange(len(names)), np.arange(len(names)) % 2],
            stress=0.01,
        ),
        correlations=pd.DataFrame(
            0.1 * np.cos(np.arange(len(features))[:, None] - np.arange(len(features))[None])
            + 0.9 * np.eye(len(features)),
            index=list(features),
            columns=list(features),
        ),
        cautions=(
            Caution(
                "few-features", "With 8 features, chance alone reaches τ_w = 0.56 in one pair in twenty."
            ),
            Caution(
                "low-score", "gamma:12: the features predict little of the distances (ρ = 0.18).", ("gamma",)
            ),
        ),
        precision=pd.DataFrame({"items": [500, 1500, 5000], "score_width": [0.06, 0.03, 0.02]}),
        settings={"preset": "default", "distance": "euclidean", "seed": 0, "bootstrap": 40},
        versions={"thinkalike": "0.1.0", "numpy": np.__version__, "python": "3.11"},
    )


def plant_blocks(
    tau: np.ndarray, owner: np.ndarray, names: Sequence[str], rows: Sequence[tuple]
) -> list[BlockTest]:
    blocks = []
    for a in range(len(names)):
        for b in range(a, len(names)):
            first, second = np.flatnonzero(owner == a), np.flatnonzero(owner == b)
            values = tau[np.ix_(first, second)].copy()
            if a == b:
                np.fill_diagonal(values, np.nan)
            if np.isnan(values).all():
                continue
            i, j = np.unravel_index(int(np.nanargmax(values)), values.shape)
            mean = float(np.nanmean(values))
            blocks.append(
                BlockTest(
                    a=names[a],
                    b=names[b],
                    mean=mean,
                    p_mean=0.004 if mean > 0.4 else 0.4,
                    q=float("nan") if a == b else (0.012 if mean > 0.4 else 0.4),
                    maximum=float(np.nanmax(values)),
                    p_maximum=0.01,
                    q_maximum=float("nan") if a == b else 0.03,
                    layer_a=rows[first[i]][1],
                    layer_b=rows[second[j]][1],
                    null_95=0.42,
                    n_relabellings=40320,
                    exact=True,
                    control=0.21,
                    low=mean - 0.08,
                    high=mean + 0.05,
                )
            )
    return blocks


@pytest.fixture(scope="session")
def planted() -> Comparison:
    return plant_comparison()


@pytest.fixture(scope="session")
def plant() -> Callable[..., Comparison]:
    return plant_comparison
