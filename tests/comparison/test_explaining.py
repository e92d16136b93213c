"""Explanations: numbers by scipy, and words that follow the numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import weightedtau

from tests.planted import replicates
from thinkalike.comparison.explaining import Explanation, explain
from thinkalike.comparison.layer_similarity import similarity
from thinkalike.comparison.profiles import Profile
from thinkalike.errors import InvalidInput, UnknownName

Make = Callable[..., Profile]
POS_AND_LENGTH = [0.2, 0.01, 0.02, 0.6, 0.03, 0.0, 0.04, 0.005]
POS_AND_POSITION = [0.02, 0.012, 0.022, 0.5, 0.031, 0.0, 0.3, 0.007]


@pytest.fixture
def pair(make_profile: Make) -> tuple[Profile, Profile]:
    return (
        make_profile("bert", POS_AND_LENGTH, noise=1e-4, seed=1),
        make_profile("mamba", POS_AND_POSITION, noise=1e-4, seed=2),
    )


def test_numbers_are_those_of_scipy(pair: tuple[Profile, Profile]) -> None:
    got = explain(pair[0], 1, pair[1], 2, groups={"agreement": ["number", "person"]})
    x, y = pair[0].importance.mean(axis=1)[1], pair[1].importance.mean(axis=1)[2]
    assert got.tau == pytest.approx(weightedtau(x, y).statistic, abs=1e-12)
    assert abs(got.contributions.sum() - weightedtau(x, y).statistic) < 1e-12
    for k in range(8):
        rest = [f for f in range(8) if f != k]
        assert got.without[k] == pytest.approx(weightedtau(x[rest], y[rest]).statistic)
    rest = [0, 1, 3, 4, 6, 7]
    assert got.without_group["agreement"] == pytest.approx(weightedtau(x[rest], y[rest]).statistic)
    matrix = similarity(list(pair))
    assert matrix.p_block is not None
    assert got.p_block == matrix.p_block[1, 5]


def test_the_words_name_what_is_shared_and_what_is_not(pair: tuple[Profile, Profile]) -> None:
    got = explain(pair[0], 0, pair[1], 2)
    assert got.shared == ("part_of_speech",)
    assert got.only_a == ("word_length",)
    assert got.only_b == ("position",)
    assert "Both are organised by part of speech (66 % and 56 %); only bert:0 by word length" in got.text
    assert "only bert:0 by word length (22 % against 2 %)" in got.text
    assert "only mamba:2 by position (34 % against 4 %) (shares of the importance)." in got.text


def test_the_verdict_follows_the_p_value(make_profile: Make, pair: tuple[Profile, Profile]) -> None:
    twin = make_profile("twin", POS_AND_LENGTH, noise=1e-4, seed=3)
    opposite = make_profile("opposite", [-x for x in POS_AND_LENGTH], noise=1e-4, seed=4)
    assert "bert:0 and twin:0 rank the features alike, more than chance would (τ_w = 1.00; p < 0.0001" in (
        explain(pair[0], 0, twin, 0).text
    )
    assert "do not rank the features alike beyond chance (" in explain(pair[0], 0, opposite, 0).text
    assert "beyond chance" in replace(explain(pair[0], 0, twin, 0), p_block=0.2).text
    assert "rank the features alike (" in replace(explain(pair[0], 0, twin, 0), p_block=None).text


def test_it_prints_as_a_paragraph_and_a_table(pair: tuple[Profile, Profile]) -> None:
    got = explain(pair[0], 0, pair[1], 2, groups={"agreement": ["number", "person"]})
    printed = str(got)
    assert printed.startswith("bert:0 and mamba:2 rank the features")
    assert "τ_w without" in printed
    assert "without agreement: τ_w = " in printed
    assert got._repr_html_().startswith("<p>bert:0 and mamba:2")
    frame = got.to_frame()
    assert frame["contribution"].abs().is_monotonic_decreasing
    assert frame["contribution"].sum() == pytest.approx(got.tau)
    assert frame.loc[frame.feature == "part_of_speech", "rank_a"].item() == 1


def test_html_is_escaped(pair: tuple[Profile, Profile]) -> None:
    odd = replace(pair[1], system="<script>")
    html = explain(pair[0], 0, odd, 0)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_what_needs_activations_is_said_when_it_is_there(pair: tuple[Profile, Profile]) -> None:
    bare = explain(pair[0], 0, pair[1], 2)
    assert bare.rsa is None
    assert "geometric" not in bare.text
    assert (
        "ρ = 0.40 (RSA), of which a sum over the named features makes up 62 %"
        in replace(bare, rsa=0.4, explained_share=0.62).text
    )
    assert replace(bare, rsa=0.01).text.endswith("ρ = 0.01 (RSA).")
    sure = replace(
        bare, rsa=0.4, rsa_range=(0.3, 0.5), explained_share=0.62, explained_range=(0.55, 0.69)
    ).text
    assert "ρ = 0.40 (RSA; 0.30 to 0.50 with other sentences)" in sure
    assert sure.endswith("makes up 62 % (55 % to 69 %).")


def test_two_layers_of_one_system(pair: tuple[Profile, Profile]) -> None:
    got = explain(pair[0], 0, pair[0], 2)
    assert isinstance(got, Explanation)
    assert (got.a, got.b) == (("bert", 0), ("bert", 2))
    assert got.p_block is not None


def test_ranks_have_their_ranges_where_there_are_resamples(pair: tuple[Profile, Profile]) -> None:
    bare = explain(pair[0], 0, pair[1], 2)
    assert bare.rank_range_a is None
    assert "–" not in str(bare.to_frame()["rank_a"].tolist())
    first, second = (replace(one, replicates=replicates(one, noise=0.05)) for one in pair)
    why = explain(first, 0, second, 2)
    expected = first.rank_range()[:, 0]
    frame = why.to_frame().set_index("feature").loc[list(first.features)]
    np.testing.assert_array_equal([frame["rank_a_best"], frame["rank_a_worst"]], expected)
    assert (frame["rank_a_best"] <= frame["rank_a"]).all()
    assert (frame["rank_a"] <= frame["rank_a_worst"]).all()
    wide = frame[frame["rank_a_best"] < frame["rank_a_worst"]].iloc[0]
    assert f"{wide['rank_a']:.0f} ({wide['rank_a_best']:.0f}–{wide['rank_a_worst']:.0f})" in str(why)


def test_a_layer_without_a_ranking(pair: tuple[Profile, Profile]) -> None:
    flat = replace(pair[1], importance=np.zeros_like(pair[1].importance))
    text = explain(pair[0], 0, flat, 0).text
    assert "cannot be compared by features" in text
    assert "Only bert:0 is organised by part of speech (66 % against 0 %) and" in text


def test_bad_input(pair: tuple[Profile, Profile]) -> None:
    with pytest.raises(UnknownName, match="There is no layer '12' in bert"):
        explain(pair[0], 12, pair[1], 0)
    with pytest.raises(InvalidInput, match="bert:1 is given twice"):
        explain(pair[0], 1, pair[0], 1)
    with pytest.raises(UnknownName, match=r"There is no feature 'numbr'\. Did you mean 'number'"):
        explain(pair[0], 0, pair[1], 0, groups={"agreement": ["numbr"]})


@pytest.mark.parametrize("n_features", [3, 4])
def test_of_few_features_no_p_is_printed(make_profile: Make, n_features: int) -> None:
    """24 orders at most: the best of them comes up by chance in 4 % of cases, the best two in 8 %."""
    names, values = tuple("abcd")[:n_features], [0.5, 0.3, 0.1, 0.05][:n_features]
    one, two = (make_profile(n, values, features=names, noise=1e-4, seed=k) for k, n in enumerate("xy"))
    got = explain(one, 0, two, 0)
    assert got.tau == pytest.approx(1)
    assert got.p_block is None
    assert "x:0 and y:0 rank the features alike (τ_w = 1.00)." in got.text


def test_two_profiles_of_one_name(make_profile: Make) -> None:
    one, two = (make_profile("model", POS_AND_LENGTH, noise=1e-4, seed=k) for k in (0, 1))
    with pytest.raises(InvalidInput, match="Both profiles are called model: give each"):
        explain(one, 0, two, 0)
