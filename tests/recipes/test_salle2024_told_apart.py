"""Seed, positions and architecture on planted tables: each look measures what its rule says."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from scipy.stats import weightedtau

from tests.recipes.planted_tables import DOWN, FEATURES, MODELS, NOTHING, UP, Planted, asked, effects, ranked
from thinkalike.recipes.salle2024 import told_apart
from thinkalike.recipes.salle2024.experiment import by_kind, second_cast
from thinkalike.recipes.salle2024.sets import PAPER
from thinkalike.recipes.salle2024.work import Work

MUCH, LITTLE = ranked("word_position"), ranked("number", "tense", "word_length")
SETTINGS = replace(
    NOTHING, position_controls=("gpt2", "free", "rotary"), second_seeds=("gpt2-seed1", "elsewhere-seed1")
)
TABLES = {"bert": DOWN, "gpt2": UP, "mamba": LITTLE, "gpt2-seed1": UP, "free": UP, "rotary": UP}


def tau(a: pd.DataFrame, b: pd.DataFrame) -> float:
    """τ_w of scipy between two models whose blocks are all alike."""
    return float(weightedtau(a.loc[1], b.loc[1]).statistic)


def test_a_second_seed_must_be_nearer_than_any_other_architecture() -> None:
    found = asked(told_apart.second_seeds, Planted(SETTINGS, TABLES))
    assert effects(found) == pytest.approx({"gpt2": 1.0 - max(tau(UP, DOWN), tau(UP, LITTLE))})
    assert found.verdict == "agrees"
    assert asked(told_apart.second_seeds, Planted(SETTINGS, {**TABLES, "bert": UP})).verdict == "differs"
    absent = Planted(replace(NOTHING, transformers=("nano-x",), second_seeds=("nano-x-seed1",)))
    assert asked(told_apart.second_seeds, absent).found == "No such model is here: nano-x-seed1 would be."


def test_other_positions_must_be_nearer_than_any_other_architecture() -> None:
    tables = {**TABLES, "rotary": MUCH}
    found = asked(told_apart.positions_or_architecture, Planted(SETTINGS, tables))
    other = max(tau(UP, DOWN), tau(UP, LITTLE))
    assert effects(found) == pytest.approx({"free": 1.0 - other, "rotary": tau(UP, MUCH) - other})
    assert found.verdict == ("agrees" if tau(UP, MUCH) - other >= 0.05 else "differs")
    assert asked(told_apart.positions_or_architecture, Planted(SETTINGS, TABLES)).verdict == "agrees"
    moved = {**TABLES, "free": DOWN}
    assert asked(told_apart.positions_or_architecture, Planted(SETTINGS, moved)).verdict == "differs"


def test_positions_may_change_a_model_as_much_as_a_seed_does() -> None:
    found = asked(told_apart.positions_or_seed, Planted(SETTINGS, {**TABLES, "free": LITTLE}))
    assert effects(found) == pytest.approx({"free": 1.0 - tau(UP, LITTLE), "rotary": 0.0})
    assert found.verdict == "differs"
    assert asked(told_apart.positions_or_seed, Planted(SETTINGS, TABLES)).verdict == "agrees"
    for seeds in ((), ("elsewhere-seed1",)):
        alone = Planted(replace(SETTINGS, second_seeds=seeds), TABLES)
        assert asked(told_apart.positions_or_seed, alone).verdict == "cannot be tested"
    named = replace(
        SETTINGS,
        transformers=("bert", "nano-x"),
        position_controls=("nano-x", "free"),
        second_seeds=("nano-x-seed1",),
    )
    found = asked(told_apart.positions_or_seed, Planted(named, TABLES))
    assert found.found == "No such model is here: nano-x-seed1 would be."


def test_without_positions_it_may_come_nearer_to_a_model_that_has_none() -> None:
    found = asked(told_apart.nearer_without, Planted(SETTINGS, {**TABLES, "free": LITTLE}))
    assert effects(found) == pytest.approx({"free": 1.0 - tau(UP, LITTLE)})
    assert found.verdict == "agrees"
    assert asked(told_apart.nearer_without, Planted(SETTINGS, TABLES)).verdict == "differs"
    nobody = Planted(replace(SETTINGS, state_space=None), TABLES)
    assert asked(told_apart.nearer_without, nobody).verdict == "cannot be tested"


def test_word_position_without_positions_and_with_other_ones() -> None:
    tables = {**TABLES, "gpt2": MUCH, "free": LITTLE, "rotary": MUCH}
    lost = float(MUCH.loc[1, "word_position"] - LITTLE.loc[1, "word_position"])
    without = asked(told_apart.trained_without, Planted(SETTINGS, tables))
    other = asked(told_apart.other_positions, Planted(SETTINGS, tables))
    assert effects(without) == pytest.approx({"free": lost})
    assert effects(other) == pytest.approx({"rotary": 0.0})
    assert {without.verdict, other.verdict} == {"agrees"}
    turned = {**tables, "free": MUCH, "rotary": LITTLE}
    assert asked(told_apart.trained_without, Planted(SETTINGS, turned)).verdict == "differs"
    assert asked(told_apart.other_positions, Planted(SETTINGS, turned)).verdict == "differs"


def test_those_that_are_not_here_are_named_and_the_others_judged() -> None:
    some = Planted(replace(SETTINGS, position_controls=("gpt2", "free", "nano-none")), TABLES)
    found = asked(told_apart.positions_or_architecture, some)
    assert set(effects(found)) == {"free"}
    assert found.found.endswith("Not here: nano-none.")


def test_a_model_is_like_itself_and_blocks_are_matched_by_depth() -> None:
    rng = np.random.default_rng(0)
    deep = pd.DataFrame(rng.normal(size=(7, len(FEATURES))), columns=list(FEATURES))  # layer 0 is no block
    shallow = pd.DataFrame(rng.normal(size=(3, len(FEATURES))), columns=list(FEATURES))
    assert told_apart.alike(deep, deep) == pytest.approx(1.0)
    pairs = [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2)]
    expected = np.mean([weightedtau(deep.loc[i], shallow.loc[j]).statistic for i, j in pairs])
    assert told_apart.alike(deep, shallow) == pytest.approx(expected)
    assert told_apart.alike(shallow, deep) == pytest.approx(expected)


def test_second_seeds_of_all_models_have_a_column_of_verdicts() -> None:
    seeds = tuple(f"{name}-seed1" for name in MODELS)
    first = dict.fromkeys(MODELS, ranked("part_of_speech"))
    second = dict.fromkeys(seeds, ranked("number"))
    whole = Planted(replace(NOTHING, second_seeds=seeds), {**first, **second})
    seen = {PAPER: [whole.observation(None)] * NOTHING.sets}
    again = second_cast(cast("Work", whole))
    assert again is not None
    assert again.cast.models == seeds
    again = cast("Work", replace(cast("Planted", again), kinds={PAPER: second}))
    table = by_kind(cast("Work", whole), seen, again)
    led = table.frame.set_index("claim").iloc[0]
    assert led.to_dict() == {PAPER: "agrees", "second seeds of all models": "differs"}
    assert "from another seed" in table.caption
    part = Planted(replace(NOTHING, second_seeds=seeds[:2]), {**first, **second})
    assert second_cast(cast("Work", part)) is None
    assert list(by_kind(cast("Work", part), seen).frame) == ["claim", PAPER]
