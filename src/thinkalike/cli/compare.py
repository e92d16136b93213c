"""`thinkalike compare`: models in, an answer and a report out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thinkalike.cli.application import app
from thinkalike.cli.options import BatchSize, Bos, Device, DropFirst, Dtype, Site, extraction_options
from thinkalike.errors import InvalidInput

if TYPE_CHECKING:
    from thinkalike.stimuli import Stimuli

Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL[@REVISION]...",
        help="Two or more: hub ids, folders, bundled models, .npz, .npy or .zarr files of arrays. "
        "NAME=MODEL gives a name of its own.",
    ),
]
StimuliFile = Annotated[
    Path | None, typer.Option("--stimuli", help="A .csv, .tsv, .parquet or .conllu file of annotated words.")
]
Sentences = Annotated[int, typer.Option(help="How many sentences to make, if no stimuli are given.")]
Preset = Annotated[str, typer.Option(help="default, or salle2024 for the choices of the paper's code.")]
Distance = Annotated[str | None, typer.Option(help="Between vectors: euclidean, cosine, correlation, …")]
Ordered = Annotated[
    str | None,
    typer.Option(
        help="Of numbers and ordinal features: indicator (whether they differ) or minmax (by how much).",
        show_default="indicator",
    ),
]
Pooling = Annotated[str | None, typer.Option(help="Of a word's tokens: last, first, mean.")]
Resamples = Annotated[
    int, typer.Option(min=0, help="Bootstrap resamples of the sentences, for intervals; 0: none.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of folds, resamples and sentences.")]


@app.command()
def compare(
    models: Models,
    stimuli: StimuliFile = None,
    sentences: Sentences = 500,
    measure: Annotated[
        list[str] | None, typer.Option(help="Also by this measure, such as cka; may be given several times.")
    ] = None,
    controls: Annotated[
        str | None, typer.Option(help="untrained: also run copies with random weights.")
    ] = None,
    resamples: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Bootstrap resamples of the sentences, for intervals; 0: none.",
            show_default="200; salle2024: 0",
        ),
    ] = None,
    preset: Preset = "default",
    distance: Distance = None,
    ordered: Ordered = None,
    pooling: Pooling = None,
    site: Site = None,
    bos: Bos = None,
    drop_first: DropFirst = 0,
    dtype: Dtype = "float32",
    device: Device = None,
    batch_size: BatchSize = "auto",
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="The run directory; what it holds of this run is re-used. Default: runs/NAMES."),
    ] = None,
    report: Annotated[bool, typer.Option(help="Write the HTML report.")] = True,
) -> None:
    """Compare what models care about, layer by layer: how alike they are, and why."""
    named = parse_models(models)
    run_comparison(
        named,
        read_stimuli(stimuli, sentences, seed),
        out=out or default_folder(named),
        report=report,
        measures=measure or [],
        controls=controls,
        resamples=_usual_resamples(preset) if resamples is None else resamples,
        preset=preset,
        extraction=extraction_options(
            pooling=pooling,
            site=site,
            bos=bos,
            drop_first=drop_first,
            dtype=dtype,
            device=device,
            batch_size=batch_size,
        ),
        distance=distance,
        ordered=ordered,
        seed=seed,
    )


def run_comparison(
    named: Mapping[str, str], stimuli: Stimuli, *, out: Path, report: bool, **options: Any
) -> None:
    """Compare, write the report, and say what came out."""
    from thinkalike.cli.closing import close
    from thinkalike.comparison import compare as run
    from thinkalike.comparison.cautions import CautionWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)  # they are in the closing words
        comparison = run(named, stimuli, out=out, **options)
    page = None
    if report:
        from thinkalike.report import write_report

        page = write_report(comparison, out)
    close(comparison, page)


def parse_models(models: Sequence[str]) -> dict[str, str]:
    """Names → models, from MODEL or NAME=MODEL."""
    from thinkalike.comparison.comparing import name_of

    named: dict[str, str] = {}
    for text in models:
        name, given, model = text.partition("=")
        name, model = (name, model) if given else (name_of(text), text)
        if not (name and model):
            raise InvalidInput(f"{text!r} names no model: write MODEL or NAME=MODEL.")
        if name in named:
            raise InvalidInput(f"{name} comes twice: give one of them another name with NAME=MODEL.")
        named[name] = model
    return named


def read_stimuli(path: Path | None, sentences: int, seed: int) -> Stimuli:
    """The user's file, or sentences of the probing grammar."""
    from thinkalike.stimuli import Stimuli

    if path is None:
        return Stimuli.from_grammar(sentences, seed)
    return Stimuli.from_conllu(path) if path.suffix == ".conllu" else Stimuli.from_table(path)


def _usual_resamples(preset: str) -> int:
    """Folds over pairs, as in the paper's code, leave nothing to resample."""
    return 0 if preset == "salle2024" else 200


def default_folder(named: Mapping[str, str]) -> Path:
    from thinkalike.comparison.files import file_name

    return Path("runs") / file_name("_".join(name.replace("/", "-") for name in named))
