"""Sentences for the methods section of a paper, from what a run did, with what to cite.

Of a comparison, or of a group of subjects, beside models or by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from thinkalike.comparison.chart_tables import measure_name
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.group import GroupComparison
from thinkalike.comparison.group_profile import GroupProfile
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.labels import Layer
from thinkalike.measures import MEASURES
from thinkalike.pairs.preprocessing import describe_steps
from thinkalike.types import Facts
from thinkalike.wording import listed


def methods_text(result: Comparison | GroupComparison | GroupProfile) -> str:
    """What was done in a comparison, as sentences for a paper and a list of what to cite.

    Parameters
    ----------
    result : of `compare`, `compare_with_group` or `profile_group`, or loaded from where it was saved.

    Returns
    -------
    str
        Markdown: paragraphs in the past tense, all settings, and the references.

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(30, seed=0, grammar="salle2024")
    >>> rng = np.random.default_rng(0)
    >>> systems = {name: {"layer": rng.normal(size=(len(stimuli), 8))} for name in ("a", "b")}
    >>> text = ta.methods_text(ta.compare(systems, stimuli, resamples=0))
    >>> text.splitlines()[0]
    '## Methods'
    """
    if isinstance(result, GroupComparison):
        return group_methods(result)
    if isinstance(result, GroupProfile):
        return group_profile_methods(result)
    parts = (
        _shown(result),
        _systems(result),
        _vectors(result),
        steps_text(result.settings),
        encoding_text(result.settings),
        _likeness(result),
        _geometry(result),
        _certainty(result),
        settings_text(result.settings, result.versions),
    )
    return text_of(parts, _references(result))


def _shown(comparison: Comparison) -> str:
    stimuli = comparison.stimuli
    n_sentences = len(stimuli.sentences)
    words = (
        f"{len(stimuli):,} words in {n_sentences:,} sentences" if n_sentences else f"{len(stimuli):,} items"
    )
    return (
        f"**Stimuli.** All systems were shown the same {words} (SHA-256 of the stimuli: "
        f"{stimuli.digest[:16]}…). The items had {len(comparison.features)} features that were analysed: "
        f"{listed([name.replace('_', ' ') for name in comparison.features])}."
    )


def _systems(comparison: Comparison) -> str:
    said = [layers_text(name, len(profile.layers)) for name, profile in comparison.profiles.items()]
    untrained = ""
    if comparison.controls is not None:
        draws = max(len(made) for made in comparison.controls.profiles.values())
        untrained = (
            f" Copies of the same architectures with random weights ({draws} of each) were shown the same "
            "items."
        )
    return f"**Systems.** {listed(said)}.{untrained}"


def _vectors(comparison: Comparison) -> str:
    """Which states of models were taken; arrays were given as they are."""
    ways: dict[tuple[str, str], list[str]] = {}
    for name, profile in comparison.profiles.items():
        pooling, site = profile.metadata.get("pooling"), profile.metadata.get("site")
        if pooling in POOLINGS and site:
            ways.setdefault((str(pooling), str(site)), []).append(name)
    if not ways:
        return ""
    said = [
        f"{POOLINGS[pooling]} (site: {site}"
        f"{'' if len(names) == len(comparison.profiles) else '; ' + listed(names)})"
        for (pooling, site), names in ways.items()
    ]
    return f"**Vectors.** In each layer, the vector of an item was {'; '.join(said)}."


def _likeness(comparison: Comparison) -> str:
    return (
        "**Likeness by features.** Two layers were compared by the weighted Kendall τ of their importance "
        "profiles (additive hyperbolic weights; Vigna 2015)."
    )


def _geometry(comparison: Comparison) -> str:
    named = [name for name in comparison.matrices if name in MEASURES]
    if not named:
        return ""
    said = listed([f"{measure_name(name)} ({MEASURES[name].reference})" for name in named])
    return f"**Likeness by geometry.** On the same vectors: {said}."


def _certainty(comparison: Comparison) -> str:
    resampled = any(profile.replicates is not None for profile in comparison.profiles.values())
    blocks = comparison.matrices[FEATURES].blocks
    tested = any(block.n_relabellings for block in blocks)
    said = []
    if resampled:
        said.append(
            "Ranges are of 95 % over other sentences of the kind: everything was computed again without each "
            "tenth of them (jackknife)."
        )
    if tested:
        said.append(
            "Likeness by features was tested by relabelling the strengths of the features of one whole "
            "system; p-values were corrected over pairs of systems (Benjamini and Hochberg 1995)."
        )
    tests = [test for matrix in comparison.matrices.values() for test in matrix.tests if test.a != test.b]
    drawn = max((test.n_permutations for test in tests), default=0)
    if any(math.isfinite(test.low) for test in tests):
        said.append(
            "Ranges of likeness by geometry come from leaving out a twentieth of the sentences at a time "
            "(jackknife)."
        )
    if drawn:
        said.append(
            "Likeness by geometry was tested by letting whole sentences of one system change places "
            f"({drawn:,} permutations); p-values were corrected over pairs of systems (Benjamini and "
            "Hochberg 1995)."
        )
    return f"**Certainty.** {' '.join(said)}" if said else ""


def _references(comparison: Comparison) -> list[str]:
    """What every comparison rests on, and what its measures cite."""
    wanted = ["thinkalike", "salle", "vigna", *(["rsa"] if "rsa" in comparison.matrices else []), "bh"]
    others = [name for name in comparison.matrices if name in MEASURES and name != "rsa"]
    return references(wanted, others, comparison.versions)


POOLINGS = {
    "last": "the state at its last token",
    "first": "the state at its first token",
    "mean": "the mean of the states at its tokens",
    "all": "the state at each of its tokens",
    "cls": "the state at the token that stands for the whole sentence",
}
DISTANCES = {
    "euclidean": "squared Euclidean distance",
    "cosine": "cosine distance",
    "correlation": "correlation distance",
    "zscored": "squared Euclidean distance of z-scored units",
    "whitened": "squared Euclidean distance of whitened units",
}
IMPORTANCES = {
    "expected": "the drop in ρ expected when its differences are permuted over pairs",
    "permutation": "the mean drop in ρ when its differences are permuted over pairs",
    "stimuli": "the mean drop in ρ when its values are permuted over items",
    "drop": "the drop in ρ when the model is fitted without it",
    "shapley": "its Shapley value for ρ",
    "conditional": "the drop in ρ when it is permuted given the other features",
}
REFERENCES = {
    "thinkalike": "The thinkalike contributors. thinkalike {version}. Apache-2.0.",
    "salle": "Salle, J., Jalouzot, L., Lan, N., Chemla, E., & Lakretz, Y. (2024). What makes two language "
    "models think alike? arXiv:2406.12620.",
    "vigna": "Vigna, S. (2015). A weighted correlation index for rankings with ties. WWW.",
    "rsa": "Kriegeskorte, N., Mur, M., & Bandettini, P. (2008). Representational similarity analysis. "
    "Frontiers in Systems Neuroscience 2:4.",
    "nili": "Nili, H., Wingfield, C., Walther, A., Su, L., Marslen-Wilson, W., & Kriegeskorte, N. (2014). A "
    "toolbox for representational similarity analysis. PLoS Computational Biology 10, e1003553.",
    "bh": "Benjamini, Y., & Hochberg, Y. (1995). Controlling the false discovery rate. Journal of the Royal "
    "Statistical Society B 57, 289–300.",
}


def layers_text(name: str, n: int) -> str:
    """A system, and how many layers it has."""
    return f"{name} ({n} {'layer' if n == 1 else 'layers'})"


def text_of(parts: Sequence[str], cited: Sequence[str]) -> str:
    """Markdown: the parts that are not empty, and the references."""
    listed = "\n".join(f"- {line}" for line in cited)
    return "## Methods\n\n" + "\n\n".join(part for part in parts if part) + f"\n\n## References\n\n{listed}\n"


def steps_text(settings: Mapping[str, Any]) -> str:
    """What vectors went through; empty if nothing."""
    steps = tuple(settings.get("steps", ()))
    if not steps:
        return ""
    return (
        f"**Preprocessing.** Vectors went through these steps: {describe_steps(steps)}. For encoding models "
        "each step was fitted on the items of the training folds, for geometric measures on all items."
    )


def encoding_text(settings: Facts) -> str:
    """How importances came about."""
    distance = DISTANCES.get(str(settings.get("distance")), str(settings.get("distance")))
    weights = (
        "a positive semi-definite matrix of weights (interactions of features included)"
        if settings.get("interactions")
        else "non-negative weights, one for each feature"
    )
    by_ranks = (
        " From there W went uphill in Spearman's ρ of the training pairs, which was kept where it helped on "
        "inner folds."
        if settings.get("fit") == "spearman"
        else ""
    )
    importance = IMPORTANCES.get(str(settings.get("importance")), str(settings.get("importance")))
    return (
        "**Encoding models.** For each layer a metric-learning encoding model (Salle et al. 2024) predicted "
        f"the {distance} between two items from the features in which they differ, by least squares with "
        f"{weights}, and an intercept; the ridge penalty was {_alpha(settings)}.{by_ranks} Models were "
        f"fitted and scored in {settings.get('n_folds')} folds over {settings.get('folds_over')}; the score "
        "is Spearman's ρ of predicted and true distances in held-out folds. The importance of a feature was "
        f"{importance}."
    )


def _alpha(settings: Facts) -> str:
    alpha = settings.get("alpha")
    return "chosen on inner folds" if alpha == "cv" else f"{alpha}"


def settings_text(settings: Facts, versions: Mapping[str, str]) -> str:
    """All settings, and what it was made with."""
    said = "; ".join(f"{name}: {_value(value)}" for name, value in settings.items())
    made = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"**Settings.** {said}. **Versions.** {made}."


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(one)}" for name, one in value.items()) or "as by default"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_value, value))
    return str(value)


def references(names: Sequence[str], measures: Sequence[str], versions: Mapping[str, str]) -> list[str]:
    """Of `REFERENCES` by name, and what each measure cites."""
    version = versions.get("thinkalike", "")
    cited = [REFERENCES[name].format(version=version) for name in names]
    return cited + [f"{measure_name(name)}: {MEASURES[name].reference}." for name in measures]


MOST_NAMES = 6
"""Regions that are named; of more, the first and the last"""


def group_methods(found: GroupComparison) -> str:
    """What `compare_with_group` did."""
    by_features = found.measure == "features"
    ceilings = str(found.settings["ceilings"]) if len(found.subjects) > 1 else ""
    certainty = _group_certainty(found)
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


def _group_certainty(found: GroupComparison) -> str:
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
