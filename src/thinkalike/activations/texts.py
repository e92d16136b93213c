"""Texts and items → token sequences, and for each row of the answer the tokens that it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from thinkalike.activations.words import Ints, check_pooling, chosen, tokens_of_span
from thinkalike.errors import InvalidInput, ModelError

if TYPE_CHECKING:
    from thinkalike.stimuli.table import Stimuli

TEXTS_AT_ONCE = 1000
Tokens = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Every different text once, as tokens; and the rows, each some tokens of one text.

    Attributes
    ----------
    ids
        The token ids of each text.
    rows
        Names of the rows, in the order of the items.
    row_text : (n_rows,)
        Which text a row belongs to.
    row_tokens, row_starts
        Row r is the mean over the tokens at row_tokens[row_starts[r] : row_starts[r + 1]] of its text.
    kept : (n_items,)
        False for the items that have no row, because all their tokens were dropped.
    """

    ids: list[Tokens]
    rows: tuple[str, ...]
    row_text: Ints
    row_tokens: Ints
    row_starts: Ints
    kept: npt.NDArray[np.bool_]

    @property
    def lengths(self) -> Ints:
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)

    def tokens(self, row: int) -> Ints:
        return self.row_tokens[self.row_starts[row] : self.row_starts[row + 1]]


@dataclass(frozen=True)
class Reader:
    """How a model reads text.

    Attributes
    ----------
    name
        The system, for messages.
    bos
        True puts a beginning-of-sequence token first, False takes it away, None leaves it to the tokenizer.
    drop_first
        So many tokens at the beginning of each sequence are left out of every row: their norm can be huge.
    start_token
        What a decoder reads before the text; None for any other model.
    max_length
        How many tokens the model can read; None for any number.
    """

    tokenizer: Any
    name: str
    pooling: str = "last"
    bos: bool | None = None
    drop_first: int = 0
    start_token: int | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        check_pooling(self.pooling)
        if self.drop_first < 0:
            raise InvalidInput(f"drop_first is a number of tokens, 0 or more; {self.drop_first} was given.")
        if not getattr(self.tokenizer, "is_fast", False):
            raise ModelError(
                f"The tokenizer of {self.name} ({type(self.tokenizer).__name__}) gives no character offsets, "
                "by which words find their tokens: use a fast tokenizer (a folder with tokenizer.json)."
            )

    def read(self, stimuli: Stimuli) -> Sequences:
        """Tokenise every different sentence once and find the tokens of every item."""
        items, sentences = stimuli.items, stimuli.sentences.to_dict()
        if not sentences:
            raise InvalidInput(
                f"The items have no text for {self.name} to read: give words in sentences, or the images or "
                "sounds themselves with inputs=…"
            )
        name_of = {text: str(name) for name, text in sentences.items()}
        texts = list(name_of)
        number = {text: i for i, text in enumerate(texts)}
        ids, offsets = self._tokenise(texts, list(name_of.values()))

        rows: list[str] = []
        row_text: list[int] = []
        groups: list[Ints] = []
        kept = np.ones(len(items), dtype=bool)
        spans = zip(items.index, items["sentence"], items["start"], items["end"], strict=True)
        for i, (item, sentence, start, end) in enumerate(spans):
            text = sentences[sentence]
            tokens = self._tokens(str(item), text, ids[number[text]], offsets[number[text]], start, end)
            tokens = chosen(tokens[tokens >= self.drop_first], self.pooling)
            kept[i] = len(tokens) > 0
            if self.pooling == "all":
                rows.extend(f"{item}/{j}" for j in range(len(tokens)))
                groups.extend(tokens[:, None])
                row_text.extend([number[text]] * len(tokens))
            elif len(tokens):
                rows.append(str(item))
                groups.append(tokens)
                row_text.append(number[text])
        if not rows:
            raise InvalidInput(f"drop_first={self.drop_first} leaves no token of any item of {self.name}.")
        starts = np.cumsum([0, *map(len, groups)])
        return Sequences(ids, tuple(rows), np.array(row_text), np.concatenate(groups), starts, kept)

    def _tokens(self, item: str, text: str, ids: Tokens, offsets: Tokens, start: int, end: int) -> Ints:
        if self.pooling == "cls":
            return self._cls(item, text, ids, start, end)
        tokens = tokens_of_span(offsets, start, end)
        if not len(tokens):
            raise InvalidInput(
                f"The word {text[start:end]!r} (item {item!r}) maps to no token of {self.name} in {text!r}: "
                "its tokenizer drops these characters. Leave the item out."
            )
        return tokens

    def _cls(self, item: str, text: str, ids: Tokens, start: int, end: int) -> Ints:
        if (start, end) != (0, len(text)):
            raise InvalidInput(
                f"pooling='cls' gives one vector per sentence, but item {item!r} is the word "
                f"{text[start:end]!r}: choose last, first or mean, or give whole sentences as items."
            )
        if self.tokenizer.cls_token_id is None or self.tokenizer.cls_token_id not in ids[:1]:
            raise InvalidInput(f"{self.name} does not begin a text with a [CLS] token: choose last or mean.")
        return np.zeros(1, dtype=np.int64)

    def _tokenise(self, texts: Sequence[str], names: Sequence[str]) -> tuple[list[Tokens], list[Tokens]]:
        ids: list[Tokens] = []
        offsets: list[Tokens] = []
        for begin in range(0, len(texts), TEXTS_AT_ONCE):
            encoded = self.tokenizer(
                list(texts[begin : begin + TEXTS_AT_ONCE]),
                return_offsets_mapping=True,
                return_attention_mask=False,
                padding=False,
                truncation=False,
                verbose=False,
            )
            for tokens, spans in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
                tokens, spans = self._begin(list(tokens), [tuple(span) for span in spans])
                self._check_length(len(tokens), names[len(ids)], texts[len(ids)])
                ids.append(np.array(tokens, dtype=np.int32))
                offsets.append(np.array(spans, dtype=np.int32).reshape(-1, 2))
        return ids, offsets

    def _begin(
        self, tokens: list[int], spans: list[tuple[int, int]]
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Settle what stands before the text."""
        first = {self.tokenizer.bos_token_id, self.tokenizer.cls_token_id} - {None}
        begun = bool(tokens) and tokens[0] in first and spans[0][0] == spans[0][1]
        if self.bos is False and begun:
            tokens, spans = tokens[1:], spans[1:]
        if self.bos is True and not begun:
            if self.tokenizer.bos_token_id is None:
                raise InvalidInput(f"The tokenizer of {self.name} has no beginning-of-sequence token.")
            tokens, spans = [self.tokenizer.bos_token_id, *tokens], [(0, 0), *spans]
        if self.start_token is not None:
            tokens, spans = [self.start_token, *tokens], [(0, 0), *spans]
        return tokens, spans

    def _check_length(self, n_tokens: int, name: str, text: str) -> None:
        if self.max_length is not None and n_tokens > self.max_length:
            raise InvalidInput(
                f"Sentence {name!r} has {n_tokens} tokens, but {self.name} reads at most {self.max_length}: "
                f"split or shorten it. It begins {text[:40]!r}."
            )
