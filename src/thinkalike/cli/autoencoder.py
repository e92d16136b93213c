"""`--autoencoder`: latents of a sparse autoencoder as the layers of a command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from thinkalike.cli.options import asked, names_of, only_with
from thinkalike.errors import InvalidInput
from thinkalike.types import Json

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
    typer.Option("--best", help="With --autoencoder: those ten that tell the levels of this feature apart."),
]


def latent_options(
    autoencoder: Path | None, *, layer: int | None, latents: list[str] | None, best: str | None
) -> Json:
    """The options of `extract` that were given."""
    only_with(autoencoder is not None, "with --autoencoder", layer=layer, latents=latents, best=best)
    if autoencoder is None:
        return {}
    if layer is None:
        raise InvalidInput("--autoencoder was trained on one layer: say which, with --layer.")
    if (latents is None) == (best is None):
        came = "Got neither --latents nor --best" if best is None else "Got both --latents and --best"
        raise InvalidInput(
            f"{came}: choose latents by number, --latents 12,77, or by a feature, --best NAME."
        )
    return asked(autoencoder=str(autoencoder), layer=layer, latents=_numbers(latents), best=best)


def _numbers(texts: list[str] | None) -> list[int] | None:
    names = names_of(texts)
    for name in names or []:
        if not (name.isascii() and name.isdecimal()):
            raise InvalidInput(f"Got --latents {name}: give numbers, such as 12,77.")
    return None if names is None else [int(name) for name in names]


def show_latents(system: str, about: Mapping[str, Any]) -> None:
    """Say how many latents there are, and what the chosen ones are worth elsewhere; of layers, nothing."""
    if about.get("site") != "latents" or "n_latents" not in about:
        return
    typer.echo(
        f"{system}: {len(about['latents'])} of the {about['n_latents']:,} latents of layer {about['layer']}; "
        f"{about['active']:.1f} of all are active in an item, on average."
    )
    if "worth" not in about:
        return
    from thinkalike.cli.tables import show_table
    from thinkalike.wording import number

    worth = about["worth"]
    rows = [
        [str(label), number(here), number(there), str(items)]
        for label, here, there, items in zip(
            worth["layer"], worth["chosen_on"], worth["held_out"], worth["items"], strict=True
        )
    ]
    columns = ("latent", "η² where chosen", "η² elsewhere", "items")
    show_table(
        columns, rows, names=("latent",), title=f"{system}: the latents that tell {about['best']} apart"
    )
