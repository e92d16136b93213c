"""A small parser of the English that the shipped grammars make, written apart from them: an oracle."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import thinkalike.stimuli

LEXICON = Path(thinkalike.stimuli.__file__).parent / "grammars" / "lexicon_english.toml"
BE = {
    "is": ("present", "singular"),
    "are": ("present", "plural"),
    "was": ("past", "singular"),
    "were": ("past", "plural"),
}
SINGULAR = {"a", "this", "that", "every", "each"}
PLURAL = {"these", "those", "some", "many", "several", "few", "all"}
DETERMINERS = {"the", "no"} | SINGULAR | PLURAL
PREPOSITIONS = {"near", "behind", "beside", "opposite"}


def rows(section: str) -> list[dict[str, str]]:
    """The rows of a table of the lexicon, by their headings."""
    lines = tomllib.loads(LEXICON.read_text("utf-8"))[section]["words"].strip().split("\n")
    heading = lines[0].split()
    return [dict(zip(heading, line.split(), strict=True)) for line in lines[1:]]


@dataclass
class Phrase:
    """A noun phrase, or a conjunction of them."""

    names: list[str]
    number: str
    gender: str | None
    modifier: str | None = None
    inner_number: str | None = None
    """Of the last noun between the head and what follows."""


@dataclass
class Clause:
    kind: str
    tense: str
    subject: Phrase
    object: Phrase | None
    facts: set[tuple[str, str, str]] = field(default_factory=set)
    """(who, verb, whom) of everything that the sentence says."""


class English:
    """Recursive descent; an assertion fails where a sentence is not English."""

    def __init__(self) -> None:
        self.nouns: dict[str, tuple[str, str]] = {}
        for row in rows("Noun"):
            for number in ("singular", "plural"):
                self.nouns[row[f"number={number}"]] = (number, row["gender"])
        self.names = {row["word"]: row["gender"] for row in rows("Name")}
        self.intransitive = self._forms("Verb")
        self.transitive = self._forms("TransitiveVerb")
        self.participles = {row["form=participle"]: row["form=base"] for row in rows("TransitiveVerb")}

    @staticmethod
    def _forms(section: str) -> dict[str, tuple[str, str, str | None]]:
        forms: dict[str, tuple[str, str, str | None]] = {}
        for row in rows(section):
            forms[row["form=base"]] = (row["form=base"], "present", "plural")
            forms[row["form=s"]] = (row["form=base"], "present", "singular")
            forms[row["form=past"]] = (row["form=base"], "past", None)
        return forms

    def parse(self, text: str) -> Clause:
        self.words, self.at, self.facts = text.split(), 0, set()
        clause = self._clause()
        if self._next() == "and":
            self.at += 1
            self._clause()
        assert self.at == len(self.words), f"{text!r} goes on after {self.words[: self.at]}"
        clause.facts = self.facts
        return clause

    def _next(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.words[place] if place < len(self.words) else ""

    def _take(self) -> str:
        self.at += 1
        return self.words[self.at - 1]

    def _clause(self) -> Clause:
        subject = self._nominal()
        if self._next() in BE:
            tense, number = BE[self._take()]
            assert number == subject.number
            verb = self.participles[self._take()]
            assert self._take() == "by"
            agent = self._nominal()
            self._say(agent, verb, subject)
            return Clause("passive", tense, subject, agent)
        if self._next() in self.intransitive:
            return Clause("intransitive", self._verb(self.intransitive, subject)[1], subject, None)
        verb, tense = self._verb(self.transitive, subject)
        patient = self._nominal()
        self._say(subject, verb, patient)
        return Clause("transitive", tense, subject, patient)

    def _say(self, agent: Phrase, verb: str, patient: Phrase) -> None:
        self.facts |= {(one, verb, other) for one in agent.names for other in patient.names}

    def _verb(self, forms: dict[str, tuple[str, str, str | None]], subject: Phrase) -> tuple[str, str]:
        verb, tense, number = forms[self._take()]
        assert number in (None, subject.number), f"no agreement in {' '.join(self.words)!r}"
        return verb, tense

    def _simple(self) -> Phrase:
        word = self._take()
        if word in self.names:
            return Phrase([word], "singular", self.names[word])
        assert word in DETERMINERS, f"{word!r} in {' '.join(self.words)!r}"
        noun = self._take()
        number, gender = self.nouns[noun]
        assert word not in (PLURAL if number == "singular" else SINGULAR)
        return Phrase([f"{word} {noun}"], number, gender)

    def _nominal(self) -> Phrase:
        phrase = self._simple()
        if self._next() in PREPOSITIONS:
            self.at += 1
            phrase.modifier, phrase.inner_number = "prepositional", self._simple().number
        elif self._next() in ("who", "that"):
            self._relative(phrase)
        elif self._next() == "and" and not self._is_clause_ahead():
            self.at += 1
            other = self._simple()
            gender = phrase.gender if phrase.gender == other.gender else None
            return Phrase(phrase.names + other.names, "plural", gender, "conjunction")
        return phrase

    def _relative(self, phrase: Phrase) -> None:
        self.at += 1
        if self._next() in self.intransitive:
            self._verb(self.intransitive, phrase)
            phrase.modifier = "subject-relative"
        elif self._next() in self.transitive:
            verb, _ = self._verb(self.transitive, phrase)
            inner = self._simple()
            self._say(phrase, verb, inner)
            phrase.modifier, phrase.inner_number = "subject-relative", inner.number
        else:
            inner = self._simple()
            verb, _ = self._verb(self.transitive, inner)
            self._say(inner, verb, phrase)
            phrase.modifier, phrase.inner_number = "object-relative", inner.number

    def _is_clause_ahead(self) -> bool:
        """Whether "and" is followed by noun phrase, verb, noun phrase, after an object."""
        after = 2 if self._next(1) in self.names else 3
        seen_verb = any(word in self.transitive for word in self.words[: self.at])
        return seen_verb and self._next(after) in self.transitive


@pytest.fixture(scope="session")
def english() -> English:
    return English()


@pytest.fixture(scope="session")
def lexicon_rows() -> Any:
    return rows
