"""Subjects beside models: against rsatoolbox and plain loops; crossnobis and RDMs as systems; bad input."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import false_discovery_control, rankdata, spearmanr, ttest_1samp, weightedtau
from scipy.stats import t as student

import thinkalike as ta
from thinkalike.comparison import profile_group
from thinkalike.comparison.group_ceilings import between_subjects, measure_ceilings
from thinkalike.errors import InvalidInput, StoreError, UnknownName
from thinkalike.inference.over_subjects import spread_of_folds, spread_of_noise
from thinkalike.measures import MEASURES, layer_measures

RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(24, 4))
SUBJECTS = SHARED @ RNG.normal(size=(6, 4, 9)) + 1.5 * RNG.normal(size=(6, 24, 9))
MODELS = {"good": {"early": RNG.normal(size=(24, 5)), "late": SHARED}, "bad": RNG.normal(size=(24, 7))}
CEILING_IS_REACHED = (
    *("rsa", "rsa-pearson", "rsa-rho-a", "rsa-whitened", "cka", "mutual-knn", "rank-knn", "cknna"),
    *("cca", "svcca", "pwcca", "eigenspace-overlap", "matching-hard", "distance-correlation"),
    *("regression", "regression-reverse", "regression-mean", "regression-cv"),
)
"""Measures by which a model that is the truth does as well as another subject: those that do not gain from
units that hold nothing but noise"""


def features_world(seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """60 items of five features, five subjects and a model that weigh them alike."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({f"f{k}": rng.choice(list("abc"), 60) for k in range(5)})
    codes = table.apply(lambda column: column.astype("category").cat.codes).to_numpy()

    def answers() -> np.ndarray:
        parts = [w * rng.normal(size=(3, 8))[codes[:, f]] for f, w in enumerate((3.0, 2.0, 1.2, 0.6, 0.0))]
        return np.asarray(sum(parts) + rng.normal(size=(60, 8)))

    return table, np.stack([answers() for _ in range(5)]), answers()


@pytest.fixture(scope="module")
def found() -> ta.comparison.GroupComparison:
    return ta.compare_with_group(SUBJECTS, MODELS, permutations=199)


