"""From numbers to statements: what Salle et al. 2024 say of their three models, tested on ours.

A *table* is the importance of one model's features: layers (rows, in order) × features (columns). Every
function here is pure, and each of its statements can come out as `agrees` or as `differs`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from thinkalike.inference.agreement import Agreement, spearman
from thinkalike.inference.blocks import Floats, find_blocks
from thinkalike.recipes.findings import Statement
from thinkalike.wording import listed, number, p_text, readable, signed

POS, POSITION, NUMBER = "part_of_speech", "word_position", "number"
MOST = 0.75
"""A feature dominates a model if it is the most important in at least this share of its layers"""
RISE = 1.5
"""A feature rises if it is, from some layer on, at least so many times as important as before"""
MIDDLE = (0.2, 0.8)
"""Depths, from 0 (first layer) to 1 (last), that count as the middle of a model"""
CLEAR = 0.1
"""The least difference in a share of variance that can be seen on a map"""
STRONG = 0.5
"""Features are told apart badly when their differences correlate more than this"""

Tables = Mapping[str, pd.DataFrame]


def blocks_of(table: pd.DataFrame) -> pd.DataFrame:
    """The table without the embeddings, layer 0."""
    return table.drop(index=0, errors="ignore")


def dominant(table: pd.DataFrame) -> list[str]:
    """The most important feature of every layer."""
    return [str(name) for name in table.idxmax(axis=1)]


def pos_in_transformers(tables: Tables) -> Statement:
    """Part of speech is the most important feature in (most of) the layers of every Transformer."""
    parts, shares = [], {}
    for name, table in tables.items():
        top = dominant(blocks_of(table))
        count = top.count(POS)
        shares[name] = count / len(top)
        others = sorted(set(top) - {POS}, key=lambda f: -top.count(f))
        rest = f" (else {listed([readable(f) for f in others])})" if others else ""
        parts.append(f"{count} of {len(top)} layers of {name}{rest}")
    return Statement(
        paper="Part of speech is the dominant feature across the layers of the Transformers.",
        found=f"It is the most important feature in {listed(parts)}.",
        verdict="agrees" if min(shares.values()) >= MOST else "differs",
        numbers={f"share of layers, {name}": share for name, share in shares.items()},
        figure="profiles",
    )


def pos_at_the_ends(name: str, table: pd.DataFrame, after_norm: str | None) -> Statement:
    """In Mamba part of speech dominates only the first and the last layer.

    Parameters
    ----------
    after_norm : the dominant feature after the model's final norm, which some versions of transformers count
        as the last layer; None if it was not looked at.
    """
    holds, counts = [], {}
    for label, layers in (("first block", blocks_of(table)), ("embeddings", table)):
        top = dominant(layers)
        last = POS in (top[-1], after_norm)
        between = top[1:-1].count(POS) / max(1, len(top) - 2)
        holds.append(top[0] == POS and last and between <= 1 - MOST)
        counts[label] = between
    top = dominant(blocks_of(table))
    ends = [w for w, feature in (("first", top[0]), ("last", top[-1])) if feature == POS]
    at = f"at the {listed(ends)} layer" if ends else "at neither end"
    norm = "" if after_norm is None else f"; after the final norm {readable(after_norm)} dominates"
    return Statement(
        paper="In Mamba part of speech dominates only in the first and the last layer.",
        found=(
            f"In {name} it dominates {at}, and in {top[1:-1].count(POS)} of the {len(top) - 2} layers between"
            f"{norm}. Counting from the embeddings, as some versions of transformers do, "
            f"{'changes that' if holds[0] != holds[1] else 'does not change the verdict'}."
        ),
        verdict="agrees" if any(holds) else "differs",
        numbers={
            "share of layers between": counts["first block"],
            "share of layers between, embeddings counted": counts["embeddings"],
        },
        figure="profiles",
    )


def step_of(values: Floats) -> tuple[int, float, float]:
    """Where a sequence steps from one level to another: first place after, mean before, mean after."""
    costs = [
        ((values[:k] - values[:k].mean()) ** 2).sum() + ((values[k:] - values[k:].mean()) ** 2).sum()
        for k in range(1, len(values))
    ]
    k = 1 + int(np.argmin(costs))
    return k, float(values[:k].mean()), float(values[k:].mean())


def position_rises(name: str, table: pd.DataFrame, spread: pd.DataFrame) -> Statement:
    """Word position becomes much more important at a layer in the middle of Mamba.

    Parameters
    ----------
    spread : standard deviations of the importances over folds, laid out like `table`.
    """
    values = blocks_of(table)[POSITION].to_numpy(np.float64)
    place, before, after = step_of(values)
    depth = place / max(1, len(values) - 1)
    noise = float(np.nanmean(blocks_of(spread)[POSITION]))
    rises = after >= RISE * max(before, 0.0) and after - before > noise
    middle = MIDDLE[0] <= depth <= MIDDLE[1]
    layer = blocks_of(table).index[place]
    change = "rises" if after > before else "falls"
    return Statement(
        paper="The importance of word position rises sharply in the middle of Mamba (around layer 10 of 24).",
        found=(
            f"In {name} the largest step is at layer {layer} ({100 * depth:.0f} % of the depth): importance "
            f"{change} from {before:.3f} to {after:.3f}, with a spread over folds of {noise:.3f}."
        ),
        verdict="agrees" if rises and middle else "differs",
        numbers={"before": before, "after": after, "depth of the step": depth, "spread": noise},
        figure="profiles",
    )


def two_blocks(similarities: Mapping[str, Floats], state_space: str) -> Statement:
    """By features, the low and the high layers of Mamba form two blocks.

    Parameters
    ----------
    similarities : τ_w between the blocks (layers 1 … L) of each model.
    """
    paper = "By features, Mamba's layers form two blocks, low and high."
    found = {name: find_blocks(matrix, n_blocks=(2,), smallest=2) for name, matrix in similarities.items()}
    mamba = found[state_space]
    if mamba is None:
        return Statement(paper, f"{state_space} has too few layers for two blocks.", "cannot be tested")
    others = {n: b for n, b in found.items() if n != state_space and b is not None}
    low, high = mamba.lengths
    than = "less" if mamba.better else "as much"
    beside = listed([f"{signed(b.contrast)} in {n}" for n, b in others.items()]) if others else "–"
    return Statement(
        paper=paper,
        found=(
            f"The best cut of {state_space} is between layers {low} and {low + 1}: τ_w is "
            f"{number(mamba.within)} within and {number(mamba.between)} between the two blocks (difference "
            f"{signed(mamba.contrast)}; {beside}). Layers at random places on a line look "
            f"{than} like blocks ({p_text(mamba.p)})."
        ),
        verdict="agrees" if mamba.better else "differs",
        numbers={
            "low layers": low,
            "high layers": high,
            "within": mamba.within,
            "between": mamba.between,
            "variance explained by blocks": mamba.explained,
            "variance explained by distance": mamba.by_distance,
            "p of the blocks": mamba.p,
            **{f"contrast, {name}": blocks.contrast for name, blocks in others.items()},
        },
        figure="similarity",
    )


def variance_by_level(points: Floats, levels: list[str | float | None]) -> float:
    """η²: the share of the variance of points (n, k) that lies between levels; items without one left out."""
    known = [k for k, level in enumerate(levels) if level is not None]
    codes = pd.factorize(np.array([str(levels[k]) for k in known], dtype=object))[0]
    chosen = points[known] - points[known].mean(axis=0)
    total = float((chosen**2).sum())
    sums = np.stack([np.bincount(codes, weights=axis) for axis in chosen.T], axis=1)
    between = float((sums**2 / np.bincount(codes)[:, None]).sum())
    return between / total if total > 0 else 0.0


def maps_by_position(name: str, low: tuple[int, float], high: tuple[int, float]) -> Statement:
    """Word position separates the words of a high layer, and not those of a low one.

    Parameters
    ----------
    low, high : a layer, and the share of the variance of its map of words that lies between positions.
    """
    return Statement(
        paper="On a map of the words, position separates them in Mamba's higher layers and not in the lower.",
        found=(
            f"Positions carry {100 * low[1]:.0f} % of the variance of the map at layer {low[0]} of {name}, "
            f"and {100 * high[1]:.0f} % at layer {high[0]}."
        ),
        verdict="agrees" if high[1] - low[1] >= CLEAR else "differs",
        numbers={f"layer {low[0]}": low[1], f"layer {high[0]}": high[1]},
        figure="words-by-position",
    )


def number_falls(tables: Tables) -> Statement:
    """Grammatical number matters less and less from early to late layers, in all models."""
    falls, parts = {}, []
    for name, table in tables.items():
        values = blocks_of(table)[NUMBER].to_numpy(np.float64)
        rho = spearman(np.arange(len(values), dtype=np.float64), values)
        third = max(1, len(values) // 3)
        early, late = float(values[:third].mean()), float(values[-third:].mean())
        falls[name] = (rho, early, late)
        parts.append(f"{_signed(early)} to {_signed(late)} in {name}")
    agrees = all(rho < 0 and late < early and early > 0 for rho, early, late in falls.values())
    return Statement(
        paper="The importance of grammatical number tends to fall from early to late layers in all models.",
        found=f"From the first third of the layers to the last it goes from {listed(parts)}.",
        verdict="agrees" if agrees else "differs",
        numbers={
            f"rank correlation with depth, {name}": rho
            for name, (rho, _, _) in falls.items()
            if np.isfinite(rho)  # there is none where all layers are alike
        },
        figure="profiles",
    )


def matrices_agree(found: Agreement) -> Statement:
    """The matrices by features and by geometry tell the same story overall (ρ = 0.69)."""
    return Statement(
        paper="Similarity by features and by geometry agree overall (ρ = 0.69).",
        found=(
            f"ρ = {number(found.rho)} over all pairs of layers, {number(found.rho_between)} between models. "
            f"Unrelated trajectories as smooth as these give {number(found.expected)} on average "
            f"({p_text(found.p_smooth)})."
        ),
        verdict="agrees" if found.rho > 0 and found.p_smooth <= 0.05 else "differs",
        numbers={"rho": found.rho, "rho between models": found.rho_between, "p": found.p_smooth},
        figure="similarity",
    )


def features_predict(scores: Mapping[str, Floats]) -> Statement:
    """The features predict the distances in every layer: ρ on held-out data.

    Parameters
    ----------
    scores : ρ of each model, (n_layers, n_folds).
    """
    means = {name: values.mean(axis=1) for name, values in scores.items()}
    parts = [f"{number(m.min())} to {number(m.max())} in {name}" for name, m in means.items()]
    every = all((values > 0).all() for values in scores.values())
    return Statement(
        paper="The features predict the distances between words; the score is Spearman's ρ on held-out data "
        "(the paper prints no values).",
        found=f"ρ is {listed(parts)}; "
        f"{'above 0 in every fold of every layer' if every else 'not always above 0'}.",
        verdict="agrees" if every else "differs",
        numbers={
            f"{w} ρ, {n}": float(f(m))
            for n, m in means.items()
            for w, f in (("lowest", np.min), ("highest", np.max))
        },
        figure="profiles",
    )


def most_alike(
    pair: tuple[str, str], tau: float, tops: tuple[str, str], transformers: list[str]
) -> Statement:
    """The most alike layers of two models share part of speech as their dominant feature.

    Parameters
    ----------
    pair : the two layers, `model:layer`.
    tops : the dominant feature of each.
    """
    owners = {name.rpartition(":")[0] for name in pair}
    return Statement(
        paper="The most alike layers of two models are of the two Transformers (GPT-2 layer 8 and BERT "
        "layer 4, τ_w = 0.77), and part of speech dominates both.",
        found=f"{pair[0]} and {pair[1]}, τ_w = {number(tau)}; {_tops(pair, tops)}.",
        verdict="agrees" if tops == (POS, POS) and owners == set(transformers) else "differs",
        numbers={"tau": tau},
        figure="most-alike",
    )


def least_alike(pair: tuple[str, str], tau: float, tops: tuple[str, str], state_space: str) -> Statement:
    """The least alike layers are one of Mamba and one of a Transformer, and they part over part of speech."""
    owners = {name.rpartition(":")[0] for name in pair}
    parted = tops[0] != tops[1] and POS in tops
    return Statement(
        paper="The least alike are a layer of Mamba and one of a Transformer (Mamba layer 8 and BERT layer "
        "4, τ_w = −0.24), and they part over part of speech.",
        found=f"{pair[0]} and {pair[1]}, τ_w = {number(tau)}; {_tops(pair, tops)}.",
        verdict="agrees" if state_space in owners and parted else "differs",
        numbers={"tau": tau},
        figure="least-alike",
    )


def features_apart(correlations: pd.DataFrame) -> Statement:
    """The features of the stimuli can be told apart (Figure S5)."""
    values = correlations.to_numpy(np.float64).copy()
    np.fill_diagonal(values, np.nan)
    i, j = np.unravel_index(np.nanargmax(np.abs(values)), values.shape)
    names = [readable(str(name)) for name in correlations.columns]
    top, median = float(values[i, j]), float(np.nanmedian(np.abs(values)))
    return Statement(
        paper="The features were checked for correlations, so that their contributions can be told apart.",
        found=(
            f"Half of the correlations between differences are below {number(median)} in size; the strongest "
            f"is {number(top)}, of {names[i]} and {names[j]}."
        ),
        verdict="agrees" if abs(top) <= STRONG else "differs",
        numbers={"strongest": top, "median size": median},
        figure="correlations",
    )


def _tops(pair: tuple[str, str], tops: tuple[str, str]) -> str:
    if tops[0] == tops[1]:
        return f"{readable(tops[0])} dominates both"
    return f"{readable(tops[0])} dominates the first, {readable(tops[1])} the second"


def _signed(value: float) -> str:
    """Three digits: importances are small."""
    return f"{value:+z.3f}".replace("-", "−")
