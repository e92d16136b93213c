"""How alike layers are by geometry: any measure between their activations, with tests and ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt

from thinkalike.activations.rows import check_same_items
from thinkalike.activations.store import Activations
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.encoding.settings import Settings
from thinkalike.errors import InvalidInput
from thinkalike.inference.geometry_tests import Null, geometry_tests
from thinkalike.inference.halves import OF_TWO_VECTORS, HalvesPlan, plan_halves
from thinkalike.inference.left_out import has_range, part_of_items
from thinkalike.inference.sentences import SentencePlan
from thinkalike.labels import Floats, Layer, Row, row_name
from thinkalike.measures.large_cka import FORMS, is_large, large_cka
from thinkalike.measures.measure import Measure
from thinkalike.measures.measure_table import OURS, as_measure
from thinkalike.measures.pair_forms import finished
from thinkalike.pairs.preprocessing import NO_STEPS, Preprocessing
from thinkalike.parallel import engine_for
from thinkalike.stimuli.table import Stimuli


def by_geometry(
    systems: Sequence[Activations],
    measure: str | Callable[[np.ndarray, np.ndarray], float],
    *,
    distance: str = "euclidean",
    seed: int = 0,
    plan: SentencePlan | None = None,
    steps: Preprocessing = NO_STEPS,
) -> SimilarityMatrix:
    """Any measure of `MEASURES`, or of one's own, between the activations of all layers.

    `plan` says what is left out and what changes places; without one there are values only. `steps` change
    every layer first, fitted on all items.
    """
    check_same_items(systems)
    rows = tuple((s.system, layer) for s in systems for layer in s.layers)
    said: dict[str, object] = {"steps": list(steps.names)} if steps else {}
    if measure != "rsa":
        stored = () if steps else systems  # workers read what is stored
        vectors = LayerVectors(systems, steps)
        found = between_vectors(vectors, rows, layer_measure(measure), plan=plan, systems=stored)
        return replace(found, settings={**found.settings, **said})
    from thinkalike.measures.rsa import ranked_layers

    names = [row_name(row) for row in rows]
    with ranked_layers(layers_of(systems, steps), names=names, distance=distance, seed=seed) as ranked:
        rsa = ranked.correlate()
        left_out = None if plan is None else plan.left_out_ranked(ranked)
        null = None if plan is None else plan.null_ranked(ranked)
    settings = {"distance": distance, "n_pairs": rsa.n_pairs, "sampled": rsa.sampled, "seed": seed, **said}
    matrix = SimilarityMatrix("rsa", rows, rsa.values, settings=settings)
    return with_tests(matrix, layer_measure("rsa"), None if left_out is None else left_out.values, null)


def between_vectors(
    vectors: Sequence[np.ndarray],
    rows: tuple[Row, ...],
    measure: Measure,
    *,
    plan: SentencePlan | None = None,
    systems: Sequence[Activations] = (),
    root: Path | None = None,
) -> SimilarityMatrix:
    """A measure between layers, named by their rows; they are read together if they have room.

    Of `systems`, whose layers these are, workers may compute it pair by pair; they see `root`.
    """
    names = [row_name(row) for row in rows]
    if isinstance(vectors, LayerVectors):
        if is_large(measure.name, vectors.n_items, vectors.n_units):
            return _large_cka(vectors, rows, measure, plan)
        vectors = list(vectors)
    values = _on_workers(measure, systems, root)
    if values is None:
        values = measure.matrix(list(vectors), names_a=names)
    matrix = SimilarityMatrix(measure.name, rows, values, kind=measure.kind)
    if plan is None:
        return matrix
    left_out = plan.left_out(measure.name, vectors)
    null = plan.null(measure, vectors, names)
    return with_tests(matrix, measure, None if left_out is None else left_out.values, null)


def _large_cka(
    vectors: LayerVectors, rows: tuple[Row, ...], measure: Measure, plan: SentencePlan | None
) -> SimilarityMatrix:
    """CKA with its range in one go; so many items have no null (`SentencePlan.why_not`)."""
    names = [row_name(row) for row in rows]
    part = None
    if plan is not None and plan.kept and has_range(measure.name):
        part = part_of_items(plan.kept, vectors.n_items)
    values, without = large_cka(vectors, names, part=part, biased=FORMS[measure.name])
    matrix = SimilarityMatrix(measure.name, rows, finished(measure.name, values), kind=measure.kind)
    null = None
    if plan is not None and len(plan.orders):
        null = plan.null(measure, list(vectors), names)
    return matrix if plan is None else with_tests(matrix, measure, without, null)


def _on_workers(measure: Measure, systems: Sequence[Activations], root: Path | None) -> Floats | None:
    """The matrix from workers, where there are some, and where it is made of single pairs by a known name."""
    engine = engine_for("fit")
    if (
        engine is None
        or not systems
        or measure.all_pairs is not None
        or measure not in OURS  # workers have no others
    ):
        return None
    from thinkalike.comparison.tasks import measure_on_workers

    return measure_on_workers(engine, measure, systems, root)


def with_tests(
    matrix: SimilarityMatrix, measure: Measure, left_out: Floats | None, null: Null | None
) -> SimilarityMatrix:
    """The matrix with its ranges, p-values and calibrated values."""
    distance = measure.kind == "distance"
    cells, tests = geometry_tests(
        matrix.values,
        matrix.rows,
        left_out=left_out,
        null=null,
        distance=distance,
        symmetric=measure.symmetric,
        best=measure.range[0] if distance else measure.range[1],
    )
    return replace(matrix, **cells._asdict(), tests=tests, left_out=left_out)


@dataclass(frozen=True, eq=False)
class LayerVectors(Sequence[np.ndarray]):
    """The layers of all systems one after the other, each read and changed whenever it is asked for."""

    systems: Sequence[Activations]
    steps: Preprocessing = NO_STEPS

    @cached_property
    def _places(self) -> list[tuple[Activations, Layer]]:
        return [(system, layer) for system in self.systems for layer in system.layers]

    @property
    def n_items(self) -> int:
        return self.systems[0].n_items

    @property
    def n_units(self) -> list[int]:
        return [width for system in self.systems for width in system.n_units]

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, place: slice) -> list[np.ndarray]: ...
    def __getitem__(self, place: int | slice) -> np.ndarray | list[np.ndarray]:
        if isinstance(place, slice):
            return [_read(*one, self.steps) for one in self._places[place]]
        return _read(*self._places[place], self.steps)


def layers_of(systems: Sequence[Activations], steps: Preprocessing = NO_STEPS) -> Iterator[np.ndarray]:
    """The layers of all systems one after the other, each read and changed when its turn comes."""
    return iter(LayerVectors(systems, steps))


def _read(system: Activations, layer: Layer, steps: Preprocessing) -> np.ndarray:
    try:
        return steps(system[layer])
    except InvalidInput as error:
        raise type(error)(f"{row_name((system.system, layer))}: {error}") from error


def layer_measure(measure: str | Callable[[np.ndarray, np.ndarray], float]) -> Measure:
    """A measure that compares two layers, by its name or from a function."""
    found = as_measure(measure)
    if found.takes != "layers":
        raise InvalidInput(
            f"{found.name} takes {found.takes}, so it makes no matrix over layers: "
            f"call MEASURES[{found.name!r}] itself."
        )
    return found


def sentences_of(stimuli: Stimuli) -> npt.NDArray[np.object_] | None:
    """The sentence of each item; None for items that are not words."""
    return stimuli.items["sentence"].to_numpy() if "sentence" in stimuli.items else None


def conditions_of(stimuli: Stimuli) -> npt.NDArray[np.int64]:
    """(n_items,) one number for all items alike in every feature."""
    features = stimuli.features
    numbers = features.groupby(list(features), observed=True, dropna=False).ngroup()
    return np.asarray(numbers, dtype=np.int64)


def halves_of(stimuli: Stimuli, settings: Settings) -> HalvesPlan | None:
    """None where too few combinations of features stand in both halves, or the distance is not of vectors."""
    if settings.distance not in OF_TWO_VECTORS:
        return None
    try:
        return plan_halves(conditions_of(stimuli), sentences_of(stimuli), seed=settings.seed)
    except InvalidInput:
        return None
