"""`thinkalike diff` and `thinkalike trace`: what tuning changed, and what training did."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.named import SYSTEMS, parse_systems
from thinkalike.cli.option_groups import Machine, Shown, Vectors, grouped
from thinkalike.cli.options import (
    Chat,
    Figure,
    Seed,
    SystemTurn,
    asked,
    draw,
    file_names,
    only_with,
)
from thinkalike.cli.tables import show_notes, show_table

if TYPE_CHECKING:
    import pandas as pd

BaseChat = Annotated[
    bool, typer.Option("--base-chat", help="Chat template for BASE alone; --chat is for both.")
]
TunedChat = Annotated[
    bool, typer.Option("--tuned-chat", help="Chat template for TUNED alone; --chat is for both.")
]
Out = Annotated[Path | None, file_names("Write tables: OUT-layers and OUT-features, .csv and .parquet.")]


@app.command()
@grouped
def diff(
    base: Annotated[str, typer.Argument(metavar="BASE", help=f"One of: {SYSTEMS}")],
    tuned: Annotated[str, typer.Argument(metavar="TUNED", help="Its child, with the same layers.")],
    *,
    stimuli: Shown,
    vectors: Vectors,
    chat: Chat = False,
    base_chat: BaseChat = False,
    tuned_chat: TunedChat = False,
    system_turn: SystemTurn = None,
    on: Machine,
    seed: Seed = None,
    out: Out = None,
) -> None:
    """Say what changed from a model to its child, layer against the same layer."""
    from thinkalike.populations import diff as run

    extraction = {**vectors.asked(), **on.asked()}
    only_with(
        chat or base_chat or tuned_chat, "with --chat, --base-chat or --tuned-chat", system_turn=system_turn
    )
    framed = asked(chat=True, system_turn=system_turn)
    ((base_name, base_source),), ((tuned_name, tuned_source),) = (
        parse_systems([one]).items() for one in (base, tuned)
    )
    found = run(
        base_source,
        tuned_source,
        stimuli.read(seed),
        extraction=extraction,
        base_extraction=framed if chat or base_chat else None,
        tuned_extraction=framed if chat or tuned_chat else None,
        **asked(seed=seed),
    )
    if base_name != tuned_name:
        found = replace(found, base=base_name, tuned=tuned_name)
    columns = ["tau", "rsa", "cka"]
    rows = [
        [str(layer), *(_ranged(row, c) for c in columns)]
        for layer, (_, row) in zip(found.layers["layer"], found.layers.iterrows(), strict=True)
    ]
    title = f"{found.base} → {found.tuned}: how alike a layer stayed"
    show_table(["layer", "τ_w", "RSA", "CKA"], rows, names=[], title=title)
    _show_changes(found.changed())
    typer.echo(str(found))
    if out is not None:
        _write(out, layers=found.layers, features=found.features)


@app.command()
@grouped
def trace(
    checkpoints: Annotated[
        list[str],
        typer.Argument(metavar="MODEL@REVISION...", help=f"Two or more, in the order of training: {SYSTEMS}"),
    ],
    *,
    stimuli: Shown,
    vectors: Vectors,
    on: Machine,
    seed: Seed = None,
    figure: Figure = None,
    out: Out = None,
) -> None:
    """Follow the strengths of features over training, checkpoint by checkpoint."""
    from thinkalike.populations import trace as run
    from thinkalike.populations.diffing import changes_in_words

    extraction = {**vectors.asked(), **on.asked()}
    found = run(parse_systems(checkpoints), stimuli.read(seed), extraction=extraction, **asked(seed=seed))
    changed = found.changed()
    for before, after in pairwise(found.checkpoints):
        rows = changed[(changed["from"] == before) & (changed["to"] == after)]
        _show_changes(rows, title=f"{before} → {after}")
        typer.echo(f"From {before} to {after} {changes_in_words(rows)}.")
    if note := found.places_for_steps():
        show_notes([note])
    if figure is not None:
        draw(found.plot(), figure)
        typer.echo(f"Drew {figure}.")
    if out is not None:
        _write(out, layers=found.strengths, features=found.changes)


def _ranged(row: pd.Series, name: str) -> str:
    if f"{name}_low" not in row:
        return f"{row[name]:.2f}"
    return f"{row[name]:.2f} ({row[f'{name}_low']:.2f} to {row[f'{name}_high']:.2f})"


def _show_changes(changed: pd.DataFrame, title: str = "") -> None:
    from thinkalike.wording import readable

    columns = ["before", "after", "change", "low", "high", "p_holm"]
    numbers = changed[columns].to_numpy(dtype=float)
    rows = [
        [
            str(layer),
            readable(str(feature)),
            f"{before:.3f}",
            f"{after:.3f}",
            f"{_signed(change)} ({_signed(low)} to {_signed(high)})",
            "< 0.001" if p < 0.001 else f"{p:.3f}",
        ]
        for layer, feature, (before, after, change, low, high, p) in zip(
            changed["layer"], changed["feature"], numbers, strict=True
        )
    ]
    if rows:
        columns = ["layer", "feature", "before", "after", "change", "p (Holm)"]
        about = "Strengths that changed, in units of the noise"
        show_table(columns, rows, names=["feature"], title=f"{title}: {about.lower()}" if title else about)


def _signed(value: float) -> str:
    return f"{value:+z.3f}".replace("-", "−")


def _write(out: Path, **tables: pd.DataFrame) -> None:
    from thinkalike.files import write_tables

    for name, table in tables.items():
        write_tables(table, out.with_name(f"{out.name}-{name}"))
    typer.echo(f"Wrote {out}-layers and {out}-features (.csv, .parquet).")
