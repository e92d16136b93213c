"""`--autoencoder`: latents of a sparse autoencoder as the layers of a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thinkalike.cli.options import names_of, only_with
from thinkalike.errors import InvalidInput
from thinkalike.options import whole_number

if TYPE_CHECKING:
    from thinkalike.activations.sparse_latents import Latents
    from thinkalike.activations.store import Activations
    from thinkalike.stimuli import Stimuli

MOST = 10

Autoencoder = Annotated[
    Path | None,
    typer.Option(help="The folder or safetensors file of a sparse autoencoder: its latents are the layers."),
]
OfLayer = Annotated[
    int | None, typer.Option("--layer", min=0, help="With --autoencoder: the layer that it was trained on.")
]
TheseLatents = Annotated[
    list[str] | None,
    typer.Option(
        "--latents", help="With --autoencoder: which, by number, as 12,77; several times if need be."
    ),
]
BestLatents = Annotated[
    str | None,
    typer.Option(
        "--best", help=f"With --autoencoder: the {MOST} latents that tell the levels of this feature apart."
    ),
]


def chosen_latents(
    activations: Activations,
    shown: Stimuli,
    autoencoder: Path,
    *,
    layer: int | None,
    latents: list[str] | None,
    best: str | None,
) -> Activations:
    """Some latents of one layer, each a layer of its own; says which, and what they are worth elsewhere."""
    from thinkalike.activations import latents as encode

    if layer is None:
        raise InvalidInput("--autoencoder was trained on one layer: say which, with --layer.")
    if (latents is None) == (best is None):
        raise InvalidInput("Choose latents of --autoencoder: --latents 12,77, or --best FEATURE.")
    found = encode(activations, autoencoder, layer=layer)
    typer.echo(repr(found))
    chosen = _numbers(latents, found) if best is None else _best(found, shown, best)
    return found.activations(chosen)


def refuse_without(
    autoencoder: Path | None, *, layer: int | None, latents: list[str] | None, best: str | None
) -> None:
    """These options have no meaning by themselves."""
    only_with(autoencoder is not None, "with --autoencoder", layer=layer, latents=latents, best=best)


def _numbers(texts: list[str] | None, found: Latents) -> list[int]:
    names = names_of(texts) or []
    for name in names:
        if not (name.isascii() and name.isdecimal()):
            raise InvalidInput(f"Got --latents {name}: give numbers, such as 12,77.")
        whole_number("--latents", int(name), 0, found.values.shape[1] - 1)
    return [int(name) for name in names]


def _best(found: Latents, shown: Stimuli, feature: str) -> list[int]:
    from thinkalike.cli.tables import show_table
    from thinkalike.wording import number

    table = found.best(shown, feature, most=MOST)
    if table.empty:
        raise InvalidInput(f"No latent tells the levels of {feature!r} apart in these items.")
    worth = table[["chosen_on", "held_out"]].to_numpy(dtype=float)
    rows = [
        [str(label), number(here), number(there), str(items)]
        for label, (here, there), items in zip(table["layer"], worth, table["items"], strict=True)
    ]
    columns = ("latent", "η² where chosen", "η² elsewhere", "items")
    show_table(columns, rows, names=("latent",), title=f"The latents that tell {feature} apart")
    return [int(latent) for latent in table["latent"]]
