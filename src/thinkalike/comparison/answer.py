"""The answer in three sentences: who is alike, by what, and who differs how. Each with its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from thinkalike.comparison.explaining import MATTERS
from thinkalike.comparison.profiles import Profile, importance_shares
from thinkalike.comparison.similarity_matrix import FEATURES, SimilarityMatrix
from thinkalike.inference.block_tests import BlockTest
from thinkalike.labels import Floats
from thinkalike.wording import listed, number, p_text, percent, readable

SIGNIFICANT = 0.05
WORTH_NAMING = 0.05
"""The least difference of shares that is told"""


def answer(profiles: Mapping[str, Profile], matrices: Mapping[str, SimilarityMatrix]) -> tuple[str, str, str]:
    """Three sentences on two or more systems; honest when nothing is beyond chance."""
    blocks = [block for block in matrices[FEATURES].blocks if block.a != block.b]
    if not blocks:
        return _nothing_ranked(profiles)
    best = max(blocks, key=lambda block: block.mean)
    outsider = _outsider(blocks, best)
    difference = (
        _two_differ(profiles[best.a], profiles[best.b])
        if outsider is None
        else _who_differs(profiles, blocks, best, outsider)
    )
    return (
        _who_is_alike(blocks, best, matrices),
        _by_what(profiles[best.a], profiles[best.b]),
        difference + _who_is_left_out(profiles, blocks),
    )


def _nothing_ranked(profiles: Mapping[str, Profile]) -> tuple[str, str, str]:
    flat = [name for name, p in profiles.items() if _is_flat(p)]
    return (
        "No two of the systems can be compared by features: in each pair one ranks no feature above another.",
        f"The features explain nothing of the distances in {listed(flat)}.",
        "Geometry is compared all the same; for the features, add others, or more items.",
    )


def _who_is_left_out(profiles: Mapping[str, Profile], blocks: Sequence[BlockTest]) -> str:
    compared = {name for block in blocks for name in (block.a, block.b)}
    flat = [name for name in profiles if name not in compared]
    return f" Of {listed(flat)} the features say nothing: they explain none of the distances." if flat else ""


def _is_flat(profile: Profile) -> bool:
    """Whether no layer ranks one feature above another."""
    values = profile.mean_importance
    return bool((np.nanmax(values, axis=1) == np.nanmin(values, axis=1)).all())


def system_shares(profile: Profile) -> Floats:
    """(n_features,) each feature's share of the importance, averaged over layers."""
    return importance_shares(profile.mean_importance).mean(axis=0)


def _who_is_alike(
    blocks: Sequence[BlockTest], best: BlockTest, matrices: Mapping[str, SimilarityMatrix]
) -> str:
    pair, two = f"{best.a} and {best.b}", len(blocks) == 1
    numbers = _numbers(best, corrected=not two)
    if np.isnan(best.q):
        sentence = (
            f"{pair} rank the features most alike ({numbers}); whether by chance, so few features cannot tell"
        )
    elif not any(block.q < SIGNIFICANT for block in blocks):
        who = pair if two else f"No two of the {_count(blocks)} systems"
        nearest = f" ({numbers})" if two else f"; the nearest are {pair} ({numbers})"
        negation = "do not rank" if two else "rank"
        sentence = f"{who} {negation} the features alike beyond chance{nearest}"
    elif two:
        sentence = f"{pair} care about the same features more than chance would have it ({numbers})"
    else:
        others = [
            f"{b.a} and {b.b} {number(b.mean)}{f', {_q(b)}' if np.isfinite(b.q) else ''}"
            for b in _others(blocks, best)[:2]
        ]
        sentence = (
            f"{pair} are the most alike by the features they care about ({numbers}; {'; '.join(others)})"
        )
    return sentence + _geometry(blocks, best, matrices) + "."


def _by_what(a: Profile, b: Profile) -> str:
    shares_a, shares_b = system_shares(a), system_shares(b)
    both = np.minimum(shares_a, shares_b)
    order = [k for k in np.argsort(-both, kind="stable") if both[k] >= MATTERS][:3]
    if order:
        parts = [
            f"{readable(a.features[k])} ({percent(shares_a[k])} and {percent(shares_b[k])} of the importance)"
            for k in order
        ]
        return f"Both are organised by {listed(parts)}, averaged over layers."
    return (
        f"No feature has {percent(MATTERS)} of the importance in both: {a.system} is organised by "
        f"{_top(a, shares_a)}, {b.system} by {_top(b, shares_b)}."
    )


