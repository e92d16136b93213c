"""Large reports in a real browser: few nodes, charts when they are seen, reasons when they are asked for."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from tests.browsing import each, opened, started, text
from tests.waiting import until
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.explaining import organised_by, reasons
from thinkalike.comparison.profiles import importance_shares
from thinkalike.inference.weighted_tau import contributions
from thinkalike.report import write_report

pytestmark = pytest.mark.browser
NODES = "document.querySelectorAll('*').length"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from started(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def layers(plant: Callable[..., Comparison]) -> Comparison:
    """300 layers"""
    return plant({f"model-{k}": 100 for k in range(3)}, n_sentences=60, n_mapped=60)


@pytest.fixture(scope="module")
def many_layers(layers: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(layers, tmp_path_factory.mktemp("layers")).as_uri()


@pytest.fixture(scope="module")
def many_systems(plant: Callable[..., Comparison], tmp_path_factory: pytest.TempPathFactory) -> str:
    made = plant({f"model-{k}": 6 for k in range(40)}, n_sentences=60, n_mapped=60)
    return write_report(made, tmp_path_factory.mktemp("systems")).as_uri()


def drawn(browser: Any) -> set[str]:
    """The charts that are there, by name."""
    return set(each(browser, ".chart:has(svg, canvas)", "e.dataset.chart"))


@pytest.mark.parametrize("case", ["many_layers", "many_systems"])
def test_few_nodes_and_charts_come_when_they_are_scrolled_to(
    browser: Any, request: pytest.FixtureRequest, case: str
) -> None:
    page = opened(browser, request.getfixturevalue(case), lazily=True)
    until(lambda: "systems" in drawn(page))
    assert "correlations" not in drawn(page)  # far below
    assert page.execute_script(f"return {NODES}") < 5_000
    page.execute_script("document.querySelector('[data-chart=correlations]').scrollIntoView()")
    until(lambda: "correlations" in drawn(page))
    page.execute_script("Charts.drawAll()")
    until(lambda: not page.execute_script("return Charts.atWork()"))
    assert page.execute_script(f"return {NODES}") < 20_000
    assert page.get_log("browser") == []


def test_a_chart_of_many_marks_is_a_canvas(browser: Any, many_layers: str) -> None:
    page = opened(browser, many_layers)
    kinds = dict(
        each(page, ".chart", "[e.dataset.chart, e.querySelector('svg, canvas').tagName.toLowerCase()]")
    )
    assert kinds["profile-0"] == "canvas"
    assert kinds["scatter"] == kinds["matrix-features"] == "svg"


def test_the_cells_of_a_large_matrix_are_a_picture_in_the_colours_of_its_legend(
    browser: Any, many_layers: str, layers: Comparison
) -> None:
    """Dots of the picture against an interpolation by NumPy, in light and in dark."""
    from thinkalike.charts.theme import THEMES

    script = """
        const [done, places] = [arguments[1], arguments[0]];
        const address = document.querySelector("[data-chart=matrix-features] image").getAttribute("href");
        const picture = new Image();
        picture.onload = () => {
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [picture.width, picture.height];
          const context = canvas.getContext("2d"), wide = picture.width / 300;
          context.drawImage(picture, 0, 0);
          const dot = (i, j) => [...context.getImageData((j + 0.5) * wide, (i + 0.5) * wide, 1, 1).data];
          done(places.map(([i, j]) => dot(i, j)));
        };
        picture.src = address;
    """
    values = layers.matrices["features"].values
    places = np.random.default_rng(0).integers(0, 300, (40, 2))
    for scheme, theme in THEMES.items():
        page = opened(browser, many_layers, scheme=scheme)
        found = np.array(page.execute_async_script(script, places.tolist()))
        ramp = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in theme.diverging], dtype=float)
        at = (values[places[:, 0], places[:, 1]] + 1) / 2 * (len(ramp) - 1)
        expected = np.stack([np.interp(at, np.arange(len(ramp)), ramp[:, c]) for c in range(3)], axis=1)
        assert np.abs(found[:, :3] - expected).max() <= 2.0
        assert (found[:, 3] == 255).all()


def test_a_large_matrix_takes_the_room_that_there_is(browser: Any, many_layers: str) -> None:
    """300 cells of one whole pixel would leave half of it empty."""
    side, room = opened(browser, many_layers).execute_script("""
        const box = document.querySelector("[data-chart=matrix-features]");
        return [box.querySelector("image").getBoundingClientRect().width, box.clientWidth];""")
    assert 0.7 * room < side <= room


def test_a_cell_of_the_picture_can_be_clicked_and_says_what_it_is(
    browser: Any, many_layers: str, layers: Comparison
) -> None:
    page = opened(browser, many_layers)
    place = page.execute_script("""
        const picture = document.querySelector("[data-chart=matrix-features] image");
        picture.scrollIntoView({block: "center", behavior: "instant"});
        const box = picture.getBoundingClientRect();
        return [box.x + (250.5 / 300) * box.width, box.y + (20.5 / 300) * box.height];
    """)
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        event = {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        page.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    picked = [
        page.execute_script(f"return Number(document.getElementById('{k}').value)") for k in ("row", "column")
    ]
    assert np.abs(np.array(picked) - [20, 250]).max() <= 1  # cells of two pixels: a pixel is half of one
    tau = f"{layers.matrices['features'].values[*picked]:.2f}".replace("-", "−")
    assert text(page, "#numbers dt") == tau
    assert f"model-0:{picked[0]}" in text(page, "#tooltip")
    assert tau in text(page, "#tooltip")


def test_reasons_are_those_of_python(page_of_reasons: tuple[Any, Comparison]) -> None:
    """Contributions and sentences that the page works out, with ties and gaps among the importances."""
    page, made = page_of_reasons
    importance = np.concatenate([p.mean_importance for p in made.profiles.values()])
    rng = np.random.default_rng(1)
    rows = [*importance[rng.integers(0, len(importance), 30)]]
    rows += [np.round(row, 1) for row in rows[:10]]  # ties
    rows += [np.zeros(8), np.full(8, 0.2), -rows[0], np.where(np.arange(8) == 3, np.nan, rows[0])]
    names = [name.replace("_", " ") for name in made.features]
    pairs = [(a, b) for a in range(0, len(rows), 2) for b in range(len(rows))]
    script = """
        const [rows, pairs, names] = arguments;
        const known = (v) => (Number.isFinite(v) ? v : null);
        return pairs.map(([a, b]) => [
          Explaining.contributions(rows[a], rows[b]).map(known),
          Explaining.sentence("A", "B", names, rows[a], rows[b], 0.1),
        ]);
    """
    plain = [[None if np.isnan(v) else float(v) for v in row] for row in rows]
    found = page.execute_script(script, plain, pairs, names)
    for (a, b), (parts, sentence) in zip(pairs, found, strict=True):
        with np.errstate(invalid="ignore"):  # a row with a gap
            expected = contributions(rows[a], rows[b])
        got = np.array([np.nan if v is None else v for v in parts])
        np.testing.assert_allclose(got, expected, atol=1e-12)
        shares = importance_shares(np.stack([rows[a], rows[b]]))
        assert sentence == reasons("A", "B", *organised_by(names, *shares))


@pytest.fixture
def page_of_reasons(browser: Any, many_layers: str, layers: Comparison) -> tuple[Any, Comparison]:
    return opened(browser, many_layers, lazily=True), layers


def test_a_long_table_shows_its_first_rows_and_the_rest_when_asked(browser: Any, many_systems: str) -> None:
    page = opened(browser, many_systems, lazily=True)
    rows = "#systems .scroll table tbody tr"
    assert len(each(page, rows, "1")) == 20
    script = """
        const done = arguments[0];
        HTMLAnchorElement.prototype.click = function () { done(this.href); };
        document.querySelector("#systems .saved:has(table) .save button").click();
    """
    saved = unquote(page.execute_async_script(script).split(",", 1)[1]).lstrip("\ufeff")
    assert len(list(csv.reader(io.StringIO(saved)))) == 1 + 780  # of a file nothing is left out
    assert each(page, "#systems .more", "e.textContent")[0] == "Show all 780 rows"
    page.execute_script("document.querySelector('#systems .more').click()")
    assert len(each(page, rows, "1")) == 780
