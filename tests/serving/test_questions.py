"""Questions of the page: what may be asked is asked, and everything else is refused with a reason."""

from __future__ import annotations

import json

import pytest

from thinkalike.errors import InvalidInput
from thinkalike.serving.questions import Choices, Question, read_question

CHOICES = Choices(
    layers={"a": ["0", "1"], "b": ["0", "1", "2"], "c": ["0"]},
    features=["number", "tense", "gender"],
    distances=["euclidean", "cosine"],
    levels={"number": ["singular", "plural"]},
    distance="euclidean",
)
WHOLE = {"layers": {"a": ["1"], "b": ["2", "0"]}, "features": ["tense", "number"], "distance": "cosine"}


def ask(**changes: object) -> Question:
    return read_question(json.dumps({**WHOLE, **changes}), CHOICES)


def test_a_question_is_read_in_the_order_of_the_run() -> None:
    found = ask(where=["number", "plural"])
    assert found.layers == (("a", ("1",)), ("b", ("0", "2")))
    assert found.features == ("number", "tense")
    assert ask(quick=True).quick
    assert not found.quick
    assert (found.distance, found.where) == ("cosine", ("number", "plural"))


def test_equal_questions_are_equal_so_that_an_answer_is_found_again() -> None:
    assert ask(features=["number", "tense", "tense"]) == ask()
    assert hash(ask()) == hash(ask(where=None))


def test_a_system_without_layers_is_left_out() -> None:
    assert [name for name, _ in ask(layers={"a": ["0"], "b": ["0"], "c": []}).layers] == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"layers": {"a": ["0"]}}, "two systems or more"),
        ({"layers": {"a": ["0"], "x": ["0"]}}, "no system 'x'"),
        ({"layers": {"a": ["9"], "b": ["0"]}}, "no layer '9'"),
        ({"layers": {"a": "0", "b": ["0"]}}, "names each layer"),
        ({"layers": ["a", "b"]}, "names the layers of each system"),
        ({"features": ["numbr"]}, "Did you mean 'number'"),
        ({"features": [3]}, "no feature '3'"),
        ({"features": None}, "names each feature"),
        ({"distance": "../../etc/passwd"}, "no distance"),
        ({"distance": ["cosine"]}, "no distance"),
        ({"where": ["tense", "past"]}, "no feature with levels 'tense'"),
        ({"where": ["number", "dual"]}, "no level of number 'dual'"),
        ({"where": "number"}, "a feature and a level"),
        ({"path": "/etc"}, "nothing else"),
    ],
)
def test_what_cannot_be_asked_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        ask(**changes)


@pytest.mark.parametrize("text", ["", "no", "[]", "{" * 100_000, "[" * 100_000, "null"])
def test_what_is_no_question_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"no JSON|nothing else"):
        read_question(text, CHOICES)
