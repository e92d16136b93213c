"""What a step sees: a function of seed and step, rows of one length that begin at sentences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from training.batches import IGNORED, Tokens, causal_batch, cut, masked_batch, rows

SPECIAL = {"pad": 0, "cls": 1, "sep": 2, "mask": 3, "eos": 4}


def test_same_seed_and_step_same_rows_otherwise_others(tokens: Tokens) -> None:
    assert np.array_equal(rows(tokens, seed=0, step=7), rows(tokens, seed=0, step=7))
    assert rows(tokens, seed=0, step=7).tobytes() != rows(tokens, seed=1, step=7).tobytes()
    assert rows(tokens, seed=0, step=7).tobytes() != rows(tokens, seed=0, step=8).tobytes()


def test_rows_are_running_text_from_a_sentence_on_or_whole_bare_sentences(tokens: Tokens) -> None:
    running = {tokens.running[s : s + 16].tobytes() for s in tokens.running_starts}
    edges = [*tokens.bare_starts, len(tokens.bare)]
    bare = {tokens.bare[a:b].tobytes() for a, b in itertools.pairwise(edges)}
    kinds = []
    for step in range(40):
        found = rows(tokens, seed=3, step=step, length=16, size=256).astype(np.uint16)
        assert 256 / 2 < found.size <= 256
        is_bare = all(row.tobytes() in bare for row in found)
        assert is_bare or all(row.tobytes() in running for row in found)
        kinds.append(is_bare)
    assert 2 <= sum(kinds) <= 20  # a quarter in the long run


def test_every_token_of_the_text_is_shown_in_time(tokens: Tokens) -> None:
    marked = Tokens(np.arange(len(tokens.running)), tokens.running_starts, tokens.bare, tokens.bare_starts)
    seen: set[int] = set()
    for step in range(400):
        seen |= set(rows(marked, seed=0, step=step, length=32, size=256).ravel().tolist())
    assert len(seen & set(range(len(tokens.running)))) > 0.95 * len(tokens.running)


def test_cutting_keeps_the_tokens_and_their_order() -> None:
    assert cut(np.arange(12).reshape(2, 6), 3).tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    assert cut(np.arange(5)[None], 3).tolist() == [[0, 1, 2, 3, 4]]
    assert cut(np.arange(7)[None], 3).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_causal_labels_are_the_next_tokens() -> None:
    inputs, labels = causal_batch(np.array([[5, 6, 7, 8]]))
    assert inputs.tolist() == [[5, 6, 7]]
    assert labels.tolist() == [[6, 7, 8]]


@pytest.mark.parametrize("last", [9, SPECIAL["eos"]])
def test_masking_hides_what_it_asks_for_and_nothing_else(last: int) -> None:
    ids = np.full((200, 42), 9)
    ids[:, -1] = last
    inputs, labels = masked_batch(ids, seed=0, step=0, special=SPECIAL, n_tokens=4096, share=0.2)
    assert inputs.shape[1] == 42 + (last == SPECIAL["eos"])
    assert (inputs[:, 0] == 1).all()
    assert (inputs[:, -1] == 2).all()
    asked = labels != IGNORED
    assert asked.mean() == pytest.approx(0.2, abs=0.02)
    assert (inputs[:, 1:-1][~asked[:, 1:-1]] == 9).all()
    assert (labels[asked] == 9).all()
    fates = inputs[asked]
    assert (fates == 3).mean() == pytest.approx(0.8, abs=0.03)
    assert (fates == 9).mean() == pytest.approx(0.1, abs=0.02)


def test_even_one_short_row_has_something_to_predict() -> None:
    for step in range(20):
        _, labels = masked_batch(
            np.array([[9, 9, 4]]), seed=0, step=step, special=SPECIAL, n_tokens=4096, share=0.2
        )
        assert (labels != IGNORED).any()
