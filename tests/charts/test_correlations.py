"""The figure of the correlations among features."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from thinkalike.stimuli.feature_correlations import FeatureCorrelations


def test_the_cells_hold_the_values(tmp_path: Path) -> None:
    values = np.array([[1, -0.3, np.nan], [-0.3, 1, np.nan], [np.nan, np.nan, np.nan]])
    names = ("word_length", "tense", "one")
    chart = FeatureCorrelations(names, values, np.ones(3), ("one",), (), 9).plot()
    description = chart.to_dict()
    (rows,) = description["datasets"].values()
    assert {(row["a"], row["b"]): row["correlation"] for row in rows} == {
        ("word length", "word length"): 1,
        ("word length", "tense"): -0.3,
        ("tense", "word length"): -0.3,
        ("tense", "tense"): 1,
    }
    path = tmp_path / "chart.png"
    chart.save(str(path))
    assert path.read_bytes().startswith(b"\x89PNG")
