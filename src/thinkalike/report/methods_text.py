"""Sentences for the methods section of a paper, from what a run did, with what to cite."""

from __future__ import annotations

from collections.abc import Mapping

from thinkalike.comparison.chart_tables import measure_name
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.measures import MEASURES
from thinkalike.pairs.preprocessing import describe_steps
from thinkalike.types import Facts
from thinkalike.wording import listed

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
    "bh": "Benjamini, Y., & Hochberg, Y. (1995). Controlling the false discovery rate. Journal of the Royal "
    "Statistical Society B 57, 289–300.",
}


def methods_text(comparison: Comparison) -> str:
    """What was done in a comparison, as sentences for a paper and a list of what to cite.

    Parameters
    ----------
    comparison : of `compare`, or loaded from a run directory.

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
    parts = (
        _shown(comparison),
        _systems(comparison),
        _steps(comparison),
        _encoding(comparison),
        _likeness(comparison),
        _geometry(comparison),
        _certainty(comparison),
        _settings(comparison),
    )
    cited = "\n".join(f"- {line}" for line in _references(comparison))
    return "## Methods\n\n" + "\n\n".join(part for part in parts if part) + f"\n\n## References\n\n{cited}\n"


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
    said = [f"{name} ({len(profile.layers)} layers)" for name, profile in comparison.profiles.items()]
    untrained = (
        " Copies of the same architectures with random weights were shown the same items."
        if comparison.controls is not None
        else ""
    )
    return f"**Systems.** {listed(said)}.{untrained}"


def _steps(comparison: Comparison) -> str:
    steps = tuple(comparison.settings.get("steps", ()))
    if not steps:
        return ""
    return (
        f"**Preprocessing.** Vectors went through these steps: {describe_steps(steps)}. For encoding models "
        "each step was fitted on the items of the training folds, for geometric measures on all items."
    )


def _encoding(comparison: Comparison) -> str:
    settings = comparison.settings
    distance = DISTANCES.get(str(settings.get("distance")), str(settings.get("distance")))
    weights = (
        "a positive semi-definite matrix of weights (interactions of features included)"
        if settings.get("interactions")
        else "non-negative weights, one for each feature"
    )
    importance = IMPORTANCES.get(str(settings.get("importance")), str(settings.get("importance")))
    return (
        "**Encoding models.** For each layer a metric-learning encoding model (Salle et al. 2024) predicted "
        f"the {distance} between two items from the features in which they differ, by least squares with "
        f"{weights}, and an intercept; the ridge penalty was {_alpha(settings)}. Models were fitted and "
        f"scored in {settings.get('n_folds')} folds over {settings.get('folds_over')}; the score is "
        "Spearman's ρ of predicted and true distances in held-out folds. The importance of a feature was "
        f"{importance}."
    )


def _alpha(settings: Facts) -> str:
    alpha = settings.get("alpha")
    return "chosen on inner folds" if alpha == "cv" else f"{alpha}"


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
    return f"**Certainty.** {' '.join(said)}" if said else ""


def _settings(comparison: Comparison) -> str:
    settings = "; ".join(f"{name}: {_value(value)}" for name, value in comparison.settings.items())
    versions = ", ".join(f"{name} {version}" for name, version in comparison.versions.items())
    return f"**Settings.** {settings}. **Versions.** {versions}."


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(one)}" for name, one in value.items()) or "as by default"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_value, value))
    return str(value)


def _references(comparison: Comparison) -> list[str]:
    """What every comparison rests on, and what its measures cite."""
    version = comparison.versions.get("thinkalike", "")
    wanted = ["thinkalike", "salle", "vigna", *(["rsa"] if "rsa" in comparison.matrices else []), "bh"]
    cited = [REFERENCES[name].format(version=version) for name in wanted]
    others = [name for name in comparison.matrices if name in MEASURES and name != "rsa"]
    return cited + [f"{measure_name(name)}: {MEASURES[name].reference}." for name in others]
