"""The rules: context-free, with features that agree.

    Sentence[question=False] -> NP[number=?n, person=?p] Present[number=?n, person=?p]   @ 3

- A category on the left is defined by its rules; any other one is a section of the lexicon.
- `number=singular` demands a value, `person=1|2` one of several, `number=-` no value.
- `?n` is a value that must be the same wherever `?n` stands in the rule, `!?n` one that must differ from it.
- A feature that is not mentioned is free.
- `NP:1`: mentions with the same label are the same words; with `//` between two sides a rule makes a pair of
  sentences, and a labelled word is the same lexeme on both, perhaps in another form.
- `@ 3`: this rule counts three times.
- A line that begins with a space goes on with the rule above it; `#` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from thinkalike.stimuli.grammar.domain import NONE, Domain
from thinkalike.stimuli.grammar.source import Source

SIDES = "//"
_SYMBOL = re.compile(r"(?P<name>[^\s\[\]:@]+)(?:\[(?P<features>[^\]]*)\])?(?::(?P<label>\w+))?")
_PAIR = re.compile(r"(?P<feature>[^\s=,]+)\s*=\s*(?P<value>!?\?\w+|[^\s=,?!]+)")


@dataclass(frozen=True)
class Symbol:
    """A category with its demands: feature → "?n", "!?n", or the values allowed."""

    name: str
    demands: dict[str, str | tuple[str, ...]]
    label: str | None = None

    def variables(self) -> Iterator[tuple[str, str]]:
        """(feature, variable) of every `?n`, without those that are only to differ."""
        for feature, demand in self.demands.items():
            if isinstance(demand, str) and demand.startswith("?"):
                yield feature, demand


@dataclass(frozen=True)
class Rule:
    left: Symbol
    sides: tuple[tuple[Symbol, ...], ...]
    weight: float
    line: int

    @property
    def symbols(self) -> list[Symbol]:
        return [symbol for side in self.sides for symbol in side]


def read_rules(block: str, source: Source, domain: Domain) -> list[Rule]:
    """Read the rules of a multi-line string, `rules` in `[syntax]`."""
    first = source.block_line("syntax", "rules", block)
    texts: list[tuple[int, str]] = []
    for number, line in enumerate(block.split("\n"), start=first):
        line = line.split("#")[0].rstrip()
        if line.startswith((" ", "\t")) and texts:
            texts[-1] = (texts[-1][0], f"{texts[-1][1]} {line.strip()}")
        elif line:
            texts.append((number, line))
    if not texts:
        raise source.error(first, "there are no rules: `Sentence -> NP Verb` or the like was expected.")
    return [_read_rule(text, source, number, domain) for number, text in texts]


def _read_rule(text: str, source: Source, line: int, domain: Domain) -> Rule:
    body, weighted, weight = text.partition("@")
    left, arrow, right = body.partition("->")
    if not arrow or not right.strip():
        raise source.error(line, f"not a rule: {text!r}; `Category -> Category Category` was expected.")
    if weighted and not (re.fullmatch(r"\s*\d{1,9}(\.\d+)?\s*", weight, re.ASCII) and float(weight) > 0):
        raise source.error(
            line, f"the weight after @ must be a number above 0 and below a billion, not {weight.strip()!r}."
        )
    heads = _read_symbols(left, source, line, domain)
    if len(heads) != 1 or heads[0].label:
        raise source.error(line, f"one category was expected left of the arrow, not {left.strip()!r}.")
    sides = tuple(_read_symbols(side, source, line, domain) for side in right.split(SIDES))
    if not all(sides):
        raise source.error(line, f"a side of {SIDES!r} is empty.")
    rule = Rule(heads[0], sides, float(weight) if weighted else 1.0, line)
    _check_differing(rule, source)
    return rule


def _read_symbols(text: str, source: Source, line: int, domain: Domain) -> tuple[Symbol, ...]:
    symbols, position = [], 0
    text = text.strip()
    while position < len(text):
        match = _SYMBOL.match(text, position)
        if match is None:
            raise source.error(
                line, f"cannot read {text[position:]!r}; `Category[feature=value, other=?x]` was expected."
            )
        demands = _read_demands(match["features"] or "", source, line, domain)
        symbols.append(Symbol(match["name"], demands, match["label"]))
        position = match.end()
        while position < len(text) and text[position].isspace():
            position += 1
    return tuple(symbols)


def _read_demands(text: str, source: Source, line: int, domain: Domain) -> dict[str, str | tuple[str, ...]]:
    demands: dict[str, str | tuple[str, ...]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _PAIR.fullmatch(part)
        if match is None:
            raise source.error(line, f"cannot read [{text}]; [feature=value, other=?x] was expected.")
        feature, value = match["feature"], match["value"]
        if value.startswith(("?", "!")):
            domain.check(feature, None, source, line)
            demands[feature] = value
        else:
            values = tuple(value.split("|"))
            for one in values:
                domain.check(feature, one, source, line)
            demands[feature] = values
    return demands


def _check_differing(rule: Rule, source: Source) -> None:
    bound = {variable for symbol in (rule.left, *rule.symbols) for _, variable in symbol.variables()}
    for symbol in rule.symbols:
        for demand in symbol.demands.values():
            if isinstance(demand, str) and demand.startswith("!") and demand[1:] not in bound:
                raise source.error(
                    rule.line, f"{demand} differs from {demand[1:]}, which stands nowhere in the rule."
                )


def bindings(rule: Rule, request: dict[str, str], domain: Domain) -> Iterator[dict[str, str]]:
    """Every assignment of values to the variables of a rule that fits what is asked of its left side."""
    ranges: dict[str, list[str]] = {}
    for symbol in (rule.left, *rule.symbols):
        for feature, variable in symbol.variables():
            values = [*domain.values[feature], NONE]
            ranges[variable] = [value for value in ranges.get(variable, values) if value in values]
    for feature, demand in rule.left.demands.items():
        if feature not in request:
            continue
        if isinstance(demand, tuple):
            if request[feature] not in demand:
                return
        else:
            ranges[demand] = [value for value in ranges[demand] if value == request[feature]]
    for assignment in product(*ranges.values()):
        yield dict(zip(ranges, assignment, strict=True))


def requests(symbol: Symbol, binding: dict[str, str], domain: Domain) -> Iterator[dict[str, str]]:
    """Every way to ask for the symbol's features with single values, under an assignment of the variables."""
    options = []
    for feature, demand in symbol.demands.items():
        if isinstance(demand, tuple):
            options.append(demand)
        elif demand.startswith("?"):
            options.append((binding[demand],))
        else:
            options.append(tuple(value for value in domain.values[feature] if value != binding[demand[1:]]))
    for values in product(*options):
        yield dict(zip(symbol.demands, values, strict=True))
