"""Options of the hostile tests, and their figures at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.figures import figures_of, write_figures
from tests.hostile.verdicts import Case, table

CASES = pytest.StashKey[dict[str, list[Case]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--hostile-seed", type=int, default=0, help="Of moments and damages.")
    parser.addoption("--hostile-json", type=Path, default=None, help="Write the figures to this file.")


@pytest.fixture(scope="session")
def hostile_cases(request: pytest.FixtureRequest) -> dict[str, list[Case]]:
    """What every area found, for the figures."""
    return request.config.stash.setdefault(CASES, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    cases = config.stash.get(CASES, {})
    if not cases:
        return
    terminalreporter.section("hostile")
    terminalreporter.write_line(table(figures_of(cases)))
    target = config.getoption("--hostile-json", default=None)
    if target is not None:
        write_figures(cases, config.getoption("--hostile-seed"), target)
