"""Reading a grammar: rules, features and lexicon, checked against each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from thinkalike.addresses import place
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.files import write_bytes
from thinkalike.stimuli.grammar.domain import Domain, read_domain
from thinkalike.stimuli.grammar.grammar_rules import Rule, read_rules
from thinkalike.stimuli.grammar.lexicon import LexicalCategory, read_lexicon, words_of
from thinkalike.stimuli.grammar.sentence_frames import Frame, make_frames
from thinkalike.stimuli.grammar.source import Source, read_source

FOLDER = Path(__file__).parent.parent / "grammars"
ITEMS = ("words", "sentences")
SECTIONS = ("lexicon", "features", "internal", "syntax", "full_stop")
SYNTAX = ("start", "items", "rules")
DEEPEST = 100
"""How far categories may stand within categories."""


@dataclass(frozen=True)
class Grammar:
    """A grammar that was read and checked; `frames` are the kinds of sentence that it makes.

    Attributes
    ----------
    path : the file that it was read from
    start : the category that a sentence is made of
    rules : category → its rules
    lexicon : category → its words
    domain : the features with their values and kinds
    items : "words" or "sentences", what the grammar describes unless one asks for the other.
    full_stops : the mark at the end of a sentence → the sentence features it needs; the first that fits is
        taken.

    Examples
    --------
    >>> from thinkalike.stimuli.grammar import load_grammar
    >>> grammar = load_grammar("salle2024")
    >>> grammar.items, grammar.n_sides
    ('words', 1)
    >>> sum(frame.size for frame in grammar.frames) > 10_000
    True
    """

    path: Path
    start: str
    rules: dict[str, list[Rule]]
    lexicon: dict[str, LexicalCategory]
    domain: Domain
    items: str = "words"
    full_stops: tuple[tuple[str, dict[str, str]], ...] = ((".", {}),)

    @cached_property
    def frames(self) -> list[Frame]:
        """The kinds of sentence: sequences of slots, each with the words that may fill it."""
        try:
            frames = make_frames(self.start, self.rules, self.lexicon, self.domain)
        except InvalidInput as error:
            raise InvalidInput(f"{self.path}, {error}") from error
        if not frames:
            raise InvalidInput(
                f"{self.path}: the rules and the lexicon together make no sentence of {self.start!r}."
            )
        return frames

    @property
    def n_sides(self) -> int:
        """1 for sentences, 2 for pairs of sentences."""
        return len(self.rules[self.start][0].sides)

    @property
    def sentence_features(self) -> set[str]:
        """The features that hold for a whole sentence: those of the start category."""
        return {feature for rule in self.rules[self.start] for feature in rule.left.demands} & set(
            self.domain.columns
        )


def shipped_grammars() -> list[str]:
    """The names that `load_grammar` knows: the files in our folder that have rules.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from thinkalike.stimuli.grammar import shipped_grammars
    >>> "salle2024" in shipped_grammars()
    True
    """
    return sorted(path.stem for path in FOLDER.glob("*.toml") if not path.stem.startswith("lexicon"))


def load_grammar(grammar: str | os.PathLike[str], lexicon: str | os.PathLike[str] | None = None) -> Grammar:
    """Read a shipped grammar by its name, or one's own from a TOML file.

    Parameters
    ----------
    grammar : a name in `shipped_grammars()`, or the path of a TOML file
    lexicon : TOML file whose sections replace the grammar's own lexicon.

    Returns
    -------
    Grammar
        Checked: what cannot be read is an error that names the line.

    Examples
    --------
    >>> from thinkalike.stimuli.grammar import load_grammar
    >>> load_grammar("clauses").n_sides
    1
    """
    if lexicon is None and isinstance(grammar, str) and grammar in shipped_grammars():
        return _shipped(grammar)
    return _load(_path_of(grammar), lexicon)


@cache
def _shipped(name: str) -> Grammar:
    """Our own files do not change while we run, and their kinds of sentence take a while to make."""
    return _load(_path_of(name), None)


def _load(path: Path, lexicon: str | os.PathLike[str] | None) -> Grammar:
    source = read_source(path)
    _check_sections(source)
    words = _lexicon_source(source, lexicon)
    domain = read_domain(source, words)
    start, items, rules = _read_syntax(source, domain)
    sections = source.content["lexicon"] if words is None else words.content
    _check_rules(start, rules, [name for name in sections if name != "internal"], source)
    # Only the sections that the rules use are read whole: one lexicon can serve several grammars.
    mentioned = {symbol.name for group in rules.values() for rule in group for symbol in rule.symbols}
    used = {name: sections[name] for name in sections if name in mentioned and name not in rules}
    prefix = "" if words else "lexicon."
    for name in sections:
        if name != "internal" and name not in used:
            words_of(sections[name], words or source, prefix + name)
    categories = read_lexicon(used, words or source, domain, prefix=prefix)
    return Grammar(source.path, start, rules, categories, domain, items, _read_full_stops(source, domain))


def _check_sections(source: Source) -> None:
    """Refuse what nothing would look at."""
    syntax = source.content.get("syntax")
    for section, given, known in (
        ("", source.content, SECTIONS),
        ("syntax", syntax if isinstance(syntax, dict) else {}, SYNTAX),
    ):
        for name in given:
            if name not in known:
                line = source.key_line(section, name)
                raise source.error(line, str(UnknownName.among("part of a grammar called", name, known)))


def copy_grammar(grammar: str, folder: str | os.PathLike[str]) -> list[Path]:
    """Copy the rules and the lexicon of a shipped grammar into a folder, to change them there.

    Parameters
    ----------
    grammar : a name in `shipped_grammars()`
    folder : made if it is not there

    Returns
    -------
    list of Path
        The copies: the rules first, then the words.

    Examples
    --------
    >>> from thinkalike.stimuli.grammar import copy_grammar
    >>> [path.name for path in copy_grammar("salle2024", "mine")]
    ['salle2024.toml', 'lexicon_english.toml']
    """
    source = read_source(_path_of(grammar))
    copies = []
    for path in (source.path, source.path.parent / str(source.content["lexicon"])):
        copy = place(folder) / path.name
        if copy.exists():
            raise InvalidInput(f"{copy} exists already and is not overwritten: name another folder.")
        write_bytes(path.read_bytes(), copy)
        copies.append(copy)
    return copies


def _read_syntax(source: Source, domain: Domain) -> tuple[str, str, dict[str, list[Rule]]]:
    """The start category, the sort of items, and the rules of each category."""
    syntax = source.content.get("syntax")
    if not isinstance(syntax, dict) or not isinstance(syntax.get("rules"), str):
        raise source.error(1, "there is no section [syntax] with rules = '''…'''.")
    rules: dict[str, list[Rule]] = {}
    for rule in read_rules(syntax["rules"], source, domain):
        rules.setdefault(rule.left.name, []).append(rule)
    items = str(syntax.get("items", ITEMS[0]))
    if items not in ITEMS:
        line = source.key_line("syntax", "items")
        raise source.error(line, str(UnknownName.among("sort of items", items, ITEMS)))
    return str(syntax.get("start", next(iter(rules)))), items, rules


def _path_of(grammar: str | os.PathLike[str]) -> Path:
    path = Path(grammar)
    if path.suffix == ".toml":
        return path
    if str(grammar) not in shipped_grammars():
        known = [*shipped_grammars(), "or the path of a .toml file"]
        raise UnknownName.among("grammar", grammar, known)
    return FOLDER / f"{grammar}.toml"


def _lexicon_source(source: Source, lexicon: str | os.PathLike[str] | None) -> Source | None:
    """The file with the words; None when they stand in the grammar's own file."""
    own = source.content.get("lexicon")
    if lexicon is not None:
        return read_source(lexicon)
    if isinstance(own, str):
        return read_source(source.path.parent / own)
    if not isinstance(own, dict):
        raise source.error(
            1, "there is no lexicon: lexicon = 'file.toml', or sections [lexicon.Noun] and so on."
        )
    return None


