"""The answer in plain words: a sentence or two to each question of a reader. Tables have the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thinkalike.comparison.explaining import MATTERS
from thinkalike.comparison.part_answers import most_alike_parts, where_features_matter
from thinkalike.comparison.profiles import Profile, importance_shares
from thinkalike.comparison.similarity_matrix import FEATURES, SimilarityMatrix
from thinkalike.inference.agreement import Agreement
from thinkalike.inference.block_tests import SIGNIFICANT, BlockTest
from thinkalike.inference.ranges import jackknife_error, quantile
from thinkalike.labels import Floats, has_parts, part_name
from thinkalike.wording import listed, readable

if TYPE_CHECKING:
    from thinkalike.comparison.robustness import Robustness

WORTH_NAMING = 0.05
"""The least difference of shares that is told"""
ABOVE_ALL = 0.5
"""The share of the importance from which on one feature stands for the others"""
DEGREES = ((0.6, "care largely about the same features"), (0.3, "care partly about the same features"))
FAINT = "share few of the features they care about"
"""How one says a mean τ_w"""
LITTLE = 0.2
"""ρ below which the features explain little of a layer"""


QUESTIONS = ("Who is alike?", "Why?", "How sure is that?", "What would change it?", "What next?")


class Answer(NamedTuple):
    """What the comparison says to each of `QUESTIONS`."""

    alike: str
    why: str
    sure: str
    otherwise: str
    next: str

    def by_question(self) -> dict[str, str]:
        """What a reader asks → what the comparison says to it."""
        return dict(zip(QUESTIONS, self, strict=True))


def answer(
    profiles: Mapping[str, Profile],
    matrices: Mapping[str, SimilarityMatrix],
    tried: Robustness | None = None,
    agreements: Sequence[Agreement] = (),
    *,
    sample: str = "sentences",
) -> Answer:
    """The answer on two or more systems; honest when nothing is beyond chance.

    `sample` is what the systems were shown a sample of: sentences, or items of another kind.
    """
    if len(profiles) == 1:
        return _one_system(next(iter(profiles.values())))
    ranked = [block for block in matrices[FEATURES].blocks if block.a != block.b]
    if not ranked:
        return _nothing_ranked(profiles)
    silent = {name for name, profile in profiles.items() if not profile.explains_something}
    blocks = [block for block in ranked if not silent & {block.a, block.b}]
    if not blocks:
        return _nothing_shown([name for name in profiles if name in silent], tried, sample)
    best = max(blocks, key=lambda block: block.mean)
    alike, why = _who_is_alike(blocks, best), _why(profiles, blocks, best)
    layers = [layer for profile in profiles.values() for layer in profile.layers]
    if has_parts(layers):
        alike = f"{most_alike_parts(matrices[FEATURES], blocks)} Over all {part_name(layers)}: {alike}"
        why = f"{why} {where_features_matter([profiles[best.a], profiles[best.b]])}".rstrip()
    return Answer(
        alike,
        why + _who_is_left_out(profiles, blocks),
        _how_sure(blocks, best, tried, agreements, sample),
        _what_would_change_it(profiles, blocks, best, matrices, tried),
        _what_next(profiles, blocks, best, tried, sample),
    )


def _one_system(profile: Profile) -> Answer:
    sure = "The profile below shows it for every layer."
    if not profile.explains_something:
        sure = "That the features explain anything of it, these items do not show."
    elif np.nanmedian(profile.mean_scores) < LITTLE:
        sure = "The features explain little of it."
    where = where_features_matter([profile]) if has_parts(profile.layers) else ""
    return Answer(
        f"{profile.system} is organised above all by {_top(profile, system_shares(profile))}.",
        f"Its vectors lie further apart where that differs than where anything else does. {where}".rstrip(),
        sure,
        "Other features, or other sentences.",
        "Compare it with another system.",
    )


def _nothing_ranked(profiles: Mapping[str, Profile]) -> Answer:
    flat = [name for name, p in profiles.items() if _is_flat(p)]
    return Answer(
        "These systems cannot be compared by features: in each pair one ranks no feature above another.",
        f"The features explain nothing of the distances in {listed(flat)}.",
        "There is nothing to be sure of.",
        "Other features may tell the systems apart, or more items.",
        "Compare by geometry, which needs no features, or add features.",
    )


def _nothing_shown(silent: Sequence[str], tried: Robustness | None, sample: str) -> Answer:
    """Systems do rank features, but in an order that may be chance alone."""
    sure = "Nothing could be tested against chance."
    return Answer(
        "How alike these systems are by features cannot be said.",
        f"That the features explain anything of {listed(silent)}, these items do not show.",
        sure if tried is None else f"{sure} {tried.answer}",
        f"Other features may tell the systems apart, or more {sample}.",
        "Compare by geometry, which needs no features, or add features.",
    )


def _who_is_left_out(profiles: Mapping[str, Profile], blocks: Sequence[BlockTest]) -> str:
    compared = {name for block in blocks for name in (block.a, block.b)}
    others = [name for name in profiles if name not in compared]
    flat = [name for name in others if _is_flat(profiles[name])]
    silent = [name for name in others if name not in flat]
    said = f" Of {listed(flat)} the features say nothing: they explain none of the distances." if flat else ""
    if silent:
        said += f" That the features explain anything of {listed(silent)}, these items do not show."
    return said


def _is_flat(profile: Profile) -> bool:
    """Whether no layer ranks one feature above another."""
    values = profile.mean_importance
    return bool((np.nanmax(values, axis=1) == np.nanmin(values, axis=1)).all())


def system_shares(profile: Profile) -> Floats:
    """(n_features,) each feature's share of the importance, averaged over layers."""
    return importance_shares(profile.mean_importance).mean(axis=0)


