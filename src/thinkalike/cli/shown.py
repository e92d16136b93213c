"""What a command shows to models: options for stimuli, and the reading of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thinkalike.cli.options import asked, names_of
from thinkalike.types import Json, Option

if TYPE_CHECKING:
    from thinkalike.stimuli import Stimuli

FILES = "A .csv, .tsv, .parquet or .conllu file of annotated words or sentences."

StimuliFile = Annotated[Path | None, typer.Option("--stimuli", help=FILES)]
Sentences = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many sentences to make; of a file, the first so many.",
        show_default="200; of a file all",
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(help="Only these features: A,B; may be given several times.", show_default="all"),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="Leave out these features: A,B; may be given several times.")
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="NAME=KIND",
        help="What kind of feature NAME is: nominal, numeric, ordinal, or its levels in order, LOW,HIGH; may "
        "be given several times.",
    ),
]


def read_stimuli(
    path: Path | None,
    *,
    sentences: int | None = None,
    seed: int | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    kind: Sequence[str] | None = None,
) -> Stimuli:
    """The user's file, or sentences of the probing grammar; with the features that were chosen."""
    from thinkalike.stimuli import Stimuli

    chosen = features_asked(features=features, drop=drop, kind=kind)
    if path is None:
        return Stimuli.from_grammar(**asked(n_sentences=sentences, seed=seed)).choose(**chosen)
    return Stimuli.load(path, **asked(n_sentences=sentences), **chosen)


def features_asked(
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    kind: Sequence[str] | None = None,
    **others: Option,
) -> Json:
    """`--features`, `--drop` and `--kind` as `Stimuli` takes them."""
    from thinkalike.stimuli.kinds import parse_kinds

    kinds = None if kind is None else parse_kinds(kind)
    return asked(features=names_of(features), drop=names_of(drop), kinds=kinds)
