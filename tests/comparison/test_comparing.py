"""A planted world from activations to the answer, and everything that a user may do wrong on the way."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr, weightedtau

from thinkalike.activations import Activations
from thinkalike.comparison import compare
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.comparison import Comparison
from thinkalike.errors import InvalidInput, StoreError, UnknownName
from thinkalike.stimuli import Stimuli


def test_the_first_sentence_names_the_planted_pair(comparison: Comparison) -> None:
    found = comparison.answer
    assert found.alike.startswith("ada and bob are the most alike: ")
    assert re.match("Both are organised (above all )?by part of speech(, then by| and) number", found.why)
    assert "cleo cares more about word position" in found.why
    assert "puts the same pair first" in found.otherwise


def test_explain_names_the_planted_features(comparison: Comparison) -> None:
    alike = comparison.explain("ada", 0, "bob", 2)
    assert set(alike.shared) == {"part_of_speech", "number"}
    assert alike.only_a == alike.only_b == ()
    unlike = comparison.explain("ada", 0, "cleo", 1)
    assert set(unlike.only_a) == {"part_of_speech", "number"}
    assert set(unlike.only_b) == {"word_position", "word_length"}


def test_blocks_find_the_planted_pair_only(comparison: Comparison) -> None:
    blocks = comparison.blocks().set_index(["a", "b"])
    assert blocks.loc[("ada", "bob"), "q"] < 0.05
    assert blocks.loc[("ada", "cleo"), "q"] > 0.05
    assert blocks.loc[("bob", "cleo"), "q"] > 0.05
    assert blocks.loc[("ada", "bob"), "mean_rsa"] > blocks.loc[("ada", "cleo"), "mean_rsa"]


def test_tables_that_one_reads_print_corrected_p_only(comparison: Comparison) -> None:
    """`blocks` and `geometry` have all there is, by names that say so; what is printed has q."""
    printed = comparison.table()
    assert not [name for name in printed if name.startswith("p")]
    corrected = comparison.blocks().query("a != b")
    assert printed["q"].to_list() == corrected["q"].to_list()
    assert (corrected["q"] >= corrected["p_mean"]).all()
    assert (corrected["q"] > corrected["p_mean"]).any()
    assert "uncorrected" not in comparison.explain("ada", 0, "cleo", 1).text
    assert "corrected for all pairs of layers" in comparison.explain("ada", 0, "cleo", 1).text


def test_reliability_of_geometry_is_that_of_the_layers_at_hand(comparison: Comparison) -> None:
    """The pass over the layers leaves ranks only; `reliability` reads the layers again."""
    rsa, n = comparison.matrices["rsa"], len(comparison.rows)
    assert rsa.across is not None
    assert rsa.ceiling is not None
    frame = comparison.reliability()
    np.testing.assert_allclose(rsa.across.ravel(), frame["across"], atol=0.02)
    np.testing.assert_allclose(rsa.ceiling.ravel(), frame["ceiling"], atol=0.02)
    test = rsa.geometry_test("ada", "cleo")
    assert test is not None
    between = [rsa.rows[k][0] == "ada" for k in range(n)], [rsa.rows[k][0] == "cleo" for k in range(n)]
    assert test.across == pytest.approx(rsa.across[np.ix_(*between)].mean())
    assert test.ceiling == pytest.approx(rsa.ceiling[np.ix_(*between)].mean())
    own = rsa.geometry_test("ada", "ada")
    assert own is not None
    block = rsa.across[np.ix_(between[0], between[0])]
    assert own.across == pytest.approx(block[~np.eye(len(block), dtype=bool)].mean())
    assert f"{test.across:.2f}" in str(comparison.geometry().round(2))


def test_the_matrices_are_those_of_scipy(comparison: Comparison, world: dict[str, Activations]) -> None:
    importance = np.concatenate([p.importance.mean(axis=1) for p in comparison.profiles.values()])
    tau = [[weightedtau(x, y).statistic for y in importance] for x in importance]
    np.testing.assert_allclose(comparison.matrices["features"].values, tau, atol=1e-12)
    np.testing.assert_allclose(comparison.contributions.sum(axis=2), tau, atol=1e-12)
    distances = np.stack([pdist(a[layer]) for a in world.values() for layer in a.layers], axis=1)
    np.testing.assert_allclose(comparison.matrices["rsa"].values, spearmanr(distances).statistic, atol=1e-5)
    assert list(comparison.matrices) == ["features", "rsa", "cka"]


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
@pytest.mark.parametrize("distance", ["mahalanobis", "cosine"])
def test_rsa_is_of_the_distance_that_was_asked_for(
    world: dict[str, Activations], sentences: Stimuli, distance: str
) -> None:
    made = compare([world["ada"], world["cleo"]], sentences, distance=distance, resamples=0)
    layers = [world[name][layer].astype(float) for name, layer in made.rows]
    expected = spearmanr(np.stack([pdist(X, distance) for X in layers], axis=1)).statistic
    np.testing.assert_allclose(made.matrices["rsa"].values, expected, atol=1e-5)
    euclidean = spearmanr(np.stack([pdist(X) for X in layers], axis=1)).statistic
    assert np.abs(expected - euclidean).max() > 0.05  # else this would say nothing


def test_everything_is_labelled_alike(comparison: Comparison) -> None:
    rows = comparison.rows
    assert rows[:3] == (("ada", 0), ("ada", 1), ("ada", 2))
    assert all(matrix.rows == rows for matrix in comparison.matrices.values())
    assert all(m.rows == rows for m in comparison.layer_maps.values())
    assert comparison.word_maps is not None
    assert comparison.word_maps.rows == rows
    assert comparison.word_maps.coordinates.shape == (10, len(comparison.stimuli), 2)
    assert set(comparison.word_maps.items) == set(comparison.stimuli.items.index)
    assert comparison.contributions.shape == (10, 10, 6)
    assert [(a.a, a.b) for a in comparison.agreements] == [
        ("features", "rsa"),
        ("features", "cka"),
        ("rsa", "cka"),
    ]
    assert list(comparison.correlations) == list(comparison.stimuli.features)
    assert len(comparison.contributions_frame()) == 45 * 6


def test_explanations_use_the_activations(comparison: Comparison) -> None:
    got = comparison.explain("ada", 1, "bob", 1, n_worst=3)
    assert got.rsa == comparison.matrices["rsa"]["ada", 1, "bob", 1]
    assert comparison.explained_share is not None
    assert got.explained_share == comparison.explained_share[1, 4]
    assert got.worst_pairs is not None
    assert list(got.worst_pairs) == ["first", "second", "in ada:1", "in bob:1"]
    assert got.worst_pairs["first"].str.contains(r"\[\w+\]").all()
    assert got.worst_pairs["in ada:1"].str.fullmatch(r"\d\.\d SD (farther|nearer)").all()
    assert (got.low, got.high) != (None, None)
    assert "explain these pairs worst" in str(got)
    assert comparison.explain("ada", 1, "bob", 1, n_worst=0).worst_pairs is None
    assert comparison.explain("ada", "1", "bob", "1").tau == got.tau  # as typed on the command line


def test_intervals_lie_around_the_estimates(comparison: Comparison) -> None:
    profile = comparison.profiles["ada"]
    assert profile.replicates is not None
    low, high = profile.score_range()
    assert ((low < profile.mean_scores) & (profile.mean_scores < high)).all()
    frame = profile.to_frame()
    assert {"importance_low", "importance_high", "spread"} <= set(frame)
    assert {"score_low", "ceiling", "duplicated", "top_share"} <= set(profile.layer_frame())


def test_it_shows_itself(comparison: Comparison) -> None:
    assert repr(comparison).startswith("Comparison(ada, bob, cleo; ")
    html = comparison._repr_html_()
    assert comparison.answer.alike in html
    assert "<table" in html


def test_cautions_are_warnings_too(sentences: Stimuli, world: dict[str, Activations]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = compare([world["ada"], world["cleo"]], sentences)
    assert [str(w.message) for w in caught if w.category is CautionWarning] == [
        c.text for c in result.cautions
    ]
    assert "few-features" in {c.kind for c in result.cautions}


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
def test_two_systems_get_an_answer_for_two(sentences: Stimuli, world: dict[str, Activations]) -> None:
    alike = compare([world["ada"], world["bob"]], sentences).answer
    assert re.fullmatch(r"ada and bob care (partly|largely) about the same features\.", alike.alike)
    assert alike.sure.startswith("That is more than chance.")
    unlike = compare({"x": world["ada"], "y": world["cleo"]}, sentences).answer
    assert unlike.alike.startswith("x and y do not care about the same features more than unrelated systems")
    assert unlike.why.startswith("No feature matters in all of them: x by part of speech")
    assert "They differ most in " in unlike.why


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
def test_items_that_one_system_lacks_are_left_out_for_all(
    sentences: Stimuli, world: dict[str, Activations], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As when the first tokens are dropped: extraction then gives fewer rows."""
    kept = np.arange(len(sentences)) >= 7
    fewer = sentences.subset(kept)

    def extract(
        model: str, stimuli: Stimuli, *, system: str, out: Path | None, drop_first: int
    ) -> Activations:
        assert drop_first == 1
        arrays = {k: world[model][k][kept] for k in range(3)}
        found = Activations.from_arrays(arrays, system=system, stimuli=fewer)
        if out is not None:
            found.save(out)
        return found

    monkeypatch.setattr("thinkalike.activations.extraction.extract", extract)
    bare = Activations.from_arrays({k: world["ada"][k] for k in range(3)}, system="ada")
    result = compare([bare, "cleo"], sentences, extraction={"drop_first": 1}, out=tmp_path / "run")
    assert len(result.stimuli) == len(sentences) - 7
    assert result.activations is not None
    np.testing.assert_array_equal(result.activations["ada"][0], world["ada"][0][kept])
    np.testing.assert_array_equal(result.activations["cleo"][0], world["cleo"][0][kept])
    loaded = Comparison.load(tmp_path / "run")
    assert loaded.stimuli == result.stimuli
    assert str(loaded.explain("ada", 0, "cleo", 1)) == str(result.explain("ada", 0, "cleo", 1))


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
def test_groups_of_features_have_one_importance(sentences: Stimuli, world: dict[str, Activations]) -> None:
    where = {"where": ["word_position", "question"]}
    made = compare([world["ada"], world["cleo"]], sentences, groups=where)
    assert "where" in made.features
    assert "word_position" not in made.features
    assert list(made.correlations) == list(sentences.features)  # the diagnostics stay with the features
    assert made.settings["groups"] == where


