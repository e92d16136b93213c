"""Options that several commands share, so that they say and mean the same everywhere.

An option that is not given is None and is not passed on: what it then means is said in one place, the Python
function behind the command. `show_default` repeats it for the help, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from thinkalike import addresses
from thinkalike.addresses import whole
from thinkalike.errors import InvalidInput
from thinkalike.options import LARGEST_SEED, MOST_RESAMPLES
from thinkalike.systems.sites import SITES
from thinkalike.types import Chart, Option

NOT_TO_WRITE_TO = ("memory", "http", "https")
FIGURES = (".png", ".svg", ".pdf", ".html")


def asked(**options: Any) -> dict[str, Any]:
    """Those that were given; what is given empty says nothing."""
    found = {name: value for name, value in options.items() if value is not None}
    empty = next((name for name, value in found.items() if value == ""), None)
    if empty is not None:
        raise InvalidInput(f"--{empty.replace('_', '-')} is empty: give a value, or leave it out.")
    return found


def batch_size_of(text: str | None) -> int | str | None:
    """`--batch-size` as a number, or "auto"."""
    if text is None or text == "auto":
        return text
    if not (text.isascii() and text.isdecimal()):
        raise InvalidInput(f"--batch-size is a number of texts or auto; {text!r} was given.")
    return int(text)


def names_of(texts: Sequence[str] | None) -> list[str] | None:
    """`--features a,b --features c` as a list of names."""
    if texts is None:
        return None
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def only_with(condition: bool, needed: str, **options: Option) -> None:
    """Refuse options that nothing would look at; `needed` says what they need."""
    idle = [f"--{name.replace('_', '-')}" for name in asked(**options)]
    if idle and not condition:
        raise InvalidInput(f"{idle[0]} has a meaning only {needed}: leave it out.")


def _address(value: Path | str | None) -> Path | str | None:
    if value is None:
        return None
    text = whole(value)
    if not text.strip():
        raise InvalidInput("Got no place to write to: give a folder or an address.")
    scheme, sign, _ = text.partition("://")
    if sign and scheme in NOT_TO_WRITE_TO:
        why = "is gone when the command ends" if scheme == "memory" else "cannot be written to"
        raise InvalidInput(f"{text} {why}: give a folder, or an address such as s3://BUCKET/NAME.")
    return value if isinstance(value, str) else addresses.place(value)


def _file(value: Path | str | None) -> Path | str | None:
    """A file that is written last: whether it can be is tried first."""
    found = _address(value)
    if found is not None:
        from thinkalike.files import try_place

        try_place(found)
    return found


def _beginning(value: Path | None) -> Path | str | None:
    if value is not None and not value.name:
        raise InvalidInput(
            f"Got {str(value)!r} as the beginning of names of files: give one, such as runs/mine."
        )
    return _file(value)


def _source(value: Path | None) -> Path | None:
    return None if value is None else addresses.place(value)


def _figure(value: Path | None) -> Path | None:
    if value is not None and value.suffix.lower() not in FIGURES:
        raise InvalidInput(f"{value} ends in {value.suffix!r}: figures are drawn as {', '.join(FIGURES)}.")
    return _file(value)  # type: ignore[return-value]


def _page(value: Path | None) -> Path | None:
    if value is not None and value.suffix.lower() != ".html":
        raise InvalidInput(f"{value} ends in {value.suffix!r}: a page is written as .html.")
    return _file(value)  # type: ignore[return-value]


def run_directory(help: str, **more: Any) -> object:
    """An option that names a run directory, or its address."""
    return typer.Option(help=help, callback=_source, **more)


def address(help: str, **more: Any) -> object:
    """An option that names a folder, or any fsspec address that can be written to."""
    return typer.Option(help=help, callback=_address, **more)


def page(help: str, **more: Any) -> object:
    """An option that names a page to write."""
    return typer.Option(help=help, callback=_page, **more)


def file_names(help: str, **more: Any) -> object:
    """An option that names the beginning of several files, OUT.csv and the like."""
    return typer.Option(help=help, callback=_beginning, **more)


def source(help: str, **more: Any) -> object:
    """An argument that names a folder to read, or its address."""
    return typer.Argument(help=help, callback=_source, **more)


Device = Annotated[str | None, typer.Option(help="cpu, cuda, …", show_default="a GPU where there is one")]
Dtype = Annotated[
    str | None,
    typer.Option(help="Of the weights: float32, bfloat16, float16 or auto.", show_default="float32"),
]
Site = Annotated[
    str | None,
    typer.Option(
        help=f"{', '.join(SITES.own)}, one that was added, or the path of a module within a block.",
        show_default="residual",
    ),
]


def bos(default: str) -> Option:
    """Whether texts begin with a token of their own."""
    return typer.Option(
        "--bos/--no-bos", help="With or without a beginning-of-sequence token.", show_default=default
    )


Bos = Annotated[bool | None, bos("auto: as in training, where known")]
DropFirst = Annotated[
    int | None, typer.Option(min=0, help="Leave out so many first tokens of each text.", show_default="0")
]
Chat = Annotated[
    bool, typer.Option("--chat", help="Show each text as a turn of a chat, by the model's chat template.")
]
SystemTurn = Annotated[str | None, typer.Option(help="With --chat: what the system says first.")]
Window = Annotated[
    int | None, typer.Option(min=8, help="Read longer texts in windows of so many tokens, half overlapping.")
]
Generate = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Let the model continue each text by so many tokens; these are the item.",
        show_default="0",
    ),
]
BatchSize = Annotated[str | None, typer.Option(help="Texts at once, or auto.", show_default="auto")]
Split = Annotated[
    str | None,
    typer.Option(
        help="A document is one of the files, paragraphs or lines.",
        show_default="paragraphs of a file, files of a folder",
    ),
]
Pooling = Annotated[
    str | None, typer.Option(help="Of a word's tokens: last, first, mean.", show_default="last")
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, max=LARGEST_SEED, help="Of everything that is drawn.", show_default="0"),
]
Preset = Annotated[
    str | None,
    typer.Option(help="default, or salle2024 for the choices of the paper's code.", show_default="default"),
]
Distance = Annotated[
    str | None,
    typer.Option(help="Between vectors: euclidean, cosine, correlation, …", show_default="euclidean"),
]
Ordered = Annotated[
    str | None,
    typer.Option(
        help="Of numbers and ordinal features: indicator (whether they differ) or minmax (by how much).",
        show_default="indicator",
    ),
]
Steps = Annotated[
    list[str] | None,
    typer.Option(
        "--step",
        help="What vectors go through first: zscore, pca:50, whiten, remove-top:2, demean:word. May be given "
        "several times, in order.",
        show_default="none",
    ),
]
Importance = Annotated[
    str | None,
    typer.Option(
        help="How much a feature matters: expected, permutation, stimuli, conditional, drop or shapley.",
        show_default="expected; salle2024: permutation",
    ),
]
Figure = Annotated[
    Path | None, typer.Option(help="Draw to this .png, .svg, .pdf or .html file.", callback=_figure)
]


Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Spread the work over so many processes of this machine.", show_default="none"),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say what it will take: tasks, time, memory, disk.")
]
Scheduler = Annotated[str | None, typer.Option(help="Or over a running Dask cluster: tcp://HOST:PORT.")]


@contextmanager
def lent(workers: int | None, scheduler: str | None) -> Iterator[None]:
    """`--workers` and `--scheduler`: what the work within the block is sent to, if to anything."""
    from thinkalike import parallel

    with ExitStack() as stack:
        if workers is not None and scheduler is not None:
            raise InvalidInput("--workers and --scheduler both say where the work is done: give one of them.")
        if workers is not None:
            stack.enter_context(parallel.workers(workers))
        if scheduler is not None:
            stack.enter_context(parallel.workers(stack.enter_context(parallel.dask_client(scheduler))))
        yield


def resamples(default: str) -> Option:
    """How often the sentences are drawn anew."""
    return typer.Option(
        min=0,
        max=MOST_RESAMPLES,
        help="Runs without a tenth of the sentences, for ranges; 0: none.",
        show_default=default,
    )


def draw(chart: Chart, figure: Path) -> None:
    """Write a chart as the suffix says."""
    from thinkalike.charts.drawing import drawn
    from thinkalike.files import write_bytes

    write_bytes(drawn(chart, figure.suffix.lower().removeprefix(".")), figure)
