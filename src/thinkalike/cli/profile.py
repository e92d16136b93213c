"""`thinkalike profile`: what the layers of one model are organised by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from thinkalike.cli.application import app
from thinkalike.cli.compare import (
    Distance,
    Ordered,
    Pooling,
    Preset,
    Resamples,
    Seed,
    Sentences,
    StimuliFile,
    parse_models,
    read_stimuli,
)
from thinkalike.cli.options import BatchSize, Bos, Device, DropFirst, Dtype, Site, extraction_options

if TYPE_CHECKING:
    from thinkalike.comparison.profiles import Profile

SHOWN = 3


@app.command()
def profile(
    model: Annotated[
        str, typer.Argument(metavar="MODEL[@REVISION]", help="A hub id, folder or bundled model.")
    ],
    stimuli: StimuliFile = None,
    sentences: Sentences = 500,
    resamples: Resamples = 0,
    preset: Preset = "default",
    distance: Distance = None,
    ordered: Ordered = None,
    pooling: Pooling = None,
    site: Site = None,
    bos: Bos = None,
    drop_first: DropFirst = 0,
    dtype: Dtype = "float32",
    device: Device = None,
    batch_size: BatchSize = "auto",
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the profile to OUT.parquet, OUT.csv and OUT.json.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the profile to this .png, .svg, .pdf or .html file.")
    ] = None,
) -> None:
    """Say by which features each layer of one model is organised, and how well they explain it."""
    from thinkalike.activations import extract
    from thinkalike.comparison import profile as make

    ((name, source),) = parse_models([model]).items()
    shown = read_stimuli(stimuli, sentences, seed)
    options = extraction_options(
        pooling=pooling,
        site=site,
        bos=bos,
        drop_first=drop_first,
        dtype=dtype,
        device=device,
        batch_size=batch_size,
    )
    activations = extract(source, shown, system=name, **options)
    made = make(
        activations, shown, preset=preset, resamples=resamples, distance=distance, ordered=ordered, seed=seed
    )
    _show(made)
    if out is not None:
        typer.echo(f"Wrote {made.save(out)}.")
    if figure is not None:
        made.plot().save(str(figure))
        typer.echo(f"Drew {figure}.")


def _show(made: Profile) -> None:
    from thinkalike.comparison.profiles import importance_shares
    from thinkalike.wording import number, percent, readable

    table = Table(title=f"{made.system}: what its layers are organised by", box=None, padding=(0, 2, 0, 0))
    table.add_column("layer", justify="right")
    table.add_column("ρ", justify="right")
    table.add_column("ceiling", justify="right")
    table.add_column("features, with their share of the importance")
    shares = importance_shares(made.mean_importance)
    interval = None if made.bootstrap is None else made.bootstrap.score_interval()
    for k, layer in enumerate(made.layers):
        score = number(made.mean_scores[k])
        if interval is not None:
            score += f" ({number(interval[0, k])} to {number(interval[1, k])})"
        ceiling = "–" if made.diagnostics is None else number(made.diagnostics.ceiling[k])
        first = [f for f in (-shares[k]).argsort(kind="stable")[:SHOWN] if shares[k, f] > 0]
        named = ", ".join(f"{readable(made.features[f])} {percent(shares[k, f])}" for f in first)
        table.add_row(str(layer), score, ceiling, named)
    Console().print(table)