def test_whole_systems_cluster_as_planted(comparison: Comparison) -> None:
    from thinkalike.inference.clusters import cluster_models

    found = cluster_models(comparison.trajectories.warped, systems=comparison.systems, n_clusters=2)
    labels = dict(zip(found.systems, found.labels, strict=True))
    assert labels["ada"] == labels["bob"] != labels["cleo"]


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
def test_arrays_tables_and_files_are_taken_as_they_are(
    world: dict[str, Activations], sentences: Stimuli, tmp_path: Path
) -> None:
    ada, bob = world["ada"], world["bob"]
    expected = compare([ada, bob], sentences).matrices["features"].values
    layers = {layer: ada[layer] for layer in ada.layers}
    given = compare({"ada": layers, "bob": bob}, sentences)
    np.testing.assert_array_equal(given.matrices["features"].values, expected)
    np.savez(tmp_path / "ada.npz", **{str(layer): ada[layer] for layer in ada.layers})
    read = compare([tmp_path / "ada.npz", bob], sentences)
    assert read.rows == given.rows
    np.testing.assert_array_equal(read.matrices["features"].values, expected)
    arrays = compare([ada[0], pd.DataFrame(bob[0])], sentences.features.reset_index(drop=True))
    assert arrays.rows == (("array 1", "array 1"), ("array 2", "array 2"))
    assert arrays.matrices["features"].values[0, 1] == pytest.approx(expected[0, 3])
    table = sentences.features.set_axis([f"w{k}" for k in range(len(sentences))])
    turned = pd.DataFrame(bob[0], index=table.index)[::-1]
    with pytest.raises(StoreError, match="array 2 has its rows in another order than the stimuli"):
        compare([ada[0], turned], table)
    with pytest.raises(InvalidInput, match=r"'crossnobis' takes repeated measurements .* use ta.MLEM"):
        compare([ada, bob], sentences, distance="crossnobis")


