"""The report on paper and on a phone: no half-empty pages, nothing cut off, a chart alone on its own page."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.browsing import PHONE, each, opened, started
from tests.waiting import until
from thinkalike.comparison.comparison import Comparison
from thinkalike.report import write_report

pytestmark = pytest.mark.browser
PAPER = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}
"""Inches"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from started(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def address(planted: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(planted, tmp_path_factory.mktemp("run")).as_uri()


def printed(browser: Any, path: Path, **options: object) -> Path:
    answer = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, **options})
    path.write_bytes(base64.b64decode(answer["data"]))
    return path


def pages(pdf: Path) -> list[np.ndarray]:
    """Grey pictures of the pages, 0 for black, at 30 dots per inch."""
    if shutil.which("pdftoppm") is None:
        pytest.skip("pdftoppm (poppler-utils) is not on the path")
    subprocess.run(["pdftoppm", "-r", "30", "-gray", pdf, pdf.with_suffix("")], check=True)
    return [np.asarray(Image.open(page)) for page in sorted(pdf.parent.glob(f"{pdf.stem}-*.pgm"))]


@pytest.mark.parametrize("paper", PAPER)
def test_no_page_is_half_empty_but_the_last(browser: Any, address: str, tmp_path: Path, paper: str) -> None:
    """Printed as it was opened, its charts mostly not drawn yet; the end of what stands on each page."""
    width, height = PAPER[paper]
    page = opened(browser, address, lazily=True)
    found = pages(printed(page, tmp_path / "report.pdf", paperWidth=width, paperHeight=height))
    assert 4 <= len(found) <= 8
    filled = [float(np.flatnonzero((one < 200).any(axis=1)).max() / len(one)) for one in found]
    assert min(filled[:-1]) > 0.6, filled
    assert page.get_log("browser") == []


def test_all_charts_are_on_paper_also_those_not_seen_yet(browser: Any, address: str, tmp_path: Path) -> None:
    page = opened(browser, address, lazily=True)
    printed(page, tmp_path / "report.pdf")
    missing = each(page, ".chart:not(:has(svg, canvas))", "e.dataset.chart")
    assert missing == []


def test_a_chart_is_printed_alone_on_a_page_of_its_size(browser: Any, address: str, tmp_path: Path) -> None:
    page = opened(browser, address)
    page.execute_script("window.print = () => { window.asked = true; }")
    place = "document.querySelector('[data-chart=systems]').closest('.saved').querySelector('.save')"
    page.execute_script(f"[...{place}.children].find((b) => b.textContent === 'PDF').click()")
    until(lambda: page.execute_script("return window.asked === true"))
    (size,) = each(page, ".alone svg", "['width', 'height'].map((side) => Number(e.getAttribute(side)))")
    pdf = printed(page, tmp_path / "chart.pdf", preferCSSPageSize=True)
    (chart,) = pages(pdf)
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf.read_bytes())
    points = [float(side) for side in boxes[0]]
    assert points == pytest.approx([0.75 * size[0], 0.75 * size[1]], abs=2.5)
    assert (chart < 200).any()
    assert each(page, ".alone", "1") == []  # the page is as it was


@pytest.mark.parametrize("size", [PHONE, (320, 640)], ids=str)
def test_no_letter_of_the_first_chart_is_cut_off_on_a_phone(
    browser: Any, address: str, size: tuple[int, int]
) -> None:
    page = opened(browser, address, size=size)
    outside = each(
        page,
        "[data-chart=systems] svg text",
        "[e.textContent, e.getBoundingClientRect().left - e.closest('svg').getBoundingClientRect().left,"
        " e.closest('svg').getBoundingClientRect().right - e.getBoundingClientRect().right]",
    )
    assert len(outside) > 5
    assert min(min(left, right) for _, left, right in outside) > -1, outside