class TestScores:
    def test_every_subject_with_every_layer(self, found: ta.comparison.GroupComparison) -> None:
        assert found.subjects == tuple(f"subject {k}" for k in range(1, 7))
        assert found.rows == (("good", "early"), ("good", "late"), ("bad", "bad"))
        for s, X in enumerate(SUBJECTS):
            expected = spearmanr(pdist(X), pdist(SHARED)).statistic
            assert found.scores[s, 0, 1] == pytest.approx(expected, abs=1e-5)

    @pytest.mark.parametrize(
        ("measure", "method"), [("rsa", "spearman"), ("rsa-pearson", "corr"), ("rsa-rho-a", "rho-a")]
    )
    def test_noise_ceilings_are_rsatoolboxes(self, measure: str, method: str) -> None:
        rsatoolbox = pytest.importorskip("rsatoolbox")
        rdms = rsatoolbox.rdm.RDMs(np.array([pdist(X) for X in SUBJECTS]))
        lower, upper = rsatoolbox.inference.boot_noise_ceiling(rdms, method=method)
        ours = ta.compare_with_group(SUBJECTS, MODELS, measure=measure, permutations=19)
        np.testing.assert_allclose(ours.ceiling_upper, np.full((1, 3), upper), atol=1e-5)
        np.testing.assert_allclose(ours.ceiling_lower, np.full((1, 3), lower), atol=1e-5)

    def test_a_model_that_is_the_shared_structure_is_found_and_noise_is_not(
        self, found: ta.comparison.GroupComparison
    ) -> None:
        table = found.table().set_index("model")
        assert table.loc["good:late", "p_both"] < 0.01
        assert table.loc["bad:bad", "p_both"] > 0.05
        assert table.loc["good:late", "low"] > 0
        assert table.loc["good:late", "score"] < table.loc["good:late", "ceiling_upper"]
        assert (table["p_both"] == table[["p_subjects", "p_items"]].max(axis=1)).all()
        np.testing.assert_allclose(table["q_both"], false_discovery_control(table["p_both"]))

    @pytest.mark.parametrize("measure", ["mutual-knn", "procrustes", "cka-biased", "rsa"])
    def test_p_over_subjects_is_held_against_chance_and_not_against_0(self, measure: str) -> None:
        """Five items, so that all orders are tried: chance is their mean, subject by subject."""
        some, model = SUBJECTS[:, :5], SHARED[:5]
        row = MEASURES[measure]
        if measure == "mutual-knn":  # which takes ten neighbours
            some, model = SUBJECTS, SHARED
        ours = ta.compare_with_group(some, {"m": model}, measure=measure, permutations=199)
        if measure == "mutual-knn":
            assert ours.chance[0, 0] == pytest.approx(10 / 23, abs=0.01)
        else:
            every = [[row(X, model[list(o)]) for o in permutations(range(5))] for X in some]
            better = np.array([e[0] - np.mean(e) for e in every]) * (-1 if row.kind == "distance" else 1)
            np.testing.assert_allclose(ours.above[:, 0, 0], better, atol=1e-5)
            assert ours.chance[0, 0] == pytest.approx(np.mean(every), abs=1e-5)
        p = ttest_1samp(ours.above[:, 0, 0], 0, alternative="greater").pvalue
        assert ours.table(over="subjects")["p_subjects"][0] == pytest.approx(p)

    @pytest.mark.parametrize("measure", ["mutual-knn", "procrustes", "cka-biased"])
    def test_subjects_are_not_like_noise(self, measure: str) -> None:
        """Each of these is far above 0 for anything; chance is what noise reaches."""
        rng = np.random.default_rng(0)
        people, model = rng.normal(size=(6, 24, 9)), rng.normal(size=(24, 4))
        found = ta.compare_with_group(people, {"m": model}, measure=measure, permutations=199)
        assert ttest_1samp(found.scores[:, 0, 0], 0, alternative="greater").pvalue < 1e-4
        assert found.table(over="subjects")["p_subjects"][0] > 0.05

    def test_p_over_items_by_reordering_the_model(self) -> None:
        """Six items: all 720 orders."""
        some = SUBJECTS[:, :6]
        ours = ta.compare_with_group(some, {"late": SHARED[:6]})
        distances = squareform(pdist(SHARED[:6]))
        means = []
        for order in permutations(range(6)):
            moved = squareform(distances[np.ix_(order, order)])
            means.append(np.mean([spearmanr(pdist(X), moved).statistic for X in some]))
        assert ours.p_items[0, 0] == np.mean(np.array(means) >= means[0] - 1e-6)
        assert ours.least_p[0, 0] == 1 / 720
        assert ours.without is None
        assert np.isnan(ours.table()["low"][0])
        assert np.isfinite(ours.table(over="subjects")["low"][0])

    def test_what_so_few_items_can_show(self) -> None:
        ours = ta.compare_with_group(SUBJECTS[:, :8], {"late": SHARED[:8], "not": -RNG.normal(size=(8, 2))})
        limits = ours.limits().set_index("model")
        assert ours.settings["permutations"] == 40_319
        assert limits.loc["late:late", ["items", "pairs"]].tolist() == [8, 28]
        assert limits.loc["late:late", "least_p"] == pytest.approx(1 / 40_320)
        for name, row in limits.iterrows():
            assert (row["score"] >= row["threshold"]) == (row["items_needed"] <= 8), name

    def test_a_model_of_two_classes_cannot_have_a_small_p(self) -> None:
        """Eight items, four of each class: 35 ways to deal them, whatever the order within."""
        classes = np.repeat([0.0, 1.0], 4)[:, None]
        ours = ta.compare_with_group(classes + 0.1 * RNG.normal(size=(6, 8, 5)), {"classes": classes})
        assert ours.least_p[0, 0] == pytest.approx(1 / 35)
        assert ours.p_items[0, 0] == pytest.approx(1 / 35)

    def test_how_many_items_are_needed_is_said_where_it_is_known(self) -> None:
        for measure in ("procrustes", "mutual-knn"):
            ours = ta.compare_with_group(SUBJECTS, {"late": SHARED}, measure=measure, permutations=19)
            assert np.isnan(ours.limits()["items_needed"]).all()
            assert np.isfinite(ours.limits()["threshold"]).all()
        ours = ta.compare_with_group(SUBJECTS, {"late": SHARED}, measure="cka-biased", permutations=199)
        row = ours.limits().iloc[0]
        chance = ours.chance[0, 0]
        expected = np.ceil(24 * (row["threshold"] - chance) / (row["score"] - chance))
        assert row["items_needed"] == expected < 24

    def test_one_subject_has_ranges_over_items_only(self) -> None:
        ours = ta.compare_with_group(SUBJECTS[:1], {"late": SHARED}, permutations=19)
        assert ours.widest == "items"
        assert "Ranges of 95 % over other items" in str(ours)
        assert np.isnan(ours.table(over="items")["p_both"][0])
        assert ours.cautions()[0].startswith("There is one subject")
        assert ours.plot().to_dict()

    def test_chance_varies_as_one_over_the_number_of_items(self) -> None:
        """What `items_needed` rests on."""
        rng = np.random.default_rng(0)
        scaled = []
        for n in (10, 20, 40):
            people, model = rng.normal(size=(6, n, 8)), rng.normal(size=(n, 8))
            scaled.append(n * ta.compare_with_group(people, {"m": model}).threshold[0, 0])
        assert max(scaled) / min(scaled) < 1.25

    def test_the_difference_of_two_layers(self, found: ta.comparison.GroupComparison) -> None:
        apart = found.difference(("good", "late"), ("bad", "bad"))
        assert apart["difference"][0] == pytest.approx((found.scores[..., 1] - found.scores[..., 2]).mean())
        assert apart["p"][0] < 0.05
        assert apart["low"][0] > 0

    def test_by_features(self) -> None:
        rng = np.random.default_rng(1)
        table = pd.DataFrame(
            {name: rng.choice(["a", "b", "c"], 60) for name in ("one", "two", "three", "four")}
        )
        codes = table.apply(lambda column: column.astype("category").cat.codes).to_numpy()
        strength = np.array([3.0, 2.0, 1.0, 0.0])

        def answers(order: list[int]) -> np.ndarray:
            parts = [w * rng.normal(size=(3, 8))[codes[:, f]] for f, w in enumerate(strength[order])]
            return sum(parts) + rng.normal(size=(60, 8))

        people = np.stack([answers([0, 1, 2, 3]) for _ in range(5)])
        ours = ta.compare_with_group(
            people, {"same": answers([0, 1, 2, 3]), "other": answers([3, 2, 1, 0])}, table, measure="features"
        )
        assert ours.noisy is not None
        assert ours.noisy.shape == (100, 5, 1, 2)
        assert ours.n_items == 60
        assert np.isnan(ours.p_items).all()
        assert "There are 4 features with a strength, and no p of fewer than 5" in ours.untested[0]
        profiles = [ta.profile(X, table).mean_importance[0] for X in people]
        expected = np.mean([weightedtau(one, np.mean(profiles, axis=0)).statistic for one in profiles])
        assert ours.ceiling_upper[0, 0] == pytest.approx(expected, abs=1e-9)
        result = ours.table().set_index("model")["score"]
        assert result["same:same"] > 0.5 > result["other:other"]

    def test_p_by_features_is_of_strengths(self) -> None:
        table, people, model = features_world(seed=2)
        ours = ta.compare_with_group(people, {"m": model}, table, measure="features", resamples=0)
        strengths = [ta.profile(X, table).mean_strengths[0] for X in people]
        other = ta.profile(model, table).mean_strengths[0]
        every = np.array(
            [[weightedtau(x, other[list(o)]).statistic for o in permutations(range(5))] for x in strengths]
        )
        above = every[:, 0] - every.mean(axis=1)
        np.testing.assert_allclose(ours.above[:, 0, 0], above, atol=1e-9)
        means = every.mean(axis=0)
        assert ours.p_items[0, 0] == pytest.approx((means >= means[0] - 1e-9).mean())
        p = ttest_1samp(above, 0, alternative="greater").pvalue
        assert ours.table(over="subjects")["p_subjects"][0] == pytest.approx(p)
        assert not ours.has_item_ranges
        assert not ours.untested

    def test_where_features_explain_nothing_there_is_no_p(self) -> None:
        table, people, model = features_world(seed=2)
        noise = np.random.default_rng(0).normal(size=model.shape)
        layers = {"late": model, "noise": noise}
        ours = ta.compare_with_group(people, {"m": layers}, table, measure="features", resamples=0)
        assert np.isfinite(ours.p_items[0, 0])
        assert np.isnan(ours.p_items[0, 1])
        assert np.isnan(ours.table(over="subjects")["p_both"][1])
        assert ours.cautions()[0].startswith("No p of m:noise: the features explain nothing of it")
        silent = np.random.default_rng(1).normal(size=people.shape)
        ours = ta.compare_with_group(silent, {"m": model}, table, measure="features", resamples=0)
        assert np.isnan(ours.p_items).all()
        assert "No p of all in the subjects" in str(ours)

    def test_a_feature_of_one_level_is_left_out(self) -> None:
        table, people, model = features_world(seed=2)
        ours = ta.compare_with_group(
            people, {"m": model}, table.assign(same="x"), measure="features", resamples=0
        )
        expected = ta.compare_with_group(people, {"m": model}, table, measure="features", resamples=0)
        np.testing.assert_allclose(ours.scores, expected.scores)

    def test_ranges_stay_within_what_there_is(self) -> None:
        people = np.stack([SHARED, RNG.normal(size=(24, 4)), RNG.normal(size=(24, 4))])
        ours = ta.compare_with_group(people, {"m": SHARED}, measure="mutual-knn", permutations=19)
        row = ours.table(over="subjects").iloc[0]
        assert (row["low"], row["high"]) == (0, 1)

    def test_ranges_of_tau_stay_within_one(self) -> None:
        table, people, model = features_world(seed=2)
        ours = ta.compare_with_group(people, {"m": model}, table, measure="features")
        for over in ("subjects", "items", "both"):
            row = ours.table(over=over).iloc[0]
            assert -1 <= row["low"] < row["score"] < row["high"] <= 1
        assert ours.difference(("m", "m"), ("m", "m"))["difference"][0] == 0

    def test_ceilings_of_neighbours_are_of_subjects_side_by_side(self) -> None:
        measure = "mutual-knn"
        ours = ta.compare_with_group(SUBJECTS, {"m": SHARED}, measure=measure, permutations=19)
        scaled = []
        for X in SUBJECTS:
            centred = X - X.mean(axis=0)
            scaled.append(centred / np.sqrt((centred**2).sum()))
        upper = np.mean([MEASURES[measure](X, np.hstack(scaled)) for X in scaled])
        others = [np.hstack([Y for k, Y in enumerate(scaled) if k != s]) for s in range(6)]
        lower = np.mean([MEASURES[measure](X, Y) for X, Y in zip(scaled, others, strict=True)])
        assert ours.ceiling_upper[0, 0] == pytest.approx(upper, abs=1e-6)
        assert ours.ceiling_lower[0, 0] == pytest.approx(lower, abs=1e-6)
        assert ours.ceiling_upper[0, 0] > ours.ceiling_lower[0, 0]

    @pytest.mark.parametrize("measure", ["procrustes", "jaccard-knn", "bures", "distance-correlation"])
    def test_other_ceilings_are_from_subjects_with_one_another(self, measure: str) -> None:
        ours = ta.compare_with_group(SUBJECTS, {"m": SHARED}, measure=measure, permutations=19)
        row = MEASURES[measure]
        every = np.array([[row(X, Y) for Y in SUBJECTS] for X in SUBJECTS])
        between = every[~np.eye(6, dtype=bool)]
        assert ours.ceiling_lower[0, 0] == pytest.approx(between.mean(), abs=1e-6)
        best = {
            "procrustes": between.mean() / 2,
            "jaccard-knn": (1 + between.mean()) / 2,
            "bures": np.cos(np.arccos(between).mean() / 2),
            "distance-correlation": (every**2).mean() ** 0.25,
        }
        assert ours.ceiling_upper[0, 0] == pytest.approx(best[measure], abs=1e-6)
        assert "no model can be nearer" in str(ours)

    @pytest.mark.parametrize("measure", ["cknna", "rank-knn", "aligned-cosine", "matching-soft"])
    def test_where_no_bound_is_known_the_upper_ceiling_is_an_estimate(self, measure: str) -> None:
        """All subjects side by side, each of length 1; centred only where the origin does not count."""
        ours = ta.compare_with_group(SUBJECTS, {"m": SHARED}, measure=measure, permutations=19)
        row = MEASURES[measure]
        centred = measure in ("rank-knn", "matching-soft")
        people = [X - X.mean(axis=0) if centred else X for X in SUBJECTS]
        group = np.hstack([X / np.sqrt((X**2).sum()) for X in people])
        assert ours.ceiling_upper[0, 0] == pytest.approx(np.mean([row(X, group) for X in people]), abs=1e-6)
        assert "the upper one is an estimate" in str(ours)

    @pytest.mark.parametrize("measure", ["pwcca", "matching-hard"])
    def test_the_end_of_the_range_is_reached_by_all_units_together(self, measure: str) -> None:
        rng = np.random.default_rng(0)
        people = rng.normal(size=(3, 40, 4))
        everyone = np.hstack(list(people))
        ours = ta.compare_with_group(people, {"all": everyone}, measure=measure, permutations=19)
        assert ours.ceiling_upper[0, 0] == 1
        assert ours.scores.mean() == pytest.approx(1)
        assert "the end of the range" in str(ours)

    @pytest.mark.parametrize("measure", sorted(set(layer_measures()) - {"rtd", "matching-transport"}))
    def test_every_score_has_both_ceilings_and_the_truth_is_below_the_upper(self, measure: str) -> None:
        """Subjects see 4 shared dimensions through weights of their own, with noise; means of three draws."""
        row, sign = MEASURES[measure], -1.0 if MEASURES[measure].kind == "distance" else 1.0
        rng = np.random.default_rng(5)
        found = []
        for _ in range(3):
            shared = rng.normal(size=(30, 4))
            people = [shared @ rng.normal(size=(4, 8)) / 2 + rng.normal(size=(30, 8)) for _ in range(5)]
            model = np.pad(shared, ((0, 0), (0, 4))) if measure == "permutation-procrustes" else shared
            lower, upper = measure_ceilings(row, people, [model], [f"s{k}" for k in range(5)])
            score = np.mean([row(X, model) for X in people])
            found.append(sign * np.array([lower[0], score, upper[0]]))
        low, score, high = np.mean(found, axis=0)
        assert low <= high
        assert score <= high
        if measure in CEILING_IS_REACHED:
            assert low <= score

    @pytest.mark.parametrize("measure", [name for name in layer_measures() if MEASURES[name].bound])
    def test_no_model_is_above_an_upper_ceiling(self, measure: str) -> None:
        """Not the truth, not a subject, not all subjects together, nor what others make of them."""
        row = MEASURES[measure]
        if row.needs_extra is not None:
            pytest.importorskip("ot")
        rng = np.random.default_rng(3)
        sign = -1.0 if row.kind == "distance" else 1.0
        for noise in (0.2, 1.0, 3.0):
            shared = rng.normal(size=(40, 3))
            people = [shared @ rng.normal(size=(3, 6)) + noise * rng.normal(size=(40, 6)) for _ in range(5)]
            every = np.hstack([X / np.linalg.norm(X) for X in people])
            turned = sum(X @ np.linalg.qr(X.T @ people[0])[0] for X in people)
            upper = row.range[1]
            if row.bound != "range":
                upper = sign * between_subjects(row.matrix(people), row.bound).upper[0]
            equal_width = measure == "permutation-procrustes"
            models = [*people, turned, *([] if equal_width else [shared, every])]
            for model in models:
                assert sign * np.mean([row(X, model) for X in people]) <= upper + 1e-6

    def test_a_model_that_predicts_ties_can_pass_spearmans_ceiling_and_not_that_of_rho_a(self) -> None:
        """Subjects' distances in two classes, near and far, wherever the mean of their ranks is cut."""
        rng = np.random.default_rng(0)
        above: dict[str, list[float]] = {"rsa": [], "rsa-rho-a": []}
        for _ in range(12):
            shared = squareform(rng.choice([1.0, 2.0], 15))
            people = [shared + squareform(0.3 * rng.random(15)) for _ in range(4)]
            layers = [ta.Activations.from_distances(D)["RDM"] for D in people]
            mean = np.mean([rankdata(squareform(D)) for D in people], axis=0)
            models = [ta.Activations.from_distances(1.0 + (mean > cut))["RDM"] for cut in np.sort(mean)[2:-2]]
            for name, found in above.items():
                _, upper = measure_ceilings(MEASURES[name], layers, models, list("abcd"))
                scores = [np.mean([MEASURES[name](X, model) for X in layers]) for model in models]
                found.append(np.max(scores - upper))
        assert max(above["rsa"]) > 0.001
        assert max(above["rsa-rho-a"]) < 1e-6

    @pytest.mark.parametrize("measure", ["cka", "cka-biased", "cka-rbf", "rsa-pearson", "rsa-whitened"])
    def test_no_model_passes_the_mean_subject(self, measure: str) -> None:
        rng, row = np.random.default_rng(0), MEASURES[measure]
        everyone = np.hstack([X / np.linalg.norm(X) for X in SUBJECTS])
        models = [SHARED, everyone, *SUBJECTS, *(SHARED @ rng.normal(size=(20, 4, 3)))]
        _, upper = measure_ceilings(row, list(SUBJECTS), models, list("abcdef"))
        assert max(np.mean([row(X, model) for X in SUBJECTS]) for model in models) < upper[0]

    def test_cosines_have_the_ceiling_of_the_mean_vector(self) -> None:
        vectors = np.stack([pdist(X) for X in SUBJECTS])
        vectors -= vectors.mean(axis=1, keepdims=True)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        mean = vectors.mean(axis=0) / np.linalg.norm(vectors.mean(axis=0))
        found = between_subjects(vectors @ vectors.T, "cosine")
        assert found.upper[0] == pytest.approx((vectors @ mean).mean())

    def test_models_by_name_read_the_stimuli(self) -> None:
        stimuli = ta.Stimuli.from_grammar(30, seed=0)
        people = np.random.default_rng(0).normal(size=(3, len(stimuli), 5))
        ours = ta.compare_with_group(people, ["nano-gpt2"], stimuli, permutations=19)
        layers = ta.extract("nano-gpt2", stimuli)
        expected = spearmanr(pdist(people[1]), pdist(layers[4])).statistic
        assert ours.scores[1, 0, ours.rows.index(("nano-gpt2", 4))] == pytest.approx(expected, abs=1e-5)

    def test_steps_come_first(self) -> None:
        from scipy.stats import zscore

        ours = ta.compare_with_group(SUBJECTS, {"m": SHARED}, steps="zscore", permutations=19)
        expected = spearmanr(pdist(zscore(SUBJECTS[2])), pdist(zscore(SHARED))).statistic
        assert ours.scores[2, 0, 0] == pytest.approx(expected, abs=1e-5)
        assert ours.settings["steps"] == ["zscore"]

    def test_clusters_in_time(self) -> None:
        rng = np.random.default_rng(0)
        people = {}
        for s in range(8):
            times = {
                t: rng.normal(size=(24, 9)) + (3 <= t < 6) * SHARED @ rng.normal(size=(4, 9))
                for t in range(8)
            }
            people[f"s{s}"] = times
        ours = ta.compare_with_group(people, {"late": SHARED}, permutations=19)
        clusters = ours.clusters("late", "late")
        assert any(c.start <= 3 and c.stop >= 6 and c.p <= 0.05 for c in clusters)
        assert ours.regions == tuple(range(8))

    def test_a_measure_that_does_not_match_items_has_no_p(self) -> None:
        ours = ta.compare_with_group(SUBJECTS, {"late": SHARED}, measure="concentricity")
        assert np.isnan(ours.table(over="subjects")[["p_subjects", "p_items", "p_both"]]).all(axis=None)
        assert np.isnan(ours.limits()["threshold"]).all()
        assert "does not ask which item is which" in ours.cautions()[-1]
        with pytest.raises(InvalidInput, match="cannot be held against chance in every region"):
            ours.clusters("late", "late")

    def test_clusters_are_of_what_is_better_than_chance(self) -> None:
        """Neighbours of noise are above 0 at all times."""
        rng = np.random.default_rng(0)
        people = {f"s{s}": {t: rng.normal(size=(24, 9)) for t in range(6)} for s in range(8)}
        ours = ta.compare_with_group(people, {"m": SHARED}, measure="mutual-knn", permutations=99)
        assert (ours.scores > 0).all()
        assert not any(one.p <= 0.05 for one in ours.clusters("m", "m"))

    def test_it_is_printed_with_what_it_cannot_say(self, found: ta.comparison.GroupComparison) -> None:
        said = str(found).splitlines()
        assert said[0] == "rsa of 6 subjects with models, 24 items"
        row = found.table().iloc[1]
        assert said[2].startswith(f"  all · good:late: {row['score']:.2f} ({row['low']:.2f} to ")
        assert said[4].startswith("Ranges of 95 % over other subjects and items")
        classes = np.repeat([0.0, 1.0], 3)[:, None]
        few = ta.compare_with_group(SUBJECTS[:, :6], {"classes": classes})
        assert few.least_p[0, 0] == pytest.approx(0.1)
        assert "there are fewer than 8" in few.cautions()[0]
        assert "No p of classes:classes could be 0.05 with these items" in few.cautions()[1]

    def test_plots_show_what_the_table_has(self, found: ta.comparison.GroupComparison) -> None:
        drawn = found.plot().to_dict()
        values = [row for rows in drawn["datasets"].values() for row in rows]
        means = {row["model"]: row["score"] for row in values if "p_both" in row}
        assert means == pytest.approx(found.table().set_index("model")["score"].to_dict())
        assert sum("subject" in row for row in values) == found.scores.size
        rng = np.random.default_rng(0)
        noise = rng.normal(size=(8, 6, 24, 9))
        people = {
            f"s{s}": {t: noise[s, t] + (t > 2) * SHARED @ rng.normal(size=(4, 9)) for t in range(6)}
            for s in range(8)
        }
        over_time = ta.compare_with_group(people, {"m": SHARED, "n": noise[0, 0]}, permutations=19)
        drawn = over_time.plot(rows=[("m", "m")]).to_dict()
        values = [row for rows in drawn["datasets"].values() for row in rows]
        assert {row["model"] for row in values} == {"m:m"}
        assert {"3", "4", "5"} <= {row["region"] for row in values if "score" not in row}


