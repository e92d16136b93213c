"""Options that several commands share, so that they say and mean the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

Device = Annotated[str | None, typer.Option(help="cpu, cuda, … Default: a GPU where there is one.")]
Dtype = Annotated[str, typer.Option(help="Of the weights: float32, bfloat16, float16 or auto.")]
Split = Annotated[
    str | None,
    typer.Option(
        help="A document is one of the files, paragraphs or lines.",
        show_default="paragraphs of a file, files of a folder",
    ),
]
