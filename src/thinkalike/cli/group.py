"""`thinkalike group`: models beside a group of subjects, or what the group itself is organised by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.finished import Written, says_again
from thinkalike.cli.named import SYSTEMS, default_folder, parse_systems
from thinkalike.cli.options import (
    Bos,
    Device,
    Dtype,
    Pooling,
    Seed,
    Site,
    Steps,
    address,
    asked,
    only_with,
)
from thinkalike.cli.shown import Columns, Drop, Features, Kinds, StimuliFile, read_stimuli
from thinkalike.errors import InvalidInput
from thinkalike.options import MOST_PERMUTATIONS

if TYPE_CHECKING:
    import pandas as pd

    from thinkalike.comparison.group import GroupComparison
    from thinkalike.comparison.group_profile import GroupProfile
    from thinkalike.types import Value

GIVEN = (
    "Subjects: one .npy, .npz or .mat file of arrays (subjects, items, units), each a region, or a file of "
    "arrays for each subject; NAME=FILE names one."
)


@app.command()
@says_again(systems=["models", "subjects"], inputs=["stimuli"])
def group(
    context: typer.Context,
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL...]", help=f"None for what the group is organised by, or: {SYSTEMS}"),
    ] = None,
    subjects: Annotated[list[str] | None, typer.Option(help=f"{GIVEN} May be given several times.")] = None,
    stimuli: StimuliFile = None,
    features: Features = None,
    drop: Drop = None,
    kind: Kinds = None,
    column: Columns = None,
    measure: Annotated[
        str | None,
        typer.Option(help="rsa, features (τ_w), or any other measure of layers.", show_default="rsa"),
    ] = None,
    step: Steps = None,
    permutations: Annotated[
        int | None,
        typer.Option(
            min=19,
            max=MOST_PERMUTATIONS,
            help="Orders of the models' items, for p over items.",
            show_default="1000",
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            help="What ranges are about: other subjects, other items, or both.",
            show_default="both; subjects where a measure has no range over items",
        ),
    ] = None,
    clusters: Annotated[
        bool,
        typer.Option(
            "--clusters", help="Regions are times: also find times at which a layer is better than chance."
        ),
    ] = False,
    pooling: Pooling = None,
    site: Site = None,
    bos: Bos = None,
    dtype: Dtype = None,
    device: Device = None,
    seed: Seed = None,
    out: Annotated[
        Path | None, address("The folder for tables and settings.", show_default="runs/group_NAMES")
    ] = None,
) -> Written:
    """Compare models with a group of subjects, or profile the group: with ranges over subjects and items."""
    from thinkalike.cli.once import once
    from thinkalike.comparison import compare_with_group, profile_group
    from thinkalike.inference.over_subjects import BOTH, check_over

    if not subjects:
        raise InvalidInput(f"No subjects were given: give --subjects FILE. {GIVEN}")
    named = parse_systems(models or [])
    extraction = asked(pooling=pooling, site=site, bos=bos, dtype=dtype, device=device)
    only_with(bool(named), "with models", measure=measure, permutations=permutations, **extraction)
    only_with(bool(named), "with models", clusters=clusters or None)
    only_with(stimuli is not None, "with --stimuli", features=features, drop=drop, kind=kind, column=column)
    if over is not None:
        check_over(over)
    if stimuli is None and not named:
        raise InvalidInput("A profile of the group needs the features of the items: give --stimuli FILE.")
    shown = None
    if stimuli is not None:
        shown = read_stimuli(stimuli, features=features, drop=drop, kind=kind, column=column)
    people = _people(subjects)
    folder = out or default_folder(named or parse_systems(subjects), "group")

    def work() -> None:
        if shown is not None and not named:
            profile = profile_group(people, shown, **asked(steps=step, seed=seed))
            profile.save(folder)
            _show_profile(profile, over or BOTH)
        else:
            found = compare_with_group(
                people,
                named,
                shown,
                **asked(
                    measure=measure,
                    steps=step,
                    permutations=permutations,
                    seed=seed,
                    extraction=extraction or None,
                ),
            )
            found.save(folder)
            _show(found, over or found.widest, clusters=clusters)
        typer.echo(f"\nTables: {folder}")

    files = [Path(source) for source in parse_systems(subjects).values()]
    once(context, [folder], work, inputs=[*files, stimuli])
    return [folder]


def _people(texts: list[str]) -> Value:
    """One file of all subjects, or name → file."""
    from thinkalike.systems.names import is_array_file

    named = parse_systems(texts)
    for source in named.values():
        if not is_array_file(source):
            raise InvalidInput(
                f"{source} is no file of arrays that is there: give .npy, .npz, .mat or .zarr."
            )
    sources = list(named.values())
    everyone = _everyone(sources[0]) if len(sources) == 1 else None
    return named if everyone is None else everyone


def _everyone(source: str) -> Value:
    """Subject → region → array, of one file with all subjects; None for a file of one subject."""
    from thinkalike.activations.sources import stacked_arrays

    stacks = stacked_arrays(source)
    if not stacks:
        return None
    n = {len(one) for one in stacks.values()}
    if len(n) > 1:
        raise InvalidInput(
            f"The arrays of {source} have {', '.join(map(str, sorted(n)))} subjects: give all of each."
        )
    return {f"subject {k + 1}": {region: one[k] for region, one in stacks.items()} for k in range(n.pop())}


def _range(row: pd.Series, name: str) -> str:
    from thinkalike.wording import number

    return f"{number(row[name])} ({number(row['low'])} to {number(row['high'])})"


def _show(found: GroupComparison, over: str, *, clusters: bool) -> None:
    from math import isnan

    from thinkalike.cli.tables import show_notes, show_table
    from thinkalike.wording import number

    rows = [
        [
            str(row["region"]),
            str(row["model"]),
            _range(row, "score"),
            f"{number(row['ceiling_lower'])} to {number(row['ceiling_upper'])}",
            number(row["chance"]),
            "–" if isnan(row["q_both"]) else f"{row['q_both']:.2g}",
        ]
        for _, row in found.table(over=over).iterrows()
    ]
    columns = ("region", "model", f"{found.measure} (95 % over {over})", "ceilings", "chance", "q over both")
    title = f"{len(found.subjects)} subjects, {found.n_items} items"
    show_table(columns, rows, names=("region", "model"), title=title)
    typer.echo(f"Ceilings: {found.settings['ceilings']}.")
    show_notes(found.cautions())
    for system, layer in found.rows if clusters else ():
        for one in found.clusters(system, layer):
            first, last = found.regions[one.start], found.regions[one.stop - 1]
            typer.echo(
                f"{system}:{layer} is better than chance from {first} to {last} (p = {one.p:.3f}, corrected)."
            )


def _show_profile(found: GroupProfile, over: str) -> None:
    from thinkalike.cli.tables import show_table

    rows = [
        [str(row["region"]), str(row["feature"]), _range(row, "importance")]
        for _, row in found.table(over=over).iterrows()
    ]
    columns = ("region", "feature", f"importance (95 % over {over})")
    show_table(columns, rows, names=("region", "feature"), title=f"{len(found.subjects)} subjects")
