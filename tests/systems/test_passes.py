"""The order of computation: everything once, long texts first, never too much at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.errors import InvalidInput
from thinkalike.systems.passes import TOKENS_AT_ONCE, make_plan, n_chunks


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.integers(1, 900), st.integers(0, 7)), min_size=1, max_size=40),
    st.one_of(st.just("auto"), st.integers(1, 20)),
    st.integers(0, 99),
)
def test_every_row_once_and_no_pass_too_large(texts, batch_size, seed):
    lengths = np.array([length for length, _ in texts])
    row_text = np.repeat(np.arange(len(texts)), [n for _, n in texts])
    if not len(row_text):
        return
    row_text = np.random.default_rng(seed).permutation(row_text)
    plan = make_plan(row_text, lengths, batch_size=batch_size, device="cpu")
    assert sorted(plan.order) == list(range(len(row_text)))
    assert (np.diff(lengths[row_text[plan.order]]) <= 0).all()
    rows = np.concatenate([plan.rows(chunk) for chunk in range(n_chunks(plan))])
    np.testing.assert_array_equal(rows, plan.order)
    for chunk in range(n_chunks(plan)):
        passes = plan.passes(chunk)
        assert set(np.concatenate(passes)) == set(row_text[plan.rows(chunk)])
        for texts_of_pass in passes:
            if batch_size == "auto":
                n_tokens = len(texts_of_pass) * lengths[texts_of_pass].max()
                assert n_tokens <= 1.5 * TOKENS_AT_ONCE["cpu"] or len(texts_of_pass) == 1
            else:
                assert len(texts_of_pass) <= batch_size


def test_a_gpu_takes_more_at_once():
    row_text, lengths = np.arange(1000), np.full(1000, 50)
    cpu, gpu = (make_plan(row_text, lengths, batch_size="auto", device=name) for name in ("cpu", "cuda:0"))
    assert gpu.chunk_rows > 5 * cpu.chunk_rows


def test_not_a_batch_size():
    with pytest.raises(InvalidInput, match="'many' was given"):
        make_plan(np.arange(3), np.ones(3, int), batch_size="many", device="cpu")
