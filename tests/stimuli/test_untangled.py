"""The grammar `untangled`: right English, and features that come apart."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from thinkalike.stimuli import Stimuli
from thinkalike.stimuli.differences import share_differing
from thinkalike.stimuli.feature_coding import code_features
from thinkalike.stimuli.grammar.grammar_files import FOLDER

SENTENCES = 300
PERSONS = {"I": ("1", "singular"), "you": ("2", None), "we": ("1", "plural"), "they": ("3", "plural")}
PERSONS |= dict.fromkeys(("he", "she", "who"), ("3", "singular"))
OBJECTS = {"me": "1", "us": "1", "you": "2", "him": "3", "her": "3", "them": "3"}
SINGULAR_DETS, PLURAL_DETS = {"a", "this", "every"}, {"these", "those", "some", "many"}
DETS = SINGULAR_DETS | PLURAL_DETS | {"the", "my", "your", "his", "her", "our", "their"}
BE = {
    "am": ("present", {("1", "singular")}),
    "is": ("present", {("3", "singular")}),
    "are": ("present", {("2", None), ("1", "plural"), ("3", "plural")}),
    "was": ("past", {("1", "singular"), ("3", "singular")}),
    "were": ("past", {("2", None), ("1", "plural"), ("3", "plural")}),
}
MID_ADVERBS = {"often", "never", "always", "seldom", "secretly", "gladly", "really", "quietly", "still"}
MID_ADVERBS |= {"rarely", "not"}


def words_of(section: str) -> list[dict[str, str]]:
    """The rows of a table of the lexicon, read here anew."""
    tables = tomllib.loads((FOLDER / "lexicon_untangled.toml").read_text("utf-8"))
    heading, *rows = tables[section]["words"].strip().split("\n")
    return [dict(zip(heading.split(), row.split(), strict=True)) for row in rows]


@dataclass
class Reader:
    """Finds the subject of each finite verb by looking at its neighbours, and holds it to what it says."""

    def __post_init__(self) -> None:
        self.nouns = {
            row[f"number={number}"]: number for row in words_of("Noun") for number in ("singular", "plural")
        }
        self.names = {row["word"] for row in words_of("Name")}
        self.forms: dict[str, set[str]] = {}
        self.transitive = {word for row in words_of("TransitiveVerb") for word in row.values()}
        for section in ("Verb", "TransitiveVerb", "SayVerb", "AskVerb"):
            for row in words_of(section):
                for heading, word in row.items():
                    self.forms.setdefault(word, set()).add(heading.removeprefix("form="))

    def person_of(self, word: str) -> tuple[str, str | None]:
        """Person and number of a word that can be a subject; an object pronoun or a verb cannot."""
        if word in self.nouns:
            return "3", self.nouns[word]
        return ("3", "singular") if word in self.names else PERSONS[word]

    def subject_of(self, words: list[str], verb: int) -> str:
        at = verb - 1
        while words[at] in MID_ADVERBS:
            at -= 1
        if words[at] == "and" and words[at - 1] in self.forms:  # "he sang and danced"
            return self.subject_of(words, at - 1)
        return words[at]

    def check(self, words: list[str], marks: pd.DataFrame) -> None:
        for at, word in enumerate(words):
            mark = marks.iloc[at]
            if word in DETS and at + 1 < len(words) and words[at + 1] in self.nouns:
                assert words[at + 1] not in self.nouns or not (
                    (word in SINGULAR_DETS and self.nouns[words[at + 1]] == "plural")
                    or (word in PLURAL_DETS and self.nouns[words[at + 1]] == "singular")
                )
            if mark["part_of_speech"] == "Auxiliary":
                self.check_auxiliary(words, at, mark)
            if mark["part_of_speech"] == "Verb":
                self.check_verb(words, at, mark)

    def check_auxiliary(self, words: list[str], at: int, mark: pd.Series) -> None:
        inverted = at == 0 or words[at - 1] in ("why", "where", "how")
        after = words[at + 2] if words[at + 1] in DETS and words[at + 2] in self.nouns else words[at + 1]
        subject = self.person_of(after if inverted else self.subject_of(words, at))
        if words[at] in BE:
            tense, fitting = BE[words[at]]
            assert subject in fitting
            assert (mark["person"], or_none(mark["number"])) == subject
        else:
            tense = "past" if words[at] == "did" else "present"
            if tense == "present":
                assert (words[at] == "does") == (subject == ("3", "singular"))
                assert (mark["person"], or_none(mark["number"])) == subject
            else:
                assert or_none(mark["person"]) is None
        assert mark["tense"] == tense

    def check_verb(self, words: list[str], at: int, mark: pd.Series) -> None:
        forms = self.forms[words[at]]
        if or_none(mark["tense"]) is None:  # an infinitive or an -ing form, with its auxiliary before it
            wanted, auxiliaries = ("ing", set(BE)) if "ing" in forms else ("base", {"do", "does", "did"})
            assert wanted in forms
            assert auxiliaries & set(words[max(at - 3, 0) : at])
            assert or_none(mark["number"]) is None
            assert or_none(mark["person"]) is None
            return
        subject = self.person_of(self.subject_of(words, at))
        if mark["tense"] == "past":
            assert "past" in forms
            assert or_none(mark["person"]) is None
        else:
            assert ("s" if subject == ("3", "singular") else "base") in forms
            assert (mark["person"], or_none(mark["number"])) == subject
        if words[at] in self.transitive and at + 1 < len(words) and words[at + 1] in OBJECTS:
            person = OBJECTS[words[at + 1]]
            assert person == "3" or person != subject[0], "nobody helps himself"


def or_none(value: object) -> object:
    return None if pd.isna(value) else value


@pytest.fixture(scope="module")
def stimuli() -> Stimuli:
    return Stimuli.from_grammar(SENTENCES, seed=3, grammar="untangled")


@pytest.fixture(scope="module")
def positions(stimuli: Stimuli) -> pd.DataFrame:
    """(n_items,) places from both ends, counted here."""
    grouped = stimuli.items.groupby("sentence", sort=False)["word"]
    start, length = grouped.cumcount(), grouped.transform("size")
    return pd.DataFrame({"start": start, "end": length - 1 - start, "length": length}).astype(float)


def test_every_sentence_is_right(stimuli: Stimuli) -> None:
    reader, features = Reader(), stimuli.features
    n_verbs = 0
    for name, text in stimuli.sentences.items():
        marks = features[(stimuli.items["sentence"] == name).to_numpy()]
        reader.check(text.split(), marks)
        assert len(set(marks["tense"].dropna())) == 1, text
        n_verbs += int((marks["part_of_speech"] == "Verb").sum())
    assert n_verbs > 2 * SENTENCES


def test_the_reader_sees_what_is_wrong(stimuli: Stimuli) -> None:
    reader, features, items = Reader(), stimuli.features, stimuli.items
    broken = 0
    for name, text in stimuli.sentences.items():
        words = text.split()
        marks = features[(items["sentence"] == name).to_numpy()]
        is_verb, singular = marks["part_of_speech"] == "Verb", marks["number"] == "singular"
        for at in np.flatnonzero(is_verb & singular & (marks["person"] == "3")):
            plural = next(row["form=base"] for s in ("Verb", "TransitiveVerb", "SayVerb", "AskVerb")
                          for row in words_of(s) if row["form=s"] == words[at])  # fmt: skip
            with pytest.raises(AssertionError):
                reader.check([*words[:at], plural, *words[at + 1 :]], marks)
            broken += 1
        if broken > 20:
            break
    assert broken > 20


def unique_contexts(made: Stimuli) -> float:
    """The share of items whose word, with all that stands before it, is that of no other item."""
    texts = made.items["sentence"].map(made.sentences)
    heard = [text[:end] for text, end in zip(texts, made.items["end"], strict=True)]
    counts = Counter(heard)
    return float(np.mean([counts[one] == 1 for one in heard]))


@pytest.mark.parametrize(("n", "least"), [(200, 0.85), (500, 0.83)])
def test_few_items_share_all_that_stands_before_them(n: int, least: float) -> None:
    shares = [unique_contexts(Stimuli.from_grammar(n, seed, grammar="untangled")) for seed in (0, 1)]
    assert min(shares) > least
    assert unique_contexts(Stimuli.from_grammar(n, 0, grammar="salle2024")) < 0.65


def test_part_of_speech_and_the_positions_come_apart(stimuli: Stimuli, positions: pd.DataFrame) -> None:
    table = stimuli.features.assign(from_end=positions["end"], length=positions["length"])
    found = Stimuli(table).correlations()
    r = pd.DataFrame(found.values, index=found.names, columns=found.names)
    for other in ("word_position", "from_end", "length", "question"):
        assert abs(r.loc["part_of_speech", other]) < 0.1
    assert abs(r.loc["word_position", "from_end"]) < 0.25
    assert np.nanmax(found.variance_inflation) < 1.5
    last = table["part_of_speech"][(positions["end"] == 0).to_numpy()].value_counts(normalize=True)
    assert last.max() < 0.6
    first = table["part_of_speech"][(positions["start"] == 0).to_numpy()].value_counts(normalize=True)
    assert first.max() < 0.3


def test_auxiliaries_and_wh_words_are_in_statements_too(stimuli: Stimuli) -> None:
    features = stimuli.features
    for part in ("Auxiliary", "Wh-word"):
        questions = features["question"][features["part_of_speech"] == part].value_counts()
        assert questions.min() > 5


def test_features_are_there_often_enough(stimuli: Stimuli) -> None:
    missing = stimuli.features.isna().mean()
    assert missing["gender"] < 0.75
    assert missing["person"] < 0.57
    assert missing["tense"] < 0.65
    coded = code_features(stimuli.features).features
    assert min(share_differing(one) for one in coded) > 0.025


def test_past_verbs_are_past_forms(stimuli: Stimuli) -> None:
    forms = Reader().forms
    past = stimuli.items[
        ((stimuli.features["part_of_speech"] == "Verb") & (stimuli.features["tense"] == "past"))
    ]
    assert len(past) > SENTENCES
    assert all("past" in forms[word] and "base" not in forms[word] for word in past["word"])


def test_it_is_the_default() -> None:
    """In Python, on the command line, and where a comparison makes its own sentences."""
    assert Stimuli.from_grammar(30, seed=3) == Stimuli.from_grammar(30, seed=3, grammar="untangled")


@pytest.mark.parametrize("n_sentences", [200, 500])
def test_few_words_share_all_that_stands_before_them(n_sentences: int) -> None:
    """Counted by brute force, capital letters and all, on what a causal model sees of each word."""
    seen = {}
    for grammar in ("untangled", "salle2024"):
        made = Stimuli.from_grammar(n_sentences, seed=0, grammar=grammar)
        texts = made.items["sentence"].map(made.sentences)
        left = [text[:end] for text, end in zip(texts, made.items["end"], strict=True)]
        counts = Counter(left)
        seen[grammar] = float(np.mean([counts[one] > 1 for one in left]))
    assert seen["untangled"] < 0.16
    assert seen["salle2024"] > 0.35
