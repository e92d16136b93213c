"""What decides each statement of `salle2024`: one table, written before the run that it judges.

Effects are in the units of the paper: importance is a drop in held-out ρ, likeness is τ_w. Smallest effects
that count: 0.01 in importance, 0.05 in τ_w, three layers of four.
"""

from __future__ import annotations

from functools import partial

from thinkalike.recipes.rules import Rule

DAY = "2026-11-17"
_rule = partial(Rule, written=DAY)
_beyond = partial(_rule, beyond=True)
_control = partial(Rule, written="2026-11-18", beyond=True)
"""Written while the models that they are about were still in training"""
_ONE_SET = "until 2026-11-17 from one set of 500 sentences, without a range"

PAPER_RULES: dict[str, Rule] = {
    "pos leads": _rule(
        claim="Part of speech is the dominant feature across the layers of the Transformers.",
        effect="share of the layers that part of speech leads",
        at_least=0.75,
        earlier=(f"the same share, {_ONE_SET}.",),
        figure="leaders",
    ),
    "pos at the ends": _rule(
        claim="In Mamba part of speech dominates only in the first and the last layer.",
        effect="share of the two ends that part of speech leads, less its share of the layers between",
        at_least=0.75,
        earlier=(f"either of two ways to count layers sufficed, {_ONE_SET}.",),
        figure="profiles",
    ),
    "position rises": _rule(
        claim="The importance of word position rises sharply in the middle of Mamba (around layer 10 of 24).",
        effect="importance of word position after its largest step less 1.5 times that before, or 0 where "
        "the step is not in the middle",
        at_least=0.01,
        earlier=(f"a rise by half and above the spread over folds, {_ONE_SET}.",),
        figure="profiles",
    ),
    "two blocks": _rule(
        claim="By features, Mamba's layers form two blocks, low and high.",
        effect="how often layers at random places on a line look as much like two blocks (p)",
        at_most=0.05,
        earlier=("until 2026-11-17 blocks had to describe the matrix better than its diagonals (BIC).",),
        figure="similarity",
    ),
    "maps by position": _rule(
        claim="On a map of the words, position separates them in Mamba's higher layers and not in the lower.",
        effect="share of a map's variance between positions, high less low layer, by both kinds of MDS",
        at_least=0.1,
        earlier=(f"by classical MDS alone, {_ONE_SET}.",),
        figure="words-by-position",
    ),
    "number falls": _rule(
        claim="The importance of grammatical number tends to fall from early to late layers in all models.",
        effect="importance of number in the first third of the layers less that in the last",
        at_least=0.01,
        earlier=("until 2026-11-17 any fall counted, also from 0.001 to −0.006.",),
        figure="profiles",
    ),
    "matrices agree": _rule(
        claim="Similarity by features and by geometry agree overall (ρ = 0.69).",
        effect="ρ of the two matrices less what unrelated trajectories as smooth give",
        at_least=0.1,
        earlier=(
            "until 2026-11-17 p ≤ 0.05 against permuted layers, which is no null for that.",
            "until 2026-11-19 the steps of unrelated models were put in any order.",
        ),
        written="2026-11-19",
        figure="similarity",
    ),
    "most alike models": _rule(
        claim="The most alike layers of two models are of the two Transformers (τ_w = 0.77).",
        effect="the highest τ_w between the Transformers less the highest with Mamba",
        at_least=0.02,
        earlier=(f"one statement with the next, {_ONE_SET}.",),
        figure="most-alike",
    ),
    "most alike feature": _rule(
        claim="Part of speech dominates the most alike layers of two models.",
        effect="share of the two layers that part of speech leads",
        at_least=1.0,
        figure="most-alike",
    ),
    "least alike models": _rule(
        claim="The least alike layers are one of Mamba and one of a Transformer (τ_w = −0.24).",
        effect="the lowest τ_w between the Transformers less the lowest with Mamba",
        at_least=0.02,
        earlier=(f"one statement with the next, {_ONE_SET}.",),
        figure="least-alike",
    ),
    "least alike feature": _rule(
        claim="The least alike layers of two models part over part of speech.",
        effect="whether part of speech leads one of the two layers and not the other (1 or 0)",
        at_least=1.0,
        figure="least-alike",
    ),
    "features apart": _rule(
        claim="The features were checked for correlations, so that their contributions can be told apart.",
        effect="the strongest correlation, in size, between the differences of two features",
        at_most=0.5,
        earlier=(f"the same, {_ONE_SET}.",),
        figure="correlations",
    ),
}
"""That the features predict distances at all (ρ > 0) was one until 2026-11-17: no model could fail it"""

