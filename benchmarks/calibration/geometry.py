"""Claims on geometric measures: their nulls, their ranges, and what features explain of RSA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.calibration.claims import Claim, Simulation
from thinkalike.inference.geometry_tests import geometry_tests
from thinkalike.inference.left_out import has_range, left_out_matrices
from thinkalike.inference.ranges import jackknife_range
from thinkalike.inference.sentences import SentencePlan, plan_sentences
from thinkalike.measures import MEASURES, get_measure
from thinkalike.stimuli import Stimuli
from thinkalike.stimuli.differences import FeatureDifferences
from thinkalike.stimuli.feature_coding import code_features

Floats = npt.NDArray[np.float64]
Generator = np.random.Generator

LAYERS = 3  # of each of two systems
UNITS = 12
ROWS = tuple((system, layer) for system in ("a", "b") for layer in range(LAYERS))
SENTENCES = 50
COVERAGE = (0.92, 0.98)
LEVEL = (0.03, 0.07)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some sentences of a world, and what the layers of two systems make of them."""

    sentence: npt.NDArray[np.int64]
    """Of each word"""
    layers: list[Floats]
    features: FeatureDifferences | None = None


World = Callable[[Generator, int], Drawn]
"""Draws so many sentences"""


def _maps(rng: Generator, width: int, *, alike: float) -> list[Floats]:
    """How each layer of both systems reads what is there: later layers a little otherwise than earlier."""
    common = rng.normal(size=(width, UNITS))
    maps = []
    for _ in ("a", "b"):
        own = alike * common + (1 - alike) * rng.normal(size=(width, UNITS))
        for _ in range(LAYERS):
            own = own + 0.3 * (1 - alike) * rng.normal(size=(width, UNITS))
            maps.append(own * rng.lognormal(0, 0.5, size=(width, 1)) ** (1 - alike))
    return maps


def _mixed_maps(rng: Generator, width: int) -> list[Floats]:
    """Every layer reads half as all do, and half by itself."""
    common, *own = rng.normal(size=(1 + 2 * LAYERS, width, UNITS))
    return [0.5 * common + 0.5 * one for one in own]


def _words(n: int, each: int = 3) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(n), each)


def shared_meaning(rng: Generator, n: int, *, maps: list[Floats], noise: float) -> Drawn:
    """Words have meanings, sentences a topic; each layer adds noise of its own."""
    sentence = _words(n)
    meaning = rng.normal(size=(len(sentence), 4)) + rng.normal(size=(n, 4))[sentence]
    return Drawn(sentence, [meaning @ m + noise * rng.normal(size=(len(sentence), UNITS)) for m in maps])


def few_words(rng: Generator, n: int, *, maps: list[Floats], words: Floats) -> Drawn:
    """Fifteen words, some frequent and most rare, with heavy-tailed noise."""
    sentence = _words(n)
    share = 1 / np.arange(1, len(words) + 1)
    word = rng.choice(len(words), size=len(sentence), p=share / share.sum())
    context = 0.5 * rng.standard_t(4, size=(len(sentence), 4))
    read = words[word] + context
    return Drawn(sentence, [read @ m + 0.5 * rng.normal(size=(len(sentence), UNITS)) for m in maps])


def loud_first_words(rng: Generator, n: int, *, maps: list[Floats]) -> Drawn:
    """First words lie far out in one direction, in the later layers ever farther."""
    sentence = _words(n)
    first = np.arange(len(sentence)) % 3 == 0
    meaning = rng.normal(size=(len(sentence), 4))
    layers = []
    for k, m in enumerate(maps):
        out = np.zeros((len(sentence), UNITS))
        out[first, k % 2] = (2 + 2 * (k % LAYERS)) * (1 + 0.3 * rng.normal(size=first.sum()))
        layers.append(meaning @ m + out + 0.5 * rng.normal(size=out.shape))
    return Drawn(sentence, layers)


