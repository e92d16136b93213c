"""What a command shows to models: options for stimuli, and the reading of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thinkalike.cli.options import asked, names_of
from thinkalike.errors import InvalidInput
from thinkalike.options import named_once

if TYPE_CHECKING:
    from thinkalike.stimuli import Stimuli

FILES = "A .csv, .tsv, .parquet, .jsonl or .conllu file of words or sentences, or a dataset's folder."

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


Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="Which column of the file is the text, word, sentence or item, as text=premise; may be given "
        "several times.",
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
    column: Sequence[str] | None = None,
) -> Stimuli:
    """The user's file, or sentences of the probing grammar; with the features that were chosen."""
    from thinkalike.stimuli import Stimuli

    chosen = features_asked(features=features, drop=drop, kind=kind)
    if path is None:
        if column:
            raise InvalidInput("--column names columns of a file: give --stimuli FILE too.")
        return Stimuli.from_grammar(**asked(n_sentences=sentences, seed=seed)).choose(**chosen)
    return Stimuli.load(path, **asked(n_sentences=sentences, columns=_roles(column)), **chosen)


def _roles(column: Sequence[str] | None) -> dict[str, str] | None:
    """`text=premise` as role → column."""
    return None if column is None else named_once(map(_role, column), "role")


def _role(text: str) -> tuple[str, str]:
    role, given, name = text.partition("=")
    if not given:
        raise InvalidInput(f"Got --column {text}: write ROLE=NAME, as in text=premise.")
    return role, name


def features_asked(
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    kind: Sequence[str] | None = None,
    **others: object,
) -> dict[str, Any]:
    """`--features`, `--drop` and `--kind` as `Stimuli` takes them."""
    from thinkalike.stimuli.kinds import parse_kinds

    kinds = None if kind is None else parse_kinds(kind)
    return asked(features=names_of(features), drop=names_of(drop), kinds=kinds)
