"""The sets of sentences: of each kind several, drawn anew, so that every effect has a range."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from thinkalike.comparison.rereading import first_words
from thinkalike.errors import InvalidInput
from thinkalike.recipes.salle2024.scales import SalleSettings
from thinkalike.stimuli.table import Stimuli

PAPER, NOT_FIRST = "the paper's grammar", "the same without first words"
UNTANGLED, NATURAL = "the untangled grammar", "natural text"
FEATURES = (
    "word_length", "gender", "number", "part_of_speech", "tense", "person", "word_position", "question",
)  # fmt: skip
"""The paper's eight, on natural text too"""
SHORTEST = 3
"""Words of a natural sentence"""


def draw_sets(kind: str, settings: SalleSettings, treebank: str | None = None) -> list[Stimuli]:
    """`settings.sets` sets of one kind; NOT_FIRST are those of the paper's grammar less their first words."""
    if kind == NATURAL:
        assert treebank is not None
        return natural_sets(Path(treebank), settings)
    grammar = "untangled" if kind == UNTANGLED else "salle2024"
    seeds = [1000 * settings.seed + k for k in range(settings.sets)]
    drawn = [Stimuli.from_grammar(settings.sentences, seed, grammar=grammar) for seed in seeds]
    return [one.subset(~first_words(one)) for one in drawn] if kind == NOT_FIRST else drawn


def natural_sets(path: Path, settings: SalleSettings) -> list[Stimuli]:
    """Sentences of a treebank dealt into sets that share none, with the paper's features."""
    words = Stimuli.from_conllu(path)
    counts = words.items.groupby("sentence", sort=False).size()
    fitting = counts.index[(counts >= SHORTEST) & (counts <= settings.treebank_longest)].to_numpy()
    size = min(settings.treebank_sentences, len(fitting) // settings.sets)
    if size < 2:
        raise InvalidInput(
            f"{path} has {len(fitting)} sentences of {SHORTEST} to {settings.treebank_longest} words, too "
            f"few for {settings.sets} sets: give a larger treebank, or allow longer sentences."
        )
    order = np.random.default_rng(settings.seed).permutation(fitting)
    named = with_paper_features(words)
    return [
        only_varied(named.subset(named.items["sentence"].isin(order[k * size : (k + 1) * size]).to_numpy()))
        for k in range(settings.sets)
    ]


def with_paper_features(words: Stimuli) -> Stimuli:
    """The features of a treebank under the paper's names; a question is a sentence that ends with `?`."""
    features = words.features.rename(columns=str.lower)
    asked = words.sentences.str.rstrip().str.endswith("?")
    features["question"] = words.items["sentence"].map(asked).astype(str).astype("category")
    kept = [name for name in FEATURES if name in features]
    return Stimuli(features[kept], items=words.items, sentences=words.sentences)


def only_varied(stimuli: Stimuli) -> Stimuli:
    """Without the features in which no two of the words differ."""
    features = stimuli.features
    constant = [str(name) for name in features if len(features[name].dropna().unique()) < 2]
    return stimuli.choose(drop=constant) if constant else stimuli
