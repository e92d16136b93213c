"""The results of a comparison as tables and plain values, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from thinkalike.activations.store import Activations
from thinkalike.comparison.cautions import Caution
from thinkalike.comparison.comparison import Comparison, Controls
from thinkalike.comparison.feature_similarity import stacked_importance
from thinkalike.comparison.maps import LayerMap, WordMaps
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.robustness import Robustness
from thinkalike.comparison.similarity_matrix import FEATURES, OF_CELLS, SimilarityMatrix
from thinkalike.comparison.trajectories import TrajectoryDistances
from thinkalike.files import numbers, read_json, read_table, reading, write_json, write_tables
from thinkalike.inference.agreement import Agreement, corrected_for_matrices
from thinkalike.inference.block_tests import BlockTest
from thinkalike.inference.geometry_tests import GeometryTest
from thinkalike.inference.weighted_tau import contribution_matrix
from thinkalike.labels import Floats, Layer, Row
from thinkalike.stimuli.table import Stimuli

UNTRAINED = "untrained"
LEFT_OUT = "left-out"
AGAIN = "run the same comparison again"
ROBUSTNESS = "robustness"


def result_tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """Name → tidy table."""
    profiles = comparison.profiles.values()
    tables = {
        "profiles": pd.concat([p.to_frame() for p in profiles], ignore_index=True),
        "layers": pd.concat([p.layer_frame() for p in profiles], ignore_index=True),
        "contributions": comparison.contributions_frame(),
        "blocks": comparison.blocks(),
        "geometry": comparison.geometry(),
        "agreement": pd.DataFrame([asdict(a) for a in comparison.agreements]),
        "trajectories": comparison.trajectories.to_frame(),
        "correlations": _tidy(comparison.correlations),
        "precision": comparison.precision,
        "layer-maps": pd.concat(
            [m.to_frame().assign(measure=name) for name, m in comparison.layer_maps.items()],
            ignore_index=True,
        ),
    }
    positions = [frame for p in profiles if len(frame := p.position_frame())]
    if positions:
        tables["positions"] = pd.concat(positions, ignore_index=True)
    for name, matrix in comparison.matrices.items():
        frame = matrix.to_frame()
        if name == "rsa" and comparison.explained_share is not None:
            frame["explained_share"] = comparison.explained_share.ravel()
            for end, values in zip(("low", "high"), comparison.explained_range or (), strict=False):
                frame[f"explained_share_{end}"] = values.ravel()
        tables[f"similarity-{name}"] = frame
        if matrix.left_out is not None:
            tables[f"{LEFT_OUT}-{name}"] = _parts(matrix.left_out)
    if comparison.word_maps is not None:
        tables["word-maps"] = comparison.word_maps.to_frame()
    if comparison.controls is not None:
        copies = chain(*comparison.controls.profiles.values())
        tables[f"similarity-{UNTRAINED}"] = comparison.controls.similarity.to_frame()
        if comparison.controls.geometry is not None:
            tables[f"similarity-{UNTRAINED}-rsa"] = comparison.controls.geometry.to_frame()
        tables[f"profiles-{UNTRAINED}"] = pd.concat([p.to_frame() for p in copies], ignore_index=True)
    if comparison.tried is not None:
        tables[ROBUSTNESS] = comparison.tried.to_frame()
    return tables


def _is_of_earlier_call(path: Path) -> bool:
    """Whether it is a table that a call for something else makes; others' files stay."""
    optional = path.stem in ("word-maps", "positions", f"profiles-{UNTRAINED}", ROBUSTNESS)
    optional = optional or path.stem.startswith(("similarity-", f"{LEFT_OUT}-"))
    return optional and path.suffix in (".parquet", ".csv")