def heavy_tails(rng: Generator, n: int, *, maps: list[Floats], sparse: bool) -> Drawn:
    """Units that are 0 for most words, as rectified and sparse ones are; or sentences of unlike loudness."""
    sentence = _words(n)
    meaning = rng.normal(size=(len(sentence), 4)) + rng.normal(size=(n, 4))[sentence]
    if not sparse:
        meaning *= np.exp(0.8 * rng.normal(size=n))[sentence, None]
    layers = [meaning @ m + rng.normal(size=(len(sentence), UNITS)) for m in maps]
    return Drawn(sentence, [np.maximum(X - 2, 0) for X in layers] if sparse else layers)


@cache
def _pool(grammar: str, n: int = 3000) -> tuple[npt.NDArray[np.int64], pd.DataFrame]:
    """Sentence and features of the words of many sentences."""
    made = Stimuli.from_grammar(n, seed=0, grammar=grammar)
    _, sentence = np.unique(made.items["sentence"].to_numpy(), return_inverse=True)
    return sentence, made.features.reset_index(drop=True)


def of_features(rng: Generator, n: int, *, grammar: str, strengths: Floats, seed: int, noise: float) -> Drawn:
    """Every level of every feature has a direction of its own in every layer; nothing else is shared."""
    sentence, features = _pool(grammar)
    some = rng.permutation(sentence.max() + 1)[:n]
    items = np.flatnonzero(np.isin(sentence, some))
    fixed, layers = np.random.default_rng(seed), []
    for strength in strengths:
        X = noise * rng.normal(size=(len(items), 3 * UNITS))
        for a, name in zip(strength, features, strict=True):
            code, levels = pd.factorize(features[name])
            directions = np.vstack([fixed.normal(size=(len(levels), 3 * UNITS)), np.zeros(3 * UNITS)])
            X += a * directions[code[items]]  # a missing value has code −1, and no direction
        layers.append(X)
    return Drawn(sentence[items], layers, code_features(features.iloc[items]))


@cache
def worlds() -> dict[str, World]:
    fixed = np.random.default_rng(0)
    strengths = fixed.lognormal(0, 0.7, size=(2 * LAYERS, _pool("untangled")[1].shape[1])) * 0.5
    words = 1.5 * fixed.normal(size=(15, 4))
    return {
        "shared meaning": partial(shared_meaning, maps=_maps(fixed, 4, alike=0.5), noise=1.0),
        "nearly the same": partial(shared_meaning, maps=_maps(fixed, 4, alike=0.97), noise=0.3),
        "little in common": partial(shared_meaning, maps=_maps(fixed, 4, alike=0.0), noise=3.0),
        "few words, heavy tails": partial(few_words, maps=_maps(fixed, 4, alike=0.5), words=words),
        "loud first words": partial(loud_first_words, maps=_maps(fixed, 4, alike=0.3)),
        "features of the grammar": partial(
            of_features, grammar="untangled", strengths=strengths, seed=1, noise=1.0
        ),
        "sparse units": partial(heavy_tails, maps=_mixed_maps(fixed, 4), sparse=True),
        "sentences of unlike loudness": partial(heavy_tails, maps=_maps(fixed, 4, alike=0.5), sparse=False),
    }


# ---------------------------------------------------------------- ranges of cells and block means
BETWEEN = (slice(0, LAYERS), slice(LAYERS, 2 * LAYERS))
LARGE = 400


@cache
def truth(world: str, measure: str) -> Floats:
    """What the measure would be for ever more sentences: the mean of ten large samples."""
    rng = np.random.default_rng(99)
    return np.mean(
        [get_measure(measure).matrix(worlds()[world](rng, LARGE).layers) for _ in range(10)], axis=0
    )


def coverage(n: int, seed: int, *, measure: str, world: str, sentences: int = SENTENCES) -> list[Claim]:
    """How often 95 % ranges hold the truth, over samples of so many sentences."""
    rng, true = np.random.default_rng(seed), truth(world, measure)[BETWEEN]
    cells, means = [], []
    for _ in range(n):
        drawn = worlds()[world](rng, sentences)
        plan = plan_sentences(drawn.sentence, len(drawn.sentence), permutations=0)
        without = plan.left_out(measure, drawn.layers)
        assert without is not None
        values = get_measure(measure).matrix(drawn.layers)
        ranges, tests = geometry_tests(values, ROWS, left_out=without.values)
        assert ranges.low is not None
        assert ranges.high is not None
        cells.append(((ranges.low[BETWEEN] <= true) & (true <= ranges.high[BETWEEN])).mean())
        block = next(t for t in tests if t.a != t.b)
        means.append(block.low <= true.mean() <= block.high)
    about = f"{world} (true mean {true.mean():.2f})"
    if sentences != SENTENCES:
        about = f"{about}, {sentences} sentences"
    return [
        Claim(f"95 % range of a {what}, {measure}", about, *COVERAGE, float(np.mean(held)), n)
        for what, held in (("cell", cells), ("block mean", means))
    ]


