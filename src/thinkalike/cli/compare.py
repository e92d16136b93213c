"""`thinkalike compare`: models in, an answer and a report out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from thinkalike.addresses import reaching
from thinkalike.cli.application import app
from thinkalike.cli.autoencoder import (
    show_latents,
)
from thinkalike.cli.finished import Written, says_again
from thinkalike.cli.named import SYSTEMS, default_folder, parse_systems
from thinkalike.cli.option_groups import Encoding, Latents, Machine, ShownByColumns, Texts, Vectors, grouped
from thinkalike.cli.options import (
    DryRun,
    Scheduler,
    Seed,
    Workers,
    address,
    asked,
    lent,
    resamples,
)
from thinkalike.cli.record import AGAIN
from thinkalike.cli.tables import show_notes, show_table
from thinkalike.options import MOST_PERMUTATIONS
from thinkalike.types import Option

if TYPE_CHECKING:
    from thinkalike.comparison.comparison import Comparison
    from thinkalike.stimuli import Stimuli

Resamples = Annotated[int | None, resamples("20; salle2024: 0")]
Null = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MOST_PERMUTATIONS,
        help="Hold geometric measures against so many orders of the sentences; 0 for none.",
        show_default="200 for RSA and CKA, 0 for other measures or without resamples",
    ),
]


@app.command()
@says_again(systems=["models"], inputs=["stimuli", "autoencoder"])
@grouped
def compare(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL[@REVISION]...", help=f"Two or more: {SYSTEMS}")
    ],
    *,
    shown: ShownByColumns,
    measure: Annotated[
        list[str] | None, typer.Option(help="Also by this measure, such as cka; may be given several times.")
    ] = None,
    controls: Annotated[
        str | None, typer.Option(help="untrained: also run copies with random weights.")
    ] = None,
    resamples: Resamples = None,
    robustness: Annotated[
        bool, typer.Option("--robustness", help="Also ask the question under other reasonable analyses.")
    ] = False,
    null: Null = None,
    encoding: Encoding,
    vectors: Vectors,
    texts: Texts,
    on: Machine,
    of: Latents,
    seed: Seed = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    out: Annotated[
        Path | None,
        address("The run directory, or its address; what it holds is re-used.", show_default="runs/NAMES"),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help="What stays in the run directory: activations; or profiles, and fingerprints if the "
            "sentences and settings are the default ones. The vectors of each model are then deleted when "
            "it has been looked at.",
            show_default="activations",
        ),
    ] = None,
    report: Annotated[bool, typer.Option(help="Write the HTML report.")] = True,
    dry_run: DryRun = False,
) -> Written:
    """Compare what models care about, layer by layer: how alike they are, and why."""
    named = parse_systems(models)
    extraction = {**vectors.asked(), **texts.asked(), **on.asked(), **of.asked()}
    made = robustness and shown.stimuli is None  # sentences of a grammar: others can be made
    others = shown.read((seed or 0) + 1) if made else robustness
    stimuli = shown.read(seed)
    options = asked(
        measures=measure,
        controls=controls,
        resamples=resamples,
        robustness=others if robustness else None,
        null=null,
        extraction=extraction or None,
        seed=seed,
        keep=keep,
        **encoding.asked(),
    )
    with lent(workers, scheduler):
        if dry_run:
            from thinkalike.comparison import plan

            typer.echo(plan(named, stimuli, out=out or default_folder(named), **options))
            return []
        return run_comparison(named, stimuli, out=out or default_folder(named), report=report, **options)


def run_comparison(
    named: Mapping[str, str], stimuli: Stimuli, *, out: Path, report: bool, **options: Option
) -> Written:
    """Compare, write the report, and say what came out; returns the run directory."""
    from thinkalike.comparison import compare as run
    from thinkalike.comparison.cautions import CautionWarning

    if options.get("keep") == "profiles":
        from thinkalike.populations import leave_fingerprint

        options["last_look"] = leave_fingerprint
    before = _bytes_of(out / "run.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)  # they are in the closing words
        comparison = run(named, stimuli, out=out, **options)
    for name, profile in comparison.profiles.items():
        show_latents(name, profile.metadata)
    again = before is not None and before == _bytes_of(out / "run.json")
    page = None
    if report:
        from thinkalike.report.page import PAGE, is_current, write_report

        page = out / PAGE if is_current(out) else write_report(comparison, out)
    close(comparison, page)
    if again:
        typer.echo(AGAIN)
    return [out]


def _bytes_of(path: Path) -> bytes | None:
    with reaching(path):
        return path.read_bytes() if path.is_file() else None


FOOTNOTE = (
    "τ_w: how alike the order of the features is, from −1 to 1; RSA and other measures: geometry; all are "
    "means over pairs of layers. low to high: 95 % range over other sentences. q: how often chance does as "
    "much, corrected for the number of pairs. untrained: copies with random weights."
)


def close(comparison: Comparison, report: Path | None) -> None:
    """The answer, a small table of the pairs of systems, the cautions, and where the report is."""
    console = Console()
    typer.echo("")
    for question, said in comparison.answer.by_question().items():
        typer.echo(fill(f"{question} {said}", console.width))
    typer.echo("")
    frame = comparison.table().drop(columns="ceiling", errors="ignore")  # the report has it
    rows = [[_cell(name, value) for name, value in row.items()] for _, row in frame.iterrows()]
    show_table([str(name) for name in frame], rows, names=("systems", "best layers"), console=console)
    typer.echo(fill(FOOTNOTE, console.width))
    if comparison.cautions:
        typer.echo("\nTo keep in mind:")
        show_notes((caution.text for caution in comparison.cautions), console)
    if report is not None:
        typer.echo(f"\nReport: {report}")


def _cell(column: object, value: object) -> str:
    from thinkalike.wording import number

    if not isinstance(value, float):
        return str(value)
    return f"{value:.2g}" if column == "q" else number(value)
