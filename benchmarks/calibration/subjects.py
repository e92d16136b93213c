"""Groups of subjects beside a model: level, power, coverage and ceilings, in worlds where the truth is known.

A subject's responses are the items' places in a shared space, seen through weights of its own, and noise. The
model is another space, or the shared one.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

import thinkalike as ta
from benchmarks.calibration.claims import Claim, Simulation
from thinkalike.measures import layer_measures

SUBJECTS, ITEMS, UNITS, SPACE = 8, 30, 12, 4


def subjects_of(
    rng: np.random.Generator, shared: np.ndarray, *, n: int = SUBJECTS, noise: float = 1.0, own: float = 0.0
) -> np.ndarray:
    """(n, n_items, UNITS): the shared places weighted anew, places of one's own, and noise."""
    items, d = shared.shape
    places = np.sqrt(1 - own) * shared + np.sqrt(own) * rng.normal(size=(n, items, d))
    return places @ rng.normal(size=(n, d, UNITS)) / np.sqrt(d) + noise * rng.normal(size=(n, items, UNITS))


def p_values(
    n_draws: int, seed: int, *, own: float, related: float, items: int = ITEMS, measure: str = "rsa"
) -> np.ndarray:
    """(n_draws, 3) p over subjects, items and both, for a model that shares a part of the space."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_draws):
        shared = rng.normal(size=(items, SPACE))
        model = np.sqrt(related) * shared + np.sqrt(1 - related) * rng.normal(size=shared.shape)
        people = subjects_of(rng, shared, own=own)
        made = ta.compare_with_group(people, {"model": model}, measure=measure, permutations=199)
        table = made.table(over="subjects")
        found.append(table[["p_subjects", "p_items", "p_both"]].to_numpy()[0])
    return np.array(found)


def level(n_draws: int, seed: int) -> list[Claim]:
    """No effect: subjects who share nothing, and subjects who share what the model does not have."""
    claims = []
    for own, world in ((1.0, "subjects share nothing"), (0.0, "subjects share another space")):
        claims += _levels(p_values(n_draws, seed, own=own, related=0.0), world, shared=own == 0.0)
    return claims


def _levels(p: np.ndarray, world: str, *, shared: bool) -> list[Claim]:
    """Of p (n_draws, 3) over subjects, items and both, where there is no effect."""
    claims = []
    for k, over in enumerate(("subjects", "items", "both")):
        goal = (0.03, 0.07)
        if over == "both":
            goal = (0.0, 0.07)  # the larger of two p: never more often, at times less
        if over == "subjects" and shared:
            goal = (0.0, 1.0)  # it holds for these items only, which chance made alike or not: shown
        claims.append(Claim(f"p ≤ 0.05 over {over}", world, *goal, float((p[:, k] <= 0.05).mean()), len(p)))
    return claims


CHANCE_IS_NOT_0 = ("mutual-knn", "procrustes", "cka-biased")
"""Measures that are above 0 for anything"""


def level_of(n_draws: int, seed: int, *, measure: str) -> list[Claim]:
    """The same for a measure that unrelated layers do not have at 0, and which is held against chance."""
    claims = []
    for own, shares in ((1.0, "nothing"), (0.0, "another space")):
        p = p_values(n_draws, seed, own=own, related=0.0, measure=measure)
        claims += _levels(p, f"{measure}, subjects share {shares}", shared=own == 0.0)
    return claims


LEVELS = (2, 2, 3, 3, 4, 5)
"""Of the features: unlike, so that some differ in more pairs and are more important in every system"""
ORDERS = (
    "subjects share nothing",
    "subjects share another order",
    "the features explain nothing of the model",
)


def level_by_features(n_draws: int, seed: int, *, world: str) -> list[Claim]:
    """No effect on τ_w: every system ranks the features in an order of its own, drawn by chance."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_draws):
        table = pd.DataFrame({f"f{k}": rng.integers(0, n, 60).astype(str) for k, n in enumerate(LEVELS)})
        codes = table.astype(int).to_numpy()
        order = rng.permutation(len(LEVELS))
        orders = [rng.permutation(len(LEVELS)) if world == ORDERS[0] else order for _ in range(SUBJECTS)]
        people = np.stack([ranked_by(rng, codes, one) for one in orders])
        model = ranked_by(rng, codes, rng.permutation(len(LEVELS)))
        if world == ORDERS[2]:
            model = rng.normal(size=model.shape)
        made = ta.compare_with_group(people, {"m": model}, table, measure="features", resamples=0)
        found.append(made.table(over="subjects")[["p_subjects", "p_items", "p_both"]].to_numpy()[0])
    p = np.array(found)
    if world != ORDERS[2]:
        return _levels(p, f"τ_w, {world}", shared=world == ORDERS[1])
    return [Claim("p ≤ 0.05 over both", f"τ_w, {world}", 0.0, 0.07, float((p[:, 2] <= 0.05).mean()), n_draws)]


