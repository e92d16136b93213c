"""`thinkalike cka`: geometric similarity of all layers of several models over running text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.finished import Written, says_again
from thinkalike.cli.named import MODELS, default_folder, parse_models
from thinkalike.cli.options import (
    Device,
    DropFirst,
    DryRun,
    Dtype,
    Seed,
    Site,
    Split,
    address,
    asked,
    draw,
    only_with,
)
from thinkalike.cli.options import (
    bos as bos_option,
)

if TYPE_CHECKING:
    from thinkalike.streaming.cka_matrix import CKAMatrix


@app.command()
@says_again(systems=["models"], inputs=["text"])
def cka(
    context: typer.Context,
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL[@REVISION]...", help=f"One or more: {MODELS}")
    ],
    text: Annotated[Path, typer.Option(help="A text file, or a folder of .txt files.")],
    precision: Annotated[
        float | None, typer.Option(help="Stop when the largest standard error is at most this, e.g. 0.01.")
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            help="A row is a token, a word (for unlike tokenizers), or a sequence.", show_default="token"
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            help="sequence: within passages. tokens: rows of several passages mixed. chunks: in order.",
            show_default="sequence; --level sequence: tokens",
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Rows of a batch of several passages.", show_default="1024; of sequences 256"
        ),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of a passage.", show_default="as all models read, up to 1024"),
    ] = None,
    split: Split = None,
    pack: Annotated[
        bool, typer.Option(help="Join documents into passages of equal length, or read them one by one.")
    ] = True,
    padding: Annotated[
        str | None, typer.Option(help="Of unpacked documents: mask, or keep as rows.", show_default="mask")
    ] = None,
    bos: Annotated[bool | None, bos_option("no")] = None,
    drop_first: DropFirst = None,
    site: Site = None,
    average: Annotated[
        str | None,
        typer.Option(
            help="hsic: ratio of summed HSICs. ratio: mean over batches, as in Brown et al.",
            show_default="hsic",
        ),
    ] = None,
    max_batches: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many in any case.", show_default="1000")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        address("The folder for tables, settings and figures.", show_default="runs/cka_NAMES"),
    ] = None,
    dry_run: DryRun = False,
) -> Written:
    """Compare all layers of models by CKA over text, with standard errors, until it is precise enough."""
    from thinkalike.cli.once import once
    from thinkalike.streaming import stream_cka

    only_with(not pack, "with --no-pack", padding=padding)
    named = parse_models(models)
    folder = out or default_folder(named, "cka")

    options = asked(
        pack=pack,
        level=level,
        batch=batch,
        batch_size=batch_size,
        split=split,
        length=length,
        padding=padding,
        bos=bos,
        drop_first=drop_first,
        site=site,
        average=average,
        precision=precision,
        max_batches=max_batches,
        device=device,
        dtype=dtype,
        seed=seed,
    )
    if dry_run:
        from thinkalike.comparison import plan

        typer.echo(plan(named, text, work="cka", out=folder, **options))
        return []

    def work() -> None:
        found = stream_cka(named, text, checkpoint=folder / "unfinished.npz", **options)
        found.save(folder)
        for ending in ("png", "svg"):
            draw(found.plot(), folder / f"cka.{ending}")
        draw(found.plot_convergence(), folder / "convergence.png")
        _close(found, folder)

    once(context, [folder], work, models=named, inputs=[text])
    return [folder]


def _close(found: CKAMatrix, folder: Path) -> None:
    """A small table of the pairs of models, the cautions, and where the files are."""
    import numpy as np
    from rich.console import Console

    from thinkalike.cli.tables import show_notes, show_table

    console = Console()
    rows = []
    systems = found.systems
    for i, a in enumerate(systems):
        for b in systems[i:] if len(systems) == 1 else systems[i + 1 :]:
            values, errors = found.block(a, b), found.error_block(a, b)
            if a == b:
                values = np.where(np.eye(len(values), dtype=bool), np.nan, values)
            if not np.isfinite(values).any():
                continue
            place = np.unravel_index(np.nanargmax(values), values.shape)
            layers = [[layer for system, layer in found.rows if system == name] for name in (a, b)]
            best = f"{layers[0][place[0]]}, {layers[1][place[1]]} ({values[place]:.2f})"
            error = np.nanmax(errors) if np.isfinite(errors).any() else float("nan")
            rows.append([a if a == b else f"{a}, {b}", f"{np.nanmean(values):.3f}", f"{error:.3f}", best])
    unit, count = next(iter(found.units.items()))
    columns = ("models", "mean CKA", "± largest s.e.", "most alike layers")
    show_table(columns, rows, names=("models", "most alike layers"), console=console)
    items = {"token": "tokens", "word": "words", "sequence": "sequences"}[found.settings["level"]]
    reason = {"precision": "as precise as asked", "max_batches": "all batches done", "end": "end of text"}
    typer.echo(
        f"{found.n_items} {items} in {len(found.trace)} batches; standard errors over {count} {unit}; "
        f"{reason[found.stopped]}."
    )
    show_notes(found.cautions, console)
    typer.echo(f"\nTables and figures: {folder}")
