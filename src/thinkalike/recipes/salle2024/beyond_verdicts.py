"""From numbers to statements on what Salle et al. 2024 assumed or left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from thinkalike.inference.agreement import spearman
from thinkalike.inference.blocks import Floats
from thinkalike.recipes.findings import Statement
from thinkalike.wording import listed, number, readable

GAIN = 0.02
"""Interactions matter when they add so much to the held-out ρ of half of the layers"""
SAME_STORY = 0.8
"""Two matrices tell the same story from this rank correlation on"""

INTERACTIONS = "Assumed: features do not interact (a diagonal W); interactions are named as future work."
NATURAL = "Taken for granted: sentences of a grammar stand for natural text."
FEATURE_SET = "Taken for granted: the eight features suffice, and another list would tell the same story."
PRESETS = (
    "Taken for granted: what is left to the code (folds over pairs, scaling, permutations) does not matter."
)
UNTRAINED = "Taken for granted: models are alike because of what they learned."
CHECKPOINTS = "Left open: training. If it makes the profiles, they approach those of the finished model."
POSITIONS = (
    "Left open: positional encodings. If word position comes from them, it falls when they are removed."
)


def interactions(rows: Sequence[Mapping[str, float | str | bool]]) -> Statement:
    """Whether a full W predicts better than a diagonal one.

    Parameters
    ----------
    rows : one per layer: `system`, `layer`, `diagonal` and `full` (held-out ρ), `needed` (whether the whole
        interval of the difference is above 0).
    """
    gains = np.array([float(row["full"]) - float(row["diagonal"]) for row in rows])
    needed = sum(bool(row["needed"]) for row in rows)
    top = rows[int(gains.argmax())]
    return Statement(
        paper=INTERACTIONS,
        found=(
            f"With interactions ρ changes by {np.median(gains):+.3f} in the median layer and by "
            f"{gains.max():+.3f} at most ({top['system']}:{top['layer']}); they are shown to help in "
            f"{needed} of {len(rows)} layers."
        ).replace("-0.", "−0."),
        verdict="agrees" if np.median(gains) < GAIN else "differs",
        numbers={
            "median gain in ρ": float(np.median(gains)),
            "largest gain in ρ": float(gains.max()),
            "layers that need interactions": needed,
            "layers": len(rows),
        },
        figure="interactions",
        beyond=True,
    )


def natural_text(same: float, top: Mapping[str, str], n_words: int) -> Statement:
    """Whether natural text tells the same story as the grammar.

    Parameters
    ----------
    same : rank correlation of the two matrices of τ_w over pairs of layers.
    top : the feature that dominates most layers of each model on natural text.
    """
    parts = [f"{readable(feature)} in {name}" for name, feature in top.items()]
    return Statement(
        paper=NATURAL,
        found=(
            f"On {n_words:,} words of natural text the matrix by features orders the pairs of layers as on "
            f"the grammar at ρ = {number(same)}; most layers are dominated by {listed(parts)}."
        ),
        verdict="agrees" if same >= SAME_STORY else "differs",
        numbers={"rho of the two matrices": same, "words": n_words},
        beyond=True,
    )


def natural_text_untested() -> Statement:
    return Statement(
        paper=NATURAL,
        found="No treebank was given: --set treebank=FILE.conllu shows its sentences too.",
        verdict="cannot be tested",
        beyond=True,
    )


def feature_set(without: Mapping[str, float], with_control: float, control: str) -> Statement:
    """Whether the matrix by features depends on the list of features.

    Parameters
    ----------
    without : rank correlation of the matrix with the whole one, for each feature left out.
    with_control : the same with one more feature, `control`.
    """
    worst = min(without, key=lambda name: without[name])
    lowest = min(without[worst], with_control)
    return Statement(
        paper=FEATURE_SET,
        found=(
            f"The matrix stays at ρ = {number(without[worst])} or more with any feature left out (lowest "
            f"without {readable(worst)}), and at {number(with_control)} with {readable(control)} added."
        ),
        verdict="agrees" if lowest >= SAME_STORY else "differs",
        numbers={
            **{f"rho without {readable(name)}": value for name, value in without.items()},
            f"rho with {readable(control)}": with_control,
        },
        figure="feature-set",
        beyond=True,
    )


def presets(same: float, dominant_same: float, n_sentences: int) -> Statement:
    """Whether the choices of the authors' code lead to the same matrix as ours."""
    return Statement(
        paper=PRESETS,
        found=(
            f"On {n_sentences} sentences the matrices of the authors' choices and of ours order the pairs of "
            f"layers alike at ρ = {number(same)}, and {100 * dominant_same:.0f} % of the layers have the "
            "same dominant feature."
        ),
        verdict="agrees" if same >= SAME_STORY else "differs",
        numbers={"rho of the two matrices": same, "share of layers with the same feature": dominant_same},
        beyond=True,
    )


