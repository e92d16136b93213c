"""Words that a reader may not know, each explained where it stands: a touch opens a note."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

TERMS = {
    "features": "Properties of what the systems were shown, such as part of speech or number. A feature "
    "matters to a layer when items that differ in it lie further apart there.",
    "layers": "A model computes in steps. After each of them every word has a vector; layer 0 is what "
    "goes into the first step.",
    "chance": "What systems that have nothing to do with each other would give. It is found by dealing "
    "the strengths of the features of one system out anew, thousands of times.",
    "untrained": "The same models with random weights, which have learned nothing. What they share "
    "comes from how they are built and from the sentences.",
    "other sentences": "The sentences that were shown are a sample. Parts of them are left out in turn, "
    "to see how much the numbers move.",
    "other analyses": "The same question with other choices that one could defend: other distances, "
    "without first words, and so on.",
    "geometry": "Which items lie near each other and which far apart, whatever the reason.",
    "RSA": "Representational similarity analysis: the rank correlation of all distances between items "
    "in one layer with those in the other. It compares geometry and knows no features.",
    "τ_w": "Weighted Kendall τ: how alike two layers order the features by importance, the first places "
    "counting most. 1 is the same order, 0 none in common, −1 the reverse.",
    "ceiling": "What two systems that are alike in truth would reach with so many sentences: no measure of a "
    "sample can be expected to be higher.",
    "q": "How often chance alone would do as much, corrected for the number of pairs that were tested. "
    "Below 0.05 we speak of more than chance.",
}
_FIND = re.compile(
    r"(?<![\w-])(" + "|".join(map(re.escape, sorted(TERMS, key=len, reverse=True))) + r")(?![\w-])", re.I
)
_KEYS = {term.lower(): k for k, term in enumerate(TERMS)}


def typeset(text: str) -> Markup:
    """τ_w with a true subscript."""
    return Markup(str(escape(text)).replace("τ_w", "τ<sub>w</sub>"))


def explained(text: str) -> Markup:
    """`text` with the first place of each term as a button that opens its explanation."""
    told: set[int] = set()

    def button(found: re.Match[str]) -> str:
        key = _KEYS[found[0].lower()]
        if key in told:
            return found[0]
        told.add(key)
        return f'<button type="button" class="term" popovertarget="term-{key}">{typeset(found[0])}</button>'

    parts = re.split(r"(<[^>]*>)", str(escape(text)))  # markup that is there already stays as it is
    return Markup("".join(part if part.startswith("<") else _FIND.sub(button, part) for part in parts))