def test_spread_of_noise_is_that_by_hand() -> None:
    """Of scores that are sums of a part of the subject, one of the items and one of both."""
    rng = np.random.default_rng(0)
    S, D, step = 6, 50_000, 0.5
    scores = rng.normal(size=S)
    items, rest = rng.normal(size=(D, 1)), rng.normal(size=(D, S))
    noisy = scores + step * (0.3 * items + 0.2 * rest)
    of_subjects = scores.std(ddof=1) / np.sqrt(S)
    of_items = np.sqrt(0.3**2 + 0.2**2 / S)
    both = np.sqrt(of_subjects**2 + of_items**2 - 0.2**2 / S)
    for over, expected in (("subjects", of_subjects), ("items", of_items), ("both", both)):
        found = spread_of_noise(scores[:, None], noisy[..., None], over=over, step=step, freedom=15.0)
        assert found.error[0] == pytest.approx(expected, rel=0.02)
    assert spread_of_noise(scores, noisy, over="items", step=step, freedom=15.0).freedom == 15.0
    with pytest.raises(InvalidInput, match="over is 'all': expected one of subjects, items, both"):
        spread_of_noise(scores, noisy, over="all", step=step, freedom=15.0)


class TestProfileOfAGroup:
    def test_folds_in_which_a_feature_does_not_vary_are_left_out(self) -> None:
        cells = np.random.default_rng(0).normal(size=(5, 6, 2))
        cells[3, :, 1] = np.nan
        for over in ("subjects", "items", "both"):
            found = spread_of_folds(cells, over=over)
            for k, kept in ((0, cells[..., :1]), (1, np.delete(cells, 3, axis=0)[..., 1:])):
                alone = spread_of_folds(kept, over=over)
                assert found.error[k] == pytest.approx(alone.error[0])
                assert found.freedom[k] == pytest.approx(alone.freedom[0])
        assert np.isnan(spread_of_folds(cells[3:4], over="both").error).all()

    TABLE = pd.DataFrame(
        {
            "size": np.where(SHARED[:, 0] > 0, "large", "small"),
            "hue": list("rgb") * 8,
            "half": list("ab") * 12,
        }
    )

    def test_means_and_ranges_are_those_by_hand(self) -> None:
        found = profile_group(SUBJECTS, self.TABLE)
        each = np.stack([ta.profile(X, self.TABLE).mean_importance[0] for X in SUBJECTS])
        table = found.table(over="subjects").set_index("feature")
        np.testing.assert_allclose(table["importance"], each.mean(axis=0), atol=1e-9)
        for k, name in enumerate(("size", "hue", "half")):
            ends = student.interval(0.95, 5, each[:, k].mean(), each[:, k].std(ddof=1) / np.sqrt(6))
            np.testing.assert_allclose(table.loc[name, ["low", "high"]].astype(float), ends, atol=1e-9)
        folds = np.stack([ta.profile(X, self.TABLE).importance[0] for X in SUBJECTS])  # (subjects, folds, …)
        items = found.table(over="items").set_index("feature")
        both = found.table(over="both").set_index("feature")
        for k, name in enumerate(("size", "hue", "half")):
            cells = folds[:, :, k]
            of_fold, of_subject = cells.mean(axis=0), cells.mean(axis=1)
            ends = student.interval(0.95, 4, cells.mean(), of_fold.std(ddof=1) / np.sqrt(5))
            np.testing.assert_allclose(items.loc[name, ["low", "high"]].astype(float), ends, atol=1e-9)
            rest = cells - of_fold - of_subject[:, None] + cells.mean()
            ours, theirs = of_subject.var(ddof=1) / 6, of_fold.var(ddof=1) / 5
            total = max(ours + theirs - (rest**2).sum() / 20 / 30, ours)
            freedom = max(total**2 / (ours**2 / 5 + theirs**2 / 4), 4)
            ends = student.interval(0.95, freedom, cells.mean(), np.sqrt(total))
            np.testing.assert_allclose(both.loc[name, ["low", "high"]].astype(float), ends, atol=1e-9)
        assert found.table().iloc[0]["feature"] == "size"
        assert found.region_table()[["score", "low", "high", "ceiling"]].notna().all(axis=None)
        assert "GroupProfile(6 subjects, 1 regions, 3 features)" in repr(found)
        lines = str(found).splitlines()
        assert lines[0] == "What 6 subjects are organised by, 24 items"
        assert lines[1].startswith(f"  all: ρ {found.scores.mean():.2f} (")
        assert lines[2].startswith(f"    size {found.importance[:, 0, 0].mean():.2f} (")
        assert len(lines) == 6
        assert lines[-1] == "Means over subjects; ranges of 95 % over other subjects and items."

    def test_it_is_saved(self, tmp_path: Path) -> None:
        found = profile_group(SUBJECTS, self.TABLE, steps=["zscore"])
        found.save(tmp_path / "run")
        kept = pd.read_parquet(tmp_path / "run/subjects.parquet")
        np.testing.assert_allclose(kept["importance"], found.importance.ravel())
        assert json.loads((tmp_path / "run/settings.json").read_text())["settings"]["steps"] == ["zscore"]

    def test_one_subject_is_no_group(self) -> None:
        with pytest.raises(InvalidInput, match="There is 1 subject, and how subjects differ cannot be said"):
            profile_group(SUBJECTS[:1], self.TABLE)
        with pytest.raises(InvalidInput, match="Folds over pairs share their items"):
            profile_group(SUBJECTS, self.TABLE, preset="salle2024").table()
        pairs = profile_group(SUBJECTS, self.TABLE, preset="salle2024")
        assert str(pairs).endswith("over other subjects.")
        with pytest.raises(StoreError, match="24 rows but the stimuli have 3 items"):
            profile_group(SUBJECTS, self.TABLE[:3])


