"""The answer in three sentences follows the numbers, also when they say little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.planted import replicates

from thinkalike.comparison.answer import answer, system_shares
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.similarity_matrix import SimilarityMatrix, by_features

Make = Callable[..., Profile]
NAMES = tuple("pqrstu")
FIRST = [0.5, 0.3, 0.11, 0.05, 0.02, 0.01]
SECOND = [0.01, 0.02, 0.05, 0.11, 0.3, 0.5]


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


def test_three_systems(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=SECOND)
    alike, why, differs = answer(made, matrices(made))
    assert alike == (
        "a and b (mean τ_w 1.00, 1.00 to 1.00 with other sentences, ceiling 1.00, q = 0.0042) are the most "
        "alike by the features they care about; then a and c (mean τ_w −1.00, −1.00 to −1.00 with other "
        "sentences, ceiling 1.00, q = 1) and b and c (mean τ_w −1.00, −1.00 to −1.00 with other sentences, "
        "ceiling 1.00, q = 1); beyond chance are 1 of 3 pairs."
    )
    assert why == (
        "Both are organised by p (51 % and 51 % of the importance), q (30 % and 30 % of the importance) "
        "and r (11 % and 11 % of the importance), averaged over layers."
    )
    assert differs.startswith(
        "c differs from them (mean τ_w −1.00 with them): it cares more about u (51 % of its importance"
    )
    assert "and less about p (1 % of its importance against 51 % and 51 %)" in differs


def test_nothing_beyond_chance(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=SECOND, c=[0.1, 0.02, 0.5, 0.3, 0.01, 0.05])
    alike = answer(made, matrices(made))[0]
    assert alike.startswith("a and c (mean τ_w 0.")
    assert alike.endswith("; no two of them rank the features alike beyond chance.")


def test_the_most_alike_have_the_highest_tau_not_the_smallest_q(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=[0.3, 0.5, 0.1, 0.05, 0.02, 0.01])
    found = matrices(made)
    q = {("a", "b"): 0.04, ("a", "c"): 0.001, ("b", "c"): 0.2}
    blocks = tuple(replace(t, q=q.get((t.a, t.b), np.nan)) for t in found["features"].blocks)
    found["features"] = replace(found["features"], blocks=blocks)
    assert answer(made, found)[0].startswith("a and b (mean τ_w 1.00")


def test_a_tie_is_called_a_tie(make_profile: Make) -> None:
    """Which of the three pairs is highest changes with the sentences."""
    near = {"b": [0.45, 0.35, 0.11, 0.05, 0.02, 0.01], "c": [0.5, 0.3, 0.05, 0.11, 0.02, 0.01]}
    made = profiles(make_profile, noise=0.2, a=FIRST, **near)
    alike, _, differs = answer(made, matrices(made))
    assert alike.startswith(
        "Which systems are most alike, these sentences cannot tell: highest are a and b ("
    )
    assert ", a tie" in alike
    assert differs.startswith("That c is less like them (mean τ_w 0.")
    assert "these sentences do not show" in differs


def test_a_tie_with_some(make_profile: Make) -> None:
    made = profiles(make_profile, noise=0.02, a=FIRST, b=FIRST, c=FIRST, d=SECOND)
    alike, _, differs = answer(made, matrices(made))
    assert " are the most alike by the features they care about, tied with " in alike
    assert differs.startswith("d differs from them (mean τ_w −1.00 with them)")


def test_without_resamples_nothing_is_called_most_alike(make_profile: Make) -> None:
    made = {
        n: replace(p, replicates=None) for n, p in profiles(make_profile, a=FIRST, b=FIRST, c=SECOND).items()
    }
    alike = answer(made, matrices(made))[0]
    assert "most alike" not in alike
    assert "; whether other sentences would say the same, only resamples tell" in alike


def test_few_features_are_not_tested(make_profile: Make) -> None:
    made = {
        name: make_profile(name, FIRST[:3], features=NAMES[:3], noise=1e-4, seed=k)
        for k, name in enumerate("ab")
    }
    assert answer(made, matrices(made))[0] == "a and b rank the features alike (mean τ_w 1.00)."


def test_a_third_that_is_like_them_too(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=[0.3, 0.5, 0.1, 0.05, 0.02, 0.01])
    differs = answer(made, matrices(made))[2]
    assert differs.startswith("c is like them too (mean τ_w 0.")
    assert " with them), but cares more about q (51 % of its importance against 30 % and 30 %)" in differs


def test_a_third_with_the_same_shares(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=FIRST)
    assert answer(made, matrices(made))[2].endswith("; no feature's share lies 5 % or more outside theirs.")


def test_a_share_between_those_of_the_others_is_no_difference(make_profile: Make) -> None:
    """c has less of p than a, but more than b."""
    made = profiles(
        make_profile,
        a=[0.6, 0.2, 0.1, 0.05, 0.03, 0.02],
        b=[0.4, 0.3, 0.2, 0.05, 0.03, 0.02],
        c=[0.5, 0.05, 0.02, 0.25, 0.1, 0.06],
    )
    differs = answer(made, matrices(made))[2]
    assert differs.startswith("c differs from them")
    assert "more about s (" in differs
    assert "less about q (" in differs
    assert " p (" not in differs


def test_geometry_is_told_when_it_agrees_and_when_it_does_not(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=SECOND)
    same = np.array([[1, 0.6, 0.2], [0.6, 1, 0.3], [0.2, 0.3, 1]])
    assert (
        "; geometry says the same (mean RSA ρ = 0.60, the highest)." in answer(made, matrices(made, same))[0]
    )
    other = np.array([[1, 0.1, 0.2], [0.1, 1, 0.3], [0.2, 0.3, 1]])
    assert (
        "; geometry says b and c (mean RSA ρ = 0.30 against 0.10)." in answer(made, matrices(made, other))[0]
    )


def test_untrained_copies_stand_beside(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST)
    found = matrices(made)
    blocks = tuple(replace(b, control=0.25) for b in found["features"].blocks)
    found["features"] = replace(found["features"], blocks=blocks)
    assert "ceiling 1.00, q = 0.0014, untrained copies 0.25)" in answer(made, found)[0]


def test_a_difference_within_the_noise_is_called_so(make_profile: Make) -> None:
    noisy = {
        name: make_profile(name, values, features=NAMES, noise=0.2, seed=k)
        for k, (name, values) in enumerate({"a": FIRST, "b": FIRST}.items())
    }
    assert answer(noisy, matrices(noisy))[2].endswith(", a difference that may be noise.")
    resampled = {name: replace(p, replicates=replicates(p, noise=0.5)) for name, p in noisy.items()}
    assert answer(resampled, matrices(resampled))[2].endswith(", a difference that may be noise.")
    clear = profiles(make_profile, a=FIRST, b=SECOND)
    assert "noise" not in answer(clear, matrices(clear))[2]


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
    alike, why, _ = answer(made, matrices(made))
    assert alike.startswith("No two of the systems can be compared by features")
    assert why == "The features explain nothing of the distances in b."
    made["c"] = make_profile("c", FIRST, features=NAMES, noise=1e-4, seed=1)
    alike, _, differs = answer(made, matrices(made))
    assert alike.startswith("a and c rank the features alike beyond chance")
    assert differs.endswith("Of b the features say nothing: they explain none of the distances.")