# Who is alike?


def _who_is_alike(blocks: Sequence[BlockTest], best: BlockTest) -> str:
    if len(blocks) == 1:
        return _two_are_alike(best)
    if not _is_tested(blocks) or any(_is_alike(block) for block in blocks):
        return _most_alike(blocks, best)
    return "No two of these systems care about the same features more than unrelated systems would."


def _two_are_alike(block: BlockTest) -> str:
    if _is_tested([block]) and not _is_alike(block):
        return f"{_pair(block)} do not care about the same features more than unrelated systems would."
    return f"{_pair(block)} {_degree(block.mean)}."


def _most_alike(blocks: Sequence[BlockTest], best: BlockTest) -> str:
    """By the size of τ_w; a tie is called a tie."""
    others = [block for block in blocks if block is not best]
    if np.isnan([block.behind_low for block in others]).all():
        return f"{_pair(best)} come out as the most alike{_how_alike(best)}"
    tied = [block for block in others if block.is_tied]
    if not tied:
        return f"{_pair(best)} are the most alike{_how_alike(best)}"
    if len(tied) == len(others):
        names = dict.fromkeys(name for block in blocks for name in (block.a, block.b))
        return f"{listed(list(names))} are about equally alike: they {_degree(best.mean)}."
    if len(tied) > 2:
        return f"{_pair(best)} are among the most alike, about equally with {len(tied)} other pairs."
    equals = " and with ".join(_pair(block) for block in tied)
    return f"{_pair(best)} are the most alike, about equally with {equals}."


def _how_alike(most: BlockTest) -> str:
    """To be the most alike is not yet to be alike."""
    return f": they {_degree(most.mean)}." if most.mean >= DEGREES[-1][0] else f", but {_degree(most.mean)}."


def _degree(mean: float) -> str:
    if mean <= 0:
        return "care about different features"
    return next((words for least, words in DEGREES if mean >= least), FAINT)


# Why?


def _why(profiles: Mapping[str, Profile], blocks: Sequence[BlockTest], best: BlockTest) -> str:
    everyone = all(block.is_tied for block in blocks if block is not best)
    names = list(dict.fromkeys(n for b in blocks for n in (b.a, b.b))) if everyone else [best.a, best.b]
    shared = _shared_features([profiles[name] for name in names])
    if len(blocks) == 1:
        return f"{shared} {_two_differ(profiles[best.a], profiles[best.b])}"
    outsider = _outsider(blocks, best)
    differs = _who_differs(profiles[outsider], profiles[best.a], profiles[best.b])
    return f"{shared} {differs}" if differs else shared


def _shared_features(profiles: Sequence[Profile]) -> str:
    """What all of them are organised by."""
    shares = [system_shares(profile) for profile in profiles]
    least = np.min(shares, axis=0)
    order = [k for k in np.argsort(-least, kind="stable") if least[k] >= MATTERS][:3]
    names = [readable(profiles[0].features[k]) for k in order]
    all_of_them = "Both" if len(profiles) == 2 else "All"
    if not order:
        tops = [f"{p.system} by {_top(p, own)}" for p, own in zip(profiles, shares, strict=True)]
        return f"No feature matters in all of them: {listed(tops)}."
    if least[order[0]] < ABOVE_ALL:
        return f"{all_of_them} are organised by {listed(names)}."
    then = f", then by {listed(names[1:])}" if names[1:] else ""
    return f"{all_of_them} are organised above all by {names[0]}{then}."


