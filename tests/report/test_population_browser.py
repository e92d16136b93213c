"""The page of a population in a real browser: it fits, names stand apart, and a cell leads to its pair."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator
from itertools import combinations
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

import thinkalike as ta
from tests.browsing import LAPTOP, PHONE, each, saved, set_scheme, started, text
from thinkalike.report.population_page import write_population

pytestmark = pytest.mark.browser

BOX = "((b) => [b.left, b.top, b.right, b.bottom])(e.getBoundingClientRect())"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from started(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def population(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("atlas") / "atlas.html"
    return write_population(ta.Atlas().fingerprints(), path, n_draws=5, n_permutations=19).as_uri()


def shown(browser: Any, address: str, size: tuple[int, int], scheme: str = "light") -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    set_scheme(browser, scheme)
    browser.get("about:blank")
    browser.get(address)
    assert browser.execute_script("return document.documentElement.dataset.ready") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE])
def test_nothing_runs_out_of_the_side(
    browser: Any, population: str, size: tuple[int, int], scheme: str
) -> None:
    shown(browser, population, size, scheme)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    wide = each(browser, "#map-drawing, #tree-drawing, #matrix-drawing", "e.getBoundingClientRect().right")
    assert max(wide) <= size[0]


@pytest.mark.parametrize("size", [LAPTOP, PHONE])
def test_no_name_on_the_map_touches_another(browser: Any, population: str, size: tuple[int, int]) -> None:
    shown(browser, population, size)
    boxes = each(browser, "#map-drawing > text", BOX)
    assert len(boxes) >= 12  # of 15: those without room are told on touch
    for (left, top, right, bottom), other in combinations(boxes, 2):
        apart = right <= other[0] or other[2] <= left or bottom <= other[1] + 3 or other[3] <= top + 3
        assert apart, (left, top, other)


def test_the_answer_is_seen_first(browser: Any, population: str) -> None:
    shown(browser, population, LAPTOP)
    bottoms = each(browser, ".answer p, .answer dd", "e.getBoundingClientRect().bottom")
    assert len(bottoms) == 5
    assert max(bottoms) < LAPTOP[1]


def test_the_pair_below_is_the_one_that_the_answer_names(browser: Any, population: str) -> None:
    shown(browser, population, LAPTOP)
    chosen = each(browser, "#first, #second", "e.selectedOptions[0].textContent")
    assert text(browser, ".answer").strip().startswith(f"{chosen[0]} and {chosen[1]} are the most alike")


def test_every_drawing_and_every_table_can_be_saved(browser: Any, population: str) -> None:
    shown(browser, population, LAPTOP)
    drawings = {
        "#map-drawing": "map-of-the-models",
        "#tree-drawing": "tree-of-the-models",
        "#pair-drawing": "layers-of-one-model",
        "#pair-profile": "shares-of-the-features",
    }
    for selector, name in drawings.items():
        file, address = saved(browser, selector, "SVG")
        assert file.startswith(name)
        assert file.endswith(".svg")
        drawing = ElementTree.fromstring(unquote(address.split(",", 1)[1]))
        texts = list(drawing.iter("{http://www.w3.org/2000/svg}text"))
        assert texts
        assert all("var(" not in e.get("style", "") and "fill: rgb" in e.get("style", "") for e in texts)
        file, address = saved(browser, selector, "PNG")
        width, height = struct.unpack(">II", base64.b64decode(address.split(",", 1)[1])[16:24])
        assert width == 3 * int(float(drawing.get("width", "0")))
        assert height > 0
    legend = {e.text for e in ElementTree.fromstring(svg(browser, "#map-drawing")).iter() if e.text}
    assert set(ta.Atlas().facts()["family"]) <= legend  # what the colours mean is part of the file
    assert saved(browser, "#matrix-drawing", "PNG")[0] == "distances-between-all-models.png"
    for section in ("neighbours", "why"):
        assert len(unquote(saved(browser, f"#{section} table", "CSV")[1]).split("\r\n")) > 5


def svg(browser: Any, selector: str) -> str:
    return unquote(saved(browser, selector, "SVG")[1].split(",", 1)[1])


def test_in_print_no_page_is_half_empty(browser: Any, population: str) -> None:
    shown(browser, population, LAPTOP)
    for name, (width, height) in {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}.items():
        settings = {"printBackground": True, "paperWidth": width, "paperHeight": height}
        pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", settings)["data"])
        assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 3, name


def test_one_click_leads_to_the_page_of_any_pair(browser: Any, population: str) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    shown(browser, population, LAPTOP)
    matrix = browser.find_element(By.ID, "matrix-drawing")
    browser.execute_script("arguments[0].scrollIntoView()", matrix)
    ActionChains(browser).move_to_element_with_offset(matrix, 60, -40).click().perform()
    title = browser.find_element(By.ID, "pair-title").text
    a, b = title.split(" and ")
    assert a != b
    assert browser.current_url.endswith(f"#pair/{a.replace('@', '%40')}/{b.replace('@', '%40')}")
    assert not browser.find_element(By.ID, "map").is_displayed()
    assert "mean weighted τ" in browser.find_element(By.ID, "pair-answer").text
    browser.get("about:blank")
    browser.get(f"{population}#pair/nano-gpt2/nano-bert")  # an address that was sent
    assert browser.find_element(By.ID, "pair-title").text == "nano-gpt2 and nano-bert"
    browser.find_element(By.CSS_SELECTOR, "#back a").click()
    assert browser.find_element(By.ID, "map").is_displayed()
    assert each(browser, "#map-drawing circle", "e.cx.baseVal.value")
    browser.get("about:blank")
    browser.get(f"{population}#pair/%/nobody")  # one that names no model
    assert browser.find_element(By.ID, "map").is_displayed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE])
def test_the_page_of_a_pair_says_what_each_cares_about(
    browser: Any, population: str, size: tuple[int, int], scheme: str
) -> None:
    """By every measure, with the numbers that Python gives; it fits a phone too."""
    shown(browser, f"{population}#pair/nano-gpt2/nano-bert", size, scheme)
    assert browser.execute_script("return document.title") == "nano-gpt2 and nano-bert"
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    one, other = ta.Atlas().fingerprints(["nano-gpt2", "nano-bert"])
    expected = one.layer_pairs(other).set_index(["layer", "other_layer"]).sort_index()
    for measure, column in (("weighted τ", "tau"), ("R²", "r_squared"), ("Euclidean distance", "euclidean")):
        browser.execute_script(
            "const s = document.getElementById('measure'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('change'))",
            measure,
        )
        titles = each(browser, "#pair-drawing title", "e.textContent")
        found = [float(title.rsplit(": ", 1)[1].replace("−", "-")) for title in titles]
        assert found == pytest.approx(expected[column].tolist(), abs=0.0051)
    said = browser.execute_script("return document.getElementById('pair-answer').textContent")
    others = len(ta.Atlas()) - 1
    near = ta.Atlas().nearest("nano-gpt2", others)["model"].tolist()
    assert f"nano-bert is number {near.index('nano-bert') + 1} of {others}" in said
    shares = [
        float(text.removesuffix(" %"))
        for text in each(browser, "#pair-profile text", "e.textContent")
        if text.endswith(" %")
    ]
    assert len(shares) == 2 * len(one.profile.features)
    assert sum(shares) == pytest.approx(200, abs=10)  # each is rounded


def test_no_shade_is_cut_off(browser: Any, population: str) -> None:
    shown(browser, population, LAPTOP)
    left, top, right, bottom = each(browser, "#map-drawing", BOX)[0]
    for box in each(browser, "#map-drawing ellipse", BOX):
        assert left <= box[0] + 1
        assert top <= box[1] + 1
        assert box[2] <= right + 1
        assert box[3] <= bottom + 1
