"""What a model makes of texts when its states at one layer are changed: log-probabilities of their tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from thinkalike.labels import Floats
from thinkalike.systems.batch import Batch, Bools, Ints
from thinkalike.systems.calling import bottom_states, top_logits
from thinkalike.systems.stack import Stack
from thinkalike.types import Tokenizer

MASKED_SHARE = 0.15
Change = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Asked:
    """Tokens that a model is asked for, in rows that belong to texts.

    Attributes
    ----------
    batch : what it reads
    targets, where : (n_rows, width)
        The right token at each place, and the places that count.
    texts : (n_rows,)
        Which text a row is part of.
    """

    batch: Batch
    targets: Ints = field(repr=False)
    where: Bools = field(repr=False)
    texts: Ints = field(repr=False)

    @classmethod
    def causal(cls, sequences: Sequence[Sequence[int]]) -> Asked:
        """Each token from those before it."""
        batch = Batch.of([one[:-1] for one in sequences])
        targets = Batch.of([one[1:] for one in sequences])
        return cls(batch, targets.ids, targets.mask, np.arange(len(sequences)))

    @classmethod
    def masked(cls, rows: Sequence[tuple[int, Sequence[int], Sequence[int]]], mask_token: int) -> Asked:
        """Rows of (text, its tokens, the places that are hidden and asked for)."""
        targets = Batch.of([ids for _, ids, _ in rows])
        where = np.zeros(targets.ids.shape, dtype=bool)
        for row, (_, _, places) in enumerate(rows):
            where[row, list(places)] = True
        shown = Batch(np.where(where, mask_token, targets.ids), targets.mask)
        return cls(shown, targets.ids, where, np.array([text for text, _, _ in rows]))

    def log_probabilities(
        self, model: nn.Module, stack: Stack, layer: int, changes: Sequence[Change]
    ) -> Floats:
        """Sums over the tokens of each text, under each change of a layer's states: (n_changes, n_texts)."""
        states = bottom_states(stack, [layer], self.batch)[layer]
        targets = torch.from_numpy(self.targets)[..., None]
        found = []
        for change in changes:
            with torch.no_grad():
                logits = top_logits(model, stack, layer, change(states), self.batch)
            right = logits.log_softmax(-1).gather(-1, targets)[..., 0].double().numpy()
            found.append(np.bincount(self.texts, np.where(self.where, right, 0.0).sum(axis=1)))
        return np.stack(found)


def ask_text(chunks: Ints, tokenizer: Tokenizer, *, masked: bool, seed: int) -> Asked:
    """Passages (n, length) of running text: every token, or of a masked model one in seven."""
    if not masked:
        return Asked.causal(chunks.tolist())
    rng = np.random.default_rng(seed)
    rows = []
    for number, chunk in enumerate(chunks):
        ids = [tokenizer.cls_token_id, *chunk.tolist(), tokenizer.sep_token_id]
        n_hidden = max(1, round(MASKED_SHARE * len(chunk)))
        rows.append((number, ids, (1 + rng.permutation(len(chunk))[:n_hidden]).tolist()))
    return Asked.masked(rows, tokenizer.mask_token_id)


def ask_sentences(sentences: Sequence[str], tokenizer: Tokenizer, *, masked: bool) -> Asked:
    """Whole sentences, as minimal pairs are judged (`systems.likelihood`).

    A causal model predicts each token and the end. A masked one predicts each token with it and the rest of
    its word hidden, in a row for each.
    """
    if not masked:
        return Asked.causal([[*tokenizer(one)["input_ids"], tokenizer.eos_token_id] for one in sentences])
    rows = []
    for number, sentence in enumerate(sentences):
        read = tokenizer(sentence)
        ids, words = read["input_ids"], read.word_ids()
        places = [k for k, word in enumerate(words) if word is not None]
        for place in places:
            rows.append((number, ids, place, [k for k in places if k >= place and words[k] == words[place]]))
    made = Asked.masked([(text, ids, hidden) for text, ids, _, hidden in rows], tokenizer.mask_token_id)
    only_first = np.zeros_like(made.where)
    only_first[np.arange(len(rows)), [place for _, _, place, _ in rows]] = True
    return Asked(made.batch, made.targets, only_first, made.texts)
