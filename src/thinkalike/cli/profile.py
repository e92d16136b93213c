"""`thinkalike profile`: what the layers of one model are organised by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thinkalike.addresses import is_address
from thinkalike.cli.application import app
from thinkalike.cli.autoencoder import (
    show_latents,
)
from thinkalike.cli.finished import Written, says_again
from thinkalike.cli.named import SYSTEMS, parse_systems
from thinkalike.cli.option_groups import Encoding, Latents, Machine, ShownByColumns, Texts, Vectors, grouped
from thinkalike.cli.options import (
    DryRun,
    Figure,
    Scheduler,
    Seed,
    Workers,
    asked,
    draw,
    file_names,
    lent,
    only_with,
    resamples,
)
from thinkalike.cli.record import AGAIN
from thinkalike.cli.tables import show_notes, show_table
from thinkalike.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from thinkalike.activations.store import Activations
    from thinkalike.comparison.profiles import Profile
    from thinkalike.comparison.profiling import ProfilingPlan
    from thinkalike.stimuli import Stimuli

SHOWN = 3


@app.command()
@says_again(systems=["model"], inputs=["stimuli", "autoencoder"])
@grouped
def profile(
    model: Annotated[str, typer.Argument(metavar="MODEL[@REVISION]", help=f"One of: {SYSTEMS}")],
    *,
    stimuli: ShownByColumns,
    resamples: Annotated[int | None, resamples("0")] = None,
    encoding: Encoding,
    vectors: Vectors,
    texts: Texts,
    on: Machine,
    of: Latents,
    seed: Seed = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    out: Annotated[Path | None, file_names("Write the profile to OUT.parquet, OUT.csv and OUT.json.")] = None,
    figure: Figure = None,
    dry_run: DryRun = False,
) -> Written:
    """Say by which features each layer of one model is organised, and how well they explain it."""
    from thinkalike.activations import extract
    from thinkalike.activations.conversion import open_activations
    from thinkalike.comparison import profile as make
    from thinkalike.comparison.profiling import plan_profiles
    from thinkalike.systems.names import is_array_file

    extraction = {**vectors.asked(), **texts.asked(), **on.asked()}
    of_latents = of.asked()
    ((name, source),) = parse_systems([model]).items()
    is_arrays = is_array_file(source)
    only_with(not is_arrays, f"with a model, and {source} holds arrays", **extraction)
    if is_arrays and stimuli.stimuli is None:
        raise InvalidInput(f"{source} holds arrays: also give the --stimuli that they answer to.")
    shown = stimuli.read(seed)
    chosen = asked(resamples=resamples, seed=seed, **encoding.asked())
    if dry_run:
        from thinkalike.comparison import plan as plan_run

        with lent(workers, scheduler):
            reading = {**extraction, **of_latents}
            planned = plan_run({name: source}, shown, work="profile", extraction=reading or None, **chosen)
        typer.echo(planned)
        return []
    if is_arrays:
        activations = _latents_of(open_activations(source, name), shown, of_latents)
    else:
        activations = extract(source, shown, system=name, **extraction, **of_latents)
    show_latents(activations.system, activations.metadata)
    plan = plan_profiles(shown, **chosen)
    kept = None if out is None else _kept(out, activations, plan, shown.digest)
    with lent(workers, scheduler):
        made = kept or make(activations, shown, plan=plan)
    _show(made)
    show_notes(caution.text for caution in plan.cautions)
    if kept is not None:
        typer.echo(AGAIN)
    elif out is not None:
        typer.echo(f"Wrote {made.save(out)} (.parquet, .csv, .json).")
    if figure is not None:
        draw(made.plot(), figure)
        typer.echo(f"Drew {figure}.")
    written = [] if out is None else [out] if is_address(out) else sorted(out.parent.glob(f"{out.name}[.-]*"))
    return written if figure is None else [*written, figure]


def _latents_of(states: Activations, shown: Stimuli, options: Mapping[str, Any]) -> Activations:
    """What an autoencoder makes of a kept residual stream, if one was given."""
    from thinkalike.activations.sparse_latents import LatentChoice

    choice = LatentChoice.asked(*(options.get(name) for name in ("autoencoder", "layer", "latents", "best")))
    return states if choice is None else choice.of(states, shown, None)


def _kept(path: Path, activations: Activations, plan: ProfilingPlan, digest: str) -> Profile | None:
    """The profile at `path`, if it is of the same activations, stimuli and settings, and whole."""
    from thinkalike.comparison.profiles import Profile
    from thinkalike.files import plain

    try:
        found = Profile.load(path)
    except StoreError:
        return None
    made_of = (found.system, found.stimuli_digest, found.settings, found.metadata)
    asked_for = (activations.system, digest, plain(plan.settings), plain(activations.metadata))
    return found if made_of == asked_for else None


def _show(made: Profile) -> None:
    from thinkalike.comparison.profiles import importance_shares
    from thinkalike.wording import number, percent, readable

    rows = []
    shares = importance_shares(made.mean_importance)
    interval = None if made.replicates is None else made.score_range()
    for k, layer in enumerate(made.layers):
        score = number(made.mean_scores[k])
        if interval is not None:
            score += f" ({number(interval[0, k])} to {number(interval[1, k])})"
        ceiling = "–" if made.diagnostics is None else number(made.diagnostics.ceiling[k])
        first = [f for f in (-shares[k]).argsort(kind="stable")[:SHOWN] if shares[k, f] > 0]
        named = ", ".join(f"{readable(made.features[f])} {percent(shares[k, f])}" for f in first)
        rows.append([str(layer), score, ceiling, named])
    features = "features, with their share of the importance"
    title = f"{made.system}: what its layers are organised by"
    show_table(("layer", "ρ", "ceiling", features), rows, names=(features,), title=title)
