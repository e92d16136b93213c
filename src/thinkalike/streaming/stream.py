"""CKA over text: several models and all their layers in one pass, until it is precise enough."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.measures.inputs import Array
from thinkalike.progress import progress
from thinkalike.streaming.batches import Batch, MixedBatches, PassageBatches
from thinkalike.streaming.cka_matrix import CKAMatrix, Row
from thinkalike.streaming.passages import Passages, Reading
from thinkalike.streaming.sums import FEWEST_UNITS, StreamingCKA

if TYPE_CHECKING:
    import torch

    from thinkalike.systems.architectures import Stack
    from thinkalike.systems.hooks import Layer

TOKENS_AT_ONCE = 1024  # through a model; more are no faster on a CPU
HEAVY = 0.5  # a share of HSIC in 1 % of the items that is worth a word

Reason = Literal["precision", "max_batches", "end"]
Trace = list[dict[str, float]]


def run_stream(
    batches: Generator[Batch, None, None],
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
) -> Generator[Batch, None, None]:
    """Run every model over the same passages and batch the rows of all their layers together.

    The order of the passages is random, so that a stream that stops early has seen all of the text, and the
    same for every model. `by_document`: the passages of a document are one unit of the jackknife; else each
    is its own. The first `start` passages of the order are passed over; `done` hears how many have become
    batches that were taken.
    """
    from thinkalike.systems.mamba.selective_scan import fused_scan
    from thinkalike.systems.subject import evaluating

    at_once = max(1, TOKENS_AT_ONCE // passages.n_tokens())
    order = np.random.default_rng(seed).permutation(len(passages.documents))
    with ExitStack() as contexts, progress("reading", len(order)) as step:
        for stack in stacks:
            contexts.enter_context(evaluating(stack.model))
            contexts.enter_context(fused_scan(stack.model))
        step.advance(start)
        for first in range(start, len(order), at_once):
            chosen = order[first : first + at_once]
            layers = [
                rows
                for k, (stack, wanted) in enumerate(zip(stacks, labels, strict=True))
                for rows in layer_rows(stack, passages.read(k, chosen), wanted, site=site)
            ]
            units = [passages.documents[k] if by_document else int(k) for k in chosen]
            yield from batching.take(_together(layers), passages.n_rows(chosen), units)
            step.advance(len(chosen))
            if batching.is_empty:
                done(first + len(chosen))
        yield from batching.rest()


def layer_rows(stack: Stack, reading: Reading, labels: Sequence[Layer], *, site: str) -> list[torch.Tensor]:
    """The rows of the wanted layers, (n_rows, n_units) each, in one call of the model."""
    from thinkalike.systems.hooks import FINAL_NORM, recording

    def keep(layer: Layer, states: torch.Tensor) -> torch.Tensor:
        # A decoder beside an encoder reads a start token before the text: its state belongs to no token.
        return reading.keep(states[:, 1:] if stack.part == "decoder" else states)

    with recording(stack, keep, site=site, final_norm=FINAL_NORM in labels) as record:
        stack.model(**arguments(stack, reading))
    record.check()
    missing = [label for label in labels if label not in record.states]
    if missing:
        raise ModelError(f"Layer {missing[0]!r} of this {stack.model_type} model gave no answer.")
    return [record.states[label] for label in labels]


def arguments(stack: Stack, reading: Reading) -> dict[str, Any]:
    """What the model is called with, on its device."""
    import inspect

    import torch

    from thinkalike.systems.passes import check_tokens, padding_id
    from thinkalike.systems.subject import start_token

    check_tokens(stack, reading.ids)
    accepted = set(inspect.signature(stack.model.forward).parameters)
    device = next(stack.model.parameters()).device
    ids = torch.from_numpy(np.where(reading.mask, reading.ids, padding_id(stack.config))).to(device)
    mask = torch.from_numpy(reading.mask.astype(np.int64)).to(device)
    given = {"input_ids": ids, "attention_mask": mask}
    if reading.segments is not None:
        given["token_type_ids"] = torch.from_numpy(reading.segments).to(device)
    if stack.part == "decoder":
        first = torch.full_like(ids[:, :1], start_token(stack) or 0)
        given["decoder_input_ids"] = torch.cat([first, ids], dim=1)
        given["decoder_attention_mask"] = torch.cat([torch.ones_like(first), mask], dim=1)
    if not stack.architecture.reads_mask:
        given.pop("attention_mask")
    return {name: tensor for name, tensor in given.items() if name in accepted} | (
        {"use_cache": False} if "use_cache" in accepted else {}
    )


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
