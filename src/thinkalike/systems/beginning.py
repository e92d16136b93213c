"""What stands before a text when a model reads it: the beginning-of-sequence token, or nothing.

A model that was trained with such a token treats whatever comes first as if it were one: its vector is huge,
and later words look back at it. So texts should begin as they did in training, as far as that can be known.
"""

from __future__ import annotations

from dataclasses import dataclass

from thinkalike.errors import InvalidInput
from thinkalike.types import Tokenizer

Bos = bool | str | None
"""True, False, "auto", or None for what the tokenizer does"""


@dataclass(frozen=True)
class Beginning:
    """How texts begin, and why.

    Attributes
    ----------
    bos
        For `Reader`: True puts the token, False takes it away, None leaves it to the tokenizer.
    token
        What stands first; None for nothing but the text.
    why
        A key of `REASONS`.
    unused
        The tokenizer's own beginning-of-sequence token where texts begin without it.
    """

    bos: bool | None
    token: str | None
    why: str
    unused: str | None


REASONS = {
    "template": "the chat template begins texts so",
    "asked": "it was asked for",
    "tokenizer": "the tokenizer begins texts so",
    "stated": "the tokenizer's configuration says so (add_bos_token)",
    "separator": "the token that ends texts also begins them: in training each text stood behind one",
    "unknown": "the tokenizer has such a token, and nothing says whether texts began with it in training",
    "none": "the tokenizer has no such token",
}


def begin_texts(tokenizer: Tokenizer, bos: Bos = "auto") -> Beginning:
    """Settle how texts begin for a tokenizer.

    Parameters
    ----------
    bos : True, False, None, or "auto": as in training, where that can be known. In this order: as the
        tokenizer begins texts by itself; as its configuration says (`add_bos_token`); with the token that
        also ends texts, if that is one and the same, for then it stood between the texts of the training;
        else without.
    """
    if bos not in (True, False, None, "auto"):
        raise InvalidInput(f"Got bos={bos!r}: give True, False, 'auto', or None for what the tokenizer does.")
    own, begun = tokenizer.bos_token, begins_by_itself(tokenizer)
    if isinstance(bos, bool):
        return _settled(tokenizer, bos, begun, "asked")
    if begun is not None or bos is None:
        return _settled(tokenizer, None, begun, "tokenizer")
    stated = getattr(tokenizer, "init_kwargs", {}).get("add_bos_token")
    if own is None:
        return _settled(tokenizer, None, begun, "none")
    if stated is not None:
        return _settled(tokenizer, bool(stated), begun, "stated")
    separates = own == tokenizer.eos_token
    return _settled(tokenizer, separates or None, begun, "separator" if separates else "unknown")


def begins_by_itself(tokenizer: Tokenizer) -> str | None:
    """The token that the tokenizer itself puts before a text (`<s>`, `[CLS]`), if any."""
    encoded = tokenizer("a", return_offsets_mapping=True, verbose=False)
    ids, spans = encoded["input_ids"], encoded["offset_mapping"]
    if not is_begun(tokenizer, ids, spans):
        return None
    return str(tokenizer.convert_ids_to_tokens(ids[0]))


def is_begun(tokenizer: Tokenizer, ids: list[int], spans: list[tuple[int, int]]) -> bool:
    """Whether a tokenised text begins with a token that stands for no part of it."""
    first = {tokenizer.bos_token_id, tokenizer.cls_token_id} - {None}
    return bool(ids) and ids[0] in first and spans[0][0] == spans[0][1]


def _settled(tokenizer: Tokenizer, bos: bool | None, begun: str | None, why: str) -> Beginning:
    token = {True: begun or tokenizer.bos_token, False: None, None: begun}[bos]
    return Beginning(bos, token, why, None if token else tokenizer.bos_token)
