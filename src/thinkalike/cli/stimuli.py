"""`thinkalike stimuli`: make sentences with features, read a treebank, check a table."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thinkalike.cli.application import app
from thinkalike.cli.finished import Written, says_again
from thinkalike.cli.options import Figure, Seed, address, asked, draw, only_with
from thinkalike.cli.shown import Drop, Features, Kinds, features_asked, read_stimuli
from thinkalike.errors import InvalidInput

if TYPE_CHECKING:
    from thinkalike.stimuli import Stimuli
    from thinkalike.stimuli.feature_correlations import FeatureCorrelations

SHOWN = 8


@app.command()
@says_again(inputs=["grammar", "lexicon", "conllu", "check"])
def stimuli(
    sentences: Annotated[
        int | None,
        typer.Option(
            "--sentences",
            "-n",
            min=1,
            help="How many sentences to make; of a file, the first so many.",
            show_default="200; of a file all",
        ),
    ] = None,
    seed: Seed = None,
    grammar: Annotated[
        str | None,
        typer.Option(
            help="untangled, salle2024, clauses, or the path of a TOML file with rules.",
            show_default="untangled",
        ),
    ] = None,
    lexicon: Annotated[Path | None, typer.Option(help="TOML file with other words.")] = None,
    items: Annotated[str | None, typer.Option(help="words or sentences; the grammar knows which.")] = None,
    balance: Annotated[
        bool, typer.Option("--balance", help="Choose sentences whose features correlate less.")
    ] = False,
    capital: Annotated[
        bool, typer.Option("--capital", help="Begin sentences with a capital letter.")
    ] = False,
    full_stop: Annotated[bool, typer.Option("--full-stop", help="End sentences with a mark.")] = False,
    features: Features = None,
    drop: Drop = None,
    kind: Kinds = None,
    zipf: Annotated[bool, typer.Option("--zipf", help="Add word frequency as a control feature.")] = False,
    copy_grammar: Annotated[
        Path | None, address("Copy the grammar's TOML files into this folder and stop.")
    ] = None,
    conllu: Annotated[
        Path | None, typer.Option(help="Read this treebank instead of making sentences.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(help="Print the diagnostics of this .csv, .tsv, .parquet or .conllu file.")
    ] = None,
    out: Annotated[Path | None, address("Write to this .csv, .tsv or .parquet file.")] = None,
    figure: Figure = None,
) -> Written:
    """Make sentences whose words carry features, or read or check some."""
    made_options = asked(
        seed=seed,
        lexicon=lexicon,
        items=items,
        balance=balance or None,
        capital=capital or None,
        full_stop=full_stop or None,
    )
    chosen = asked(sentences=sentences, features=features, drop=drop, kind=kind)
    if copy_grammar is not None:
        others = asked(conllu=conllu, check=check, out=out, figure=figure, zipf=zipf or None)
        only_with(False, "without --copy-grammar", **made_options, **chosen, **others)
        _copy(grammar, copy_grammar)
        return []
    if check is not None and conllu is not None:
        raise InvalidInput("--check and --conllu both name the file to read: give one of them.")
    source = check or conllu
    if source is not None:
        only_with(False, "where sentences are made, not read", **made_options, **asked(grammar=grammar))
    made = _read(source, conllu is not None, chosen) if source else _make(grammar, made_options, chosen)
    if zipf:
        made = made.with_controls("zipf")
    _show(made, diagnostics=check is not None)
    if out is not None:
        typer.echo(f"Wrote {made.save(out)}.")
    if figure is not None:
        draw(made.correlations().plot(), figure)
        typer.echo(f"Drew {figure}.")
    return [place for place in (out, figure) if place is not None]


def _copy(grammar: str | None, folder: Path) -> None:
    from thinkalike.stimuli.grammar import copy_grammar
    from thinkalike.stimuli.table import GRAMMAR

    written = copy_grammar(GRAMMAR if grammar is None else grammar, folder)
    typer.echo("\n".join(f"Wrote {path}." for path in written))


def _make(grammar: str | None, options: dict[str, Any], chosen: dict[str, Any]) -> Stimuli:
    from thinkalike.stimuli import Stimuli

    made = Stimuli.from_grammar(**asked(n_sentences=chosen.get("sentences"), grammar=grammar), **options)
    return made.choose(**features_asked(**chosen))


def _read(source: Path, is_treebank: bool, chosen: dict[str, Any]) -> Stimuli:
    from thinkalike.stimuli import Stimuli

    if not is_treebank:
        return read_stimuli(source, **chosen)
    return Stimuli.from_conllu(
        source, **asked(n_sentences=chosen.get("sentences")), **features_asked(**chosen)
    )


def _show(made: Stimuli, *, diagnostics: bool) -> None:
    """Say what was made, with examples; or the diagnostics."""
    n = len(made.sentences)
    where = f" in {n:,} sentence{'s' * (n != 1)}" if n else ""
    typer.echo(f"{len(made):,} items{where}, {len(made.kinds)} features, digest {made.digest[:12]}")
    if diagnostics:
        _show_diagnostics(made, made.correlations())
        return
    for text in made.sentences.head(SHOWN):
        typer.echo(f"  {text}")


def _show_diagnostics(made: Stimuli, correlations: FeatureCorrelations) -> None:
    from rich.console import Console
    from rich.table import Table

    from thinkalike.stimuli.differences import share_differing
    from thinkalike.stimuli.feature_coding import code_features

    features = made.features
    summary = {name: values for name, *values in correlations.summary().itertuples(name=None)}
    table = Table(
        "feature", "kind", "levels", "missing", "variance inflation", "strongest correlation", box=None
    )
    for name, kind in made.kinds.items():
        values = features[name]
        inflation, strongest, other = summary[name]
        table.add_row(
            name,
            kind,
            f"{values.nunique():,}",
            f"{values.isna().mean():.0%}",
            "–" if isnan(inflation) else f"{inflation:.2f}",
            "–" if isnan(strongest) else f"{strongest:+.2f} with {other}",
        )
    Console(width=120).print(table)
    for coded in code_features(features).features:
        if share_differing(coded) < 1.0:
            continue
        typer.echo(
            f"{coded.name} is different in every pair of items: it says nothing about which are alike. If it "
            "is a number, --ordered minmax lets the size of the difference count; an id is to be left out."
        )
    for name in correlations.constant:
        typer.echo(f"{name} does not vary: it can explain nothing. Leave it out, or add items.")
    for name, level, count in correlations.rare:
        typer.echo(
            f"{name} is {level!r} in {count:,} of {len(made):,} items only: what is said of it rests on few."
        )
