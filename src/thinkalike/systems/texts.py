"""Texts and items → token sequences, and for each row of the answer the tokens that it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.systems.beginning import Beginning, Bos, begin_texts, is_begun
from thinkalike.systems.chats import ChatFrame
from thinkalike.systems.windows import Windows
from thinkalike.systems.words import Groups, Ints, check_pooling, tokens_of_spans
from thinkalike.types import Tokenizer

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
    row_tokens
        For each row the positions in its text that it is the mean of.
    beginning
        What stands before each text.
    """

    ids: list[Tokens]
    rows: tuple[str, ...]
    row_text: Ints
    row_tokens: Groups
    beginning: Beginning

    @property
    def lengths(self) -> Ints:
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)

    def having(self, token: int) -> Ints:
        """Which rows have that token in them."""
        row = np.repeat(np.arange(len(self.rows)), self.row_tokens.sizes)
        begins = np.cumsum(self.lengths) - self.lengths
        tokens = np.concatenate(self.ids)[begins[self.row_text[row]] + self.row_tokens.positions]
        return np.unique(row[tokens == token])


@dataclass(frozen=True, eq=False)
class _Spans:
    """The items as spans of different texts, each text standing there once."""

    texts: list[str]
    text_names: list[str]
    names: npt.NDArray[np.object_]
    text: Ints
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, stimuli: Stimuli) -> _Spans:
        items, sentences = stimuli.items, stimuli.sentences.to_dict()
        if not sentences:
            nothing = np.zeros(0, dtype=np.int64)
            return cls([], [], np.zeros(0, dtype=object), nothing, nothing, nothing)
        name_of = {text: str(name) for name, text in sentences.items()}
        number = {text: i for i, text in enumerate(name_of)}
        return cls(
            texts=list(name_of),
            text_names=list(name_of.values()),
            names=np.array([str(name) for name in items.index], dtype=object),
            text=np.array([number[sentences[sentence]] for sentence in items["sentence"]]),
            starts=items["start"].to_numpy(np.int64),
            ends=items["end"].to_numpy(np.int64),
        )

    def word(self, item: np.integer) -> str:
        return self.texts[self.text[item]][self.starts[item] : self.ends[item]]


