"""What decides each statement of `salle2026`: one table, written before the run that it judges.

Importance of facts is a drop in ρ between predicted and given distances of models. Smallest effects that
count: 0.01 in importance, a tenth of a distance, three analyses of four.
"""

from __future__ import annotations

from functools import partial

from thinkalike.recipes.rules import Rule

DAY = "2026-11-18"
_rule = partial(Rule, written=DAY, figure="reasons")
_beyond = partial(_rule, beyond=True)

PAPER_RULES: dict[str, Rule] = {
    "date": _rule(
        claim="How alike models are is driven most strongly by their date of release, a proxy for how the "
        "making of language models develops.",
        effect="importance of the date less the highest of the other facts",
        at_least=0.01,
    ),
    "family": _rule(
        claim="Beside the date it is driven by the family of models.",
        effect="importance of family less the highest of the facts that are neither family nor date",
        at_least=0.01,
    ),
    "scale": _rule(
        claim="It is not primarily shaped by scale.",
        effect="importance of size (parameters, depth, width) less that of family",
        at_most=-0.01,
    ),
    "class": _rule(
        claim="It is not primarily shaped by the class of architecture.",
        effect="importance of the class (transformer, state-space, recurrent) less that of family",
        at_most=-0.01,
    ),
}

BEYOND_RULES: dict[str, Rule] = {
    "families apart": _beyond(
        claim="Taken for granted: models of one family are nearer to one another than to others.",
        effect="mean distance between families less that within, as a share of the mean distance",
        at_least=0.1,
        figure="map",
    ),
    "development": _beyond(
        claim="Where models have no date, how much text they have seen takes its place.",
        effect="importance of training (tokens, objective) less the highest of the other facts",
        at_least=0.01,
    ),
    "explained": _beyond(
        claim="Taken for granted: facts explain the distances of these models better than those of any.",
        effect="ρ of predicted and given distances less its mean when models are permuted",
        at_least=0.1,
    ),
    "by chance": _beyond(
        claim="Not tested there: that family goes with the distances beyond chance.",
        effect="p of family by itself, by permuting models",
        at_most=0.05,
    ),
    "geometry": _beyond(
        claim="A control there: raw geometry does not order models as features do.",
        effect="ρ of the distances by features and by geometry (RSA), over pairs of models",
        at_most=0.5,
        figure="matrices",
    ),
    "distance": _beyond(
        claim="Taken for granted: warped raw importances order models as mean τ_w does.",
        effect="ρ of the two distances over pairs of models",
        at_least=0.8,
        figure="matrices",
    ),
    "stimuli": _beyond(
        claim="Taken for granted: other sentences name the same leading fact.",
        effect="whether the leading fact is the same on sentences of the grammar `clauses` (1 or 0)",
        at_least=1.0,
    ),
    "cohort": _beyond(
        claim="Taken for granted: other models name the same leading fact.",
        effect="share of the cohorts, each without one family, with the same leading fact",
        at_least=0.75,
    ),
    "grouping": _beyond(
        claim="Taken for granted: other groupings of the facts name the same leading fact.",
        effect="share of the other groupings with the same leading fact",
        at_least=0.75,
    ),
}
