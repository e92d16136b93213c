"""Sentences from rules and words that live in TOML files; `docs/stimuli.md` says how to write one's own."""

from thinkalike.stimuli.grammar.grammar_files import Grammar, copy_grammar, load_grammar, shipped_grammars
from thinkalike.stimuli.grammar.sampling import Draw, draw
from thinkalike.stimuli.grammar.tabulation import finished_text, tabulate

__all__ = [
    "Draw",
    "Grammar",
    "copy_grammar",
    "draw",
    "finished_text",
    "load_grammar",
    "shipped_grammars",
    "tabulate",
]
