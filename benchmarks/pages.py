"""Large reports in a browser: how soon they open, how many nodes they have, and whether they scroll.

Goal: 300 layers, and 40 systems, open in at most 2 s. `python -m benchmarks pages` writes
benchmarks/results/pages.json; it needs `chromium` and `chromedriver` on the path. With folders of runs as
arguments of `python -m benchmarks.pages`, their pages are measured instead and nothing is written.

A page is open when its script has said so and the browser has had nothing to do for a second: the time is
the end of the last long task (50 ms or more) before that, by the page's own clock. Processor time is that of
the browser's renderers, which other work on the machine does not change much. While the page is scrolled from
top to bottom, the time between frames says how smoothly: goal, 95 % of them below 50 ms.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "pages.json"
CASES = {"300 layers": (3, 100), "40 systems": (40, 6)}
"""Systems and layers of each"""
ROUNDS = 3
SMOOTH = 50
"""Milliseconds from frame to frame"""
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1366,768",
)
WATCH = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longTasks.push([task.startTime, task.duration]);
}).observe({type: "longtask", buffered: true});
"""
SCROLL = """
const done = arguments[0], frames = [], speed = 1.5; // pixels in a millisecond: a screen in half a second
let last = performance.now();
function step(now) {
  const passed = now - last, before = scrollY;
  last = now;
  frames.push(passed);
  scrollBy({top: Math.min(speed * passed, innerHeight), behavior: "instant"});
  if (scrollY > before || frames.length < 3) requestAnimationFrame(step);
  else done(frames.slice(1));
}
requestAnimationFrame(step);
"""


def main() -> None:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (n_systems, n_layers) in CASES.items():
            run = Path(folder, name.replace(" ", "-"))
            make_run(run, n_systems, n_layers)
            found[name] = measure(run / "index.html")
            print(f"{name}: {found[name]}", flush=True)
    RESULTS.write_text(json.dumps({"load": os.getloadavg()[0], "pages": found}, indent=1) + "\n")


def make_run(run: Path, n_systems: int, n_layers: int) -> None:
    """Vectors that drift over the layers from one feature of the sentences to another, and their report."""
    import thinkalike as ta
    from thinkalike.report import write_report

    warnings.simplefilter("ignore")
    stimuli = ta.Stimuli.from_grammar(24, seed=0)
    rng = np.random.default_rng(0)
    codes = [column.cat.codes.to_numpy() for _, column in stimuli.features.select_dtypes("category").items()]
    known = np.stack([np.asarray(code, dtype=float) for code in codes], axis=1)
    known = (known - known.mean(axis=0)) / known.std(axis=0)
    systems = {}
    for k in range(n_systems):
        early, late = rng.exponential(size=(2, known.shape[1]))
        depths = np.linspace(0, 1, n_layers)
        systems[f"model-{k}"] = {
            layer: known * ((1 - d) * early + d * late) + rng.normal(size=known.shape)
            for layer, d in enumerate(depths)
        }
    comparison = ta.compare(systems, stimuli, resamples=0, null=0, out=run)
    write_report(comparison, run)


def measure(page: Path) -> dict[str, object]:
    """Medians over rounds, each in a browser of its own."""
    rounds = [_round(page) for _ in range(ROUNDS)]
    middle = {key: round(statistics.median(one[key] for one in rounds), 2) for key in rounds[0]}
    return {"MB": round(page.stat().st_size / 1e6, 2), **middle}


def _round(page: Path) -> dict[str, float]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or sys.exit("chromium is not on the path")
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            browser.set_script_timeout(600)
            browser.get("about:blank")
            browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
            browser.get(page.absolute().as_uri())
            opened = _quiet(browser)
            at_work = renderer_seconds(profile)
            nodes = browser.execute_script("return document.querySelectorAll('*').length")
            frames = np.array(browser.execute_async_script(SCROLL))
            return {
                "seconds to open": opened / 1000,
                "processor seconds to open": at_work,
                "nodes": nodes,
                "frames while scrolling": len(frames),
                "share of frames below 50 ms": float((frames < SMOOTH).mean()),
                "95 % of the frames below (ms)": float(np.quantile(frames, 0.95)),
                "longest frame (ms)": float(frames.max()),
                "processor seconds to scroll": renderer_seconds(profile) - at_work,
            }
        finally:
            browser.quit()


def renderer_seconds(profile: str) -> float:
    """Processor seconds of the renderers of the browser with that profile; Linux only."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if b"--type=renderer" in command and profile.encode() in command:
                ticks += sum(map(int, (process / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _quiet(browser: Any) -> float:
    """When the last long task ended, once nothing has happened for a second."""
    while True:
        ready, now, tasks, loaded = browser.execute_script(
            "return [document.documentElement.dataset.ready === 'true', performance.now(), window.longTasks, "
            "performance.getEntriesByType('navigation')[0].loadEventEnd]"
        )
        last = max([loaded, *(at + long for at, long in tasks)])
        if ready and now - last > 1000:
            return float(last)
        time.sleep(0.1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for argument in sys.argv[1:]:
            print(argument, measure(Path(argument, "index.html")))
    else:
        main()
