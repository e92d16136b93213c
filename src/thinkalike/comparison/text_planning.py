"""What stitching and CKA over text will take: the calls themselves on a little text, and the rest by count.

Each is made at two sizes, which tells what it costs once and what every batch, token or step adds. The first
call of all is not timed: it loads what is loaded once.
"""

from __future__ import annotations

import inspect
import itertools
import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from thinkalike.addresses import is_local
from thinkalike.comparison.run_plan import RunPlan, Step
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.machine import available_memory, cache_directory, free_disk
from thinkalike.options import refuse_other_names
from thinkalike.stimuli.text import PackedText, read_documents, split_of
from thinkalike.stitching.examples import LabelledTexts
from thinkalike.stitching.material import RunningText, Text
from thinkalike.stitching.result import StitchResult
from thinkalike.stitching.run import TOKENS_AT_ONCE, stitch
from thinkalike.stitching.task import TaskFit
from thinkalike.streaming.over_text import count_batches, stream_cka
from thinkalike.systems.batch import Document
from thinkalike.systems.system import open_system

Place = str | os.PathLike[str] | None
SMALL_FILES = 2 << 20
FEW_BATCHES, MORE_BATCHES = 2, 8
FEW_STEPS, MORE_STEPS = 2, 8
SAMPLE = 20_000
"""Characters from which tokens are counted"""


def plan_cka(
    models: Sequence[str] | Mapping[str, str],
    text: str | Path | Sequence[Document] | PackedText,
    *,
    out: Place = None,
    **options: Any,
) -> RunPlan:
    """What `stream_cka` will take at most: it may be precise enough before."""
    _refuse_unknown(options, stream_cka)
    most = options.pop("max_batches", 1000)
    available, together = count_batches(models, text, **options)
    most = min(most, available)

    def run(batches: int) -> Callable[[], object]:
        return lambda: stream_cka(models, text, max_batches=max(batches, 1), **options)

    few, more = (min(together * batches, most) for batches in (FEW_BATCHES, MORE_BATCHES))
    run(few)()
    once = _seconds(run(few))
    each = (_seconds(run(more)) - once) / (more - few) if more > few else 0.0
    seconds = once + max(each, 0.0) * (most - few)
    step = Step(f"CKA over {most:,} batches", 1, seconds, _peak(), SMALL_FILES)
    return _plan([step], out)


def plan_stitch(models: Sequence[str], text: Text, *, out: Place = None, **options: Any) -> RunPlan:
    """What `stitch` will take at most: a fit by task loss may stop before its last step."""
    _refuse_unknown(options, stitch)
    if len(models) != 2:
        raise InvalidInput(f"Got {len(models)} models: stitching has a bottom and a top, give two.")
    bottom, top = models.values() if isinstance(models, Mapping) else models
    options.setdefault("names", tuple(models) if isinstance(models, Mapping) else None)
    fit = options.pop("fit", None)
    how = fit if isinstance(fit, TaskFit) else TaskFit() if fit == "task" else None
    most = options.pop("max_tokens", 400_000)
    few = _few_tokens(bottom, options)

    def run(tokens: int, steps: int = FEW_STEPS, looks: int = 1) -> Callable[[], StitchResult]:
        own = fit if how is None else replace(how, steps=steps, every=max(1, steps // looks), patience=None)
        given = _part(text, few, tokens)
        return lambda: stitch(bottom, top, given, fit=own, max_tokens=tokens, **options)

    found = run(few)()
    total = most if isinstance(text, LabelledTexts) else min(most, _tokens(text, top, options, most))
    once = _seconds(run(few))
    small, large = (sum(one.settings["tokens"].values()) for one in (found, run(2 * few)()))
    a_token = max(_seconds(run(2 * few)) - once, 0.0) / max(large - small, 1)
    seconds = once + a_token * max(total - small, 0)
    if how is not None:
        stepped = _seconds(run(few, MORE_STEPS))
        looked = _seconds(run(few, MORE_STEPS, MORE_STEPS))
        larger = min(how.validation_tokens, 0.1 * total) / max(found.settings["tokens"]["validation"], 1)
        seconds += (how.steps - FEW_STEPS) * max(stepped - once, 0.0) / (MORE_STEPS - FEW_STEPS)
        a_look = max(looked - stepped, 0.0) / (MORE_STEPS - 1) * max(larger, 1.0)
        seconds += a_look * (how.steps // how.every)
    count = len(found.stitches)
    of_phi = sum(
        t.numel() * t.element_size() for phi in found.phis.values() for t in phi.state_dict().values()
    )
    disk = SMALL_FILES + of_phi + 2 * 8 * count * len(found.counts) * max(1, round(total / max(small, 1)))
    step = Step(f"{count:,} stitches, {total:,} tokens", count, seconds, _peak(), disk)
    return _plan([step], out)


def _refuse_unknown(options: Mapping[str, object], function: Callable[..., object]) -> None:
    known = inspect.signature(function).parameters
    refuse_other_names(options, known)
    for name in options:
        if name not in known:
            raise UnknownName.among("option", name, known)


def _few_tokens(bottom: str, options: Mapping[str, Any]) -> int:
    """Enough for some batches, and for least squares."""
    width = getattr(open_system(bottom).config, "hidden_size", 0)
    return max(3 * options.get("tokens_at_once", TOKENS_AT_ONCE), 4 * int(width or 0))


def _part(text: Text, few: int, tokens: int) -> Text:
    """Of labelled texts so many as have about the same share; running text is cut by the call itself."""
    if not isinstance(text, LabelledTexts):
        return text
    return text.subset(range(min(len(text), max(16, len(text) * tokens // (4 * few)))))


def _tokens(text: RunningText, model: str, options: Mapping[str, Any], most: int) -> int:
    """About how many tokens the text has, up to `most`."""
    enough, characters, sample = 8 * most, 0, ""
    for _, document in itertools.chain(
        *(read_documents(one, split=split_of(one, options.get("split"))) for one in _texts(text, options))
    ):
        characters += len(document)
        sample += document[: SAMPLE - len(sample)]
        if characters >= enough:
            break
    tokenizer = options.get("tokenizer") or open_system(model).tokenizer
    return round(characters * len(tokenizer(sample)["input_ids"]) / max(len(sample), 1))


def _texts(text: RunningText, options: Mapping[str, Any]) -> list[RunningText]:
    return [one for one in (text, options.get("test")) if one is not None]


def _seconds(work: Callable[[], object]) -> float:
    """Processor seconds, the shorter of two times."""
    times = []
    for _ in range(2):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def _peak() -> int:
    """Bytes that this process had at most: the call holds no more for a longer text, but its tokens."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _plan(steps: list[Step], out: Place) -> RunPlan:
    place = str(out) if out is not None else cache_directory()
    free = available_memory()
    return RunPlan(
        tuple(steps),
        workers=1,
        place=place,
        memory_free=None if free is None else free + _peak(),
        disk_free=free_disk(place) if is_local(place) else None,
    )
