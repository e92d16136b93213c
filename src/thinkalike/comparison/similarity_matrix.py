"""`SimilarityMatrix`: every layer of every system against every other, by one measure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from thinkalike.addresses import place
from thinkalike.errors import InvalidInput
from thinkalike.inference.block_tests import BlockTest
from thinkalike.inference.geometry_tests import GeometryTest
from thinkalike.inference.ranges import jackknife_range
from thinkalike.labels import Floats, Layer, Row, find_row, row_name, span_of, systems_of

if TYPE_CHECKING:
    import altair as alt


OF_CELLS = ("p_block", "low", "high", "across", "ceiling", "threshold", "calibrated")
"""What a matrix may know of every pair of layers besides its value"""
FEATURES = "features"
"""The name of the feature-based measure, τ_w of importance profiles"""


@dataclass(frozen=True, eq=False, repr=False)
class SimilarityMatrix:
    """Values over pairs of layers, with p-values and ranges where the measure has them.

    Attributes
    ----------
    kind : {"similarity", "distance"}
        Whether larger values are layers more alike.
    low, high : (n_rows, n_rows), optional
    settings : what changed the numbers, by name

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.comparison import SimilarityMatrix
    >>> rows = (("bert", 0), ("bert", 1), ("gpt2", 0))
    >>> matrix = SimilarityMatrix("cka", rows, np.array([[1, 0.8, 0.2], [0.8, 1, 0.4], [0.2, 0.4, 1]]))
    >>> matrix["bert", 1, "gpt2", 0]
    0.4
    >>> round(matrix.block_mean("bert", "gpt2"), 6)
    0.3
    """

    measure: str
    """`"features"` for the weighted τ of importance profiles, or a name in `MEASURES`"""
    rows: tuple[Row, ...]
    """(system, layer) of each row and column; the layers of a system stand together"""
    values: Floats = field()
    """(n_rows, n_rows)"""
    kind: Literal["similarity", "distance"] = "similarity"
    p_block: Floats | None = field(default=None)
    """(n_rows, n_rows) from relabelled strengths, corrected for having looked at every pair of layers of
    these two systems; None where nothing was tested"""
    low: Floats | None = field(default=None)
    high: Floats | None = field(default=None)
    """(n_rows, n_rows) 95 % range over other sentences; docs/certainty.md says what it holds"""
    across: Floats | None = field(default=None)
    """(n_rows, n_rows) for RSA: the same with other sentences on one side, which the ceiling is of"""
    ceiling: Floats | None = field(default=None)
    """(n_rows, n_rows) what two layers alike in truth would reach with so many sentences, the geometric mean
    of their reliabilities"""
    threshold: Floats | None = field(default=None)
    """(n_rows, n_rows) what 95 % of the values with exchanged sentences stay below (above, for distances)"""
    calibrated: Floats | None = field(default=None)
    """(n_rows, n_rows) 0 up to that threshold, 1 for the best there is (Gröger et al. 2026)"""
    blocks: tuple[BlockTest, ...] = ()
    """By features: one test per pair of systems, and one within each system"""
    tests: tuple[GeometryTest, ...] = ()
    """The same for a geometric measure"""
    left_out: Floats | None = field(default=None)
    """(n_parts, n_rows, n_rows) without each part of the sentences"""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = (len(self.rows), len(self.rows))
        for name in ("values", *OF_CELLS):
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise InvalidInput(f"{name} of a {self.measure} matrix has shape {array.shape}, not {shape}.")

    def __repr__(self) -> str:
        return f"SimilarityMatrix({self.measure}: {len(self.rows)} layers of {', '.join(self.systems)})"

    def _repr_html_(self) -> str:
        return self.table().to_html(float_format=lambda v: f"{v:.2f}", border=0)

    @property
    def systems(self) -> tuple[str, ...]:
        """In the order of the rows."""
        return systems_of(self.rows)

    def __getitem__(self, pair: tuple[str, Layer, str, Layer]) -> float:
        """`matrix["bert", 4, "gpt2", 8]`."""
        a, i, b, j = pair
        return float(self.values[find_row(self.rows, a, i), find_row(self.rows, b, j)])

    def block(self, a: str, b: str) -> Floats:
        """The values between the layers of `a` (rows) and of `b` (columns)."""
        return self.values[span_of(self.rows, a), span_of(self.rows, b)]

    def block_mean(self, a: str, b: str) -> float:
        """The mean value between the layers of `a` and of `b`; within a system without the diagonal."""
        values = self.block(a, b)
        if a == b:
            values = values[~np.eye(len(values), dtype=bool)]
        values = values[np.isfinite(values)]
        return float(values.mean()) if len(values) else float("nan")

    def block_test(self, a: str, b: str) -> BlockTest | None:
        """The test of the block of `a` and `b`, where the measure has one."""
        return next((t for t in self.blocks if {t.a, t.b} == {a, b}), None)

    def geometry_test(self, a: str, b: str) -> GeometryTest | None:
        """The same for a geometric measure."""
        return next((t for t in self.tests if {t.a, t.b} == {a, b}), None)

    def clearly_apart(self, first: tuple[str, str], second: tuple[str, str]) -> bool | None:
        """Whether two pairs of systems have different means beyond other sentences; None: not known.

        Both means lose the same sentences, so that what they share cancels.
        """
        if self.left_out is None:
            return None
        means = [
            np.array([replace(self, values=v).block_mean(*pair) for v in (self.values, *self.left_out)])
            for pair in (first, second)
        ]
        low, high, _ = jackknife_range((means[0] - means[1])[0], (means[0] - means[1])[1:])
        return bool(low > 0 or high < 0)

    def dissimilarities(self) -> Floats:
        """A matrix for maps: distances as they are, similarities as 1 − value."""
        return self.values if self.kind == "distance" else 1.0 - self.values

    def plot(self, *, theme: str | None = "light") -> alt.LayerChart:
        """Every layer against every other (Figure 2 of Salle et al. 2024); theme None: to be joined."""
        from thinkalike.comparison.plots import draw, matrix_chart

        return draw(matrix_chart, self, theme=theme)

    def table(self) -> pd.DataFrame:
        """Layers × layers, named `system:layer`."""
        names = [row_name(row) for row in self.rows]
        return pd.DataFrame(self.values, index=names, columns=names)

    def to_frame(self) -> pd.DataFrame:
        """One row per ordered pair of layers."""
        columns: dict[str, object] = pair_columns(self.rows) | {"value": self.values.ravel()}
        for name in OF_CELLS:
            array = getattr(self, name)
            if array is not None:
                columns[name] = array.ravel()
        return pd.DataFrame(columns)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `path`.parquet and .csv (one row per pair of layers), and `path`.json."""
        from thinkalike.comparison.results import save_matrix

        return save_matrix(self, place(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SimilarityMatrix:
        """What `save` wrote."""
        from thinkalike.comparison.results import load_matrix

        return load_matrix(place(path))


def pair_columns(rows: Sequence[Row]) -> dict[str, object]:
    """The first columns of a tidy table over ordered pairs of rows."""
    n = len(rows)
    systems = np.array([row[0] for row in rows], dtype=object)
    layers = np.array([row[1] for row in rows], dtype=object)
    return {
        "system_a": np.repeat(systems, n),
        "layer_a": np.repeat(layers, n),
        "system_b": np.tile(systems, n),
        "layer_b": np.tile(layers, n),
    }
