"""Minimal pairs and premise–hypothesis pairs, against what an independent parser says of them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli.inference_pairs import CASES, LABELS, OVERLAPS, inference_pairs
from thinkalike.stimuli.minimal_pairs import KINDS, minimal_pairs
from thinkalike.stimuli.sentence_pairs import pair_grammar


@pytest.fixture(scope="module")
def pairs() -> pd.DataFrame:
    return inference_pairs(1500, 0)


def test_labels_are_what_the_premise_says(pairs: pd.DataFrame, english: Any) -> None:
    for pair in pairs.itertuples():
        said = english.parse(pair.premise).facts
        (claim,) = english.parse(pair.hypothesis).facts
        assert (claim in said) == (pair.label == "entailment"), pair


def test_overlap_is_of_words(pairs: pd.DataFrame) -> None:
    for pair in pairs.itertuples():
        new = set(pair.hypothesis.split()) - set(pair.premise.split())
        assert bool(new) == (pair.overlap == "partial"), pair


def test_cases_are_the_constructions(pairs: pd.DataFrame, english: Any) -> None:
    modifiers = {
        "swap": {None},
        "preposition": {"prepositional"},
        "relative": {"subject-relative", "object-relative"},
        "passive": {None},
        "conjunction": {"conjunction", None},
    }
    for pair in pairs.itertuples():
        clause = english.parse(pair.premise)
        found = clause.subject.modifier or (clause.object and clause.object.modifier)
        assert found in modifiers[pair.case], pair
        assert (clause.kind == "passive") == (pair.case == "passive")
        assert (" and " in pair.premise) == (pair.case == "conjunction")


def test_every_sort_comes_equally_often_and_no_pair_twice(pairs: pd.DataFrame) -> None:
    sizes = pairs.groupby(["case", "label", "overlap"]).size()
    assert len(sizes) == 15
    assert set(sizes) == {100}
    assert not pairs.duplicated(["premise", "hypothesis"]).any()
    assert list(pairs) == ["premise", "hypothesis", "label", "case", "overlap"]


def test_sorts_can_be_asked_for() -> None:
    hans = inference_pairs(
        30, 1, case="passive", label="non-entailment", overlap="full", capital=True, full_stop=True
    )
    assert set(hans["case"]) == {"passive"}
    assert set(hans["label"]) == {"non-entailment"}
    assert hans["premise"].str.match(r"[A-Z].*\.$").all()
    again = inference_pairs(30, 1, case="passive", label="non-entailment", overlap="full")
    assert (again["premise"].str.lower() + "." == hans["premise"].str.lower()).all()
    with pytest.raises(InvalidInput, match="no entailments with partial overlap"):
        inference_pairs(5, 0, label="entailment", overlap="partial")
    with pytest.raises(UnknownName, match=r"no case of pairs 'swop'. Did you mean 'swap'?"):
        inference_pairs(5, 0, case="swop")
    with pytest.raises(InvalidInput, match="0 pairs were asked for"):
        inference_pairs(0, 0)


def test_the_constants_are_those_of_the_grammar_files() -> None:
    values = pair_grammar("inference").domain.values
    assert (values["case"], values["label"], values["overlap"]) == (CASES, LABELS, OVERLAPS)
    assert pair_grammar("minimal").domain.values["kind"] == KINDS


def test_replacements_are_never_implied(pairs: pd.DataFrame) -> None:
    """In partial overlap no queen is replaced by a woman: that would follow after all."""
    general = {"woman", "women", "man", "men", "lady", "ladies", "girl", "girls", "mother", "mothers"}
    for pair in pairs[pairs["overlap"] == "partial"].itertuples():
        assert not (set(pair.hypothesis.split()) - set(pair.premise.split())) & general, pair


def third_singular(words: list[str], english: Any) -> bool:
    if words[0] in english.names or words[0] in ("he", "she"):
        return True
    return len(words) > 1 and english.nouns[words[1]][0] == "singular"


def test_agreement_pairs(english: Any) -> None:
    pairs = minimal_pairs(600, 0, "agreement")
    sorts = set()
    for good, bad in pairs:
        right, wrong = good.split(), bad.split()
        (place,) = [k for k, (a, b) in enumerate(zip(right, wrong, strict=True)) if a != b]
        first = {"do": "do", "does": "do", **BE}.get(right[place], "verb")
        subject = right[1:-1] if first == "do" else right[:place]
        third = third_singular(subject, english)
        assert (right[place], wrong[place]) == forms_of(first, right[place], third, english), good
        sorts.add((first, third))
    assert len(sorts) == 8  # verb, do, be in two tenses
    assert len(set(pairs)) == 600


BE = {"is": "be", "are": "be", "was": "were", "were": "were"}


def forms_of(kind: str, right: str, third: bool, english: Any) -> tuple[str, str]:
    """The right and the wrong form for a subject that is third person singular, or not."""
    known = {"do": ("does", "do"), "be": ("is", "are"), "were": ("was", "were")}
    if kind == "verb":
        base, _, number = english.intransitive[right]
        singular = next(
            word for word, (b, t, n) in english.intransitive.items() if b == base and n == "singular"
        )
        assert number == ("singular" if third else "plural")
        return (singular, base) if third else (base, singular)
    return known[kind] if third else known[kind][::-1]


def test_attraction_pairs(english: Any) -> None:
    for good, bad in minimal_pairs(200, 0, "attraction"):
        _, noun, _, _, other, be, done = good.split()
        number, nearer = english.nouns[noun][0], english.nouns[other][0]
        assert {number, nearer} == {"singular", "plural"}, good
        right, wrong = forms_of(BE[be], be, number == "singular", english)
        assert be == right
        assert bad == good.replace(f" {right} {done}", f" {wrong} {done}")


def test_minimal_pairs_use_common_words(english: Any) -> None:
    pairs = minimal_pairs(600, 0, "agreement") + minimal_pairs(300, 0, "inversion")
    words = {word for good, _ in pairs for word in good.split()}
    assert {"king", "comes", "John"} < words
    assert not {"stepfather", "sneezes", "sneeze", "Judith"} & words


def test_inversion_pairs() -> None:
    for good, bad in minimal_pairs(300, 0, "inversion"):
        wh, do, *subject, verb = good.split()
        assert wh in ("why", "when", "where")
        assert do in ("do", "does", "did")
        assert bad.split() == [wh, *subject, do, verb]


def test_pronoun_pairs(english: Any) -> None:
    reflexives = {"himself": "male", "herself": "female", "themselves": None}
    for good, bad in minimal_pairs(300, 0, "pronoun"):
        *right, end = good.split()
        *wrong, other = bad.split()
        assert right == wrong
        subject = right[:-1]
        if subject in (["I"], ["we"]):
            own, alien = ("myself", "ourselves") if subject == ["I"] else ("ourselves", "myself")
        else:
            number, gender = english.nouns.get(subject[-1]) or ("singular", english.names[subject[0]])
            single = "himself" if gender == "male" else "herself"
            own, alien = (single, "themselves") if number == "singular" else ("themselves", single)
            assert own in reflexives
        assert (end, other) == (own, alien), good


def test_pairs_depend_on_the_seed_only() -> None:
    assert minimal_pairs(20, 1, "agreement") == minimal_pairs(20, 1, "agreement")
    assert minimal_pairs(20, 1, "agreement") != minimal_pairs(20, 2, "agreement")
    questions = [good for good, _ in minimal_pairs(20, 1, "inversion", capital=True, full_stop=True)]
    assert all(text.endswith("?") and text[0] == "W" for text in questions)
    with pytest.raises(UnknownName, match=r"no kind of pairs 'agrement'. Did you mean 'agreement'?"):
        minimal_pairs(5, 0, "agrement")
