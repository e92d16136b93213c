"""Words that the methods texts of comparisons and of groups share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from thinkalike.comparison.chart_tables import measure_name
from thinkalike.measures import MEASURES
from thinkalike.pairs.preprocessing import describe_steps
from thinkalike.types import Facts

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
