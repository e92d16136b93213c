"""The text for a paper says what the run did, and nothing that it did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinkalike as ta
from thinkalike.cli.boundary import run
from thinkalike.comparison import Comparison
from thinkalike.encoding.importance import IMPORTANCES
from thinkalike.report.methods_text import IMPORTANCES as WORDS

pytestmark = pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")


def compared(stimuli: ta.Stimuli, **options: Any) -> Comparison:
    rng = np.random.default_rng(0)
    systems = {name: {k: rng.normal(size=(len(stimuli), 6)) for k in range(2)} for name in ("cortex", "net")}
    return ta.compare(systems, stimuli, **options)


@pytest.fixture(scope="module")
def stimuli() -> ta.Stimuli:
    return ta.Stimuli.from_grammar(24, seed=0)


def test_it_says_what_was_done(
    stimuli: ta.Stimuli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comparison = compared(
        stimuli,
        resamples=2,
        measures=["cka"],
        distance="cosine",
        alpha=2.5,
        out=tmp_path / "run",
    )
    text = ta.methods_text(comparison)
    for said in (
        f"{len(stimuli):,} words in 24 sentences",
        stimuli.digest[:16],
        "cortex (2 layers) and net (2 layers)",
        "the cosine distance between two items",
        "the ridge penalty was 2.5",
        "in 5 folds over items",
        "the drop in ρ expected when its differences are permuted over pairs",
        "without each tenth of them (jackknife)",
        "CKA",
        f"thinkalike {ta.__version__}",
        "arXiv:2406.12620",
    ):
        assert said in text, said
    assert "random weights" not in text
    assert run(["methods", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out == text


def test_what_was_not_done_is_not_said(stimuli: ta.Stimuli) -> None:
    text = ta.methods_text(compared(stimuli, resamples=0, importance="drop"))
    assert "the drop in ρ when the model is fitted without it" in text
    assert "jackknife" not in text
    assert "CKA" not in text
    assert "chosen on inner folds" in text


def test_every_importance_has_words() -> None:
    assert set(WORDS) == set(IMPORTANCES)
