"""The grammar of Salle et al. (2024): its golden table, agreement everywhere, and the words it uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from wordfreq import zipf_frequency

from thinkalike.stimuli import Stimuli
from thinkalike.stimuli.grammar import Draw, Grammar, load_grammar, tabulate

TABLE_S1 = """
the      3 NaN    NaN      Det       NaN     NaN 0 False
woman    5 female singular Noun      NaN     3   1 False
plays    5 NaN    singular Verb      present 3   2 False
no       2 NaN    NaN      Det       NaN     NaN 0 False
prince   6 male   singular Noun      NaN     3   1 False
sings    5 NaN    singular Verb      present 3   2 False
Mary     4 female singular Noun      NaN     3   0 False
fell     4 NaN    NaN      Verb      past    NaN 1 False
I        1 NaN    singular Pronoun   NaN     1   0 False
vanished 8 NaN    NaN      Verb      past    NaN 1 False
do       2 NaN    singular Auxiliary present NaN 0 True
you      3 NaN    NaN      Pronoun   NaN     2   1 True
sing     4 NaN    NaN      Verb      present NaN 2 True
which    5 NaN    NaN      Wh-word   NaN     NaN 0 True
men      3 male   plural   Noun      NaN     3   1 True
sneezed  7 NaN    NaN      Verb      past    NaN 2 True
"""
COLUMNS = [
    "word_length",
    "gender",
    "number",
    "part_of_speech",
    "tense",
    "person",
    "word_position",
    "question",
]
SENTENCES = [
    "the woman plays",
    "no prince sings",
    "Mary fell",
    "I vanished",
    "do you sing",
    "which men sneezed",
]


def analyses(grammar: Grammar, text: str) -> list[Draw]:
    """Every way in which the grammar makes a sentence."""
    words = text.split()
    found = []
    for frame in grammar.frames:
        (side,) = frame.sides
        options = [
            [word for _, mentions in frame.slots[slot].options for word in mentions] for slot, _ in side
        ]
        chosen = [[w for w in slot if w.text == word] for slot, word in zip(options, words, strict=False)]
        if len(side) == len(words) and all(chosen):
            assert all(len(one) == 1 for one in chosen)
            found.append(Draw((tuple(one[0] for one in chosen),), frame.features))
    return found


@pytest.fixture(scope="module")
def grammar() -> Grammar:
    return load_grammar("salle2024")


@pytest.fixture(scope="module")
def many() -> Stimuli:
    return Stimuli.from_grammar(3000, 0, grammar="salle2024")


def test_table_s1(grammar: Grammar) -> None:
    """The six sentences of Table S1 have one analysis each, and it is the one that is printed."""
    found = [analyses(grammar, text) for text in SENTENCES]
    assert [len(one) for one in found] == [1] * 6
    stimuli = Stimuli(**tabulate(grammar, [one[0] for one in found]))
    assert stimuli.sentences.to_list() == SENTENCES
    printed = [line.split() for line in TABLE_S1.strip().split("\n")]
    assert stimuli.items["word"].to_list() == [row[0] for row in printed]
    assert list(stimuli.features) == COLUMNS
    for place, name in enumerate(COLUMNS, start=1):
        expected = [None if row[place] == "NaN" else row[place] for row in printed]
        if stimuli.kinds[name] == "numeric":
            assert stimuli.features[name].to_list() == [float(value) for value in expected if value]
        else:
            assert stimuli.kinds[name] == "nominal"
            values = stimuli.features[name].astype(object)
            assert values.where(values.notna(), None).to_list() == expected


def test_the_default_is_this_grammar_without_capitals_and_stops(many: Stimuli) -> None:
    assert list(many.features) == COLUMNS
    assert not many.sentences.str.contains(r"[.?!]").any()
    upper = {text.split()[0] for text in many.sentences if text[0].isupper()}
    names = set(many.items.loc[many.features["part_of_speech"] == "Noun", "word"])
    assert upper <= names | {"I"}


def test_no_sentence_comes_twice(many: Stimuli) -> None:
    assert many.sentences.is_unique
    assert len(many.sentences) == 3000


PRONOUNS = {
    "I": ("singular", "1", None),
    "you": (None, "2", None),
    "he": ("singular", "3", "male"),
    "she": ("singular", "3", "female"),
    "we": ("plural", "1", None),
    "they": ("plural", "3", None),
}


def test_agreement_is_right_everywhere(many: Stimuli, english: Any) -> None:
    """Each sentence is read by hand-written rules; forms and annotation must be what they say."""
    features = many.features.astype(object).where(many.features.notna(), None)
    rows = dict(list(features.groupby(many.items["sentence"], sort=False)))
    seen: set[str] = set()
    for name, text in many.sentences.items():
        words, table = text.split(), rows[name].reset_index(drop=True)
        wh = words[0] if words[0] in ("who", "which", "why", "when", "where") else None
        do = next((word for word in words[:2] if word in ("do", "does", "did")), None)
        at = int(wh is not None) + int(do is not None) - int(wh == "which")
        subject = words[at:-1] if wh != "who" else []
        number, person, gender = np_features(subject, english) if subject else ("singular", "3", None)
        third = (number, person) == ("singular", "3")
        base, tense, form_number = english.intransitive[words[-1]]
        verb = table.iloc[-1]
        if do is None:
            assert tense == "past" or form_number == ("singular" if third else "plural"), text
            marks = (None, None) if tense == "past" else (number, person)
        else:
            assert words[-1] == base, text
            tense = "past" if do == "did" else "present"
            assert do == "did" or do == ("does" if third else "do"), text
            marks = (None, None)
            aux = table.iloc[words.index(do)]
            # Number on "do" before "you" as in Table S1.
            assert aux["number"] == (None if do == "did" else number or "singular"), text
            assert (aux["tense"], aux["person"]) == (tense, None)
        assert (verb["number"], verb["person"], verb["tense"]) == (*marks, tense), text
        assert set(table["question"]) == {str(wh is not None or do is not None)}, text
        if subject:
            noun = table.iloc[at + len(subject) - 1]
            assert (noun["number"], noun["person"], noun["gender"]) == (number, person, gender), text
        assert table["word_position"].to_list() == list(range(len(words)))
        assert table["word_length"].to_list() == [len(word) for word in words]
        seen.add(f"{wh} {do} {tense} {person} {number}")
    assert len(seen) > 40  # every sort of sentence has come by


def np_features(words: list[str], english: Any) -> tuple[str | None, str, str | None]:
    if words[0] in PRONOUNS:
        return PRONOUNS[words[0]]
    if words[0] in english.names:
        return "singular", "3", english.names[words[0]]
    number, gender = english.nouns[words[-1]]
    one, other = (
        {"a", "this", "that", "every", "each"},
        {"these", "those", "some", "many", "several", "few", "all"},
    )
    assert words[0] not in (other if number == "singular" else one), words
    return number, "3", gender


def test_half_of_the_sentences_are_questions() -> None:
    stimuli = Stimuli.from_grammar(
        1000, 2, grammar="salle2024"
    )  # "who sings" and its like are not exhausted yet
    first = stimuli.features["word_position"] == 0
    questions = (stimuli.features["question"][first] == "True").sum()
    assert questions == pytest.approx(500, abs=1)


def test_no_sentence_has_two_analyses(grammar: Grammar, many: Stimuli) -> None:
    for text in many.sentences.head(400):
        assert len(analyses(grammar, text)) == 1, text


def test_the_lexicon_is_large_enough_and_clean(lexicon_rows: Any) -> None:
    nouns, names, verbs = (lexicon_rows(section) for section in ("Noun", "Name", "Verb"))
    transitive = lexicon_rows("TransitiveVerb")
    assert len(nouns) + len(names) >= 60
    assert len(verbs) >= 60
    assert len(transitive) >= 40
    for table in (nouns, names):
        genders = [row["gender"] for row in table]
        assert genders.count("female") == genders.count("male")
    for row in verbs + transitive:
        forms = [row["form=base"], row["form=s"], row["form=past"]]
        assert len(set(forms)) == 3, f"{forms} would give sentences two analyses"
        assert row["form=s"].endswith("s")
    for row in nouns:
        assert row["number=singular"] != row["number=plural"]
        assert row["number=singular"][0] not in "aeiou", 'no "an" in the lexicon'
    every = [
        word for table in (nouns, names, verbs) for row in table for key, word in row.items() if "=" in key
    ]
    assert len(set(every)) == len(every)
    regular = [row for row in verbs if row["form=past"].endswith("ed")]
    assert 10 <= len(regular) <= len(verbs) - 10  # regular and irregular pasts


def test_the_words_are_common(lexicon_rows: Any) -> None:
    lemmas = {"Noun": "number=singular", "Name": "word", "Verb": "form=base", "TransitiveVerb": "form=base"}
    frequencies = [
        zipf_frequency(row[key], "en") for section, key in lemmas.items() for row in lexicon_rows(section)
    ]
    assert (
        min(frequencies) >= 2.7
    )  # one in two million words; "duchesses" and the like are rarer than "duchess"
    assert np.median(frequencies) >= 4


def test_capitals_and_stops() -> None:
    plain = Stimuli.from_grammar(200, 5, grammar="salle2024")
    dressed = Stimuli.from_grammar(200, 5, grammar="salle2024", capital=True, full_stop=True)
    for text, other in zip(plain.sentences, dressed.sentences, strict=True):
        mark = (
            "?"
            if other.split()[0].lower() in {"do", "does", "did", "who", "which", "why", "when", "where"}
            else "."
        )
        assert other == text[0].upper() + text[1:] + mark
    pd.testing.assert_frame_equal(plain.features, dressed.features)
    assert dressed.items["word"].iloc[0][0].isupper()
