"""Every caution appears when it should, and only then."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.planted import replicates
from thinkalike.comparison.cautions import (
    CAUTIONS,
    Caution,
    CautionWarning,
    Evidence,
    chance_level,
    find_cautions,
    tell,
)
from thinkalike.comparison.diagnostics import precision_table
from thinkalike.comparison.feature_similarity import by_features
from thinkalike.comparison.profiles import Collinearity, LayerDiagnostics, Profile
from thinkalike.comparison.profiling import profile as make_profile
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.inference.agreement import Agreement

Make = Callable[..., Profile]
GOOD = [
    0.3,
    0.05,
    0.1,
    0.25,
    0.15,
    0.08,
    0.2,
    0.02,
    0.12,
    0.01,
    0.18,
    0.06,
    0.04,
    0.03,
    0.07,
    0.22,
    0.11,
    0.09,
]
NAMES = tuple(f"feature_{k}" for k in range(len(GOOD)))


@pytest.fixture
def pair(make_profile: Make) -> list[Profile]:
    """Eighteen features, good scores: nothing to warn of."""
    return [make_profile(name, GOOD, features=NAMES, noise=1e-4, seed=k) for k, name in enumerate(("a", "b"))]


def cautions(profiles: list[Profile], **changes: object) -> dict[str, Caution]:
    matrix = by_features(profiles, n_permutations=50)
    evidence = replace(Evidence(profiles, replace(matrix, **changes)))  # type: ignore[arg-type]
    return {c.kind: c for c in find_cautions(evidence)}


def test_nothing_is_said_without_a_reason(pair: list[Profile]) -> None:
    assert cautions(pair) == {}


def test_low_scores(pair: list[Profile]) -> None:
    scores = pair[0].scores.copy()
    scores[1:] = 0.1
    found = cautions([replace(pair[0], scores=scores), pair[1]])
    assert found["low-score"].text == (
        "The features explain little in layers 1–2 of a (ρ below 0.2, lowest 0.100): what ranks first there "
        "may not matter much."
    )
    assert found["low-score"].systems == ("a",)


def test_what_holds_of_several_systems_is_said_once(pair: list[Profile]) -> None:
    many = [replace(pair[0], system=f"s{k}", scores=np.full_like(pair[0].scores, 0.1)) for k in range(8)]
    found = find_cautions(Evidence(many, by_features(many, n_permutations=50)))
    said = [caution for caution in found if caution.kind == "low-score"]
    assert len(said) == 1
    assert "layers 0–2 of s4, layers 0–2 of s5 and 2 more systems" in said[0].text
    assert said[0].systems == tuple(f"s{k}" for k in range(8))


def test_one_dominant_feature(pair: list[Profile]) -> None:
    importance = pair[1].importance.copy()
    importance[0, :, 2] = 20.0
    found = cautions([pair[0], replace(pair[1], importance=importance)])
    assert "Feature 2 has more than 80 % of the importance in layer 0 of b" in found["dominant-feature"].text


def test_collinear_features(pair: list[Profile]) -> None:
    correlations = np.eye(18)
    correlations[3, 5] = correlations[5, 3] = -0.9
    inflation = np.ones(18)
    first = replace(pair[0], collinearity=Collinearity(NAMES, correlations, inflation))
    text = cautions([first, pair[1]])["collinear-features"].text
    assert "differ in feature 3 also tend to differ in feature 5 (r = −0.90)" in text
    inflation[4] = 7.0
    first = replace(pair[0], collinearity=Collinearity(NAMES, np.eye(18), inflation))
    text = cautions([first, pair[1]])["collinear-features"].text
    assert "The other features nearly predict feature 4 (variance inflation up to 7.0)" in text


def test_few_features(make_profile: Make) -> None:
    found = cautions(
        [make_profile("a", GOOD[:6], features=NAMES[:6]), make_profile("b", GOOD[:6], features=NAMES[:6])]
    )
    assert found["few-features"].text.startswith("With 6 features chance alone takes τ_w to 0.6")
    assert chance_level(8) == pytest.approx(0.556, abs=5e-4)
    three = [make_profile(name, GOOD[:3], features=NAMES[:3]) for name in "ab"]
    assert by_features(three).p_block is None
    assert cautions(three)["few-features"].text.startswith("3 features have only 6 orders, so no likeness")


def test_fine_grained_features(pair: list[Profile]) -> None:
    matrix = by_features(pair, n_permutations=50)
    (found,) = find_cautions(Evidence(pair, matrix, (), {"rt": 0.991, "length": 0.85}))
    assert found.kind == "fine-grained-features"
    assert found.text.startswith("99.1 % of all pairs of items differ in rt, and only that counts here")


def test_constant_features(pair: list[Profile]) -> None:
    matrix = by_features(pair, n_permutations=50)
    (found,) = find_cautions(Evidence(pair, matrix, constant=["Typo"]))
    assert found.kind == "constant-features"
    assert found.text.startswith("No two items differ in Typo: left out, for it has one level.")


def test_left_out_features(pair: list[Profile]) -> None:
    importance = pair[0].importance.copy()
    importance[:, :, 6] = np.nan
    found = cautions([replace(pair[0], importance=importance), pair[1]])
    assert "No importance could be computed for feature 6" in found["left-out-features"].text


def test_duplicates_and_heavy_items(pair: list[Profile]) -> None:
    diagnostics = LayerDiagnostics(np.ones(3), np.array([0.6, 0.0, 0.2]), np.array([0.02, 0.7, 0.02]))
    found = cautions([replace(pair[0], diagnostics=diagnostics), pair[1]])
    assert found["duplicated-vectors"].text.startswith(
        "Items have the very same vector as another: up to 60 % in layer 0 of a, and up to 20 % in layer 2"
    )
    assert found["duplicated-vectors"].systems == ("a",)
    assert "a: 1 % of the items carry up to 70 % of the variance in layer 1" in found["top-heavy-layers"].text


def test_unstable_similarities(pair: list[Profile]) -> None:
    n = 6
    found = cautions(pair, low=np.full((n, n), -0.2), high=np.full((n, n), 0.5))
    assert (
        "For 100 % of the pairs of layers the 95 % range of τ_w over" in found["unstable-similarities"].text
    )


def test_no_better_than_untrained(pair: list[Profile]) -> None:
    tested = by_features(pair, n_permutations=50).blocks
    blocks = tuple(replace(b, control=b.mean - 0.1, control_share=0.1) for b in tested)
    found = cautions(pair, blocks=blocks)
    below = tuple(replace(b, control_share=0.0) for b in blocks)
    assert "no-better-than-untrained" not in cautions(pair, blocks=below)
    assert (
        "Untrained copies of a and b agree as much as the trained ones"
        in found["no-better-than-untrained"].text
    )


def test_matrices_that_agree_as_much_without_training(pair: list[Profile]) -> None:
    found = Agreement("features", "rsa", 0.38, 0.2, 0.4, 0.3, 199, untrained=0.9, untrained_share=1.0)

    def told(one: Agreement) -> dict[str, str]:
        evidence = Evidence(pair, by_features(pair, n_permutations=50), agreements=[one])
        return {caution.kind: caution.text for caution in find_cautions(evidence)}

    assert told(found)["agreement-untrained"].startswith(
        "Features and RSA order the layers of untrained copies as much alike as those of trained systems in "
        "100 % of the draws of weights (ρ 0.90 against 0.38)"
    )
    assert "agreement-untrained" not in told(replace(found, untrained=0.1, untrained_share=0.0))
    assert "agreement-untrained" not in told(Agreement("features", "rsa", 0.38, 0.2, 0.4, 0.3, 199))


def test_sampled_pairs(pair: list[Profile]) -> None:
    rsa = SimilarityMatrix(
        "rsa", (("a", 0),), np.ones((1, 1)), settings={"sampled": True, "n_pairs": 20_000_000}
    )
    (found,) = find_cautions(Evidence(pair, by_features(pair, n_permutations=50), (rsa,)))
    assert found.text == "rsa was computed on a sample of 20,000,000 pairs."


def test_no_chance_level_with_many_items(pair: list[Profile]) -> None:
    matrix = by_features(pair, n_permutations=50)
    assert find_cautions(Evidence(pair, matrix, items=6_000)) == ()
    (found,) = find_cautions(Evidence(pair, matrix, items=6_001))
    assert "not computed for more than 6,000 items, and there are 6,001" in found.text


def test_few_resamples(pair: list[Profile]) -> None:
    def resampled(n: int) -> dict[str, Caution]:
        return cautions(
            [replace(p, replicates=replicates(p, noise=1e-4, n_resamples=n, parts=n)) for p in pair]
        )

    assert resampled(5)["few-resamples"].text.startswith("5 resamples are few for a range of 95 %")
    assert "few-resamples" not in resampled(10)


def test_a_profile_alone_says_when_its_resamples_are_few() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice(list("pqr"), 40) for name in ("colour", "size", "shape")})
    layer = {"layer": rng.normal(size=(40, 4))}
    with pytest.warns(CautionWarning, match="3 resamples are few for a range of 95 %"):
        make_profile(layer, table, resamples=3)
    make_profile(layer, table, resamples=10)  # warnings are errors in these tests


def test_no_p_where_the_features_explain_nothing(pair: list[Profile]) -> None:
    folds = np.array([0.1, -0.1, 0.05, -0.02])  # mean 0.0075: not above 0
    silent = replace(pair[1], scores=np.tile(folds, (len(pair[1].layers), 1)))
    assert pair[0].explains_something
    assert not silent.explains_something
    # 0.0075 + 0.1 is 2.5 standard errors over four folds, less than Student's 3.18; with 0.2 it is 4.8.
    assert not replace(silent, scores=silent.scores + 0.1).explains_something
    assert replace(silent, scores=silent.scores + 0.2).explains_something
    found = cautions([pair[0], silent])["nothing-explained"]
    assert found.systems == ("b",)
    assert "mean ρ 0.01" in found.text
    matrix = by_features([pair[0], silent], n_permutations=50)
    block = matrix.block_test("a", "b")
    assert block is not None
    assert np.isnan([block.p_mean, block.q]).all()
    tested = by_features(pair, n_permutations=50).block_test("a", "b")
    assert tested is not None
    assert tested.q < 0.05


def test_cautions_are_told_as_warnings() -> None:
    both = [Caution("low-score", "a < b: little."), Caution("few-features", "Few.")]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tell(both)
    assert [str(w.message) for w in told] == ["a < b: little.", "Few."]
    assert {w.category for w in told} == {CautionWarning}


def test_without_diagnostics_there_is_less_to_say(pair: list[Profile]) -> None:
    assert cautions([replace(p, diagnostics=None, collinearity=None) for p in pair]) == {}


def test_the_table_is_tested() -> None:
    """A new caution needs a test here."""
    assert set(CAUTIONS) == {
        "half-taken", "quantised-weights", "parts-compared",  # in test_inside_pictures.py
        "low-score", "dominant-feature", "collinear-features", "fine-grained-features", "few-features",
        "constant-features", "left-out-features", "duplicated-vectors", "top-heavy-layers", "few-resamples",
        "unstable-similarities", "no-better-than-untrained", "agreement-untrained", "sampled-pairs",
        "heavy-first-words", "missing-bos", "anisotropic-layers", "nothing-explained", "no-chance-level",
        "unknown-words",
    }  # fmt: skip


def test_precision_from_folds_and_from_resamples(pair: list[Profile]) -> None:
    scores = 0.6 + 0.1 * np.random.default_rng(0).normal(size=(3, 4))
    profiles = [replace(p, scores=scores) for p in pair]
    table = precision_table(profiles, n_items=1000).set_index(["quantity", "width_wanted"])
    width = np.median(2 * 1.96 * scores.std(axis=1, ddof=1) / 2)
    assert table.loc[("score", 0.05), "width_now"] == pytest.approx(width)
    assert table.loc[("score", 0.05), "items_needed"] == int(np.ceil(1000 * (width / 0.05) ** 2))
    ranged = [replace(p, replicates=replicates(p, noise=0.01)) for p in pair]
    table = precision_table(ranged, n_items=1000).set_index("quantity")
    low, high = np.concatenate([p.score_range() for p in ranged], axis=1)
    assert table.loc["score", "width_now"].iloc[0] == pytest.approx(np.median(high - low))


def test_one_fold_says_nothing_about_precision(make_profile: Make) -> None:
    table = precision_table([make_profile("a", GOOD, features=NAMES, n_folds=1)], n_items=10)
    assert table["items_needed"].isna().all()


def first_words(share: float, norm: float, n_layers: int = 3) -> LayerDiagnostics:
    """A tenth of the items are first words; they carry `share` of the variance."""
    by_position = np.tile([share, 1 - share], (n_layers, 1))
    return LayerDiagnostics(
        ceiling=np.full(n_layers, 0.9),
        duplicated=np.zeros(n_layers),
        top_share=np.full(n_layers, 0.02),
        anisotropy=np.full(n_layers, 0.3),
        first_norm=np.full(n_layers, norm),
        by_position=by_position,
        positions=np.tile([0.1, 0.9], (n_layers, 1)),
    )


def test_heavy_first_words(pair: list[Profile]) -> None:
    found = cautions([replace(pair[0], diagnostics=first_words(0.67, 2.0)), pair[1]])
    assert list(found) == ["heavy-first-words"]
    assert found["heavy-first-words"].text.startswith(
        "a: first words are 10 % of the items and carry up to 67 % of the variance in layers 0–2 (their "
        "vectors are 2.0 times as long)"
    )
    # half of the importance of every layer (0.5, 0.3, … of each feature) is left without them
    whole = pair[0].mean_importance
    without = np.stack([whole / 2, whole], axis=1)
    half = replace(first_words(0.67, 2.0), without_position=without)
    text = cautions([replace(pair[0], diagnostics=half), pair[1]])["heavy-first-words"].text
    assert "times as long), and 50 % of the importance goes when they are left out: what ranks" in text
    more = replace(half, without_position=2 * without + 0.1)
    text = cautions([replace(pair[0], diagnostics=more), pair[1]])["heavy-first-words"].text
    assert "and no importance goes when they are left out" in text
    # a tenth of the items has a quarter of the variance where each has three times that of another
    assert cautions([replace(pair[0], diagnostics=first_words(0.24, 2.0)), pair[1]]) == {}
    assert "heavy-first-words" in cautions([replace(pair[0], diagnostics=first_words(0.26, 1.0)), pair[1]])


def test_a_beginning_that_is_missing(pair: list[Profile]) -> None:
    def read(**beginning: object) -> dict[str, Caution]:
        return cautions([replace(pair[0], metadata={"beginning": beginning}), pair[1]])

    text = read(token=None, unused="<s>", why="unknown")["missing-bos"].text
    assert text.startswith("a has a beginning-of-sequence token (<s>) and read the texts without it")
    assert "missing-bos" in read(token=None, unused="<s>", why="stated")
    assert read(token=None, unused="<s>", why="asked") == {}  # whoever asks knows
    assert read(token="<s>", unused=None, why="tokenizer") == {}
    assert read(token=None, unused=None, why="none") == {}


def test_words_that_a_tokenizer_does_not_know(pair: list[Profile]) -> None:
    def read(share: float) -> dict[str, Caution]:
        return cautions([replace(pair[0], metadata={"unknown": share}), pair[1]])

    assert read(0.25)["unknown-words"].text.startswith("a: 25 % of the items have a part that its tokenizer")
    assert read(0.009) == {}


def test_anisotropic_layers(pair: list[Profile]) -> None:
    flat = replace(first_words(0.1, 1.0), anisotropy=np.array([0.3, 0.95, 0.97]))
    text = cautions([replace(pair[0], diagnostics=flat), pair[1]])["anisotropic-layers"].text
    assert text.startswith("a: two items have a mean cosine of up to 0.97 in layers 1–2")
    assert cautions([replace(pair[0], diagnostics=first_words(0.1, 1.0)), pair[1]]) == {}
