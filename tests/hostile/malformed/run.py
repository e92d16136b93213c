"""Try every malformed input."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from tests.hostile.malformed.arrays import array_cases
from tests.hostile.malformed.cases import Malformed
from tests.hostile.malformed.foreign import foreign_cases
from tests.hostile.malformed.grammars import grammar_cases, treebank_cases
from tests.hostile.malformed.models import model_cases
from tests.hostile.malformed.options import option_cases
from tests.hostile.malformed.tables import table_cases
from tests.hostile.shell import Shell
from tests.hostile.verdicts import Case, complaint, error_line, fresh, shown


def malformed_inputs() -> Iterator[Malformed]:
    return chain(
        table_cases(),
        array_cases(),
        option_cases(),
        model_cases(),
        grammar_cases(),
        treebank_cases(),
        foreign_cases(),
    )


def try_malformed(shell: Shell, folder: Path, number: int, case: Malformed) -> Case:
    """Make the files, run the command, judge."""
    place = fresh(folder, f"{number}-{case.name}")
    case.make(place)
    done = shell.run(case.arguments, place)
    if list(place.rglob("fired")):
        return Case(case.name, "bad", "code from a file ran", shown(done))
    if done.code == 0 and case.expected != "refused":
        return Case(case.name, "right", "", shown(done))
    line = error_line(done)
    if line is not None and case.expected != "accepted":
        return Case(case.name, "clear", line[:200], shown(done))
    reason = (
        complaint(done)
        if line is None and done.code
        else ("accepted" if done.code == 0 else f"refused: {line}")
    )
    return Case(case.name, "bad", reason, shown(done))
