"""The answer in plain words follows the numbers, also when they say little."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.planted import replicates
from thinkalike.comparison.answer import Answer, answer, system_shares
from thinkalike.comparison.feature_similarity import by_features
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.inference.agreement import Agreement
from thinkalike.inference.geometry_tests import GeometryTest

Make = Callable[..., Profile]
NAMES = tuple("pqrstu")
FIRST = [0.5, 0.3, 0.11, 0.05, 0.02, 0.01]
SECOND = [0.01, 0.02, 0.05, 0.11, 0.3, 0.5]
NEAR = [0.45, 0.35, 0.11, 0.05, 0.02, 0.01]
SWAPPED = [0.3, 0.5, 0.1, 0.05, 0.02, 0.01]


def profiles(make_profile: Make, noise: float = 1e-4, **importances: list[float]) -> dict[str, Profile]:
    made = {
        name: make_profile(name, values, features=NAMES, noise=1e-4, seed=k)
        for k, (name, values) in enumerate(importances.items())
    }
    return {
        name: replace(p, replicates=replicates(p, noise=noise, seed=k))
        for k, (name, p) in enumerate(made.items())
    }


def matrices(made: dict[str, Profile], geometry: np.ndarray | None = None) -> dict[str, SimilarityMatrix]:
    found = {"features": by_features(list(made.values()))}
    if geometry is not None:
        found["rsa"] = SimilarityMatrix("rsa", found["features"].rows, np.kron(geometry, np.ones((3, 3))))
    return found


def said(made: dict[str, Profile], **blocks: object) -> Answer:
    """The answer, with some values of all blocks set."""
    found = matrices(made)
    changed = tuple(replace(block, **blocks) for block in found["features"].blocks)
    return answer(made, found | {"features": replace(found["features"], blocks=changed)})


def test_three_systems(make_profile: Make) -> None:
    found = said(profiles(make_profile, a=FIRST, b=FIRST, c=SECOND))
    assert found.alike == "a and b are the most alike: they care largely about the same features."
    assert found.why == (
        "Both are organised above all by p, then by q and r. "
        "c cares more about u and less about p than a and b do."
    )
    assert (
        found.sure == "1 of 3 pairs is more alike than chance. Other sentences would put the same pair first."
    )


def test_a_layman_reads_no_numbers(make_profile: Make) -> None:
    """Counts of pairs aside: the tables have the numbers."""
    made = profiles(make_profile, a=FIRST, b=NEAR, c=SECOND)
    same = np.array([[1, 0.6, 0.2], [0.6, 1, 0.3], [0.2, 0.3, 1]])
    found = answer(made, matrices(made, same))
    for sentence in (found.alike, found.why, found.otherwise):
        assert not re.search(r"\d|τ|ρ|%", sentence)
    assert len(found.alike) < 90


def test_nothing_beyond_chance(make_profile: Make) -> None:
    found = said(profiles(make_profile, a=FIRST, b=SECOND, c=[0.1, 0.02, 0.5, 0.3, 0.01, 0.05]))
    assert (
        found.alike
        == "No two of these systems care about the same features more than unrelated systems would."
    )
    assert found.sure == "None of 3 pairs are more alike than chance."  # of no pair it is said to come first
    assert "tie" not in found.next


def test_the_most_alike_have_the_highest_tau_not_the_smallest_q(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=SWAPPED)
    found = matrices(made)
    q = {("a", "b"): 0.04, ("a", "c"): 0.001, ("b", "c"): 0.2}
    blocks = tuple(replace(t, q=q.get((t.a, t.b), np.nan)) for t in found["features"].blocks)
    found["features"] = replace(found["features"], blocks=blocks)
    assert answer(made, found).alike.startswith("a and b are the most alike:")
    assert answer(made, found).sure.startswith("2 of 3 pairs are more alike than chance. ")


def test_the_most_alike_may_be_no_more_so_than_chance(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=SWAPPED)
    found = matrices(made)
    q = {("a", "b"): 0.2, ("a", "c"): 0.001, ("b", "c"): 0.2}
    blocks = tuple(replace(t, q=q.get((t.a, t.b), np.nan)) for t in found["features"].blocks)
    found["features"] = replace(found["features"], blocks=blocks)
    assert answer(made, found).sure.startswith(
        "1 of 3 pairs is more alike than chance, a and b not among them."
    )


def test_a_tie_is_called_a_tie(make_profile: Make) -> None:
    """Which of the three pairs is highest changes with the sentences."""
    made = profiles(make_profile, noise=0.2, a=FIRST, b=NEAR, c=[0.5, 0.3, 0.05, 0.11, 0.02, 0.01])
    found = said(made, q=0.01)
    assert found.alike == "a, b and c are about equally alike: they care largely about the same features."
    assert found.why.startswith("All are organised ")
    assert found.sure.endswith("Other sentences may well put another pair first.")
    assert "take more sentences, which may break the tie" in found.next.lower()


def test_a_tie_with_some(make_profile: Make) -> None:
    found = said(profiles(make_profile, noise=0.02, a=FIRST, b=FIRST, c=FIRST, d=SECOND))
    assert re.fullmatch(
        r"[abc] and [abc] are the most alike, about equally with [abc] and [abc] and with [abc] and [abc]\.",
        found.alike,
    )
    assert "d cares more about u and less about p than " in found.why


def test_a_tie_with_many(make_profile: Make) -> None:
    found = said(profiles(make_profile, noise=0.02, a=FIRST, b=FIRST, c=FIRST, d=FIRST, e=SECOND))
    assert found.alike.endswith(" are among the most alike, about equally with 5 other pairs.")


def test_without_resamples_nothing_is_said_of_other_sentences(make_profile: Make) -> None:
    made = {
        n: replace(p, replicates=None) for n, p in profiles(make_profile, a=FIRST, b=FIRST, c=SECOND).items()
    }
    found = said(made)
    assert found.alike.startswith("a and b come out as the most alike")
    assert found.sure.endswith("How it would be with other sentences was not asked.")
    assert found.next.startswith("Ask for ranges (--resamples 20)")


def test_few_features_are_not_tested(make_profile: Make) -> None:
    made = {
        name: make_profile(name, FIRST[:3], features=NAMES[:3], noise=1e-4, seed=k)
        for k, name in enumerate("ab")
    }
    found = said(made)
    assert found.alike == "a and b care largely about the same features."
    assert found.sure.startswith("Nothing could be tested against chance")


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        (0.9, "care largely about the same features"),
        (0.6, "care largely about the same features"),
        (0.59, "care partly about the same features"),
        (0.29, "share few of the features they care about"),
    ],
)
def test_how_alike_is_said_in_words(make_profile: Make, mean: float, words: str) -> None:
    found = said(profiles(make_profile, a=FIRST, b=FIRST), mean=mean, low=mean, high=mean, q=0.01)
    assert found.alike == f"a and b {words}."
    assert found.sure == "That is more than chance. With other sentences they would be about as alike."


def test_two_systems_with_other_sentences(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST)
    wide = said(made, mean=0.5, low=0.2, high=0.7, q=0.01)
    assert wide.sure.endswith("With other sentences they may be more alike, or less.")
    assert "other sentences" not in said(made, mean=0.5, low=0.2, high=0.7, q=0.3).sure


def test_the_most_alike_need_not_be_alike(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=SECOND)
    few = said(made, mean=0.2, q=0.01, behind_low=0.1)
    assert few.alike.endswith(" are the most alike, but share few of the features they care about.")
    none = said(made, mean=-0.1, q=0.01, behind_low=0.1)
    assert none.alike.endswith(" are the most alike, but care about different features.")


def test_two_that_are_not_alike(make_profile: Make) -> None:
    found = said(profiles(make_profile, a=FIRST, b=SECOND))
    assert found.alike == "a and b do not care about the same features more than unrelated systems would."
    assert found.why.startswith("No feature matters in all of them: a by p and b by u. They differ most in ")


def test_a_third_with_the_same_shares_is_not_set_apart(make_profile: Make) -> None:
    assert "cares" not in said(profiles(make_profile, a=FIRST, b=FIRST, c=FIRST)).why


def test_a_share_between_those_of_the_others_is_no_difference(make_profile: Make) -> None:
    """c has less of p than a, but more than b."""
    made = profiles(
        make_profile,
        a=[0.6, 0.2, 0.1, 0.05, 0.03, 0.02],
        b=[0.4, 0.3, 0.2, 0.05, 0.03, 0.02],
        c=[0.5, 0.05, 0.02, 0.25, 0.1, 0.06],
    )
    assert "c cares more about s and less about q than a and b do." in said(made).why


def test_geometry_is_told_when_it_agrees_and_when_it_does_not(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=SECOND)
    same = np.array([[1, 0.6, 0.2], [0.6, 1, 0.3], [0.2, 0.3, 1]])
    found = answer(made, matrices(made, same)).otherwise
    assert found.startswith("Geometry (RSA), which knows no features, puts the same pair first.")
    other = np.array([[1, 0.1, 0.2], [0.1, 1, 0.3], [0.2, 0.3, 1]])
    found = answer(made, matrices(made, other)).otherwise
    assert found.startswith("Geometry (RSA), which knows no features, puts b and c first.")


def test_geometry_puts_no_pair_first_that_is_no_more_than_chance(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=SECOND)
    found = matrices(made, np.array([[1, 0.6, 0.2], [0.6, 1, 0.3], [0.2, 0.3, 1]]))
    for q, said_of_geometry in (
        (0.3, "By geometry (RSA) no two of them are more alike than chance."),
        (0.01, "Geometry (RSA), which knows no features, puts the same pair first."),
    ):
        tests = tuple(
            GeometryTest(a, b, 0.3, 0.6, 0, 0, q=q) for a, b in (("a", "b"), ("a", "c"), ("b", "c"))
        )
        found["rsa"] = replace(found["rsa"], tests=tests)
        assert answer(made, found).otherwise.startswith(said_of_geometry)


def test_agreement_of_matrices_beside_untrained_copies(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST)
    one = Agreement("features", "rsa", 0.4, 0.2, 0.4, 0.3, 199)

    def sure(agreement: Agreement) -> str:
        return answer(made, matrices(made), None, [agreement]).sure

    assert "by geometry too" not in sure(one)
    assert "tend to be alike by geometry too, but so they do in untrained copies." in sure(
        replace(one, untrained=0.9, untrained_share=0.8)
    )
    trained = replace(one, untrained=0.1, untrained_share=0.0)
    assert "tend to be alike by geometry too, more than in untrained copies." in sure(trained)
    assert "alike by geometry no more than smooth changes over depth give." in sure(
        replace(trained, q_smooth=0.4)
    )


def test_untrained_copies(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST)
    assert "ntrained" not in said(made, q=0.01).sure
    assert said(made, q=0.01, control=0.1, control_share=0.0).sure == (
        "That is more than chance. Untrained copies are hardly ever as alike, which speaks for training. "
        "With other sentences they would be about as alike."
    )
    assert said(made, q=0.01, control=0.9, control_share=0.4).sure == (
        "That is more than chance. "
        "But untrained copies of the systems may be as alike: it need not come from training. "
        "With other sentences they would be about as alike."
    )
    models = {name: replace(p, metadata={**p.metadata, "model": name}) for name, p in made.items()}
    assert "untrained copies" in said(models, q=0.01).next
    assert "untrained" not in said(made, q=0.01).next  # of arrays there are none
    assert "untrained" not in said(models, q=0.01, control=0.1, control_share=0.0).next


def test_features_that_explain_little(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST)
    weak = made | {"b": replace(made["b"], scores=np.full_like(made["b"].scores, 0.1))}
    assert "The features explain little of b: others may say something else there." in said(weak).otherwise
    assert "explain little" not in said(made).otherwise


def test_a_difference_within_the_noise_is_called_so(make_profile: Make) -> None:
    noisy = {
        name: make_profile(name, values, features=NAMES, noise=0.2, seed=k)
        for k, (name, values) in enumerate({"a": FIRST, "b": FIRST}.items())
    }
    assert said(noisy).why.endswith(", but that may be noise.")
    resampled = {name: replace(p, replicates=replicates(p, noise=0.5)) for name, p in noisy.items()}
    assert said(resampled).why.endswith(", but that may be noise.")
    assert "noise" not in said(profiles(make_profile, a=FIRST, b=SECOND)).why


def test_the_way_to_the_reasons(make_profile: Make) -> None:
    found = matrices(profiles(make_profile, a=FIRST, b=FIRST))["features"].blocks[1]
    expected = f"see why layer {found.layer_a} of a and layer {found.layer_b} of b are alike (explain)."
    assert said(profiles(make_profile, a=FIRST, b=FIRST)).next.endswith(expected)


def test_shares_are_averaged_over_layers(make_profile: Make) -> None:
    importance = np.array([[1.0, 0, 0, 0, 0, 0], [0, 0.1, 0, 0, 0, 0], [0, 0.3, 0, 0, 0, 0]])
    made = make_profile("a", importance, features=NAMES, noise=0.0)
    assert system_shares(made) == pytest.approx([1 / 3, 2 / 3, 0, 0, 0, 0])


def test_systems_of_which_the_features_explain_nothing(make_profile: Make) -> None:
    flat = [0.0] * 6
    made = {
        "a": make_profile("a", FIRST, features=NAMES, noise=1e-4),
        "b": make_profile("b", flat, features=NAMES, noise=0.0),
    }
    found = said(made)
    assert found.alike.startswith("These systems cannot be compared by features")
    assert found.why == "The features explain nothing of the distances in b."
    made["c"] = make_profile("c", FIRST, features=NAMES, noise=1e-4, seed=1)
    found = said(made)
    assert found.alike == "a and c care largely about the same features."
    assert found.why.endswith("Of b the features say nothing: they explain none of the distances.")


def unexplained(made: Profile) -> Profile:
    """The same, but that ρ is as often below 0 as above."""
    scores = np.broadcast_to(np.resize([0.3, -0.3], made.scores.shape[1]), made.scores.shape)
    return replace(made, scores=scores)


def test_systems_of_which_the_features_explain_no_more_than_nothing(make_profile: Make) -> None:
    """Each ranks the features, but that may be chance: nothing is said of the order."""
    made = profiles(make_profile, a=FIRST, b=FIRST, c=FIRST, d=SECOND)
    noise = {name: unexplained(p) for name, p in made.items()}
    found = said(noise)
    assert found.alike == "How alike these systems are by features cannot be said."
    assert found.why == "That the features explain anything of a, b, c and d, these items do not show."
    assert "organised" not in found.why
    found = answer(noise | {"b": made["b"]}, matrices(noise | {"b": made["b"]}))
    assert found.why == "That the features explain anything of a, c and d, these items do not show."
    some = made | {"c": noise["c"]}
    found = answer(some, matrices(some))
    assert found.alike.startswith("a and b are the most alike")
    assert found.why.endswith("That the features explain anything of c, these items do not show.")
    assert found.sure.endswith("Other sentences would put the same pair first.")


def test_the_most_alike_are_sought_among_systems_that_are_explained(make_profile: Make) -> None:
    """Whoever has the same profile by chance is no rival, so others are held against the best of the rest."""
    made = profiles(make_profile, a=FIRST, b=SWAPPED, c=FIRST, d=SECOND)
    made["c"] = unexplained(made["c"])
    blocks = {(b.a, b.b): b for b in matrices(made)["features"].blocks}
    assert blocks["a", "c"].mean > blocks["a", "b"].mean
    assert np.isnan(blocks["a", "b"].behind_low)
    assert blocks["a", "d"].behind_low == pytest.approx(
        blocks["a", "b"].mean - blocks["a", "d"].mean, abs=0.05
    )


def test_one_system(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST)
    assert said(made).alike == "a is organised above all by p."
    assert said({"a": unexplained(made["a"])}).sure.startswith("That the features explain anything of it, ")


def test_items_that_are_no_words(make_profile: Make) -> None:
    made = profiles(make_profile, noise=0.2, a=FIRST, b=NEAR, c=[0.5, 0.3, 0.05, 0.11, 0.02, 0.01])
    found = answer(made, matrices(made), sample="items")
    assert "Other items may well put another pair first." in found.sure
    assert "ake more items" in found.next
    assert "untrained" not in found.next
