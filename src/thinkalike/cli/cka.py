"""`thinkalike cka`: geometric similarity of all layers of several models over running text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.options import Device, Dtype, Split

if TYPE_CHECKING:
    from thinkalike.streaming.cka_matrix import CKAMatrix


@app.command()
def cka(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL[@REVISION]...",
            help="One or more: hub ids, folders, bundled models. NAME=MODEL gives a name of its own.",
        ),
    ],
    text: Annotated[Path, typer.Option(help="A text file, or a folder of .txt files.")],
    precision: Annotated[
        float | None, typer.Option(help="Stop when the largest standard error is at most this, e.g. 0.01.")
    ] = None,
    level: Annotated[
        str, typer.Option(help="A row is a token, a word (for unlike tokenizers), or a sequence.")
    ] = "token",
    batch: Annotated[
        str | None,
        typer.Option(
            help="sequence: within passages. tokens: rows of several passages mixed.",
            show_default="sequence; --level sequence: tokens",
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Rows of a mixed batch.", show_default="1024")
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a passage.", show_default="as all models read, up to 1024")
    ] = None,
    split: Split = None,
    pack: Annotated[
        bool, typer.Option(help="Join documents into passages of equal length, or read them one by one.")
    ] = True,
    padding: Annotated[str, typer.Option(help="Of unpacked documents: mask, or keep as rows.")] = "mask",
    bos: Annotated[
        bool, typer.Option("--bos", help="Begin every passage with a beginning-of-sequence token.")
    ] = False,
    drop_first: Annotated[int, typer.Option(help="Leave out so many first tokens of each passage.")] = 0,
    site: Annotated[str, typer.Option(help="residual, block, attention or mlp.")] = "residual",
    average: Annotated[
        str, typer.Option(help="hsic: ratio of summed HSICs. ratio: mean over batches, as in Brown et al.")
    ] = "hsic",
    max_batches: Annotated[int, typer.Option(help="Stop after so many in any case.")] = 1000,
    device: Device = None,
    dtype: Dtype = "float32",
    seed: Annotated[int, typer.Option(min=0, help="Of mixed batches.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for tables, settings and figures.", show_default="runs/cka-NAMES"),
    ] = None,
) -> None:
    """Compare all layers of models by CKA over text, with standard errors, until it is precise enough."""
    from thinkalike.cli.compare import default_folder, parse_models
    from thinkalike.streaming import stream_cka

    named = parse_models(models)
    folder = out or default_folder({"cka": "", **named})
    found = stream_cka(
        named,
        text,
        level=level,  # type: ignore[arg-type]
        batch=batch,  # type: ignore[arg-type]
        batch_size=batch_size,
        pack=pack,
        split=split,  # type: ignore[arg-type]
        length=length,
        padding=padding,  # type: ignore[arg-type]
        bos=bos or None,
        drop_first=drop_first,
        site=site,
        average=average,  # type: ignore[arg-type]
        precision=precision,
        max_batches=max_batches,
        device=device,
        dtype=dtype,
        seed=seed,
        checkpoint=folder / "unfinished.npz",
    )
    found.save(folder)
    found.plot().save(folder / "cka.png", scale_factor=2)
    found.plot().save(folder / "cka.svg")
    found.plot_convergence().save(folder / "convergence.png", scale_factor=2)
    _close(found, folder)


def _close(found: CKAMatrix, folder: Path) -> None:
    """A small table of the pairs of models, the cautions, and where the files are."""
    from textwrap import fill

    import numpy as np
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("models", "mean CKA", "± largest s.e.", "most alike layers"):
        table.add_column(name, justify="left" if name in ("models", "most alike layers") else "right")
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
            table.add_row(a if a == b else f"{a}, {b}", f"{np.nanmean(values):.3f}", f"{error:.3f}", best)
    unit, count = next(iter(found.units.items()))
    console.print(table)
    items = {"token": "tokens", "word": "words", "sequence": "sequences"}[found.settings["level"]]
    reason = {"precision": "as precise as asked", "max_batches": "all batches done", "end": "end of text"}
    typer.echo(
        f"{found.n_items} {items} in {len(found.trace)} batches; standard errors over {count} {unit}; "
        f"{reason[found.stopped]}."
    )
    for caution in found.cautions:
        typer.echo(fill(f"· {caution}", console.width, initial_indent="  ", subsequent_indent="    "))
    typer.echo(f"\nTables and figures: {folder}")