# ---------------------------------------------------------------- the null of unrelated layers
def unrelated(rng: Generator, n: int, *, place: float, unequal: bool) -> Drawn:
    """Two systems that have nothing in common but that both may see the place of a word in its sentence."""
    lengths = rng.integers(2, 5, size=n) if unequal else np.full(n, 3)
    sentence = np.repeat(np.arange(n), lengths)
    position = np.concatenate([np.arange(length) for length in lengths])
    layers = []
    for _ in ("a", "b"):
        of_place, of_sentence = place * rng.normal(size=(4, UNITS)), rng.normal(size=(n, UNITS))
        X = of_place[position] + of_sentence[sentence] + rng.normal(size=(len(sentence), UNITS))
        layers += [X + 0.5 * k * rng.normal(size=X.shape) for k in range(LAYERS)]
    return Drawn(sentence, layers)


def drifting(rng: Generator, n: int, *, over: int) -> Drawn:
    """Two recordings of trials in a row that have nothing in common, but each drifts while it is made."""
    time = np.arange(n)
    near = np.exp(-(((time[:, None] - time) / over) ** 2))
    layers = []
    for _ in ("a", "b"):
        drift = 2 * (near / np.linalg.norm(near, axis=1, keepdims=True)) @ rng.normal(size=(n, UNITS))
        layers += [drift + rng.normal(size=(n, UNITS)) for _ in range(LAYERS)]
    return Drawn(time, layers)


UNRELATED: dict[str, World] = {
    "nothing shared": partial(unrelated, place=0.0, unequal=False),
    "both see the place of a word": partial(unrelated, place=2.0, unequal=False),
    "the same, sentences of 2 to 4 words": partial(unrelated, place=2.0, unequal=True),
}


IN_A_ROW: dict[str, World] = {"trials in a row, both recordings drift": partial(drifting, over=6)}


def null_level(n: int, seed: int, *, measure: str, world: str) -> list[Claim]:
    """How often unrelated systems get p ≤ 0.05, for the mean over layers and for the best layers."""
    names = [f"{system}:{layer}" for system, layer in ROWS]
    rng, means, bests = np.random.default_rng(seed), [], []
    for k in range(n):
        drawn = (UNRELATED | IN_A_ROW)[world](rng, 30)
        plan = plan_sentences(drawn.sentence, len(drawn.sentence), ranges=False, permutations=99, seed=k)
        null = plan.null(get_measure(measure), drawn.layers, names)
        assert null is not None
        _, tests = geometry_tests(null.observed, ROWS, null=null)
        block = next(t for t in tests if t.a != t.b)
        means.append(block.p_mean <= 0.05)
        bests.append(block.p_best <= 0.05)
    return [
        Claim(f"p ≤ 0.05 of unrelated systems, {what}, {measure}", world, *LEVEL, float(np.mean(small)), n)
        for what, small in (("block mean", means), ("best layers", bests))
    ]


# ---------------------------------------------------------------- what features explain of RSA
STRENGTHS: dict[str, tuple[float, float, int]] = {
    "strong features": (1.0, 0.5, 2),
    "weak features": (0.4, 1.0, 3),
    "few strong, many weak": (0.5, 1.0, 4),
    "much noise": (0.7, 2.0, 5),
}


