"""Many classifiers from one pretrained model, which differ only in the seed (McCoy et al. 2020).

The seed draws the output layer and the order of the training pairs. A finished model lies in a folder of its
own, so an interrupted run loses at most the model in work.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from thinkalike.files import is_sealed, new_folder, seal_folder
from thinkalike.progress import without_bars
from thinkalike.recipes.brown2023_generalization.classifiers import Questions, loss_of
from thinkalike.systems.batch import Batch, Bools, Ints, tokenise
from thinkalike.systems.calling import arguments
from thinkalike.systems.loading import loading
from thinkalike.systems.stack import layers_of
from thinkalike.types import Model, Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import nn

    from thinkalike.recipes.brown2023_generalization.data import Pairs

WARM_UP = 0.1  # of all steps
CLIP = 1.0
DECAY = 0.01
HIDDEN = 0.35  # of the tokens of a hypothesis, when the model learns to read pairs


def fine_tuned(
    base: nn.Module, questions: Questions, *, seed: int, steps: int, batch: int, rate: float
) -> nn.Module:
    """A classifier from the body of `base`: new output layer, then `steps` of AdamW over `questions`."""
    import torch
    from transformers import AutoModelForSequenceClassification

    body = cast("Model", cast("Model", base).base_model)
    config = copy.deepcopy(body.config)
    config.num_labels = questions.right.shape[1]
    order = _epochs(len(questions), batch, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        with loading():
            model = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
        # A pooler, where there is one, belongs to the new output layer: masked models have none.
        model.base_model.load_state_dict(body.state_dict(), strict=False)

        def loss() -> torch.Tensor:
            rows = next(order)
            return loss_of(questions.logits(model, rows), questions.right[rows]).mean()

        model.train()
        _optimise(model.parameters(), loss, steps=steps, rate=rate)
    return model.eval()


def pair_reader(
    base: nn.Module, pairs: Pairs, *, tokenizer: Tokenizer, seed: int, steps: int, batch: int, rate: float
) -> nn.Module:
    """`base`, a masked model, trained on with pairs as BERT was: hidden words, and what belongs together.

    BERT has seen pairs of sentences in its pretraining, our small model has not. Half of the hypotheses are
    those of other premises. No label is shown: whether a hypothesis that belongs to its premise also follows
    from it makes no difference here.
    """
    import torch

    tokens, hypothesis = _pair_tokens(pairs, tokenizer)
    together = torch.arange(len(tokens)) < len(pairs) // 2
    order = _epochs(len(tokens), batch, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = cast("Model", copy.deepcopy(base).train())
        stack = layers_of(model)
        judge = torch.nn.Linear(model.config.hidden_size, 2)  # reads the first token; not kept

        def loss() -> torch.Tensor:
            rows = next(order)
            shown = tokens.take(rows)
            where = torch.from_numpy(hypothesis[rows, : shown.width])
            hidden = (torch.rand(where.shape, generator=generator) < HIDDEN) & where
            hidden[0, int(where[0].nonzero()[0])] = True  # never nothing to predict
            asked = replace(shown, ids=np.where(hidden.numpy(), tokenizer.mask_token_id, shown.ids))
            states = stack.model(**arguments(stack, asked)).last_hidden_state
            right = torch.from_numpy(shown.ids)[hidden]
            # Logits only where they are asked for: over a whole vocabulary they cost as much as a block.
            words = torch.nn.functional.cross_entropy(word_logits(model, states[hidden]), right)
            belongs = judge(states[:, 0])
            return words + torch.nn.functional.cross_entropy(belongs, together[rows].long())

        _optimise([*model.parameters(), *judge.parameters()], loss, steps=steps, rate=rate)
    return model.eval()


def word_logits(model: Any, states: torch.Tensor) -> torch.Tensor:
    """What a masked BERT or ModernBERT makes of the states of some positions."""
    return model.cls(states) if hasattr(model, "cls") else model.decoder(model.head(states))


def _pair_tokens(pairs: Pairs, tokenizer: Tokenizer) -> tuple[Batch, Bools]:
    """The pairs, in the second half with hypotheses of other premises; which tokens are of the hypothesis."""
    half = len(pairs) // 2
    premises, hypotheses = (list(column) for column in zip(*pairs.texts, strict=True))
    hypotheses[half:] = [*hypotheses[half + 1 :], hypotheses[half]]
    tokens = tokenise(tokenizer, list(zip(premises, hypotheses, strict=True)))
    ends = tokens.mask & (tokens.ids == tokenizer.sep_token_id)
    return tokens, tokens.mask & (ends.cumsum(axis=1) == 1) & ~ends


def kept_model(folder: Path, make: Callable[[], nn.Module], tokenizer: Tokenizer) -> Path:
    """The folder of a model that is made once: complete, or not there; made anew if it was damaged."""
    if not is_sealed(folder):
        model = cast("Model", make())
        with new_folder(folder) as part, without_bars():
            model.save_pretrained(part)
            tokenizer.save_pretrained(part)
            seal_folder(part)
    return folder


def _optimise(
    parameters: Iterable[torch.nn.Parameter], loss: Callable[[], torch.Tensor], *, steps: int, rate: float
) -> None:
    """AdamW with warm-up and linear decay."""
    import torch

    every = list(parameters)
    optimiser = torch.optim.AdamW(every, lr=rate, weight_decay=DECAY, fused=True)
    warm = max(1, round(WARM_UP * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    for _ in range(steps):
        optimiser.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_(every, CLIP)
        optimiser.step()
        schedule.step()


def _epochs(n: int, batch: int, seed: int) -> Iterator[Ints]:
    """Rows of one batch after the other, every row once before any comes again."""
    rng = np.random.default_rng(seed)
    waiting = np.empty(0, dtype=np.int64)
    while True:
        while len(waiting) < batch:
            waiting = np.concatenate([waiting, rng.permutation(n)])
        yield waiting[:batch]
        waiting = waiting[batch:]
