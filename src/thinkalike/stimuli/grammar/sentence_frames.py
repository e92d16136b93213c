"""From rules to frames: the finitely many kinds of sentence that a grammar makes.

A frame is a sequence of slots, each with the words that may fill it. Every choice of words gives a sentence,
so the sentences of a frame need not be enumerated to be counted or drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.grammar.domain import NONE, Domain
from thinkalike.stimuli.grammar.grammar_rules import Rule, Symbol, bindings, requests
from thinkalike.stimuli.grammar.lexicon import Form, LexicalCategory

MOST_FRAMES = 200_000
"""Each is held in memory."""

Place = tuple[int, int]
"""Which slot a word comes from, and which of the slot's mentions it is."""


@dataclass(frozen=True)
class Word:
    """A word in its place; `features` has only those that have a value."""

    text: str
    features: dict[str, str]


@dataclass(frozen=True)
class Slot:
    """One choice of a lexeme.

    Attributes
    ----------
    options : for each lexeme that fits, its number in the lexicon and the word for each mention of the slot.
    distinct : whether another slot of the category must be filled with another lexeme.
    """

    category: str
    options: tuple[tuple[int, tuple[Word, ...]], ...]
    distinct: bool


@dataclass(frozen=True)
class Phrase:
    """Slots, and the sides (one; two for pairs of sentences) that they are laid out on."""

    slots: tuple[Slot, ...]
    sides: tuple[tuple[Place, ...], ...]
    weight: float


@dataclass(frozen=True)
class Frame:
    """A kind of sentence: its slots and the features that hold for the whole of it."""

    features: dict[str, str]
    slots: tuple[Slot, ...]
    sides: tuple[tuple[Place, ...], ...]
    weight: float
    """The frame's share of the sentences; all frames together have 1."""
    rule: int
    """The number of the sentence rule that it comes from."""

    @property
    def size(self) -> int:
        """How many ways there are to fill the slots."""
        return prod(len(slot.options) for slot in self.slots)


def make_frames(
    start: str, rules: dict[str, list[Rule]], lexicon: dict[str, LexicalCategory], domain: Domain
) -> list[Frame]:
    """All frames of the category `start`.

    The rules of `start` share the sentences by their weights; the frames of one rule share its part by the
    product of the weights of the rules used in them.
    """
    expander = _Expander(rules, lexicon, domain)
    total = sum(rule.weight for rule in rules[start])
    frames = []
    for number, rule in enumerate(rules[start]):
        found = [
            (features, phrase)
            for binding in bindings(rule, {}, domain)
            for features in requests(rule.left, binding, domain)
            for phrase in expander.sides(rule, binding)
        ]
        weights = sum(phrase.weight for _, phrase in found)
        for features, phrase in found:
            share = rule.weight / total * phrase.weight / weights
            frames.append(Frame(_shown(features, domain), phrase.slots, phrase.sides, share, number))
    return frames


