"""The answer in three sentences: who is alike, by what, and who differs how. Each with its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from thinkalike.comparison.explaining import MATTERS
from thinkalike.comparison.profiles import Profile, importance_shares
from thinkalike.comparison.similarity_matrix import FEATURES, SimilarityMatrix
from thinkalike.inference.block_tests import BlockTest
from thinkalike.inference.jackknife import jackknife_error
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
        if len(blocks) == 1
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
    pair, two = _pair(best), len(blocks) == 1
    if two:
        sentence = f"{pair} {_likeness_of_two(best)} ({_numbers(best)})"
    else:
        sentence = f"{_most_alike(blocks, best)}{_beyond_chance(blocks)}"
    return sentence + _geometry(blocks, best, matrices) + "."


def _likeness_of_two(block: BlockTest) -> str:
    if np.isnan(block.q):
        return "rank the features alike" if block.mean > 0 else "do not rank the features alike"
    alike = block.q < SIGNIFICANT
    return (
        "rank the features alike beyond chance" if alike else "do not rank the features alike beyond chance"
    )


def _most_alike(blocks: Sequence[BlockTest], best: BlockTest) -> str:
    """Who ranks the features most alike: by the size of τ_w, and a tie where the sentences cannot tell."""
    others = sorted((b for b in blocks if b is not best), key=lambda b: -b.mean)
    tied = [b for b in others if b.is_tied]
    named = [f"{_pair(b)} ({_numbers(b)})" for b in (best, *others[:2])]
    if not tied:
        return f"{named[0]} are the most alike by the features they care about; then {listed(named[1:])}"
    if np.isnan([b.behind_low for b in others]).all():
        return (
            f"{named[0]} have the highest τ_w, then {listed(named[1:])}; whether other sentences would say "
            "the same, only resamples tell"
        )
    if len(tied) == len(others):
        return (
            f"Which systems are most alike, these sentences cannot tell: highest are {listed(named)}, a tie"
        )
    as_much = [f"{_pair(b)} ({_numbers(b)})" for b in tied[:2]]
    more = f" and {len(tied) - 2} more" if len(tied) > 2 else ""
    return f"{named[0]} are the most alike by the features they care about, tied with {listed(as_much)}{more}"


def _beyond_chance(blocks: Sequence[BlockTest]) -> str:
    if np.isnan([b.q for b in blocks]).all():
        return "; nothing could be tested against chance"
    alike = sum(b.q < SIGNIFICANT for b in blocks)
    if alike == 0:
        return "; no two of them rank the features alike beyond chance"
    return "" if alike == len(blocks) else f"; beyond chance are {alike} of {len(blocks)} pairs"


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
    mean = number(float(np.mean([b.mean for b in to_pair])))
    if any(b.is_tied for b in to_pair):
        opening = (
            f"That {outsider} is less like them (mean τ_w {mean} with them), these sentences do not show"
        )
        joint = "; in shares it cares"
    elif all(b.q < SIGNIFICANT for b in to_pair):
        opening, joint = f"{outsider} is like them too (mean τ_w {mean} with them)", ", but cares"
    else:
        opening, joint = f"{outsider} differs from them (mean τ_w {mean} with them)", ": it cares"
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
        return f"{opening}; no feature's share lies {percent(WORTH_NAMING)} or more outside theirs."
    return f"{opening}{joint} {' and '.join(reasons)}."


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
    error = np.sqrt(sum(_share_error(profile, k) ** 2 for profile in profiles))
    if np.isnan(error):
        return ""
    made = [profile.replicates for profile in profiles]
    parts = [profiles[0].importance.shape[1] if one is None else one.parts for one in made]
    limit = stats.t.isf(SIGNIFICANT / 2 / len(profiles[0].features), min(parts) - 1)
    return ", a difference that may be noise" if abs(difference) < limit * error else ""


def _share_error(profile: Profile, k: int) -> float:
    """Standard error of a feature's share averaged over layers: over sentences left out, or over folds."""
    if profile.replicates is not None:
        without = importance_shares(profile.replicates.importance).mean(axis=1)[:, k]
        return float(jackknife_error(without, parts=profile.replicates.parts))
    by_fold = importance_shares(profile.importance).mean(axis=0)[:, k]
    return float(by_fold.std(ddof=1) / np.sqrt(len(by_fold))) if len(by_fold) > 1 else float("nan")


def _geometry(blocks: Sequence[BlockTest], best: BlockTest, matrices: Mapping[str, SimilarityMatrix]) -> str:
    if "rsa" not in matrices:
        return ""
    rsa, ours = matrices["rsa"], (best.a, best.b)
    if len(blocks) == 1:
        return f"; their geometries correlate at ρ = {_with_range(rsa, ours)} (mean RSA)"
    ordered = sorted(((b.a, b.b) for b in blocks), key=lambda pair: -rsa.block_mean(*pair))
    top, other = ordered[0], ordered[1] if ordered[0] == ours else ours
    clear = rsa.clearly_apart(top, other)
    if clear is False:
        told = f"ρ = {_with_range(rsa, top)} and {_with_range(rsa, other)}"
        return (
            f"; geometry cannot tell {top[0]} and {top[1]} from {other[0]} and {other[1]} (mean RSA {told})"
        )
    if top == ours:
        return f"; geometry says the same (mean RSA ρ = {_with_range(rsa, ours)}, the highest)"
    against = f"{_with_range(rsa, top)} against {_with_range(rsa, ours)}"
    return f"; geometry says {top[0]} and {top[1]} (mean RSA ρ = {against})"


def _with_range(matrix: SimilarityMatrix, pair: tuple[str, str]) -> str:
    """`0.62, 0.55 to 0.68`"""
    test, mean = matrix.geometry_test(*pair), number(matrix.block_mean(*pair))
    if test is None or not np.isfinite(test.low):
        return mean
    return f"{mean}, {number(test.low)} to {number(test.high)}"


def _outsider(blocks: Sequence[BlockTest], best: BlockTest) -> str:
    """The system least like the two of the best pair; the empty name when there are only two."""
    names = dict.fromkeys(name for b in blocks for name in (b.a, b.b) if name not in (best.a, best.b))

    def likeness(name: str) -> float:
        return float(
            np.mean([b.mean for b in blocks if name in (b.a, b.b) and {b.a, b.b} & {best.a, best.b}])
        )

    return min(names, key=likeness, default="")


def _numbers(block: BlockTest) -> str:
    parts = [f"mean τ_w {number(block.mean)}"]
    if np.isfinite(block.low):
        parts.append(f"{number(block.low)} to {number(block.high)} with other sentences")
    if np.isfinite(block.ceiling):
        parts.append(f"ceiling {number(block.ceiling)}")
    if np.isfinite(block.q):
        parts.append(p_text(block.q).replace("p", "q", 1))
    if np.isfinite(block.control):
        parts.append(f"untrained copies {number(block.control)}")
    return ", ".join(parts)


def _pair(block: BlockTest) -> str:
    return f"{block.a} and {block.b}"


def _top(profile: Profile, shares: Floats) -> str:
    k = int(shares.argmax())
    return f"{readable(profile.features[k])} ({percent(shares[k])})" if shares[k] > 0 else "none of them"