def untrained(pairs: Mapping[str, tuple[float, float]]) -> Statement:
    """Whether trained models are more alike than copies with random weights.

    Parameters
    ----------
    pairs : for each pair of models, mean τ_w trained and untrained.
    """
    parts = [f"{number(a)} against {number(b)} ({pair})" for pair, (a, b) in pairs.items()]
    return Statement(
        paper=UNTRAINED,
        found=f"Mean τ_w trained against untrained: {listed(parts)}.",
        verdict="agrees" if all(a > b for a, b in pairs.values()) else "differs",
        numbers={f"trained − untrained, {pair}": a - b for pair, (a, b) in pairs.items()},
        figure="untrained",
        beyond=True,
    )


def checkpoints(taus: Mapping[str, float]) -> Statement:
    """Whether profiles come nearer to those of the finished model while it trains.

    Parameters
    ----------
    taus : for each checkpoint in the order of training, mean τ_w of its layers with those of the end.
    """
    values = np.array(list(taus.values()))
    parts = [f"{number(tau)} at {name.partition('@')[2] or name}" for name, tau in taus.items()]
    return Statement(
        paper=CHECKPOINTS,
        found=f"Layers resemble those of the finished model by τ_w = {listed(parts)}.",
        verdict="agrees" if len(values) < 2 or (np.diff(values) > 0).all() else "differs",
        numbers={f"tau, {name}": tau for name, tau in taus.items()},
        figure="checkpoints",
        beyond=True,
    )


def checkpoints_untested(lacking: Sequence[str]) -> Statement:
    return Statement(
        paper=CHECKPOINTS,
        found=f"This installation has no {listed(list(lacking))}: training was not looked at.",
        verdict="cannot be tested",
        beyond=True,
    )


def positions_removed(kept: Mapping[str, Floats], removed: Mapping[str, Floats]) -> Statement:
    """Whether word position loses its importance when position embeddings or rotations are set to 0.

    Parameters
    ----------
    kept, removed : importance of word position in every layer of each model.
    """
    parts = [f"from {kept[n].mean():.3f} to {removed[n].mean():.3f} in {n}" for n in kept]
    return Statement(
        paper=POSITIONS,
        found=(
            "With position embeddings or rotations set to 0 at run time, the mean importance of word "
            f"position goes {listed(parts)}. Models trained without positions were not tested."
        ).replace("-0.", "−0."),
        verdict="agrees" if all(removed[n].mean() < kept[n].mean() for n in kept) else "differs",
        numbers={
            f"{w}, {n}": float(v[n].mean()) for n in kept for w, v in (("kept", kept), ("removed", removed))
        },
        figure="positions",
        beyond=True,
    )


def same_story(first: Floats, second: Floats) -> float:
    """Spearman's ρ of two symmetric matrices over pairs of different layers; NaN in either is left out."""
    i, j = np.triu_indices(len(first), k=1)
    a, b = first[i, j], second[i, j]
    known = np.isfinite(a) & np.isfinite(b)
    return spearman(a[known], b[known])
