"""What stitched models are asked: running text with tokens to predict, or labelled texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.text import PADDING, PackedText
from thinkalike.systems.batch import Batch, Ints, tokenise
from thinkalike.systems.heads import Task
from thinkalike.types import Tokenizer

if TYPE_CHECKING:
    import torch

NOT_ASKED = -100  # the target of a position where nothing is predicted; torch's own number for it
MASKED_SHARE = 0.15


@dataclass(frozen=True)
class LabelledTexts:
    """Texts, or pairs of texts such as premise and hypothesis, with the class of each.

    Hand them to `ta.stitch` in the place of running text, to stitch two sequence classifiers, as in
    `ta.stitch(bert_a, bert_b, data, kind="identity")`. These are `…ForSequenceClassification` models, or
    names; models without a place they came from need `tokenizer=`. With kind="identity" all examples are used
    for the penalty; any other kind is fitted on some of them and judged on the rest.

    Attributes
    ----------
    texts : sequence of str, or of pairs of str
    labels : sequence of int
        Numbers of classes, as the output layer of the top has them.

    Examples
    --------
    >>> from thinkalike.stitching import LabelledTexts
    >>> pairs = [("A man sleeps.", "A man is awake."), ("A dog runs.", "An animal moves.")]
    >>> len(LabelledTexts(pairs, [2, 0]))
    2
    """

    texts: Sequence[str | tuple[str, str]]
    labels: Sequence[int]

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise InvalidInput(
                f"There are {len(self.texts)} texts and {len(self.labels)} labels: each text has one."
            )
        if not len(self.texts):
            raise InvalidInput("There are no labelled texts: give at least one.")

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def from_table(cls, path: str | Path) -> LabelledTexts:
        """From a .csv, .tsv or .parquet file with the columns text (and second, of pairs) and label."""
        import pandas as pd

        path = Path(path)
        try:
            if path.suffix == ".parquet":
                table = pd.read_parquet(path)
            else:
                table = pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",", keep_default_na=False)
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{path} cannot be read as a table of labelled texts ({error}).") from error
        lacking = [name for name in ("text", "label") if name not in table]
        if lacking:
            have = ", ".join(map(str, table.columns))
            raise InvalidInput(
                f"{path} has no column {lacking[0]!r}, only {have}: name the columns so (a table is for "
                "classifiers; language models are stitched on a text file, or a folder of them)."
            )
        if not pd.api.types.is_integer_dtype(table["label"]):
            raise InvalidInput(f"The labels in {path} are not whole numbers: number the classes from 0.")
        texts: list[str | tuple[str, str]] = [str(text) for text in table["text"]]
        if "second" in table:
            texts = list(zip(map(str, table["text"]), map(str, table["second"]), strict=True))
        return cls(texts, [int(label) for label in table["label"]])

    def subset(self, rows: Sequence[int] | Ints) -> LabelledTexts:
        """The texts at the given positions, in that order."""
        return LabelledTexts([self.texts[k] for k in rows], [self.labels[k] for k in rows])


@dataclass(frozen=True, eq=False)
class TargetBatch:
    """Some examples, and what is to be predicted of them.

    Attributes
    ----------
    tokens
        What both models read.
    targets : (n, length), or (n,) for classes
        What is to be predicted; −100 where nothing is.
    units : the shape of targets
        The unit of resampling (document, passage or example) of each target.
    """

    tokens: Batch
    targets: torch.Tensor
    units: Ints = field()

    def rows(self, states: torch.Tensor) -> torch.Tensor:
        """(n_tokens, width) of (n, length, width): the states of tokens, without padding."""
        import torch

        if self.tokens.mask.all():
            return states.flatten(0, 1)
        return states[torch.from_numpy(self.tokens.mask).to(states.device)]


@dataclass(frozen=True, eq=False)
class Examples:
    """Sequences of tokens with their targets, all in memory; batches are made as they are asked for.

    Attributes
    ----------
    tokens
        n sequences.
    targets : (n, length), or (n,) for classes
        For masked models, the token itself wherever it may be asked for.
    units : the shape of targets
    mask_token
        Of masked models: what stands for a hidden token.
    """

    tokens: Batch
    targets: Ints = field()
    units: Ints = field()
    mask_token: int | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def n_tokens(self) -> int:
        return int(self.tokens.mask.sum())

    @property
    def n_units(self) -> int:
        return len(np.unique(self.units[self.targets != NOT_ASKED]))

    def first(self, n: int) -> Examples:
        """The first `n`, at full width."""
        tokens = self.tokens.take(slice(n), trimmed=False)
        return Examples(tokens, self.targets[:n], self.units[:n], self.mask_token)

    def batch(
        self, rows: Sequence[int] | Ints, *, device: str | torch.device = "cpu", draw: int = 0
    ) -> TargetBatch:
        """The chosen rows; `draw` numbers the choice of hidden tokens of masked models."""
        import torch

        rows = np.asarray(rows, dtype=np.int64)
        tokens = self.tokens.take(rows)
        targets = self.targets[rows] if self.targets.ndim == 1 else self.targets[rows, : tokens.width]
        units = self.units[rows] if self.units.ndim == 1 else self.units[rows, : tokens.width]
        if self.mask_token is not None:
            hidden = self._hidden(rows, draw)[:, : tokens.width] & (targets != NOT_ASKED)
            tokens = replace(tokens, ids=np.where(hidden, self.mask_token, tokens.ids))
            targets = np.where(hidden, targets, NOT_ASKED)
        return TargetBatch(tokens, torch.from_numpy(targets).to(device), units)

    def _hidden(self, rows: Ints, draw: int) -> npt.NDArray[np.bool_]:
        """Which tokens are hidden: the same in every call for the same row and draw, in any batch."""
        drawn = [np.random.default_rng((draw, int(row))).random(self.tokens.width) for row in rows]
        return np.stack(drawn) < MASKED_SHARE


def text_examples(
    packed: PackedText, *, task: Task | None, tokenizer: Tokenizer, by_document: bool
) -> Examples:
    """Packed text as questions: the next token, or hidden ones.

    A unit is the document of the predicted token, or the passage when `by_document` is False.
    """
    documents = packed.documents
    passages = np.broadcast_to(np.arange(len(packed))[:, None], documents.shape)
    units = np.where(documents == PADDING, PADDING, documents if by_document else passages)
    tokens = Batch(packed.ids, packed.mask)
    asked = np.where(packed.mask, packed.ids, NOT_ASKED)
    if task == "masked":
        asked[:, 0] = NOT_ASKED  # the first token is the tokenizer's own
        return Examples(tokens, asked, units, mask_token=_mask_token(tokenizer))
    ahead = np.full_like(asked, NOT_ASKED)
    ahead[:, :-1] = asked[:, 1:]
    next_units = np.full_like(units, PADDING)
    next_units[:, :-1] = units[:, 1:]
    return Examples(tokens, ahead, next_units)


def labelled_examples(data: LabelledTexts, *, tokenizer: Tokenizer, length: int) -> Examples:
    """Every text a sequence of its own; longer ones are cut."""
    return Examples(
        tokenise(tokenizer, data.texts, length=length),
        targets=np.asarray(data.labels, dtype=np.int64),
        units=np.arange(len(data), dtype=np.int64),
    )


def _mask_token(tokenizer: Tokenizer) -> int:
    if tokenizer.mask_token_id is None:
        raise InvalidInput("The tokenizer of a masked model has no mask token: set tokenizer.mask_token.")
    return int(tokenizer.mask_token_id)
