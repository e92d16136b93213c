"""What was found of a layer is found again, and only what a question changes is looked at anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.layerpass import LayerTask, Look, LookedAt
from thinkalike.serving.exploring import LayerMemory, RunExplorer
from thinkalike.serving.questions import Question


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every look at a layer, as `profile alpha:0` or `distances alpha:0`."""
    looks: list[str] = []
    whole: Callable[[Look, LayerTask], LookedAt] = Look.__call__

    def look(self: Look, task: LayerTask) -> LookedAt:
        kind = "profile" if task.profile else "distances"
        looks.append(f"{kind} {task.activations.system}:{task.layer}")
        return whole(self, task)

    monkeypatch.setattr(Look, "__call__", look)
    return looks


def everything(explorer: RunExplorer) -> Question:
    layers = tuple((name, tuple(known)) for name, known in explorer.choices.layers.items())
    return Question(layers, tuple(explorer.choices.features), explorer.choices.distance)


def numbers(explorer: RunExplorer, question: Question) -> dict[str, np.ndarray]:
    return {name: np.array(values, float) for name, values in explorer.view(question)["matrices"].items()}


def test_a_move_looks_only_at_what_it_changes(run: Path, counted: list[str]) -> None:
    explorer = RunExplorer.open(run)
    every = everything(explorer)
    explorer.prepare()
    assert len(counted) == 2 * 9  # a profile and the distances of each of nine layers
    counted.clear()
    explorer.view(replace(every, layers=every.layers[1:]))
    explorer.view(replace(every, layers=((every.layers[0][0], ("1",)), *every.layers[1:])))
    assert counted == []
    explorer.view(replace(every, features=every.features[1:]))
    assert sorted({look.split()[0] for look in counted}) == ["profile"]
    assert len(counted) == 9
    counted.clear()
    explorer.view(replace(every, distance="cosine"))
    assert len(counted) == 2 * 9


def test_numbers_are_those_of_a_page_that_remembers_nothing(run: Path) -> None:
    asked = RunExplorer.open(run)
    every = everything(asked)
    asked.prepare()
    asked.view(replace(every, distance="cosine"))
    moves = (
        replace(every, layers=every.layers[1:]),
        replace(every, features=every.features[1:]),
        replace(every, features=every.features[1:], distance="cosine", layers=every.layers[:2]),
    )
    for move in moves:
        fresh = numbers(RunExplorer.open(run), move)
        for name, values in numbers(asked, move).items():
            np.testing.assert_array_equal(values, fresh[name])


def test_what_has_no_room_is_looked_at_again(run: Path, counted: list[str]) -> None:
    explorer = RunExplorer(Comparison.load(run))
    explorer._memory = LayerMemory(most_bytes=0)
    every = everything(explorer)
    explorer.prepare()
    counted.clear()
    explorer.view(replace(every, layers=every.layers[1:]))
    assert len([look for look in counted if look.startswith("distances")]) >= 5
