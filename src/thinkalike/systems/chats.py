"""Texts as a turn of a chat: the model's own template around them, items only of words inside the turn."""

from __future__ import annotations

from dataclasses import dataclass

from thinkalike.errors import InvalidInput, one_line
from thinkalike.types import Tokenizer

TURN = "\ue000turn\ue001"
"""Stands in for a text, to see what the template puts around it; no text has these characters"""

MEND = "mend tokenizer.chat_template (chat_template.jinja in a folder), or leave out chat (--chat)."


@dataclass(frozen=True)
class ChatFrame:
    """What stands before and after a turn of the user.

    Attributes
    ----------
    before, after
        The rest of the chat, as text.
    """

    before: str
    after: str

    def around(self, text: str) -> str:
        return f"{self.before}{text}{self.after}"


def chat_frame(
    tokenizer: Tokenizer, name: str, *, system_turn: str | None = None, answers: bool = False
) -> ChatFrame:
    """What the chat template of a model puts around a turn of the user.

    Parameters
    ----------
    name
        Of the system, for messages.
    system_turn
        A turn of the system before it.
    answers
        Whether the model's turn begins behind it, for it to write.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise InvalidInput(
            f"The tokenizer of {name} has no chat template: leave out chat (--chat), or give the "
            "tokenizer of a model that was trained to chat."
        )
    turns = [] if system_turn is None else [{"role": "system", "content": system_turn}]
    turns.append({"role": "user", "content": TURN})
    try:
        whole = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=answers)
    except Exception as error:  # templates raise what they like
        way_out = MEND if system_turn is None else "leave out the system turn."
        raise InvalidInput(
            f"The chat template of {name} refuses this chat ({one_line(error)}): {way_out}"
        ) from error
    before, found, after = str(whole).partition(TURN)
    if not found or TURN in after:
        shown = "twice or more" if found else "not at all, or changed"
        raise InvalidInput(
            f"The chat template of {name} shows the user's turn {shown}, so that no word could be found in "
            f"it: {MEND}"
        )
    return ChatFrame(before, after)
