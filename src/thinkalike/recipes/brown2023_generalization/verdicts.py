"""The paper's statements on generalization, each a function of numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.inference.clusters import Clusters
from thinkalike.inference.groups import GroupComparison
from thinkalike.recipes.brown2023_generalization.choice import GENERALIZING, HEURISTIC
from thinkalike.recipes.findings import Statement, Verdict
from thinkalike.types import Value

Floats = npt.NDArray[np.float64]
EARLY, LATE = 0.5, 0.75
"""Shares of the layers: up to, and from"""
NO_COST = 0.02
"""What counts as almost no penalty: two points of accuracy"""
LEARNT = 0.8
"""Mean accuracy in distribution, below which nothing can be said of generalization"""
ALPHA = 0.05
GEN_GEN, HEUR_HEUR = f"{GENERALIZING} → {GENERALIZING}", f"{HEURISTIC} → {HEURISTIC}"
RECOVERED = 0.8  # adjusted Rand index: at most one of twenty models in the wrong cluster


def verdict(holds: bool) -> Verdict:
    return "agrees" if holds else "differs"


def spread(inside: Sequence[float], outside: Sequence[float], *, ends: float, enough: float) -> Statement:
    """`ends`: mean of the best chosen − mean of the worst, out of distribution, as found by seed alone."""
    reach_in, reach_out = float(np.ptp(inside)), float(np.ptp(outside))
    learnt = float(np.mean(inside)) >= LEARNT
    holds = ends >= enough and reach_out > 2 * reach_in
    return Statement(
        "Fine-tuned from one model with different seeds, classifiers are alike in distribution and differ "
        "widely out of it, where overlap does not mean entailment.",
        f"In distribution {min(inside):.0%} to {max(inside):.0%} right, out of it {min(outside):.0%} to "
        f"{max(outside):.0%}; the chosen ends are {100 * ends:.0f} points apart."
        + ("" if learnt else " The task itself was not learnt."),
        verdict(holds) if learnt else "cannot be tested",
        {
            "inside_min": min(inside),
            "inside_max": max(inside),
            "outside_min": min(outside),
            "outside_max": max(outside),
            "ends": ends,
        },
        "spread",
    )


def early_stitching(means: pd.DataFrame) -> Statement:
    """`means`: of penalties, from `directed_means` with shares of the layers as `layer`."""
    early = means[means["layer"] <= EARLY]
    worst = _largest(early, "mean")
    return Statement(
        "At early layers identity stitching costs almost nothing, whichever groups the two models are of.",
        f"Up to half of the layers the largest mean cost is {points(worst['mean'])} ({worst['pair']}, "
        f"{worst['layer']:.0%} of the layers from the bottom model).",
        verdict(bool(worst["mean"] <= NO_COST)),
        {"largest_mean_penalty": worst["mean"], "at_share": worst["layer"]},
        "figure-2",
    )


def late_between(separation: pd.DataFrame, means: pd.DataFrame) -> Statement:
    """`separation`: of penalties, between − within groups."""
    best, holds = _late(separation)
    between = means[(means["layer"] == best["layer"]) & ~means["within"]]
    cost = float(between["mean"].mean())
    return Statement(
        "At late layers, from about three quarters on, stitching between generalizing and heuristic models "
        "costs much accuracy.",
        f"With {best['layer']:.0%} of the layers from the bottom model it costs {points(cost)}. "
        f"Between − within groups is {points(best['separation'])} (95 % interval over models "
        f"{num(100 * best['low'], 1)} to {num(100 * best['high'], 1)}, p = {p_text(best['p_any'])}).",
        verdict(holds and cost > NO_COST),
        {**_numbers(best), "penalty_between": cost},
        "figure-2",
    )


def late_within(means: pd.DataFrame) -> Statement:
    late = means[(means["layer"] >= LATE) & means["within"]]
    worst = _largest(late, "mean")
    return Statement(
        "Within the generalizing and within the heuristic models stitching at late layers costs almost "
        "nothing.",
        f"The largest mean cost within a group is {points(worst['mean'])} ({worst['pair']}, "
        f"{worst['layer']:.0%} of the layers).",
        verdict(bool(worst["mean"] <= NO_COST)),
        {"largest_mean_penalty": worst["mean"], "at_share": worst["layer"]},
        "figure-2",
    )


def early_cka(separation: pd.DataFrame) -> Statement:
    """`separation`: of CKA, within − between groups."""
    early = separation[separation["layer"] <= EARLY]
    worst = early.iloc[int(np.argmin(early["p_any"]))]
    return Statement(
        "At early layers CKA does not tell generalizing from heuristic models.",
        f"Up to half of the layers the clearest difference (within − between) is {num(worst['separation'])} "
        f"(p = {p_text(worst['p_any'])}, {worst['layer']:.0%} of the layers).",
        verdict(bool(worst["p_any"] > ALPHA)),
        _numbers(worst),
        "figure-2",
    )


def late_cka(separation: pd.DataFrame) -> Statement:
    best, holds = _late(separation)
    return Statement(
        "At late layers the features of a generalizing and a heuristic model are farther apart than those of "
        "two models of one group. (The text says that CKA between groups exceeds that within; its figure and "
        "argument need the reverse, which is tested here.)",
        f"CKA within − between is {num(best['separation'])} at {best['layer']:.0%} of the layers (95 % "
        f"interval over models {num(best['low'])} to {num(best['high'])}, p = {p_text(best['p_any'])}).",
        verdict(holds),
        _numbers(best),
        "figure-2",
    )


def outside_stitching(means: pd.DataFrame) -> Statement:
    """`means`: of accuracy on the HANS-like set, from `directed_means`."""
    last = means[means["layer"] == means["layer"].max()].set_index("pair")
    good, bad = last.loc[GEN_GEN], last.loc[HEUR_HEUR]
    gap = float(good["mean"] - bad["mean"])
    return Statement(
        "Out of distribution, stitched generalizing models and stitched heuristic models still behave "
        "differently at the last stitching layer.",
        f"At the last layer {GEN_GEN} gets {good['mean']:.0%} right ({good['low']:.0%} to {good['high']:.0%})"
        f", {HEUR_HEUR} {bad['mean']:.0%} ({bad['low']:.0%} to {bad['high']:.0%}).",
        verdict(bool(good["low"] > bad["high"])),
        {"generalizing": good["mean"], "heuristic": bad["mean"], "gap": gap},
        "figure-7",
    )


def two_clusters(distances: GroupComparison) -> Statement:
    """`distances`: between whole models, by CKA."""
    row = distances.separation.iloc[0]
    means = distances.means.set_index("pair")["mean"]
    within = distances.means[distances.means["within"]]["mean"]
    between = float(distances.means[~distances.means["within"]]["mean"].iloc[0])
    holds = bool(between > within.max() and row["p"] <= ALPHA)
    shown = "; ".join(f"{pair} {value:.2f}" for pair, value in means.items())
    return Statement(
        "By the distance from CKA over all layers, generalizing and heuristic models form two clusters.",
        f"Mean distances: {shown}. Between − within is {num(row['separation'])} (95 % interval over models "
        f"{num(row['low'])} to {num(row['high'])}, p = {p_text(row['p'])}).",
        verdict(holds),
        {**{f"mean {pair}": value for pair, value in means.items()}, **_numbers(row)},
        "figure-8",
    )


def recovered(clusters: Mapping[str, Clusters]) -> Statement:
    """`clusters`: what they are from ("CKA", "penalties") → two clusters against the groups."""
    shown = "; ".join(
        f"from {name} {num(one.adjusted_rand, 2)} (p = {p_text(one.p)})" for name, one in clusters.items()
    )
    return Statement(
        "Data in distribution alone, without any from the shifted one, tells which models generalize.",
        f"Two clusters, compared with the groups by the adjusted Rand index (1 the same, 0 chance): {shown}.",
        verdict(all(one.adjusted_rand >= RECOVERED for one in clusters.values())),
        {
            f"{name} {what}": getattr(one, what)
            for name, one in clusters.items()
            for what in ("adjusted_rand", "p")
        },
        "clusters",
    )


def same_in_all_variants(separations: Mapping[str, pd.DataFrame]) -> Statement:
    """`separations`: variant → of CKA, within − between groups."""
    late = {name: _late(one) for name, one in separations.items()}
    shown = "; ".join(
        f"{name} {num(best['separation'])} (p = {p_text(best['p_any'])})" for name, (best, _) in late.items()
    )
    outcomes = {holds for _, holds in late.values()}
    return Statement(
        "The authors read block outputs before the residual is added, with padding, and expect that such "
        "details do not matter.",
        f"Largest late separation (within − between): {shown}.",
        verdict(len(outcomes) == 1),
        {name: float(best["separation"]) for name, (best, _) in late.items()},
        "variants",
        beyond=True,
    )


def barrier_between(found: GroupComparison) -> Statement:
    """`found`: barriers of the loss on straight lines between models."""
    row = found.separation.iloc[0]
    shown = "; ".join(
        f"{pair} {num(mean)}" for pair, mean in zip(found.means["pair"], found.means["mean"], strict=True)
    )
    return Statement(
        "Generalizing and heuristic models lie in different basins of the loss (Juneja et al. 2022, on whom "
        "the paper builds): the straight line between them crosses a barrier, within a group it does not.",
        f"Mean barriers in nats: {shown}. Between − within is {num(row['separation'])} (95 % interval over "
        f"models {num(row['low'])} to {num(row['high'])}, p = {p_text(row['p'])}).",
        verdict(bool(row["separation"] > 0 and row["p"] <= ALPHA)),
        _numbers(row),
        "barriers",
        beyond=True,
    )


def points(share: float) -> str:
    return f"{num(100 * share, 1)} points"


def num(value: float, digits: int = 3) -> str:
    return f"{value:z.{digits}f}".replace("-", "−")  # z: no minus before a rounded 0


def p_text(p: float) -> str:
    return f"{p:.4f}" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def _late(separation: pd.DataFrame) -> tuple[Value, bool]:
    """The late layer where groups are farthest apart, and whether that is more than chance."""
    late = separation[separation["layer"] >= LATE]
    best = _largest(late, "separation")
    return best, bool(best["separation"] > 0 and best["p_any"] <= ALPHA)


def _largest(table: pd.DataFrame, column: str) -> Value:
    """The row with the largest value."""
    return table.iloc[int(np.argmax(table[column]))]


def _numbers(row: Value) -> dict[str, float]:
    return {name: float(row[name]) for name in ("separation", "low", "high", "p", "p_any")}
