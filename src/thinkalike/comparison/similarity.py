"""`SimilarityMatrix`: every layer of every system against every other, by one measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from thinkalike.comparison.inference import BlockTest
from thinkalike.comparison.rows import Floats, Layer, Row, find_row, row_name, span_of, systems_of
from thinkalike.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False)
class SimilarityMatrix:
    """Values over pairs of layers, with p-values and ranges where the measure has them."""

    measure: str
    """`"features"` for the weighted τ of importance profiles, or a name in `MEASURES`"""
    rows: tuple[Row, ...]
    """(system, layer) of each row and column; the layers of a system stand together"""
    values: Floats = field()
    """(n_rows, n_rows)"""
    kind: Literal["similarity", "distance"] = "similarity"
    p: Floats | None = field(default=None)
    """(n_rows, n_rows) for one pair of layers chosen beforehand"""
    p_block: Floats | None = field(default=None)
    """(n_rows, n_rows) corrected for having looked at every pair of layers of these two systems"""
    low: Floats | None = field(default=None)
    high: Floats | None = field(default=None)
    """(n_rows, n_rows) stability range over resamples of the sentences; not a confidence interval"""
    blocks: tuple[BlockTest, ...] = ()
    """One test per pair of systems, and one within each system"""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = (len(self.rows), len(self.rows))
        for name in ("values", "p", "p_block", "low", "high"):
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise InvalidInput(f"{name} of a {self.measure} matrix has shape {array.shape}, not {shape}.")

    def __repr__(self) -> str:
        return f"SimilarityMatrix({self.measure}: {len(self.rows)} layers of {', '.join(self.systems)})"

    def _repr_html_(self) -> str:
        return self.table().to_html(float_format=lambda v: f"{v:.2f}", border=0)

    @property
    def systems(self) -> tuple[str, ...]:
        return systems_of(self.rows)

    def __getitem__(self, pair: tuple[str, Layer, str, Layer]) -> float:
        """`matrix["bert", 4, "gpt2", 8]`."""
        a, i, b, j = pair
        return float(self.values[find_row(self.rows, a, i), find_row(self.rows, b, j)])

    def block(self, a: str, b: str) -> Floats:
        """The values between the layers of `a` (rows) and of `b` (columns)."""
        return self.values[span_of(self.rows, a), span_of(self.rows, b)]

    def block_test(self, a: str, b: str) -> BlockTest | None:
        return next((t for t in self.blocks if {t.a, t.b} == {a, b}), None)

    def dissimilarities(self) -> Floats:
        """A matrix for maps: distances as they are, similarities as 1 − value."""
        return self.values if self.kind == "distance" else 1.0 - self.values

    def table(self) -> pd.DataFrame:
        names = [row_name(row) for row in self.rows]
        return pd.DataFrame(self.values, index=names, columns=names)

    def to_frame(self) -> pd.DataFrame:
        """One row per ordered pair of layers."""
        n = len(self.rows)
        systems = np.array([row[0] for row in self.rows], dtype=object)
        layers = np.array([row[1] for row in self.rows], dtype=object)
        columns: dict[str, Any] = {
            "system_a": np.repeat(systems, n),
            "layer_a": np.repeat(layers, n),
            "system_b": np.tile(systems, n),
            "layer_b": np.tile(layers, n),
            "value": self.values.ravel(),
        }
        for name in ("p", "p_block", "low", "high"):
            array = getattr(self, name)
            if array is not None:
                columns[name] = array.ravel()
        return pd.DataFrame(columns)
