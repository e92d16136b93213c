"""What a careful reader should know before believing the numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import factorial

import numpy as np

from thinkalike.comparison import system_cautions
from thinkalike.comparison.profiles import Profile, importance_shares
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.comparison.system_cautions import layers_where
from thinkalike.inference.agreement import Agreement
from thinkalike.inference.block_tests import FEWEST_FEATURES
from thinkalike.inference.sentences import MOST_ITEMS
from thinkalike.inference.weighted_tau import relabelled_taus, relabellings
from thinkalike.labels import Floats, has_parts
from thinkalike.progress import in_notebook
from thinkalike.wording import listed, number, percent, readable

LOW_SCORE = 0.2
DOMINANT = 0.8
CORRELATED = 0.7
INFLATED = 5.0
FINE_GRAINED = 0.98
WIDE_NULL = 0.4
DUPLICATED = 0.05
HALF = 0.5
UNSTABLE = 0.5
AS_ALIKE_UNTRAINED = 0.1
MOST_SYSTEMS = 6
"""That a caution names, before it counts the others"""
FEWEST_RESAMPLES = 10
"""Of fewer, Student's quantile makes ranges much wider"""


class CautionWarning(UserWarning):
    """A caution of a comparison; also in `Comparison.cautions` and in the report."""


@dataclass(frozen=True)
class Caution:
    """One thing to know, where it was seen, and what it means."""

    kind: str
    """A key of `CAUTIONS`"""
    text: str
    """A sentence or two for people"""
    systems: tuple[str, ...] = ()
    """The systems it is about; empty when it is about the run"""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the cautions look at."""

    profiles: Sequence[Profile]
    features: SimilarityMatrix
    geometry: Sequence[SimilarityMatrix] = ()
    differing: Mapping[str, float] = field(default_factory=dict)
    """Ordered feature → the share of pairs of items that differ in it, where only that counts"""
    constant: Sequence[str] = ()
    """Features of the stimuli that no profile has, because no two items differ in them"""
    items: int = 0
    agreements: Sequence[Agreement] = ()
    """Of the matrices"""


Found = Iterator[tuple[str, tuple[str, ...]]]


def find_cautions(evidence: Evidence) -> tuple[Caution, ...]:
    """Everything in `CAUTIONS` that applies, in the order of the table."""
    return tuple(Caution(kind, *found) for kind, look in CAUTIONS.items() for found in look(evidence))


def tell(cautions: Sequence[Caution]) -> None:
    """As warnings; in a notebook in one quiet box, for warnings stand there in red."""
    if not cautions:
        return
    if in_notebook():
        from IPython.display import HTML, display

        points = "".join(f"<li>{escape(caution.text)}</li>" for caution in cautions)
        display(
            HTML(f"<details><summary>To keep in mind ({len(cautions)})</summary><ul>{points}</ul></details>")
        )
        return
    for caution in cautions:
        warnings.warn(caution.text, CautionWarning, stacklevel=3)


def chance_level(n_features: int, *, seed: int = 0) -> float:
    """What τ_w of two rankings without ties exceeds by chance in one of twenty cases."""
    ranking: Floats = np.arange(float(n_features))[None]
    null = relabelled_taus(ranking, ranking, relabellings(n_features, seed=seed))
    return float(np.quantile(np.concatenate([part.ravel() for part in null]), 0.95))


def _low_score(evidence: Evidence) -> Found:
    where = [(profile, profile.mean_scores < LOW_SCORE) for profile in evidence.profiles]
    low = [(profile, mask) for profile, mask in where if mask.any()]
    if low:
        lowest = min(float(np.nanmin(profile.mean_scores)) for profile, _ in low)
        yield (
            f"The features explain little in {_places(low)} (ρ below {LOW_SCORE}, lowest {lowest:.3f}): what "
            "ranks first there may not matter much.",
            _systems(low),
        )


def _dominant_feature(evidence: Evidence) -> Found:
    where: dict[str, list[tuple[Profile, np.ndarray]]] = {}
    for profile in evidence.profiles:
        dominant = importance_shares(profile.mean_importance) > DOMINANT
        for k in np.flatnonzero(dominant.any(axis=0)):
            where.setdefault(readable(profile.features[k]), []).append((profile, dominant[:, k]))
    for feature, places in where.items():
        yield (
            f"{feature[:1].upper()}{feature[1:]} has more than {percent(DOMINANT)} of the importance in "
            f"{_places(places)}: the order of the other features rests on small numbers.",
            _systems(places),
        )


def _collinear_features(evidence: Evidence) -> Found:
    first = evidence.profiles[0]
    if first.collinearity is None:
        return
    names = [readable(name) for name in first.collinearity.features]
    correlations, inflation = first.collinearity.correlations, first.collinearity.inflation
    for i, j in zip(*np.triu_indices(len(names), k=1), strict=True):
        if abs(correlations[i, j]) > CORRELATED:
            yield (
                f"Pairs of items that differ in {names[i]} also tend to differ in {names[j]} "
                f"(r = {number(correlations[i, j])}): their importances cannot be told apart well. Balance "
                "the stimuli, or leave one of the two out.",
                (),
            )
    inflated = [names[k] for k in np.flatnonzero(inflation > INFLATED)]
    if inflated:
        yield (
            f"The other features nearly predict {listed(inflated)} (variance inflation up to "
            f"{np.nanmax(inflation):.1f}): weights and importances of these are uncertain.",
            (),
        )


def _fine_grained_features(evidence: Evidence) -> Found:
    for name, share in evidence.differing.items():
        if share > FINE_GRAINED:
            yield (
                f"{100 * share:.1f} % of all pairs of items differ in {readable(name)}, and only that counts "
                "here: it can say little about which are alike. Let the size of the difference count: "
                "ordered='minmax' (--ordered minmax).",
                (),
            )


def _few_features(evidence: Evidence) -> Found:
    n_features = len(evidence.features.settings["features"])
    if n_features < FEWEST_FEATURES:
        yield (
            f"{n_features} features have only {factorial(n_features)} orders, so no likeness can be told "
            f"from chance: no p is given. With {FEWEST_FEATURES} features or more there are tests.",
            (),
        )
        return
    chance = chance_level(n_features)
    if chance > WIDE_NULL:
        yield (
            f"With {n_features} features chance alone takes τ_w to {number(chance)} or more for one pair of "
            "layers in twenty: single cells of the matrix say little, blocks of layers say more.",
            (),
        )


def constant_features_caution(names: Sequence[str]) -> str:
    """Says that features were left out because no two items differ in them."""
    several = len(names) > 1
    return (
        f"No two items differ in {listed([readable(name) for name in names])}: left out, for "
        f"{'they have' if several else 'it has'} one level. Where having it or not is the difference, as in "
        "marks such as Typo=Yes, make that a level: missing='level'."
    )


def _constant_features(evidence: Evidence) -> Found:
    if evidence.constant:
        yield constant_features_caution(evidence.constant), ()


def _left_out_features(evidence: Evidence) -> Found:
    kept = evidence.features.settings["features"]
    lacking = [readable(name) for name in evidence.profiles[0].features if name not in kept]
    if lacking:
        yield (
            f"No importance could be computed for {listed(lacking)}, for lack of items that differ in it: "
            "left out of τ_w.",
            (),
        )


def _duplicated_vectors(evidence: Evidence) -> Found:
    known = [
        (profile, profile.diagnostics.duplicated) for profile in evidence.profiles if profile.diagnostics
    ]
    said = []
    for above, most in ((HALF, 1.0), (DUPLICATED, HALF)):
        there = [(profile, (shares > above) & (shares <= most)) for profile, shares in known]
        there = [(profile, mask) for profile, mask in there if mask.any()]
        if there:
            highest = max(float(shares[shares <= most].max(initial=0.0)) for _, shares in known)
            said.append(f"up to {percent(highest)} in {_places(there)}")
    if said:
        about = [(profile, shares > DUPLICATED) for profile, shares in known if (shares > DUPLICATED).any()]
        yield (
            f"Items have the very same vector as another: {', and '.join(said)}. "
            "There are fewer different items than it seems.",
            _systems(about),
        )


def _unstable_similarities(evidence: Evidence) -> Found:
    low, high = evidence.features.low, evidence.features.high
    if low is None or high is None or len(low) < 2:
        return
    wide = float(((high - low)[np.triu_indices(len(low), k=1)] > UNSTABLE).mean())
    if wide > 0.25:
        yield (
            f"For {percent(wide)} of the pairs of layers the 95 % range of τ_w over other sentences is wider "
            f"than {UNSTABLE}: use more sentences, or read blocks instead of cells.",
            (),
        )


def _no_better_than_untrained(evidence: Evidence) -> Found:
    for block in evidence.features.blocks:
        if block.a != block.b and block.control_share >= AS_ALIKE_UNTRAINED:
            yield (
                f"Untrained copies of {block.a} and {block.b} agree as much as the trained ones in "
                f"{percent(block.control_share)} of the draws of weights (mean τ_w {number(block.control)} "
                f"against {number(block.mean)}): architecture and stimuli alone may be behind it.",
                (block.a, block.b),
            )


def _agreement_untrained(evidence: Evidence) -> Found:
    for one in evidence.agreements:
        if one.untrained_share >= AS_ALIKE_UNTRAINED:
            yield (
                f"Features and RSA order the layers of untrained copies as much alike as those of trained "
                f"systems in {percent(one.untrained_share)} of the draws of weights (ρ "
                f"{number(one.untrained)} against {number(one.rho)}): that the two matrices agree is no sign "
                "of training.",
                (),
            )


def _few_resamples(evidence: Evidence) -> Found:
    numbers = [len(p.replicates.scores) for p in evidence.profiles if p.replicates is not None]
    if numbers and min(numbers) < FEWEST_RESAMPLES:
        yield few_resamples_caution(min(numbers)), ()


def few_resamples_caution(resamples: int) -> str:
    """Says that ranges of 95 % cannot be read off so few resamples."""
    return (
        f"{resamples} resamples are few for a range of 95 %: those shown are much wider than they would be. "
        f"Use {FEWEST_RESAMPLES} at least; 20 are usual (--resamples 20)."
    )


def cautions_of_plan(left_out: Sequence[str], resamples: int) -> tuple[Caution, ...]:
    """What is known of a profile before any layer is read."""
    found = []
    if left_out:
        found.append(Caution("constant-features", constant_features_caution(left_out)))
    if 0 < resamples < FEWEST_RESAMPLES:
        found.append(Caution("few-resamples", few_resamples_caution(resamples)))
    return tuple(found)


def _sampled_pairs(evidence: Evidence) -> Found:
    for matrix in evidence.geometry:
        if matrix.settings.get("sampled"):
            yield f"{matrix.measure} was computed on a sample of {matrix.settings['n_pairs']:,} pairs.", ()


def _no_chance_level(evidence: Evidence) -> Found:
    if evidence.items > MOST_ITEMS:
        yield (
            f"What chance gives RSA and CKA is not computed for more than {MOST_ITEMS:,} items, and there "
            f"are {evidence.items:,}: these measures have no p-values here.",
            (),
        )


def _parts_compared(evidence: Evidence) -> Found:
    parted = [profile for profile in evidence.profiles if has_parts(profile.layers)]
    if len(evidence.profiles) > 1 and parted:
        named = [f"{len(profile.layers)} of {profile.system}" for profile in parted[:MOST_SYSTEMS]]
        yield (
            f"The layers are parts of blocks, such as heads ({', '.join(named)}): their mean says how alike "
            "any two of them are, and not whether each has its like in the other system. The most alike of "
            "so many pairs is alike by luck too: its p counts them all.",
            tuple(profile.system for profile in parted),
        )


def _of_each(look: Callable[[Profile], Iterator[str]]) -> Callable[[Evidence], Found]:
    """Look at every system by itself."""

    def found(evidence: Evidence) -> Found:
        return ((text, (one.system,)) for one in evidence.profiles for text in look(one))

    return found


CAUTIONS: dict[str, Callable[[Evidence], Iterable[tuple[str, tuple[str, ...]]]]] = {
    "low-score": _low_score,
    "nothing-explained": _of_each(system_cautions.nothing_explained),
    "dominant-feature": _dominant_feature,
    "collinear-features": _collinear_features,
    "fine-grained-features": _fine_grained_features,
    "few-features": _few_features,
    "constant-features": _constant_features,
    "left-out-features": _left_out_features,
    "duplicated-vectors": _duplicated_vectors,
    "top-heavy-layers": _of_each(system_cautions.top_heavy_layers),
    "heavy-first-words": _of_each(system_cautions.heavy_first_words),
    "missing-bos": _of_each(system_cautions.missing_bos),
    "unknown-words": _of_each(system_cautions.unknown_words),
    "half-taken": _of_each(system_cautions.half_taken),
    "parts-compared": _parts_compared,
    "quantised-weights": _of_each(system_cautions.quantised_weights),
    "anisotropic-layers": _of_each(system_cautions.anisotropic_layers),
    "few-resamples": _few_resamples,
    "unstable-similarities": _unstable_similarities,
    "no-better-than-untrained": _no_better_than_untrained,
    "agreement-untrained": _agreement_untrained,
    "sampled-pairs": _sampled_pairs,
    "no-chance-level": _no_chance_level,
}


Places = Sequence[tuple[Profile, np.ndarray]]
"""Systems, and in which of their layers"""


def _places(found: Places) -> str:
    """`layer 0 of a`, `layers 0–2 of a, layer 1 of b and 3 more systems`."""
    said = [f"{layers_where(profile, mask)} of {profile.system}" for profile, mask in found[:MOST_SYSTEMS]]
    rest = len(found) - len(said)
    return listed([*said, *([f"{rest} more {'systems' if rest > 1 else 'system'}"] if rest else [])])


def _systems(found: Places) -> tuple[str, ...]:
    return tuple(profile.system for profile, _ in found)
