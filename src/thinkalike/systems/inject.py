"""Starting a model in the middle, and stopping it there: what stitching is made of.

    bottom, top = layers_of(one), layers_of(other)
    states = states_at(bottom, 3, **inputs)
    with start_from(top, 5, states):
        logits = other(**inputs).logits

The inputs of the second call still say how long the sequences are and where they are padded. What they mean
no longer matters: the states enter the block after layer 5, and the blocks before it pass them through.
(Exceptions: DeBERTa-v2's convolution, and the embeddings that each block of a small Gemma 4 has, come,
where a model has them, from the tokens beside the blocks.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from thinkalike.errors import InvalidInput
from thinkalike.systems.hooks import entering
from thinkalike.systems.sites import first_tensor
from thinkalike.systems.stack import Stack

if TYPE_CHECKING:
    import torch
    from torch import nn

Inputs = dict[str, object]
Forward = Callable[..., object]
Run = Callable[[int, Forward, tuple[object, ...], Inputs], object]


class _Reached(Exception):
    """The pass has come to the layer that was asked for; nothing after it is needed."""


def states_at(stack: Stack, layer: int, **inputs: object) -> torch.Tensor:
    """The hidden states of `layer`, the batch first; no block after it runs.

    Parameters
    ----------
    stack
        From `layers_of`.
    layer
        0 is the embeddings, L the answer of the last block.
    inputs
        What the model is called with.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import torch
    >>> from thinkalike.systems import bundled, layers_of, start_from, states_at
    >>> model = bundled.load("nano-gelu-3l")[0]
    >>> stack, ids = layers_of(model), torch.tensor([[5, 6, 7]])
    >>> states_at(stack, 2, input_ids=ids).shape[:2]
    torch.Size([1, 3])
    """
    return states_of(stack, [layer], **inputs)[layer]


def states_of(stack: Stack, layers: Iterable[int], **inputs: object) -> dict[int, torch.Tensor]:
    """The hidden states of several layers from one pass, which ends with the last of them."""
    wanted = set(layers)
    for layer in sorted(wanted):
        _check_layer(stack, layer)
    found: dict[int, torch.Tensor] = {}

    def until(run: int, forward: Forward, args: tuple[object, ...], kwargs: Inputs) -> object:
        if run in wanted:
            found[run] = stack.batch_first(entering(args, kwargs))
        if len(found) == len(wanted):
            raise _Reached
        output = forward(*args, **kwargs)
        if run + 1 == stack.n_blocks and run + 1 in wanted:
            found[run + 1] = stack.batch_first(first_tensor(output))
            raise _Reached
        return output

    with _running(stack, until), suppress(_Reached):
        stack.model(**inputs)
    return found


@contextmanager
def start_from(stack: Stack, layer: int, states: torch.Tensor) -> Iterator[None]:
    """While this lasts, `states` stand in for `layer`: the blocks before pass through, those after run on.

    Parameters
    ----------
    stack
        From `layers_of`. Keep it over many calls: it remembers the form in which the blocks answer.
    layer
        0 replaces the embeddings, L the answer of the last block.
    states : tensor as `states_at` gives it

    Returns
    -------
    context manager

    Examples
    --------
    A model that starts from its own states answers as it does by itself:

    >>> import torch
    >>> from thinkalike.systems import bundled, layers_of, start_from, states_at
    >>> model = bundled.load("nano-gelu-3l")[0]
    >>> stack, ids = layers_of(model), torch.tensor([[5, 6, 7]])
    >>> with torch.no_grad():
    ...     own, states = model(input_ids=ids).logits, states_at(stack, 2, input_ids=ids)
    ...     with start_from(stack, 2, states):
    ...         again = model(input_ids=ids).logits
    >>> bool(torch.allclose(own, again))
    True
    """
    _check_layer(stack, layer)
    states = stack.batch_first(states)
    first: Inputs = {}

    def instead(run: int, forward: Forward, args: tuple[object, ...], kwargs: Inputs) -> object:
        if run > layer:
            return forward(*args, **kwargs)
        if run == layer and args:
            return forward(states, *args[1:], **kwargs)
        if run == layer:
            return forward(**{**kwargs, "hidden_states": states})
        if "form" in stack.notes:
            return _with_states(stack.notes["form"], states)
        if run == 0:
            # The first block runs although its states are not wanted: its answer shows the form, and T5's
            # holds the position bias of all blocks. Where there is nothing beside states, once is enough.
            first["answer"] = forward(*args, **kwargs)
            if _only_states(first["answer"]):
                stack.notes["form"] = _with_states(first["answer"], None)
        return _with_states(first["answer"], states)

    with _running(stack, instead):
        yield


@contextmanager
def _running(stack: Stack, run: Run) -> Iterator[None]:
    """Put `run(how many blocks ran before, forward, args, kwargs)` in the place of each block's forward."""
    count: Iterator[int] = iter(())

    def restart(module: nn.Module, args: object) -> None:
        nonlocal count
        count = iter(range(stack.n_blocks))

    def replacement(forward: Forward) -> Forward:
        return lambda *args, **kwargs: run(next(count), forward, args, kwargs)

    handle = stack.owner.register_forward_pre_hook(restart)
    blocks = list(dict.fromkeys(stack.blocks))
    # A forward on the module itself (accelerate puts one there) must come back; otherwise the class has it.
    own = [vars(block).get("forward") for block in blocks]
    try:
        for block in blocks:
            block.forward = replacement(block.forward)
        yield
    finally:
        handle.remove()
        for block, forward in zip(blocks, own, strict=True):
            if forward is None:
                vars(block).pop("forward", None)
            else:
                block.forward = forward


def _with_states(answer: object, states: torch.Tensor | None) -> object:
    """What a block answered, with `states` for its hidden states."""
    if isinstance(answer, (tuple, list)):
        return type(answer)((states, *answer[1:]))
    if isinstance(answer, dict):
        return type(answer)({**answer, next(iter(answer)): states})
    return states


def _only_states(answer: object) -> bool:
    """Whether a block answers with nothing but hidden states: no bias, cache or recurrent state."""
    if isinstance(answer, dict):
        answer = tuple(answer.values())
    return not isinstance(answer, (tuple, list)) or all(beside is None for beside in answer[1:])


def _check_layer(stack: Stack, layer: int) -> None:
    if not 0 <= layer <= stack.n_blocks:
        raise InvalidInput(
            f"This {stack.model_type} model has the layers 0 to {stack.n_blocks}; {layer} was asked for."
        )
