"""The experiment from models to findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from thinkalike.errors import ModelError
from thinkalike.recipes.brown2023_activations import figures, verdicts
from thinkalike.recipes.brown2023_activations.scales import ActivationsSettings, Pair
from thinkalike.recipes.brown2023_activations.stitchings import (
    Workshop,
    asymmetry_rows,
    curve_rows,
    is_there,
    penalty_rows,
    same_layers,
    scaled_layers,
)
from thinkalike.recipes.brown2023_activations.verdicts import GELU, NARROW, SOLU, WIDE
from thinkalike.recipes.findings import Figure, Findings, Statement, Table
from thinkalike.recipes.steps import Steps
from thinkalike.types import Facts, Value

NAME = "brown2023-activations"

SECOND = "seed 1"
NONE = pd.DataFrame()


@dataclass(frozen=True, eq=False)
class Measured:
    """Tables of everything that was stitched; empty where models were missing.

    Attributes
    ----------
    penalties, squares
        Rows of size, bottom, top, layer, penalty, low, high; by task loss, and by least squares.
    tests, squares_tests
        Rows of size, layer, difference (SoLU → GeLU minus GeLU → SoLU), low, high, p; of each size also mean,
        mean_low, mean_high over its layers, and unit.
    curves
        Rows of size, series, layer, step, split, loss.
    cka
        Size → all blocks of the GeLU and the SoLU model.
    seeds, seeds_tests, widths, widths_tests
        The same for the second seeds, and for a narrow and a wide model.
    missing
        What could not be had, by what it is for.
    """

    penalties: pd.DataFrame
    tests: pd.DataFrame
    curves: pd.DataFrame
    squares: pd.DataFrame
    squares_tests: pd.DataFrame
    cka: Mapping[str, Facts]
    seeds: pd.DataFrame = field(default_factory=lambda: NONE)
    seeds_tests: pd.DataFrame = field(default_factory=lambda: NONE)
    widths: pd.DataFrame = field(default_factory=lambda: NONE)
    widths_tests: pd.DataFrame = field(default_factory=lambda: NONE)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def run(settings: ActivationsSettings, out: Path) -> Findings:
    """See `thinkalike.recipes.brown2023_activations.run`."""
    return judge(measure(Workshop(settings, Steps(out))), settings)


def measure(workshop: Workshop) -> Measured:
    """Stitch everything whose models are there; every part is kept once it is done."""
    settings = workshop.settings
    missing: dict[str, tuple[str, ...]] = {}
    sizes = {}
    for size, names in settings.sizes.items():
        lacking = _lacking(names, settings)
        if lacking:
            missing[size] = lacking
        else:
            sizes[size] = names
    if not sizes:
        needed = [name for lack in missing.values() for name in lack]
        raise ModelError(
            f"{NAME} needs {', '.join(needed)}, which this installation lacks: reinstall thinkalike, or give "
            "a folder that holds them with --models."
        )
    parts: dict[str, list[pd.DataFrame]] = {
        name: [] for name in ("task", "squares", "tests", "squares_tests")
    }
    curves, cka = [], {}
    for size, (gelu, solu) in sizes.items():
        for by_task in (True, False):
            there, back = _both_ways(workshop, (gelu, solu), (GELU, SOLU), by_task=by_task, floor=True)
            parts["task" if by_task else "squares"] += [penalty_rows(one, size) for one in (there, back)]
            tests = asymmetry_rows(back, there, size, seed=settings.seed)
            parts["tests" if by_task else "squares_tests"].append(tests)
            if by_task:
                curves += [curve_rows(one, size) for one in (there, back)]
        cka[size] = workshop.cka({GELU: gelu, SOLU: solu})
    more: dict[str, pd.DataFrame] = {}
    first = next(iter(sizes.items()))
    for what in ("second_seeds", "narrow_and_wide"):
        pair: Pair | None = getattr(settings, what)
        lacking = _lacking(pair or (), settings)
        if pair is None or lacking:
            missing[what] = lacking
        else:
            more |= _seeds(workshop, first, pair) if what == "second_seeds" else _widths(workshop, pair)
    return Measured(
        penalties=pd.concat(parts["task"], ignore_index=True),
        tests=pd.concat(parts["tests"], ignore_index=True),
        curves=pd.concat(curves, ignore_index=True),
        squares=pd.concat(parts["squares"], ignore_index=True),
        squares_tests=pd.concat(parts["squares_tests"], ignore_index=True),
        cka=cka,
        missing=missing,
        **more,
    )


def _lacking(names: Iterable[str], settings: ActivationsSettings) -> tuple[str, ...]:
    return tuple(name for name in names if not is_there(name, settings.models_folder))


def _both_ways(
    workshop: Workshop,
    names: tuple[str, str],
    labels: tuple[str, str],
    *,
    by_task: bool,
    floor: bool,
    layers: list[tuple[int, int]] | None = None,
) -> tuple[Value, Value]:
    """First → second, and second → first at the same pairs of layers."""
    from thinkalike.systems.architectures import layers_of

    pairs = layers or same_layers(layers_of(workshop.model(names[0])).n_blocks)
    turned = [(b, a) for a, b in pairs]
    options = {"by_task": by_task, "floor": floor}
    there = workshop.stitch(names[0], names[1], labels, layers=pairs, **options)
    back = workshop.stitch(names[1], names[0], (labels[1], labels[0]), layers=turned, **options)
    return there, back


def _seeds(
    workshop: Workshop, size: tuple[str, tuple[str, str]], second: tuple[str, str]
) -> dict[str, pd.DataFrame]:
    """The second seeds with the first ones of the same activation, and with each other."""
    name, (gelu, solu) = size
    labels = (f"{GELU} {SECOND}", f"{SOLU} {SECOND}")
    pairs = [
        ((gelu, second[0]), (GELU, labels[0])),
        ((solu, second[1]), (SOLU, labels[1])),
        (second, labels),
    ]
    rows = []
    for models, shown in pairs:
        there, back = _both_ways(workshop, models, shown, by_task=True, floor=False)
        rows += [penalty_rows(one, name) for one in (there, back)]
    tests = asymmetry_rows(back, there, name, seed=workshop.settings.seed)
    return {"seeds": pd.concat(rows, ignore_index=True), "seeds_tests": tests}


def _widths(workshop: Workshop, names: tuple[str, str]) -> dict[str, pd.DataFrame]:
    from thinkalike.systems.architectures import layers_of

    depths = [layers_of(workshop.model(name)).n_blocks for name in names]
    pairs = (
        scaled_layers(*depths)
        if depths[0] <= depths[1]
        else [(b, a) for a, b in scaled_layers(*depths[::-1])]
    )
    there, back = _both_ways(workshop, names, (NARROW, WIDE), by_task=True, floor=True, layers=pairs)
    size = f"{names[0]} and {names[1]}"
    return {
        "widths": pd.concat([penalty_rows(one, size) for one in (there, back)], ignore_index=True),
        "widths_tests": asymmetry_rows(there, back, size, seed=workshop.settings.seed),
    }


def judge(measured: Measured, settings: ActivationsSettings) -> Findings:
    """Statements and figures from the tables alone."""
    return Findings(
        recipe=NAME,
        scale=settings.scale,
        statements=tuple(_statements(measured)),
        figures=tuple(_figures(measured)),
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
    penalties, tests, missing = measured.penalties, measured.tests, measured.missing
    found = [
        verdicts.asymmetric(tests),
        verdicts.self_stitching(penalties),
        verdicts.cross_above_self(penalties),
        verdicts.cka_is_blind(equal_layers(measured.cka), tests),
        verdicts.levels_off(measured.curves),
    ]
    if measured.widths_tests.empty:
        found.append(verdicts.untested(verdicts.CAPACITY, missing.get("narrow_and_wide", ()), beyond=True))
    else:
        found.append(verdicts.capacity(measured.widths_tests))
    if measured.seeds_tests.empty:
        lacking = missing.get("second_seeds", ())
        found += [
            verdicts.untested(paper, lacking, beyond=True) for paper in (verdicts.SEEDS, verdicts.BASELINE)
        ]
    else:
        size = measured.seeds["size"].iloc[0]
        own = tests[tests["size"] == size]
        every = pd.concat([penalties[penalties["size"] == size], measured.seeds])
        found += [verdicts.repeats(own, measured.seeds_tests), verdicts.above_other_seeds(every)]
    return [*found, verdicts.same_by_squares(tests, measured.squares_tests)]


def equal_layers(cka: Mapping[str, Facts]) -> pd.DataFrame:
    """Rows of size, layer, value: CKA of equal layers of the GeLU and the SoLU model."""
    rows = []
    for size, found in cka.items():
        values = found["values"]
        depth = len(values) // 2
        rows += [{"size": size, "layer": k + 1, "value": float(values[k, depth + k])} for k in range(depth)]
    return pd.DataFrame(rows)


def _figures(measured: Measured) -> list[Figure]:
    quiet = [f"{GELU} → {GELU}", f"{SOLU} → {SOLU}", f"{NARROW} → {NARROW}", f"{WIDE} → {WIDE}"]
    bands = f"Bands are 95 % intervals over {measured.tests['unit'].iloc[0]}; dashed: a model with itself."
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
                f"Between models that differ in the seed only, and between the second seeds. {bands}",
                "",
            )
        )
    if not measured.widths.empty:
        found.append(
            Figure(
                "capacity",
                "A narrow and a wide model",
                figures.lines(measured.widths, quiet=quiet),
                f"At equal shares of the depth. {bands}",
                "",
            )
        )
    squares = "Affine map by least squares to the top's own features, in closed form."
    found.append(
        Figure(
            "squares",
            "The same by least squares",
            figures.lines(measured.squares, quiet=quiet),
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
