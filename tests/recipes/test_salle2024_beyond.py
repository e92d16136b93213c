"""The open questions of salle2024 on planted tables: each look measures what its rule says, and can fail."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import cast

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr, weightedtau

from tests.recipes.planted_tables import DOWN, MODELS, NOTHING, UP, Planted, asked, effects, ranked
from thinkalike.recipes.salle2024 import beyond
from thinkalike.recipes.salle2024.rules import BEYOND_RULES
from thinkalike.recipes.salle2024.sets import NATURAL, NOT_FIRST, PAPER, UNTANGLED
from thinkalike.recipes.salle2024.work import Work


def tau(a: pd.DataFrame, b: pd.DataFrame) -> float:
    """Mean weighted τ of scipy over the blocks of two models."""
    return float(
        np.mean(
            [weightedtau(x, y, rank=True).statistic for x, y in product(a.to_numpy()[1:], b.to_numpy()[1:])]
        )
    )


def test_where_nothing_is_given_every_question_says_why_it_is_not_answered() -> None:
    tables = {"bert": UP, "gpt2": DOWN, "mamba": ranked("tense")}
    kinds = dict.fromkeys((PAPER, NOT_FIRST, UNTANGLED), tables)
    found = beyond.look_beyond(cast("Work", Planted(tables=tables, kinds=kinds)))
    assert [statement.rule for statement in found] == [
        BEYOND_RULES[name]
        for name in (
            "first words", "other grammar", "natural text", "other language", "untrained", "second seeds",
            "interactions", "feature set", "presets", "checkpoints", "positions silenced",
            "trained without positions", "other positions", "nearer without positions", "positions or seed",
            "positions or architecture",
        )
    ]  # fmt: skip
    for statement in found:
        assert (statement.verdict == "cannot be tested") == (not statement.effects)
        assert statement.found.endswith(".")
    untested = [one for one in found if one.verdict == "cannot be tested"]
    assert len(untested) == 12
    assert all(one.found for one in untested)


@pytest.mark.parametrize(
    ("other", "share", "verdict"),
    [
        (ranked("number"), 1.0, "agrees"),
        (ranked("tense"), 0.0, "differs"),
        (pd.concat([ranked("number").iloc[:4], ranked("tense").iloc[:1].set_axis([4])]), 0.75, "agrees"),
    ],
)
def test_other_words_are_compared_by_what_leads(other: pd.DataFrame, share: float, verdict: str) -> None:
    own = ranked("number", layers=len(other))
    if len(other) == 5:  # its last block is led by another feature
        other = other.copy()
        other.loc[4] = ranked("tense").loc[1]
    kinds = {PAPER: {"bert": own}, NOT_FIRST: {"bert": other}}
    found = asked(beyond.LOOKS[0], Planted(kinds=kinds))
    assert effects(found) == {"bert": share}
    assert found.verdict == verdict


def test_natural_text_is_asked_for_by_name() -> None:
    found = asked(beyond.LOOKS[2], Planted())
    assert found.found == "No treebank was given: --set treebank=FILE.conllu shows its sentences."
    kinds = {PAPER: {"bert": UP}, NATURAL: {"bert": DOWN}}
    given = Planted(replace(NOTHING, treebank="bank.conllu"), kinds=kinds)
    assert asked(beyond.LOOKS[2], given).verdict == "differs"


def test_another_language_is_judged_by_part_of_speech_in_the_models_that_read_it() -> None:
    settings = replace(NOTHING, other_language="fr.conllu", reads_other_language=("gpt2",))
    leads = Planted(settings, {"gpt2": ranked("part_of_speech"), "bert": ranked("tense")})
    found = asked(beyond._other_language, leads)
    assert (effects(found), found.verdict) == ({"gpt2": 1.0}, "agrees")
    assert asked(beyond._other_language, Planted(settings, {"gpt2": UP})).verdict == "differs"
    nobody = replace(settings, reads_other_language=())
    assert asked(beyond._other_language, Planted(nobody)).verdict == "cannot be tested"


def test_untrained_copies_are_taken_from_the_likeness_of_the_models() -> None:
    tables = {"bert": UP, "gpt2": UP, "mamba": DOWN, "gpt2, untrained": DOWN}
    found = asked(beyond._untrained, Planted(tables=tables))
    assert effects(found) == pytest.approx(
        {
            "bert and gpt2": tau(UP, UP) - tau(UP, DOWN),
            "bert and mamba": 0.0,
            "gpt2 and mamba": tau(UP, DOWN) - tau(DOWN, DOWN),
        }
    )
    assert found.verdict == "differs"
    only = Planted(replace(NOTHING, state_space=None), tables)
    assert asked(beyond._untrained, only).verdict == "agrees"


def test_later_checkpoints_are_nearer_to_the_finished_model() -> None:
    settings = replace(NOTHING, checkpoints=("m@step1", "m@step2", "m"))
    half = ranked("number", "word_position")
    tables = {"m@step1": DOWN, "m@step2": half, "m": UP}
    found = asked(beyond._checkpoints, Planted(settings, tables))
    expected = weightedtau(half.loc[1], UP.loc[1]).statistic - weightedtau(DOWN.loc[1], UP.loc[1]).statistic
    assert effects(found) == pytest.approx({"step2 after step1": expected})
    assert found.verdict == "agrees"
    swapped = {**tables, "m@step1": half, "m@step2": DOWN}
    assert asked(beyond._checkpoints, Planted(settings, swapped)).verdict == "differs"
    for few in ((), ("m",), ("m@step1", "m")):  # nothing can come nearer
        alone = asked(beyond._checkpoints, Planted(replace(NOTHING, checkpoints=few), tables))
        assert alone.found == "It takes two checkpoints or more, and the finished model."
    lost = Planted(replace(NOTHING, checkpoints=("nano-none@a", "nano-none@b")))
    assert "nano-none@a and nano-none@b" in asked(beyond._checkpoints, lost).found


def test_positions_set_to_0() -> None:
    settings = replace(NOTHING, without_positions=("gpt2",))
    much, little = ranked("word_position"), ranked("number", "tense", "word_length")
    silenced = asked(beyond._silenced, Planted(settings, {"gpt2": much, "gpt2, positions": little}))
    lost = much.loc[1, "word_position"] - little.loc[1, "word_position"]
    assert effects(silenced) == pytest.approx({"gpt2": lost})
    assert silenced.verdict == "agrees"
    assert asked(beyond._silenced, Planted(settings, {"gpt2": much})).verdict == "differs"


def test_the_authors_choices_are_compared_on_some_sentences() -> None:
    settings = replace(NOTHING, preset_sentences=12)
    tables = {**dict.fromkeys(MODELS, UP), "mamba, salle2024": DOWN}
    found = asked(beyond._presets, Planted(settings, tables))
    assert effects(found) == {"bert": 1.0, "gpt2": 1.0, "mamba": 0.0}
    assert found.verdict == "differs"
    assert asked(beyond._presets, Planted(settings, dict.fromkeys(MODELS, UP))).verdict == "agrees"


def test_another_list_of_features_is_the_worst_of_those_with_one_left_out() -> None:
    rng = np.random.default_rng(2)
    letters = list("abcdefghi")  # with few features τ takes few values, and rounding would order equal ones
    tables = {name: pd.DataFrame(rng.random((4, 9)), index=range(4), columns=letters) for name in MODELS}
    more = {f"{name}, with zipf": tables[name].assign(zipf=rng.random(4)) for name in MODELS}
    found = effects(asked(beyond._feature_set, Planted(tables={**tables, **more})))

    def matrix(given: list[pd.DataFrame]) -> np.ndarray:
        rows = np.concatenate([one.to_numpy() for one in given])
        taus = [[weightedtau(x, y, rank=True).statistic for y in rows] for x in rows]
        return np.array(taus)[np.triu_indices(len(rows), k=1)]

    own = matrix(list(tables.values()))
    without = [
        spearmanr(own, matrix([one.drop(columns=name) for one in tables.values()])).statistic
        for name in letters
    ]
    added = spearmanr(own, matrix(list(more.values()))).statistic
    assert found == pytest.approx({"the worst feature left out": min(without), "word frequency added": added})
