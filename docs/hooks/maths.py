"""Formulas become MathML when the site is built: every browser draws it, and nothing is fetched."""

from __future__ import annotations

import html
import re
from typing import Any

TAU = re.compile(r"(<(code|pre|script|style)\b.*?</\2>|<[^>]*>)|τ_w", re.DOTALL)
"""Code and tags, which stay as they are, or τ_w in the text"""
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace what `pymdownx.arithmatex` marked as a formula, and give τ_w its true subscript."""
    content = FORMULA.sub(lambda found: formula(found[2], block=found[1] == "div"), content)
    return TAU.sub(lambda found: found[1] or "τ<sub>w</sub>", content)


def formula(tex: str, *, block: bool) -> str:
    """TeX, as it stands in the page, as a MathML element."""
    from latex2mathml.converter import convert

    return convert(html.unescape(tex).strip(), display="block" if block else "inline")
