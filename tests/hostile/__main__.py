"""Try some areas, or some cases, by hand: `python -m tests.hostile --area 'kill -9' --only cka --seed 3`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.areas import AREAS, Bench
from tests.hostile.figures import figures_of, put_into, write_bad, write_figures
from tests.hostile.verdicts import Case, counts, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="Of moments and damages.")
    parser.add_argument("--area", action="append", choices=sorted(AREAS), help="Only this; may be repeated.")
    parser.add_argument("--only", default="", help="Only cases, jobs or targets whose name holds this.")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="Commands at once.")
    parser.add_argument("--json", type=Path, help="Write the figures to this file.")
    parser.add_argument(
        "--page", type=Path, help="Put the table of --json's figures into this page, and stop."
    )
    parser.add_argument("--bad", type=Path, help="Write the bad cases to this Markdown file.")
    given = parser.parse_args()
    if given.page is not None:
        areas = json.loads(given.json.read_text(encoding="utf-8"))["areas"]
        given.page.write_text(put_into(given.page.read_text(encoding="utf-8"), areas), encoding="utf-8")
        return 0
    found: dict[str, list[Case]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="hostile-") as folder,
        Bench(Path(folder), seed=given.seed, workers=given.workers, only=given.only) as bench,
    ):
        for area in given.area or AREAS:
            start, processor = time.monotonic(), bench.shell.processor
            found[area] = AREAS[area](bench)
            took = f"{time.monotonic() - start:.0f} s, processor {bench.shell.processor - processor:.0f} s"
            print(f"{area}: {counts(found[area])}, {took}", file=sys.stderr, flush=True)
    print(table(figures_of(found)))
    if given.json is not None:
        write_figures(found, given.seed, given.json)
    if given.bad is not None:
        write_bad(found, given.bad)
    return int(any(case.verdict == "bad" for cases in found.values() for case in cases))


if __name__ == "__main__":
    sys.exit(main())
