"""A real browser for tests of pages: opening, waiting, asking."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-device-scale-factor=1",
)
LAPTOP, PHONE = (1366, 768), (390, 844)
ALL_CHARTS = "if (typeof Charts !== 'undefined') Charts.drawAll()"
"""Also those that nobody has scrolled to"""


def started(profile: Path) -> Iterator[Any]:
    """Chromium without a window, and without anything that would fetch."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or pytest.fail("chromium is not on the path")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def opened(
    browser: Any, address: str, *, size: tuple[int, int] = LAPTOP, scheme: str = "light", lazily: bool = False
) -> Any:
    """The page with all its charts drawn, or `lazily` as a reader finds it; logs begin when it is opened."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    set_scheme(browser, scheme)
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(address)
    until(lambda: browser.execute_script("return document.documentElement.dataset.ready") == "true")
    if not lazily:
        browser.execute_script(ALL_CHARTS)
        settled(browser)
    return browser


def set_scheme(browser: Any, scheme: str) -> None:
    features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    named = [{"name": name, "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": named})


def settled(browser: Any) -> None:
    """Every chart is drawn, and one more frame has passed."""
    charts = "[...document.querySelectorAll('.chart')]"
    drawn = f"return {charts}.every((c) => !c.clientWidth || c.querySelector('svg, canvas'))"
    until(lambda: browser.execute_script(drawn))
    until(lambda: not browser.execute_script("return typeof Charts !== 'undefined' && Charts.atWork()"))
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 30))")


def requested(browser: Any) -> list[str]:
    """What was fetched since the logs were last read, the page itself included; data in the page aside."""
    entries = [entry["message"] for entry in browser.get_log("performance")]
    sent = [message for message in entries if '"Network.requestWillBeSent"' in message]
    return [message for message in sent if '"url":"data:' not in message]


def text(browser: Any, selector: str) -> str:
    return str(browser.execute_script("return document.querySelector(arguments[0]).textContent", selector))


def each(browser: Any, selector: str, value: str) -> list[Any]:
    """An expression in `e`, for every element that a selector finds."""
    script = f"return [...document.querySelectorAll(arguments[0])].map((e) => {value})"
    return list(browser.execute_script(script, selector))


def saved(page: Any, selector: str, kind: str) -> tuple[str, str]:
    """Name and address of the file that a button offers."""
    script = """
        const done = arguments[2];
        HTMLAnchorElement.prototype.click = function () { done([this.download, this.href]); };
        const place = document.querySelector(arguments[0]).closest(".saved").querySelector(".save");
        [...place.querySelectorAll("button")].find((b) => b.textContent === arguments[1]).click();
    """
    name, address = page.execute_async_script(script, selector, kind)
    return name, address
