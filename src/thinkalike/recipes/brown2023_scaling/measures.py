"""From CKA between the blocks of models to the effects of the paper's claims.

*Values* are CKA between the blocks of two models, rows in the order of the layers of the first: (a, b) →
matrix. Every function is pure; an effect that cannot be had is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from thinkalike.inference.agreement import spearman
from thinkalike.inference.blocks import Blocks, find_blocks
from thinkalike.labels import Floats

Values = Mapping[tuple[str, str], Floats]
Effects = dict[str, float]


def mean_within(values: Floats) -> float:
    """Mean CKA between different blocks of one model; NaN for a single block."""
    off = values[~np.eye(len(values), dtype=bool)]
    return float(off.mean()) if len(off) else float("nan")


def fades(values: Values, name: str) -> Effects:
    own = values[name, name]
    return {name: float(np.diag(own, k=1).mean() - own[0, -1])} if len(own) > 2 else {}


def blocks_within(values: Values, name: str) -> Effects:
    found = find_blocks(values[name, name])
    return {} if found is None else {name: found.p if found.within > found.between else 1.0}


def in_blocks(values: Values, names: Sequence[str]) -> dict[str, Blocks]:
    """The members whose layers fall into blocks and do not merely fade with distance."""
    found = {name: find_blocks(values[name, name]) for name in names}
    return {name: blocks for name, blocks in found.items() if blocks is not None and blocks.better}


def blocks_between(values: Values, blocks: Mapping[str, Blocks]) -> Effects:
    """Layers of like blocks (first with first, later with later) less others, for every two members."""
    found = {}
    for a, b in combinations(blocks, 2):
        first, second = (np.arange(blocks[k].n_layers) < blocks[k].lengths[0] for k in (a, b))
        same = first[:, None] == second
        found[f"{a} and {b}"] = float(values[a, b][same].mean() - values[a, b][~same].mean())
    return found


def first_blocks(blocks: Mapping[str, Blocks], odd: str) -> Effects:
    others = [one.lengths[0] for name, one in blocks.items() if name != odd]
    return {odd: float(min(others) - blocks[odd].lengths[0])} if odd in blocks and others else {}


def early_layers(values: Values, names: Sequence[str]) -> Effects:
    early, later = early_and_later(values, names)
    return {"": early - later}


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


def odd_member(values: Values, names: Sequence[str], odd: str) -> Effects:
    """The expected member's oddness less the highest of the others'."""
    if len(names) < 3 or odd not in names:
        return {}
    scores = oddness(values, names)
    return {odd: scores[odd] - max(score for name, score in scores.items() if name != odd)}


def head_sizes(d_head: Mapping[str, float], rotary: Mapping[str, float], odd: str) -> Effects:
    """Units of a head; 0 where the rotary dimension is not a quarter of them in every member."""
    names = list(d_head)
    if odd not in names or len(names) < 2:
        return {}
    place = names.index(odd)
    around = [names[k] for k in (place - 1, place + 1) if 0 <= k < len(names)]
    quarter = all(rotary[name] == d_head[name] // 4 for name in names)
    return {odd: float(min(d_head[name] for name in around) - d_head[odd]) if quarter else 0.0}


def grows_with_size(values: Values, sizes: Mapping[str, float]) -> Effects:
    if len(sizes) < 3:
        return {}
    within = np.array([mean_within(values[name, name]) for name in sizes])
    return {"": spearman(np.array(list(sizes.values())), within)}


def grows_as_loss_falls(within: Mapping[str, Floats], losses: Mapping[str, float]) -> Effects:
    """Of checkpoints of one member, in the order of falling loss."""
    order = sorted(within, key=lambda name: -losses[name])
    means = [mean_within(within[name]) for name in order]
    names = [name.partition("@")[2] or "the end" for name in order]
    return {f"{names[k + 1]} after {names[k]}": means[k + 1] - means[k] for k in range(len(names) - 1)}


def first_tokens(values: Values, without: Values, names: Sequence[str]) -> Effects:
    changes = [np.abs(values[a, b] - without[a, b]).max() for a in names for b in names]
    return {"": float(max(changes))}


def same_order(values: Values, flattened: Values, names: Sequence[str]) -> Effects:
    """Spearman's ρ over all pairs of different blocks."""
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k:]]

    def flat(every: Values) -> Floats:
        parts = [
            every[a, b][np.triu_indices(len(every[a, b]), k=1)] if a == b else every[a, b].ravel()
            for a, b in pairs
        ]
        return np.concatenate(parts)

    return {"": spearman(flat(values), flat(flattened))}
