"""The second grammar: every feature of a sentence is read off its text by an independent parser."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from thinkalike.errors import UnknownName
from thinkalike.stimuli import Stimuli


@pytest.fixture(scope="module")
def clauses() -> Stimuli:
    return Stimuli.from_grammar(1500, 0, grammar="clauses")


def test_items_are_sentences_with_features_of_sentences(clauses: Stimuli) -> None:
    assert len(clauses) == 1500
    assert (clauses.items["word"].to_numpy() == clauses.sentences.to_numpy()).all()
    assert list(clauses.features) == [
        "n_words",
        "clause_type",
        "clause_tense",
        "modifier",
        "attachment",
        "subject_number",
        "subject_gender",
        "object_number",
        "object_gender",
        "attractor",
    ]


def test_features_are_what_the_text_says(clauses: Stimuli, english: Any) -> None:
    features = clauses.features.astype(object).where(clauses.features.notna(), None)
    for text, row in zip(clauses.sentences, features.itertuples(), strict=True):
        clause = english.parse(text)  # agreement is checked there
        subject, other = clause.subject, clause.object
        modified = [(name, p) for name, p in (("subject", subject), ("object", other)) if p and p.modifier]
        assert len(modified) <= 1, text
        attachment, phrase = modified[0] if modified else (None, None)
        assert row.n_words == len(text.split())
        assert (row.clause_type, row.clause_tense) == (clause.kind, clause.tense), text
        assert (row.modifier, row.attachment) == (phrase and phrase.modifier, attachment), text
        assert (row.subject_number, row.subject_gender) == (subject.number, subject.gender), text
        assert row.object_number == (other and other.number), text
        assert row.object_gender == (other and other.gender), text
        same = "same" if subject.inner_number == subject.number else "different"
        assert row.attractor == (same if subject.inner_number else None), text


def test_all_constructions_come_about_equally_often(clauses: Stimuli) -> None:
    features = clauses.features
    counts = Counter(
        zip(features["clause_type"], features["attachment"].astype(object).fillna("-"), strict=True)
    )
    assert len(counts) == 8
    assert min(counts.values()) >= 187 - 1  # eight rules share 1,500 sentences
    modifiers = features["modifier"].value_counts()
    assert modifiers.min() > 0.6 * modifiers.max()
    assert features["attractor"].value_counts().min() > 150


def test_words_can_be_the_items() -> None:
    stimuli = Stimuli.from_grammar(50, 0, grammar="clauses", items="words")
    assert (stimuli.items.groupby("sentence").size() > 1).all()
    features = stimuli.features
    assert {"part_of_speech", "number", "gender", "tense", "word_length", "clause_type"} <= set(features)
    assert "n_words" not in features
    whole = Stimuli.from_grammar(50, 0, grammar="clauses")
    assert whole.sentences.to_list() == stimuli.sentences.to_list()
    # A sentence's features are those of each of its words.
    by_word = features["clause_type"].astype(str).groupby(stimuli.items["sentence"], sort=False).unique()
    assert [list(one) for one in by_word] == [[one] for one in whole.features["clause_type"].astype(str)]


def test_no_word_comes_twice_in_a_sentence(clauses: Stimuli, english: Any) -> None:
    content = set(english.nouns) | set(english.names) | set(english.transitive)
    for text in clauses.sentences:
        words = [word for word in text.split() if word in content]
        assert len(set(words)) == len(words), text


def test_unknown_items() -> None:
    with pytest.raises(UnknownName, match=r"There is no sort of items 'letters'. Known: words, sentences"):
        Stimuli.from_grammar(5, grammar="clauses", items="letters")
