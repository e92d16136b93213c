"""The experiment from models to findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.recipes.brown2023_activations import figures, verdicts
from thinkalike.recipes.brown2023_activations.losses import Losses
from thinkalike.recipes.brown2023_activations.scales import ActivationsSettings
from thinkalike.recipes.brown2023_activations.stitchings import (
    Workshop,
    curve_rows,
    penalty_rows,
    same_layers,
)
from thinkalike.recipes.brown2023_activations.verdicts import GELU, NARROW, SECOND, SOLU, WIDE
from thinkalike.recipes.effect_chart import effect_figure
from thinkalike.recipes.findings import Figure, Findings, Statement, Table
from thinkalike.recipes.places import is_there
from thinkalike.recipes.steps import Steps
from thinkalike.types import Facts

if TYPE_CHECKING:
    from thinkalike.stitching.result import StitchResult

NAME = "brown2023-activations"
NONE = pd.DataFrame()


@dataclass(frozen=True, eq=False)
class Measured:
    """Everything that was stitched; empty where models were missing.

    Attributes
    ----------
    task, squares
        Size → losses by document, of maps fitted by task loss and by least squares.
    penalties, squares_penalties, seeds, widths
        Rows of size, bottom, top, layer, penalty, low, high, for the figures.
    curves
        Rows of size, series, layer, step, split, loss.
    cka
        Size → all blocks of the GeLU and the SoLU model.
    capacity
        Losses of a narrow and a wide model.
    missing
        What could not be had, by what it is for.
    """

    task: Mapping[str, Losses]
    squares: Mapping[str, Losses]
    penalties: pd.DataFrame
    squares_penalties: pd.DataFrame
    curves: pd.DataFrame
    cka: Mapping[str, Facts]
    seeds: pd.DataFrame = field(default_factory=lambda: NONE)
    widths: pd.DataFrame = field(default_factory=lambda: NONE)
    capacity: Losses | None = None
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def run(settings: ActivationsSettings, out: Path) -> Findings:
    """See `thinkalike.recipes.brown2023_activations.run`."""
    return judge(measure(Workshop(settings, Steps(out))), settings)


def measure(workshop: Workshop) -> Measured:
    """Stitch everything whose models are there; every part is kept once it is done."""
    settings = workshop.settings
    lacking = {size: _lacking(names, settings) for size, names in settings.sizes.items()}
    sizes = {size: names for size, names in settings.sizes.items() if not lacking[size]}
    missing = {size: names for size, names in lacking.items() if names}
    if not sizes:
        needed = [name for lack in missing.values() for name in lack]
        raise ModelError(
            f"{NAME} needs {', '.join(needed)}, which this installation lacks: reinstall thinkalike, or give "
            "a folder that holds them with --models."
        )
    task: dict[str, list[StitchResult]] = {}
    squares: dict[str, list[StitchResult]] = {}
    for size, (gelu, solu) in sizes.items():
        task[size] = _both_ways(workshop, (gelu, solu), (GELU, SOLU))
        squares[size] = _both_ways(workshop, (gelu, solu), (GELU, SOLU), by_task=False)
    own = {size: list(results) for size, results in task.items()}
    cka = {size: workshop.cka({GELU: gelu, SOLU: solu}) for size, (gelu, solu) in sizes.items()}
    first = next(iter(sizes))
    seeds: list[StitchResult] = []
    if settings.second_seeds is not None:
        missing["second_seeds"] = _lacking(settings.second_seeds, settings)
        if not missing["second_seeds"]:
            seeds = _seeds(workshop, sizes[first], settings.second_seeds)
            task[first] += seeds
    widths: list[StitchResult] = []
    if settings.narrow_and_wide is not None:
        missing["narrow_and_wide"] = _lacking(settings.narrow_and_wide, settings)
        if not missing["narrow_and_wide"]:
            widths = _both_ways(workshop, settings.narrow_and_wide, (NARROW, WIDE))
    how = settings.only("resamples", "seed")
    return Measured(
        task={size: Losses.of(results, **how) for size, results in task.items()},
        squares={size: Losses.of(results, **how) for size, results in squares.items()},
        penalties=_rows(own),
        squares_penalties=_rows(squares),
        curves=pd.concat(
            [curve_rows(one, size) for size, results in own.items() for one in results], ignore_index=True
        ),
        cka=cka,
        seeds=_rows({first: seeds}) if seeds else NONE,
        widths=_rows({" and ".join(settings.narrow_and_wide or ()): widths}) if widths else NONE,
        capacity=Losses.of(widths, **how) if widths else None,
        missing=missing,
    )


def _rows(results: Mapping[str, list[StitchResult]]) -> pd.DataFrame:
    rows = [penalty_rows(one, size) for size, each in results.items() for one in each]
    return pd.concat(rows, ignore_index=True)


def _lacking(names: Iterable[str], settings: ActivationsSettings) -> tuple[str, ...]:
    return tuple(name for name in names if not is_there(name, settings.models_folder))


def _both_ways(
    workshop: Workshop,
    names: tuple[str, str],
    labels: tuple[str, str],
    *,
    by_task: bool = True,
    floor: bool = True,
) -> list[StitchResult]:
    """First → second, and second → first, at equal layers."""
    from thinkalike.systems.stack import layers_of

    depths = {name: layers_of(workshop.model(name)).n_blocks for name in names}
    if len(set(depths.values())) > 1:
        said = ", ".join(f"{name} has {depth}" for name, depth in depths.items())
        raise InvalidInput(f"Models are stitched at equal depth, and {said} blocks: choose two of one depth.")
    stitch = partial(workshop.stitch, by_task=by_task, floor=floor, layers=same_layers(min(depths.values())))
    there = stitch(names[0], names[1], labels)
    back = stitch(names[1], names[0], (labels[1], labels[0]))
    return [there, back]


def _seeds(workshop: Workshop, first: tuple[str, str], second: tuple[str, str]) -> list[StitchResult]:
    """Seeds crossed with activations: every pair of models that differ in the seed, and the second seeds."""
    labels = {first[0]: GELU, first[1]: SOLU}
    labels |= {second[0]: f"{GELU} {SECOND}", second[1]: f"{SOLU} {SECOND}"}
    pairs = [(a, b) for a in first for b in second]
    return [
        one
        for pair in (*pairs, second)
        for one in _both_ways(workshop, pair, (labels[pair[0]], labels[pair[1]]), floor=False)
    ]


def judge(measured: Measured, settings: ActivationsSettings) -> Findings:
    """Statements and figures from the tables alone."""
    statements = tuple(_statements(measured))
    return Findings(
        recipe=NAME,
        scale=settings.scale,
        statements=statements,
        figures=(*_figures(measured), effect_figure(statements)),
        tables=(
            Table(
                "penalties",
                "All penalties by task loss",
                pd.concat([measured.penalties, measured.seeds, measured.widths]),
            ),
        ),
        settings=settings.plain(),
        notes=tuple(_notes(measured, settings)),
    )


def _statements(measured: Measured) -> list[Statement]:
    missing, first = measured.missing, next(iter(measured.task))
    return [
        verdicts.asymmetric(measured.task),
        verdicts.self_stitching(measured.task),
        verdicts.cross_above_self(measured.task),
        verdicts.levels_off(measured.curves),
        verdicts.untested("capacity", missing.get("narrow_and_wide", ()))
        if measured.capacity is None
        else verdicts.capacity(measured.capacity),
        verdicts.untested("other seed", missing.get("second_seeds", ()))
        if measured.seeds.empty
        else verdicts.other_seed(measured.task[first]),
        verdicts.same_by_squares(measured.task, measured.squares),
    ]


def _figures(measured: Measured) -> list[Figure]:
    quiet = [f"{GELU} → {GELU}", f"{SOLU} → {SOLU}", f"{NARROW} → {NARROW}", f"{WIDE} → {WIDE}"]
    unit = next(iter(measured.task.values())).unit
    bands = f"Bands are 95 % intervals over {unit}; dashed: a model with itself."
    found = [
        Figure(
            "figure-1",
            "What stitching costs, GeLU against SoLU",
            figures.lines(measured.penalties, quiet=quiet),
            f"Bottom → top, LayerNorm and affine map fitted by task loss; loss above the top's own. {bands}",
            "Figure 1",
        )
    ]
    for number, (size, cka) in enumerate(measured.cka.items()):
        found.append(
            Figure(
                f"figure-{4 + number}",
                f"CKA of GeLU and SoLU, {size}",
                figures.cka_matrix(cka, (GELU, SOLU)),
                "All blocks of both models against each other, after the residual.",
                f"Figure {4 + number}",
            )
        )
    layer = int(measured.curves["layer"].median())
    found.append(
        Figure(
            "figure-6",
            "Learning the maps",
            figures.curves(measured.curves, layer=layer),
            "Loss of the stitched model while the map is learnt, from the least-squares solution on; thick "
            "on validation text, thin on the text of the fit.",
            "Figure 6",
        )
    )
    if not measured.seeds.empty:
        found.append(
            Figure(
                "seeds",
                "Second seeds",
                figures.lines(measured.seeds),
                f"Seeds crossed with activations; another seed saw the text in another order. {bands}",
                "",
            )
        )
    if not measured.widths.empty:
        found.append(
            Figure(
                "capacity",
                "A narrow and a wide model",
                figures.lines(measured.widths, quiet=quiet),
                f"At equal depth. {bands}",
                "",
            )
        )
    squares = "Affine map by least squares to the top's own features, in closed form."
    found.append(
        Figure(
            "squares",
            "The same by least squares",
            figures.lines(measured.squares_penalties, quiet=quiet),
            f"{squares} {bands}",
            "",
        )
    )
    return found


def _notes(measured: Measured, settings: ActivationsSettings) -> list[str]:
    notes = [
        f"Maps are fitted with {settings.steps} steps of SGD on batches of {settings.batch_tokens:,} "
        "tokens, from the least-squares solution on. The paper has 2,000 steps of 2¹⁸ tokens each."
    ]
    for what, names in measured.missing.items():
        if names:
            notes.append(f"Not here, and so left out ({what.replace('_', ' ')}): {', '.join(names)}.")
    return notes