def _read_full_stops(source: Source, domain: Domain) -> tuple[tuple[str, dict[str, str]], ...]:
    given = source.content.get("full_stop", {})
    stops = []
    for mark, needs in given.items() if isinstance(given, dict) else [("full_stop", given)]:
        line = source.key_line("full_stop", mark)
        if not isinstance(needs, dict):
            raise source.error(
                line, '[full_stop] says when a mark is used: "?" = { question = "True" } was expected.'
            )
        condition = {str(feature): str(value) for feature, value in needs.items()}
        for feature, value in condition.items():
            domain.check(feature, value, source, line)
        stops.append((mark, condition))
    return (*stops, (".", {}))


def _check_rules(start: str, rules: dict[str, list[Rule]], lexicon: list[str], source: Source) -> None:
    if start not in rules:
        line = source.key_line("syntax", "start")
        raise source.error(line, str(UnknownName.among("category with rules", start, rules)))
    known = [*rules, *lexicon]
    mentioned = {name: {f for rule in group for f in rule.left.demands} for name, group in rules.items()}
    for rule in (rule for group in rules.values() for rule in group):
        for symbol in rule.symbols:
            if symbol.name not in known:
                raise source.error(rule.line, str(UnknownName.among("category", symbol.name, known)))
            for feature in symbol.demands if symbol.name in rules else ():
                if feature not in mentioned[symbol.name]:
                    raise source.error(
                        rule.line, f"no rule for {symbol.name} says anything about {feature!r}."
                    )
        _check_sides(rule, rules[start], source)
    _check_no_recursion(start, rules, source)


def _check_sides(rule: Rule, starts: list[Rule], source: Source) -> None:
    expected = len(starts[0].sides) if any(rule is one for one in starts) else 1
    if len(rule.sides) != expected:
        raise source.error(
            rule.line,
            f"{len(rule.sides)} sides where {expected} were expected: only rules of the start make pairs.",
        )
    labels: dict[str, str] = {}
    for symbol in rule.symbols:
        if symbol.label and labels.setdefault(symbol.label, symbol.name) != symbol.name:
            raise source.error(
                rule.line, f"the label :{symbol.label} stands on {labels[symbol.label]} and {symbol.name}."
            )


def _check_no_recursion(start: str, rules: dict[str, list[Rule]], source: Source) -> None:
    """Raise if a category contains itself; each is looked at once, however many rules mention it."""
    within: list[tuple[str, Iterator[tuple[Rule, str]]]] = [(start, _mentioned(rules[start]))]
    above, done = {start}, set()
    while within:
        name, symbols = within[-1]
        for rule, inner in symbols:
            if inner in above:
                raise source.error(
                    rule.line,
                    f"{inner} contains itself, so there is no end of sentences: "
                    "write the inner one as a category of its own.",
                )
            if inner in rules and inner not in done:
                within.append((inner, _mentioned(rules[inner])))
                above.add(inner)
                break
        else:
            within.pop()
            above.remove(name)
            done.add(name)
        if len(within) > DEEPEST:
            raise source.error(1, f"the rules go more than {DEEPEST} categories deep: write them flatter.")


def _mentioned(rules: list[Rule]) -> Iterator[tuple[Rule, str]]:
    return ((rule, symbol.name) for rule in rules for symbol in rule.symbols)