def write_results(comparison: Comparison, tables: Path) -> dict[str, object]:
    """Write the tables, and give what is no table: labels, tests, sentences."""
    made = result_tables(comparison)
    seals = {name: write_tables(frame, tables / name) for name, frame in made.items()}
    for path in tables.iterdir():
        if path.stem not in made and _is_of_earlier_call(path):
            path.unlink()
    maps, controls = comparison.word_maps, comparison.controls
    return {
        "seals": seals,
        "systems": comparison.systems,
        "items": list(comparison.stimuli.items.index),
        "rows": comparison.rows,
        "matrices": {name: _about(matrix) for name, matrix in comparison.matrices.items()},
        "agreements": [asdict(a) for a in comparison.agreements],
        "stress": {name: m.stress for name, m in comparison.layer_maps.items()},
        "word_maps": None if maps is None else {"items": maps.items, "explained": maps.explained},
        "trajectories": vars(comparison.trajectories),
        "cautions": [asdict(c) for c in comparison.cautions],
        "answer": comparison.answer,
        "settings": comparison.settings,
        "versions": comparison.versions,
        ROBUSTNESS: None if comparison.tried is None else comparison.tried.as_dict(),
        "controls": None
        if controls is None
        else {
            "systems": {name: [copy.system for copy in draws] for name, draws in controls.profiles.items()},
            "rows": controls.similarity.rows,
            "matrix": _about(controls.similarity),
            "geometry": None if controls.geometry is None else _about(controls.geometry),
        },
    }


def read_results(
    results: Mapping[str, Any],
    tables: Path,
    *,
    stimuli: Stimuli,
    profiles: Mapping[str, Profile],
    copies: Mapping[str, tuple[Profile, ...]],
    activations: Mapping[str, Activations] | None,
) -> Comparison:
    """The comparison from what `write_results` wrote and gave, and the profiles of its systems."""
    rows = _rows(results["rows"])
    found = {
        name: read_table(tables / f"{name}.parquet", seal=seal, way_out=AGAIN)
        for name, seal in results["seals"].items()
    }
    matrices = {
        name: _matrix(found[f"similarity-{name}"], name, about, rows, found.get(f"{LEFT_OUT}-{name}"))
        for name, about in results["matrices"].items()
    }
    kept = matrices[FEATURES].settings["features"]
    controls = results["controls"]
    if controls is not None:
        copied = _controls(controls, found, copies)
    return Comparison(
        stimuli=stimuli,
        profiles=profiles,
        matrices=matrices,
        contributions=contribution_matrix(stacked_importance(list(profiles.values()), kept)),
        explained_share=_square(found["similarity-rsa"], "explained_share", len(rows)),
        agreements=corrected_for_matrices([_record(Agreement, a) for a in results["agreements"]]),
        layer_maps=_layer_maps(found["layer-maps"], rows, results["stress"]),
        word_maps=_word_maps(found.get("word-maps"), rows, results["word_maps"]),
        trajectories=_trajectories(results["trajectories"]),
        correlations=_untidy(found["correlations"]),
        cautions=tuple(Caution(c["kind"], c["text"], tuple(c["systems"])) for c in results["cautions"]),
        precision=found["precision"],
        settings=results["settings"],
        versions=results["versions"],
        controls=None if controls is None else copied,
        explained_range=_explained_range(found["similarity-rsa"], len(rows)),
        activations=activations,
        tried=Robustness.from_dict(results[ROBUSTNESS]) if results.get(ROBUSTNESS) else None,
    )


def _controls(
    about: Mapping[str, Any], found: Mapping[str, pd.DataFrame], copies: Mapping[str, tuple[Profile, ...]]
) -> Controls:
    rows = _rows(about["rows"])
    similarity = _matrix(found[f"similarity-{UNTRAINED}"], FEATURES, about["matrix"], rows)
    if about.get("geometry") is None:
        return Controls(copies, similarity)
    geometry = _matrix(found[f"similarity-{UNTRAINED}-rsa"], "rsa", about["geometry"], rows)
    return Controls(copies, similarity, geometry)


def _about(matrix: SimilarityMatrix) -> dict[str, object]:
    return {
        "kind": matrix.kind,
        "blocks": [asdict(b) for b in matrix.blocks],
        "tests": [asdict(t) for t in matrix.tests],
        "settings": matrix.settings,
    }


