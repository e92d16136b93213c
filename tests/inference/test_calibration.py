"""The simulations behind docs/certainty.md run, and what they find is kept where the page looks for it."""

from __future__ import annotations

import json
from functools import partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks.calibration import __main__ as calibration
from benchmarks.calibration import feature_ties
from benchmarks.calibration.claims import Claim, claims_of, error_of_sets, parts_of
from benchmarks.calibration.feature_worlds import FOUR, Equals, RangeWorld, equal_pairs, equals
from benchmarks.calibration.structure import known_centres
from benchmarks.calibration.worlds import shown
from thinkalike.inference.block_tests import BlockTest

SMALL = (
    "null-cka",
    "agreement-related",
    "groups-means",
    "groups-planted",
    "blocks-planted",
    "subjects-level",
    "stitching-penalties",
    "subjects-coverage-by-features",
)


@pytest.mark.parametrize("name", SMALL)
def test_a_simulation_makes_claims(name: str) -> None:
    simulation, n_draws = calibration.SIMULATIONS[name]
    assert n_draws >= 200
    for simulate in parts_of(simulation).values():
        claims = claims_of(simulate(2, 0))
        assert claims
        assert all(0 <= claim.found <= 1 and claim.n == 2 for claim in claims)


def test_whoever_knows_the_centres_is_right_as_often_as_integrals_say() -> None:
    """All ten of one group must come before all ten of the other, along the way between the centres."""
    n, apart, each = 100, 4.0, 10
    found = [claim.found for claim in known_centres(n, 0, each=each, apart=apart, goal=(0.0, 1.0))]
    exact = (
        norm.cdf(apart / 2) ** (2 * each),
        quad(lambda x: each * norm.pdf(x) * norm.cdf(x) ** (each - 1) * norm.sf(x - apart) ** each, -9, 13)[
            0
        ],
    )
    for share, expected in zip(found[:2], exact, strict=True):
        assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / n)
    assert found[2] <= found[1]


def test_a_full_run_replaces_its_own_rows_only(places: Path) -> None:
    calibration.keep("one", [Claim("p", "w", 0.03, 0.07, 0.05, 400)])
    calibration.keep("other", [Claim("q", "w", 0.92, 0.98, 0.9, 300)])
    calibration.keep("one", [Claim("p", "v", 0.03, 0.07, 0.06, 400)])
    kept = json.loads(calibration.RESULTS.read_text(encoding="utf-8"))
    assert [(name, rows[0]["world"], rows[0]["holds"]) for name, rows in kept.items()] == [
        ("one", "v", True),
        ("other", "w", False),
    ]
    assert kept["other"][0]["error"] == pytest.approx((0.9 * 0.1 / 300) ** 0.5, abs=1e-4)


