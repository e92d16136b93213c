"""What decides each statement of `brown2023-activations`: one table, written before the run that it judges.

Effects are in nats per prediction, means over the layers; a hundredth of a nat is the smallest that counts.
The asymmetry of penalties is [L(S→G) − L(G→S)] + [L(S) − L(G)]: the models' own losses are in it. What is
judged is the first part, the stitched losses; the second is shown beside it.
"""

from __future__ import annotations

from functools import partial

from thinkalike.recipes.rules import Rule

_rule = partial(Rule, written="2026-11-17")
_beyond = partial(_rule, beyond=True)
_OWN_GAP = "until 2026-11-17 the difference of penalties, which contains that of the models' own losses."

RULES: dict[str, Rule] = {
    "asymmetry": _rule(
        claim="Feeding SoLU features into a GeLU model costs more than the reverse, in every model size and "
        "layer.",
        effect="stitched loss of SoLU → GeLU less that of GeLU → SoLU",
        at_least=0.01,
        earlier=(_OWN_GAP,),
        figure="figure-1",
    ),
    "self-stitching": _rule(
        claim="Stitched with itself, a SoLU model loses less than a GeLU model: its maps are easier to "
        "learn.",
        effect="penalty of GeLU → GeLU less that of SoLU → SoLU",
        at_least=0.005,
        earlier=("until 2026-11-17 any difference in every layer, without a range.",),
        figure="figure-1",
    ),
    "cross above self": _rule(
        claim="Both ways between GeLU and SoLU cost more than GeLU into itself: it is not only the learning "
        "of maps.",
        effect="penalty above that of GeLU → GeLU",
        at_least=0.01,
        earlier=("until 2026-11-17 any difference in every layer, without a range.",),
        figure="figure-1",
    ),
    "levels off": _rule(
        claim="The maps are learnt: the loss levels off.",
        effect="of what a map gains over its start, the share that comes in the last quarter of the steps",
        at_most=0.1,
        earlier=("until 2026-11-17 the worst of all maps.",),
        figure="figure-6",
    ),
    "capacity": _beyond(
        claim="The asymmetry may come from SoLU's lower capacity, as with models of different width: "
        "features of a narrow model in a wide one should then cost more than the reverse.",
        effect="stitched loss of narrow → wide less that of wide → narrow, at equal depth",
        at_least=0.01,
        earlier=(_OWN_GAP, "until 2026-11-17 the two models also differed in depth."),
        figure="capacity",
    ),
    "other seed": _beyond(
        claim="Stitching another activation costs more than stitching another seed of the same.",
        effect="penalty between activations less that within one, both with another seed",
        at_least=0.005,
        earlier=("until 2026-11-17 other activations had the same seed, and so had seen the same text.",),
        figure="seeds",
    ),
    "least squares": _beyond(
        claim="A map fitted by task loss shows what the features hold, and no trick of the map: least "
        "squares shows the same asymmetry.",
        effect="asymmetry of stitched losses by least squares less that by task loss",
        at_least=-0.02,
        at_most=0.02,
        earlier=("until 2026-11-17 the same sign in every layer.",),
        figure="squares",
    ),
}
"""That CKA cannot show an asymmetry was one until 2026-11-17: it is the same both ways by definition"""
