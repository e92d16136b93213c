"""What decides each statement of `brown2023-scaling`: one table, written before the run that it judges.

Effects are differences of CKA; 0.05 is the smallest that counts. Ranges are over parts of the text that
share no paragraph.
"""

from __future__ import annotations

from functools import partial

from thinkalike.recipes.rules import Rule

_rule = partial(Rule, written="2026-11-18")
_beyond = partial(_rule, beyond=True)
_ONCE = "until 2026-11-18 from all of the text at once, without a range"

RULES: dict[str, Rule] = {
    "fades": _rule(
        claim="Within the largest model, likeness falls gradually with the distance between layers.",
        effect="CKA of neighbouring blocks less that of the first and the last",
        at_least=0.05,
        earlier=(f"any fall, {_ONCE}.",),
        figure="within",
    ),
    "blocks within": _rule(
        claim="The layers of the largest model fall into blocks: the first three, those between, and the "
        "last.",
        effect="how often layers at random places on a line look as much like blocks (p)",
        at_most=0.05,
        earlier=(f"blocks had to describe the matrix better than its diagonals (BIC), {_ONCE}.",),
        figure="within",
    ),
    "blocks between": _rule(
        claim="The blocks are also seen between two models.",
        effect="CKA between two models, layers of like blocks less other layers",
        at_least=0.05,
        earlier=(f"the same, {_ONCE}.",),
        figure="family",
    ),
    "early layers": _rule(
        claim="The first layers of different members are alike, however large the models.",
        effect="CKA of first blocks less that of later blocks at the same share of the depth",
        at_least=0.05,
        earlier=("until 2026-11-18 any difference counted: 0.756 against 0.751.",),
        figure="family",
    ),
    "odd member": _rule(
        claim="One member, pythia-2.8b, is unlike all others in its intermediate layers.",
        effect="how much less alike the member off the trend is to the others than any other member is",
        at_least=0.05,
        earlier=(f"twice as odd as the next, {_ONCE}.",),
        figure="odd",
    ),
    "first blocks": _rule(
        claim="The first block of the odd member has two layers, those of the other large members three.",
        effect="layers of the shortest first block among the others less those of the odd member's",
        at_least=1.0,
        earlier=(f"the same, {_ONCE}.",),
        figure="within",
    ),
    "head sizes": _rule(
        claim="The odd member has smaller attention heads than its neighbours in size, and the rotary "
        "dimension is a quarter of them.",
        effect="units of a head in the smaller of the two neighbours less those of the odd member",
        at_least=1.0,
    ),
    "grows with size": _rule(
        claim="Likeness within a model grows with its size (up to a billion parameters).",
        effect="rank correlation of mean CKA between blocks with size",
        at_least=0.8,
        earlier=(
            f"the same, {_ONCE}.",
            "on 2026-11-18 the same to the last digit: the range began at 0.7999999999999998, so the verdict "
            "was undecided. A tolerance of 1e-9 for rounding was added after that run.",
        ),
        figure="size-and-loss",
    ),
    "grows as loss falls": _rule(
        claim="The growth may come with lower loss instead of size: the paper could not tell the two apart.",
        effect="mean CKA between blocks, later checkpoint of one member less the earlier one",
        at_least=0.05,
        earlier=(f"any growth, {_ONCE}.",),
        figure="size-and-loss",
    ),
    "state space": _beyond(
        claim="Left open: whether uniform layers are particular to Transformers. Then a state-space model "
        "has less likeness between its blocks.",
        effect="mean CKA between blocks of the Transformer less that of the state-space model",
        at_least=0.05,
        earlier=(f"also by blocks, which neither need have, {_ONCE}.",),
        figure="state-space",
    ),
    "trained": _beyond(
        claim="Taken for granted: first layers are alike because of what they learned.",
        effect="CKA of first blocks less that of copies with random weights",
        at_least=0.05,
        figure="family",
    ),
    "first tokens": _beyond(
        claim="Taken for granted: no single token carries the values. First tokens may have a huge norm.",
        effect="largest change of CKA, in size, without the first token of each passage",
        at_most=0.1,
        earlier=(f"the same, {_ONCE}.",),
    ),
    "flattened": _beyond(
        claim="Not evaluated (footnote 6): whole passages as items, positions and features flattened to one "
        "dimension. If the level does not matter, the order of the values is the same.",
        effect="rank correlation of CKA by tokens with CKA by flattened passages, over pairs of blocks",
        at_least=0.8,
        figure="flattened",
    ),
}
