"""Options that several commands share, so that they say and mean the same everywhere."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from thinkalike.errors import InvalidInput

Device = Annotated[str | None, typer.Option(help="cpu, cuda, … Default: a GPU where there is one.")]
Dtype = Annotated[str, typer.Option(help="Of the weights: float32, bfloat16, float16 or auto.")]
Site = Annotated[str | None, typer.Option(help="residual, block, attention or mlp.", show_default="residual")]
Bos = Annotated[
    bool | None, typer.Option("--bos/--no-bos", help="With or without a beginning-of-sequence token.")
]
DropFirst = Annotated[int, typer.Option(min=0, help="Leave out so many first tokens of each text.")]
BatchSize = Annotated[str, typer.Option(help="Texts at once, or auto.")]
Split = Annotated[
    str | None,
    typer.Option(
        help="A document is one of the files, paragraphs or lines.",
        show_default="paragraphs of a file, files of a folder",
    ),
]


def batch_size_of(text: str) -> int | str:
    """`--batch-size` as a number, or "auto"."""
    if text != "auto" and not text.isdecimal():
        raise InvalidInput(f"--batch-size is a number of texts or auto; {text!r} was given.")
    return text if text == "auto" else int(text)


def extraction_options(*, batch_size: str, dtype: str, drop_first: int, **others: Any) -> dict[str, Any]:
    """What was asked of `extract` beyond its defaults, so that runs without such options stay the same."""
    asked = {name: value for name, value in others.items() if value is not None}
    if dtype != "float32":
        asked["dtype"] = dtype
    if drop_first:
        asked["drop_first"] = drop_first
    if batch_size != "auto":
        asked["batch_size"] = batch_size_of(batch_size)
    return asked
