"""`thinkalike demo`: the main job on the bundled models, with no network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.compare import Resamples, run_comparison
from thinkalike.cli.finished import Written, says_again
from thinkalike.cli.options import address, asked
from thinkalike.cli.shown import read_stimuli
from thinkalike.errors import ModelError

USUAL_TIME = "under 3 minutes on two cores"
"""82 s by the clock, 68 s of processor, with one thread on a machine that was busy with other work"""
MODELS = ("nano-bert", "nano-gpt2", "nano-mamba")


@app.command()
@says_again()
def demo(
    out: Annotated[Path, address("Where to keep the run and its report.")] = Path("runs/demo"),
    sentences: Annotated[
        int | None, typer.Option(min=1, help="How many sentences to make.", show_default="200")
    ] = None,
    resamples: Resamples = None,
) -> Written:
    """Compare the three bundled models (encoder, decoder, state space) and write the report."""
    from thinkalike.systems import bundled

    lacking = [name for name in MODELS if name not in bundled.names()]
    if lacking:
        raise ModelError(
            f"The bundled model {lacking[0]} is not in this installation: reinstall thinkalike, or compare "
            "models of your own with `thinkalike compare`."
        )
    stimuli = read_stimuli(None, sentences=sentences)
    typer.echo(
        f"Comparing {', '.join(MODELS)} on {len(stimuli):,} words of {len(stimuli.sentences)} sentences, "
        f"offline: {USUAL_TIME}.",
        err=True,
    )
    return run_comparison(
        {name: name for name in MODELS},
        stimuli,
        out=out,
        report=True,
        controls="untrained",
        **asked(resamples=resamples),
    )
