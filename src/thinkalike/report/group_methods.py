"""Sentences for the methods section of a paper, of a group of subjects: beside models, or by itself."""

from __future__ import annotations

from collections.abc import Sequence

from thinkalike.comparison.chart_tables import measure_name
from thinkalike.comparison.group import GroupComparison
from thinkalike.comparison.group_profile import GroupProfile
from thinkalike.labels import Layer
from thinkalike.measures import MEASURES
from thinkalike.report.methods_parts import (
    encoding_text,
    layers_text,
    references,
    settings_text,
    steps_text,
    text_of,
)
from thinkalike.wording import listed

MOST_NAMES = 6
"""Regions that are named; of more, the first and the last"""


def group_methods(found: GroupComparison) -> str:
    """What `compare_with_group` did."""
    by_features = found.measure == "features"
    ceilings = str(found.settings["ceilings"]) if len(found.subjects) > 1 else ""
    certainty = _certainty(found)
    parts = (
        _subjects(found.subjects, found.regions, found.n_items),
        _models(found),
        steps_text(found.settings),
        encoding_text(found.settings) if by_features else "",
        _scores(found),
        f"**Noise ceilings.** Lower and upper: {ceilings}." if ceilings else "",
        certainty,
        settings_text(found.settings, found.versions),
    )
    cited = ["thinkalike", *(["salle", "vigna"] if by_features else [])]
    cited += ["bh"] if "Benjamini" in certainty else []
    cited += ["nili"] if "with the mean of" in ceilings else []
    return text_of(parts, references(cited, [] if by_features else [found.measure], found.versions))


def group_profile_methods(found: GroupProfile) -> str:
    """What `profile_group` did."""
    parts = (
        _subjects(found.subjects, found.regions, found.n_items),
        f"**Features.** The items had {len(found.features)} features that were analysed: "
        f"{listed([name.replace('_', ' ') for name in found.features])}.",
        steps_text(found.settings),
        encoding_text(found.settings),
        "**Certainty.** Importances and ρ are means over subjects. Ranges are of 95 % by Student's t: over "
        "other subjects from how subjects differ, over other items from how folds of held-out items differ, "
        "and over both by the sum of the two variances less that of what is left of the table of subjects "
        "and folds.",
        settings_text(found.settings, found.versions),
    )
    return text_of(parts, references(["thinkalike", "salle"], [], found.versions))


def _subjects(subjects: Sequence[str], regions: Sequence[Layer], n_items: int) -> str:
    named = [str(region) for region in regions]
    where = f" in {len(named)} regions ({listed(named)})"
    if len(named) > MOST_NAMES:
        where = f" in {len(named)} regions or points in time ({named[0]} to {named[-1]})"
    if len(named) == 1:
        where = "" if named == ["all"] else f" in one region ({named[0]})"
    people = "One subject was" if len(subjects) == 1 else f"{len(subjects)} subjects were"
    return f"**Subjects.** {people} measured with the same {n_items:,} items{where}."


def _models(found: GroupComparison) -> str:
    layers: dict[str, int] = {}
    for system, _ in found.rows:
        layers[system] = layers.get(system, 0) + 1
    return f"**Models.** {listed([layers_text(name, n) for name, n in layers.items()])}."


def _scores(found: GroupComparison) -> str:
    by = "the weighted Kendall τ of their importance profiles (additive hyperbolic weights; Vigna 2015)"
    if found.measure != "features":
        by = f"{measure_name(found.measure)} ({MEASURES[found.measure].reference})"
    return (
        f"**Scores.** Every subject was compared with every layer of the models by {by}. What is "
        "reported is the mean over subjects."
    )


def _certainty(found: GroupComparison) -> str:
    said = []
    if len(found.subjects) > 1:
        said.append("Ranges are of 95 %: over other subjects by Student's t of how subjects differ")
        if found.without is not None:
            said[-1] += ", over other items from leaving out parts of them (jackknife), and over both"
        elif found.noisy is not None:
            said[-1] += (
                ", over other items from noise as large as leaving out parts of them gave, and over both"
            )
        said[-1] += "."
    if found.measure == "features":
        said.append(
            "Tests are of the weighted τ of the features' strengths: over subjects by one-sided Student's t "
            "of how far it is above its mean over relabellings of the features, over items by these "
            "relabellings."
        )
    elif MEASURES[found.measure].matches_items:
        said.append(
            f"Chance is the mean score over {found.settings['permutations']:,} other orders of the models' "
            "items. p over subjects is of one-sided Student's t of how much better than chance subjects "
            "score, p over items the share of orders with as good a mean score."
        )
    if found.measure == "features" or MEASURES[found.measure].matches_items:
        which = "The larger of the two p" if len(found.subjects) > 1 else "p"
        said.append(f"{which} was corrected for all layers and regions (Benjamini and Hochberg 1995).")
    return f"**Certainty.** {' '.join(said)}" if said else ""
