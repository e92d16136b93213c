"""The words: paradigm tables that a linguist can read.

```toml
[Noun]
part_of_speech = "Noun"        # holds for every word of the section
distinct = true                # never the same word twice in a sentence
words = '''
gender   number=singular   number=plural
female   woman             women
male     king              kings
'''
```
A row is a lexeme. A heading is a feature, whose values stand below it, or `word`, or `feature=value` (several
joined by commas): a form of the lexeme that has those features. `-` stands for no value or no such form;
`any` for a form that goes with every value and is marked for none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from thinkalike.stimuli.grammar.domain import ANY, NONE, Domain
from thinkalike.stimuli.grammar.source import Source, Toml


@dataclass(frozen=True)
class Form:
    """A word form; `marks` lacks the features that it goes with in every value."""

    word: str
    marks: dict[str, str]


@dataclass(frozen=True)
class LexicalCategory:
    """The words of one category.

    Attributes
    ----------
    lexemes : for each lexeme its forms.
    features : what its words are marked for. Other features come from the rule that uses the word.
    distinct : whether a sentence may have each lexeme only once.
    """

    name: str
    lexemes: tuple[tuple[Form, ...], ...]
    features: frozenset[str]
    distinct: bool = False

    def matches(self, request: dict[str, str]) -> list[tuple[int, Form]]:
        """The forms that go with the requested values, each with the number of its lexeme."""
        asked = {feature: value for feature, value in request.items() if feature in self.features}
        return [
            (number, form)
            for number, forms in enumerate(self.lexemes)
            for form in forms
            if all(form.marks.get(feature, value) == value for feature, value in asked.items())
        ]


@dataclass(frozen=True)
class _Heading:
    feature: str | None
    form: dict[str, str] | None = field(default=None)


def read_lexicon(
    tables: Toml, source: Source, domain: Domain, *, prefix: str = ""
) -> dict[str, LexicalCategory]:
    """Read the sections of a lexicon; `prefix` is what their headings have before the category's name."""
    return {
        name: _read_category(name, table, source, domain, prefix + name) for name, table in tables.items()
    }


def words_of(table: object, source: Source, section: str) -> Toml:
    """The section of a category, which must have a table of words."""
    if not isinstance(table, dict) or not isinstance(table.get("words"), str):
        raise source.error(
            source.key_line(section, "words"), f"[{section}] has no table of words: words = '''…'''."
        )
    return table


def _read_category(name: str, given: object, source: Source, domain: Domain, section: str) -> LexicalCategory:
    table = words_of(given, source, section)
    constants = {key: str(value) for key, value in table.items() if key not in ("words", "distinct")}
    for feature, value in constants.items():
        domain.check(feature, value, source, source.key_line(section, feature))
    first = source.block_line(section, "words", table["words"])
    rows = [(first + i, line.split()) for i, line in enumerate(table["words"].split("\n")) if _is_row(line)]
    if len(rows) < 2:
        raise source.error(
            first, f"[{section}] has no words: a line of headings and a line per word were expected."
        )
    headings = [_read_heading(cell, source, rows[0][0], domain) for cell in rows[0][1]]
    if not any(heading.form is not None for heading in headings):
        raise source.error(
            rows[0][0], "no column has the words: head it `word`, or `feature=value` for each form."
        )
    lexemes = [_read_lexeme(cells, headings, constants, source, line, domain) for line, cells in rows[1:]]
    features = (
        {h.feature for h in headings if h.feature}
        | {f for h in headings for f in h.form or ()}
        | set(constants)
    )
    return LexicalCategory(name, tuple(lexemes), frozenset(features), bool(table.get("distinct", False)))


def _is_row(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


def _read_heading(cell: str, source: Source, line: int, domain: Domain) -> _Heading:
    if cell == "word":
        return _Heading(None, {})
    if "=" not in cell:
        domain.check(cell, None, source, line)
        return _Heading(cell)
    form = dict(part.split("=", 1) for part in cell.split(",") if "=" in part)
    for feature, value in form.items():
        domain.check(feature, value, source, line)
    return _Heading(None, form)


def _read_lexeme(
    cells: list[str],
    headings: list[_Heading],
    constants: dict[str, str],
    source: Source,
    line: int,
    domain: Domain,
) -> tuple[Form, ...]:
    if len(cells) != len(headings):
        raise source.error(line, f"{len(cells)} cells under {len(headings)} headings: {' '.join(cells)}")
    marks = dict(constants)
    for heading, cell in zip(headings, cells, strict=True):
        if heading.feature is not None and cell != ANY:
            domain.check(heading.feature, cell, source, line)
            marks[heading.feature] = cell
    columns = zip(headings, cells, strict=True)
    return tuple(Form(cell, marks | h.form) for h, cell in columns if h.form is not None and cell != NONE)