class _Expander:
    """Expands categories, each demand once."""

    def __init__(
        self, rules: dict[str, list[Rule]], lexicon: dict[str, LexicalCategory], domain: Domain
    ) -> None:
        self._rules, self._lexicon, self._domain = rules, lexicon, domain
        self._known_phrases: dict[tuple[object, ...], list[Phrase]] = {}
        self._known_slots: dict[tuple[object, ...], Slot] = {}

    def sides(self, rule: Rule, binding: dict[str, str]) -> Iterator[Phrase]:
        """Every expansion of a rule's right side under an assignment of its variables."""
        groups = _mentions(rule)
        choices = []
        for symbols in groups.values():
            choices.append(self._parts(symbols, binding))
            if not choices[-1]:
                return
        if prod(map(len, choices)) > MOST_FRAMES:
            raise InvalidInput(
                f"line {rule.line}: the rule makes more than {MOST_FRAMES:,} kinds of phrase; leave out "
                "features that need not agree, or write fewer alternatives."
            )
        order = _layout(rule, list(groups))
        for parts in product(*choices):
            slots: list[Slot] = []
            before = []  # the slots of the groups before each
            for phrase, _ in parts:
                before.append(len(slots))
                slots.extend(phrase.slots)
            sides = tuple(
                tuple(
                    (slot + before[group], word)
                    for group, mention in side
                    for slot, word in parts[group][1][mention]
                )
                for side in order
            )
            yield Phrase(tuple(slots), sides, prod(phrase.weight for phrase, _ in parts))

    def _parts(
        self, symbols: list[Symbol], binding: dict[str, str]
    ) -> list[tuple[Phrase, list[tuple[Place, ...]]]]:
        """The phrases for all mentions of one label, each with the places of every mention."""
        asked = product(*(requests(symbol, binding, self._domain) for symbol in symbols))
        name = symbols[0].name
        if name in self._lexicon:
            return [
                (Phrase((slot,), (), 1.0), [((0, mention),) for mention in range(len(symbols))])
                for wanted in asked
                if (slot := self._slot(name, wanted)).options
            ]
        merged = [one for wanted in asked if (one := _merged(wanted)) is not None]
        return [(p, [p.sides[0]] * len(symbols)) for request in merged for p in self._phrases(name, request)]

    def _phrases(self, name: str, request: dict[str, str]) -> list[Phrase]:
        key = (name, frozenset(request.items()))
        if key not in self._known_phrases:
            self._known_phrases[key] = [
                Phrase(phrase.slots, phrase.sides, phrase.weight * rule.weight)
                for rule in self._rules[name]
                for binding in bindings(rule, request, self._domain)
                for phrase in self.sides(rule, binding)
            ]
        return self._known_phrases[key]

    def _slot(self, name: str, wanted: tuple[dict[str, str], ...]) -> Slot:
        key = (name, *(frozenset(request.items()) for request in wanted))
        if key not in self._known_slots:
            self._known_slots[key] = self._made_slot(self._lexicon[name], wanted)
        return self._known_slots[key]

    def _made_slot(self, category: LexicalCategory, wanted: tuple[dict[str, str], ...]) -> Slot:
        forms: list[dict[int, list[Word]]] = []
        for request in wanted:
            words: dict[int, list[Word]] = {}
            for lexeme, form in category.matches(request):
                words.setdefault(lexeme, []).append(self._word(category, form, request))
            forms.append(words)
        options = [
            (lexeme, words)
            for lexeme in forms[0]
            if all(lexeme in words for words in forms)
            for words in product(*(words[lexeme] for words in forms))
        ]
        return Slot(category.name, tuple(options), category.distinct)

    def _word(self, category: LexicalCategory, form: Form, request: dict[str, str]) -> Word:
        """What the lexicon marks a word for comes from the lexicon, the rest from the rule."""
        marks = {**{f: v for f, v in request.items() if f not in category.features}, **form.marks}
        return Word(form.word, _shown(marks, self._domain))


def _mentions(rule: Rule) -> dict[str, list[Symbol]]:
    """The symbols of a rule, those with the same label together; the others each alone."""
    groups: dict[str, list[Symbol]] = {}
    for place, symbol in enumerate(rule.symbols):
        groups.setdefault(_group(symbol, place), []).append(symbol)
    return groups


def _group(symbol: Symbol, place: int) -> str:
    return f":{symbol.label}" if symbol.label else str(place)


def _layout(rule: Rule, groups: list[str]) -> list[list[tuple[int, int]]]:
    """For each side of a rule, which mention of which group stands there, in order."""
    seen = dict.fromkeys(groups, 0)
    sides, place = [], 0
    for side in rule.sides:
        order = []
        for symbol in side:
            group = _group(symbol, place)
            order.append((groups.index(group), seen[group]))
            seen[group] += 1
            place += 1
        sides.append(order)
    return sides


def _merged(wanted: tuple[dict[str, str], ...]) -> dict[str, str] | None:
    """One request out of those of all mentions; None when they contradict each other."""
    merged: dict[str, str] = {}
    for request in wanted:
        for feature, value in request.items():
            if merged.setdefault(feature, value) != value:
                return None
    return merged


def _shown(marks: dict[str, str], domain: Domain) -> dict[str, str]:
    return {feature: value for feature, value in marks.items() if feature in domain.columns and value != NONE}
