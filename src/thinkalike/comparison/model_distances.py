"""Distances between whole models, from a matrix over their layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import pandas as pd
from scipy.spatial.distance import squareform

from thinkalike.comparison.maps import smacof
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.labels import Floats, Layer, Row, systems_of

if TYPE_CHECKING:
    import altair as alt

Alignment = Literal["depth", "warped"]
ALIGNMENTS = ("depth", "warped")
Matching = tuple[tuple[Layer, Layer], ...]


class LayerMatrix(Protocol):
    """What `similarity` and `stream_cka` give: values over all pairs of layers."""

    @property
    def measure(self) -> str: ...
    @property
    def rows(self) -> tuple[Row, ...]: ...
    @property
    def values(self) -> Floats: ...
    @property
    def kind(self) -> Literal["similarity", "distance"]: ...


@dataclass(frozen=True, eq=False, repr=False)
class ModelDistances:
    """How far apart whole models are."""

    systems: tuple[str, ...]
    values: Floats = field()
    """(n_systems, n_systems)"""
    measure: str
    """Of the layers"""
    align: Alignment
    clipped: int
    """Similarities beyond [−1, 1] that were cut there before their arccos was taken"""
    paths: Mapping[tuple[str, str], Matching] = field(default_factory=dict)
    """(a, b) → the pairs of layers that were matched, by name"""

    def __repr__(self) -> str:
        return f"ModelDistances({self.measure}, {self.align}: {', '.join(self.systems)})"

    def to_frame(self) -> pd.DataFrame:
        """One row per pair of models."""
        first, second = np.triu_indices(len(self.systems), k=1)
        names = np.array(self.systems, dtype=object)
        return pd.DataFrame(
            {"system_a": names[first], "system_b": names[second], "distance": self.values[first, second]}
        )

    def coordinates(self) -> tuple[Floats, float]:
        """A map of the models (n_systems, 2) by multidimensional scaling, and its stress-1."""
        return smacof(self.values)

    def plot(self, *, groups: Mapping[str, str] | None = None, theme: str = "light") -> alt.LayerChart:
        """The map of the models, coloured by group."""
        from thinkalike.charts.group_charts import model_map
        from thinkalike.charts.theme import get_theme, themed

        coordinates, stress = self.coordinates()
        data = pd.DataFrame({"system": self.systems, "x": coordinates[:, 0], "y": coordinates[:, 1]})
        data["group"] = [(groups or {}).get(name, "models") for name in self.systems]
        title = f"Models by {self.measure} (stress {stress:.2f})"
        return themed(model_map(data, title=title, theme=get_theme(theme)), get_theme(theme))

    def save(self, path: str | Path) -> Path:
        """Write `path`.parquet, `path`.csv and `path`.json."""
        from thinkalike.files import write_json, write_tables
        from thinkalike.provenance import versions

        path = Path(path)
        about: dict[str, object] = {"seal of the table": write_tables(self.to_frame(), path)}
        about |= {"measure": self.measure, "align": self.align, "clipped": self.clipped}
        about |= {"systems": self.systems, "versions": versions()}
        about["paths"] = [[a, b, matched] for (a, b), matched in self.paths.items()]
        write_json(about, path.with_name(f"{path.name}.json"))
        return path

    @classmethod
    def load(cls, path: str | Path) -> ModelDistances:
        """What `save` wrote."""
        from thinkalike.files import read_json, read_table, reading

        path, again = Path(path), "compute the distances again"
        file = path.with_name(f"{path.name}.json")
        about = read_json(file, way_out=again)
        with reading(file, again):
            seal = about["seal of the table"]
            table = read_table(path.with_name(f"{path.name}.parquet"), seal=seal, way_out=again)
            return cls(
                systems=tuple(about["systems"]),
                values=squareform(table["distance"].to_numpy(np.float64)),
                paths={(a, b): tuple((i, j) for i, j in matched) for a, b, matched in about["paths"]},
                **{name: about[name] for name in ("measure", "align", "clipped")},
            )


def model_distances(matrix: LayerMatrix, *, align: Alignment = "depth") -> ModelDistances:
    """Distances between the models of a matrix over layers, blocks only: the embeddings are left out.

    A similarity s of two layers counts as the angle arccos s, a distance as it is.

    Parameters
    ----------
    align
        "depth": √Σ_i d_ii² over the blocks of two models of equal depth (Brown et al. 2023, eq. 2). "warped":
        the root *mean* of d² along the monotone matching of their blocks with the least Σd² (dynamic time
        warping; Sakoe and Chiba 1978), for models of any depth: matchings differ in length.
    """
    if align not in ALIGNMENTS:
        raise UnknownName.among("alignment", align, ALIGNMENTS)
    angles, clipped = layer_distances(matrix)
    places = block_places(matrix.rows)
    systems = tuple(places)
    values, paths = np.zeros((len(systems), len(systems))), {}
    for i, a in enumerate(systems):
        for j, b in enumerate(systems[:i]):
            cost = angles[np.ix_(places[b], places[a])] ** 2
            steps = _equal_depth(cost, b, a) if align == "depth" else best_matching(cost)
            total = sum(cost[step] for step in steps)
            values[i, j] = values[j, i] = np.sqrt(total if align == "depth" else total / len(steps))
            layers = [[matrix.rows[k][1] for k in places[system]] for system in (b, a)]
            paths[b, a] = tuple((layers[0][x], layers[1][y]) for x, y in steps)
    return ModelDistances(systems, values, matrix.measure, align, clipped, paths)


def layer_distances(matrix: LayerMatrix) -> tuple[Floats, int]:
    """The matrix as distances, and how many similarities had to be cut to [−1, 1] for it."""
    if matrix.kind == "distance":
        return matrix.values, 0
    outside = int((np.abs(matrix.values) > 1 + 1e-9).sum())
    return np.arccos(np.clip(matrix.values, -1, 1)), outside


def block_places(rows: tuple[Row, ...]) -> dict[str, list[int]]:
    """System → the places of its blocks. Layers 1, 2, … of a model are blocks; named layers all count."""
    places: dict[str, list[int]] = {}
    for system in systems_of(rows):
        own = [k for k, row in enumerate(rows) if row[0] == system]
        blocks = [k for k in own if isinstance(rows[k][1], int) and int(rows[k][1]) > 0]
        places[system] = blocks or own
    return places


def same_depth_values(matrix: LayerMatrix) -> tuple[tuple[Layer, ...], tuple[str, ...], Floats]:
    """Layer by layer, the values between all models of equal depth: layers, systems, (n_layers, m, m)."""
    places = block_places(matrix.rows)
    systems = tuple(places)
    for other in systems[1:]:
        _check_depth(systems[0], len(places[systems[0]]), other, len(places[other]))
    layers = tuple(matrix.rows[k][1] for k in places[systems[0]])
    grid = np.array([places[system] for system in systems])  # (m, n_layers)
    return layers, systems, np.stack([matrix.values[np.ix_(row, row)] for row in grid.T])


def best_matching(cost: Floats) -> list[tuple[int, int]]:
    """The monotone matching of rows and columns with the least total cost; of equally good ones the shortest.

    Every row and column is matched at least once, first with first and last with last.
    """
    n, m = cost.shape
    total = np.full((n + 1, m + 1), np.inf)
    total[0, 0] = 0.0
    steps = np.zeros((n + 1, m + 1), dtype=int)
    before: dict[tuple[int, int], tuple[int, int]] = {}
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            best = min((i - 1, j - 1), (i - 1, j), (i, j - 1), key=lambda k: (total[k], steps[k]))
            total[i, j], steps[i, j] = total[best] + cost[i - 1, j - 1], steps[best] + 1
            before[i, j] = best
    path, at = [], (n, m)
    while at != (0, 0):
        path.append((at[0] - 1, at[1] - 1))
        at = before[at]
    return path[::-1]


def _equal_depth(cost: Floats, a: str, b: str) -> list[tuple[int, int]]:
    _check_depth(a, cost.shape[0], b, cost.shape[1])
    return [(k, k) for k in range(len(cost))]


def _check_depth(a: str, depth_a: int, b: str, depth_b: int) -> None:
    if depth_a != depth_b:
        raise InvalidInput(
            f"{a} has {depth_a} blocks and {b} has {depth_b}: block k of one has no partner in the other. "
            "Let dynamic time warping match them: model_distances(…, align='warped')."
        )
