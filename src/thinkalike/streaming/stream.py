"""CKA over text: several models and all their layers in one pass, until it is precise enough."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.measures.inputs import Array
from thinkalike.progress import progress
from thinkalike.streaming.batches import LayerRows, MixedBatches, PassageBatches
from thinkalike.streaming.cka_matrix import CKAMatrix, Row
from thinkalike.streaming.passages import Passages
from thinkalike.streaming.sums import FEWEST_UNITS, StreamingCKA
from thinkalike.systems.calling import evaluating, read_rows
from thinkalike.types import Matrix

if TYPE_CHECKING:
    import torch

    from thinkalike.systems.hooks import Layer
    from thinkalike.systems.stack import Stack

TOKENS_AT_ONCE = 1024  # through a model; more are no faster on a CPU
HEAVY = 0.5  # a share of HSIC in 1 % of the items that is worth a word

Reason = Literal["precision", "max_batches", "end"]
Trace = list[dict[str, float]]


def run_stream(
    batches: Generator[LayerRows[Matrix], None, None],
    rows: Sequence[Row],
    stream: StreamingCKA,
    *,
    precision: float | None = None,
    max_batches: int | None = None,
    trace: Trace | None = None,
) -> tuple[pd.DataFrame, Reason]:
    """Feed batches to the stream until it is precise enough: the trace, and why it stopped.

    `trace` may bring that of batches which came before.
    """
    if precision is not None and not 0 < precision < np.inf:
        raise InvalidInput(f"precision is the standard error to stop at, above 0; {precision} was given.")
    systems = np.array([system for system, _ in rows], dtype=object)
    shown = systems[:, None] != systems[None, :]
    shown = shown if shown.any() else ~np.eye(len(rows), dtype=bool)
    trace = [] if trace is None else trace
    stopped: Reason = "end"
    with closing(batches):  # which ends what the models were prepared for, also when we stop early
        for batch in batches:
            stream.add(batch.layers, unit=batch.unit)
            mean, error = _mean(stream.estimate()[shown]), _largest(stream.standard_errors())
            counts = {"batches": stream.n_batches, "items": stream.n_items}
            trace.append({**counts, "mean": mean, "standard_error": error})
            if precision is not None and stream.n_units >= FEWEST_UNITS and error <= precision:
                stopped = "precision"
                break
            if max_batches is not None and stream.n_batches >= max_batches:
                stopped = "max_batches"
                break
    if not trace:
        raise InvalidInput(
            "The text gave no batch of 4 items or more: give a longer text, or longer passages."
        )
    return pd.DataFrame(trace), stopped


def model_batches(
    stacks: Sequence[Stack],
    labels: Sequence[Sequence[Layer]],
    passages: Passages,
    batching: PassageBatches | MixedBatches,
    *,
    site: str = "residual",
    by_document: bool = True,
    seed: int = 0,
    start: int = 0,
    done: Callable[[int], None] = lambda position: None,
) -> Generator[LayerRows[torch.Tensor], None, None]:
    """Run every model over the same passages and batch the rows of all their layers together.

    The order of the passages is random, so that a stream that stops early has seen all of the text, and the
    same for every model. `by_document`: the passages of a document are one unit of the jackknife; else each
    is its own. The first `start` passages of the order are passed over; `done` hears how many have become
    batches that were taken.
    """
    at_once = max(1, TOKENS_AT_ONCE // passages.n_tokens())
    order = np.random.default_rng(seed).permutation(len(passages.documents))
    with evaluating(*(stack.model for stack in stacks)), progress("reading", len(order)) as step:
        step.advance(start)
        for first in range(start, len(order), at_once):
            chosen = order[first : first + at_once]
            layers = [
                rows
                for k, (stack, wanted) in enumerate(zip(stacks, labels, strict=True))
                for rows in read_rows(stack, passages.read(k, chosen), labels=wanted, site=site)
            ]
            units = [passages.documents[k] if by_document else int(k) for k in chosen]
            yield from batching.take(_together(layers), passages.n_rows(chosen), units)
            step.advance(len(chosen))
            if batching.is_empty:
                done(first + len(chosen))
        yield from batching.rest()


def make_matrix(
    stream: StreamingCKA,
    rows: Sequence[Row],
    trace: pd.DataFrame,
    stopped: Reason,
    *,
    unit: str,
    settings: dict[str, Any],
    notes: Sequence[str] = (),
) -> CKAMatrix:
    """The result, with the cautions that its numbers call for."""
    top = stream.top_share()
    return CKAMatrix(
        rows=tuple(rows),
        values=stream.estimate(),
        standard_errors=stream.standard_errors(),
        top_share=top,
        trace=trace,
        units={unit: stream.n_units},
        stopped=stopped,
        cautions=(*notes, *_cautions(rows, top, trace, settings.get("precision"))),
        settings=settings,
    )


def _cautions(rows: Sequence[Row], top: Array, trace: pd.DataFrame, precision: float | None) -> Iterator[str]:
    names = [f"{system}:{layer}" for system, layer in rows]
    heavy = [name for name, share in zip(names, top, strict=True) if share > HEAVY]
    if heavy:
        yield (
            f"1 % of the items carry more than half of the HSIC of {_listed(heavy)}: CKA there is about few "
            "items of huge norm, such as first tokens. Leave those out with drop_first, or use rsa."
        )
    flat = [name for name, share in zip(names, top, strict=True) if np.isnan(share)]
    if flat:
        yield f"{_listed(flat)} gave all items of every batch the same vector: no CKA is defined there."
    error = trace["standard_error"].iloc[-1]
    if precision is not None and not error <= precision:
        found = "unknown" if np.isnan(error) else f"{error:.2g}"
        yield (
            f"The text ended before the precision of {precision:g} was reached: the largest standard error "
            f"is {found}. Give more text."
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _together(layers: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """All on the device of the first."""
    return [rows.to(layers[0].device) for rows in layers]


def _mean(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def _largest(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if len(finite) else float("nan")
