"""The page to explore in a real browser: everything follows what is picked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browsing import PHONE, each, opened, settled, started, text
from tests.waiting import until

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from started(tmp_path_factory.mktemp("profile"))


@pytest.fixture
def explored(browser: Any, page: str) -> Any:
    return opened(browser, page)


def change(browser: Any, script: str) -> None:
    """Do something to the controls, and wait for the view that it asks for."""
    browser.execute_script("delete document.documentElement.dataset.state")
    browser.execute_script(script)
    state = "return document.documentElement.dataset.state"
    until(lambda: browser.execute_script(state) in ("shown", "wrong"))
    browser.execute_script("Charts.drawAll()")
    settled(browser)


def click(selector: str) -> str:
    return f"document.querySelector({selector!r}).click()"


def chosen(name: str, value: str) -> str:
    return (
        f"const one = document.getElementById({name!r}); one.value = {value!r};"
        "one.dispatchEvent(new Event('change', {bubbles: true}))"
    )


def layers(browser: Any) -> list[str]:
    return each(browser, "#row option", "e.text")


def test_it_opens_without_errors_and_without_other_hosts(explored: Any, page: str) -> None:
    assert explored.get_log("browser") == []
    assert len(layers(explored)) == 9
    sent = [entry["message"] for entry in explored.get_log("performance")]
    urls = [m for m in sent if '"Network.requestWillBeSent"' in m and '"url":"data:' not in m]
    assert urls
    assert all(page in message for message in urls)


def test_a_system_that_is_left_out_is_gone_everywhere(explored: Any) -> None:
    change(explored, click("[data-system=gamma] .all"))
    assert {name.split(":")[0] for name in layers(explored)} == {"alpha", "beta"}
    assert each(explored, "#profile-charts figcaption", "e.textContent") == ["alpha", "beta"]
    assert "gamma" not in text(explored, ".answer")
    assert text(explored, "#state").startswith("Made in ")
    assert explored.get_log("browser") == []


def test_a_layer_that_is_left_out_leaves_the_matrix(explored: Any) -> None:
    cells = "[data-chart=matrix-features] .mark-rect path"
    before = len(each(explored, cells, "1"))
    change(explored, click("[data-system=alpha] [name=layer]"))
    assert layers(explored) == [
        *(f"alpha:{k}" for k in (1, 2)),
        *(f"{s}:{k}" for s in ("beta", "gamma") for k in range(3)),
    ]
    assert len(each(explored, cells, "1")) == before - 81 + 64


def test_fewer_features_and_another_distance_move_the_numbers(explored: Any) -> None:
    before = text(explored, "#numbers")
    change(explored, chosen("distance", "cosine"))
    assert text(explored, "#numbers") != before
    n = len(each(explored, "[name=feature]", "1"))
    change(explored, click("[name=feature]"))
    assert len(each(explored, "#features .chip", "1")) == n - 1
    bars = each(explored, "[data-chart=bars] .role-axis-label text", "e.textContent")
    names = [name for name in bars if not name.strip("−").replace(".", "").isdigit()]
    assert len(names) == n  # of the others, and the sum


def test_words_can_be_chosen_by_a_feature(explored: Any) -> None:
    assert each(explored, "#level-label", "e.offsetHeight") == [0]
    first = each(explored, "#where option", "e.value")[1]
    change(explored, chosen("where", first))
    assert each(explored, "#level option", "1")
    assert text(explored, "#facts") != ""
    assert explored.execute_script("return document.documentElement.dataset.state") == "shown"


def test_what_cannot_be_shown_is_said_and_everything_comes_back(explored: Any) -> None:
    change(explored, click("[data-system=gamma] .all") + ";" + click("[data-system=beta] .all"))
    assert "two systems or more" in text(explored, "#state")
    assert len(layers(explored)) == 9  # the last view stays
    change(explored, click("button[type=reset]"))
    assert len(layers(explored)) == 9
    assert all(each(explored, "[name=layer], [name=feature]", "e.checked"))


def test_a_cell_shows_its_pair_after_a_change_too(explored: Any) -> None:
    change(explored, click("[data-system=gamma] .all"))
    explored.execute_script("document.getElementById('row').value = 1")
    explored.execute_script("document.getElementById('row').dispatchEvent(new Event('change'))")
    settled(explored)
    assert text(explored, "#words-a") == "Inside alpha:1"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_both_colours(browser: Any, page: str, scheme: str) -> None:
    shown = opened(browser, page, size=PHONE, scheme=scheme)
    assert shown.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]
    assert shown.get_log("browser") == []
