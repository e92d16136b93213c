"""Make the table of calibration anew.

    python -m benchmarks.calibration [NAME[:PART] ...] [--full] [--draws N] [--keep] [--seed 0] [--list]

Without names every simulation runs. A tenth of the draws by default, all of them with --full, N with --draws
(`--draws 2` shows within minutes that every part runs). What each part
finds is written at once, so that a run that was stopped goes on where it was; --anew begins again, as one
must after a change of the code. A simulation that is whole replaces its rows of
benchmarks/results/calibration.json, if the run is a full one; with --keep, what is there of fewer draws does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.calibration import (
    changes,
    feature_ranges,
    feature_ties,
    features,
    geometry,
    group_means,
    group_taus,
    interactions,
    populations,
    stitching,
    structure,
    subjects,
)
from benchmarks.calibration.claims import Claim, claims_of, parts_of

SIMULATIONS = {
    **features.SIMULATIONS,
    **feature_ranges.SIMULATIONS,
    **feature_ties.SIMULATIONS,
    **geometry.SIMULATIONS,
    **structure.SIMULATIONS,
    **group_means.SIMULATIONS,
    **subjects.SIMULATIONS,
    **group_taus.SIMULATIONS,
    **stitching.SIMULATIONS,
    **populations.SIMULATIONS,
    **interactions.SIMULATIONS,
    **changes.SIMULATIONS,
}
RESULTS = Path(__file__).parents[1] / "results" / "calibration.json"
WORK = Path(__file__).parents[1] / "results" / "calibration-parts"
"""What parts found, one file each; no part of the repository"""

Rows = list[dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME[:PART]", help="simulations, or one part of one; all when none"
    )
    parser.add_argument("--full", action="store_true", help="all draws, and keep what is found")
    parser.add_argument("--draws", type=int, metavar="N", help="so many of each part")
    parser.add_argument("--keep", action="store_true", help="keep what is found of fewer draws too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="the names of the simulations and their parts")
    parser.add_argument("--anew", action="store_true", help="make again what is there of an earlier run")
    asked = parser.parse_args()
    if asked.list:
        for name, (simulation, n_draws) in SIMULATIONS.items():
            print(name, f"({n_draws} draws)", *(f"\n    {name}:{part}" for part in parts_of(simulation)))
        return
    if asked.full and asked.draws is not None:
        parser.error("--full makes all draws: leave --draws out, or --full")
    for name in asked.names:
        if unknown := what_is_unknown(name):
            parser.error(unknown)
    for name in asked.names or SIMULATIONS:
        run(name, full=asked.full, draws=asked.draws, few=asked.keep, seed=asked.seed, anew=asked.anew)


def what_is_unknown(asked: str) -> str:
    """Why a name is none; empty for a name that is one."""
    name, _, part = asked.partition(":")
    if name not in SIMULATIONS:
        return f"there is no simulation {name!r}; known: {', '.join(SIMULATIONS)}"
    known = parts_of(SIMULATIONS[name][0])
    return f"{name} has no part {part!r}; it has: {', '.join(known)}" if part and part not in known else ""


def run(
    asked: str, *, full: bool, draws: int | None = None, few: bool = False, seed: int = 0, anew: bool = False
) -> None:
    """Make the parts of a simulation, or one of them; a full run keeps its rows when all are there.

    With `few` the rows of those parts that are there are kept.
    """
    name, _, chosen = asked.partition(":")
    simulation, n_draws = SIMULATIONS[name]
    n = n_draws if full else draws or max(20, n_draws // 10)
    parts = parts_of(simulation)
    for part, simulate in parts.items():
        if chosen and part != chosen:
            continue
        path = place(name, part, n, seed)
        if path.exists() and not anew:
            continue
        start = time.process_time()
        rows = [claim.as_row() for claim in claims_of(simulate(n, seed))]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
        print(f"\n{name}: {part} ({time.process_time() - start:.0f} s of the processor)")
        print(pd.DataFrame(rows).to_string(index=False), flush=True)
    made = list(made_rows(name, n, seed))
    if few or (full and len(made) == len(parts)):
        keep(name, [row for rows in made for row in rows])


def place(name: str, part: str, n: int, seed: int) -> Path:
    """Where what a part found is written."""
    letters = "".join(letter if letter.isalnum() else "-" for letter in part)
    return WORK / name / f"{letters}-{n}-draws-seed-{seed}.json"


def made_rows(name: str, n: int, seed: int) -> Iterator[Rows]:
    """What the parts of a simulation found, of those that were made."""
    for part in parts_of(SIMULATIONS[name][0]):
        path = place(name, part, n, seed)
        if path.exists():
            yield json.loads(path.read_text(encoding="utf-8"))


def keep(name: str, rows: Rows | list[Claim]) -> None:
    """Put the rows of one simulation in the place of its old ones."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    kept[name] = [row.as_row() if isinstance(row, Claim) else row for row in rows]
    text = json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False)
    RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
