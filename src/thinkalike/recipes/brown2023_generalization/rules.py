"""What decides each statement of `brown2023-generalization`: one table, written before the run it judges.

Accuracies are shares of right answers. Smallest effects that count: two points of accuracy in stitching, a
tenth out of distribution, 0.02 in CKA (fine-tuned copies of one model are alike), a tenth of a distance, a
hundredth of a nat. Groups are chosen on some questions and judged on others; layers up to half of the depth
are early, from three quarters on late. Ranges are the wider of those over sets and over
models.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from thinkalike.recipes.rules import Rule

EARLY, LATE = 0.5, 0.75
"""Shares of the layers: up to, and from"""
LEARNT = 0.8
"""Mean accuracy in distribution, below which nothing can be said of generalization"""
APART = 0.1
"""Accuracy out of distribution: groups that differ by less, with all of the range, are no two groups"""

_rule = partial(Rule, written="2026-11-18")
_beyond = partial(_rule, beyond=True)
_BY_P = (
    "until 2026-11-18 by p over models alone, and by the groups that 64 questions gave, judged on the same"
)

RULES: dict[str, Rule] = {
    "spread": _rule(
        claim="Fine-tuned from one model with different seeds, classifiers that are alike in distribution "
        "differ widely out of it, where overlap does not mean entailment.",
        effect="right out of distribution, the best models less the worst, on questions that did not choose "
        "them",
        at_least=0.2,
        earlier=("until 2026-11-18 the same on the 64 questions that chose them, without a range.",),
        figure="spread",
    ),
    "early stitching": _rule(
        claim="At early layers identity stitching costs almost nothing, whichever groups the two models are "
        "of.",
        effect="accuracy that stitching at early layers costs",
        at_most=0.02,
        earlier=("until 2026-11-18 the largest mean over layers and directions, without a range.",),
        figure="figure-2",
    ),
    "late between": _rule(
        claim="At late layers, from about three quarters on, stitching between generalizing and heuristic "
        "models costs much accuracy.",
        effect="accuracy that stitching at late layers costs between the groups less that within",
        at_least=0.02,
        earlier=(f"{_BY_P}.",),
        figure="figure-2",
    ),
    "late within": _rule(
        claim="Within the generalizing and within the heuristic models stitching at late layers costs almost "
        "nothing.",
        effect="accuracy that stitching at late layers costs",
        at_most=0.02,
        earlier=("until 2026-11-18 the largest mean over layers, without a range.",),
        figure="figure-2",
    ),
    "early CKA": _rule(
        claim="At early layers CKA does not tell generalizing from heuristic models.",
        effect="CKA within the groups less that between, at early layers",
        at_least=-0.02,
        at_most=0.02,
        earlier=("until 2026-11-18 p > 0.05, which is no sign of equality.",),
        figure="figure-2",
    ),
    "late CKA": _rule(
        claim="At late layers the features of a generalizing and a heuristic model are farther apart than "
        "those of two models of one group. (The text says that CKA between groups exceeds that within; its "
        "figure and argument need the reverse, which is tested here.)",
        effect="CKA within the groups less that between, at late layers",
        at_least=0.02,
        earlier=(f"{_BY_P}.",),
        figure="figure-2",
    ),
    "outside": _rule(
        claim="Out of distribution, stitched generalizing models and stitched heuristic models still behave "
        "differently at the last stitching layer.",
        effect="right out of distribution, generalizing → generalizing less heuristic → heuristic",
        at_least=0.1,
        earlier=("until 2026-11-18 on the 64 questions that chose the groups.",),
        figure="figure-7",
    ),
    "two clusters": _rule(
        claim="By the distance from CKA over all layers, generalizing and heuristic models form two "
        "clusters.",
        effect="distance of a model to the other group above that to its own, as a share of the latter",
        at_least=0.1,
        earlier=(f"{_BY_P}.",),
        figure="figure-8",
    ),
    "recovered": _rule(
        claim="Data in distribution alone, without any from the shifted one, tells which models generalize.",
        effect="agreement of two clusters with the groups (adjusted Rand index)",
        at_least=0.8,
        earlier=("until 2026-11-18 the same of one set of questions, without a range.",),
        figure="clusters",
    ),
    "variants": _beyond(
        claim="The authors read block outputs before the residual is added, with padding, and expect that "
        "such details do not matter.",
        effect="late CKA within the groups less that between, less the same as the paper reads it",
        at_least=-0.02,
        at_most=0.02,
        earlier=("until 2026-11-18 whether p ≤ 0.05 in all or in none.",),
        figure="variants",
    ),
    "barriers": _beyond(
        claim="Generalizing and heuristic models lie in different basins of the loss (Juneja et al. 2022, on "
        "whom the paper builds): the straight line between them crosses a barrier, within a group it does "
        "not.",
        effect="barrier of the loss between the groups less that within, in nats",
        at_least=0.01,
        earlier=(f"{_BY_P}.",),
        figure="barriers",
    ),
}


def planted(name: str) -> Rule:
    """The same rule for the control, in which the generalizing models were taught with counterexamples.

    There the groups are known to differ, so it shows whether the measure sees what is there.
    """
    rule = RULES[name]
    figure = rule.figure if name == "spread" else f"{rule.figure}-planted"  # which shows all classifiers
    return replace(rule, claim=f"Planted control: {rule.claim}", beyond=True, figure=figure)
