"""Drawing distinct sentences from frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.progress import progress
from thinkalike.stimuli.grammar.sentence_frames import Frame, Word


class Draw(NamedTuple):
    """One sentence (or pair of sentences): the words of each side, and the features of the whole.

    Attributes
    ----------
    sides : tuple of tuples of Word
        One side for a sentence, two for a pair.
    features : dict of str to str
        Of the whole sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.stimuli.grammar import draw, load_grammar
    >>> drawn = draw(load_grammar("salle2024").frames, 1, np.random.default_rng(0))
    >>> [word.text for word in drawn[0].sides[0]] == drawn[0].text[0].split()
    True
    """

    sides: tuple[tuple[Word, ...], ...]
    features: dict[str, str]

    @property
    def text(self) -> tuple[str, ...]:
        """The words of each side with spaces between them."""
        return tuple(" ".join(word.text for word in side) for side in self.sides)


def draw(frames: list[Frame], n: int, rng: np.random.Generator, *, at_least: int | None = None) -> list[Draw]:
    """Draw `n` distinct sentences, spread over the frames by their weights.

    A frame that has fewer sentences than its share gives all of them, and the others give more. When the
    grammar has fewer than `n` sentences (or `at_least` so many, if given), that is an error that says how
    many there are.

    Parameters
    ----------
    frames : of a `Grammar`
    n : how many sentences, at least 1
    rng : that chooses
    at_least : with how many to be content, `n` when None

    Returns
    -------
    list of Draw
        In random order.

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.stimuli.grammar import draw, load_grammar
    >>> drawn = draw(load_grammar("salle2024").frames, 20, np.random.default_rng(0))
    >>> len({one.text for one in drawn})
    20
    """
    if n < 1:
        raise InvalidInput(f"{n} sentences were asked for: ask for at least one.")
    # Frames of one rule in random order: shares smaller than one sentence then fall on any of them.
    shuffled = rng.permutation(len(frames))
    order = shuffled[np.argsort([frames[i].rule for i in shuffled], kind="stable")]
    streams = [_Stream(frames[i], rng) for i in order]
    drawn: dict[tuple[str, ...], Draw] = {}
    with progress("Making sentences", n) as bar:
        while streams and len(drawn) < n:
            weights = np.array([stream.frame.weight for stream in streams])
            wanted = _shares(weights, n - len(drawn), rng)
            for stream, count in zip(streams, wanted, strict=True):
                for one in stream.take(int(count)):
                    drawn.setdefault(one.text, one)
                bar.advance(int(count))
            streams = [stream for stream in streams if not stream.exhausted]
    needed = n if at_least is None else at_least
    if len(drawn) < needed:
        raise InvalidInput(
            f"{needed} different sentences were asked for, but the grammar makes only {len(drawn)}: "
            "ask for fewer, or add words to the lexicon."
        )
    sentences = list(drawn.values())
    return [sentences[i] for i in rng.permutation(len(sentences))]


def _shares(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """How many of `n` fall to each weight: systematic sampling, so never one more or less than its share."""
    edges = np.cumsum(weights) / weights.sum() * n
    edges[-1] = n
    return np.diff(np.floor(edges + rng.random()).astype(np.int64), prepend=0)


@dataclass
class _Stream:
    """The sentences of one frame in random order, none twice."""

    frame: Frame
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.sizes = [len(slot.options) for slot in self.frame.slots]
        self.taken: set[tuple[int, ...]] = set()

    @property
    def exhausted(self) -> bool:
        return len(self.taken) >= self.frame.size

    def take(self, count: int) -> Iterator[Draw]:
        """`count` more, or as many as are left."""
        while count > 0 and not self.exhausted:
            choices = self._choices(count)
            self.taken.update(choices)
            distinct = [choice for choice in choices if self._is_distinct(choice)]
            count -= len(distinct)
            yield from map(self._fill, distinct)

    def _choices(self, count: int) -> list[tuple[int, ...]]:
        """Random fillings not taken before: by rejection while few are taken, from the rest after that."""
        if self.frame.size > 4 * (len(self.taken) + count):
            found: dict[tuple[int, ...], None] = {}
            while len(found) < count:
                numbers = self.rng.integers(0, self.sizes, size=(count - len(found), len(self.sizes)))
                found.update((one, None) for one in map(tuple, numbers.tolist()) if one not in self.taken)
            return list(found)
        every = np.stack(np.unravel_index(self.rng.permutation(self.frame.size), self.sizes), axis=1)
        return [one for one in map(tuple, every.tolist()) if one not in self.taken][:count]

    def _is_distinct(self, choice: tuple[int, ...]) -> bool:
        used = [
            (slot.category, slot.options[option][0])
            for slot, option in zip(self.frame.slots, choice, strict=True)
            if slot.distinct
        ]
        return len(set(used)) == len(used)

    def _fill(self, choice: tuple[int, ...]) -> Draw:
        slots = self.frame.slots
        sides = tuple(
            tuple(slots[slot].options[choice[slot]][1][mention] for slot, mention in side)
            for side in self.frame.sides
        )
        return Draw(sides, self.frame.features)
