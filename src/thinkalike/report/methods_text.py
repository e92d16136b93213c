"""Sentences for the methods section of a paper, from what a run did, with what to cite."""

from __future__ import annotations

from thinkalike.comparison.chart_tables import measure_name
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.group import GroupComparison
from thinkalike.comparison.group_profile import GroupProfile
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.measures import MEASURES
from thinkalike.report.group_methods import group_methods, group_profile_methods
from thinkalike.report.methods_parts import (
    encoding_text,
    layers_text,
    references,
    settings_text,
    steps_text,
    text_of,
)
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
    untrained = (
        " Copies of the same architectures with random weights were shown the same items."
        if comparison.controls is not None
        else ""
    )
    return f"**Systems.** {listed(said)}.{untrained}"


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


def _references(comparison: Comparison) -> list[str]:
    """What every comparison rests on, and what its measures cite."""
    wanted = ["thinkalike", "salle", "vigna", *(["rsa"] if "rsa" in comparison.matrices else []), "bh"]
    others = [name for name in comparison.matrices if name in MEASURES and name != "rsa"]
    return references(wanted, others, comparison.versions)
