"""`thinkalike diff` and `thinkalike trace`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thinkalike as ta
from thinkalike.errors import InvalidInput

Run = Callable[..., Any]
STEPS = ("nano-pythia-64@step250", "nano-pythia-64@step1000")


@pytest.fixture
def chatty(tmp_path: Path) -> Path:
    """A bundled model whose tokenizer has a chat template."""
    from thinkalike.systems import bundled

    model, tokenizer = bundled.load("nano-pythia-64")
    tokenizer.chat_template = (
        "{% for turn in messages %}[{{ turn['role'] }}] {{ turn['content'] }}\n{% endfor %}"
    )
    model.save_pretrained(tmp_path / "chatty")
    tokenizer.save_pretrained(tmp_path / "chatty")
    return tmp_path / "chatty"


def test_two_steps_of_training(run: Run, tmp_path: Path) -> None:
    said = " ".join(run("diff", *STEPS, "--sentences", 40, "--out", tmp_path / "d").stdout.split())
    assert "how alike a layer stayed" in said
    assert "From nano-pythia-64@step250 to nano-pythia-64@step1000" in said
    layers = pd.read_parquet(tmp_path / "d-layers.parquet")
    shown = ta.Stimuli.from_grammar(40, seed=0)
    again = ta.diff(*STEPS, shown)
    np.testing.assert_allclose(layers["rsa"], again.layers["rsa"])


def test_a_template_on_either_side(run: Run, tmp_path: Path, chatty: Path) -> None:
    """The command gives what Python gives, and the side that has the template matters."""
    tables = {}
    for side in ("--base-chat", "--tuned-chat"):
        run("diff", f"a={chatty}", f"b={chatty}", "--sentences", 20, side, "--out", tmp_path / side)
        tables[side] = pd.read_parquet(tmp_path / f"{side}-features.parquet")
    forth, back = (tables[side]["change"].to_numpy() for side in ("--tuned-chat", "--base-chat"))
    np.testing.assert_allclose(forth, -back, atol=1e-9)
    assert np.abs(forth).max() > 0
    shown = ta.Stimuli.from_grammar(20, seed=0)
    plain, framed = (ta.extract(chatty, shown, chat=chat) for chat in (False, True))
    by_hand = ta.diff({k: plain[k] for k in plain}, {k: framed[k] for k in framed}, shown, resamples=2)
    np.testing.assert_allclose(forth, by_hand.features["change"], atol=1e-6)
    both = ta.diff(str(chatty), str(chatty), shown, extraction={"chat": True}, resamples=2)
    assert (both.features["change"] == 0).all()


def test_a_trace_is_drawn_and_written(run: Run, tmp_path: Path) -> None:
    figure = tmp_path / "trace.svg"
    said = run("trace", *STEPS, "--sentences", 30, "--figure", figure, "--out", tmp_path / "t").stdout
    assert "trace.svg" in said
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    strengths = pd.read_parquet(tmp_path / "t-layers.parquet")
    assert set(strengths["step"]) == {250.0, 1000.0}
    assert {"from", "to", "p_holm"} <= set(pd.read_parquet(tmp_path / "t-features.parquet"))


def test_what_is_refused(run: Run) -> None:
    with pytest.raises(InvalidInput, match="--system-turn has a meaning only with --chat"):
        run("diff", *STEPS, "--system-turn", "Be brief.")
    with pytest.raises(InvalidInput, match="Got 1 checkpoint: a line needs two or more"):
        run("trace", STEPS[0])