def test_numbers_that_hardly_repeat_are_cautioned_about(plant: Callable[..., Activations]) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"kind": rng.choice(list("xyz"), 80), "side": rng.choice(list("lr"), 80)})
    table["rt"] = rng.permutation(np.r_[np.arange(79.0), 0.0])
    stimuli = Stimuli(table)
    two = [plant(stimuli, name, {"kind": 1.0}, n_layers=1, seed=k) for k, name in enumerate("ab")]
    with pytest.warns(CautionWarning) as seen:
        compare(two, stimuli)
    assert any("100.0 % of all pairs of items differ in rt" in str(w.message) for w in seen)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        compare(two, stimuli, ordered="minmax")
    assert not [w for w in seen if "differ in rt" in str(w.message)]


def test_bad_input(sentences: Stimuli, world: dict[str, Activations], tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"Got only gpt2: a comparison needs two .* ta\.profile and ta\.similarity"
    ):
        compare("gpt2")
    with pytest.raises(InvalidInput, match="Got no system"):
        compare([])
    with pytest.raises(InvalidInput, match="ada comes twice"):
        compare([world["ada"], world["ada"]], sentences)
    with pytest.raises(UnknownName, match="There is no control 'random'"):
        compare(["gpt2", "bert"], controls="random")
    with pytest.raises(InvalidInput, match="arrays have no untrained copy"):
        compare(list(world.values()), sentences, controls="untrained")
    with pytest.raises(InvalidInput, match="Arrays were given without stimuli"):
        compare(list(world.values()))
    with pytest.raises(UnknownName, match="There is no measure 'ckaa'"):
        compare(list(world.values()), sentences, measures=["ckaa"])
    with pytest.raises(UnknownName, match="There is no preset 'salle'"):
        compare(list(world.values()), sentences, preset="salle")
    with pytest.raises(InvalidInput, match=r"folds over pairs, in which sentences cannot .* resamples=0"):
        compare(list(world.values()), sentences, preset="salle2024", resamples=10)
    other = sentences.subset(np.arange(len(sentences)) < 50)
    with pytest.raises(StoreError, match=r"ada has 240 rows but .* was shown other stimuli"):
        compare(list(world.values()), other)


def test_layers_that_do_not_exist(comparison: Comparison) -> None:
    with pytest.raises(UnknownName, match=r"There is no layer '9' in bob\. Known: 0, 1, 2, 3"):
        comparison.explain("ada", 0, "bob", 9)
    with pytest.raises(UnknownName, match=r"There is no system 'bobo'\. Did you mean 'bob'"):
        comparison.explain("ada", 0, "bobo", 0)
