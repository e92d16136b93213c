"""`thinkalike atlas`: fingerprints of many models, and what they say together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.fingerprint import Facts, Reference, parse_facts
from thinkalike.cli.named import SYSTEMS, parse_systems
from thinkalike.cli.options import (
    BatchSize,
    Device,
    Dtype,
    Figure,
    Scheduler,
    Workers,
    address,
    asked,
    batch_size_of,
    draw,
    lent,
    only_with,
    page,
)
from thinkalike.cli.tables import show_notes, show_table
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.systems.names import name_of
from thinkalike.types import Option
from thinkalike.wording import listed

if TYPE_CHECKING:
    import pandas as pd

    from thinkalike.populations.atlas import Atlas

Q_IN_WORDS = (
    "importance: how much ρ falls without the facts, with its range over other models. "
    "q: p by permuting models, given all the other facts; q alone: as if there were no others. "
    "Both are corrected for the number of facts."
)
ACTIONS = ("add", "list", "nearest", "map", "why", "report")
MEANT_FOR = {
    ("add",): ("dtype", "device", "batch_size", "fact", "workers", "scheduler"),
    ("nearest", "map", "why", "report"): ("by",),
    ("nearest",): ("n",),
    ("why", "report"): ("facts",),
    ("why",): ("sensitivity",),
    ("report",): ("out",),
    ("map",): ("figure",),
}
"""Actions → the options that have a meaning with these alone"""


@app.command()
def atlas(
    action: Annotated[str, typer.Argument(metavar="ACTION", help=f"One of: {', '.join(ACTIONS)}.")],
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL...]", help=f"For add, also files of fingerprints, or: {SYSTEMS} For nearest, one."
        ),
    ] = None,
    at: Annotated[
        str | None,
        address("The atlas: a folder or an address.", show_default="the bundled models, to read only"),
    ] = None,
    reference: Reference = None,
    by: Annotated[
        str | None,
        typer.Option(help="features, warped, warped-shares or rsa.", show_default="features"),
    ] = None,
    n: Annotated[int | None, typer.Option("-n", min=1, help="How many to show.", show_default="5")] = None,
    facts: Annotated[
        Path | None, typer.Option(help="why, report: a .csv table of facts, the first column the models.")
    ] = None,
    sensitivity: Annotated[
        bool | None,
        typer.Option("--sensitivity", help="why: with other stimuli, distances, cohorts and groupings too."),
    ] = None,
    cohort: Annotated[
        str | None,
        typer.Option(
            help="why --sensitivity: the fact whose levels are left out in turn.",
            show_default="family or architecture",
        ),
    ] = None,
    fact: Facts = None,
    dtype: Dtype = None,
    device: Device = None,
    batch_size: BatchSize = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    figure: Figure = None,
    out: Annotated[
        Path | None, page("report: the page to write.", show_default="atlas.html in this folder")
    ] = None,
) -> None:
    """Keep fingerprints of many models; find the nearest, map them, and ask why they are alike."""
    if action not in ACTIONS:
        raise UnknownName.among("action of an atlas", action, ACTIONS)
    from thinkalike.populations.atlas import Atlas

    extraction = asked(dtype=dtype, device=device, batch_size=batch_size_of(batch_size))
    given: dict[str, Option] = {
        **{name: extraction.get(name) for name in ("dtype", "device", "batch_size")},
        "fact": fact, "workers": workers, "scheduler": scheduler, "by": by, "n": n, "facts": facts,
        "sensitivity": sensitivity, "out": out, "figure": figure,
    }  # fmt: skip
    for actions, names in MEANT_FOR.items():
        idle = {name: given[name] for name in names}
        only_with(action in actions, f"with {listed(actions)}", **idle)
    only_with(action == "why" and bool(sensitivity), "with why --sensitivity", cohort=cohort)
    opened = Atlas(at, **asked(stimuli=reference))
    if models and action not in ("add", "nearest"):
        raise InvalidInput(f"{action} looks at all models of the atlas: leave out {models[0]}.")
    if action != "add" and not len(opened):
        raise InvalidInput(f"There is nothing in {at} yet: thinkalike atlas add MODEL --at {at}")
    work: dict[str, Callable[[], None]] = {
        "add": lambda: _add(opened, at, models, fact, lent(workers, scheduler), **extraction),
        "list": lambda: _list(opened),
        "nearest": lambda: _nearest_to(opened, models, n or 5, **asked(by=by)),
        "map": lambda: _map(opened, figure, **asked(by=by)),
        "why": lambda: _why(opened, facts, bool(sensitivity), cohort, **asked(by=by)),
        "report": lambda: _report(opened, facts, out or Path("atlas.html"), **asked(by=by)),
    }
    work[action]()


def _add(
    opened: Atlas,
    at: str | None,
    models: list[str] | None,
    fact: list[str] | None,
    workers: AbstractContextManager[None],
    **extraction: Option,
) -> None:
    from thinkalike.populations.fingerprint_files import is_fingerprint

    if not models:
        raise InvalidInput("Nothing was given to add: name a model, or the file of a fingerprint.")
    if at is None:
        raise InvalidInput("The bundled fingerprints stay as they are: name a folder, --at my-atlas.")
    named = parse_systems(models)
    files = {name: one for name, one in named.items() if is_fingerprint(Path(one))}
    for name, file in files.items():
        _check_fingerprint(name, file, fact=fact, **extraction)
    added = [opened.add(file) for file in files.values()]
    others = {name: one for name, one in named.items() if name not in files}
    if others:
        with workers:
            added += opened.add_models(others, facts=parse_facts(fact), **extraction)
    for made in added:
        typer.echo(f"Added {made.name} to {at}: {len(made.layers)} layers.")
        if len(opened) > 1:
            _nearest(opened, made.name, 3)


def _check_fingerprint(name: str, source: str, **options: Option) -> None:
    """The file of a fingerprint has its name and its facts; `options` are for models."""
    given = [f"--{one.replace('_', '-')}" for one in asked(**options)]
    given += [] if name == name_of(source) else [f"{name}="]
    if given:
        raise InvalidInput(
            f"{source} is the file of a fingerprint, which has its name and its facts: leave out {given[0]}."
        )


def _list(opened: Atlas) -> None:
    facts = opened.facts()
    columns = [c for c in ("architecture", "depth", "width", "parameters", "family") if c in facts]
    rows = [[str(name), *(_text(row[c]) for c in columns)] for name, row in facts.iterrows()]
    show_table(["model", *columns], rows, names=["architecture", "family"], title=repr(opened))


def _nearest_to(opened: Atlas, models: list[str] | None, n: int, **options: str) -> None:
    if not models or len(models) != 1:
        raise InvalidInput("nearest takes one model of the atlas, for example nano-gpt2.")
    _nearest(opened, models[0], n, **options)


def _nearest(opened: Atlas, model: str, n: int, **options: str) -> None:
    found = opened.nearest(model, n, **options)
    rows = [[str(row.model), f"{row.distance:.3f}"] for row in found.itertuples()]
    show_table(["model", "distance"], rows, names=["model"], title=f"Nearest to {model}")


def _map(opened: Atlas, figure: Path | None, **options: str) -> None:
    found = opened.map(**options)
    rows = [
        [name, _figure(x), _figure(y)] for name, (x, y) in zip(found.names, found.coordinates, strict=True)
    ]
    show_table(["model", "x", "y"], rows, names=["model"], title=f"{opened!r}, by {found.by}")
    typer.echo(f"Stress {found.stress:.2f}: 0 is perfect, above 0.2 is poor.")
    if figure is not None:
        from thinkalike.populations.charts import map_chart

        draw(map_chart(found, opened.facts().get("family")), figure)
        typer.echo(f"Drew {figure}.")


def _why(opened: Atlas, table: Path | None, sensitivity: bool, cohort: str | None, **options: str) -> None:
    if sensitivity:
        _sensitivity(opened, table, cohort, **options)
        return
    from thinkalike.report.population_answer import left_out_in_words, why_in_words
    from thinkalike.wording import number

    found = opened.why(_table(table), **options)
    columns = ["conditional", "share", "q", "q_alone"]
    rows = [
        [
            str(row["facts"]),
            f"{number(row['importance'])}{_range(row['low'], row['high'])}",
            *(_figure(row[c]) for c in columns),
        ]
        for _, row in found.to_frame().iterrows()
    ]
    title = f"{found.n_models} models by {found.by}: facts explain ρ = {found.score:.2f} of the distances"
    headings = [name.replace("_", " ") for name in ("facts", "importance", *columns)]
    show_table(headings, rows, names=["facts"], title=title)
    notes = [f"Left out: {left_out_in_words(found.left_out)}."] if found.left_out else []
    if bool((found.p != found.p).any()):
        notes.insert(0, "–: so few models do not tell that fact from all the others together.")
    typer.echo(why_in_words(found))
    show_notes([Q_IN_WORDS, *notes])


def _sensitivity(opened: Atlas, table: Path | None, cohort: str | None, **options: str) -> None:
    found = opened.sensitivity(_table(table), **asked(cohort=cohort, **options))
    leaders = found.leaders()
    rows = [
        [str(row.choice), str(row.analysis), str(row.models), str(row.leader), "yes" if row.same else "no"]
        for row in leaders.itertuples()
    ]
    columns = ["choice", "analysis", "models", "leads", "as in the first"]
    show_table(
        columns, rows, names=["choice", "analysis", "leads"], title="Which facts lead, if one chose otherwise"
    )
    frame = found.to_frame()
    rows = [
        [
            str(row.fact),
            _figure(main),
            f"{_figure(least)} to {_figure(most)}",
            f"{row.leads} of {row.analyses}",
            f"{row.found} of {row.tested}",
        ]
        for row, (main, least, most) in zip(
            frame.itertuples(), frame[["main", "least", "most"]].to_numpy(dtype=float), strict=True
        )
    ]
    columns = ["fact", "importance", "over all analyses", "leads", "q ≤ 0.05"]
    show_table(columns, rows, names=["fact"], title="Facts over all analyses")


def _report(opened: Atlas, table: Path | None, out: Path, **options: str) -> None:
    from thinkalike.report.population_page import write_population

    facts = opened.facts(_table(table))
    typer.echo(f"Wrote {write_population(opened.fingerprints(), out, facts=facts, **asked(**options))}.")


def _table(path: Path | None) -> pd.DataFrame | None:
    from thinkalike.populations.fact_table import read_facts

    return None if path is None else read_facts(path)


def _text(value: object) -> str:
    missing = value is None or (isinstance(value, float) and value != value)
    return "–" if missing else f"{value:,}" if isinstance(value, int) else str(value)


def _figure(value: float) -> str:
    return "–" if value != value else f"{value:z.3f}".replace("-", "−")


def _range(low: float, high: float) -> str:
    from thinkalike.wording import number

    return "" if low != low else f" ({number(low)} to {number(high)})"
