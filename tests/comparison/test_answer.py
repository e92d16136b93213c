"""The answer in three sentences follows the numbers, also when they say little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from thinkalike.comparison.answer import answer, system_shares
from thinkalike.comparison.profiles import Bootstrap, Profile
from thinkalike.comparison.similarity_matrix import SimilarityMatrix, by_features

Make = Callable[..., Profile]
NAMES = tuple("pqrstu")
FIRST = [0.5, 0.3, 0.11, 0.05, 0.02, 0.01]
SECOND = [0.01, 0.02, 0.05, 0.11, 0.3, 0.5]


def profiles(make_profile: Make, **importances: list[float]) -> dict[str, Profile]:
    return {
        name: make_profile(name, values, features=NAMES, noise=1e-4, seed=k)
        for k, (name, values) in enumerate(importances.items())
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
        "a and b are the most alike by the features they care about (mean τ_w 1.00, q = 0.0042; "
        "a and c −1.00, q = 1; b and c −1.00, q = 1)."
    )
    assert why == (
        "Both are organised by p (51 % and 51 % of the importance), q (30 % and 30 % of the importance) "
        "and r (11 % and 11 % of the importance), averaged over layers."
    )
    assert differs.startswith(
        "c differs most (mean τ_w −1.00 with them): it cares more about u (51 % of its importance"
    )
    assert "and less about p (1 % of its importance against 51 % and 51 %)" in differs


def test_nothing_beyond_chance(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=SECOND, c=[0.1, 0.02, 0.5, 0.3, 0.01, 0.05])
    alike = answer(made, matrices(made))[0]
    assert alike.startswith(
        "No two of the 3 systems rank the features alike beyond chance; the nearest are a and c ("
    )


def test_a_third_that_is_like_them_too(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=[0.3, 0.5, 0.1, 0.05, 0.02, 0.01])
    differs = answer(made, matrices(made))[2]
    assert differs.startswith("c is like them too (mean τ_w 0.")
    assert " with them), but cares more about q (51 % of its importance against 30 % and 30 %)" in differs


def test_a_third_with_the_same_shares(make_profile: Make) -> None:
    made = profiles(make_profile, a=FIRST, b=FIRST, c=FIRST)
    assert answer(made, matrices(made))[2].endswith("but no feature's share lies 5 % or more outside theirs.")


def test_a_share_between_those_of_the_others_is_no_difference(make_profile: Make) -> None:
    """c has less of p than a, but more than b."""
    made = profiles(
        make_profile,
        a=[0.6, 0.2, 0.1, 0.05, 0.03, 0.02],
        b=[0.4, 0.3, 0.2, 0.05, 0.03, 0.02],
        c=[0.5, 0.05, 0.02, 0.25, 0.1, 0.06],
    )
    differs = answer(made, matrices(made))[2]
    assert differs.startswith("c differs most")
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
    assert "(mean τ_w 1.00, p = 0.0014, untrained copies 0.25)" in answer(made, found)[0]


def test_a_difference_within_the_noise_is_called_so(make_profile: Make) -> None:
    noisy = {
        name: make_profile(name, values, features=NAMES, noise=0.2, seed=k)
        for k, (name, values) in enumerate({"a": FIRST, "b": FIRST}.items())
    }
    assert answer(noisy, matrices(noisy))[2].endswith(", a difference that may be noise.")
    drawn = Bootstrap(np.zeros((50, 3)), np.abs(np.random.default_rng(0).normal(size=(50, 3, 6))))
    resampled = {name: replace(p, bootstrap=drawn) for name, p in noisy.items()}
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
    assert alike.startswith("a and c care about the same features")
    assert differs.endswith("Of b the features say nothing: they explain none of the distances.")
