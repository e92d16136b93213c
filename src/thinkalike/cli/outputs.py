"""`thinkalike outputs`: how differently models predict the next token of the same text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.finished import Written, says_again
from thinkalike.cli.named import MODELS, default_folder, parse_models
from thinkalike.cli.options import Device, Dtype, Split, address, asked
from thinkalike.cli.options import bos as bos_option

if TYPE_CHECKING:
    from thinkalike.streaming.output_distances import OutputDistances


@app.command()
@says_again(systems=["models"], inputs=["text"])
def outputs(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL[@REVISION]...", help=f"Two or more of one vocabulary: {MODELS}"),
    ],
    text: Annotated[Path, typer.Option(help="A text file, or a folder of .txt files.")],
    length: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of a passage.", show_default="as all models read, up to 1024"),
    ] = None,
    split: Split = None,
    bos: Annotated[bool | None, bos_option("no")] = None,
    max_passages: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many.", show_default="100")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    out: Annotated[
        Path | None,
        address("The folder for the table and the settings.", show_default="runs/outputs_NAMES"),
    ] = None,
) -> Written:
    """Say how far apart the predictions of causal models are, token by token, over text."""
    from thinkalike.cli.once import once
    from thinkalike.streaming import compare_outputs

    named = parse_models(models)
    folder = out or default_folder(named, "outputs")

    def work() -> None:
        found = compare_outputs(
            named,
            text,
            checkpoint=folder / "unfinished.npz",
            **asked(
                length=length, split=split, bos=bos, max_passages=max_passages, device=device, dtype=dtype
            ),
        )
        found.save(folder)
        _close(found, folder)

    once(context, [folder], work, models=named, inputs=[text])
    return [folder]


def _close(found: OutputDistances, folder: Path) -> None:
    from thinkalike.cli.tables import show_table

    frame = found.to_frame().set_index(["a", "b", "measure"])
    rows = [
        [
            f"{a}, {b}",
            *(
                f"{frame.loc[(a, b, name), 'value']:.3f} ± {frame.loc[(a, b, name), 'standard_error']:.3f}"
                for name in found.values
            ),
        ]
        for a, b in dict.fromkeys((a, b) for a, b, _ in frame.index)
    ]
    columns = ("models", "Jensen–Shannon (bits) ± s.e.", "other likeliest token ± s.e.")
    show_table(columns, rows, names=("models",))
    unit, count = next(iter(found.units.items()))
    typer.echo(f"{found.n_tokens:,} tokens; standard errors over {count} {unit}.\n\nTable: {folder}")
