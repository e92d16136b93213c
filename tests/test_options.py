"""Options: one name for one idea, whole numbers in range, and nothing that is given without effect."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thinkalike as ta
from thinkalike.encoding.settings import Settings
from thinkalike.errors import InvalidInput
from thinkalike.options import OTHER_NAMES, one_name, whole_number
from thinkalike.stitching import TaskFit

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"x": list("ab") * 6, "y": list("aaabbb") * 2})
X = RNG.normal(size=(12, 3))

PUBLIC: dict[str, Any] = {
    "compare": ta.compare,
    "profile": ta.profile,
    "similarity": ta.similarity,
    "explain": ta.explain,
    "extract": ta.extract,
    "stitch": ta.stitch,
    "stream_cka": ta.stream_cka,
    "MLEM": ta.MLEM,
    "Settings": Settings,
    "TaskFit": TaskFit,
}


@pytest.mark.parametrize("name", PUBLIC)
def test_one_idea_has_one_name(name: str) -> None:
    two_by_design = {"measure", "measures"}  # one measure of a matrix, several of a comparison
    two_by_design |= {"fit", "fit_by"}  # `fit` is a method of MLEM, and so cannot be an option of it
    old = set(OTHER_NAMES) - two_by_design
    assert not old & set(inspect.signature(PUBLIC[name]).parameters)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ta.MLEM(cv=7), "Got cv=: the option is called n_folds"),
        (lambda: ta.profile(X, TABLE, cv=3), "the option is called n_folds"),
        (lambda: ta.profile(X, TABLE, design="full"), "the option is called interactions"),
        (lambda: ta.profile(X, TABLE, n_resamples=3), "the option is called resamples"),
        (lambda: ta.compare([X, X], TABLE, n_resamples=3), "the option is called resamples"),
        (lambda: ta.compare([X, X], TABLE, measure="cka"), "the option is called measures"),
        (lambda: ta.similarity([X, X], measures="cka"), "the option is called measure"),
        (lambda: ta.similarity([X, X], n_samples=9), "the option is called n_permutations"),
        (lambda: ta.stitch("a", "b", "text", n_resamples=9), "the option is called resamples"),
        (lambda: ta.profile(X, TABLE, fit_by="spearman", interactions=True), "the option is called fit"),
        (lambda: ta.MLEM(fit="spearman"), "the option is called fit_by"),
    ],
)
def test_other_names_are_refused_with_the_right_one(call: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
def test_an_option_that_goes_on_to_others_may_have_a_name_that_is_another_elsewhere() -> None:
    made = ta.profile(X, TABLE, fit="spearman", interactions=True)
    assert made.settings["fit"] == "spearman"
    compared = ta.compare([X, X**2], TABLE, fit="spearman", interactions=True, resamples=0)
    assert compared.settings["fit"] == "spearman"


def test_a_name_that_is_none_is_an_error_as_ever() -> None:
    with pytest.raises(TypeError, match="colour"):
        ta.similarity([X, X], colour="red")

    @one_name
    def without_folds(x: int) -> int:
        return x

    with pytest.raises(TypeError, match="cv"):  # there is no right name to give
        without_folds(1, cv=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [-1, 1.5, float("nan"), float("inf"), "3", None, True, 10**30, 101])
def test_whole_numbers(value: object) -> None:
    assert whole_number("n", 3.0, 1, 100) == 3
    assert whole_number("n", np.int64(3), 1, 100) == 3
    with pytest.raises(InvalidInput, match=r"Got n=.*give a whole number from 1 to 100"):
        whole_number("n", value, 1, 100)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ta.similarity([X, X], measure="cka", distance="cosine"), "is for measure='rsa': cka has no"),
        (lambda: ta.similarity([X, X], measure="cka", distance="nonsense"), "is for measure='rsa'"),
        (
            lambda: ta.similarity([X, X], measure="cka", n_permutations=-1),
            "whole number from 0 to 10,000,000",
        ),
        (lambda: ta.similarity([X, X], stimuli=TABLE), "stimuli= is for activations"),
        (lambda: ta.compare([X, X], TABLE, null=-1), "Got null=-1: give a whole number from 0 to 10,000,000"),
        (lambda: ta.compare([X, X], TABLE, null=10**20), "give a whole number from 0 to 10,000,000"),
        (lambda: ta.similarity([X, X], measure="rsa", distance="nonsense"), "no distance 'nonsense'"),
        (lambda: ta.compare([X, X], TABLE, pooling="mean"), "give extraction={'pooling': …}"),
        (lambda: ta.compare([X, X], TABLE, extraction={"poling": "mean"}), "no option of extract 'poling'"),
        (lambda: ta.compare([X, X], TABLE, extraction={"pooling": "mean"}), "all systems are arrays"),
        (lambda: ta.diff(X, X, extraction={"pooling": "mean"}), "all systems are arrays"),
        (lambda: ta.diff(X, "gpt2", base_extraction={"chat": True}), "all systems are arrays"),
        (lambda: ta.diff(X, "gpt2", tuned_extraction={"chatt": True}), "no option of extract 'chatt'"),
        (lambda: ta.trace([X, X], extraction={"pooling": "mean"}), "all systems are arrays"),
        (lambda: ta.fingerprint(X, dtype="float16"), "all systems are arrays"),
        (lambda: ta.compare_with_group([X, X], [X], extraction={"site": "mlp"}), "all systems are arrays"),
        (lambda: ta.compare([X, X], TABLE, resamples=10**20), "from 0 to 100,000"),
        (lambda: ta.compare([X, X], TABLE, resamples=float("nan")), "from 0 to 100,000"),
        (lambda: ta.compare([X, X], TABLE, seed=float("nan")), "Got seed=nan"),
        (lambda: ta.compare([X, X], TABLE, out="zzz://lab/run"), "an address of no kind that is known"),
        (lambda: ta.compare([X, X], TABLE, measures="probe"), "makes no matrix over layers"),
        (lambda: ta.profile("gpt2", TABLE), "Got gpt2: give activations"),
        (lambda: ta.MLEM(preset="salle2024", alpha="cv", n_folds=7).fit(TABLE, X), "leave out n_folds"),
        (lambda: ta.MLEM(n_folds=7).fit(TABLE, X), "n_folds is for choosing alpha, and alpha=1.0"),
        (lambda: ta.MLEM(alphas=[1.0]).fit(TABLE, X), "alphas is for choosing alpha"),
        (lambda: ta.MLEM(interactions="yes").fit(TABLE, X), "give True or False"),
    ],
)
def test_what_would_have_no_effect_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()


def test_a_plan_holds_all_settings() -> None:
    from thinkalike.comparison.profiling import plan_profiles

    stimuli = ta.Stimuli.from_table(TABLE)
    with pytest.raises(InvalidInput, match="A plan was given"):
        ta.profile(X, stimuli, plan=plan_profiles(stimuli, n_folds=2), distance="cosine")