def ranked_by(rng: np.random.Generator, codes: np.ndarray, order: np.ndarray) -> np.ndarray:
    """(n_items, UNITS) to which the features (n_items, F) do more or less, in the given order; and noise."""
    strengths = np.linspace(2.0, 0.0, codes.shape[1])[order]
    parts = [
        w * rng.normal(size=(n, UNITS))[column]
        for w, n, column in zip(strengths, LEVELS, codes.T, strict=True)
    ]
    return np.asarray(sum(parts) + rng.normal(size=(len(codes), UNITS)))


def power(n_draws: int, seed: int) -> list[Claim]:
    """A model that shares a part of the space, with more and fewer items."""
    claims = []
    for items in (8, 15, 30):
        p = p_values(n_draws, seed, own=0.0, related=0.5, items=items)
        for k, over in enumerate(("subjects", "items", "both")):
            hit = float((p[:, k] <= 0.05).mean())
            claims.append(
                Claim(f"power over {over}", f"half of the space, {items} items", 0.0, 1.0, hit, n_draws)
            )
    return claims


def coverage(n_draws: int, seed: int) -> list[Claim]:
    """95 % ranges of the mean score hold that of many subjects and items."""
    rng = np.random.default_rng(seed)
    held: dict[str, list[bool]] = {"subjects": [], "both": []}
    truth = _mean_score(rng, 60, 40)
    for _ in range(n_draws):
        shared = rng.normal(size=(ITEMS, SPACE))
        model = np.sqrt(0.5) * (shared + rng.normal(size=shared.shape))
        found = ta.compare_with_group(subjects_of(rng, shared), {"model": model}, permutations=19)
        for over, kept in held.items():
            row = found.table(over=over).iloc[0]
            kept.append(bool(row["low"] <= truth <= row["high"]))
    goals = {"subjects": (0.0, 1.0), "both": (0.92, 0.98)}
    return [
        Claim(
            f"95 % range over {over} holds the score",
            "half of the space",
            *goals[over],
            float(np.mean(v)),
            n_draws,
        )
        for over, v in held.items()
    ]


def _mean_score(rng: np.random.Generator, items: int, draws: int) -> float:
    """The score to be expected of other subjects and items: RSA moves little with their number."""
    from scipy.spatial.distance import pdist
    from scipy.stats import spearmanr

    scores = []
    for _ in range(draws * 10):
        shared = rng.normal(size=(items, SPACE))
        model = np.sqrt(0.5) * (shared + rng.normal(size=shared.shape))
        person = subjects_of(rng, shared, n=1)[0]
        scores.append(spearmanr(pdist(person), pdist(model)).statistic)
    return float(np.mean(scores))


