"""Make the table of calibration anew.

    python -m benchmarks.calibration [NAME ...] [--full] [--seed 0] [--list]

Without names every simulation runs. A tenth of the draws by default, all of them with --full; only a full run
is kept, in benchmarks/results/calibration.json, each simulation replacing its own rows.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import pandas as pd

from benchmarks.calibration import changes, features, geometry, populations, structure, subjects
from benchmarks.calibration.claims import Claim

SIMULATIONS = {
    **features.SIMULATIONS,
    **geometry.SIMULATIONS,
    **structure.SIMULATIONS,
    **subjects.SIMULATIONS,
    **populations.SIMULATIONS,
    **changes.SIMULATIONS,
}
RESULTS = Path(__file__).parents[1] / "results" / "calibration.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="simulations; all when none is named")
    parser.add_argument("--full", action="store_true", help="all draws, and keep what is found")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="the names of the simulations")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in SIMULATIONS]
    if unknown:
        parser.error(f"there is no simulation {unknown[0]!r}; known: {', '.join(SIMULATIONS)}")
    if asked.list:
        print("\n".join(SIMULATIONS))
        return
    for name in asked.names or SIMULATIONS:
        simulate, n_draws = SIMULATIONS[name]
        start = time.perf_counter()
        found = simulate(n_draws if asked.full else max(20, n_draws // 10), asked.seed)
        claims = [found] if isinstance(found, Claim) else found
        print(f"\n{name} ({time.perf_counter() - start:.0f} s)")
        print(pd.DataFrame([claim.as_row() for claim in claims]).to_string(index=False), flush=True)
        if asked.full:
            keep(name, claims)


def keep(name: str, claims: list[Claim]) -> None:
    """Put the rows of one simulation in the place of its old ones."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    kept[name] = [claim.as_row() for claim in claims]
    text = json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False)
    RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
