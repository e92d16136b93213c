"""Of heads, experts and latents the answer names the two most alike, and where features matter most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.planted import replicates
from thinkalike.comparison.answer import Answer, answer
from thinkalike.comparison.feature_similarity import by_features
from thinkalike.comparison.profiles import Profile
from thinkalike.labels import part_name

Make = Callable[..., Profile]
NAMES = ("number", "tense", "person", "gender", "word_length", "question")
ONE = np.array([[0.30, 0.10, 0.05, 0.02, 0.01, 0.00], [0.02, 0.01, 0.00, 0.05, 0.10, 0.29]])
OTHER = np.array([[0.05, 0.30, 0.00, 0.10, 0.01, 0.02], [0.28, 0.11, 0.06, 0.03, 0.01, 0.00]])


def heads(
    make: Make, system: str, importance: np.ndarray, names: tuple[str, ...], noise: float | None
) -> Profile:
    made = make(system, importance, n_layers=len(importance), noise=1e-5, features=NAMES)
    made = replace(made, layers=names)
    return made if noise is None else replace(made, replicates=replicates(made, noise=noise))


def said(make: Make, *, noise: float | None = 1e-4, other: np.ndarray = OTHER, mark: str = "h") -> Answer:
    made = {
        "one": heads(make, "one", ONE, (f"1.{mark}0", f"2.{mark}1"), noise),
        "other": heads(make, "other", other, (f"1.{mark}0", f"1.{mark}3"), noise),
    }
    return answer(made, {"features": by_features(list(made.values()))})


def test_the_two_heads_most_alike_come_first(make_profile: Make) -> None:
    found = said(make_profile)
    assert found.alike.startswith("1.h0 of one and 1.h3 of other are the most alike of 4 pairs of heads")
    assert " Over all heads: one and other " in found.alike
    assert found.why.endswith(
        "Where features matter most: number in 1.h0 of one and 1.h3 of other; "
        "tense in 1.h0 of one and 1.h0 of other; gender in 2.h1 of one and 1.h0 of other."
    )


def test_the_best_of_many_pairs_is_held_against_chance(make_profile: Make) -> None:
    """Of 720 orders of six features few put all in the same place in one of four pairs."""
    assert ", more so than chance makes the best of them. " in said(make_profile).alike
    apart = OTHER[:, ::-1].copy()
    apart[1] = [0.03, 0.28, 0.00, 0.01, 0.11, 0.06]
    assert ", but chance makes the best of them as alike. " in said(make_profile, other=apart).alike


def test_a_tie_among_heads_is_called_a_tie(make_profile: Make) -> None:
    twice = np.stack([OTHER[1], OTHER[1]])
    found = said(make_profile, other=twice)
    assert "are among the most alike of 4 pairs of heads, about equally with one other" in found.alike
    assert "of other (or one other)" in found.why
    noisy = said(make_profile, noise=0.5)
    assert noisy.alike.startswith(
        "Of 4 pairs of heads none stands out: with other sentences any may be the most alike. Over all "
        "heads: one and other "
    )
    assert "number in 1.h0 of one (or one other) and 1.h3 of other (or one other)" in noisy.why


def test_without_resamples_the_two_come_out_so(make_profile: Make) -> None:
    found = said(make_profile, noise=None)
    assert found.alike.startswith("1.h0 of one and 1.h3 of other come out as the most alike of 4 pairs")
    twice = said(make_profile, noise=None, other=np.stack([OTHER[1], OTHER[1]]))
    assert "about equally with one other" in twice.alike


def test_one_system(make_profile: Make) -> None:
    made = heads(make_profile, "one", ONE, ("1.h0", "2.h1"), 1e-4)
    found = answer({"one": made}, {"features": by_features([made])})
    assert found.why.endswith(
        "Where features matter most: number in 1.h0 of one; question in 2.h1 of one; tense in 1.h0 of one."
    )


def test_whole_layers_are_told_as_before(make_profile: Make) -> None:
    made = {name: make_profile(name, ONE[0], features=NAMES) for name in ("one", "other")}
    found = answer(made, {"features": by_features(list(made.values()))})
    assert found.alike.startswith("one and other ")
    assert "Where features matter most" not in found.why


@pytest.mark.parametrize(
    ("layers", "name"),
    [
        (["4.h7", "1.h0"], "heads"),
        (["1.e0"], "experts"),
        (["3.l1234"], "latents"),
        ([0, 1], "layers"),
        (["4.h7", 3], "layers"),
        (["1.x0"], "layers"),
    ],
)
def test_what_parts_are_called(layers: list[int | str], name: str) -> None:
    assert part_name(layers) == name
