"""What decides each statement of `salle2024-causal`: one table, written before the run that it judges.

Salle et al. 2024 describe; they take nothing away from a model. Here the directions of a feature are taken
out of the states of a layer, and the control takes out as much along random ones. Smallest effects that
count: a hundredth of a nat per token of text, a tenth of a nat in preferring the right verb.
"""

from __future__ import annotations

from functools import partial

from thinkalike.recipes.rules import Rule

_rule = partial(Rule, written="2026-11-18", beyond=True)
_matters = partial(
    _rule,
    effect="loss without the directions of the feature less that without random ones of equal norm (nats per "
    "token)",
    at_least=0.01,
    figure="loss",
)

RULES: dict[str, Rule] = {
    "number": _matters(
        claim="Taken for granted: features by which states differ matter to the model. Without number it "
        "predicts text worse.",
    ),
    "tense": _matters(claim="The same of tense."),
    "part_of_speech": _matters(claim="The same of part of speech."),
    "order": _rule(
        claim="Taken for granted: importance for distances is importance for the model. The more important a "
        "feature is in a layer, the more the loss rises without it.",
        effect="rank correlation of importance and rise of the loss, over features and layers",
        at_least=0.5,
        figure="importance",
    ),
    "agreement": _rule(
        claim="Agreement rests on number: without its direction the right verb is preferred less.",
        effect="preference for the right verb without random directions of equal norm less that without "
        "number (nats)",
        at_least=0.1,
        figure="agreement",
    ),
    "number alone": _rule(
        claim="Agreement rests on number and not on whatever else verbs have: taking tense out costs less.",
        effect="preference for the right verb without tense less that without number (nats)",
        at_least=0.05,
        figure="agreement",
    ),
}