def test_a_run_that_was_stopped_goes_on(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are there are not made again; rows are kept when all parts are there, in their order."""
    calls = []

    def part(n: int, seed: int, *, world: str) -> Claim:
        calls.append(world)
        if world == "b" and calls.count("b") == 1:
            raise KeyboardInterrupt
        return Claim("p", world, 0.0, 1.0, 0.5, n)

    parts = {world: partial(part, world=world) for world in "abc"}
    monkeypatch.setattr(calibration, "SIMULATIONS", {"one": (parts, 200)})
    with pytest.raises(KeyboardInterrupt):
        calibration.run("one", full=True)
    assert not calibration.RESULTS.exists()
    calibration.run("one:c", full=True)
    assert not calibration.RESULTS.exists()
    calibration.run("one", full=True)
    assert calls == ["a", "b", "c", "b"]
    kept = json.loads(calibration.RESULTS.read_text(encoding="utf-8"))["one"]
    assert [(row["world"], row["n"]) for row in kept] == [("a", 200), ("b", 200), ("c", 200)]
    calibration.run("one", full=False)
    assert calls[4:] == ["a", "b", "c"]
    assert json.loads(calibration.RESULTS.read_text(encoding="utf-8"))["one"] == kept
    calibration.run("one:a", full=True, anew=True)
    assert calls[7:] == ["a"]
    calibration.run("one:c", full=False, draws=3)
    assert json.loads(calibration.RESULTS.read_text(encoding="utf-8"))["one"] == kept
    calibration.run("one:c", full=False, draws=3, few=True)
    few = json.loads(calibration.RESULTS.read_text(encoding="utf-8"))["one"]
    assert [(row["world"], row["n"]) for row in few] == [("c", 3)]


def test_the_error_of_draws_that_come_in_sets() -> None:
    """Copies of a draw know no more than the draw."""
    values = np.random.default_rng(0).normal(size=12)
    alone = values.std(ddof=1) / np.sqrt(12)
    assert error_of_sets(values, range(12)) == pytest.approx(alone)
    assert error_of_sets(np.repeat(values, 10), np.repeat(range(12), 10)) == pytest.approx(alone)
    assert error_of_sets(values, [0] * 12) is None
    assert Claim("p", "w", 0.0, 1.0, 0.5, 120, error_of_sets=0.07).as_row()["error"] == 0.07


def test_sets_of_three_whose_two_most_alike_pairs_are_equals() -> None:
    """a, b, c are such a set; d, e, f are only so by their two least; a, b, d would be one with no c."""
    means = dict.fromkeys(combinations("abcdef", 2), 0.0) | {
        ("a", "b"): 0.8,
        ("a", "c"): 0.79,
        ("b", "c"): 0.5,
        ("a", "d"): 0.81,
        ("d", "e"): 0.9,
        ("d", "f"): 0.41,
        ("e", "f"): 0.4,
    }
    assert list(equal_pairs(means)) == [(("a", "b"), ("a", "c"))]


def test_equals_are_chosen_by_the_truth_and_then_seen_in_a_sample() -> None:
    about = RangeWorld("salle2024", FOUR * 3, 40, 200, (1,) * 12)
    found = list(equals(about, 4, 0))
    assert len(found) == 4
    for pool in {one.pool for one in found}:
        names = [profile.system for one in found if one.pool == pool for profile in one.made]
        assert len(names) == len(set(names)) == 3 * sum(one.pool == pool for one in found)
    for one in found:
        assert {*one.first, *one.second} == {profile.system for profile in one.made}
        assert all(profile.replicates is not None for profile in one.made)


@pytest.mark.parametrize(("behind_low", "tied"), [(-0.1, True), (0.01, False)])
def test_a_tie_is_of_the_two_pairs(behind_low: float, tied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(ab: float, ac: float, bc: float) -> SimpleNamespace:
        known = {"maximum": 1.0, "layer_a": 0, "layer_b": 0}
        blocks = [
            BlockTest(a=a, b=b, mean=mean, behind_low=behind_low, behind_high=0.5, **known)  # type: ignore[arg-type]
            for (a, b), mean in zip(combinations("abc", 2), (ab, ac, bc), strict=True)
        ]
        return SimpleNamespace(blocks=[*blocks, BlockTest(a="a", b="a", mean=1.0, **known)])  # type: ignore[arg-type]

    one = Equals(("a", "b"), ("a", "c"), [], 0)
    monkeypatch.setattr(feature_ties, "taus", lambda _: made(0.8, 0.7, 0.1))
    assert feature_ties.is_tied(one) is tied
    monkeypatch.setattr(feature_ties, "taus", lambda _: made(0.6, 0.7, 0.1))
    assert feature_ties.is_tied(one) is tied
    monkeypatch.setattr(feature_ties, "taus", lambda _: made(0.6, 0.7, 0.9))
    assert feature_ties.is_tied(one) is None


def test_features_that_go_together() -> None:
    codes = [
        pd.factorize(column, sort=True)[0] for _, column in shown("correlated features", 800).features.items()
    ]
    r = np.corrcoef(codes)[np.triu_indices(len(codes), 1)]
    assert r.min() > 0.2
    apart = np.corrcoef(
        [pd.factorize(column, sort=True)[0] for _, column in shown("twelve features", 800).features.items()]
    )
    assert np.abs(apart[np.triu_indices(len(apart), 1)]).max() < 0.1


def test_names_that_are_none() -> None:
    assert "there is no simulation 'x'" in calibration.what_is_unknown("x")
    assert "share-explained has no part 'x'; it has: strong features" in calibration.what_is_unknown(
        "share-explained:x"
    )
    assert not calibration.what_is_unknown("share-explained:nothing")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(calibration, "RESULTS", tmp_path / "calibration.json")
    monkeypatch.setattr(calibration, "WORK", tmp_path / "parts")
    return tmp_path


def test_what_is_kept_has_a_simulation() -> None:
    kept = json.loads(calibration.RESULTS.read_text(encoding="utf-8"))
    assert set(kept) <= set(calibration.SIMULATIONS)