@dataclass(frozen=True)
class Reader:
    """How a model reads text.

    Attributes
    ----------
    name
        The system, for messages.
    bos
        True puts a beginning-of-sequence token first, False takes it away, None leaves it to the tokenizer,
        "auto" does as in training (`begin_texts`).
    drop_first
        So many tokens at the beginning of each sequence are left out of every row: their norm can be huge.
    max_length
        How many tokens of text the model can read; None for any number.
    frame
        The rest of the chat, where texts are turns of one.
    windows
        How longer texts are cut; None refuses them.
    """

    tokenizer: Tokenizer
    name: str
    pooling: str = "last"
    bos: Bos = None
    drop_first: int = 0
    max_length: int | None = None
    frame: ChatFrame | None = None
    windows: Windows | None = None

    def __post_init__(self) -> None:
        check_pooling(self.pooling)
        if self.drop_first < 0:
            raise InvalidInput(f"drop_first is a number of tokens, 0 or more; {self.drop_first} was given.")
        if self.frame is not None and self.bos not in (None, "auto"):
            raise InvalidInput("The chat template says how a chat begins: leave out bos.")
        if self.frame is not None and self.windows is not None:
            raise InvalidInput("A turn of a chat is read whole: leave out window, or chat.")
        longest = 0 if self.windows is None else self.windows.length
        if self.max_length is not None and longest > self.max_length:
            raise InvalidInput(
                f"Got window={longest}, but {self.name} reads at most {self.max_length} tokens: "
                "give as many or fewer."
            )
        if not getattr(self.tokenizer, "is_fast", False):
            raise ModelError(
                f"The tokenizer of {self.name} ({type(self.tokenizer).__name__}) gives no character offsets, "
                "by which words find their tokens: use a fast tokenizer (a folder with tokenizer.json)."
            )

    def read(self, stimuli: Stimuli) -> Sequences:
        """Tokenise every different sentence once and find the tokens of every item."""
        spans = _Spans.of(stimuli)
        if not spans.texts:
            raise InvalidInput(
                f"The items have no text for {self.name} to read: give words in sentences, say which column "
                "of a file is the text (--column text=NAME), or give the images or sounds themselves with "
                "inputs=…"
            )
        ids, offsets = self._tokenise(spans.texts, spans.text_names)
        found = self._cls(spans, ids) if self.pooling == "cls" else self._tokens(spans, offsets)
        tokens = found.chosen(self.pooling)
        if not len(tokens.positions):
            raise InvalidInput(f"drop_first={self.drop_first} leaves no token of any item of {self.name}.")
        text = spans.text
        if self.windows is not None:
            ids, text, tokens = self.windows.cut(ids, offsets, text, tokens)
        if self.pooling != "all":
            kept = tokens.sizes > 0
            rows = tuple(spans.names[kept])
            return Sequences(ids, rows, text[kept], tokens.without_empty(), self.beginning)
        item = np.repeat(np.arange(len(spans.names)), tokens.sizes)
        within = np.arange(len(item)) - tokens.bounds[item]
        rows = tuple(f"{spans.names[i]}/{j}" for i, j in zip(item, within, strict=True))
        return Sequences(ids, rows, text[item], tokens.one_by_one(), self.beginning)

    @cached_property
    def beginning(self) -> Beginning:
        if self.frame is not None:
            return Beginning(None, None, "template", None)
        return begin_texts(self.tokenizer, self.bos)

    def _tokens(self, spans: _Spans, offsets: Sequence[Tokens]) -> Groups:
        """The tokens of every item, without those that are dropped."""
        items: list[Ints] = []
        positions: list[Ints] = []
        by_text = np.argsort(spans.text, kind="stable")
        for group in np.split(by_text, np.flatnonzero(np.diff(spans.text[by_text])) + 1):
            found = tokens_of_spans(offsets[spans.text[group[0]]], spans.starts[group], spans.ends[group])
            for item in group[~found.any(1)]:
                raise InvalidInput(
                    f"The word {spans.word(item)!r} (item {spans.names[item]!r}) maps to no token of "
                    f"{self.name} in {spans.texts[spans.text[item]]!r}: its tokenizer drops these "
                    "characters. Leave the item out."
                )
            which, tokens = np.nonzero(found[:, self.drop_first :])
            items.append(group[which])
            positions.append(tokens + self.drop_first)
        return Groups.of_members(np.concatenate(items), np.concatenate(positions), len(spans.names))

    def _cls(self, spans: _Spans, ids: Sequence[Tokens]) -> Groups:
        """The first token of every item, which must be a whole text and begin with [CLS]."""
        lengths = np.array([len(text) for text in spans.texts])[spans.text]
        for item in np.flatnonzero((spans.starts > 0) | (spans.ends < lengths)):
            raise InvalidInput(
                f"pooling='cls' gives one vector per sentence, but item {spans.names[item]!r} is the word "
                f"{spans.word(item)!r}: choose last, first or mean, or give whole sentences as items."
            )
        mark = self.tokenizer.cls_token_id
        if mark is None or any(mark not in tokens[:1] for tokens in ids):
            raise InvalidInput(f"{self.name} does not begin a text with a [CLS] token: choose last or mean.")
        n_items = len(spans.names)
        return Groups(np.zeros(n_items, dtype=np.int64), np.arange(n_items + 1))

    def _tokenise(self, texts: Sequence[str], names: Sequence[str]) -> tuple[list[Tokens], list[Tokens]]:
        ids: list[Tokens] = []
        offsets: list[Tokens] = []
        for begin in range(0, len(texts), TEXTS_AT_ONCE):
            encoded = self.tokenizer(
                [self._shown(text) for text in texts[begin : begin + TEXTS_AT_ONCE]],
                add_special_tokens=self.frame is None,  # the template has them
                return_offsets_mapping=True,
                return_attention_mask=False,
                padding=False,
                truncation=False,
                verbose=False,
            )
            for tokens, spans in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
                if self.frame is None:
                    tokens, spans = self._begin(list(tokens), [tuple(span) for span in spans])
                self._check_length(len(tokens), names[len(ids)], texts[len(ids)])
                ids.append(np.array(tokens, dtype=np.int32))
                # Characters count from the turn, so that nothing around it is part of any item.
                before = 0 if self.frame is None else len(self.frame.before)
                offsets.append(np.array(spans, dtype=np.int32).reshape(-1, 2) - before)
        return ids, offsets

    def _shown(self, text: str) -> str:
        """What the model is shown of a text: itself, or the chat that it is a turn of."""
        return text if self.frame is None else self.frame.around(text)

    def _begin(
        self, tokens: list[int], spans: list[tuple[int, int]]
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Settle what stands before the text."""
        begun = is_begun(self.tokenizer, tokens, spans)
        bos = self.beginning.bos
        if bos is False and begun:
            tokens, spans = tokens[1:], spans[1:]
        if bos is True and not begun:
            if self.tokenizer.bos_token_id is None:
                raise InvalidInput(f"The tokenizer of {self.name} has no beginning-of-sequence token.")
            tokens, spans = [self.tokenizer.bos_token_id, *tokens], [(0, 0), *spans]
        return tokens, spans

    def _check_length(self, n_tokens: int, name: str, text: str) -> None:
        if self.max_length is not None and n_tokens > self.max_length and self.windows is None:
            chat = " with the chat around it" if self.frame is not None else ""
            way_out = (
                "shorten it"
                if self.frame is not None
                else f"shorten it, or use window={self.max_length} (--window {self.max_length})"
            )
            raise InvalidInput(
                f"Sentence {name!r} has {n_tokens} tokens{chat}, but {self.name} reads at most "
                f"{self.max_length}: split or {way_out}. It begins {text[:40]!r}."
            )
