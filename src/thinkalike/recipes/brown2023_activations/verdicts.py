"""The statements on GeLU and SoLU, each from losses by document alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd

from thinkalike.recipes.brown2023_activations.losses import Losses
from thinkalike.recipes.brown2023_activations.rules import RULES
from thinkalike.recipes.effects import Effect
from thinkalike.recipes.findings import Statement, decided

GELU, SOLU = "GeLU", "SoLU"
SECOND = "seed 1"
NARROW, WIDE = "narrow", "wide"
LEAST_GAIN = 1e-3
"""Of the loss: a map that gains less over its start has nothing to level off"""

Sizes = Mapping[str, Losses]
"""Size → the losses of its models; those of a second seed are called `GeLU seed 1`"""


def untested(name: str, missing: Sequence[str]) -> Statement:
    """For models that are not here."""
    lacking = ", ".join(missing) or "models that this scale has not"
    return decided(RULES[name], [], comment=f"Not tested: it needs {lacking}.")


def asymmetric(sizes: Sizes) -> Statement:
    """In every size, and for every pair of seeds that was stitched both ways."""
    effects, numbers = [], {}
    for size, losses in sizes.items():
        for gelu, solu in pairs_of_seeds(losses):
            about = f"{size}, {solu} with {gelu}"
            effects.append(losses.effect(losses.asymmetry(solu, gelu), about))
            own = losses.mean(losses.own[solu] - losses.own[gelu])
            numbers[f"own loss of SoLU less that of GeLU, {about}"] = own
            numbers[f"asymmetry of penalties, {about}"] = effects[-1].value + own
    return decided(
        RULES["asymmetry"],
        effects,
        comment="The models' own losses are taken out; the numbers show them, and the penalties with them.",
        numbers=numbers,
    )


def pairs_of_seeds(losses: Losses) -> list[tuple[str, str]]:
    """GeLU and SoLU models, of any seeds, that were stitched both ways."""
    gelus, solus = ([name for name in losses.own if name.startswith(kind)] for kind in (GELU, SOLU))
    return [(g, s) for g, s in product(gelus, solus) if {(g, s), (s, g)} <= set(losses.stitched)]


def self_stitching(sizes: Sizes) -> Statement:
    effects = [
        one.effect(one.penalty(GELU, GELU) - one.penalty(SOLU, SOLU), size) for size, one in sizes.items()
    ]
    return decided(RULES["self-stitching"], effects)


def cross_above_self(sizes: Sizes) -> Statement:
    effects = [
        one.effect(one.penalty(a, b) - one.penalty(GELU, GELU), f"{size}, {a} → {b}")
        for size, one in sizes.items()
        for a, b in ((SOLU, GELU), (GELU, SOLU))
    ]
    return decided(RULES["cross above self"], effects)


def levels_off(curves: pd.DataFrame) -> Statement:
    """curves : rows of size, series, layer, step, split, loss."""
    shares = []
    for _, one in curves[curves["split"] == "validation"].groupby(["size", "series", "layer"]):
        ordered = one.sort_values("step")
        best = ordered["loss"].cummin().to_numpy()
        late = ordered["step"].to_numpy() >= 0.75 * ordered["step"].max()
        gained = best[0] - best[-1]
        shares.append((best[late][0] - best[-1]) / gained if gained > LEAST_GAIN else 0.0)
    effect = Effect.over_draws(shares, "maps")
    return decided(RULES["levels off"], [effect], numbers={"worst": float(max(shares))})


def capacity(losses: Losses) -> Statement:
    own = losses.mean(losses.own[NARROW] - losses.own[WIDE])
    return decided(
        RULES["capacity"],
        [losses.effect(losses.asymmetry(NARROW, WIDE))],
        comment="The two models are as deep as each other, and differ in how positions are told too.",
        numbers={"own loss of the narrow less that of the wide": own},
    )


def other_seed(losses: Losses) -> Statement:
    """Seeds crossed with activations: all models here differ in their seed, so none saw the same text."""
    models = {(kind, 0): kind for kind in (GELU, SOLU)}
    models |= {(kind, 1): f"{kind} {SECOND}" for kind in (GELU, SOLU)}
    chosen: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for (a, first), (b, second) in product(models, repeat=2):
        pair = models[a, first], models[b, second]
        if first != second and pair in losses.stitched:
            chosen[a == b].append(losses.penalty(*pair))
    gap = np.mean(chosen[False], axis=0) - np.mean(chosen[True], axis=0)
    return decided(
        RULES["other seed"],
        [losses.effect(gap)],
        numbers={
            "another activation and seed": losses.mean(np.mean(chosen[False], axis=0)),
            "another seed": losses.mean(np.mean(chosen[True], axis=0)),
        },
    )


def same_by_squares(task: Sizes, squares: Sizes) -> Statement:
    effects = [
        task[size].effect(one.asymmetry(SOLU, GELU) - task[size].asymmetry(SOLU, GELU), size)
        for size, one in squares.items()
    ]
    return decided(RULES["least squares"], effects)