def test_eight_conditions_have_folds_that_fit() -> None:
    table = pd.DataFrame({"animal": list("aabbaabb"), "side": list("lrlrlrlr")})
    X = np.random.default_rng(0).normal(size=(8, 10)) + 3 * (table["animal"] == "a").to_numpy()[:, None]
    found = ta.profile({"IT": X}, table)
    assert found.scores.shape == (1, 2)
    assert found.settings["alpha"] == 0.0
    assert found.table().iloc[0].idxmax() == "animal"
    asked = ta.profile({"IT": X}, table, n_folds=3, alpha=1.0)
    assert (asked.settings["n_folds"], asked.settings["alpha"]) == (3, 1.0)


class TestDistancesAsSystems:
    @pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
    def test_an_rdm_goes_through_compare_as_the_layer_it_was_made_of(self) -> None:
        X, Y = SHARED, RNG.normal(size=(24, 6)) + SHARED[:, :1]
        table = pd.DataFrame({"size": np.where(SHARED[:, 0] > 0, "large", "small"), "hue": list("rgb") * 8})
        systems = {"rdm": ta.Activations.from_distances(squareform(pdist(X))), "other": Y}
        plain = ta.compare({"rdm": X, "other": Y}, table, resamples=0, n_folds=3)
        given = ta.compare(systems, table, resamples=0, n_folds=3)
        for name in ("features", "rsa"):
            np.testing.assert_allclose(given.matrices[name].values, plain.matrices[name].values, atol=1e-6)
        np.testing.assert_allclose(
            given.profiles["rdm"].mean_importance, plain.profiles["rdm"].mean_importance, atol=1e-6
        )

    @pytest.mark.parametrize("measure", ["rsa", "cka", "rsa-whitened"])
    def test_a_constant_that_makes_room_for_items_changes_nothing(self, measure: str) -> None:
        """Squared distances of X less a constant are those of no items, and have the same value."""
        y = pdist(SHARED, "sqeuclidean") - 1.0
        layer = ta.Activations.from_distances(y, squared=True)["RDM"]
        moved = pdist(layer, "sqeuclidean") - y
        assert np.ptp(moved) < 1e-9
        Y = SUBJECTS[0]
        assert MEASURES[measure](layer, Y) == pytest.approx(MEASURES[measure](SHARED, Y), abs=1e-6)

    def test_mlem_of_crossnobis_is_that_of_its_layer(self) -> None:
        runs = SUBJECTS[:3]
        table = pd.DataFrame(
            {"size": pd.Categorical(SHARED[:, 0] > 0), "hue": pd.Categorical(list("rgb") * 8)}
        )
        direct = ta.MLEM(distance="crossnobis", alpha=0.0).fit(table, runs)
        layer = ta.Activations.from_runs(runs)["runs"]
        through = ta.MLEM(alpha=0.0).fit(table, layer)
        np.testing.assert_allclose(through.weights_, direct.weights_, atol=1e-6)

    def test_crossnobis_is_rsatoolboxes(self) -> None:
        rsatoolbox = pytest.importorskip("rsatoolbox")
        from thinkalike.activations.distance_sources import crossnobis

        R, n, d = 3, 24, 9
        runs = SUBJECTS[:R]
        data = rsatoolbox.data.Dataset(
            runs.reshape(R * n, d),
            obs_descriptors={"item": np.tile(np.arange(n) + 0.0, R), "run": np.repeat(np.arange(R) + 0.0, n)},
        )
        expected = rsatoolbox.rdm.calc_rdm(data, "crossnobis", descriptor="item", cv_descriptor="run")
        np.testing.assert_allclose(
            squareform(crossnobis(runs), checks=False) / d, expected.dissimilarities[0], atol=1e-9
        )

    def test_crossed_poisson_is_rsatoolboxes(self) -> None:
        """Which takes one direction of two runs only: ours is the mean of both."""
        rsatoolbox = pytest.importorskip("rsatoolbox")
        from thinkalike.activations.distance_sources import crossed_poisson

        counts = np.random.default_rng(0).poisson(3.0, size=(2, 6, 5)).astype(float)
        theirs = []
        for runs in (counts, counts[::-1]):
            data = rsatoolbox.data.Dataset(
                runs.reshape(12, 5),
                obs_descriptors={"item": np.array(list("abcdef") * 2), "run": np.repeat(["1", "2"], 6)},
            )
            made = rsatoolbox.rdm.calc_rdm(data, "poisson_cv", descriptor="item", cv_descriptor="run")
            theirs.append(made.dissimilarities[0] * 5)
        np.testing.assert_allclose(
            squareform(crossed_poisson(counts), checks=False), np.mean(theirs, axis=0), atol=1e-9
        )

    def test_crossed_poisson_of_equal_conditions_is_0_on_average(self) -> None:
        from thinkalike.activations.distance_sources import crossed_poisson

        rng = np.random.default_rng(0)
        rates = np.array([[2.0, 5.0, 9.0], [2.0, 5.0, 9.0], [8.0, 1.0, 4.0]])
        found = np.array([crossed_poisson(rng.poisson(rates, size=(3, 3, 3))) for _ in range(4000)])
        error = found[:, 0, 1].std() / np.sqrt(len(found))
        assert abs(found[:, 0, 1].mean()) < 4 * error
        assert found[:, 0, 2].mean() > 20 * error

    def test_every_layer_has_residuals_of_its_own(self) -> None:
        rng = np.random.default_rng(0)
        runs = {"V1": SUBJECTS[:2], "V2": SUBJECTS[:2, :, :4]}
        rest = {"V1": rng.normal(size=(50, 9)), "V2": rng.normal(size=(50, 4)) * (1, 2, 3, 4)}
        both = ta.Activations.from_runs(runs, residuals=rest)
        for layer, one in runs.items():
            alone = ta.Activations.from_runs(one, residuals=rest[layer])["runs"]
            np.testing.assert_allclose(both[layer], alone)

    def test_crossnobis_of_equal_conditions_is_0_on_average_and_whitened_too(self) -> None:
        from thinkalike.activations.distance_sources import crossnobis

        rng = np.random.default_rng(0)
        mixing = rng.normal(size=(6, 6))
        plain, whitened = [], []
        for _ in range(300):
            runs = rng.normal(size=(4, 5, 6)) @ mixing
            plain.append(crossnobis(runs)[0, 1])
            whitened.append(crossnobis(runs, residuals=rng.normal(size=(50, 6)) @ mixing)[0, 1])
        for values in (plain, whitened):
            assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(300)

    def test_whitening_by_residuals_is_the_inverse_covariance_in_between(self) -> None:
        from sklearn.covariance import ledoit_wolf

        from thinkalike.activations.distance_sources import crossnobis

        residuals = RNG.normal(size=(80, 9)) * np.arange(1, 10)
        inverse = np.linalg.inv(ledoit_wolf(residuals)[0])
        apart = SUBJECTS[:2, 0] - SUBJECTS[:2, 1]
        expected = apart[0] @ inverse @ apart[1]
        assert crossnobis(SUBJECTS[:2], residuals=residuals)[0, 1] == pytest.approx(expected)