def _who_differs(
    profiles: Mapping[str, Profile], blocks: Sequence[BlockTest], best: BlockTest, outsider: str
) -> str:
    """Names features whose share lies outside those of both others."""
    odd, pair = profiles[outsider], (profiles[best.a], profiles[best.b])
    to_pair = [b for b in blocks if outsider in (b.a, b.b) and {b.a, b.b} & {best.a, best.b}]
    too = all(b.q < SIGNIFICANT for b in to_pair)
    mean = float(np.mean([b.mean for b in to_pair]))
    opening = (
        f"{outsider} {'is like them too' if too else 'differs most'} (mean τ_w {number(mean)} with them)"
    )
    shares, (a, b) = system_shares(odd), (system_shares(one) for one in pair)
    above, below = shares - np.maximum(a, b), np.minimum(a, b) - shares
    reasons = []
    for word, beyond in (("more", above), ("less", below)):
        k = int(beyond.argmax())
        if beyond[k] >= WORTH_NAMING:
            reasons.append(
                f"{word} about {readable(odd.features[k])} ({percent(shares[k])} of its importance against "
                f"{percent(a[k])} and {percent(b[k])}{_doubt(beyond[k], k, odd, *pair)})"
            )
    if not reasons:
        return f"{opening}, but no feature's share lies {percent(WORTH_NAMING)} or more outside theirs."
    return f"{opening}{', but cares' if too else ': it cares'} {' and '.join(reasons)}."


def _two_differ(a: Profile, b: Profile) -> str:
    shares_a, shares_b = system_shares(a), system_shares(b)
    k = int(np.abs(shares_a - shares_b).argmax())
    if shares_a[k] == shares_b[k]:
        return "No feature has a larger share of the importance in one than in the other."
    return (
        f"They differ most in {readable(a.features[k])}: {percent(shares_a[k])} of {a.system}'s importance, "
        f"{percent(shares_b[k])} of {b.system}'s{_doubt(shares_a[k] - shares_b[k], k, a, b)}."
    )


def _doubt(difference: float, k: int, *profiles: Profile) -> str:
    """A clause when a difference in the share of feature k, the largest of all, may be noise."""
    resampled = all(profile.bootstrap is not None for profile in profiles)
    error = np.sqrt(sum(_share_error(profile, k, resampled=resampled) ** 2 for profile in profiles))
    tail = SIGNIFICANT / 2 / len(profiles[0].features)
    n_folds = profiles[0].importance.shape[1]
    if n_folds < 2 and not resampled:
        return ""
    limit = stats.norm.isf(tail) if resampled else stats.t.isf(tail, n_folds - 1)
    return ", a difference that may be noise" if abs(difference) < limit * error else ""


def _share_error(profile: Profile, k: int, *, resampled: bool) -> float:
    """Standard error of a feature's share averaged over layers: over resamples, or over folds."""
    if resampled and profile.bootstrap is not None:
        return float(importance_shares(profile.bootstrap.importance).mean(axis=1)[:, k].std(ddof=1))
    by_fold = importance_shares(profile.importance).mean(axis=0)[:, k]
    return float(by_fold.std(ddof=1) / np.sqrt(len(by_fold))) if len(by_fold) > 1 else float("nan")


def _geometry(blocks: Sequence[BlockTest], best: BlockTest, matrices: Mapping[str, SimilarityMatrix]) -> str:
    if "rsa" not in matrices:
        return ""
    means = {(b.a, b.b): matrices["rsa"].block_mean(b.a, b.b) for b in blocks}
    ours = means[best.a, best.b]
    if len(blocks) == 1:
        return f"; their geometries correlate at ρ = {number(ours)} (mean RSA)"
    top = max(means, key=lambda pair: means[pair])
    if top == (best.a, best.b):
        return f"; geometry says the same (mean RSA ρ = {number(ours)}, the highest)"
    return f"; geometry says {top[0]} and {top[1]} (mean RSA ρ = {number(means[top])} against {number(ours)})"


def _outsider(blocks: Sequence[BlockTest], best: BlockTest) -> str | None:
    """The system least like the two of the best pair; None when there are only two."""
    names = dict.fromkeys(name for b in blocks for name in (b.a, b.b) if name not in (best.a, best.b))

    def likeness(name: str) -> float:
        return float(
            np.mean([b.mean for b in blocks if name in (b.a, b.b) and {b.a, b.b} & {best.a, best.b}])
        )

    return min(names, key=likeness) if names else None


def _numbers(block: BlockTest, *, corrected: bool) -> str:
    mean = f"mean τ_w {number(block.mean)}"
    if np.isfinite(block.low):
        mean += f", {number(block.low)} to {number(block.high)} with other sentences"
    parts = [mean] if np.isnan(block.q) else [mean, _q(block) if corrected else p_text(block.q)]
    if np.isfinite(block.control):
        parts.append(f"untrained copies {number(block.control)}")
    return ", ".join(parts)


def _q(block: BlockTest) -> str:
    return p_text(block.q).replace("p", "q", 1)


def _others(blocks: Sequence[BlockTest], best: BlockTest) -> list[BlockTest]:
    return sorted((b for b in blocks if b is not best), key=lambda b: -b.mean)


def _count(blocks: Sequence[BlockTest]) -> int:
    return len({name for b in blocks for name in (b.a, b.b)})


def _top(profile: Profile, shares: Floats) -> str:
    k = int(shares.argmax())
    return f"{readable(profile.features[k])} ({percent(shares[k])})" if shares[k] > 0 else "none of them"
