"""`thinkalike fingerprint`: what a model is like, in a file small enough to hand on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.named import SYSTEMS, parse_systems
from thinkalike.cli.options import BatchSize, Device, Dtype, asked, batch_size_of, file_names
from thinkalike.errors import InvalidInput
from thinkalike.options import named_once
from thinkalike.types import Json

Reference = Annotated[
    str | None,
    typer.Option("--reference", help="words-1 or sentences-1.", show_default="words-1"),
]
Facts = Annotated[
    list[str] | None,
    typer.Option(
        "--fact", metavar="NAME=VALUE", help="What else is known: family=llama, date=2024-07; several."
    ),
]


@app.command()
def fingerprint(
    model: Annotated[str, typer.Argument(metavar="MODEL[@REVISION]", help=f"One of: {SYSTEMS}")],
    reference: Reference = None,
    fact: Facts = None,
    dtype: Dtype = None,
    device: Device = None,
    batch_size: BatchSize = None,
    out: Annotated[
        Path | None, file_names("The file to write.", show_default="NAME-REFERENCE.npz in this folder")
    ] = None,
) -> None:
    """Show reference stimuli to a model and write what is needed to compare it with others later."""
    from thinkalike.files import file_name
    from thinkalike.populations import fingerprint as make
    from thinkalike.wording import number

    ((name, source),) = parse_systems([model]).items()
    options = asked(dtype=dtype, device=device, batch_size=batch_size_of(batch_size))
    made = make(source, **asked(stimuli=reference), name=name, facts=parse_facts(fact), **options)
    path = made.save(out or Path(f"{file_name(name)}-{made.reference}.npz"))
    per_layer = path.stat().st_size / len(made.layers) / 1000
    typer.echo(f"Wrote {path}: {len(made.layers)} layers, {per_layer:.1f} kB each.")
    typer.echo(
        f"τ_w to be expected with as many other sentences: {number(made.reliability.min())} to "
        f"{number(made.reliability.max())} over its layers."
    )


def parse_facts(texts: list[str] | None) -> Json:
    """NAME=VALUE as a mapping; numbers as numbers."""
    return named_once(map(_fact, texts or []), "fact")


def _fact(text: str) -> tuple[str, str | float]:
    name, given, value = (part.strip() for part in text.partition("="))
    if not (name and given and value):
        raise InvalidInput(f"{text!r} is no fact: write NAME=VALUE, for example family=llama.")
    try:
        number = float(value) if "." in value or "e" in value.lower() else int(value)
    except ValueError:
        return name, value
    if not math.isfinite(number):
        raise InvalidInput(f"{text!r} is larger than any number that can be worked with.")
    return name, number