class TestBadInput:
    def test_subjects_with_other_items(self) -> None:
        people = {"a": SUBJECTS[0], "b": SUBJECTS[1][:-1]}
        with pytest.raises(InvalidInput, match="b has 23 items, a has 24: all need the same items"):
            ta.compare_with_group(people, {"m": SHARED})
        named = [
            ta.Activations.from_arrays({"V1": SUBJECTS[0]}, system=s, items=[f"{x}{k}" for k in range(24)])
            for s, x in (("a", "i"), ("b", "j"))
        ]
        with pytest.raises(InvalidInput, match="b has item 'j0' where a has 'i0'"):
            ta.compare_with_group(named, {"m": SHARED})

    def test_nobody_and_nothing(self) -> None:
        with pytest.raises(InvalidInput, match="No subject was given"):
            ta.compare_with_group({}, {"m": SHARED})
        with pytest.raises(InvalidInput, match="No model was given"):
            ta.compare_with_group(SUBJECTS, {})

    def test_subjects_with_other_regions(self) -> None:
        people = {"a": {"V1": SHARED}, "b": {"V2": SHARED}}
        with pytest.raises(InvalidInput, match="b has the regions V2, a V1: all subjects need the same"):
            ta.compare_with_group(people, {"m": SHARED})

    def test_the_wrong_number_of_axes(self) -> None:
        with pytest.raises(
            InvalidInput, match=r"Got subjects of shape \(24, 4\): give \(n_subjects, n_items"
        ):
            ta.compare_with_group(SHARED, {"m": SHARED})

    def test_one_condition(self) -> None:
        with pytest.raises(
            InvalidInput, match=r"There are 1 condition\(s\): their one distance has no order"
        ):
            ta.compare_with_group(SUBJECTS[:, :1], {"m": SHARED[:1]})
        with pytest.raises(InvalidInput, match=r"RDM has 2 condition\(s\): one pair has no order"):
            ta.Activations.from_distances(np.array([[0.0, 1], [1, 0]]))
        with pytest.raises(InvalidInput, match="Got 1 condition: a distance needs two"):
            ta.Activations.from_runs(SUBJECTS[:, :1])

    @pytest.mark.parametrize(
        ("rdm", "message"),
        [
            (np.ones((3, 3)), "RDM has a diagonal that is not 0: give distances, not similarities"),
            (np.triu(np.ones((3, 3)), 1), r"RDM is not symmetric: D\[0, 1\] = 1 but D\[1, 0\] = 0"),
            (np.eye(3) - 1, "RDM has negative distances: give distances, not similarities"),
            (np.ones((3, 4)), r"RDM has shape \(3, 4\): give distances \(n_items, n_items\), or condensed"),
            (np.ones(4), "RDM has 4 distances, which is n"),
            (squareform([1.0, np.nan, 1]), "RDM has NaN or infinite distances"),
            (np.zeros((3, 3)), "All distances are 0"),
        ],
    )
    def test_what_is_no_matrix_of_distances(self, rdm: np.ndarray, message: str) -> None:
        with pytest.raises(InvalidInput, match=message):
            ta.Activations.from_distances(rdm)

    def test_distances_given_as_vectors_are_refused(self) -> None:
        for rdm in (squareform(pdist(SHARED)), squareform(pdist(SHARED)).astype(int)):
            with pytest.raises(InvalidInput, match=r"'V1' is a matrix of distances.*from_distances"):
                ta.Activations.from_arrays({"V1": rdm})
            with pytest.raises(InvalidInput, match="is a matrix of distances"):
                ta.compare_with_group(SUBJECTS, {"m": rdm})
        not_distances = squareform(pdist(SHARED)) + np.eye(24)
        assert ta.Activations.from_arrays({"V1": not_distances}).n_items == 24

    def test_rdms_of_other_items(self) -> None:
        with pytest.raises(InvalidInput, match=r"The RDMs of RDM are of \[3, 4\] items"):
            ta.Activations.from_distances({"V1": np.ones(3), "V2": np.ones(6)})

    def test_residuals_of_other_layers_and_distances(self) -> None:
        runs = {"V1": SUBJECTS[:2], "V2": SUBJECTS[:2, :, :4]}
        rest = {"V1": np.random.default_rng(0).normal(size=(30, 9))}
        with pytest.raises(InvalidInput, match="There are no residuals of V2: give those of every layer"):
            ta.Activations.from_runs(runs, residuals=rest)
        with pytest.raises(InvalidInput, match="residuals whiten the units, for crossnobis only"):
            ta.Activations.from_runs(SUBJECTS[:2], residuals=rest["V1"], distance="poisson")
        with pytest.raises(InvalidInput, match="The residuals are the same in every sample"):
            ta.Activations.from_runs(SUBJECTS[:2], residuals=np.ones((30, 9)))
        with pytest.raises(UnknownName, match="There is no cross-validated distance 'poison'"):
            ta.Activations.from_runs(SUBJECTS[:2], distance="poison")
        with pytest.raises(InvalidInput, match="counts cannot be below 0"):
            ta.Activations.from_runs(SUBJECTS[:2], distance="poisson")

    def test_runs_that_are_none(self) -> None:
        with pytest.raises(
            InvalidInput, match="Got 1 run: cross-validation needs two independent measurements"
        ):
            ta.Activations.from_runs(SUBJECTS[:1])
        with pytest.raises(
            InvalidInput, match=r"Got runs of shape \(24, 4\): give \(n_runs, n_items, n_units\)"
        ):
            ta.Activations.from_runs(SHARED)
        with pytest.raises(InvalidInput, match=r"Got residuals of shape \(50, 3\): give \(n_samples, 9\)"):
            ta.Activations.from_runs(SUBJECTS, residuals=np.zeros((50, 3)))
        runs = SUBJECTS.copy()
        runs[1, 2, 3] = np.nan
        with pytest.raises(InvalidInput, match="The runs hold NaN or infinity"):
            ta.Activations.from_runs(runs)

    def test_runs_of_unequal_length(self) -> None:
        with pytest.raises(InvalidInput, match="run 2 has 23 items, run 1 has 24"):
            ta.Activations.from_runs([SUBJECTS[0], SUBJECTS[1][:-1]])
        for other in (SUBJECTS[1][:, :-1], SUBJECTS[1][:, 0]):
            with pytest.raises(InvalidInput, match="every unit must be measured in every run"):
                ta.Activations.from_runs([SUBJECTS[0], other])

    def test_features_without_stimuli_and_settings_without_features(self) -> None:
        with pytest.raises(InvalidInput, match="measure='features' needs the features of the items"):
            ta.compare_with_group(SUBJECTS, {"m": SHARED}, measure="features")
        with pytest.raises(InvalidInput, match="n_folds is a setting of measure='features'"):
            ta.compare_with_group(SUBJECTS, {"m": SHARED}, n_folds=3)
        with pytest.raises(StoreError, match="24 rows but the stimuli have 3 items"):
            ta.compare_with_group(SUBJECTS, {"m": SHARED}, pd.DataFrame({"x": list("aab")}))
        with pytest.raises(InvalidInput, match="gpt2 is a model, which must be shown something: give the st"):
            ta.compare_with_group(SUBJECTS, ["gpt2"])
