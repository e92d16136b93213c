"""Balanced sampling lowers the correlations, keeps the levels even, and climbs down the right slope."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from thinkalike.stimuli import Stimuli
from thinkalike.stimuli.balance import UNEVENNESS_COST, _Pool, choose_balanced
from thinkalike.stimuli.feature_coding import code_features


def squared_correlations(stimuli: Stimuli) -> float:
    values = stimuli.correlations().values
    return float(np.nansum(np.triu(values, 1) ** 2))


@pytest.mark.parametrize("seed", [0, 1])
def test_balance_lowers_the_correlations(seed: int) -> None:
    plain, balanced = (
        Stimuli.from_grammar(300, seed, grammar="salle2024", balance=balance) for balance in (False, True)
    )
    assert len(balanced.sentences) == 300
    assert balanced.sentences.is_unique
    assert squared_correlations(balanced) < 0.7 * squared_correlations(plain)
    strongest = [np.abs(np.triu(s.correlations().values, 1)).max() for s in (plain, balanced)]
    assert strongest[1] < strongest[0]


def test_balance_keeps_the_levels_even() -> None:
    plain, balanced = (
        Stimuli.from_grammar(300, 2, grammar="salle2024", balance=balance).features
        for balance in (False, True)
    )
    for name in ("gender", "number", "tense", "question", "part_of_speech"):
        gini = [1 - (table[name].value_counts(normalize=True) ** 2).sum() for table in (plain, balanced)]
        assert gini[1] > 0.85 * gini[0], name


def test_sentences_can_be_balanced_too() -> None:
    plain, balanced = (Stimuli.from_grammar(100, 0, grammar="clauses", balance=b) for b in (False, True))
    assert squared_correlations(balanced) < squared_correlations(plain)


def random_table(rng: np.random.Generator, n: int) -> pd.DataFrame:
    columns = {
        "a": pd.Categorical(rng.choice(["x", "y", "z"], n)),
        "b": pd.Categorical.from_codes(rng.integers(-1, 2, n), categories=["p", "q"]),
        "c": rng.integers(0, 4, n).astype(float),
    }
    return pd.DataFrame(columns)


def test_the_score_is_what_it_says() -> None:
    rng = np.random.default_rng(0)
    features = random_table(rng, 60)
    owner = np.repeat(np.arange(30), 2)
    pool = _Pool(code_features(features), owner, 30)
    first = rng.random(30) < 0.5
    chosen = rng.random(30) < 0.5
    start, _ = pool.evaluate(first)
    score, _ = pool.evaluate(chosen)

    def parts(choice: np.ndarray) -> tuple[float, np.ndarray]:
        table = features[choice[owner]]
        shares = [table[name].value_counts(normalize=True) for name in table]
        return squared_correlations(Stimuli.from_table(table)), np.array([1 - (s**2).sum() for s in shares])

    r2_first, even_first = parts(first)
    r2, even = parts(chosen)
    assert start == pytest.approx(r2_first)
    lost = np.clip(1 - even / even_first, 0, None)
    assert score == pytest.approx(r2 + UNEVENNESS_COST * (lost**2).sum())
    assert (lost > 0).any()  # or the second term was not tested


def test_the_slope_is_that_of_one_more_item() -> None:
    """Against the score with every count tenfold and one item more: a difference quotient."""
    rng = np.random.default_rng(1)
    features = random_table(rng, 400)
    coded = code_features(features)
    copies = 10
    owner = np.arange(400)
    pool = _Pool(coded, owner, 400)
    pool.evaluate(rng.random(400) < 0.3)  # fixes the evenness to compare with
    counts = np.bincount(pool.kind, minlength=pool.codes.shape[1]) * float(copies)
    both = [
        np.array(part)
        for part in zip(pool._unevenness(counts), pool._squared_correlations(counts), strict=True)
    ]
    score, slope = both[0].sum(), both[1].sum(axis=0)
    for kind in range(0, pool.codes.shape[1], 3):
        more = counts.copy()
        more[kind] += 1
        changed = pool._unevenness(more)[0] + pool._squared_correlations(more)[0]
        assert changed - score == pytest.approx(slope[kind], abs=2e-6)


def test_choosing_never_makes_it_worse() -> None:
    rng = np.random.default_rng(3)
    features = random_table(rng, 200)
    sentences = pd.Series(np.repeat(np.arange(100), 2))
    chosen = choose_balanced(features, sentences, 40, np.random.default_rng(5))
    start = np.random.default_rng(5).permutation(100)[:40]
    assert len(set(chosen)) == 40

    def score(choice: np.ndarray) -> float:
        return squared_correlations(Stimuli.from_table(features[sentences.isin(choice)]))

    assert score(chosen) < score(start)


def test_all_of_the_pool_or_a_constant_feature() -> None:
    features = random_table(np.random.default_rng(0), 20).assign(one=pd.Categorical(["k"] * 20))
    sentences = pd.Series(np.arange(20))
    assert choose_balanced(features, sentences, 20, np.random.default_rng(0)).tolist() == list(range(20))
    assert len(choose_balanced(features, sentences, 9, np.random.default_rng(0))) == 9
