"""Grammars in TOML and treebanks in CoNLL-U that are none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.hostile.malformed.cases import Malformed, both, writes
from tests.hostile.shell import ROOT

TOML = '''lexicon = "words.toml"

[features]
number = ["singular", "plural"]
part_of_speech = ["Det", "Noun", "Verb"]

[syntax]
start = "Sentence"
rules = """
Sentence -> Det[number=?n] Noun[number=?n] Verb[number=?n]
"""
'''
WORDS = '''[internal]
part_of_speech = ["Det", "Noun", "Verb"]
number = ["singular", "plural"]

[Det]
part_of_speech = "Det"
words = """
number word
singular a
plural two
"""

[Noun]
part_of_speech = "Noun"
words = """
number=singular number=plural
king kings
queen queens
dog dogs
cat cats
"""

[Verb]
part_of_speech = "Verb"
words = """
number=singular number=plural
runs run
sits sit
falls fall
"""
'''
GRAMMAR = ("stimuli", "-n", "8", "--grammar", "g.toml")
TREEBANK = ("stimuli", "--conllu", "t.conllu")


def grammar_cases() -> Iterator[Malformed]:
    changes = {
        "empty": ("", WORDS),
        "random bytes": (np.random.default_rng(0).bytes(500).decode("latin-1"), WORDS),
        "JSON": ("{}", WORDS),
        "brackets": ("x = " + "[" * 20_000, WORDS),
        "braces": ("x = " + "{a = " * 5_000, WORDS),
        "an open string": (TOML + '\nx = "', WORDS),
        "a key twice": ('lexicon = "a"\n' + TOML, WORDS),
        "a date for a lexicon": (TOML.replace('"words.toml"', "2020-01-01"), WORDS),
        "a number for a lexicon": (TOML.replace('"words.toml"', "3"), WORDS),
        "a lexicon that is not there": (TOML.replace("words.toml", "none.toml"), WORDS),
        "a lexicon that is itself": (TOML.replace("words.toml", "g.toml"), WORDS),
        "a lexicon above": (TOML.replace("words.toml", "../../etc/passwd"), WORDS),
        "no features": (TOML.replace("[features]", "[zzz]"), WORDS),
        "features that are a list": ("features = []\n" + TOML.replace("[features]", "[zzz]"), WORDS),
        "a feature that is a number": (TOML.replace('["singular", "plural"]', "3"), WORDS),
        "a feature of no values": (TOML.replace('["singular", "plural"]', "[]"), WORDS),
        "a feature of numbers": (TOML.replace('["singular", "plural"]', "[1, 2]"), WORDS),
        "a feature that is computed by nothing": (TOML.replace('["singular", "plural"]', '"zzz"'), WORDS),
        "no syntax": (TOML.split("[syntax]")[0], WORDS),
        "a start that is no category": (TOML.replace('start = "Sentence"', 'start = "Zzz"'), WORDS),
        "a start that is a number": (TOML.replace('start = "Sentence"', "start = 3"), WORDS),
        "no rules": (TOML.split("rules")[0], WORDS),
        "rules that are a list": (TOML.split("rules")[0] + "rules = []\n", WORDS),
        "rules of nothing": (TOML.split("rules")[0] + 'rules = ""\n', WORDS),
        "a rule without an arrow": (TOML.replace("->", "="), WORDS),
        "a rule with two arrows": (TOML.replace("->", "-> ->"), WORDS),
        "a rule with an open bracket": (TOML.replace("Noun[number=?n]", "Noun[number=?n"), WORDS),
        "a rule with an unknown category": (TOML.replace("Noun[", "Zzz["), WORDS),
        "a rule with an unknown feature": (TOML.replace("Noun[number", "Noun[zzz"), WORDS),
        "a rule with an unknown value": (TOML.replace("Noun[number=?n]", "Noun[number=zzz]"), WORDS),
        "a rule that needs itself": (TOML.replace("-> Det", "-> Sentence Det"), WORDS),
        "a weight of text": (TOML.replace("Verb[number=?n]\n", "Verb[number=?n] @ x\n"), WORDS),
        "a weight below zero": (TOML.replace("Verb[number=?n]\n", "Verb[number=?n] @ -1\n"), WORDS),
        "a weight of zero": (TOML.replace("Verb[number=?n]\n", "Verb[number=?n] @ 0\n"), WORDS),
        "a weight of nan": (TOML.replace("Verb[number=?n]\n", "Verb[number=?n] @ nan\n"), WORDS),
        "a weight of infinity": (TOML.replace("Verb[number=?n]\n", "Verb[number=?n] @ inf\n"), WORDS),
        "an empty lexicon": (TOML, ""),
        "a lexicon of brackets": (TOML, "x = " + "[" * 20_000),
        "a lexicon without words": (TOML, WORDS.split("[Det]")[0]),
        "a category without words": (TOML, WORDS.split("king kings")[0] + WORDS.split("cat cats\n")[1]),
        "words that are a number, in a section that no rule uses": (TOML, WORDS + "\n[Zzz]\nwords = 3\n"),
        "words that are a number": (TOML, WORDS.split("[Verb]")[0] + '[Verb]\nwords = 3\n'),
        "a row of words that is short": (TOML, WORDS.replace("king kings", "king")),
        "a row of words that is long": (TOML, WORDS.replace("king kings", "king kings kingses")),
        "a word of an unknown value": (TOML, WORDS.replace("singular a", "zzz a")),
        "a lexicon of latin-1": (TOML, WORDS.replace("king", "k\xefng")),
        "more sentences than there are": (TOML.replace("x", "x"), WORDS),
    }  # fmt: skip
    for name, (grammar, words) in changes.items():
        coding = "latin-1" if "latin" in name or "random" in name else "utf-8"

        def make(folder: object, grammar: str = grammar, words: str = words, coding: str = coding) -> None:
            writes("g.toml", grammar.encode(coding))(folder)  # type: ignore[arg-type]
            writes("words.toml", words.encode(coding))(folder)  # type: ignore[arg-type]

        number = "100000" if name.startswith("more") else "8"
        yield Malformed(f"grammar: {name}", ("stimuli", "-n", number, "--grammar", "g.toml"), make)

    sound = {
        "as it should be": (TOML, WORDS),
        "no start, which is the first rule then": (TOML.replace('start = "Sentence"', ""), WORDS),
        "a section of the lexicon that no rule uses": (
            TOML,
            WORDS + "\n[Zzz]\nwords = '''\nword\nzzz\n'''\n",
        ),
    }
    for name, (grammar, words) in sound.items():
        files = both(writes("g.toml", grammar), writes("words.toml", words))
        yield Malformed(f"grammar: {name}", GRAMMAR, files, "accepted")


def treebank_cases() -> Iterator[Malformed]:
    whole = (ROOT / "tests" / "stimuli" / "data" / "sample.conllu").read_text(encoding="utf-8")
    line = next(text for text in whole.splitlines() if text.startswith("1\t"))
    cells = line.split("\t")

    def with_cell(column: int, value: str) -> str:
        changed = [*cells[:column], value, *cells[column + 1 :]]
        return whole.replace(line, "\t".join(changed), 1)

    contents: dict[str, tuple[str | bytes, str]] = {
        "empty": ("", "refused"),
        "blank lines": ("\n\n\n", "refused"),
        "comments alone": ("# text = a\n\n# text = b\n\n", "refused"),
        "random bytes": (np.random.default_rng(0).bytes(2000), "refused"),
        "latin-1": (whole.replace("e", "\xe9", 3).encode("latin-1"), "refused"),
        "utf-16": (whole.encode("utf-16"), "refused"),
        "spaces for tabs": (whole.replace("\t", " "), "refused"),
        "nine columns": (whole.replace(line, "\t".join(cells[:9]), 1), "refused"),
        "eleven columns": (whole.replace(line, line + "\tx", 1), "refused"),
        "a line of text": (whole.replace(line, "hello", 1), "refused"),
        "an id of text": (with_cell(0, "x"), "refused"),
        "an id of 0": (with_cell(0, "0"), "refused"),
        "an id of -1": (with_cell(0, "-1"), "refused"),
        "a head of text": (with_cell(6, "x"), "either"),
        "a head beyond the sentence": (with_cell(6, "999"), "either"),
        "a head that is itself": (with_cell(6, "1"), "either"),
        "features without a value": (with_cell(5, "Number"), "refused"),
        "features twice": (with_cell(5, "Number=Sing|Number=Plur"), "either"),
        "features of bars": (with_cell(5, "||||"), "refused"),
        "an empty form": (with_cell(1, ""), "refused"),
        "an underscore for a form": (with_cell(1, "_"), "either"),
        "a text that is another": (whole.replace("# text = ", "# text = zzz ", 1), "refused"),
        "no end": (whole.rstrip("\n"), "accepted"),
        "Windows ends of line": (whole.replace("\n", "\r\n"), "accepted"),
        "a byte order mark": ("﻿" + whole, "either"),
        "one sentence twice": (whole + "\n" + whole, "either"),
        "HTML": ("<html></html>", "refused"),
        "zeros": (bytes(1000), "refused"),
        "cut in a line": (whole[: len(whole) // 2 + 7], "either"),
        "ids out of order": (with_cell(0, "5"), "refused"),
        "a span backwards": (whole.replace(line, "3-1\tx" + "\t_" * 8 + "\n" + line, 1), "either"),
    }  # fmt: skip
    for name, (content, expected) in contents.items():
        yield Malformed(f"treebank: {name}", TREEBANK, writes("t.conllu", content), expected)  # type: ignore[arg-type]
    yield Malformed("treebank: as it should be", TREEBANK, writes("t.conllu", whole), "accepted")
