"""`thinkalike extract`: every layer's answer to every item, kept on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.options import BatchSize, Bos, Device, DropFirst, Dtype, Site, batch_size_of


@app.command()
def extract(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A hub id, a folder, or a bundled model; may end in @REVISION, :encoder, :decoder or "
            ":untrained.",
        ),
    ],
    stimuli: Annotated[
        Path, typer.Option(help="A .csv, .tsv, .parquet or .conllu file of annotated words or sentences.")
    ],
    out: Annotated[
        str | None,
        typer.Option(help="Where to keep them: a folder, or any fsspec address. Default: the cache."),
    ] = None,
    pooling: Annotated[
        str, typer.Option(help="Of a word's tokens: last, first, mean, all; of whole texts also cls.")
    ] = "last",
    site: Site = None,
    final_norm: Annotated[
        bool, typer.Option("--final-norm", help="Also keep the last layer after the final norm.")
    ] = False,
    part: Annotated[str | None, typer.Option(help="encoder or decoder, of a model that has both.")] = None,
    blocks: Annotated[
        str | None, typer.Option(help="Path of the list of blocks, for an unknown architecture.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag, commit or checkpoint.")] = None,
    untrained: Annotated[
        bool, typer.Option("--untrained", help="The same architecture with random weights.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the random weights.")] = 0,
    bos: Bos = None,
    drop_first: DropFirst = 0,
    dtype: Dtype = "float32",
    device: Device = None,
    device_map: Annotated[str | None, typer.Option(help="auto spreads a big model over all devices.")] = None,
    batch_size: BatchSize = "auto",
    gguf_file: Annotated[str | None, typer.Option(help="The file in a folder of quantised weights.")] = None,
) -> None:
    """Keep what every layer of a model answers to every item. The same command again resumes."""
    from thinkalike.activations import extract as run
    from thinkalike.stimuli import Stimuli

    texts_at_once = batch_size_of(batch_size)
    shown = Stimuli.from_conllu(stimuli) if stimuli.suffix == ".conllu" else Stimuli.from_table(stimuli)
    found = run(
        model,
        shown,
        pooling=pooling,
        site=site or "residual",
        final_norm=final_norm,
        part=part,
        blocks=blocks,
        revision=revision,
        untrained=untrained,
        seed=seed,
        bos=bos,
        drop_first=drop_first,
        dtype=dtype,
        device=device,
        device_map=device_map,
        batch_size=texts_at_once,
        gguf_file=gguf_file,
        out=out,
    )
    widths = " to ".join(str(width) for width in sorted({min(found.n_units), max(found.n_units)}))
    typer.echo(f"{found.system}: {len(found)} layers × {found.n_items:,} items × {widths} units")
    if found.n_items < len(shown) and pooling != "all":
        typer.echo(f"{len(shown) - found.n_items:,} items have no other than first tokens, and no row.")
    typer.echo(found.metadata["path"])
