"""What the page says, as plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from thinkalike.comparison.cautions import Caution
from thinkalike.comparison.comparison import Comparison, Controls
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.report.methods import methods
from thinkalike.report.summary import summarise
from thinkalike.stimuli.table import Stimuli


def test_the_answer_comes_first_and_unchanged(planted: Comparison) -> None:
    summary = summarise(planted)
    assert summary.title == "What makes alpha, beta and gamma think alike?"
    assert summary.answer == planted.answer


def test_facts_count_what_was_compared(planted: Comparison) -> None:
    assert summarise(planted).facts == (
        "3 systems",
        "27 layers",
        "8 features",
        "1,500 words in 250 sentences",
    )


def test_items_that_are_not_words_are_called_items(planted: Comparison) -> None:
    summary = summarise(replace(planted, stimuli=Stimuli(planted.stimuli.features)))
    assert summary.facts[-1] == "1,500 items"
    assert not summary.items_are_words
    assert "What was shown" not in dict(summary.methods)


def test_pairs_of_systems_stand_from_the_most_to_the_least_alike(planted: Comparison) -> None:
    pairs = summarise(planted).system_pairs
    tau = planted.matrices["features"]
    means = {
        (a, b): float(tau.block(a, b).mean())
        for a, b in (("alpha", "beta"), ("alpha", "gamma"), ("beta", "gamma"))
    }
    expected = sorted(means, key=lambda pair: -means[pair])
    assert [pair.label for pair in pairs] == [f"{a} × {b}" for a, b in expected]
    assert [pair.mean for pair in pairs] == [f"{means[pair]:.2f}" for pair in expected]
    first = pairs[0]
    assert (first.q, first.untrained) == ("0.012", "0.21")
    mean = means[expected[0]]
    assert first.range == f"{mean - 0.08:.2f} to {mean + 0.05:.2f}"
    assert first.geometry == f"{planted.matrices['rsa'].block('alpha', 'beta').mean():.2f}"
    assert first.distance == f"{planted.trajectories.warped[0, 1]:.3f}"


def test_without_untrained_copies_there_is_no_such_column(planted: Comparison) -> None:
    matrix = planted.matrices["features"]
    blocks = tuple(replace(block, control=float("nan")) for block in matrix.blocks)
    summary = summarise(
        replace(planted, matrices={**planted.matrices, "features": replace(matrix, blocks=blocks)})
    )
    assert not summary.has_controls
    assert summary.has_ranges
    assert {pair.untrained for pair in summary.system_pairs} == {""}


def test_features_are_listed_by_importance_and_coloured_by_their_place_in_the_stimuli(
    planted: Comparison,
) -> None:
    means = np.concatenate([p.mean_importance for p in planted.profiles.values()]).mean(axis=0)
    names = planted.profiles["alpha"].features
    assert [f.name for f in summarise(planted).features] == [names[k] for k in np.argsort(-means)]
    assert all(names[f.colour] == f.name for f in summarise(planted).features)


def test_with_more_features_than_colours_the_most_important_are_coloured(
    plant: Callable[..., Comparison],
) -> None:
    many = plant({"alpha": 2, "beta": 2}, tuple(f"f{k}" for k in range(11)), n_sentences=40, n_mapped=20)
    assert [f.colour for f in summarise(many).features] == list(range(11))


def test_layer_0_is_explained_for_models_only(planted: Comparison) -> None:
    assert summarise(planted).has_embeddings
    bare = {name: replace(profile, metadata={}) for name, profile in planted.profiles.items()}
    assert not summarise(replace(planted, profiles=bare)).has_embeddings


def test_one_system_has_profiles_but_no_pairs_of_systems(plant: Callable[..., Comparison]) -> None:
    summary = summarise(plant({"solo": 4}, n_sentences=40, n_mapped=20))
    assert summary.title == "What is solo organised by?"
    assert summary.system_pairs == ()
    assert summary.facts[0] == "1 system"
    assert summary.picks[0].label == "most alike"
    assert "Profile distance" not in dict(summary.methods)


def test_many_systems_are_counted_in_the_title(plant: Callable[..., Comparison]) -> None:
    summary = summarise(plant({f"s{k}": 2 for k in range(5)}, n_sentences=40, n_mapped=20))
    assert summary.title == "What makes 5 systems think alike?"


def test_alt_texts_say_what_the_charts_show(planted: Comparison) -> None:
    summary = summarise(planted)
    alpha = summary.systems[0]
    assert alpha.alt.startswith("Line chart of importance over the 7 layers of alpha. Most important: ")
    assert "part of speech in" in alpha.alt
    assert "in the first" in alpha.score_alt
    assert "alpha × beta" in summary.system_pairs_alt
    assert " with other sentences" in summary.system_pairs_alt
    assert summary.matrices[0].alt.startswith("Matrix of 27 by 27 layers coloured by weighted τ from −")
    assert "The strongest is between" in summary.correlations_alt


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("alpha", ""),
        ("org/alpha", ""),
        ("org/other", "org/other"),
        ("/home/someone/secret/models/other", "models/other"),
        ("/home/someone/alpha", ""),
    ],
)
def test_a_model_is_named_where_it_says_more_and_no_path_is_told(
    planted: Comparison, model: str, shown: str
) -> None:
    profiles = {"alpha": replace(planted.profiles["alpha"], metadata={"model": model})}
    assert summarise(replace(planted, profiles=planted.profiles | profiles)).systems[0].model == shown


def test_correlations_that_are_unknown_are_said_to_be(planted: Comparison) -> None:
    bare = pd.DataFrame(np.eye(1), index=["f"], columns=["f"])
    assert summarise(replace(planted, correlations=bare)).correlations_alt.startswith("No correlations")


def test_agreement_stands_beside_what_smoothness_gives(planted: Comparison) -> None:
    (sentence,) = summarise(planted).agreements
    assert sentence == (
        "The matrices of weighted τ and ρ (RSA) order the pairs of layers alike at ρ = 0.49, ρ = 0.41 "
        "between systems only. Layers that change as smoothly, but have nothing to do with each other, "
        "give 0.35 on average (q = 0.012)."
    )


def test_agreements_of_several_matrices_make_a_table(planted: Comparison) -> None:
    other = replace(planted.agreements[0], b="procrustes", rho_between=float("nan"))
    header, first, second = summarise(
        replace(planted, agreements=(*planted.agreements, other))
    ).agreement_table
    assert first == ("weighted τ × ρ (RSA)", "0.49", "0.41", "0.35", "0.012")
    assert second == ("weighted τ × Procrustes", "0.49", "–", "0.35", "0.012")
    assert len(header) == len(first)


def test_agreement_of_untrained_copies_stands_beside_it(planted: Comparison) -> None:
    (one,) = planted.agreements
    copied = replace(one, untrained=0.9, untrained_share=1.0)
    (sentence,) = summarise(replace(planted, agreements=(copied,))).agreements
    assert sentence.endswith("In untrained copies of the systems they do so at ρ = 0.90.")
    assert "ntrained" not in summarise(planted).agreements[0]
    other = replace(one, b="procrustes")
    table = summarise(replace(planted, agreements=(copied, other))).agreement_table
    assert [row[-1] for row in table] == ["ρ of untrained copies", "0.90", "–"]


def test_agreement_of_one_system_says_nothing_of_others(planted: Comparison) -> None:
    agreement = replace(planted.agreements[0], rho_between=float("nan"))
    assert "between systems" not in summarise(replace(planted, agreements=(agreement,))).agreements[0]


@pytest.mark.parametrize(("stress", "verdict"), [(0.05, "good"), (0.15, "fair"), (0.3, "poor")])
def test_maps_say_how_faithful_they_are(planted: Comparison, stress: float, verdict: str) -> None:
    maps = {"features": replace(planted.layer_maps["features"], stress=stress)}
    (text,) = summarise(replace(planted, layer_maps=maps)).layer_maps
    assert verdict in text.faith
    assert f"{stress:.2f}" in text.faith


def test_cautions_are_said_as_they_are(planted: Comparison) -> None:
    cautions = (Caution("low-score", "gamma explains little."),)
    assert summarise(replace(planted, cautions=cautions)).cautions == ("gamma explains little.",)


def test_precision_is_a_table_of_text(planted: Comparison) -> None:
    precision = pd.DataFrame(
        {
            "quantity": ["score", "importance"],
            "width_now": [0.047, float("nan")],
            "items_now": [1500, 1500],
            "width_wanted": [0.1, 0.05],
            "items_needed": pd.array([157, None], dtype="Int64"),
        }
    )
    assert summarise(replace(planted, precision=precision)).precision == (
        ("interval of", "width now", "items now", "width wanted", "items needed"),
        ("ρ", "0.047", "1,500", "0.1", "157"),
        ("importance", "–", "1,500", "0.05", "–"),
    )


def test_settings_and_versions_are_flat_lines(planted: Comparison) -> None:
    settings = {"preset": "default", "extraction": {"pooling": "last", "layers": [0, 1]}}
    summary = summarise(replace(planted, settings=settings, versions={"numpy": "2.4"}))
    assert summary.settings == (
        ("preset", "default"),
        ("extraction.pooling", "last"),
        ("extraction.layers", "0, 1"),
    )
    assert summary.versions == (("numpy", "2.4"),)


def test_methods_name_what_applies_and_nothing_else(planted: Comparison) -> None:
    said = dict(methods(planted))
    assert "With 8 features" in said["Chance"]
    assert said["What was shown"].startswith("1,500 words in 250 sentences, such as “")
    assert "Untrained copies" not in said
    assert "Uncertainty" in said
    plain = replace(
        planted,
        matrices={"features": planted.matrices["features"]},
        profiles={name: replace(p, replicates=None) for name, p in planted.profiles.items()},
        controls=Controls({name: (p,) for name, p in planted.profiles.items()}, planted.matrices["features"]),
    )
    said = dict(methods(plain))
    assert "Likeness by geometry, RSA" not in said
    assert "Uncertainty" not in said
    assert "Untrained copies" in said


def test_another_measure_stands_in_for_rsa(planted: Comparison) -> None:
    cka = SimilarityMatrix("cka", planted.rows, planted.matrices["rsa"].values)
    summary = summarise(replace(planted, matrices={"features": planted.matrices["features"], "cka": cka}))
    assert summary.geometry == "cka"
    assert summary.matrices[1].title == "By geometry (CKA)"
    assert summary.matrices[1].name == "CKA"
    assert "Kornblith et al. 2019" in dict(summary.methods)["Likeness by geometry, CKA"]
