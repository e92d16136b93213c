"""The third view in the report: the words, the charts, and whether the three views agree."""

from __future__ import annotations

import json
import re
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.views import three_views
from thinkalike.errors import InvalidInput
from thinkalike.report import write_report
from thinkalike.report.function import find_stitchings, function_section
from thinkalike.report.page import TEMPLATES, environment
from thinkalike.stitching.result import StitchResult
from thinkalike.stitching.stitches import all_stitches


def plant_stitching(
    penalty: np.ndarray, *, bottom: str = "alpha", top: str = "beta", known: np.ndarray | None = None
) -> StitchResult:
    """A result whose penalties are those given, over 12 documents of 10 predictions."""
    known = np.ones(penalty.shape, dtype=bool) if known is None else known
    pairs = [(int(i), int(j)) for i, j in zip(*np.nonzero(known), strict=True)]
    stitches = all_stitches(pairs, floor=True, ceiling=True)
    high = {"pair": 0.0, "self": 0.0, "untrained": 3.0}
    own = np.full(12, 40.0)
    wiggle = np.linspace(-0.1, 0.1, 12)
    losses = np.stack(
        [
            own
            + 10 * (high[s.role] + (penalty[s.layer_bottom, s.layer_top] + wiggle if s.role == "pair" else 0))
            for s in stitches
        ]
    )
    n = len(stitches)
    checks = pd.DataFrame(
        dict.fromkeys(["norm", "norm_own", "mahalanobis", "mahalanobis_own", "outside"], np.ones(n))
    )
    return StitchResult(
        bottom=bottom,
        top=top,
        task="causal",
        kind="affine",
        fit="least-squares",
        stitches=stitches,
        losses=losses,
        correct=np.full(losses.shape, 5.0),
        own_losses=own,
        own_correct=np.full(12, 6.0),
        counts=np.full(12, 10.0),
        unit="documents",
        explained=np.full(n, 0.9),
        checks=checks,
        curves=pd.DataFrame(columns=["role", "layer_bottom", "layer_top", "step", "split", "loss"]),
        training=pd.DataFrame(),
        cautions=("Mind this.",),
        settings={"resamples": 100, "seed": 0},
        depths=(penalty.shape[0] - 1, penalty.shape[1] - 1),
    )


@pytest.fixture(scope="module")
def geometry(planted: Comparison) -> np.ndarray:
    return planted.matrices["rsa"].block("alpha", "beta")


def test_function_that_follows_geometry_agrees_with_it(planted: Comparison, geometry: np.ndarray) -> None:
    views = three_views(planted, plant_stitching(1 - geometry))
    assert list(views.values) == ["features", "rsa", "function"]
    np.testing.assert_allclose(views.values["function"], 1 - geometry, atol=1e-9)
    by_name = {(one.a, one.b): one for one in views.agreements}
    assert by_name["rsa", "function"].rho == pytest.approx(1, abs=1e-3)  # sums make near ties
    assert by_name["rsa", "function"].n_pairs == 49
    expected = spearmanr(views.values["features"].ravel(), -(1 - geometry).ravel()).statistic
    assert by_name["features", "function"].rho == pytest.approx(expected)


def test_only_stitched_pairs_count(planted: Comparison, geometry: np.ndarray) -> None:
    diagonal = np.eye(7, dtype=bool)
    views = three_views(planted, plant_stitching(1 - geometry, known=diagonal))
    assert np.isnan(views.values["function"][0, 1])
    assert [one.n_pairs for one in views.agreements] == [49, 7, 7]


def test_what_the_section_says(planted: Comparison, geometry: np.ndarray) -> None:
    section = function_section(planted, [plant_stitching(1 - geometry)])
    (view,) = section.views
    assert view.title == "alpha → beta (affine, least-squares)"
    best = np.unravel_index(np.argmin(1 - geometry), geometry.shape)
    assert f"from layer {best[0]} of alpha into layer {best[1]} of beta" in view.sentences[0]
    assert "stitched with itself the top loses 0.00, on an untrained bottom 3.00" in view.sentences[0]
    assert "mismatch of depth" in view.sentences[1]
    assert [row[0] for row in view.agreements] == [
        "features and geometry",
        "features and function",
        "geometry and function",
    ]
    assert view.agreements[2][1:] == ("1.00", "49")  # ρ without a p, and the pairs
    assert view.cautions == ("Mind this.",)
    for name, chart in section.charts(source=section.tables.__getitem__).items():
        alt.Chart.from_dict(chart.to_dict())  # valid by the schema
        assert name in section.tables
    assert set(section.specs()) == set(section.tables)


def test_the_page_shows_it_and_only_what_belongs_to_the_run(
    planted: Comparison, geometry: np.ndarray, tmp_path: Path
) -> None:
    plant_stitching(1 - geometry).save(tmp_path / "stitching" / "alpha-to-beta")
    plant_stitching(1 - geometry, bottom="someone else").save(tmp_path / "stitching" / "other")
    assert len(find_stitchings(tmp_path)) == 2
    html = write_report(planted, tmp_path).read_text(encoding="utf-8")
    assert html.count('data-chart="view-0-function"') == 1
    assert "view-1" not in html
    assert 'href="#function"' in html
    data = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', html, re.DOTALL)[1])
    assert len(data["tables"]["view-0-function"]) == 49
    assert "view-0-lines" in data["specs"]


def test_without_stitching_there_is_no_section(planted: Comparison) -> None:
    section = function_section(planted, [])
    assert (section.views, section.tables, section.specs()) == ((), {}, {})
    template = environment(TEMPLATES).get_template("function.html.j2")
    assert template.render(views=section.views).strip() == ""


def test_other_systems_and_no_geometry_are_refused(planted: Comparison, geometry: np.ndarray) -> None:
    from dataclasses import replace

    with pytest.raises(InvalidInput, match="delta was stitched, but the comparison has alpha, beta, gamma"):
        three_views(planted, plant_stitching(1 - geometry, top="delta"))
    bare = replace(planted, matrices={"features": planted.matrices["features"]})
    with pytest.raises(InvalidInput, match="has no geometric measure"):
        three_views(bare, plant_stitching(1 - geometry))