def _top(profile: Profile, shares: Floats) -> str:
    k = int(shares.argmax())
    return readable(profile.features[k]) if shares[k] > 0 else "none of them"


def _who_differs(odd: Profile, a: Profile, b: Profile) -> str:
    """Features whose share lies outside those of both others."""
    shares, first, second = (system_shares(profile) for profile in (odd, a, b))
    above, below = shares - np.maximum(first, second), np.minimum(first, second) - shares
    reasons = []
    for word, beyond in (("more", above), ("less", below)):
        k = int(beyond.argmax())
        if beyond[k] >= WORTH_NAMING:
            doubt = ", which may be noise" if _may_be_noise(beyond[k], k, odd, a, b) else ""
            reasons.append(f"{word} about {readable(odd.features[k])}{doubt}")
    return f"{odd.system} cares {listed(reasons)} than {a.system} and {b.system} do." if reasons else ""


def _two_differ(a: Profile, b: Profile) -> str:
    shares_a, shares_b = system_shares(a), system_shares(b)
    k = int(np.abs(shares_a - shares_b).argmax())
    if shares_a[k] == shares_b[k]:
        return "No feature matters more to one than to the other."
    more, less = (a, b) if shares_a[k] > shares_b[k] else (b, a)
    doubt = ", but that may be noise" if _may_be_noise(shares_a[k] - shares_b[k], k, a, b) else ""
    return (
        f"They differ most in {readable(a.features[k])}, which matters more to {more.system} than to "
        f"{less.system}{doubt}."
    )


def _may_be_noise(difference: float, k: int, *profiles: Profile) -> bool:
    """Whether other sentences may undo a difference in the share of feature k, the largest of all."""
    error = np.sqrt(sum(_share_error(profile, k) ** 2 for profile in profiles))
    limit = max(_limit(profile) for profile in profiles)
    return bool(abs(difference) < limit * error)  # False where the error is not known


def _limit(profile: Profile) -> float:
    """How many standard errors a difference has to have, being the largest of all features'."""
    level, made = 1 - SIGNIFICANT / len(profile.features), profile.replicates
    if made is None:  # over folds
        n_folds = profile.importance.shape[1]
        return quantile(level, n_folds, parts=n_folds) if n_folds > 1 else float("nan")
    return quantile(level, len(made.scores), **made.dealt)


def _share_error(profile: Profile, k: int) -> float:
    """Standard error of a feature's share averaged over layers: over sentences left out, or over folds."""
    if profile.replicates is not None:
        without = importance_shares(profile.replicates.importance).mean(axis=1)[:, k]
        return float(jackknife_error(without, parts=profile.replicates.parts))
    by_fold = importance_shares(profile.importance).mean(axis=0)[:, k]
    return float(by_fold.std(ddof=1) / np.sqrt(len(by_fold))) if len(by_fold) > 1 else float("nan")


# How sure is that?


def _how_sure(
    blocks: Sequence[BlockTest],
    best: BlockTest,
    tried: Robustness | None,
    agreements: Sequence[Agreement],
    sample: str,
) -> str:
    parts = [
        _beyond_chance(blocks, best),
        _beyond_untrained(blocks),
        _matrices_beyond_untrained(agreements),
        _other_samples(blocks, best, sample),
    ]
    if tried is not None:
        parts.append(tried.answer)
    return " ".join(part for part in parts if part)


def _beyond_chance(blocks: Sequence[BlockTest], best: BlockTest) -> str:
    if not _is_tested(blocks):
        return "Nothing could be tested against chance: the features are too few, or say too little."
    alike, all_pairs = sum(_is_alike(block) for block in blocks), len(blocks)
    if all_pairs == 1:
        return "That is more than chance." if alike else "What they share is no more than chance."
    if alike == all_pairs:
        return f"All {all_pairs} pairs are more alike than chance."
    said = f"{alike or 'None'} of {all_pairs} pairs {'is' if alike == 1 else 'are'} more alike than chance"
    return f"{said}, {_pair(best)} not among them." if alike and not _is_alike(best) else f"{said}."


def _beyond_untrained(blocks: Sequence[BlockTest]) -> str:
    known = [block for block in blocks if np.isfinite(block.control_share) and _is_alike(block)]
    as_alike = [block for block in known if block.control_share > SIGNIFICANT]
    if not known:
        return ""
    if not as_alike:
        return "Untrained copies are hardly ever as alike, which speaks for training."
    named = listed([_pair(block) for block in as_alike[:2]]) if len(as_alike) < len(known) else "the systems"
    return f"But untrained copies of {named} may be as alike: it need not come from training."