def _matrix(
    table: pd.DataFrame,
    name: str,
    about: Mapping[str, Any],
    rows: tuple[Row, ...],
    left_out: pd.DataFrame | None = None,
) -> SimilarityMatrix:
    return SimilarityMatrix(
        measure=name,
        rows=rows,
        values=table["value"].to_numpy(np.float64).reshape(len(rows), len(rows)),
        kind=about["kind"],
        **{name: _square(table, name, len(rows)) for name in OF_CELLS},
        blocks=tuple(_record(BlockTest, block) for block in about["blocks"]),
        tests=tuple(_record(GeometryTest, test) for test in about["tests"]),
        settings=about["settings"],
        left_out=None if left_out is None else left_out.to_numpy().T.reshape(-1, len(rows), len(rows)),
    )


def _rows(stored: Iterable[tuple[str, Layer]]) -> tuple[Row, ...]:
    return tuple((system, layer) for system, layer in stored)


def _parts(left_out: Floats) -> pd.DataFrame:
    """A column for each part of the sentences: the values of the similarity table without it."""
    return pd.DataFrame({f"part {k}": values.ravel() for k, values in enumerate(left_out)})


def _square(table: pd.DataFrame, column: str, n: int) -> Floats | None:
    return table[column].to_numpy(np.float64).reshape(n, n) if column in table else None


def _explained_range(table: pd.DataFrame, n: int) -> tuple[Floats, Floats] | None:
    low, high = (_square(table, f"explained_share_{end}", n) for end in ("low", "high"))
    return None if low is None or high is None else (low, high)


Kind = TypeVar("Kind")


def _record(kind: type[Kind], stored: Mapping[str, object]) -> Kind:
    """A dataclass of numbers and labels, in which null stands for NaN."""
    return kind(**{name: float("nan") if value is None else value for name, value in stored.items()})


def _layer_maps(
    table: pd.DataFrame, rows: tuple[Row, ...], stress: Mapping[str, float]
) -> dict[str, LayerMap]:
    return {
        name: LayerMap(
            name, rows, table.loc[table["measure"] == name, ["x", "y"]].to_numpy(np.float64), value
        )
        for name, value in stress.items()
    }


def _word_maps(
    table: pd.DataFrame | None, rows: tuple[Row, ...], about: Mapping[str, Any] | None
) -> WordMaps | None:
    if about is None or table is None:
        return None
    points = table[["x", "y"]].to_numpy(np.float64)
    return WordMaps(
        rows=rows,
        items=tuple(about["items"]),
        coordinates=points.reshape(len(rows), -1, 2),
        explained=numbers(about["explained"]),
    )


def _trajectories(stored: Mapping[str, Any]) -> TrajectoryDistances:
    return TrajectoryDistances(
        systems=tuple(stored["systems"]),
        euclidean=numbers(stored["euclidean"]),
        warped=numbers(stored["warped"]),
        coordinates=numbers(stored["coordinates"]),
        stress=stored["stress"],
    )


def _tidy(correlations: pd.DataFrame) -> pd.DataFrame:
    names = correlations.columns.to_numpy(dtype=object)
    return pd.DataFrame(
        {
            "feature": np.repeat(names, len(names)),
            "other": np.tile(names, len(names)),
            "correlation": correlations.to_numpy().ravel(),
        }
    )


def _untidy(table: pd.DataFrame) -> pd.DataFrame:
    names = list(dict.fromkeys(table["feature"]))
    values = table["correlation"].to_numpy(np.float64).reshape(len(names), len(names))
    return pd.DataFrame(values, index=names, columns=names)


def save_matrix(matrix: SimilarityMatrix, path: Path) -> Path:
    """Write one matrix by itself: `path`.parquet, .csv and, last, .json."""
    seal = write_tables(matrix.to_frame(), path)
    about = {"measure": matrix.measure, "rows": matrix.rows, **_about(matrix), "seal of the table": seal}
    write_json(about, path.with_name(f"{path.name}.json"))
    return path


def load_matrix(path: Path) -> SimilarityMatrix:
    """What `save_matrix` wrote."""
    file, again = path.with_name(f"{path.name}.json"), "compute the similarity again"
    about = read_json(file, way_out=again)
    with reading(file, again):
        table = path.with_name(f"{path.name}.parquet")
        found = read_table(table, seal=about["seal of the table"], way_out=again)
        return _matrix(found, about["measure"], about, _rows(about["rows"]))
