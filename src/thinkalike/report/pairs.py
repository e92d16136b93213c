"""Every pair of layers in compact form: what the page shows when a cell is clicked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from thinkalike.comparison.chart_tables import item_labels, unit_maps
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.files import plain
from thinkalike.labels import Floats, row_name, systems_of
from thinkalike.report.frames import row_importance
from thinkalike.report.geometry import cell_certainty
from thinkalike.types import Json, Value

_MAP_STEPS = 999  # word maps are at most a few hundred pixels wide


@dataclass(frozen=True)
class Pick:
    """A pair of layers worth a look."""

    label: str
    i: int
    j: int


def picks(comparison: Comparison) -> list[Pick]:
    """The extremes: most and least alike by features, and where features and geometry disagree most.

    Between systems; within the system when there is only one.
    """
    values = comparison.matrices[FEATURES].values
    candidates = _candidates(comparison)
    if not len(candidates):
        return []
    taus = values[candidates[:, 0], candidates[:, 1]]
    chosen = [("most alike", int(np.nanargmax(taus))), ("least alike", int(np.nanargmin(taus)))]
    geometry = geometric_measure(comparison)
    if geometry is not None:
        matrix = comparison.matrices[geometry]
        sign = -1.0 if matrix.kind == "distance" else 1.0
        others = sign * matrix.values[candidates[:, 0], candidates[:, 1]]
        gap = np.where(np.isfinite(taus) & np.isfinite(others), _ranks(taus) - _ranks(others), np.nan)
        chosen += [
            ("alike by features only", int(np.nanargmax(gap))),
            ("alike by geometry only", int(np.nanargmin(gap))),
        ]
    return [Pick(label, *map(int, candidates[k])) for label, k in chosen]


def geometric_measure(comparison: Comparison) -> str | None:
    """The matrix that stands beside the feature-based one: RSA, or the first other."""
    others = [name for name in comparison.matrices if name != FEATURES]
    return "rsa" if "rsa" in others else next(iter(others), None)


def pair_data(comparison: Comparison) -> Json:
    """Plain numbers for the page, as short as they can be written.

    Matrices are flat, row by row. What explains a pair, the page works out when it is asked for: from the
    importances, which are therefore not rounded.
    """
    matrix = comparison.matrices[FEATURES]
    flat: dict[str, tuple[Floats | None, int]] = {
        "p_block": (matrix.p_block, 6),  # to tell what is below 0.0001
        "low": (matrix.low, 3),
        "high": (matrix.high, 3),
        "ceiling": (matrix.ceiling, 3),
        "share": (comparison.explained_share, 4),
        "share_low": (None if comparison.explained_range is None else comparison.explained_range[0], 4),
        "share_high": (None if comparison.explained_range is None else comparison.explained_range[1], 4),
    }
    return {
        "names": [row_name(row) for row in comparison.rows],
        "systems": list(systems_of(comparison.rows)),
        "owner": [list(systems_of(comparison.rows)).index(system) for system, _ in comparison.rows],
        "importance": plain(row_importance(comparison)),
        "matrices": {name: _rounded(m.values.ravel(), 3) for name, m in comparison.matrices.items()},
        **{name: None if a is None else _rounded(a.ravel(), digits) for name, (a, digits) in flat.items()},
        "geometry": {
            name: {key: _rounded(values.ravel(), 4) for key, values in known.items()}
            for name, known in cell_certainty(comparison).items()
        },
        "words": _word_data(comparison),
    }


def _word_data(comparison: Comparison) -> Json | None:
    if comparison.word_maps is None:
        return None
    words, contexts = item_labels(comparison.word_maps, comparison.stimuli)
    points = np.rint(unit_maps(comparison.word_maps.coordinates) * _MAP_STEPS).astype(int)
    return {
        "word": words,
        "context": contexts,
        "steps": _MAP_STEPS,
        "points": points.reshape(len(points), -1).tolist(),
        "explained": _rounded(comparison.word_maps.explained, 3),
    }


def _candidates(comparison: Comparison) -> npt.NDArray[np.int64]:
    """Pairs i < j of layers of different systems; of different layers when there is one system."""
    i, j = np.triu_indices(len(comparison.rows), k=1)
    owner = np.array([system for system, _ in comparison.rows], dtype=object)
    between = owner[i] != owner[j]
    keep = between if between.any() else np.ones(len(i), dtype=bool)
    known = np.isfinite(comparison.matrices[FEATURES].values[i, j])
    return np.stack([i[keep & known], j[keep & known]], axis=1)


def _ranks(values: Floats) -> Floats:
    return rankdata(values, nan_policy="omit")


def _rounded(values: Floats, digits: int) -> Value:
    """Nested lists with None for what is not a number, and whole numbers without a point."""
    if values.ndim > 1:
        return [_rounded(row, digits) for row in values]
    return [_short(round(v, digits)) if np.isfinite(v) else None for v in values.tolist()]


def _short(value: float) -> float | int:
    return int(value) if value == int(value) else value