def ceilings(n_draws: int, seed: int) -> list[Claim]:
    """What the true model reaches lies between the ceilings."""
    rng = np.random.default_rng(seed)
    inside, ordered = [], []
    for _ in range(n_draws):
        shared = rng.normal(size=(ITEMS, SPACE))
        # The RDM that subjects share: that of the places, weights being random and the same on average.
        people = subjects_of(rng, shared)
        row = ta.compare_with_group(people, {"true": shared}, permutations=19).table(over="subjects").iloc[0]
        inside.append(row["score"] <= row["ceiling_upper"])
        ordered.append(row["ceiling_lower"] <= row["score"])
    return [
        Claim(
            "the true model is below the upper ceiling",
            "random weights",
            0.95,
            1.0,
            float(np.mean(inside)),
            n_draws,
        ),
        Claim(
            "the true model is above the lower ceiling",
            "random weights",
            0.9,
            1.0,
            float(np.mean(ordered)),
            n_draws,
        ),
    ]


def other_ceilings(n_draws: int, seed: int) -> list[Claim]:
    """The same for measures whose mean subject is all subjects side by side."""
    from thinkalike.comparison.group_ceilings import side_by_side

    rng = np.random.default_rng(seed)
    claims = []
    for measure in ("mutual-knn", "procrustes"):
        row = ta.MEASURES[measure]
        sign = -1.0 if row.kind == "distance" else 1.0
        below, above = [], []
        for _ in range(n_draws):
            shared = rng.normal(size=(ITEMS, SPACE))
            people = list(subjects_of(rng, shared))
            score = sign * np.mean([row(X, shared) for X in people])
            ends = side_by_side(row, people)
            below.append(score <= sign * ends.upper.mean())
            above.append(sign * ends.lower.mean() <= score)
        for name, held, low in (("below the upper", below, 0.95), ("above the lower", above, 0.9)):
            share = float(np.mean(held))
            claims.append(Claim(f"the true model is {name} ceiling", measure, low, 1.0, share, n_draws))
    return claims


def bounds(n_draws: int, seed: int) -> list[Claim]:
    """The same for measures whose lower ceiling is of subjects with one another: bounds and estimates."""
    from thinkalike.comparison.group_ceilings import BEST, measure_ceilings, way_of

    rng = np.random.default_rng(seed)
    rows = [row for name in layer_measures() if not (row := ta.MEASURES[name]).needs_extra]
    of_means = ("mean subject", "mean ranks", "side by side")
    rows = [row for row in rows if way_of(row) not in of_means and row.name != "permutation-procrustes"]
    below: dict[str, list[bool]] = {row.name: [] for row in rows}
    above: dict[str, list[bool]] = {row.name: [] for row in rows}
    for _ in range(n_draws):
        shared = rng.normal(size=(ITEMS, SPACE))
        people = list(subjects_of(rng, shared))
        for row in rows:
            sign = -1.0 if row.kind == "distance" else 1.0
            score = sign * np.mean([row(X, shared) for X in people])
            lower, upper = measure_ceilings(row, people, [shared], [str(k) for k in range(SUBJECTS)])
            below[row.name].append(bool(score <= sign * upper[0]))
            above[row.name].append(bool(sign * lower[0] <= score))
    claims = []
    for row in rows:
        is_estimate = way_of(row) in ("estimate", "held out")
        share = float(np.mean(below[row.name]))
        goal = 0.95 if is_estimate else 1.0
        claims.append(Claim("the true model is below the upper ceiling", row.name, goal, 1.0, share, n_draws))
        # Of few dimensions it may lose to what gains from units, not to as many directions of a subject.
        goal = 0.9 if row.name in BEST else 0.0
        share = float(np.mean(above[row.name]))
        claims.append(Claim("the true model is above the lower ceiling", row.name, goal, 1.0, share, n_draws))
    return claims


