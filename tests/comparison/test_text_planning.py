"""Plans of work on running text: the calls themselves are timed on a little of it, the rest goes by count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import thinkalike as ta
from thinkalike.cli.boundary import run as run_command
from thinkalike.comparison import text_planning
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stitching import LabelledTexts, TaskFit
from thinkalike.streaming.batches import MIXED
from thinkalike.streaming.over_text import count_batches

TWO = ["nano-gelu-3l", "nano-solu-3l"]
TEXT = [f"The king of {k} lands went home, and {k * 7} queens went to the old sea." for k in range(300)]


@pytest.mark.parametrize(
    "options",
    [{}, {"batch": "tokens", "batch_size": 200}, {"level": "sequence", "batch_size": 20, "length": 16}],
)
def test_the_number_of_batches_is_that_of_the_run(options: dict[str, Any]) -> None:
    asked = {"length": 32, **options}
    found = ta.stream_cka(TWO, TEXT, **asked)
    assert found.stopped == "end"
    count, together = count_batches(TWO, TEXT, **asked)
    assert len(found.trace) <= count <= len(found.trace) * (1 + 1 / MIXED) + 1
    assert together == (1 if not options else MIXED)


def test_cka_by_the_law_of_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def streamed(models: Any, text: Any, *, max_batches: int, **_: Any) -> Any:
        asked.append(max_batches)
        return type("Found", (), {"rows": range(8)})

    monkeypatch.setattr(text_planning, "stream_cka", _named_as(streamed, text_planning.stream_cka))
    monkeypatch.setattr(text_planning, "_seconds", lambda work: 5.0 + 0.5 * _count(work, asked))
    planned = ta.plan(TWO, TEXT, work="cka", length=32, max_batches=100)
    available = count_batches(TWO, TEXT, length=32)[0]
    assert planned.processor_seconds == pytest.approx(5.0 + 0.5 * min(100, available))


def test_stitching_by_the_law_of_its_tokens_and_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """With times that follow the law exactly, the law is found."""
    real, seen = text_planning.stitch, []

    def stitched(*given: Any, **options: Any) -> Any:
        made = real(*given, **{**options, "fit": TaskFit(steps=1, every=1)})
        seen.append((made, options["fit"]))
        return made

    def seconds(work: Callable[[], Any]) -> float:
        work()
        made, how = seen[-1]
        looks = how.steps // how.every
        return 3.0 + 0.001 * sum(made.settings["tokens"].values()) + 0.25 * how.steps + 2.0 * looks

    monkeypatch.setattr(text_planning, "stitch", _named_as(stitched, real))
    monkeypatch.setattr(text_planning, "_seconds", seconds)
    how = TaskFit(steps=500, every=100, validation_tokens=1)
    options: dict[str, Any] = {
        "layers": [1],
        "ceiling": False,
        "length": 32,
        "tokens_at_once": 256,
        "fit": how,
    }
    planned = ta.plan(TWO, TEXT, work="stitch", max_tokens=5000, **options)
    assert planned.steps[0].tasks == 2
    tokens = 5000
    assert planned.processor_seconds == pytest.approx(3.0 + 0.001 * tokens + 0.25 * 500 + 2.0 * 6, rel=0.02)


def test_commands_say_what_they_will_take_and_write_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("\n\n".join(TEXT))
    asked = [*TWO, "--text", "text.txt", "--length", "32", "--dry-run"]
    assert run_command(["cka", *asked, "--max-batches", "40"]) == 0
    assert "CKA over 40 batches" in capsys.readouterr().out
    assert run_command(["stitch", *asked, "--layers", "1", "--both-ways", "--max-tokens", "4000"]) == 0
    assert capsys.readouterr().out.count("3 stitches, 4,000 tokens") == 2
    assert run_command(["reproduce", "brown2023-scaling", "--dry-run"]) == 0
    told = "took 92 s of the processor.\nNothing is kept in runs/brown2023-scaling-nano"
    assert told in capsys.readouterr().out
    assert run_command(["reproduce", "salle2026", "--dry-run"]) == 0
    assert "how long it takes is not known beforehand" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_labelled_texts_and_odd_requests() -> None:
    with pytest.raises(InvalidInput, match="Got 1 models: stitching has a bottom and a top"):
        ta.plan(TWO[:1], TEXT, work="stitch")
    with pytest.raises(UnknownName, match=r"no option 'lenght'\. Did you mean 'length'"):
        ta.plan(TWO, TEXT, work="cka", lenght=3)
    with pytest.raises(UnknownName, match="no work to plan"):
        ta.plan(TWO, TEXT, work="stitches")
    few = LabelledTexts(["a"] * 400, [0] * 400)
    assert len(text_planning._part(few, 1000, 1000)) == 100
    assert len(text_planning._part(few, 1000, 2000)) == 200


def _named_as(function: Any, real: Any) -> Any:
    """With the parameters of the real one, which are checked."""
    import inspect

    function.__signature__ = inspect.signature(real)
    return function


def _count(work: Callable[[], Any], asked: list[int]) -> int:
    work()
    return asked[-1]
