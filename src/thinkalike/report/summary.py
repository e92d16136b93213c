"""A comparison as plain values: every word and number that the page says, tested without any HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import pandas as pd

from thinkalike.comparison.answer import Answer
from thinkalike.comparison.chart_tables import measure_name, measure_title, value_label
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.inference.agreement import Agreement
from thinkalike.inference.block_tests import BlockTest
from thinkalike.labels import has_parts
from thinkalike.report import frames
from thinkalike.report.geometry import geometry_table
from thinkalike.report.methods import methods
from thinkalike.report.pairs import Pick, geometric_measure, picks
from thinkalike.types import Facts, Value
from thinkalike.wording import listed, number, p_text, q_text, readable


@dataclass(frozen=True)
class Feature:
    """A feature and the place of its colour."""

    name: str
    colour: int


@dataclass(frozen=True)
class SystemPair:
    """One line of the table of pairs of systems."""

    label: str
    mean: str
    range: str
    ceiling: str
    q: str
    untrained: str
    best_layers: str
    best: str
    geometry: str
    distance: str


@dataclass(frozen=True)
class SystemSummary:
    """One system: what its chart is called and says."""

    name: str
    model: str
    alt: str
    score_alt: str


@dataclass(frozen=True)
class MatrixSummary:
    """One matrix of layers."""

    measure: str
    name: str
    title: str
    label: str
    alt: str


@dataclass(frozen=True)
class LayerMapText:
    """One map of layers, with how faithful it is."""

    measure: str
    title: str
    faith: str
    alt: str


@dataclass(frozen=True)
class TriedConclusion:
    """A conclusion, in how many analyses it comes out, and what the others say."""

    conclusion: str
    count: str
    otherwise: str


def _tried(comparison: Comparison) -> tuple[TriedConclusion, ...]:
    if comparison.tried is None:
        return ()
    rows = comparison.tried.table().itertuples(index=False)
    return tuple(TriedConclusion(row[0], f"{row[1]} of {row[2]}", row[3]) for row in rows)


@dataclass(frozen=True)
class Summary:
    """What the page says, in the order in which it says it."""

    title: str
    answer: Answer
    tried: tuple[TriedConclusion, ...]
    """Conclusions under other analyses, where these were asked for"""
    left_out: tuple[tuple[str, str], ...]
    """Analyses that were not made, and why"""
    facts: tuple[str, ...]
    features: tuple[Feature, ...]
    """The most important first"""
    systems: tuple[SystemSummary, ...]
    system_pairs: tuple[SystemPair, ...]
    system_pairs_alt: str
    has_controls: bool
    has_ranges: bool
    matrices: tuple[MatrixSummary, ...]
    geometry: str | None
    geometry_table: tuple[tuple[str, ...], ...]
    """Header and rows: geometric measures between systems, with ranges and chance"""
    agreements: tuple[str, ...]
    agreement_table: tuple[tuple[str, ...], ...]
    """The same as header and rows, for more than two matrices"""
    picks: tuple[Pick, ...]
    layer_maps: tuple[LayerMapText, ...]
    correlations_alt: str
    cautions: tuple[str, ...]
    precision: tuple[tuple[str, ...], ...]
    methods: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    items_are_words: bool
    has_embeddings: bool
    """Whether a layer 0 is what goes into the first block of a model"""
    has_parts: bool
    """Whether layers are parts of blocks, such as heads"""


def summarise(comparison: Comparison) -> Summary:
    """Everything the page says of `comparison`."""
    blocks = frames.blocks_between(comparison)
    order = frames.feature_order(comparison)
    return Summary(
        title=_title(comparison),
        answer=comparison.answer,
        tried=_tried(comparison),
        left_out=() if comparison.tried is None else tuple(comparison.tried.left_out.items()),
        facts=_facts(comparison),
        features=tuple(
            Feature(readable(name), order.index(name)) for name in frames.legend_order(comparison)
        ),
        systems=tuple(_system(comparison, name) for name in comparison.systems),
        system_pairs=tuple(_system_pair(comparison, block) for block in blocks),
        system_pairs_alt=_system_pairs_alt(blocks),
        has_controls=any(np.isfinite(block.control) for block in blocks),
        has_ranges=any(np.isfinite(block.low) for block in blocks),
        matrices=tuple(_matrix(comparison, measure) for measure in comparison.matrices),
        geometry=geometric_measure(comparison),
        geometry_table=geometry_table(comparison),
        agreements=tuple(_agreement(agreement) for agreement in comparison.agreements),
        agreement_table=_agreement_table(comparison.agreements),
        picks=tuple(picks(comparison)),
        layer_maps=tuple(_layer_map(comparison, measure) for measure in comparison.layer_maps),
        correlations_alt=_correlations_alt(comparison),
        cautions=tuple(caution.text for caution in comparison.cautions),
        precision=_precision(comparison.precision),
        methods=methods(comparison),
        settings=_flat(comparison.settings),
        versions=_flat(comparison.versions),
        items_are_words="word" in comparison.stimuli.items,
        has_parts=any(has_parts(profile.layers) for profile in comparison.profiles.values()),
        has_embeddings=any(p.layers[0] == 0 and "model" in p.metadata for p in comparison.profiles.values()),
    )


def _title(comparison: Comparison) -> str:
    systems = list(comparison.systems)
    if len(systems) == 1:
        return f"What is {systems[0]} organised by?"
    return (
        f"What makes {listed(systems)} think alike?"
        if len(systems) <= 4
        else (f"What makes {len(systems)} systems think alike?")
    )


def _facts(comparison: Comparison) -> tuple[str, ...]:
    n_sentences = len(comparison.stimuli.sentences)
    items = f"{len(comparison.stimuli):,} words in {n_sentences:,} sentences"
    if "word" not in comparison.stimuli.items:
        items = f"{len(comparison.stimuli):,} items"
    return (
        _counted(len(comparison.systems), "system"),
        _counted(len(comparison.rows), "layer"),
        _counted(len(comparison.features), "feature"),
        items,
    )


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _system(comparison: Comparison, name: str) -> SystemSummary:
    profile = comparison.profiles[name]
    mean, scores = profile.mean_importance, profile.mean_scores
    leaders = [readable(profile.features[k]) for k in np.nanargmax(np.nan_to_num(mean, nan=-np.inf), axis=1)]
    counts = pd.Series(leaders).value_counts(sort=True)
    leading = listed([f"{feature} in {n} of {len(leaders)} layers" for feature, n in counts.items()])
    return SystemSummary(
        name=name,
        model=_model(name, str(profile.metadata.get("model", ""))),
        alt=f"Line chart of importance over the {len(leaders)} layers of {name}. Most important: {leading}.",
        score_alt=(
            f"Line chart of ρ over the layers of {name}: {number(scores[0])} in the first, "
            f"{number(scores[-1])} in the last, lowest {number(float(np.nanmin(scores)))}, highest "
            f"{number(float(np.nanmax(scores)))}."
        ),
    )


def _model(system: str, model: str) -> str:
    """What the name of the model adds to that of the system, if anything; of a folder the end of its path."""
    path = PurePath(model)
    shown = "/".join(path.parts[-2:]) if path.is_absolute() else model
    return "" if shown == system or path.name == system else shown


def _system_pair(comparison: Comparison, block: BlockTest) -> SystemPair:
    geometry = geometric_measure(comparison)
    names = comparison.trajectories.systems
    i, j = names.index(block.a), names.index(block.b)
    return SystemPair(
        label=frames.pair_label(block),
        mean=number(block.mean),
        range="" if np.isnan(block.low) else f"{number(block.low)} to {number(block.high)}",
        ceiling=number(block.ceiling),
        q="–" if np.isnan(block.q) else _bare(p_text(block.q)),
        untrained=number(block.control) if np.isfinite(block.control) else "",
        best_layers=f"{block.a}:{block.layer_a} × {block.b}:{block.layer_b}",
        best=_best(comparison, block),
        geometry=""
        if geometry is None
        else number(float(np.nanmean(comparison.matrices[geometry].block(block.a, block.b)))),
        distance=f"{comparison.trajectories.warped[i, j]:.3f}",
    )


def _best(comparison: Comparison, block: BlockTest) -> str:
    """The highest τ_w of two systems with the p of those two layers, as it is told of the pair itself."""
    matrix = comparison.matrices[FEATURES]
    if matrix.p_block is None:
        return number(block.maximum)
    row, column = (block.a, block.layer_a), (block.b, block.layer_b)
    p = matrix.p_block[matrix.rows.index(row), matrix.rows.index(column)]
    return number(block.maximum) if np.isnan(p) else f"{number(block.maximum)} ({p_text(p)})"


def _with_ends(block: BlockTest) -> str:
    """`0.66, 0.54 to 0.69 with other sentences`"""
    if np.isnan(block.low):
        return number(block.mean)
    return f"{number(block.mean)}, {number(block.low)} to {number(block.high)} with other sentences"


def _bare(text: str) -> str:
    """`p = 0.03` → `0.03`, `p < 0.0001` → `< 0.0001`."""
    return text.removeprefix("p ").removeprefix("= ")


def _system_pairs_alt(blocks: list[BlockTest]) -> str:
    values = [f"{frames.pair_label(b)} {_with_ends(b)}" for b in blocks[: frames.MOST_PAIRS]]
    return f"Dot plot of mean weighted τ between systems: {'; '.join(values)}."


def _matrix(comparison: Comparison, measure: str) -> MatrixSummary:
    matrix = comparison.matrices[measure]
    off = matrix.values[~np.eye(len(matrix.rows), dtype=bool)]
    spread = ""
    if np.isfinite(off).any():
        spread = f" from {number(float(np.nanmin(off)))} to {number(float(np.nanmax(off)))}"
    label = value_label(measure)
    return MatrixSummary(
        measure=measure,
        name=measure_name(measure),
        title=measure_title(measure),
        label=label,
        alt=f"Matrix of {len(matrix.rows)} by {len(matrix.rows)} layers coloured by {label}{spread}.",
    )


def _agreement(agreement: Agreement) -> str:
    between = ""
    if np.isfinite(agreement.rho_between):
        between = f", ρ = {number(agreement.rho_between)} between systems only"
    chance = ""
    if np.isfinite(agreement.q_smooth):
        chance = (
            f" Layers that change as smoothly, but have nothing to do with each other, give "
            f"{number(agreement.expected)} on average ({q_text(agreement.q_smooth)})."
        )
    if np.isfinite(agreement.untrained):
        chance += f" In untrained copies of the systems they do so at ρ = {number(agreement.untrained)}."
    return (
        f"The matrices of {value_label(agreement.a)} and {value_label(agreement.b)} order the pairs of "
        f"layers alike at ρ = {number(agreement.rho)}{between}.{chance}"
    )


def _agreement_table(agreements: Sequence[Agreement]) -> tuple[tuple[str, ...], ...]:
    copied = any(np.isfinite(a.untrained) for a in agreements)
    header = ("matrices", "ρ", "ρ between systems", "ρ of smooth, unrelated ones", "q")
    rows = (
        (
            f"{value_label(a.a)} × {value_label(a.b)}",
            number(a.rho),
            number(a.rho_between) if np.isfinite(a.rho_between) else "–",
            number(a.expected) if np.isfinite(a.expected) else "–",
            _bare(p_text(a.q_smooth)) if np.isfinite(a.q_smooth) else "–",
            *((number(a.untrained),) if copied else ()),
        )
        for a in agreements
    )
    return ((*header, *(("ρ of untrained copies",) if copied else ())), *rows)


def _layer_map(comparison: Comparison, measure: str) -> LayerMapText:
    layer_map = comparison.layer_maps[measure]
    stress = layer_map.stress
    verdict = "good" if stress < 0.1 else "fair" if stress < 0.2 else "poor: read distances with care"
    return LayerMapText(
        measure=measure,
        title=measure_title(measure),
        faith=f"stress {number(stress)} ({verdict})",
        alt=f"Map of the layers of {listed(list(comparison.systems))}. {measure_title(measure)}.",
    )


def _correlations_alt(comparison: Comparison) -> str:
    frame = frames.correlation_frame(comparison)
    if frame.empty:
        return "No correlations between features are known."
    top = frame.iloc[int(frame["correlation"].abs().argmax())]
    return (
        f"Correlations among {len(comparison.correlations)} features. The strongest is between {top['a']} "
        f"and {top['b']}: {number(float(top['correlation']))}."
    )


def _precision(frame: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
    """Header and rows as text."""
    names = {
        "quantity": "interval of",
        "width_now": "width now",
        "items_now": "items now",
        "width_wanted": "width wanted",
        "items_needed": "items needed",
    }
    header = tuple(names.get(str(column), readable(str(column))) for column in frame.columns)
    rows = (tuple(_cell(value) for value in row) for row in frame.itertuples(index=False, name=None))
    return (header, *(tuple("ρ" if cell == "score" else cell for cell in row) for row in rows))


def _cell(value: Value) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return "–"
    if isinstance(value, float | np.floating):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)


def _flat(mapping: Facts, prefix: str = "") -> tuple[tuple[str, str], ...]:
    """Nested settings as lines of text."""
    lines: list[tuple[str, str]] = []
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            lines += _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            lines.append((f"{prefix}{key}", ", ".join(str(v) for v in value)))
        else:
            lines.append((f"{prefix}{key}", str(value)))
    return tuple(lines)
