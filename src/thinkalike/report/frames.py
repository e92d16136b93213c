"""A whole comparison as the tables that its charts draw; those of single results are in `chart_tables`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from thinkalike.charts.block_charts import OBSERVED, UNTRAINED
from thinkalike.comparison.chart_tables import (
    TOTAL,
    by_importance,
    cell_table,
    colour_order,
    importance_domain,
    important_in_one,
    layer_map_table,
    profile_table,
    score_table,
    system_map_table,
    with_names,
)
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.feature_similarity import stacked_importance
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.inference.block_tests import BlockTest
from thinkalike.labels import Floats
from thinkalike.wording import q_text, readable

MOST_PAIRS = 20
"""Of systems, in their chart: the most alike; the table has all"""


def feature_order(comparison: Comparison) -> list[str]:
    """All features in the order that gives each its colour."""
    return colour_order(*_all_importances(comparison))


def legend_order(comparison: Comparison) -> list[str]:
    """All features, the most important over all layers first."""
    return by_importance(*_all_importances(comparison))


def _all_importances(comparison: Comparison) -> tuple[tuple[str, ...], Floats]:
    profiles = list(comparison.profiles.values())
    return profiles[0].features, np.concatenate([profile.mean_importance for profile in profiles])


def row_importance(comparison: Comparison) -> Floats:
    """(n_rows, n_features) over the features of the comparison."""
    return stacked_importance(list(comparison.profiles.values()), comparison.features)


def chart_frames(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """The tables of all charts that do not depend on a chosen pair, except the cells of the matrices."""
    frames = {"correlations": correlation_frame(comparison)}
    blocks = blocks_between(comparison)
    if blocks:
        frames["systems"] = block_frame(blocks[:MOST_PAIRS])
        frames["system-map"] = system_map_table(comparison.trajectories)
    profiles = [profile_table(profile) for profile in comparison.profiles.values()]
    domain = importance_domain(profiles)
    for k, (profile, table) in enumerate(zip(comparison.profiles.values(), profiles, strict=True)):
        frames[f"profile-{k}"] = with_names(table, domain)
        frames[f"score-{k}"] = score_table(profile)
    for measure, layers in comparison.layer_maps.items():
        frames[f"layers-{measure}"] = layer_map_table(layers)
    return frames


def cell_frames(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """The cells of every matrix."""
    return {f"matrix-{measure}": cell_table(matrix) for measure, matrix in comparison.matrices.items()}


def blocks_between(comparison: Comparison) -> list[BlockTest]:
    """The tests between different systems, the most alike first."""
    between = [block for block in comparison.matrices[FEATURES].blocks if block.a != block.b]
    return sorted(between, key=lambda block: -block.mean)


def pair_label(block: BlockTest) -> str:
    return f"{block.a} × {block.b}"


def block_frame(blocks: Sequence[BlockTest]) -> pd.DataFrame:
    """Up to two rows per pair of systems: observed, untrained copies."""
    rows = []
    for block in blocks:
        note = "not tested" if np.isnan(block.q) else q_text(block.q)
        ends = {"low": block.low, "high": block.high} if np.isfinite(block.low) else {}
        for kind, value in ((OBSERVED, block.mean), (UNTRAINED, block.control)):
            if np.isfinite(value):
                row = {"pair": pair_label(block), "kind": kind, "value": value, "note": note}
                rows.append(row | ends if kind == OBSERVED else row)
    return pd.DataFrame(rows, columns=["pair", "kind", "value", "note", "low", "high"])


def block_domain(blocks: pd.DataFrame) -> tuple[float, float]:
    """From a little below the lowest value, and 0, to 1."""
    lowest = np.nanmin(blocks[["value", "low"]].to_numpy(dtype=float))
    return float(min(-0.1, np.floor(lowest * 10) / 10)), 1.0


def correlation_frame(comparison: Comparison) -> pd.DataFrame:
    """The lower triangle."""
    names = [str(name) for name in comparison.correlations]
    values = comparison.correlations.to_numpy()
    rows = [
        {"a": readable(names[i]), "b": readable(names[j]), "correlation": float(values[i, j])}
        for i in range(len(names))
        for j in range(i)
    ]
    return pd.DataFrame(rows, columns=["a", "b", "correlation"]).dropna(ignore_index=True)


def scatter_frame(comparison: Comparison, i: int, j: int) -> pd.DataFrame:
    """Importances in two layers."""
    importance = row_importance(comparison)
    names = [readable(name) for name in comparison.features]
    matters = important_in_one(importance[i], importance[j])
    return pd.DataFrame({"feature": names, "a": importance[i], "b": importance[j], "matters": matters})


def bar_frame(comparison: Comparison, i: int, j: int) -> pd.DataFrame:
    """Contributions to the τ_w of two layers, and their sum."""
    parts = comparison.contributions[i, j]
    names = [readable(name) for name in comparison.features]
    importance = row_importance(comparison)
    return pd.DataFrame(
        {
            "feature": [*names, TOTAL],
            "contribution": [*parts, parts.sum()],
            "matters": [*important_in_one(importance[i], importance[j]), True],
        }
    )


def contribution_domain(comparison: Comparison) -> tuple[float, float]:
    """One axis for the bars of every pair, which holds τ_w too."""
    parts = comparison.contributions
    low = min(-0.1, float(np.nanmin(parts)), float(np.nanmin(parts.sum(axis=2))))
    return low - 0.02, 1.02
