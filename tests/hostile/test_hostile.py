"""Nothing hostile may end in a crash, a hang, or other numbers: `make test-hostile`.

One test for each area of attack. The figures are printed at the end and written to --hostile-json.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.areas import AREAS, Bench
from tests.hostile.verdicts import Case

pytestmark = pytest.mark.hostile


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    options = request.config
    folder = tmp_path_factory.mktemp("hostile")
    with Bench(folder, seed=options.getoption("--hostile-seed"), workers=2) as made:
        yield made


@pytest.mark.parametrize("area", AREAS)
def test_nothing_bad_comes_of_it(
    area: str, bench: Bench, hostile_cases: dict[str, list[Case]], record_property: object
) -> None:
    hostile_cases[area] = AREAS[area](bench)
    bad = [
        f"{case.name}: {case.reason}\n    {case.command}"
        for case in hostile_cases[area]
        if case.verdict == "bad"
    ]
    assert not bad, f"{len(bad)} of {len(hostile_cases[area])} cases:\n" + "\n".join(bad)


def test_as_much_is_tried_as_is_promised(bench: Bench, hostile_cases: dict[str, list[Case]]) -> None:
    promised = {"kill -9": 60, "damaged files": 150, "malformed inputs": 400}
    few = {
        area: len(hostile_cases[area])
        for area, n in promised.items()
        if 0 < len(hostile_cases.get(area, [])) < n
    }
    assert not few
