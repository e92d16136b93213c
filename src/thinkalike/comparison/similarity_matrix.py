"""`SimilarityMatrix`: every layer of every system against every other, by one measure."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from thinkalike.activations.conversion import named_systems, open_activations
from thinkalike.activations.rows import check_same_items
from thinkalike.activations.store import Activations
from thinkalike.comparison.profiles import Profile
from thinkalike.errors import InvalidInput
from thinkalike.inference.block_tests import BlockTest, relabelling_test
from thinkalike.inference.geometry_tests import GeometryTest, Null, geometry_tests
from thinkalike.inference.jackknife import jackknife_range
from thinkalike.inference.relabelling import relabelled_taus
from thinkalike.inference.sentences import SentencePlan, plan_sentences
from thinkalike.inference.weighted_tau import tau_matrix
from thinkalike.labels import Floats, Layer, Row, find_row, row_name, span_of, systems_of
from thinkalike.measures.measure import Measure
from thinkalike.measures.measure_table import as_measure
from thinkalike.options import LARGEST_SEED, one_name, whole_number
from thinkalike.types import Facts, Json, Matrix, Value

if TYPE_CHECKING:
    import altair as alt

    from thinkalike.stimuli.table import Stimuli

OF_CELLS = ("p_block", "low", "high", "ceiling", "threshold", "calibrated")
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
    ceiling: Floats | None = field(default=None)
    """(n_rows, n_rows) for features: what two layers alike in truth would reach with so many sentences, the
    geometric mean of their reliabilities"""
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
    settings: Facts = field(default_factory=dict)

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
        columns: Json = pair_columns(self.rows) | {"value": self.values.ravel()}
        for name in OF_CELLS:
            array = getattr(self, name)
            if array is not None:
                columns[name] = array.ravel()
        return pd.DataFrame(columns)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `path`.parquet and .csv (one row per pair of layers), and `path`.json."""
        from thinkalike.comparison.results import save_matrix

        return save_matrix(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SimilarityMatrix:
        """What `save` wrote."""
        from thinkalike.comparison.results import load_matrix

        return load_matrix(Path(path))


@one_name
def similarity(
    systems: Sequence[Value] | Facts,
    *,
    measure: str | Callable[[Matrix, Matrix], float] = FEATURES,
    distance: str | None = None,
    stimuli: Stimuli | None = None,
    n_permutations: int | None = None,
    seed: int = 0,
) -> SimilarityMatrix:
    """How alike the layers of all `systems` are: profiles by features, activations by geometry.

    Parameters
    ----------
    systems : profiles for `"features"`; for other measures activations, arrays (n_items, n_units), mappings
        of layers to such arrays, or their files; a mapping gives them names of its own.
    measure : `"features"` (weighted τ of profiles), or for activations any name in `MEASURES`, or a function
        of two arrays (n_items, n_units) whose value is larger for layers that are more alike. A `Measure` of
        one's own can also be a distance.
    distance : for `"rsa"` alone: between items within a layer; euclidean when None.
    stimuli : for activations: what they answer to. Its sentences are left out in turn, for ranges, and change
        places, for what chance gives.
    n_permutations : for `"features"`: relabellings to draw when there are more than 8 features, 10,000 when
        None; up to 8 all are enumerated. For activations: orders of the sentences that a measure is held
        against; when None 200 with `stimuli`, for measures that take them cheaply (RSA and CKA in all their
        forms), else none. Without `stimuli` every item is a sentence of its own.
    seed : of the relabellings, the orders and parts of the sentences, and a sample of pairs.

    Returns
    -------
    SimilarityMatrix

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> X = np.random.default_rng(0).normal(size=(40, 6))
    >>> found = ta.similarity({"one": {0: X, 1: X**3}, "other": {0: 2 * X}}, measure="rsa")
    >>> found.rows
    (('one', 0), ('one', 1), ('other', 0))
    >>> round(found["one", 0, "other", 0], 6)
    1.0
    """
    whole_number("seed", seed, 0, LARGEST_SEED)
    given = [open_activations(system, name) for name, system in named_systems(systems).items()]
    _check_systems([_name(system) for system in given])
    if distance is not None and measure != "rsa":
        raise InvalidInput(
            f"distance={distance!r} is for measure='rsa': {_called(measure)} has no distance to choose."
        )
    if stimuli is not None and measure == FEATURES:
        raise InvalidInput("stimuli= is for activations: profiles know what they were made from.")
    if measure == FEATURES:
        drawn = 10_000 if n_permutations is None else whole_number("n_permutations", n_permutations, 1)
        return by_features([_expect(s, Profile, FEATURES) for s in given], n_permutations=drawn, seed=seed)
    activations = [_expect(s, Activations, _called(measure)) for s in given]
    plan = _sentence_plan(activations, stimuli, n_permutations, seed)
    return by_geometry(activations, measure, distance=distance or "euclidean", seed=seed, plan=plan)


def _sentence_plan(
    activations: Sequence[Activations], stimuli: Stimuli | None, n_permutations: int | None, seed: int
) -> SentencePlan | None:
    if n_permutations is not None:
        whole_number("n_permutations", n_permutations, 0)
    if stimuli is None:
        if not n_permutations:
            return None
        return plan_sentences(None, activations[0].n_items, permutations=n_permutations, seed=seed)
    for system in activations:
        system.check_stimuli(stimuli)
    return plan_sentences(sentences_of(stimuli), len(stimuli), permutations=n_permutations, seed=seed)


def sentences_of(stimuli: Stimuli) -> Value:
    """The sentence of each item; None for items that are not words."""
    return stimuli.items["sentence"].to_numpy() if "sentence" in stimuli.items else None


def layer_measure(measure: str | Callable[[Matrix, Matrix], float]) -> Measure:
    """A measure that compares two layers, by its name or from a function."""
    found = as_measure(measure)
    if found.takes != "layers":
        raise InvalidInput(
            f"{found.name} takes {found.takes}, so it makes no matrix over layers: "
            f"call MEASURES[{found.name!r}] itself."
        )
    return found


def by_features(
    profiles: Sequence[Profile], *, n_permutations: int = 10_000, seed: int = 0
) -> SimilarityMatrix:
    """Weighted τ of importances between all layers (Salle et al. 2024), tested by relabelling strengths."""
    _check_same_question(profiles)
    kept = shared_features(profiles)
    rows = tuple(row for profile in profiles for row in profile.rows)
    values = tau_matrix(stacked_importance(profiles, kept))
    tested, strengths = _stacked_strengths(profiles, kept)
    tests = relabelling_test(values, strengths, rows, n_samples=n_permutations, seed=seed)
    low, high, blocks = None, None, tests.blocks
    made = _replicated_taus(profiles, kept)
    if made is not None:
        low, high, _ = jackknife_range(values, made.taus, parts=made.parts, scale="rank correlation")
        blocks = _with_ranges(blocks, rows, made)
    reliability = np.concatenate([profile.reliability for profile in profiles])
    ceiling = np.sqrt(np.outer(reliability, reliability)) if np.isfinite(reliability).all() else None
    if ceiling is not None:
        blocks = _with_ceilings(blocks, rows, ceiling)
    return SimilarityMatrix(
        measure=FEATURES,
        rows=rows,
        values=values,
        p_block=tests.p_block if np.isfinite(tests.p_block).any() else None,
        low=low,
        high=high,
        ceiling=ceiling,
        blocks=blocks,
        settings={"features": kept, "tested": tested, "seed": seed},
    )


def by_geometry(
    systems: Sequence[Activations],
    measure: str | Callable[[Matrix, Matrix], float],
    *,
    distance: str = "euclidean",
    seed: int = 0,
    plan: SentencePlan | None = None,
) -> SimilarityMatrix:
    """Any measure of `MEASURES`, or of one's own, between the activations of all layers.

    `plan` says what is left out and what changes places; without one there are values only.
    """
    check_same_items(systems)
    rows = tuple((s.system, layer) for s in systems for layer in s.layers)
    if measure != "rsa":
        return between_vectors(list(layers_of(systems)), rows, layer_measure(measure), plan=plan)
    from thinkalike.measures.rsa import ranked_layers

    names = [row_name(row) for row in rows]
    with ranked_layers(layers_of(systems), names=names, distance=distance, seed=seed) as ranked:
        found = ranked.correlate()
        left_out = None if plan is None else plan.left_out_ranked(ranked)
        null = None if plan is None else plan.null_ranked(ranked)
    settings = {"distance": distance, "n_pairs": found.n_pairs, "sampled": found.sampled, "seed": seed}
    matrix = SimilarityMatrix("rsa", rows, found.values, settings=settings)
    return with_tests(matrix, layer_measure("rsa"), None if left_out is None else left_out.values, null)


def between_vectors(
    vectors: Sequence[Matrix], rows: tuple[Row, ...], measure: Measure, *, plan: SentencePlan | None = None
) -> SimilarityMatrix:
    """A measure between layers that are at hand, named by their rows."""
    names = [row_name(row) for row in rows]
    matrix = SimilarityMatrix(
        measure.name, rows, measure.matrix(list(vectors), names_a=names), kind=measure.kind
    )
    if plan is None:
        return matrix
    left_out = plan.left_out(measure.name, vectors)
    null = plan.null(measure, vectors, names)
    return with_tests(matrix, measure, None if left_out is None else left_out.values, null)


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


def layers_of(systems: Sequence[Activations]) -> Matrix:
    """The layers of all systems one after the other, each read when its turn comes."""
    return (system[layer] for system in systems for layer in system.layers)


def shared_features(profiles: Sequence[Profile]) -> tuple[str, ...]:
    """The features with an importance in every layer of every profile; τ_w is computed over these.

    A feature that has one level in every fold has no importance; it then has none for any layer.
    """
    finite = np.all([np.isfinite(p.mean_importance).all(axis=0) for p in profiles], axis=0)
    kept = tuple(name for name, ok in zip(profiles[0].features, finite, strict=True) if ok)
    if len(kept) < 2:
        raise InvalidInput(
            f"A ranking needs at least two features with an importance; there are {len(kept)} "
            f"of {len(profiles[0].features)}: add features, or items that differ in them."
        )
    return kept


def stacked_importance(profiles: Sequence[Profile], kept: Sequence[str]) -> Floats:
    """(n_rows, n_kept) mean importances of all layers of all systems."""
    columns = [profiles[0].features.index(name) for name in kept]
    return np.concatenate([p.mean_importance[:, columns] for p in profiles])


def _stacked_strengths(
    profiles: Sequence[Profile], kept: Sequence[str]
) -> tuple[tuple[str, ...], Floats | None]:
    """The features among `kept` with a strength in every layer, and (n_rows, n_features) of them."""
    if any(profile.strengths is None for profile in profiles):
        return (), None
    columns = [profiles[0].features.index(name) for name in kept]
    strengths = np.concatenate([p.mean_strengths[:, columns] for p in profiles])
    known = np.isfinite(strengths).all(axis=0)
    return tuple(name for name, is_known in zip(kept, known, strict=True) if is_known), strengths[:, known]


def pair_columns(rows: Sequence[Row]) -> Json:
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


@dataclass(frozen=True, eq=False)
class _Replicated:
    """τ_w of all pairs of layers without each part of the sentences, the same part in every system."""

    taus: Floats  # (n_resamples, n_rows, n_rows)
    parts: int

    def block_means(self, rows: Sequence[Row], block: BlockTest) -> Floats:
        """(n_resamples,), over the same cells as the mean itself: within a system not the diagonal."""
        cells = self.taus[:, span_of(rows, block.a), span_of(rows, block.b)]
        if block.a == block.b:
            cells = cells[:, ~np.eye(cells.shape[1], dtype=bool)]
        flat = cells.reshape(len(cells), -1)
        known = np.isfinite(flat)
        sums, counts = np.where(known, flat, 0.0).sum(axis=1), known.sum(axis=1)
        return np.divide(sums, counts, out=np.full(len(flat), np.nan), where=counts > 0)


def _replicated_taus(profiles: Sequence[Profile], kept: Sequence[str]) -> _Replicated | None:
    """None when a system has no replicates, or not as many as another."""
    made = [p.replicates for p in profiles if p.replicates is not None]
    if len(made) < len(profiles) or len({(len(one.scores), one.parts) for one in made}) > 1:
        return None
    columns = [profiles[0].features.index(name) for name in kept]
    stacked = np.concatenate([one.importance for one in made], axis=1)[:, :, columns]
    stacked = stacked[np.isfinite(stacked).all(axis=(1, 2))]
    if len(stacked) < 2:
        return None
    identity = np.arange(len(kept))[None]
    taus = np.concatenate([next(relabelled_taus(one, one, identity)) for one in stacked])
    return _Replicated(taus, made[0].parts)


def _with_ranges(
    blocks: Sequence[BlockTest], rows: Sequence[Row], made: _Replicated
) -> tuple[BlockTest, ...]:
    """The range of each mean; and of how far it stays behind that of the two systems most alike."""
    means = {(block.a, block.b): made.block_means(rows, block) for block in blocks}
    between = [block for block in blocks if block.a != block.b]
    best = max(between, key=lambda block: block.mean, default=None)
    ranged = []
    for block in blocks:
        own = means[block.a, block.b]
        low, high, _ = jackknife_range(block.mean, own, parts=made.parts, scale="rank correlation")
        block = replace(block, low=float(low), high=float(high))
        if best is not None and block.a != block.b and (block.a, block.b) != (best.a, best.b):
            behind = jackknife_range(best.mean - block.mean, means[best.a, best.b] - own, parts=made.parts)
            block = replace(block, behind_low=float(behind.low), behind_high=float(behind.high))
        ranged.append(block)
    return tuple(ranged)


def _with_ceilings(
    blocks: Sequence[BlockTest], rows: Sequence[Row], ceiling: Floats
) -> tuple[BlockTest, ...]:
    means = [float(ceiling[span_of(rows, b.a), span_of(rows, b.b)].mean()) for b in blocks]
    return tuple(replace(block, ceiling=mean) for block, mean in zip(blocks, means, strict=True))


def _check_systems(names: Sequence[str]) -> None:
    if not names:
        raise InvalidInput("There are no systems: give at least one profile or activations.")
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InvalidInput(f"{twice[0]} comes twice: give each system a name of its own.")


def _check_same_question(profiles: Sequence[Profile]) -> None:
    """Refuse profiles whose importances mean different things."""
    first = profiles[0]
    for other in profiles[1:]:
        pair = f"{first.system} and {other.system}"
        if first.features != other.features:
            raise InvalidInput(
                f"{pair} are profiled on different features: profile both on the same stimuli."
            )
        if first.stimuli_digest and other.stimuli_digest and first.stimuli_digest != other.stimuli_digest:
            raise InvalidInput(
                f"{pair} were shown different stimuli (digests {first.stimuli_digest[:12]} and "
                f"{other.stimuli_digest[:12]}): profile both on the same."
            )
        different = sorted(
            k for k in {*first.settings, *other.settings} if first.settings.get(k) != other.settings.get(k)
        )
        if different:
            k = different[0]
            raise InvalidInput(
                f"{pair} are profiled with different settings ({k}: {first.settings.get(k)!r} and "
                f"{other.settings.get(k)!r}): profile both alike."
            )


def _called(measure: str | Callable[[Matrix, Matrix], float]) -> str:
    return measure if isinstance(measure, str) else str(getattr(measure, "__name__", measure))


def _name(system: object) -> str:
    if not isinstance(system, (Profile, Activations)):
        raise InvalidInput(
            f"Got {type(system).__name__} as a system: give profiles (ta.profile), activations (ta.extract) "
            "or arrays. ta.compare also takes models by name."
        )
    return system.system


def _expect(system: object, kind: type, measure: str) -> Value:
    if not isinstance(system, kind):
        way_out = (
            "make one with ta.profile(activations, stimuli)"
            if kind is Profile
            else f"give activations, or leave out measure={measure!r}"
        )
        raise InvalidInput(
            f"measure={measure!r} compares {kind.__name__}, not {type(system).__name__}: {way_out}."
        )
    return system
