"""`thinkalike extract`: every layer's answer to every item, kept on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.autoencoder import (
    show_latents,
)
from thinkalike.cli.finished import Written, says_again
from thinkalike.cli.named import MODELS, parse_models
from thinkalike.cli.option_groups import Latents, Texts, grouped
from thinkalike.cli.options import (
    BatchSize,
    Bos,
    Device,
    DryRun,
    Dtype,
    Seed,
    Site,
    address,
    asked,
    batch_size_of,
    only_with,
)
from thinkalike.cli.record import AGAIN
from thinkalike.cli.shown import FILES, Columns, Drop, Features, Kinds, read_stimuli
from thinkalike.errors import InvalidInput
from thinkalike.wording import how_many


@app.command()
@says_again(systems=["model"], inputs=["stimuli", "autoencoder"])
@grouped
def extract(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL[@REVISION]",
            help=f"One of: {MODELS}",
        ),
    ],
    stimuli: Annotated[Path, typer.Option(help=FILES)],
    *,
    sentences: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many sentences of the file.")
    ] = None,
    features: Features = None,
    drop: Drop = None,
    kind: Kinds = None,
    column: Columns = None,
    out: Annotated[
        str | None,
        address("Where to keep them: a folder, or any fsspec address.", show_default="the cache"),
    ] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            help="Of a word's tokens: last, first, mean, all; of whole texts also cls.", show_default="last"
        ),
    ] = None,
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
    seed: Seed = None,
    bos: Bos = None,
    texts: Texts,
    dtype: Dtype = None,
    device: Device = None,
    device_map: Annotated[str | None, typer.Option(help="auto spreads a big model over all devices.")] = None,
    batch_size: BatchSize = None,
    gguf_file: Annotated[str | None, typer.Option(help="The file in a folder of quantised weights.")] = None,
    of: Latents,
    dry_run: DryRun = False,
) -> Written:
    """Keep what every layer of a model answers to every item. The same command again resumes."""
    from thinkalike.activations import extract as run
    from thinkalike.activations.reader import is_complete

    ((name, source),) = parse_models([model]).items()
    only_with(untrained or ":untrained" in source, "with --untrained, whose weights it draws", seed=seed)
    of_latents = of.asked()
    if of_latents and out is None:
        raise InvalidInput("Latents are not kept in the cache: also give --out, where to keep them.")
    texts_at_once = batch_size_of(batch_size)
    shown = read_stimuli(stimuli, sentences=sentences, features=features, drop=drop, kind=kind, column=column)
    options = asked(
        final_norm=final_norm or None,
        untrained=untrained or None,
        pooling=pooling,
        site=site,
        part=part,
        blocks=blocks,
        revision=revision,
        seed=seed,
        bos=bos,
        dtype=dtype,
        device=device,
        device_map=device_map,
        batch_size=texts_at_once,
        gguf_file=gguf_file,
        **texts.asked(),
        **of_latents,
    )
    if dry_run:
        from thinkalike.comparison import plan

        typer.echo(plan({name: source}, shown, work="extract", extraction=options or None, out=out))
        return []
    done = False if out is None else is_complete(out)
    found = run(source, shown, **options, **asked(system=name if source != model else None, out=out))
    show_latents(found.system, found.metadata)
    widths = " to ".join(str(width) for width in sorted({min(found.n_units), max(found.n_units)}))
    units = "1 unit" if widths == "1" else f"{widths} units"
    layers, items = how_many(len(found), "layer"), how_many(found.n_items, "item")
    typer.echo(f"{found.system}: {layers} × {items} × {units}")
    if found.n_items < len(shown) and pooling != "all":
        typer.echo(f"{len(shown) - found.n_items:,} items have no other than first tokens, and no row.")
    typer.echo(found.metadata["path"])
    if done:
        typer.echo(AGAIN)
    return [found.metadata["path"]]
