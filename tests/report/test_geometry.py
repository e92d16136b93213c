"""Geometric measures in the report: the table between systems, and what each pair of layers says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from thinkalike.comparison.comparison import Comparison
from thinkalike.errors import InvalidInput
from thinkalike.inference.geometry_tests import Null, geometry_tests
from thinkalike.report.geometry import HEADER, LAST, cell_certainty, geometry_table
from thinkalike.report.page import render
from thinkalike.report.pairs import pair_data
from thinkalike.report.summary import summarise
from thinkalike.stimuli.table import Stimuli


@pytest.fixture
def sure(planted: Comparison) -> Comparison:
    """The planted comparison, its RSA with parts left out and sentences exchanged."""
    rng, rsa = np.random.default_rng(0), planted.matrices["rsa"]
    n = len(rsa.rows)
    left_out = np.clip(rsa.values + 0.01 * rng.normal(size=(20, n, n)), -1, 1)
    null = Null(rsa.values, 0.05 * rng.normal(size=(99, n, n)))
    cells, tests = geometry_tests(rsa.values, rsa.rows, left_out=left_out, null=null)
    made = replace(rsa, **cells._asdict(), tests=tests, left_out=left_out)
    share = planted.explained_share
    assert share is not None
    return replace(
        planted, matrices={**planted.matrices, "rsa": made}, explained_range=(share - 0.1, share + 0.1)
    )


def test_one_row_for_every_two_systems(sure: Comparison) -> None:
    table = geometry_table(sure)
    assert table[0] == (*HEADER, *LAST)
    assert [row[1] for row in table[1:]] == ["alpha × beta", "alpha × gamma", "beta × gamma"]
    test = sure.matrices["rsa"].geometry_test("alpha", "gamma")
    assert test is not None
    row = table[2]
    assert row[2] == f"{test.mean:.2f}".replace("-", "−")
    assert row[3] == f"{test.low:.2f} to {test.high:.2f}".replace("-", "−")
    assert row[5] == f"{test.q:.2g}"
    assert row[7].startswith(f"{test.layer_a} × {test.layer_b}: ")
    assert row[7].endswith(f"(p = {test.q_best:.2g})")
    frame = sure.geometry()
    assert list(frame["measure"].unique()) == ["rsa"]
    assert {"low", "high", "q", "chance", "calibrated", "p_best"} <= set(frame)


def test_each_mean_stands_beside_its_ceiling_and_the_untrained(sure: Comparison) -> None:
    rsa = sure.matrices["rsa"]
    known = {"across": 0.412, "ceiling": 0.634, "control": 0.257, "control_share": 0.0}
    tests = tuple(replace(test, **known) for test in rsa.tests)
    made = replace(sure, matrices={**sure.matrices, "rsa": replace(rsa, tests=tests)})
    header, row, *_ = geometry_table(made)
    assert header[7:] == ("across sentences", "ceiling", "untrained", "most alike layers")
    assert row[7:10] == ("0.41", "0.63", "0.26")
    page = render(made)
    assert "what that would be for systems alike in truth" in page
    assert "the mean of copies with random weights" in page
    frame = made.geometry()
    assert frame["disattenuated"].to_numpy() == pytest.approx(0.412 / 0.634)


def test_without_draws_there_is_no_table(planted: Comparison) -> None:
    assert geometry_table(planted) == ()
    assert cell_certainty(planted) == {}
    assert "Certainty of geometric measures" not in dict(summarise(planted).methods)


def test_the_page_has_the_table_and_what_it_means(sure: Comparison) -> None:
    html = render(sure)
    assert 'id="geometry-title"' in html
    assert geometry_table(sure)[1][7] in html
    assert "Certainty of geometric measures" in dict(summarise(sure).methods)


def test_cells_are_handed_to_the_page(sure: Comparison) -> None:
    data, n = pair_data(sure), len(sure.rows)
    rsa = sure.matrices["rsa"]
    assert rsa.low is not None
    assert data["geometry"]["rsa"]["low"][3 * n + 9] == pytest.approx(rsa.low[3, 9], abs=6e-5)
    assert data["geometry"]["rsa"]["p_block"][0] is None
    assert {"across", "ceiling"}.isdisjoint(data["geometry"]["rsa"])  # not known
    halves = np.full((n, n), 0.41), np.full((n, n), 0.63)
    halved = replace(rsa, across=halves[0], ceiling=halves[1])
    known = pair_data(replace(sure, matrices={**sure.matrices, "rsa": halved}))["geometry"]["rsa"]
    assert (known["across"][1], known["ceiling"][1]) == (0.41, 0.63)
    assert data["share_high"][1] == pytest.approx(sure.explained_share[0, 1] + 0.1, abs=6e-5)  # type: ignore[index]
    json.dumps(data, allow_nan=False)


def test_reliability_needs_activations(planted: Comparison) -> None:
    choices = pd.DataFrame({"kind": pd.Categorical(np.tile(list("abcdefghijkl"), 20))})
    stimuli = Stimuli.from_table(choices)
    rng = np.random.default_rng(0)
    means = rng.normal(size=(12, 5))
    arrays = {s: {k: np.tile(means, (20, 1)) + rng.normal(size=(240, 5)) for s2, k in planted.rows if s2 == s}
              for s in planted.systems}  # fmt: skip
    here = replace(planted, stimuli=stimuli, activations=arrays)  # type: ignore[arg-type]
    frame = here.reliability(n_deals=2)
    assert len(frame) == len(planted.rows) ** 2
    assert frame["disattenuated"].mean() == pytest.approx(1.0, abs=0.05)
    assert frame["across"].max() < 0.99
    with pytest.raises(InvalidInput, match="activations of this run are gone"):
        replace(planted, activations=None).reliability()
