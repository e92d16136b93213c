"""The grammar of relative clauses: every feature is read off the text by a pattern of its own."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from thinkalike.stimuli import Stimuli

NOUNS = {
    "woman": "women", "girl": "girls", "queen": "queens", "lady": "ladies",
    "man": "men", "boy": "boys", "king": "kings", "lord": "lords",
}  # fmt: skip
FEMALE = {"woman", "girl", "queen", "lady"}
PERSON = r"the (\w+)"
SHAPES = {
    ("subject-relative", "subject"): rf"{PERSON} (?:who|that) (\w+) {PERSON} (\w+) {PERSON}",
    ("object-relative", "subject"): rf"{PERSON} (?:who|that) {PERSON} (\w+) (\w+) {PERSON}",
    ("subject-relative", "object"): rf"{PERSON} (\w+) {PERSON} (?:who|that) (\w+) {PERSON}",
    ("object-relative", "object"): rf"{PERSON} (\w+) {PERSON} (?:who|that) {PERSON} (\w+)",
    (None, None): rf"{PERSON} (\w+) {PERSON} (?:before|after|when) {PERSON} (\w+)",
}
ORDER = {
    ("subject-relative", "subject"): ("subject", "inner", "embedded", "outer", "object"),
    ("object-relative", "subject"): ("subject", "embedded", "inner", "outer", "object"),
    ("subject-relative", "object"): ("subject", "outer", "object", "inner", "embedded"),
    ("object-relative", "object"): ("subject", "outer", "object", "embedded", "inner"),
    (None, None): ("subject", "outer", "object", "embedded", "inner"),
}


@pytest.fixture(scope="module")
def relative() -> Stimuli:
    return Stimuli.from_grammar(400, 0, grammar="relative")


def number_of(noun: str) -> str:
    return "singular" if noun in NOUNS else "plural"


def test_features_are_what_the_text_says(relative: Stimuli) -> None:
    features = relative.features.astype(object).where(relative.features.notna(), None)
    for text, row in zip(relative.sentences, features.itertuples(), strict=True):
        kind = (row.clause, row.attachment)
        found = re.fullmatch(SHAPES[kind], text)
        assert found is not None, text
        words = dict(zip(ORDER[kind], found.groups(), strict=True))
        for person in ("subject", "object", "embedded"):
            noun = words[person]
            lemma = noun if noun in NOUNS else next(one for one, many in NOUNS.items() if many == noun)
            assert getattr(row, f"{person}_number") == number_of(noun), text
            assert getattr(row, f"{person}_gender") == ("female" if lemma in FEMALE else "male"), text
        own = {"subject-relative": row.attachment, "object-relative": "embedded", None: "embedded"}[
            row.clause
        ]
        for verb, subject in (("outer", "subject"), ("inner", own)):
            assert words[verb].endswith("s") == (number_of(words[subject]) == "singular"), text
        assert words["outer"].removesuffix("s") == row.verb
        assert words["inner"].removesuffix("s") != row.verb


def test_features_come_apart(relative: Stimuli) -> None:
    correlations = relative.correlations()
    values = correlations.to_numpy() if isinstance(correlations, pd.DataFrame) else correlations.values
    for i in range(len(values)):
        for j in range(i):
            if {i, j} != {0, 1}:  # what has no relative clause has no attachment either
                assert abs(values[i, j]) < 0.1
    assert relative.features["clause"].isna().mean() == pytest.approx(1 / 3, abs=0.01)
