"""From numbers to statements: what Brown et al. 2023 say of the Pythia family, tested on ours.

*Values* are CKA between the blocks of two models, rows in the order of the layers of the first; they come
as (a, b) → matrix. Every function is pure, and each statement can come out as `agrees` or as `differs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from thinkalike.inference.agreement import spearman
from thinkalike.inference.blocks import Blocks, Floats, find_blocks
from thinkalike.recipes.findings import Statement, Verdict
from thinkalike.wording import listed, number, p_text

Values = Mapping[tuple[str, str], Floats]
TREND = 0.8
"""Rank correlation from which a sequence has a trend"""
HIGH = 0.5
"""CKA from which features are said to be alike"""
CLEAR = 0.05
"""A difference in CKA that counts"""


def mean_within(values: Floats) -> float:
    """Mean CKA between different blocks of one model; NaN for a single block."""
    off = values[~np.eye(len(values), dtype=bool)]
    return float(off.mean()) if len(off) else float("nan")


def fades_with_distance(name: str, values: Floats) -> Statement:
    """Within the largest model, the further apart two layers are, the less alike."""
    paper = "Within the largest model, likeness falls gradually with the distance between layers."
    if len(values) < 3:
        return Statement(paper, f"{name} has {len(values)} blocks, too few to see.", "cannot be tested")
    i, j = np.triu_indices(len(values), k=1)
    rho = spearman((j - i).astype(np.float64), values[i, j])
    near, far = float(np.diag(values, k=1).mean()), float(values[0, -1])
    return Statement(
        paper=paper,
        found=(
            f"In {name} CKA is {number(near)} between neighbours and {number(far)} between the first block "
            f"and the last; its rank correlation with the distance is {number(rho)}."
        ),
        verdict="agrees" if rho < 0 and near > far else "differs",
        numbers={"neighbours": near, "ends": far, "rank correlation": rho},
        figure="within",
    )


def blocks_within(found: Mapping[str, Blocks | None]) -> Statement:
    """Layers fall into blocks: early, intermediate, late."""
    paper = "The layers of the largest model fall into blocks: the first three, those between, and the last."
    known = {name: blocks for name, blocks in found.items() if blocks is not None}
    if not known:
        return Statement(
            paper,
            "All members have fewer than four blocks, too few to see.",
            "cannot be tested",
            figure="within",
        )
    largest = list(known)[-1]
    top = known[largest]
    return Statement(
        paper=paper,
        found=(
            f"The best blocks of {largest} have {_lengths(top)}, with CKA {number(top.within)} within and "
            f"{number(top.between)} between them, and explain {100 * top.explained:.0f} % of the variance. "
            f"{_than(top)}."
        ),
        verdict="agrees" if top.better else "differs",
        numbers={
            "within": top.within,
            "between": top.between,
            "variance explained by blocks": top.explained,
            "variance explained by distance": top.by_distance,
            **{f"first block, {name}": blocks.lengths[0] for name, blocks in known.items()},
        },
        figure="within",
    )


def blocks_between(values: Values, found: Mapping[str, Blocks | None]) -> Statement:
    """The blocks are also seen between two models."""
    paper = "The blocks are also seen between two models."
    known = _in_blocks(found)
    pairs = list(combinations(known, 2))
    if not pairs:
        return Statement(
            paper, "No two members have layers that fall into blocks.", "cannot be tested", figure="family"
        )
    contrasts = {}
    for a, b in pairs:
        first, second = (np.arange(known[k].n_layers) < known[k].lengths[0] for k in (a, b))
        same = first[:, None] == second
        contrasts[f"{a} and {b}"] = float(values[a, b][same].mean() - values[a, b][~same].mean())
    mean = float(np.mean(list(contrasts.values())))
    return Statement(
        paper=paper,
        found=(
            f"Between models, layers of like blocks (first with first, later with later) are more alike than "
            f"others by {mean:+.2f} in CKA on average, over {len(pairs)} pair{'s' if len(pairs) > 1 else ''}."
        ).replace("-0", "−0"),
        verdict="agrees" if mean > CLEAR else "differs",
        numbers=contrasts,
        figure="family",
    )


def early_layers(values: Values, names: Sequence[str], *, untrained: Values | None = None) -> Statement:
    """The first layers of all members are alike, more than later ones.

    Later layers are compared at the same share of the depth.
    """
    early, later = early_and_later(values, names)
    beside, numbers = "", {}
    if untrained is not None:
        control, _ = early_and_later(untrained, names)
        beside = f" In copies with random weights the first blocks have {number(control)}."
        numbers = {"first blocks, untrained": control}
    return Statement(
        paper="The first layers of different members are alike, however large the models.",
        found=(
            f"CKA between the first blocks of two members is {number(early)} on average, against "
            f"{number(later)} between later blocks at the same share of the depth.{beside}"
        ),
        verdict="agrees" if early >= HIGH and early > later else "differs",
        numbers={"first blocks": early, "later blocks": later, **numbers},
        figure="family",
    )


def early_and_later(values: Values, names: Sequence[str]) -> tuple[float, float]:
    """Mean CKA between first blocks, and between later blocks at the same share of the depth."""
    early = [values[a, b][0, 0] for a, b in combinations(names, 2)]
    later = [v for a, b in combinations(names, 2) for v in _same_depth(values[a, b])]
    return float(np.mean(early)), float(np.mean(later))


def _same_depth(block: Floats) -> Floats:
    """Values along the diagonal from the second layer on, a step for each layer of the deeper model."""
    n, m = block.shape
    depth = np.linspace(0, 1, max(n, m))[1:]
    rows, columns = (np.round(depth * (k - 1)).astype(int) for k in (n, m))
    return block[rows, columns]


def oddness(values: Values, names: Sequence[str]) -> dict[str, float]:
    """By how much each member is less like the others than these are, in intermediate blocks."""
    means = {(a, b): float(_middle(values[a, b]).mean()) for a, b in combinations(names, 2)}
    scores = {}
    for name in names:
        own = [v for pair, v in means.items() if name in pair]
        rest = [v for pair, v in means.items() if name not in pair]
        scores[name] = float(np.mean(rest) - np.mean(own)) if rest else float("nan")
    return scores


def _middle(block: Floats) -> Floats:
    """Without the first and the last block of either model, where there are more than two."""
    n, m = block.shape
    return block[1 if n > 2 else 0 : n - 1 if n > 2 else n, 1 if m > 2 else 0 : m - 1 if m > 2 else m]


def odd_member(scores: Mapping[str, float], expected: str) -> Statement:
    """One member is unlike all others in intermediate layers, the one that is off the trend."""
    paper = "One member, pythia-2.8b, is unlike all others in its intermediate layers."
    if len(scores) < 3 or expected not in scores:
        return Statement(
            paper,
            f"It takes three members, {expected} among them, to tell.",
            "cannot be tested",
        )
    order = sorted(scores, key=lambda name: -scores[name])
    first, second = order[0], order[1]
    stands_out = scores[first] > CLEAR and scores[first] > 2 * max(scores[second], 0.0)
    apart = "stands out" if stands_out else "does not stand out"
    return Statement(
        paper=paper,
        found=(
            f"{first} is the least like the others: its CKA with them is {scores[first]:.2f} below theirs "
            f"among themselves (next {second}, {scores[second]:.2f}), so it {apart}. Off the trend of the "
            f"architecture is {expected}."
        ).replace("-0.", "−0."),
        verdict="agrees" if stands_out and first == expected else "differs",
        numbers={f"oddness, {name}": score for name, score in scores.items()},
        figure="odd",
    )


def first_blocks(found: Mapping[str, Blocks | None], odd: str) -> Statement:
    """The first block of the odd member is shorter than those of the others."""
    paper = "The first block of the odd member has two layers, those of the other large members three."
    known = {name: blocks.lengths[0] for name, blocks in _in_blocks(found).items()}
    others = {name: length for name, length in known.items() if name != odd}
    if odd not in known or not others:
        return Statement(
            paper,
            f"The layers of {odd} and of another member would have to fall into blocks.",
            "cannot be tested",
            figure="within",
        )
    parts = [f"{length} in {name}" for name, length in known.items()]
    return Statement(
        paper=paper,
        found=f"Layers of the first block: {listed(parts)}.",
        verdict="agrees" if known[odd] < min(others.values()) else "differs",
        numbers={f"first block, {name}": length for name, length in known.items()},
        figure="within",
    )


def head_sizes(d_head: Mapping[str, float], rotary: Mapping[str, float], odd: str) -> Statement:
    """The odd member has smaller attention heads than the members around it (Table 1)."""
    paper = (
        "The odd member has smaller attention heads than its neighbours in size, and the rotary dimension is "
        "a quarter of them."
    )
    names = list(d_head)
    if odd not in names or len(names) < 2:
        return Statement(paper, f"{odd} is not among the members.", "cannot be tested")
    place = names.index(odd)
    around = [names[k] for k in (place - 1, place + 1) if 0 <= k < len(names)]
    smaller = all(d_head[odd] < d_head[name] for name in around)
    quarter = all(rotary[name] == d_head[name] // 4 for name in names)
    return Statement(
        paper=paper,
        found=(
            f"Heads have {d_head[odd]:.0f} units in {odd} and "
            f"{listed([f'{d_head[n]:.0f} in {n}' for n in around])}; the rotary dimension is "
            f"{'a quarter of that in all' if quarter else 'not always a quarter of that'}."
        ),
        verdict="agrees" if smaller and quarter else "differs",
        numbers={f"d_head, {name}": value for name, value in d_head.items()},
    )


def grows_with_size(within: Mapping[str, float], sizes: Mapping[str, float]) -> Statement:
    """The larger a member, the more alike are its own layers."""
    paper = "Likeness within a model grows with its size (up to a billion parameters)."
    if len(within) < 3:
        return Statement(
            paper, "It takes three members to see a trend.", "cannot be tested", figure="size-and-loss"
        )
    names = list(within)
    rho = spearman(np.array([sizes[n] for n in names]), np.array([within[n] for n in names]))
    parts = [f"{number(within[n])} in {n}" for n in names]
    return Statement(
        paper=paper,
        found=f"Mean CKA between blocks is {listed(parts)}; its rank correlation with size is {number(rho)}.",
        verdict="agrees" if rho >= TREND else "differs",
        numbers={"rank correlation with size": rho, **{f"within, {n}": within[n] for n in names}},
        figure="size-and-loss",
    )


def grows_as_loss_falls(within: Mapping[str, float], losses: Mapping[str, float]) -> Statement:
    """At one size, likeness within a model grows while training makes the loss fall."""
    order = sorted(within, key=lambda name: -losses[name])
    rises = bool((np.diff([within[name] for name in order]) > 0).all())
    parts = [
        f"{number(within[n])} at a loss of {number(losses[n])} ({n.partition('@')[2] or 'finished'})"
        for n in order
    ]
    return Statement(
        paper="The growth may come with lower loss instead of size: the paper could not tell the two apart.",
        found=(
            f"At one size, mean CKA between blocks is {listed(parts)}: it "
            f"{'grows' if rises else 'does not grow steadily'} as the loss falls."
        ),
        verdict="agrees" if rises else "differs",
        numbers={f"within, {n}": within[n] for n in order} | {f"loss, {n}": losses[n] for n in order},
        figure="size-and-loss",
    )


def checkpoints_untested(lacking: Sequence[str]) -> Statement:
    return Statement(
        paper="The growth may come with lower loss instead of size: the paper could not tell the two apart.",
        found=f"This installation has no {listed(list(lacking))}.",
        verdict="cannot be tested",
    )


def state_space(name: str, values: Floats, other: str, beside: Floats) -> Statement:
    """Whether blocks of alike layers are particular to Transformers: only if the one beside has some."""
    found, around = find_blocks(values), find_blocks(beside)
    assert found is not None
    inside, outside = mean_within(values), mean_within(beside)
    text = (
        f"Mean CKA between blocks is {number(inside)} in {name}, against {number(outside)} in {other}. The "
        f"best blocks of {name} have {_lengths(found)}. {_than(found)}."
    )
    if around is not None:
        text += f" Those of {other} have {_lengths(around)}. {_than(around)}."
    verdict: Verdict = "differs" if found.better or inside >= outside else "agrees"
    if around is None or not around.better:
        verdict = "cannot be tested"
        text += f" {other} has no blocks that {name} could lack."
    return Statement(
        paper="Left open: whether uniform layers and blocks are particular to Transformers, so that a "
        "state-space model has none.",
        found=text,
        verdict=verdict,
        numbers={
            f"within, {name}": inside,
            f"within, {other}": outside,
            "variance explained by blocks": found.explained,
            "variance explained by distance": found.by_distance,
            "first block": found.lengths[0],
        },
        figure="state-space",
        beyond=True,
    )


def first_tokens(values: Values, without: Values, names: Sequence[str]) -> Statement:
    """Whether linear CKA is carried by the first token of a passage, whose norm may be huge."""
    changes = np.concatenate([np.abs(values[a, b] - without[a, b]).ravel() for a in names for b in names])
    return Statement(
        paper="Taken for granted: no single token carries the values. First tokens may have a huge norm.",
        found=(
            f"Without the first token of each passage CKA changes by {number(float(changes.mean()))} on "
            f"average, and by {number(float(changes.max()))} at most."
        ),
        verdict="agrees" if changes.max() < 2 * CLEAR else "differs",
        numbers={"mean change": float(changes.mean()), "largest change": float(changes.max())},
        beyond=True,
    )


def _in_blocks(found: Mapping[str, Blocks | None]) -> dict[str, Blocks]:
    """The members whose layers fall into blocks and do not merely fade with distance."""
    return {name: blocks for name, blocks in found.items() if blocks is not None and blocks.better}


def _than(blocks: Blocks) -> str:
    """Blocks are told from layers that stand anywhere on a line."""
    alike = "less" if blocks.better else "as much"
    return f"Layers at random places on a line look {alike} like blocks ({p_text(blocks.p)})"


def _lengths(blocks: Blocks) -> str:
    return f"{listed([str(n) for n in blocks.lengths])} layers"
