"""`python -m training NAME --text FOLDER --out DIR`: train a nano model, or resume.

Also `collect` (packages → a folder of text), `evaluate` (the cards' figures from the shipped weights),
`fingerprints` (those of the bundled models, anew) and `names`. docs/models.md tells the whole way.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from thinkalike.errors import ThinkalikeError
from training.plans import PLANS, plan

COMMANDS = ("collect", "evaluate", "fingerprints", "names")


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    made = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    made.add_argument("what", metavar="NAME", help=f"a model ({', '.join(PLANS)}) or {', '.join(COMMANDS)}")
    made.add_argument(
        "models", nargs="*", metavar="MODEL", help="evaluate, fingerprints: only these of the bundled models"
    )
    made.add_argument(
        "--text", type=Path, help="folder of .txt files, one per document, a subfolder per source"
    )
    made.add_argument(
        "--out", type=Path, default=Path("runs/training"), help="where corpus, checkpoints and models go"
    )
    made.add_argument("--packages", type=Path, help="collect: folder of unpacked npm packages")
    made.add_argument("--steps", type=int, help="in place of the plan's number of steps")
    made.add_argument("--threads", type=int, default=1, help="threads of torch (default 1)")
    made.add_argument("--tokens", type=int, help="evaluate: only so many tokens of the sample")
    made.add_argument(
        "--corpus", type=Path, help="evaluate: a prepared corpus, to fit the baselines anew as well"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; an error of ours becomes one line and exit code 2."""
    given = parser().parse_args(arguments)
    try:
        return _run(given)
    except ThinkalikeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: the same command resumes from the last checkpoint", file=sys.stderr)
        return 130


def _run(given: argparse.Namespace) -> int:
    if given.what == "names":
        print("\n".join(PLANS))
        return 0
    if given.what == "collect":
        return _collect(given)
    import torch

    torch.set_num_threads(given.threads)
    if given.what == "evaluate":
        from training.recheck import recheck

        return recheck(given.models, n_tokens=given.tokens, corpus=given.corpus)
    if given.what == "fingerprints":
        from training.fingerprints import write_fingerprints, write_pairs

        if not given.models:
            write_pairs()
        write_fingerprints(given.models)
        return 0
    plan(given.what)
    from training.pipeline import train_model

    card = train_model(given.what, given.text, given.out, steps=given.steps)
    print(f"{card.name}: held-out perplexity {card.perplexity:.1f} (3-gram {card.kneser_ney_perplexity:.1f})")
    return 0


def _collect(given: argparse.Namespace) -> int:
    from thinkalike.errors import InvalidInput
    from training.sources import collect

    if given.packages is None or given.text is None:
        raise InvalidInput("collect needs --packages FOLDER (to read) and --text FOLDER (to write).")
    print(f"{collect(given.packages, given.text)} documents in {given.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
