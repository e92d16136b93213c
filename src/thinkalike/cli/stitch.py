"""`thinkalike stitch`: what it costs to put the top of one model on the bottom of another."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thinkalike.cli.application import app
from thinkalike.cli.finished import Written, says_again
from thinkalike.cli.named import MODELS, parse_models
from thinkalike.cli.options import (
    Device,
    DryRun,
    Dtype,
    Scheduler,
    Seed,
    Split,
    Workers,
    address,
    asked,
    draw,
    lent,
    only_with,
    run_directory,
)
from thinkalike.errors import InvalidInput
from thinkalike.labels import block_of
from thinkalike.types import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkalike.comparison.comparison import Comparison
    from thinkalike.stitching.result import StitchResult

STITCHING = "stitching"  # the folder of a run directory that holds its stitchings
TABLES = (".csv", ".tsv", ".parquet")


@app.command()
@says_again(systems=["bottom", "top"], inputs=["text", "test"])
def stitch(
    context: typer.Context,
    bottom: Annotated[
        str,
        typer.Argument(metavar="BOTTOM", help=f"One of: {MODELS}"),
    ],
    top: Annotated[str, typer.Argument(metavar="TOP", help="The same; it must share BOTTOM's tokenizer.")],
    text: Annotated[
        Path,
        typer.Option(
            help="A text file or a folder of .txt files; for classifiers a .csv, .tsv or .parquet table with "
            "the columns text (and second), label."
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            help="Of φ: identity, affine, layernorm-affine, orthogonal or low-rank.", show_default="affine"
        ),
    ] = None,
    fit: Annotated[
        str | None,
        typer.Option(help="least-squares or task.", show_default="least-squares; identity: none"),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            help="all: each with its counterpart. grid: each with each. 0,2,4: these. 1:2,1:3: these pairs.",
            show_default="all; with --run: grid",
        ),
    ] = None,
    both_ways: Annotated[
        bool, typer.Option("--both-ways", help="Also TOP to BOTTOM, with a paired test over documents.")
    ] = False,
    run: Annotated[
        Path | None,
        run_directory(
            "A run of `thinkalike compare` with both models: its report then shows all three views."
        ),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="What to judge by.", show_default="a fifth of the documents")
    ] = None,
    floor: Annotated[bool, typer.Option(help="Also stitch TOP with itself.")] = True,
    ceiling: Annotated[bool, typer.Option(help="Also stitch an untrained copy of BOTTOM.")] = True,
    rank: Annotated[
        int | None, typer.Option(min=1, help="Of a low-rank φ.", show_default="a quarter of the width")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Of a fit by task loss.", show_default="2000")
    ] = None,
    optimizer: Annotated[
        str | None, typer.Option(help="sgd, as in the paper, or adamw.", show_default="sgd")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="At its highest.", show_default="sgd: 0.1; adamw: 0.001")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="Of a fit by task loss: least-squares or identity.", show_default="least-squares"),
    ] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a step.", show_default="1024")
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of a passage.", show_default="as both read, up to 1024"),
    ] = None,
    split: Split = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Read no more of the text.", show_default="400000")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="causal, masked or classification.", show_default="what the models are made for"),
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    seed: Seed = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    out: Annotated[
        Path | None,
        address("The folder for tables and figures.", show_default="RUN/stitching/…, or runs/stitch-NAMES"),
    ] = None,
    dry_run: DryRun = False,
) -> Written:
    """Put the top of one model on the bottom of another, and say what it costs at each layer."""
    from thinkalike.cli.once import once
    from thinkalike.stitching import TaskFit
    from thinkalike.stitching import stitch as stitch_models

    named = parse_models(list(dict.fromkeys([bottom, top])))
    names = tuple(named) * 2 if len(named) == 1 else tuple(named)
    comparison = None if run is None else _comparison(run, names)
    choice = _layers(("all" if run is None else "grid") if layers is None else layers)
    by_task = asked(
        optimizer=optimizer,
        learning_rate=learning_rate,
        steps=steps,
        batch_tokens=batch_tokens,
        start=start,
    )
    only_with(fit == "task", "with --fit task", **by_task)
    chosen: object = TaskFit(**by_task) if fit == "task" else fit
    ways = [names, names[::-1]] if both_ways and len(named) == 2 else [names]
    folders = [_folder(out, run, *way) for way in ways]

    options = asked(
        floor=floor,
        ceiling=ceiling,
        kind=kind,
        fit=chosen,
        test=None if test is None else _data(test),
        rank=rank,
        task=task,
        split=split,
        length=length,
        max_tokens=max_tokens,
        device=device,
        dtype=dtype,
        seed=seed,
    )
    by_way = [{"layers": choice, "names": names}, {"layers": _swapped(choice), "names": names[::-1]}]
    if dry_run:
        from thinkalike.comparison import plan

        for (below, above), folder, own in zip(ways, folders, by_way, strict=False):
            models = [named[below], named[above]]
            typer.echo(plan(models, _data(text), work="stitch", out=folder, **own, **options))
        return []

    def work() -> None:
        results = []
        for (below, above), folder, own in zip(ways, folders, by_way, strict=False):
            saved = folder / "unfinished.npz"
            made = stitch_models(named[below], named[above], _data(text), checkpoint=saved, **own, **options)
            results.append(made)
            _write(made, folder)
        _close(results, _two_ways(results, folders[0], seed or 0), folders[0])

    with lent(workers, scheduler):
        once(context, folders, work, models=named, inputs=[text, test])
    if comparison is not None and run is not None:
        from thinkalike.report.page import PAGE, is_current, write_report

        page = run / PAGE if is_current(run) else write_report(comparison, run)
        typer.echo(f"Report: {page}")
        return [*folders, page, run / "run.json"]
    return folders


def _comparison(run: Path, names: Sequence[str]) -> Comparison:
    """The comparison of a run, if it has both models; told before anything is stitched."""
    from thinkalike.comparison import Comparison

    found = Comparison.load(run)
    for name in names:
        if name not in found.systems:
            raise InvalidInput(
                f"{name} is not in the run {run}, which has {', '.join(found.systems)}: use the same names "
                "(NAME=MODEL), or compare the two first."
            )
    return found


def _layer(name: str) -> int | str:
    """A number; parts of blocks as they are, for `stitch` says best why they are refused."""
    return int(name) if block_of(name) == name else name


def _layers(text: str) -> Value:
    """`all`, `grid`, `0,2,4` or `1:2,1:3`."""
    if text in ("all", "grid"):
        return text
    try:
        parts = [[_layer(name) for name in part.split(":")] for part in text.split(",")]
        if any(len(part) > 2 for part in parts):
            raise ValueError
    except ValueError:
        raise InvalidInput(
            f"--layers {text!r}: write all, grid, numbers such as 0,2,4, or pairs such as 1:2,1:3."
        ) from None
    return [(part[0], part[-1]) for part in parts]


def _swapped(layers: Any) -> object:
    return layers if isinstance(layers, str) else [(b, a) for a, b in layers]


def _data(path: Path) -> object:
    from thinkalike.stitching import LabelledTexts

    return LabelledTexts.from_table(path) if path.suffix in TABLES else path


def _folder(out: Path | None, run: Path | None, bottom: str, top: str) -> Path:
    from thinkalike.files import file_name

    name = file_name(f"{bottom}-to-{top}")
    if out is not None:
        return out / name
    return Path("runs") / f"stitch-{name}" if run is None else run / STITCHING / name


def _write(result: StitchResult, folder: Path) -> None:
    result.save(folder)
    figures = {"penalty": result.plot()}
    if result.task == "classification":
        figures["accuracy"] = result.plot("accuracy_drop")
    if not result.curves.empty:
        figures["curves"] = result.plot_curves()
    for name, chart in figures.items():
        for ending in ("png", "svg"):
            draw(chart, folder / f"{name}.{ending}")


def _two_ways(results: Sequence[StitchResult], folder: Path, seed: int) -> str:
    """Write what A→B costs more than B→A at every pair of layers; the mean over them in a sentence."""
    from thinkalike.files import write_tables
    from thinkalike.stitching import asymmetry, mean_asymmetry

    if len(results) < 2:
        return ""
    there, back = results
    table, mean = asymmetry(there, back, seed=seed), mean_asymmetry(there, back, seed=seed)
    write_tables(table, folder / "asymmetry")
    a, b = there.bottom, there.top
    sign, more = (1, "more") if mean["difference"] > 0 else (-1, "less")
    low, high = sorted((sign * mean["low"], sign * mean["high"]))
    test = f" (95 % {low:.3f} … {high:.3f}, p = {mean['p']:.2g}, paired over {there.unit})"
    return (
        f"{a} → {b} costs {sign * mean['difference']:.3f} nats {more} than {b} → {a} on average over "
        f"{len(table)} pairs of layers{'' if isnan(low) else test}."
    ).replace(" -0.", " −0.")


def _close(results: Sequence[StitchResult], two_ways: str, folder: Path) -> None:
    """A table of the penalties, what a mismatch of depth costs, the paired test, and where the files are."""
    from textwrap import fill

    from rich.console import Console

    from thinkalike.cli.tables import show_notes, show_table

    console = Console()
    for result in results:
        by_accuracy = result.task == "classification"
        typer.echo(
            f"\n{result.bottom} → {result.top}: {result.kind}, {result.fit}; own loss "
            f"{result.own_loss:.3f} nats, accuracy {result.own_accuracy:.1%}, over "
            f"{int(result.counts.sum()):,} predictions in {len(result.counts)} {result.unit}"
        )
        columns = ["layers", "penalty", "95 %", "floor", "ceiling", "accuracy drop", "outside"]
        rows = []
        frame = result.to_frame()
        shown = frame if len(frame) <= 30 else frame.nsmallest(10, "penalty")
        for _, row in shown.iterrows():
            low, high = (row["drop_low"], row["drop_high"]) if by_accuracy else (row["low"], row["high"])
            rows.append(
                [
                    f"{row['layer_bottom']} → {row['layer_top']}",
                    f"{row['penalty']:.3f}",
                    "–" if isnan(low) else f"{low:.3f} … {high:.3f}",
                    *("–" if isnan(row[name]) else f"{row[name]:.3f}" for name in ("floor", "ceiling")),
                    f"{row['accuracy_drop']:.1%}",
                    f"{row['outside']:.0%}",
                ]
            )
        show_table(columns, rows, names=("layers",), console=console)
        notes = [*result.cautions, *_range_note(result), *_depth_note(result)]
        if len(shown) < len(frame):
            notes.insert(0, f"The cheapest 10 of {len(frame)} pairs of layers.")
        show_notes(notes, console)
    if two_ways:
        typer.echo("\n" + fill(two_ways, console.width, break_on_hyphens=False))
    typer.echo(f"\nTables and figures: {folder}")


def _range_note(result: StitchResult) -> list[str]:
    from thinkalike.stitching.statistics import why_no_range

    name = "drop_low" if result.task == "classification" else "low"
    if why_no_range(len(result.counts), result.unit) or not result.to_frame()[name].isna().any():
        return []
    return [f"– for a range: too few of the {result.unit} differ from the rest to tell one."]


def _depth_note(result: StitchResult) -> list[str]:
    rho = result.depth_mismatch()
    if isnan(rho):
        return []
    return [
        f"Penalty and mismatch of depth go at ρ = {rho:.2f} over {len(result.to_frame())} pairs of layers "
        "(no p: the pairs share layers)."
    ]
