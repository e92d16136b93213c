"""The text for a paper says what the run did, and nothing that it did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import thinkalike as ta
from thinkalike.cli.boundary import run
from thinkalike.comparison import Comparison, profile_group
from thinkalike.encoding.importance import IMPORTANCES
from thinkalike.report.methods_text import IMPORTANCES as WORDS
from thinkalike.report.methods_text import POOLINGS as VECTORS
from thinkalike.systems.words import POOLINGS

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
    assert "uphill in Spearman's ρ" not in text


def test_tests_of_geometry_are_said_where_there_were_any(stimuli: ta.Stimuli) -> None:
    said = "letting whole sentences of one system change places (19 permutations)"
    ranges = "Ranges of likeness by geometry come from leaving out a twentieth of the sentences at a time"
    text = ta.methods_text(compared(stimuli, resamples=2, null=19))
    assert said in text
    assert ranges in text
    text = ta.methods_text(compared(stimuli, resamples=0, null=0))
    assert "permutations)" not in text
    assert ranges not in text
    assert "**Vectors.**" not in text  # arrays were given as they are


def test_which_states_of_models_and_how_many_copies(stimuli: ta.Stimuli) -> None:
    arrays = {0: np.random.default_rng(0).normal(size=(len(stimuli), 6))}
    systems = {"net": "nano-pythia-64", "cortex": arrays}
    text = ta.methods_text(ta.compare(systems, stimuli, resamples=0, null=0, extraction={"pooling": "mean"}))
    assert "the vector of an item was the mean of the states at its tokens (site: residual; net)." in text
    models = ["nano-pythia-64", "nano-pythia-64@step1000"]
    made = ta.compare(models, stimuli, resamples=0, null=0, controls="untrained")
    assert made.controls is not None
    draws = len(made.controls.profiles["nano-pythia-64"])
    assert draws > 1
    assert f"with random weights ({draws} of each) were shown the same items" in ta.methods_text(made)


def test_every_pooling_has_words() -> None:
    assert set(VECTORS) == set(POOLINGS)


def test_a_fit_by_ranks_is_said(stimuli: ta.Stimuli) -> None:
    text = ta.methods_text(compared(stimuli, resamples=0, interactions=True, fit="spearman"))
    assert "From there W went uphill in Spearman's ρ of the training pairs" in text


def test_every_importance_has_words() -> None:
    assert set(WORDS) == set(IMPORTANCES)


RNG = np.random.default_rng(0)


class TestGroups:
    TABLE = pd.DataFrame({f"cue_{k}": RNG.choice(list("ab"), 24) for k in range(5)})
    PEOPLE = RNG.normal(size=(3, 24, 6)) + 2 * (TABLE["cue_0"] == "a").to_numpy()[:, None]
    MODELS: ClassVar = {"net": {"early": RNG.normal(size=(24, 4)), "late": PEOPLE[0]}}

    def test_a_model_beside_subjects(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        found = ta.compare_with_group(self.PEOPLE, self.MODELS, steps="zscore", permutations=19)
        text = ta.methods_text(found)
        for said in (
            "3 subjects were measured with the same 24 items.",
            "net (2 layers)",
            "by RSA (Kriegeskorte et al. 2008)",
            "each subject with the mean of the others, and of all",
            "over other items from leaving out parts of them (jackknife)",
            "19 other orders of the models' items",
            "every unit less its mean",
            "A toolbox for representational similarity analysis",
            f"thinkalike {ta.__version__}",
        ):
            assert said in text, said
        assert "encoding model (Salle" not in text
        found.save(tmp_path / "run")
        assert run(["methods", str(tmp_path / "run")]) == 0
        assert capsys.readouterr().out == text

    def test_what_a_measure_does_not_have_is_not_said(self) -> None:
        text = ta.methods_text(ta.compare_with_group(self.PEOPLE, self.MODELS, measure="uniformity"))
        assert "Chance is" not in text
        assert "jackknife" not in text
        assert "Nili" not in text
        assert "Benjamini" not in text
        alone = ta.methods_text(ta.compare_with_group(self.PEOPLE[:1], self.MODELS, permutations=19))
        assert "One subject was measured" in alone
        assert "Noise ceilings" not in alone
        assert "The larger of the two p" not in alone
        assert "p was corrected for all layers and regions (Benjamini and Hochberg 1995)." in alone
        assert "Controlling the false discovery rate" in alone

    def test_by_features_in_regions(self) -> None:
        people = {f"s{k}": {"V1": X, "V2": X[::-1]} for k, X in enumerate(self.PEOPLE)}
        found = ta.compare_with_group(people, self.MODELS, self.TABLE, measure="features", resamples=0)
        text = ta.methods_text(found)
        assert "in 2 regions (V1 and V2)" in text
        assert "the weighted Kendall τ of their importance profiles" in text
        assert "Tests are of the weighted τ of the features' strengths" in text
        assert "arXiv:2406.12620" in text

    def test_the_profile_of_a_group(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        times = {f"s{k}": dict.fromkeys(range(8), X) for k, X in enumerate(self.PEOPLE)}
        found = profile_group(times, self.TABLE, distance="cosine")
        text = ta.methods_text(found)
        for said in (
            "8 regions or points in time (0 to 7)",
            "5 features that were analysed: cue 0, cue 1",
            "the cosine distance between two items",
            "from how folds of held-out items differ",
        ):
            assert said in text, said
        found.save(tmp_path / "run")
        assert run(["methods", str(tmp_path / "run")]) == 0
        assert capsys.readouterr().out == text