def _matrices_beyond_untrained(agreements: Sequence[Agreement]) -> str:
    known = [one for one in agreements if np.isfinite(one.untrained_share)]
    if not known:
        return ""
    if known[0].q_smooth > SIGNIFICANT:
        return "Layers alike by features are alike by geometry no more than smooth changes over depth give."
    if known[0].untrained_share > SIGNIFICANT:
        return (
            "Layers alike by features tend to be alike by geometry too, but so they do in untrained copies."
        )
    return "Layers alike by features tend to be alike by geometry too, more than in untrained copies."


def _other_samples(blocks: Sequence[BlockTest], best: BlockTest, sample: str) -> str:
    if not np.isfinite(best.low):
        return f"How it would be with other {sample} was not asked."
    if _is_tested(blocks) and not any(_is_alike(block) for block in blocks):
        return ""  # no pair was named
    if len(blocks) == 1:
        steady = _degree(best.low) == _degree(best.high)
        would_be = "would be about as alike" if steady else "may be more alike, or less"
        return f"With other {sample} they {would_be}."
    if any(block.is_tied for block in blocks if block is not best):
        return f"Other {sample} may well put another pair first."
    return f"Other {sample} would put the same pair first."


def _is_tested(blocks: Sequence[BlockTest]) -> bool:
    return not np.isnan([block.q for block in blocks]).all()


def _is_alike(block: BlockTest) -> bool:
    return bool(block.q < SIGNIFICANT)


# What would change it?


def _what_would_change_it(
    profiles: Mapping[str, Profile],
    blocks: Sequence[BlockTest],
    best: BlockTest,
    matrices: Mapping[str, SimilarityMatrix],
    tried: Robustness | None,
) -> str:
    weak = [name for name, profile in profiles.items() if np.nanmedian(profile.mean_scores) < LITTLE]
    parts = [_geometry(blocks, best, matrices) if "rsa" in matrices else ""]
    if weak:
        parts.append(f"The features explain little of {listed(weak)}: others may say something else there.")
    if tried is None:
        parts.append("Whether other analyses say the same was not tried.")
    return " ".join(part for part in parts if part)


def _geometry(blocks: Sequence[BlockTest], best: BlockTest, matrices: Mapping[str, SimilarityMatrix]) -> str:
    rsa, ours = matrices["rsa"], (best.a, best.b)
    if len(blocks) == 1:
        return ""
    tests = [rsa.geometry_test(block.a, block.b) for block in blocks]
    if all(test is not None and test.q > SIGNIFICANT for test in tests):
        return "By geometry (RSA) no two of them are more alike than chance."
    ordered = sorted(((block.a, block.b) for block in blocks), key=lambda pair: -rsa.block_mean(*pair))
    top, other = ordered[0], ordered[1] if ordered[0] == ours else ours
    if rsa.clearly_apart(top, other) is False:
        return f"Geometry (RSA) cannot tell {listed(top)} from {listed(other)}."
    if top == ours:
        return "Geometry (RSA), which knows no features, puts the same pair first."
    return f"Geometry (RSA), which knows no features, puts {listed(top)} first."


# What next?


def _what_next(
    profiles: Mapping[str, Profile],
    blocks: Sequence[BlockTest],
    best: BlockTest,
    tried: Robustness | None,
    sample: str,
) -> str:
    """The two most useful steps, and always the way to the reasons."""
    steps = []
    if not np.isfinite(best.low):
        steps.append("ask for ranges (--resamples 20)")
    named = not _is_tested(blocks) or any(_is_alike(block) for block in blocks)
    if named and any(block.is_tied and np.isfinite(block.behind_low) for block in blocks):
        steps.append(f"take more {sample}, which may break the tie")
    copied = all("model" in profile.metadata for profile in profiles.values())  # arrays cannot be
    if copied and not np.isfinite(best.control):
        steps.append("set untrained copies beside them (--controls untrained)")
    if tried is None:
        steps.append("try other analyses (--robustness)")
    layers = f"layer {best.layer_a} of {best.a} and layer {best.layer_b} of {best.b}"
    steps = [*steps[:2], f"see why {layers} are alike (explain)"]
    said = listed(steps)
    return f"{said[0].upper()}{said[1:]}."


def _outsider(blocks: Sequence[BlockTest], best: BlockTest) -> str:
    """The system least like the two of the best pair."""
    names = dict.fromkeys(name for b in blocks for name in (b.a, b.b) if name not in (best.a, best.b))

    def likeness(name: str) -> float:
        return float(
            np.mean([b.mean for b in blocks if name in (b.a, b.b) and {b.a, b.b} & {best.a, best.b}])
        )

    return min(names, key=likeness)


def _pair(block: BlockTest) -> str:
    return f"{block.a} and {block.b}"
