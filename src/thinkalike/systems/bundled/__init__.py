"""The bundled nano models: small language models, trained on real English, that need no network.

>>> from thinkalike.systems import bundled
>>> "nano-bert" in bundled.names()
True

`resolve` gives a name's folder to anything that takes a path; `load` gives the model and its tokenizer.
"""

from __future__ import annotations

from thinkalike.systems.bundled.bundle import load, names, resolve, sample_text
from thinkalike.systems.bundled.cards import Card, card, cards

__all__ = ["Card", "card", "cards", "load", "names", "resolve", "sample_text"]
