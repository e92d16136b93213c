"""The grid of reasonable analyses: the same question, asked with other choices that one could defend.

`GRID` is the one place where they are declared: one change at a time, then some together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from thinkalike.errors import InvalidInput, UnknownName

WORDS = ("all", "not first")
SENTENCES = ("these", "one half", "other half", "others")


@dataclass(frozen=True)
class Analysis:
    """What an analysis changes; what it does not name stays as in the comparison.

    Attributes
    ----------
    name : for people, and unique in a grid
    encoding : settings of the encoding models, as in `profile`: distance, importance, missing, …
    reading : options of `extract` that say how a text is read: bos, pooling, drop_first
    words : "all", or "not first": without the first word of each sentence
    sentences : "these"; "one half" or "other half" of them; or "others", which must be given

    Examples
    --------
    >>> Analysis("cosine, means of tokens", encoding={"distance": "cosine"}, reading={"pooling": "mean"}).name
    'cosine, means of tokens'
    """

    name: str
    encoding: Mapping[str, object] = field(default_factory=dict)
    reading: Mapping[str, object] = field(default_factory=dict)
    words: str = "all"
    sentences: str = "these"

    def __post_init__(self) -> None:
        if self.words not in WORDS:
            raise UnknownName.among("choice of words", self.words, WORDS)
        if self.sentences not in SENTENCES:
            raise UnknownName.among("choice of sentences", self.sentences, SENTENCES)

    def choices(self, main: Mapping[str, object]) -> dict[str, str]:
        """Every choice of this analysis by name, those of the comparison (`main`) where it changes none."""
        said = {**main, **self.encoding, **self.reading, "words": self.words, "sentences": self.sentences}
        said["weights"] = "with interactions" if said.pop("interactions", False) else "by feature"
        return {name: str(said[name]) for name in CHOICES if name in said}


CHOICES = (
    "distance",
    "importance",
    "weights",
    "ordered",
    "missing",
    "words",
    "sentences",
    "pooling",
    "bos",
)
"""What analyses differ in, in the order of the figure"""

STEADY = (1e2, 1e3, 1e4)
"""Ridge penalties to choose from with interactions: without one a full W rests on combinations of features
that hardly occur, and takes a hundred times as long to fit"""

MAIN = Analysis("as it was")

GRID: tuple[Analysis, ...] = (
    Analysis("euclidean", encoding={"distance": "euclidean"}),
    Analysis("cosine", encoding={"distance": "cosine"}),
    Analysis("z-scored", encoding={"distance": "zscored"}),
    Analysis("whitened", encoding={"distance": "whitened"}),
    Analysis("expected importance", encoding={"importance": "expected"}),
    Analysis("stimuli permuted", encoding={"importance": "stimuli"}),
    Analysis("feature dropped", encoding={"importance": "drop"}),
    Analysis("Shapley values", encoding={"importance": "shapley"}),
    Analysis("conditional importance", encoding={"importance": "conditional"}),
    Analysis("without interactions", encoding={"interactions": False}),
    Analysis("with interactions", encoding={"interactions": True, "alphas": STEADY}),
    Analysis("whether ordered values differ", encoding={"ordered": "indicator"}),
    Analysis("by how much ordered values differ", encoding={"ordered": "minmax"}),
    Analysis("missing values ignored", encoding={"missing": "ignore"}),
    Analysis("missing is a level", encoding={"missing": "level"}),
    Analysis("no first words", words="not first"),
    Analysis("one half of the sentences", sentences="one half"),
    Analysis("the other half", sentences="other half"),
    Analysis("other sentences", sentences="others"),
    Analysis("last token of a word", reading={"pooling": "last"}),
    Analysis("first token of a word", reading={"pooling": "first"}),
    Analysis("mean of a word's tokens", reading={"pooling": "mean"}),
    Analysis("with bos", reading={"bos": True}),
    Analysis("without bos", reading={"bos": False}),
    Analysis("cosine, no first words", encoding={"distance": "cosine"}, words="not first"),
    Analysis("z-scored, no first words", encoding={"distance": "zscored"}, words="not first"),
    Analysis("conditional, no first words", encoding={"importance": "conditional"}, words="not first"),
    Analysis("cosine, conditional", encoding={"distance": "cosine", "importance": "conditional"}),
    Analysis("cosine, other sentences", encoding={"distance": "cosine"}, sentences="others"),
    Analysis("conditional, other sentences", encoding={"importance": "conditional"}, sentences="others"),
)
"""Every choice once: those that the comparison made itself fall away. With the defaults 25 analyses remain,
the comparison being one of them"""


def check_grid(grid: tuple[Analysis, ...]) -> None:
    """Names must be unique, and there must be some."""
    names = [one.name for one in grid]
    if not names:
        raise InvalidInput("Got no analyses: give some, or leave the grid out for the usual ones.")
    twice = next((name for name in (MAIN.name, *names) if (MAIN.name, *names).count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"Two analyses are called {twice!r}: give each its own name.")
