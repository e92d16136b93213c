"""The simulations behind docs/certainty.md run, and what they find is kept where the page looks for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.calibration import __main__ as calibration
from benchmarks.calibration.claims import Claim

SMALL = ("null-cka", "agreement-related", "groups-planted", "blocks-planted", "subjects-level")


@pytest.mark.parametrize("name", SMALL)
def test_a_simulation_makes_claims(name: str) -> None:
    simulate, n_draws = calibration.SIMULATIONS[name]
    found = simulate(2, 0)
    claims = [found] if isinstance(found, Claim) else found
    assert n_draws >= 200
    assert claims
    assert all(0 <= claim.found <= 1 and claim.n == 2 for claim in claims)


def test_a_full_run_replaces_its_own_rows_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "RESULTS", tmp_path / "calibration.json")
    calibration.keep("one", [Claim("p", "w", 0.03, 0.07, 0.05, 400)])
    calibration.keep("other", [Claim("q", "w", 0.92, 0.98, 0.9, 300)])
    calibration.keep("one", [Claim("p", "v", 0.03, 0.07, 0.06, 400)])
    kept = json.loads(calibration.RESULTS.read_text(encoding="utf-8"))
    assert [(name, rows[0]["world"], rows[0]["holds"]) for name, rows in kept.items()] == [
        ("one", "v", True),
        ("other", "w", False),
    ]
    assert kept["other"][0]["error"] == pytest.approx((0.9 * 0.1 / 300) ** 0.5, abs=1e-4)


def test_what_is_kept_has_a_simulation() -> None:
    kept = json.loads(calibration.RESULTS.read_text(encoding="utf-8"))
    assert set(kept) <= set(calibration.SIMULATIONS)
