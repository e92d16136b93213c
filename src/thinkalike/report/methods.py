"""How the numbers came about, in plain sentences."""

from __future__ import annotations

from thinkalike.comparison.chart_tables import measure_name
from thinkalike.comparison.comparison import Comparison
from thinkalike.measures import MEASURES
from thinkalike.pairs.preprocessing import describe_steps
from thinkalike.report.geometry import METHOD as GEOMETRY
from thinkalike.report.geometry import geometry_table
from thinkalike.report.pairs import geometric_measure
from thinkalike.stimuli.table import Stimuli
from thinkalike.wording import listed

SHOWN = "What was shown"
STEPS = (
    "Before anything else",
    "Vectors go through these steps: {steps}. For importances and ρ each step is fitted on the items of the "
    "training folds and applied to all; for likeness by geometry, maps and diagnostics on all items.",
)
IMPORTANCE = (
    "Importance",
    "For each layer, a metric-learning encoding model predicts how far apart two items are from the "
    "features in which they differ (Jalouzot et al. 2024; Salle et al. 2024). ρ is the Spearman "
    "correlation of predicted and true distances on held-out items. The importance of a feature is how "
    "much ρ drops when that feature is permuted. The ceiling is the ρ that a perfect model could reach,"
    " estimated from halves of the units.",
)
TAU = (
    "Likeness by features, τ_w",
    "Two layers are alike when the same features rank high in both: Kendall's τ of the two importance "
    "profiles, weighted so that the top ranks count most (Vigna 2015). It runs from −1 to 1 and is an "
    "exact sum over features, which the bars show.",
)
CHANCE = (
    "Chance",
    "With {n_features} features, rankings agree by accident more often than one expects. The null deals the "
    "strengths of the features (what each does to a distance when it differs) of one whole system to the "
    "features in other orders, for all its layers together. q of two systems compares the mean of their "
    "block with that null, and is corrected for the number of pairs of systems (Benjamini–Hochberg). The p "
    "of a single pair of layers is corrected for all pairs of layers of the two systems. No p is given of "
    "fewer than five features, or where they explain nothing.",
)
RSA = (
    "Likeness by geometry, RSA",
    "The Spearman correlation of all distances between items in one layer with those in the other "
    "(Kriegeskorte et al. 2008). The share that the features explain comes from regressing both sets of"
    " distance ranks on the same feature differences: what the two predictions share, over what the ranks "
    "share. Ranks are no sum over features, so that features which are all that two layers have in common "
    "may come out below 100 %.",
)
RANGES = (
    "Uncertainty",
    "All ranges are of 95 % and over other sentences like these: everything is computed again without each "
    "tenth of the sentences (jackknife). τ_w jumps where two features change places; its ranges, and whether "
    "two pairs are tied, come from importances with noise of the size that the jackknife found. The ceiling "
    "of a τ_w is what two layers alike in truth would reach with so many sentences: from the τ_w of profiles "
    "of halves of the sentences, stepped up by Spearman and Brown.",
)
MAPS = (
    "Maps",
    "Layers are placed by multidimensional scaling so that near means alike; words by classical "
    "multidimensional scaling of their vectors. Directions have no meaning, only distances.",
)
UNTRAINED = (
    "Untrained copies",
    "The same architectures with random weights, shown the same items: what architecture and stimuli "
    "give without any learning.",
)
TRAJECTORIES = (
    "Profile distance",
    "Between two systems of any depths: the root mean squared difference of their importance profiles "
    "along the best monotone alignment of their layers (dynamic time warping).",
)


def _other_measures(comparison: Comparison) -> dict[tuple[str, str], bool]:
    """What each measure besides τ_w and RSA asks, and who made it."""
    names = [name for name in comparison.matrices if name in MEASURES and name != "rsa"]
    return {
        (
            f"Likeness by geometry, {measure_name(name)}",
            f"{MEASURES[name].question} ({MEASURES[name].reference}).",
        ): True
        for name in names
    }


def methods(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """Heading and text of what applies to this comparison; its settings stand in a table of their own."""
    several = len(comparison.systems) > 1
    shown = (SHOWN, _shown(comparison.stimuli))
    steps = tuple(comparison.settings.get("steps", ()))
    chance = (CHANCE[0], CHANCE[1].format(n_features=len(comparison.features)))
    resampled = any(profile.replicates is not None for profile in comparison.profiles.values())
    parts = {
        shown: len(comparison.stimuli.sentences) > 0,
        (STEPS[0], STEPS[1].format(steps=describe_steps(steps))): bool(steps),
        IMPORTANCE: True,
        TAU: True,
        chance: True,
        RSA: geometric_measure(comparison) == "rsa",
        **_other_measures(comparison),
        GEOMETRY: bool(geometry_table(comparison)),
        RANGES: resampled,
        MAPS: bool(comparison.layer_maps) or comparison.word_maps is not None,
        UNTRAINED: comparison.controls is not None,
        TRAJECTORIES: several,
    }
    return tuple(part for part, applies in parts.items() if applies)


def _shown(stimuli: Stimuli) -> str:
    """A word on the sentences, with the first, a middle and the last as examples."""
    sentences = list(dict.fromkeys(stimuli.sentences))
    places = dict.fromkeys([0, len(sentences) // 2, len(sentences) - 1])
    examples = listed([f"“{sentences[k]}”" for k in places]) if sentences else ""
    return (
        f"{len(stimuli):,} words in {len(stimuli.sentences):,} sentences, such as {examples}. The vector "
        "of a word is what a layer holds at its place in the sentence."
    )
