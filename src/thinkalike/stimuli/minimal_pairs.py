"""Minimal pairs: a right sentence and the same sentence with one thing wrong."""

from __future__ import annotations

from thinkalike.stimuli.sentence_pairs import chosen_values, draw_pairs, pair_grammar, pair_texts

KINDS = ("agreement", "attraction", "inversion", "pronoun")


def minimal_pairs(
    n: int, seed: int, kind: str, *, capital: bool = False, full_stop: bool = False
) -> list[tuple[str, str]]:
    """Make `n` pairs (right, wrong), no two alike.

    Parameters
    ----------
    kind : one of `KINDS`:

        - "agreement", of a verb, "do" or "be" with its subject: "the king comes", not "the king come";
        - "attraction", the same past a noun of the other number: "the king near the girls was seen", not
          "… were seen";
        - "inversion" in wh-questions: "why does he come", not "why he does come";
        - "pronoun", the number of a reflexive: "the kings saw themselves", not "the kings saw himself".
    """
    grammar = pair_grammar("minimal")
    (kind,) = chosen_values(grammar, "kind", kind)
    drawn = draw_pairs(grammar, n, seed, [{"kind": kind}])
    return [pair_texts(grammar, one, capital=capital, full_stop=full_stop) for one in drawn]
