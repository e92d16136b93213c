"""The pages in a real browser: no errors, no network; clicks, keys, phones, dark screens, paper."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import altair as alt
import numpy as np
import pandas as pd
import pytest

from tests.browsing import LAPTOP, PHONE, each, opened, requested, saved, set_scheme, settled, started, text
from tests.waiting import until
from thinkalike.charts.notebook import OfflineRenderer
from thinkalike.charts.theme import DARK, LIGHT, themed
from thinkalike.comparison.chart_tables import important_in_one
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.recipes import Figure, Findings, Recipe, Statement
from thinkalike.recipes.recipe_page import write_page
from thinkalike.report import write_report
from thinkalike.report.frames import row_importance

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from started(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def address(planted: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(planted, tmp_path_factory.mktemp("run")).as_uri()


@pytest.fixture
def page(browser: Any, address: str) -> Any:
    return opened(browser, address)


def chosen(browser: Any) -> tuple[str, str]:
    script = "return ['row', 'column'].map(k => document.getElementById(k).selectedOptions[0].text)"
    a, b = browser.execute_script(script)
    return a, b


def click_cell(browser: Any, i: int, j: int, *, measure: str = "features") -> None:
    """A real click on the middle of a cell of a matrix."""
    place = browser.execute_script(
        """
        const box = document.querySelector(`[data-chart="matrix-${arguments[0]}"]`);
        box.scrollIntoView({block: "center", behavior: "instant"});
        const cells = [...box.querySelectorAll(".mark-rect path")];
        const n = Math.round(Math.sqrt(cells.length));
        const cell = cells[arguments[1] * n + arguments[2]].getBoundingClientRect();
        return [cell.x + cell.width / 2, cell.y + cell.height / 2];
        """,
        measure,
        i,
        j,
    )
    for kind in ("mousePressed", "mouseReleased"):
        event = {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    settled(browser)


def press(browser: Any, selector: str, *keys: str) -> None:
    from selenium.webdriver.common.by import By

    for key in keys:
        browser.find_element(By.CSS_SELECTOR, selector).send_keys(key)
    settled(browser)


def test_no_errors_and_no_requests(page: Any, address: str) -> None:
    assert page.get_log("browser") == []
    (sent,) = requested(page)
    assert address in sent


def test_all_charts_are_drawn(page: Any) -> None:
    counts = each(page, ".chart", "[e.dataset.chart, e.querySelectorAll('path, text').length]")
    assert len(counts) == 16
    assert all(n > 3 for _, n in counts), counts


def test_the_page_opens_on_the_most_alike_pair(page: Any, planted: Comparison) -> None:
    from thinkalike.report.pairs import picks

    first = picks(planted)[0]
    names = [f"{system}:{layer}" for system, layer in planted.rows]
    assert chosen(page) == (names[first.i], names[first.j])


@pytest.mark.parametrize("measure", ["features", "rsa"])
def test_a_click_on_a_cell_shows_that_pair(page: Any, planted: Comparison, measure: str) -> None:
    before = page.execute_script("return document.querySelector('[data-chart=scatter]').innerHTML")
    click_cell(page, 2, 20, measure=measure)
    tau = planted.matrices["features"].values[2, 20]
    assert chosen(page) == ("alpha:2", "gamma:6")
    assert text(page, "#numbers dt") == f"{tau:.2f}".replace("-", "−")
    assert "only gamma:6 by" in text(page, "#sentence")
    assert "p = " in text(page, "#numbers")
    assert "a sum over the features makes up" in text(page, "#numbers")
    ceiling = planted.matrices["features"].ceiling[2, 20]  # type: ignore[index]
    assert f"layers alike in truth would reach {ceiling:.2f}" in text(page, "#numbers")
    assert page.execute_script("return document.querySelector('[data-chart=scatter]').innerHTML") != before
    labels = each(page, "[data-chart=scatter] text", "e.textContent")
    assert "importance in alpha:2" in labels
    importance = row_importance(planted)
    matter = important_in_one(importance[2], importance[20])
    named = {feature for feature, yes in zip(planted.features, matter, strict=True) if yes}
    assert named == set(planted.features) & set(labels)
    assert 0 < len(named) < len(planted.features)
    assert text(page, "#words-b") == "Inside gamma:6"
    assert page.get_log("browser") == []


def test_the_bars_show_the_contributions_of_the_pair(page: Any, planted: Comparison) -> None:
    click_cell(page, 20, 2)
    shown = each(page, "[data-chart=bars] .mark-text.role-mark text", "e.textContent")
    parts = planted.contributions[2, 20]
    expected = sorted([*parts, parts.sum()])
    values = sorted(float(s.replace("−", "-")) for s in shown)
    assert values == pytest.approx(expected, abs=0.0051)


@pytest.mark.parametrize("size", [(320, 640), LAPTOP], ids=str)
def test_no_number_of_the_bars_is_cut_off(browser: Any, address: str, size: tuple[int, int]) -> None:
    """Also that of a τ_w of 1, the longest bar there can be."""
    page = opened(browser, address, size=size)
    click_cell(page, 3, 3)
    numbers = "[data-chart=bars] .mark-text.role-mark text"
    right = (
        "[e.textContent, e.closest('svg').getBoundingClientRect().right - e.getBoundingClientRect().right]"
    )
    room = dict(each(page, numbers, right))
    assert room["+1.00"] > 0
    assert min(room.values()) > 0


def test_every_cell_can_be_clicked_also_those_under_a_boundary(page: Any, planted: Comparison) -> None:
    names = [f"{system}:{layer}" for system, layer in planted.rows]
    rng = np.random.default_rng(0)
    for i, j in [(0, 0), (6, 7), (7, 6), (26, 26), (13, 14), *rng.integers(0, 27, (4, 2))]:
        click_cell(page, int(i), int(j))
        assert chosen(page) == (names[i], names[j])


def test_a_layer_against_itself_is_said_to_be_that(page: Any) -> None:
    click_cell(page, 3, 3)
    assert "one layer against itself" in text(page, "#sentence")


def test_arrow_keys_move_from_cell_to_cell(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    cells = '[data-chart="matrix-features"]'
    click_cell(page, 2, 20)
    press(page, cells, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert chosen(page) == ("alpha:3", "gamma:7")
    press(page, cells, Keys.ARROW_LEFT, Keys.ARROW_UP)
    assert chosen(page) == ("alpha:2", "gamma:6")
    press(page, cells, Keys.PAGE_DOWN)
    assert chosen(page) == ("beta:0", "gamma:6")
    press(page, cells, Keys.HOME)
    assert chosen(page) == ("beta:0", "alpha:0")
    press(page, cells, Keys.ARROW_LEFT, Keys.END)
    assert chosen(page) == ("beta:0", "gamma:12")
    assert text(page, "#announce").startswith("beta:0 and gamma:12. ")


def test_the_matrix_is_reached_with_the_tab_key_and_shows_focus(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    page.execute_script("document.querySelector('.matrix figcaption').tabIndex = -1")
    page.execute_script("document.querySelector('.matrix figcaption').focus()")
    page.switch_to.active_element.send_keys(Keys.TAB)
    focused = page.switch_to.active_element
    assert focused.get_attribute("data-chart") == "matrix-features"
    assert page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", focused) != "none"


def test_the_chosen_cell_is_outlined_in_both_matrices(page: Any) -> None:
    click_cell(page, 2, 20)
    outlined = page.execute_script(
        """
        return [...document.querySelectorAll(".cells")].map((box) => {
          const cells = [...box.querySelectorAll(".mark-rect path")];
          const rings = cells.filter((c) => c.getAttribute("stroke-width") === "2.5");
          const target = cells[2 * 27 + 20].getBoundingClientRect(), ring = rings[0].getBoundingClientRect();
          return [rings.length, Math.abs(target.x + target.width / 2 - ring.x - ring.width / 2) < 1];
        });
        """
    )
    assert outlined == [[1, True], [1, True]]


def test_layers_can_be_chosen_from_lists_and_picks(page: Any, planted: Comparison) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.select import Select

    Select(page.find_element(By.ID, "row")).select_by_visible_text("beta:5")
    Select(page.find_element(By.ID, "column")).select_by_visible_text("alpha:1")
    settled(page)
    assert text(page, "#numbers dt") == f"{planted.matrices['features'].values[12, 1]:.2f}".replace("-", "−")
    page.find_elements(By.CSS_SELECTOR, ".picks button")[1].click()
    settled(page)
    values = planted.matrices["features"].values
    assert text(page, "#numbers dt") == f"{values[:14, 14:].min():.2f}".replace("-", "−")


def test_words_can_be_coloured_by_any_feature(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.select import Select

    Select(page.find_element(By.ID, "colour")).select_by_visible_text("position")
    settled(page)
    titles = each(page, "[data-chart=words] .role-legend-title text", "e.textContent")
    assert titles == ["position", "position"]


def test_one_feature_can_be_brought_forward(page: Any) -> None:
    from selenium.webdriver.common.by import By

    def opacities() -> list[str]:
        return each(page, "[data-chart=profile-0] .mark-line path", "e.getAttribute('opacity')")

    assert set(opacities()) == {"1"}
    chip = page.find_element(By.CSS_SELECTOR, "button.chip")
    chip.click()
    settled(page)
    assert sorted(opacities()) == ["0.12"] * 7 + ["1"]
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    settled(page)
    assert set(opacities()) == {"1"}


def test_a_pair_can_be_linked_to(browser: Any, address: str) -> None:
    page = opened(browser, f"{address}#a=beta%3A3&b=gamma%3A4")
    assert chosen(page) == ("beta:3", "gamma:4")
    click_cell(page, 0, 1)
    assert page.current_url.endswith("#a=alpha%3A0&b=alpha%3A1")


def test_charts_keep_their_alternative_texts(page: Any) -> None:
    labels = each(page, ".chart", "[e.getAttribute('role'), e.getAttribute('aria-label')]")
    assert all("Vega" not in label and len(label) > 20 for _, label in labels)
    assert [role for role, _ in labels].count("application") == 2
    assert {role for role, _ in labels} == {"img", "application"}


def test_charts_describe_the_pair_for_those_who_cannot_see_them(page: Any) -> None:
    click_cell(page, 2, 20)
    labels = each(page, ".chart.pair", "e.getAttribute('aria-label')")
    assert "Highest in alpha:2: part of speech" in labels[0]
    assert labels[1].startswith("Bars of what each feature adds to the weighted τ: ")
    assert labels[3].startswith("Map of 300 items in gamma:6, coloured by ")


SURFACES = {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 25, 29)"}


def surfaces(browser: Any, charts: str = ".chart") -> set[str]:
    """The colours that the charts are drawn on."""
    return set(each(browser, f"{charts} svg", "e.style.backgroundColor"))


@pytest.mark.parametrize(("scheme", "other"), [("light", "dark"), ("dark", "light")])
def test_charts_follow_the_colour_scheme(browser: Any, address: str, scheme: str, other: str) -> None:
    page = opened(browser, address, scheme=scheme)
    assert each(page, "body", "getComputedStyle(e).backgroundColor") == [SURFACES[scheme]]
    assert surfaces(page) == {SURFACES[scheme]}
    set_scheme(page, other)
    settled(page)
    assert surfaces(page) == {SURFACES[other]}


@pytest.mark.parametrize("size", [PHONE, (320, 640), LAPTOP, (820, 1180)], ids=str)
def test_nothing_runs_out_of_the_side(browser: Any, address: str, size: tuple[int, int]) -> None:
    page = opened(browser, address, size=size)
    width, inner = page.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width <= inner == size[0]
    assert all(each(page, ".chart svg", "e.clientWidth <= e.parentElement.clientWidth + 1"))
    assert page.get_log("browser") == []


def test_charts_fit_again_when_the_window_changes(browser: Any, address: str) -> None:
    page = opened(browser, address)
    metrics = {"width": 700, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    until(lambda: all(each(page, ".chart", "Number(e.dataset.width) === e.clientWidth")))
    assert page.execute_script("return document.documentElement.scrollWidth") <= 700


def test_on_a_phone_the_pair_is_seen_where_the_finger_is(browser: Any, address: str) -> None:
    page = opened(browser, address, size=PHONE)
    click_cell(page, 2, 20)
    assert text(page, ".peek").startswith("alpha:2 and gamma:6: weighted τ ")
    box = page.execute_script("return document.querySelector('.peek').getBoundingClientRect().bottom")
    assert box <= PHONE[1] + 1


def test_it_prints_in_light_colours_also_from_a_dark_screen(browser: Any, address: str) -> None:
    page = opened(browser, address, scheme="dark")
    page.execute_script("addEventListener('beforeprint', () => { window.asked = true; })")
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF")
    assert page.execute_script("return window.asked")
    page.execute_script("dispatchEvent(new Event('beforeprint'))")
    settled(page)
    assert surfaces(page) == {SURFACES["light"]}
    assert all(each(page, "details", "e.open"))
    page.execute_script("dispatchEvent(new Event('afterprint'))")
    settled(page)
    assert surfaces(page) == {SURFACES["dark"]}


@pytest.mark.parametrize("case", ["one system", "bad names", "no words", "measures"])
def test_other_comparisons_open_without_errors(
    browser: Any, case: str, plant: Callable[..., Comparison], tmp_path: Path
) -> None:
    evil = ("<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "{a} 'q' \"r\" [0].b")
    made = plant({"alpha": 3, "beta": 4}, n_sentences=40, n_mapped=30)
    made = {
        "one system": lambda: plant({"solo": 4}, n_sentences=40, n_mapped=30),
        "bad names": lambda: plant(dict.fromkeys(evil, 3), evil, n_sentences=40, n_mapped=30),
        "no words": lambda: replace(
            made, word_maps=None, explained_share=np.full_like(made.matrices["rsa"].values, -0.5)
        ),
        "measures": lambda: replace(
            made,
            matrices={
                **made.matrices,
                "procrustes": SimilarityMatrix(
                    "procrustes", made.rows, 1 - made.matrices["rsa"].values, kind="distance"
                ),
            },
        ),
    }[case]()
    page = opened(browser, write_report(made, tmp_path).as_uri())
    click_cell(page, 1, 2)
    assert page.get_log("browser") == []
    if case == "no words":
        assert "a sum over the features alone would give" in text(page, "#numbers")
    if case == "bad names":
        assert chosen(page) == (f"{evil[0]}:1", f"{evil[0]}:2")
        assert page.execute_script("return document.querySelectorAll('img').length") == 0
    if case == "measures":
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.select import Select

        assert "distance by geometry, Procrustes" in text(page, "#numbers")
        Select(page.find_element(By.CSS_SELECTOR, "select.measure")).select_by_value("procrustes")
        settled(page)
        (label,) = each(page, "[data-chart=matrix-procrustes]", "e.getAttribute('aria-label')")
        assert "coloured by Procrustes" in label
        click_cell(page, 2, 5, measure="procrustes")
        assert chosen(page) == ("alpha:2", "beta:2")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> str:
    points = pd.DataFrame({"x": [0, 1], "name": ["</script>", "b"]})
    fill = alt.ExprRef(f"datum.x > 0 ? '{LIGHT.accent}' : '{LIGHT.features[0]}'")
    chart = alt.Chart(points).mark_bar(fill=fill).encode(x="x:Q", y="name:N", tooltip="name:N")
    figures = [Figure(name, name, themed(chart), "Two bars.", "") for name in ("one", "two")]
    findings = Findings("r", "nano", (Statement("Said.", "Found.", "differs"),), figures=tuple(figures))
    small = Recipe("r", "A recipe", "Nobody 2026", "Figure 1", "thinkalike.recipes.salle2024")
    return write_page(small, findings, tmp_path_factory.mktemp("recipe"), 1.0).as_uri()


class TestRecipe:
    """The page of a recipe: its charts are made in light colours and change with the screen."""

    @pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=str)
    def test_it_opens_without_errors(self, browser: Any, recipe: str, size: tuple[int, int]) -> None:
        page = opened(browser, recipe, size=size)
        assert len(each(page, ".drawn svg", "1")) == 2
        assert page.execute_script("return document.documentElement.scrollWidth") <= size[0]
        assert page.get_log("browser") == []

    @pytest.mark.parametrize(("scheme", "other"), [("light", "dark"), ("dark", "light")])
    def test_it_follows_the_colour_scheme(self, browser: Any, recipe: str, scheme: str, other: str) -> None:
        themes = {"light": LIGHT, "dark": DARK}
        page = opened(browser, recipe, scheme=scheme)
        for mode in (scheme, other, scheme):
            set_scheme(page, mode)
            self.until_drawn(page, mode)
            assert each(page, "body", "getComputedStyle(e).backgroundColor") == [SURFACES[mode]]
            assert surfaces(page, ".drawn") == {SURFACES[mode]}
            bars = set(each(page, ".drawn .mark-rect path", "e.getAttribute('fill')"))
            assert bars == {themes[mode].accent, themes[mode].features[0]}

    def test_it_prints_in_light_colours_also_from_a_dark_screen(self, browser: Any, recipe: str) -> None:
        page = opened(browser, recipe, scheme="dark")
        for event, mode in (("beforeprint", "light"), ("afterprint", "dark")):
            page.execute_script("dispatchEvent(new Event(arguments[0]))", event)
            self.until_drawn(page, mode)
            assert surfaces(page, ".drawn") == {SURFACES[mode]}

    @staticmethod
    def until_drawn(page: Any, mode: str) -> None:
        until(lambda: page.execute_script("return document.documentElement.dataset.mode") == mode)


def test_charts_of_a_notebook_are_live_without_the_network(browser: Any, tmp_path: Path) -> None:
    """Two outputs of one notebook: the second finds the program that the first one brought."""
    chart = alt.Chart(pd.DataFrame({"x": [1.0, 2.0], "name": ["</script>", "b"]})).mark_bar()
    show = OfflineRenderer()
    outputs = [show(chart.encode(x="x:Q", y="name:N").to_dict())["text/html"] for _ in range(2)]
    notebook = tmp_path / "notebook.html"
    notebook.write_text("<!doctype html><meta charset=utf-8>" + "".join(outputs), encoding="utf-8")
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(notebook.as_uri())
    until(lambda: len(each(browser, "canvas.marks, svg.marks", "1")) == 2)
    assert each(browser, "img", "1") == []  # the pictures made room
    assert browser.get_log("browser") == []
    (sent,) = requested(browser)
    assert notebook.as_uri() in sent


def test_a_touch_on_a_term_explains_it(page: Any) -> None:
    shown = "return [...document.querySelectorAll('.explanation:popover-open')].map((e) => e.textContent)"
    assert page.execute_script(shown) == []
    page.execute_script("document.querySelector('.answer .term').click()")
    (note,) = page.execute_script(shown)
    assert note.startswith("features Properties of what the systems were shown")


def test_every_chart_and_every_table_can_be_saved(page: Any) -> None:
    charts, tables = each(page, ".chart", "1"), each(page, "main table", "1")
    assert len(each(page, ".save", "1")) == len(charts) + len(tables)
    name, address = saved(page, ".chart[data-chart=systems]", "SVG")
    assert name == "how-alike-the-systems-are-by-features.svg"
    assert "<svg" in unquote(address)
    name, address = saved(page, ".chart[data-chart=systems]", "PNG")
    assert name.endswith(".png")
    assert base64.b64decode(address.split(",", 1)[1]).startswith(b"\x89PNG")
    name, address = saved(page, "#systems table", "CSV")
    assert name == "which-systems-are-alike.csv"
    header, first = list(csv.reader(io.StringIO(unquote(address.split(",", 1)[1]).lstrip("\ufeff"))))[:2]
    assert header[0] == "systems"
    assert first[0] == "alpha × beta"
