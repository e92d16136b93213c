"""The built package carries the weights: what works here works from an installed wheel."""

from __future__ import annotations

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from thinkalike.systems import bundled
from thinkalike.systems.bundled.bundle import SAMPLE_BASELINES

ROOT = Path(__file__).parents[3]


def test_every_file_of_the_bundle_goes_into_the_wheel() -> None:
    included = {Path(file.path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    wanted = {bundled.sample_text(), SAMPLE_BASELINES}
    for name in bundled.names(revisions=True):
        folder = bundled.resolve(name)
        assert folder is not None
        wanted |= {path for path in folder.iterdir() if path.is_file()}
    assert wanted <= included
