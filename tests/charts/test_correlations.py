"""The figure of the correlations among features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from thinkalike.charts.correlations import correlation_chart


def test_the_cells_hold_the_values(tmp_path: Path) -> None:
    names = ["word_length", "tense", "one"]
    values = [1, -0.3, np.nan, -0.3, 1, np.nan, np.nan, np.nan, np.nan]
    frame = pd.DataFrame({"feature": np.repeat(names, 3), "other": names * 3, "correlation": values})
    chart = correlation_chart(frame, order=names)
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