BEYOND_RULES: dict[str, Rule] = {
    "architecture": _beyond(
        claim="Asked in the title: whether the architecture decides. Then the two Transformers are more "
        "alike than either is to Mamba.",
        effect="mean τ_w between the Transformers less the higher of those with Mamba",
        at_least=0.05,
        figure="similarity",
    ),
    "second seeds": _control(
        claim="Taken for granted: models of one architecture are alike, whatever their seed.",
        effect="τ_w of layers at equal depth, with a second seed less the highest with another architecture",
        at_least=0.05,
        earlier=(
            "until 2026-11-18 the mean τ_w of all pairs of layers, by which a copy of nano-mamba itself "
            "would not have passed; never run.",
        ),
    ),
    "first words": _beyond(
        claim="Taken for granted: it is the sentences that matter, and not their first words.",
        effect="share of the layers whose leading feature stays without first words",
        at_least=0.75,
        figure="leaders",
    ),
    "other grammar": _beyond(
        claim="Taken for granted: another grammar, in which part of speech and position are not confounded, "
        "would give the same leading features.",
        effect="share of the layers whose leading feature is the same on the untangled grammar",
        at_least=0.75,
        figure="leaders",
    ),
    "natural text": _beyond(
        claim="Taken for granted: sentences of a grammar stand for natural text.",
        effect="share of the layers whose leading feature is the same on natural text",
        at_least=0.75,
        earlier=("until 2026-11-17 ρ ≥ 0.8 of the two matrices; no treebank was ever given.",),
        figure="leaders",
    ),
    "other language": _beyond(
        claim="Left open: other languages. Part of speech leads there too.",
        effect="share of the layers that part of speech leads on French text",
        at_least=0.75,
    ),
    "interactions": _beyond(
        claim="Assumed: features do not interact (a diagonal W); interactions are named as future work.",
        effect="median gain in held-out ρ with interactions",
        at_most=0.02,
        earlier=(f"the same, {_ONE_SET}.",),
    ),
    "feature set": _beyond(
        claim="Taken for granted: the eight features suffice, and another list would tell the same story.",
        effect="ρ of the matrix by features with that of another list",
        at_least=0.8,
        earlier=(f"the same, {_ONE_SET}.",),
    ),
    "presets": _beyond(
        claim="Taken for granted: what is left to the code (folds over pairs, scaling, permutations) does "
        "not matter.",
        effect="share of the layers whose leading feature is the same by the authors' choices",
        at_least=0.75,
        earlier=("until 2026-11-17 ρ ≥ 0.8 of the two matrices, on one set of 120 sentences.",),
    ),
    "untrained": _beyond(
        claim="Taken for granted: models are alike because of what they learned.",
        effect="mean τ_w of two models less that of copies with random weights",
        at_least=0.05,
        earlier=("until 2026-11-17 any difference counted, with one draw of random weights.",),
        figure="effects",
    ),
    "checkpoints": _beyond(
        claim="Left open: training. If it makes the profiles, they approach those of the finished model.",
        effect="τ_w with the finished model, later checkpoint less earlier one",
        at_least=0.05,
        earlier=(f"any growth counted, {_ONE_SET}.",),
    ),
    "positions silenced": _beyond(
        claim="Left open: positional encodings. If word position comes from them, it falls when they are "
        "set to 0 in the finished model.",
        effect="mean importance of word position with positions less that without",
        at_least=0.01,
        earlier=(f"any fall counted, {_ONE_SET}.",),
    ),
    "trained without positions": _control(
        claim="Left open: positional encodings. A model trained without them, all else equal, has less of "
        "word position.",
        effect="mean importance of word position, with positions less trained without",
        at_least=0.01,
        earlier=("until 2026-11-18 also asked of rotary positions, which are positions too; never run.",),
    ),
    "other positions": _control(
        claim="Left open: positional encodings. Rotary ones in place of embedded ones, all else equal, leave "
        "word position as important.",
        effect="mean importance of word position, with embedded positions less with rotary ones",
        at_least=-0.01,
        at_most=0.01,
    ),
    "nearer without positions": _control(
        claim="Left open: whether Mamba stands apart because it is told nothing of positions. Then a "
        "Transformer that was trained without them is nearer to it.",
        effect="τ_w of layers at equal depth with Mamba, of the control less of the model",
        at_least=0.05,
    ),
    "positions or seed": _control(
        claim="Left open: positional encodings. Others, or none, change a model no more than a seed does.",
        effect="τ_w of layers at equal depth, with a second seed less with the control of positions",
        at_most=0.05,
    ),
    "positions or architecture": _control(
        claim="Taken for granted: the architecture sets models apart, and not what they are told of "
        "positions.",
        effect="τ_w of layers at equal depth, with the control of positions less the highest with another "
        "architecture",
        at_least=0.05,
    ),
}