def profile_coverage(n_draws: int, seed: int) -> list[Claim]:
    """95 % ranges of the mean importance of a feature hold that of other subjects and items.

    The truth is the mean over all draws: what a group of this size and items of this number give on average.
    """
    from thinkalike.comparison.group_profile import profile_group

    rng = np.random.default_rng(seed)
    strengths = {"one": 1.0, "two": 0.5, "three": 0.0}
    found: dict[str, list[np.ndarray]] = {"subjects": [], "both": []}
    for _ in range(n_draws):
        table = pd.DataFrame({name: rng.choice(["a", "b"], 60) for name in strengths})
        shared = rng.normal(size=(60, SPACE))
        codes = {name: (table[name] == "b").to_numpy() for name in strengths}
        people = subjects_of(rng, shared)
        for k in range(SUBJECTS):
            for name, strength in strengths.items():
                people[k] += strength * rng.normal(size=(2, UNITS))[codes[name].astype(int)]
        made = profile_group(people, table)
        for over, kept in found.items():
            kept.append(made.table(over=over)[["importance", "low", "high"]].to_numpy())
    goals = {"subjects": (0.0, 1.0), "both": (0.92, 0.98)}
    claims = []
    for over, rows in found.items():
        stacked = np.stack(rows)  # (n_draws, n_features, 3)
        truth = stacked[:, :, 0].mean(axis=0)
        held = ((stacked[:, :, 1] <= truth) & (truth <= stacked[:, :, 2])).mean(axis=0)
        for name, share in zip(strengths, held, strict=True):
            world = f"strength {strengths[name]}, 60 items"
            claims.append(
                Claim(
                    f"95 % range over {over} holds an importance", world, *goals[over], float(share), n_draws
                )
            )
    return claims


DIFFERENCES = {
    "rsa, both have half of the space": ("rsa", 0.5, 0.5),
    "rsa, one has more of the space": ("rsa", 0.7, 0.3),
    "cka, both have half of the space": ("cka", 0.5, 0.5),
    "cka, one has more of the space": ("cka", 0.7, 0.3),
}
"""Measure, and the share of the space that each of two models has"""


def differences(n_draws: int, seed: int, *, world: str) -> list[Claim]:
    """95 % ranges of by how much one layer scores higher than another; and its p where both score alike.

    The truth is the mean over all draws: what such subjects and items give on average.
    """
    measure, *related = DIFFERENCES[world]
    rng = np.random.default_rng(seed)
    found: dict[str, list[np.ndarray]] = {"subjects": [], "items": [], "both": []}
    for _ in range(n_draws):
        shared = rng.normal(size=(ITEMS, SPACE))
        layers = {
            name: np.sqrt(share) * shared + np.sqrt(1 - share) * rng.normal(size=shared.shape)
            for name, share in zip(("one", "other"), related, strict=True)
        }
        made = ta.compare_with_group(subjects_of(rng, shared), layers, measure=measure, permutations=19)
        for over, kept in found.items():
            row = made.difference(("one", "one"), ("other", "other"), over=over).iloc[0]
            kept.append(row[["difference", "low", "high", "p"]].to_numpy(float))
    claims = []
    for over, rows in found.items():
        difference, low, high, p = np.array(rows).T
        truth = difference.mean()
        held, small = float(((low <= truth) & (truth <= high)).mean()), float((p <= 0.05).mean())
        goals = ((0.92, 0.98), (0.03, 0.07)) if over == "both" else ((0.0, 1.0), (0.0, 1.0))
        claims.append(Claim(f"95 % range over {over} of a difference", world, *goals[0], held, n_draws))
        if related[0] == related[1]:
            claims.append(Claim(f"p ≤ 0.05 of no difference, over {over}", world, *goals[1], small, n_draws))
    return claims


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "subjects-difference": ({name: partial(differences, world=name) for name in DIFFERENCES}, 400),
    "subjects-level": (level, 1600),
    "subjects-level-of-others": ({name: partial(level_of, measure=name) for name in CHANCE_IS_NOT_0}, 400),
    "subjects-level-by-features": (
        {f"world {k}": partial(level_by_features, world=world) for k, world in enumerate(ORDERS, start=1)},
        400,
    ),
    "subjects-power": (power, 200),
    "subjects-coverage": (coverage, 300),
    "subjects-ceilings": (ceilings, 200),
    "subjects-ceilings-side-by-side": (other_ceilings, 200),
    "subjects-ceilings-bounds": (bounds, 200),
    "subjects-profile": (profile_coverage, 400),
}