def explained_by_features(n: int, seed: int, *, world: str) -> Claim:
    """Coverage of the range of the share of RSA that a sum over features explains."""
    n_features = _pool("untangled")[1].shape[1]
    scale, noise, fixed = STRENGTHS[world]
    spread = 1.5 if "few" in world else 0.7
    strengths = scale * np.random.default_rng(fixed).lognormal(0, spread, size=(1, n_features))
    other = strengths * np.random.default_rng(fixed + 10).lognormal(0, 0.3, size=(2, n_features))
    draw = partial(of_features, grammar="untangled", strengths=other, seed=fixed, noise=noise)
    large = np.random.default_rng(98)
    true = float(np.mean([_shares(draw(large, LARGE))[0] for _ in range(10)]))
    rng, held = np.random.default_rng(seed), []
    for _ in range(n):
        drawn = draw(rng, SENTENCES)
        share, without = _shares(drawn, plan_sentences(drawn.sentence, len(drawn.sentence), permutations=0))
        low, high, _error = jackknife_range(share, without)
        held.append(low <= true <= high)
    about = f"{world} (true share {true:.2f})"
    return Claim("95 % range of the share explained", about, *COVERAGE, float(np.mean(held)), n)


def explained_by_nothing(n: int, seed: int) -> list[Claim]:
    """Two layers share a meaning that the features have nothing to do with: none of RSA is theirs.

    The features of other words stand beside the items. A share of 0 should be in the range, and what is said
    should be little.
    """
    rng, maps, held, said = np.random.default_rng(seed), _maps(np.random.default_rng(6), 4, alike=0.5), [], []
    features = _pool("untangled")[1]
    for _ in range(n):
        drawn = shared_meaning(rng, SENTENCES, maps=[maps[0], maps[LAYERS]], noise=1.0)
        others = features.iloc[rng.choice(len(features), len(drawn.sentence), replace=False)]
        drawn = Drawn(drawn.sentence, drawn.layers, code_features(others.reset_index(drop=True)))
        share, without = _shares(drawn, plan_sentences(drawn.sentence, len(drawn.sentence), permutations=0))
        low, high, _error = jackknife_range(share, without)
        held.append(low <= 0.0 <= high)
        said.append(share <= 0.05)
    world = "features that have nothing to do with it (true share 0)"
    return [
        Claim("95 % range of the share explained", world, *COVERAGE, float(np.mean(held)), n),
        Claim("features are said to make up 5 % or more", world, 0.0, 0.05, 1 - float(np.mean(said)), n),
    ]


def _shares(drawn: Drawn, plan: SentencePlan | None = None) -> tuple[float, Floats]:
    """The share in all sentences, and without each part of them."""
    kept = () if plan is None else plan.kept
    found = left_out_matrices(
        "rsa", drawn.layers, kept or [np.arange(len(drawn.sentence))], differences=drawn.features
    )
    assert found.explained is not None
    assert found.whole_explained is not None
    without = found.explained[:, 0, 1] / found.values[:, 0, 1]
    return float(found.whole_explained[0, 1] / found.whole[0, 1]), without


WORLDS = (
    "shared meaning",
    "nearly the same",
    "little in common",
    "few words, heavy tails",
    "loud first words",
    "features of the grammar",
)
"""The names of `worlds()`, which take a while to make"""
HEAVY = ("sparse units", "sentences of unlike loudness")
"""Of `worlds()` too: a few items carry most of the variance"""

SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    **{
        f"ranges-{measure}": (
            {world: partial(coverage, measure=measure, world=world) for world in WORLDS},
            300,
        )
        for measure in MEASURES
        if has_range(measure)
    },
    "ranges-heavy-tails": (
        {
            f"{measure}, {world}, {n} sentences": partial(coverage, measure=measure, world=world, sentences=n)
            for measure in ("rsa", "rsa-pearson", "cka")
            for world in HEAVY
            for n in (25, SENTENCES)
        },
        300,
    ),
    "null-in-a-row": (
        {
            f"{measure}, {world}": partial(null_level, measure=measure, world=world)
            for measure in ("rsa", "cka")
            for world in IN_A_ROW
        },
        200,
    ),
    **{
        f"null-{measure}": (
            {world: partial(null_level, measure=measure, world=world) for world in UNRELATED},
            400,
        )
        for measure in ("rsa", "cka", "cka-rbf")
    },
    "share-explained": (
        {
            **{world: partial(explained_by_features, world=world) for world in STRENGTHS},
            "nothing": explained_by_nothing,
        },
        300,
    ),
}
"""Name → the simulation, and the draws of a full run"""
