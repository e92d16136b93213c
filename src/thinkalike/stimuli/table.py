"""`Stimuli`: what the systems are shown, item by item, and the features of each item."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.addresses import is_address
from thinkalike.errors import InvalidInput
from thinkalike.stimuli.content import (
    check_count,
    check_feature_names,
    checked_index,
    checked_items,
    checked_sentences,
    content_digest,
)
from thinkalike.stimuli.controls import TokenOffsets
from thinkalike.stimuli.kinds import Kind, as_feature, declaration, kind_of
from thinkalike.stimuli.roles import assemble, chosen_features, require_features
from thinkalike.stimuli.table_files import RawTable, read_table, rows_of, write_table
from thinkalike.types import Chart

if TYPE_CHECKING:
    from thinkalike.stimuli.feature_correlations import FeatureCorrelations
    from thinkalike.stimuli.table_files import Tabular

GRAMMAR = "untangled"
SENTENCES = 200
"""What is shown when nothing else is said: 200 sentences, about 1,700 words"""


class Stimuli:
    """Items with their features: words in sentences, whole sentences, or anything that has an id.

    Immutable: the tables that the properties hand out are copies.

    Parameters
    ----------
    features : DataFrame (n_items, n_features), index = item ids. The dtype of a column is the kind of the
        feature: unordered categorical = nominal, ordered categorical = ordinal, float = numeric. Missing
        values are NaN.
    items : DataFrame with the same index. For words: columns `sentence`, `word`, `start`, `end`, so that
        `sentences[sentence][start:end] == word`. Other columns are kept.
    sentences : Series, sentence id → text. Only sentences that have an item are kept.

    See Also
    --------
    Stimuli.from_grammar, Stimuli.from_table, Stimuli.from_conllu : the usual ways to get stimuli.

    Examples
    --------
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(20, seed=0, grammar="salle2024")
    >>> stimuli.kinds["tense"]
    'nominal'
    >>> nouns = stimuli.subset(stimuli.features["part_of_speech"] == "Noun")
    >>> len(nouns) < len(stimuli)
    True

    Items of any other sort, with their features:

    >>> import pandas as pd
    >>> ta.Stimuli.from_table(pd.DataFrame({"size": [1.0, 2.0, 3.0], "colour": ["red", "red", "blue"]})).kinds
    {'size': 'numeric', 'colour': 'nominal'}
    """

    def __init__(
        self,
        features: pd.DataFrame,
        *,
        items: pd.DataFrame | None = None,
        sentences: pd.Series | None = None,
    ) -> None:
        index = checked_index(features.index)
        check_feature_names(features.columns)
        raw = RawTable(features)
        columns = {str(name): as_feature(features[name], None, raw.place) for name in features.columns}
        self._features = pd.DataFrame(columns, index=features.index).set_axis(index, axis=0)
        self._items = pd.DataFrame(index=index) if items is None else checked_items(items, index)
        self._sentences = checked_sentences(self._items, sentences)

    @classmethod
    def from_grammar(
        cls,
        n_sentences: int = SENTENCES,
        seed: int = 0,
        *,
        grammar: str | os.PathLike[str] = GRAMMAR,
        lexicon: str | os.PathLike[str] | None = None,
        items: str | None = None,
        balance: bool = False,
        capital: bool = False,
        full_stop: bool = False,
        controls: Sequence[str] = (),
        tokenizer: TokenOffsets | None = None,
    ) -> Stimuli:
        """Make sentences, no two alike, whose words carry features.

        Parameters
        ----------
        n_sentences, seed : how many, and of the choice.
        grammar : "untangled" (the default, in which part of speech, position from either end, length and
            question come apart), "salle2024" (Salle et al. 2024, Table S1), "clauses" (passives,
            conjunctions, prepositional phrases, relative clauses), "relative" (relative clauses alone), or
            the path of a TOML file with rules of one's own.
        lexicon : TOML file with words of one's own instead of the grammar's.
        items : "words" or "sentences"; None leaves it to the grammar.
        balance : choose the sentences so that the feature differences correlate less.
        capital, full_stop : whether sentences begin with a capital letter and end with a mark.
        controls : names of control features to add, see `with_controls`.
        tokenizer : for the control "subwords".

        Examples
        --------
        >>> import thinkalike as ta
        >>> made = ta.Stimuli.from_grammar(10, seed=0, grammar="clauses", full_stop=True)
        >>> len(made.sentences), made.sentences.iloc[0][-1] in ".?"
        (10, True)
        """
        from thinkalike.stimuli.making import stimuli_arguments

        stimuli = cls(
            **stimuli_arguments(
                n_sentences,
                seed,
                grammar=grammar,
                lexicon=lexicon,
                items=items,
                balance=balance,
                capital=capital,
                full_stop=full_stop,
            )
        )
        return stimuli.with_controls(*controls, tokenizer=tokenizer) if controls else stimuli

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame | str | os.PathLike[str] | Tabular,
        *,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        kinds: Mapping[str, Kind] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Stimuli:
        """Read a table of annotated words, sentences, or items of any other sort; one row per item.

        Parameters
        ----------
        table : a DataFrame, a `Dataset` of Hugging Face, or a path or an address (s3://…): of a .csv, .tsv,
            .parquet or .jsonl file, of a folder that `Dataset.save_to_disk` wrote, or of an .arrow file in
            the cache of that library (`pip install 'thinkalike[datasets]'`).
        features : the columns that are features; all that have no other role when None. Columns that are none
            stay with the items.
        drop : columns to leave out altogether.
        kinds : feature → "nominal", "ordinal", "numeric", or the levels of an ordinal feature from lowest to
            highest. What is not declared is taken from the file if we wrote it, and is inferred otherwise:
            numbers are numeric, ordered categories ordinal, all else nominal. A CSV or TSV file has no types:
            there a column is numeric if all its cells are numbers; if only most of them are, that is an error
            which names the others, unless `kinds` decides.
        columns : role → name of the column that has it. The roles, each under its own name unless given here:
            `item` (unique id), `sentence` (id), `word`, `text` (of the whole sentence), `start` and `end` (of
            the word in the text). With `word`, also `sentence` or `text` is needed; with `text` alone, the
            items are whole sentences; with neither, the items are not words.
        """
        if not isinstance(table, (str, os.PathLike, pd.DataFrame)) and not is_address(table):
            table = rows_of(table)
        raw = RawTable(table) if isinstance(table, pd.DataFrame) else read_table(cast("str", table))
        return cls(**assemble(raw, features=features, drop=drop, kinds=kinds or {}, columns=columns or {}))

    @classmethod
    def from_conllu(
        cls,
        path: str | os.PathLike[str],
        *,
        n_sentences: int | None = None,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        kinds: Mapping[str, Kind] | None = None,
        punctuation: bool = False,
        relation: bool = False,
    ) -> Stimuli:
        """Read a Universal Dependencies treebank: the words of its sentences with their annotation.

        The features are `part_of_speech` (UPOS), every morphological feature under its own name (`Number`,
        `VerbForm`, …), `depth` in the tree (0 is the root), `distance_to_head` in words, `word_position`
        (from 0, punctuation counts) and `word_length`. Contractions such as French "du" are one item, as they
        stand in the text: its part of speech is "ADP+DET", and a feature on which its parts disagree is
        missing.

        Parameters
        ----------
        n_sentences : only the first so many.
        features, drop, kinds : which features, and of what kind; see `choose`.
        punctuation : keep punctuation as items.
        relation : add the dependency relation, without its subtype.
        """
        from thinkalike.stimuli.treebank import read_conllu

        read = cls(**read_conllu(path, n_sentences=n_sentences, punctuation=punctuation, relation=relation))
        return read.choose(features, drop=drop, kinds=kinds)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        n_sentences: int | None = None,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        kinds: Mapping[str, Kind] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Stimuli:
        """Read a .conllu file, as `from_conllu` does, or any other that `from_table` reads.

        Parameters
        ----------
        n_sentences : only the first so many.
        features, drop, kinds : which features, and of what kind.
        columns : role → name of the column that has it, as `{"text": "premise"}`; of tables.
        """
        if str(path).lower().endswith(".conllu"):
            if columns:
                raise InvalidInput("A treebank has no columns to be named: leave out columns.")
            return cls.from_conllu(path, n_sentences=n_sentences, features=features, drop=drop, kinds=kinds)
        read = cls.from_table(path, features=features, drop=drop, kinds=kinds, columns=columns)
        return read if n_sentences is None else read.first(n_sentences)

    @property
    def items(self) -> pd.DataFrame:
        """One row per item; for words `sentence`, `word`, `start`, `end`."""
        return self._items.copy()

    @property
    def sentences(self) -> pd.Series:
        """Sentence id → text; empty for items that are not words."""
        return self._sentences.copy()

    @property
    def features(self) -> pd.DataFrame:
        """(n_items, n_features), the dtype of a column being the kind of the feature."""
        return self._features.copy()

    @property
    def kinds(self) -> dict[str, str]:
        """Feature → "nominal", "ordinal" or "numeric"."""
        return {str(name): kind_of(self._features[name]) for name in self._features}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: equal content, equal digest, in any process."""
        return content_digest(self._items, self._sentences, self._features)

    def subset(self, rows: npt.ArrayLike) -> Stimuli:
        """The items where a boolean mask (n_items,) is true, or at the given positions, in that order."""
        places = np.asarray(rows)
        if places.dtype == bool and places.shape != (len(self),):
            raise InvalidInput(
                f"The mask has shape {places.shape}; ({len(self)},) was expected, one value per item."
            )
        return Stimuli(self._features.iloc[places], items=self._items.iloc[places], sentences=self._sentences)

    def first(self, n_sentences: int) -> Stimuli:
        """The items of the first so many sentences."""
        if not len(self._sentences):
            raise InvalidInput(
                f"{n_sentences} sentences were asked for, but these items are not words in sentences: "
                "take some of the items with subset()."
            )
        check_count(n_sentences, len(self._sentences))
        return self.subset(self._items["sentence"].isin(self._sentences.index[:n_sentences]).to_numpy())

    def choose(
        self,
        features: Sequence[str] | None = None,
        *,
        drop: Sequence[str] = (),
        kinds: Mapping[str, Kind] | None = None,
    ) -> Stimuli:
        """The same items with some of the features, or with features of another kind.

        Parameters
        ----------
        features : those to keep, in this order; all of them when None.
        drop : those to leave out.
        kinds : feature → "nominal", "ordinal", "numeric", or the levels of an ordinal feature in order.
        """
        if features is None and not drop and not kinds:
            return self
        known, raw = [str(name) for name in self._features], RawTable(self._features)
        names = chosen_features(known, known if features is None else features, drop, raw.place())
        declared = dict(kinds or {})
        require_features(declared, known, raw.place())
        table = self._features[names].copy()
        for name in (name for name in names if name in declared):
            table[name] = as_feature(table[name], declared[name], raw.place)
        return Stimuli(table, items=self._items, sentences=self._sentences)

    def with_controls(
        self, *names: str, language: str = "en", tokenizer: TokenOffsets | None = None
    ) -> Stimuli:
        """The same items with control features, which are no grammar but may explain as much.

        They are "zipf" (word frequency), "subwords" (needs a tokenizer), "position_from_end" (how many words
        follow) and "word_identity".

        See `thinkalike.stimuli.controls`.
        """
        from thinkalike.stimuli.controls import control_features

        controls = control_features(
            names, self._items, self._sentences, language=language, tokenizer=tokenizer
        )
        features = pd.concat([self._features, controls], axis=1)
        return Stimuli(features, items=self._items, sentences=self._sentences)

    def correlations(
        self, *, ordered: str = "indicator", missing: str = "ignore", rare: float = 0.01
    ) -> FeatureCorrelations:
        """Pearson correlations among the feature differences over all pairs of items, and variance inflation.

        See `thinkalike.stimuli.feature_correlations.feature_correlations` for the options.
        """
        from thinkalike.stimuli.feature_correlations import feature_correlations

        return feature_correlations(self._features, ordered=ordered, missing=missing, rare=rare)

    def plot(self, *, theme: str = "light") -> Chart:
        """The correlations among the feature differences as a heat map."""
        return self.correlations().plot(theme=theme)

    def to_frame(self) -> pd.DataFrame:
        """Everything in one table: `item`, `sentence`, `text`, `word`, `start`, `end`, then the features."""
        frame = self._items.copy()
        if "sentence" in frame:
            frame.insert(1, "text", frame["sentence"].map(self._sentences))
        frame.insert(0, "item", frame.index)
        return pd.concat([frame, self._features], axis=1).reset_index(drop=True)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a .csv, .tsv or .parquet file that `from_table` reads back to the same digest."""
        kinds = {str(name): declaration(self._features[name]) for name in self._features}
        return write_table(self.to_frame(), kinds, path)

    def __len__(self) -> int:
        return len(self._features)

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Stimuli) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        where = f" in {len(self._sentences):,} sentences" if len(self._sentences) else ""
        names = ", ".join(self._features.columns) or "none"
        return f"Stimuli({len(self):,} items{where}; features: {names}; digest {self.digest[:12]})"
