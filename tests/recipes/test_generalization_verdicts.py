"""The statements on generalization: planted numbers that must agree, and the same that must differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from thinkalike.errors import InvalidInput
from thinkalike.recipes.brown2023_generalization import SCALES
from thinkalike.recipes.brown2023_generalization.choice import (
    GENERALIZING,
    HEURISTIC,
    Choice,
    choose_ends,
    directed_means,
    plant,
)
from thinkalike.recipes.brown2023_generalization.experiment import Measured, judge
from thinkalike.recipes.brown2023_generalization.geometry import VARIANTS, Geometry
from thinkalike.recipes.brown2023_generalization.identity import penalties
from thinkalike.recipes.findings import Findings

N, SHARES = 5, (0.25, 0.5, 0.75, 1.0)
GROUPS = (GENERALIZING,) * N + (HEURISTIC,) * N
SETTINGS = replace(SCALES["smoke"], permutations=300)
APART = np.array(GROUPS)[:, None] != np.array(GROUPS)[None, :]


def planted(*, late: float = 0.3, early: float = 0.0, within: float = 0.0, angle: float = 0.5) -> Measured:
    """Models whose groups are `late` apart in accuracy at late layers, and `angle` apart in geometry."""
    rng = np.random.default_rng(0)
    m = 2 * N
    noise = rng.normal(0, 0.002, (len(SHARES), m, m))
    inside, cka = 0.95 + 0 * noise, 0.97 + noise
    for k, share in enumerate(SHARES):
        inside[k] -= early if share <= 0.5 else np.where(APART, late, within)
        cka[k] -= np.where(APART, angle * (share > 0.5), 0)
        inside[k][np.eye(m, dtype=bool)] = 0.95
    cka = (cka + cka.transpose(0, 2, 1)) / 2
    outside = np.broadcast_to(np.where(np.array(GROUPS) == GENERALIZING, 0.8, 0.1)[:, None], inside.shape)
    distances = 0.3 + np.where(APART, angle, 0) + np.abs(noise[0] + noise[0].T)
    np.fill_diagonal(distances, 0)
    return Measured(
        names=tuple(f"m{k}" for k in range(m)),
        groups=GROUPS,
        shares=SHARES,
        inside=inside - np.abs(noise) * ~np.eye(m, dtype=bool),
        outside=outside + noise / 10,
        geometry={name: Geometry(cka, distances) for name in VARIANTS},
        barriers=distances,
    )


def judged(
    measured: Measured, *, natural: float = 0.7, outside: float = 0.8, inside: float = 0.95
) -> Findings:
    looked_at = pd.DataFrame(
        {
            "model": measured.names,
            "inside": np.linspace(inside - 0.01, inside, 2 * N),
            "outside": np.repeat([outside, 0.1], N),
            "group": measured.groups,
        }
    )
    choice = Choice(measured.names, measured.groups, natural, planted=natural < 0.2)
    return judge(measured, looked_at, choice, natural, SETTINGS)


def verdicts(findings: Findings) -> list[str]:
    return [statement.verdict for statement in findings.statements]


def test_planted_groups_agree_with_every_statement() -> None:
    findings = judged(planted())
    assert set(verdicts(findings)) == {"agrees"}
    assert {s.figure for s in findings.statements} <= {f.name for f in findings.figures}
    assert findings.statements[2].numbers["penalty_between"] == pytest.approx(0.3, abs=0.01)
    assert findings.statements[8].numbers["CKA adjusted_rand"] == 1.0


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        ({"early": 0.1}, {1}),
        ({"late": 0.0}, {2, 8}),
        ({"within": 0.1}, {3}),
        ({"angle": 0.0}, {5, 7, 8, 10}),
        ({"late": 0.0, "angle": -0.2}, {2, 5, 7, 8, 10}),
    ],
    ids=["early costs", "late is free", "within costs", "one geometry", "groups nearer to each other"],
)
def test_a_planted_difference_changes_the_verdicts_it_should(change: Any, differing: set[int]) -> None:
    found = verdicts(judged(planted(**change)))
    assert {k for k, verdict in enumerate(found) if verdict == "differs"} == differing


def test_groups_that_part_early_and_alike_outside_differ() -> None:
    measured = planted()
    early = {name: Geometry(one.cka[::-1].copy(), one.distances) for name, one in measured.geometry.items()}
    alike = np.full_like(measured.outside, 0.5)
    found = verdicts(judged(replace(measured, geometry=early, outside=alike)))
    assert [found[k] for k in (4, 5, 6)] == ["differs"] * 3


def test_one_variant_that_hides_the_groups_is_reported() -> None:
    measured = planted()
    some = {
        **measured.geometry,
        "after the residual, padding masked": planted(angle=0.0).geometry[
            "after the residual, padding masked"
        ],
    }
    assert verdicts(judged(replace(measured, geometry=some)))[9] == "differs"


def test_without_spread_the_control_is_named_as_planted() -> None:
    findings = judged(planted(), natural=0.05)
    assert findings.statements[0].verdict == "differs"
    assert any("planted control" in note for note in findings.notes)
    assert not any("planted" in note for note in judged(planted()).notes)


def test_what_was_not_learnt_cannot_be_tested() -> None:
    assert judged(planted(), inside=0.6).statements[0].verdict == "cannot be tested"


def test_ends_are_the_best_and_the_worst() -> None:
    outside = {"a": 0.5, "b": 0.9, "c": 0.1, "d": 0.2, "e": 0.8}
    choice = choose_ends(outside, 2)
    assert choice.names == ("b", "e", "d", "c")
    assert choice.of(GENERALIZING) == ("b", "e")
    assert choice.spread == pytest.approx(0.85 - 0.15)
    control = plant(outside, {"t": 0.99, "u": 0.95}, 2)
    assert control.names == ("t", "u", "d", "c")
    assert control.planted
    with pytest.raises(InvalidInput, match="5 models cannot give 3 and 3"):
        choose_ends(outside, 3)


def test_directed_means_are_those_over_pairs() -> None:
    values = np.random.default_rng(1).random((1, 2 * N, 2 * N))
    found = directed_means(values, GROUPS, [1.0], n_resamples=200).set_index("pair")
    loop = [values[0, i, j] for i in range(N) for j in range(N, 2 * N)]
    row = found.loc[f"{GENERALIZING} → {HEURISTIC}"]
    assert row["mean"] == pytest.approx(np.mean(loop))
    assert row["low"] < row["mean"] < row["high"]
    own = [values[0, i, j] for i in range(N) for j in range(N) if i != j]
    assert found.loc[f"{GENERALIZING} → {GENERALIZING}", "mean"] == pytest.approx(np.mean(own))
    assert found["n_pairs"].tolist() == [N * (N - 1), N * N, N * N, N * (N - 1)]


def test_penalties_are_against_the_top_itself() -> None:
    accuracies = np.array([[[0.9, 0.5], [0.7, 0.8]]])
    np.testing.assert_allclose(penalties(accuracies), [[[0.0, 0.3], [0.2, 0.0]]])
