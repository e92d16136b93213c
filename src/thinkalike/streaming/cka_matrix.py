"""`CKAMatrix`: what streaming CKA found, how sure it is, and what to beware of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from thinkalike.addresses import place
from thinkalike.errors import UnknownName
from thinkalike.labels import Row
from thinkalike.measures.inputs import Array

if TYPE_CHECKING:
    import altair as alt

VALUES = ("value", "standard_error")


@dataclass(frozen=True, eq=False, repr=False)
class CKAMatrix:
    """CKA between all layers of all systems, over a stream of batches.

    Attributes
    ----------
    rows
        (system, layer) of each row and column.
    values, standard_errors : (n_rows, n_rows)
    top_share : (n_rows,)
        Share of each layer's HSIC with itself in the pairs of 1 % of the items; about 0.02 if all are alike.
    trace
        One row per batch: batches, items, mean (of the values between systems, or off the diagonal of one),
        and the largest standard_error.
    units
        What the standard errors are over, and how many: {"documents": 120}.
    stopped
        "precision", "max_batches", or "end" of the text.
    cautions
        Sentences for people.
    settings
        What changed the numbers, by name.
    measure, kind
        "cka", a similarity.

    Examples
    --------
    >>> import thinkalike as ta
    >>> from thinkalike.systems import bundled
    >>> found = ta.stream_cka(["nano-gelu-3l"], bundled.sample_text(), length=32, max_batches=3)
    >>> found.stopped, found.n_items
    ('max_batches', 96)
    """

    rows: tuple[Row, ...]
    values: Array = field()
    standard_errors: Array = field()
    top_share: Array = field()
    trace: pd.DataFrame = field()
    units: Mapping[str, int]
    stopped: Literal["precision", "max_batches", "end"]
    cautions: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    measure: str = "cka"
    kind: Literal["similarity", "distance"] = "similarity"

    def __repr__(self) -> str:
        unit, count = next(iter(self.units.items()))
        return (
            f"CKAMatrix({len(self.rows)} layers of {', '.join(self.systems)}; {self.n_items} items in "
            f"{len(self.trace)} batches of {count} {unit})"
        )

    def _repr_html_(self) -> str:
        return self.table().to_html(float_format=lambda value: f"{value:.2f}", border=0)

    @property
    def systems(self) -> tuple[str, ...]:
        """In the order of the rows."""
        return tuple(dict.fromkeys(system for system, _ in self.rows))

    @property
    def n_items(self) -> int:
        """How many rows were read in all: tokens, words or sequences."""
        return int(self.trace["items"].iloc[-1])

    def block(self, a: str, b: str) -> Array:
        """The values between the layers of `a` (rows) and of `b` (columns)."""
        return self.values[np.ix_(self._places(a), self._places(b))]

    def error_block(self, a: str, b: str) -> Array:
        """The standard errors of `block`."""
        return self.standard_errors[np.ix_(self._places(a), self._places(b))]

    def table(self) -> pd.DataFrame:
        """Layers × layers, named `system:layer`."""
        names = [f"{system}:{layer}" for system, layer in self.rows]
        return pd.DataFrame(self.values, index=names, columns=names)

    def to_frame(self) -> pd.DataFrame:
        """One row per ordered pair of layers."""
        n = len(self.rows)
        systems, layers = ([str(row[k]) for row in self.rows] for k in (0, 1))
        return pd.DataFrame(
            {
                "system_a": np.repeat(systems, n),
                "layer_a": np.repeat(layers, n),
                "system_b": np.tile(systems, n),
                "layer_b": np.tile(layers, n),
                "value": self.values.ravel(),
                "standard_error": self.standard_errors.ravel(),
            }
        )

    def layer_frame(self) -> pd.DataFrame:
        """One row per layer: how much of its HSIC few items carry."""
        systems, layers = ([str(row[k]) for row in self.rows] for k in (0, 1))
        return pd.DataFrame({"system": systems, "layer": layers, "top_share": self.top_share})

    def plot(self, *, theme: str = "light") -> alt.LayerChart:
        """The heatmap, with the boundaries between systems."""
        from thinkalike.charts.heatmap import similarity_matrix
        from thinkalike.charts.theme import get_theme, themed

        n = len(self.rows)
        names = [f"{system}:{layer}" for system, layer in self.rows]
        data = pd.DataFrame(
            {
                "i": np.repeat(np.arange(n), n),
                "j": np.tile(np.arange(n), n),
                "a": np.repeat(names, n),
                "b": np.tile(names, n),
                "value": self.values.ravel(),
            }
        )
        systems = [
            (name, [str(layer) for system, layer in self.rows if system == name]) for name in self.systems
        ]
        chart = similarity_matrix(
            data.dropna(),
            systems=systems,
            domain=(0.0, 1.0),
            label="CKA",
            diverging=False,
            every=-(-n // 30),
            theme=get_theme(theme),
        )
        return themed(chart, get_theme(theme))

    def plot_convergence(self, *, theme: str = "light") -> alt.VConcatChart:
        """The mean and the largest standard error as batches came in."""
        from thinkalike.charts.convergence import convergence
        from thinkalike.charts.theme import get_theme, themed

        precision = self.settings.get("precision")
        return themed(convergence(self.trace, precision=precision, theme=get_theme(theme)), get_theme(theme))

    def save(self, folder: str | Path) -> Path:
        """Write cka, layers and convergence as Parquet and CSV, and settings.json, into `folder`."""
        from thinkalike.files import write_json, write_tables
        from thinkalike.provenance import RUNNING_MODELS, versions

        folder = place(folder)
        tables = {"cka": self.to_frame(), "layers": self.layer_frame(), "convergence": self.trace}
        about = {
            "tables": {name: write_tables(table, folder / name) for name, table in tables.items()},
            "measure": self.measure,
            "kind": self.kind,
            "systems": self.systems,
            "rows": self.rows,
            "units": dict(self.units),
            "stopped": self.stopped,
            "cautions": self.cautions,
            "settings": dict(self.settings),
            "versions": versions(RUNNING_MODELS),
        }
        write_json(about, folder / "settings.json")
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> CKAMatrix:
        """What `save` wrote."""
        from thinkalike.files import read_json, read_table, reading

        file, again = place(folder) / "settings.json", "stream it again"
        about = read_json(file, way_out=again)
        with reading(file, again):
            tables = {
                name: read_table(file.with_name(f"{name}.parquet"), seal=seal, way_out=again)
                for name, seal in about["tables"].items()
            }
            n = len(about["rows"])
            square = {name: tables["cka"][name].to_numpy(np.float64).reshape(n, n) for name in VALUES}
            return cls(
                rows=tuple((system, layer) for system, layer in about["rows"]),
                values=square["value"],
                standard_errors=square["standard_error"],
                top_share=tables["layers"]["top_share"].to_numpy(np.float64),
                trace=tables["convergence"],
                cautions=tuple(about["cautions"]),
                **{name: about[name] for name in ("units", "stopped", "settings", "measure", "kind")},
            )

    def _places(self, system: str) -> list[int]:
        if system not in self.systems:
            raise UnknownName.among("system", system, self.systems)
        return [k for k, row in enumerate(self.rows) if row[0] == system]
