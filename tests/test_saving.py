"""Results as files: all of them come back as they were, and what is no such result is refused."""

from __future__ import annotations

import ast
import copy
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thinkalike as ta
from thinkalike.comparison import profile_group
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.encoding import compare_interactions, cross_validate, interaction_importance
from thinkalike.errors import DamagedFile
from thinkalike.inference.clusters import cluster_models
from thinkalike.inference.groups import compare_groups
from thinkalike.measures.probes import probe_layers
from thinkalike.saving import Kept, read_result, write_result
from thinkalike.streaming.output_distances import OutputDistances

RNG = np.random.default_rng(0)
ITEMS = 60
TABLE = pd.DataFrame({"size": RNG.choice(["small", "large"], ITEMS), "live": RNG.choice(list("yn"), ITEMS)})
X = RNG.normal(size=(ITEMS, 6))
GROWN = X + 3 * (TABLE["size"] == "large").to_numpy()[:, None]
PEOPLE = X @ RNG.normal(size=(4, 6, 5)) + RNG.normal(size=(4, ITEMS, 5))
APART = np.abs(np.subtract.outer(*[np.array([0.0, 1, 2, 10, 11, 13])] * 2))


def _explanation() -> Any:
    made = ta.profile({0: X, 1: GROWN}, ta.Stimuli.from_table(TABLE))
    return ta.explain(made, 0, made, 1)


def _comparison() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)  # arrays of noise
        return ta.compare({"m": {0: X, 1: GROWN}, "n": GROWN}, TABLE, resamples=0)


def _probes() -> Any:
    stimuli = ta.Stimuli.from_table(TABLE)
    acts = ta.Activations.from_arrays({0: X, 1: GROWN}, system="m", stimuli=stimuli)
    return probe_layers(acts, stimuli, "size", groups=None)


MAKERS: dict[str, Callable[[], Any]] = {
    "Difference": lambda: ta.diff(
        {0: X, "top": X}, {0: GROWN, "top": X}, ta.Stimuli.from_table(TABLE), resamples=2
    ),
    "Trace": lambda: ta.trace({"m@1": {0: X}, "m@2": {0: GROWN}}, ta.Stimuli.from_table(TABLE)),
    "Distances": lambda: ta.Atlas().distances(),
    "ModelMap": lambda: ta.Atlas().map(),
    "ModelTree": lambda: ta.Atlas().tree(n_draws=3),
    "Why": lambda: ta.Atlas().why(n_permutations=9),
    "WhySensitivity": lambda: ta.Atlas().sensitivity(n_permutations=9),
    "GroupComparison": lambda: ta.compare_with_group(PEOPLE, {"m": {0: X, "top": GROWN}}, permutations=19),
    "GroupProfile": lambda: profile_group(PEOPLE, TABLE),
    "OutputDistances": lambda: OutputDistances(
        ("a", "b"), {"jensen-shannon": APART[:2, :2]}, {"jensen-shannon": APART[:2, :2] / 9}, 7, {"texts": 3}
    ),
    "ModelGroups": lambda: compare_groups(APART, list("aaabbb"), n_permutations=9),
    "Clusters": lambda: cluster_models(APART, groups=list("aaabbb"), n_permutations=9),
    "Explanation": _explanation,
    "LayerMap": lambda: next(iter(made("Comparison").layer_maps.values())),
    "WordMaps": lambda: made("Comparison").word_maps,
    "TrajectoryDistances": lambda: made("Comparison").trajectories,
    "ProbeResult": _probes,
    "CrossValidation": lambda: cross_validate(TABLE, {0: X, "top": GROWN}),
    "InteractionComparison": lambda: compare_interactions(TABLE, GROWN),
    "Interactions": lambda: interaction_importance(TABLE, GROWN),
}
OF_ONE = {"WordMaps": (ta.Stimuli.from_table(TABLE), "m", 0)}
"""What is drawn of results with a picture for each layer"""
OTHERS = {"Comparison": _comparison}
"""Which are kept in ways of their own, and tested there"""


@cache
def made(name: str) -> Any:
    return {**MAKERS, **OTHERS}[name]()


def assert_same(found: Any, expected: Any) -> None:
    """Field by field, types and all."""
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected, strict=True)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, (tuple, list)):
        assert (type(found), len(found)) == (type(expected), len(expected))
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found == expected or (found != found and expected != expected)


def assert_equal(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    for one in fields(expected):
        assert_same(getattr(found, one.name), getattr(expected, one.name))
    assert repr(found) == repr(expected)
    assert str(found) == str(expected)


@pytest.mark.parametrize("name", MAKERS)
def test_a_result_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    result = made(name)
    assert type(result).__name__ == name
    assert_equal(type(result).load(result.save(tmp_path / "kept")), result)


@pytest.mark.parametrize("name", MAKERS)
def test_a_result_is_copied_and_pickled(name: str) -> None:
    result = made(name)
    assert_equal(copy.deepcopy(result), result)
    assert_equal(pickle.loads(pickle.dumps(result)), result)  # noqa: S301 our own bytes


@pytest.mark.parametrize("name", MAKERS)
def test_a_result_is_a_table_and_a_picture(name: str) -> None:
    result = made(name)
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame)
    assert " object at " not in repr(result)
    assert "array(" not in repr(result)
    drawn = result.plot(*OF_ONE.get(name, ())).to_dict()
    assert "$schema" in drawn


def classes() -> list[ast.ClassDef]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in Path(ta.__file__).parent.rglob("*.py"))
    return [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]


def is_kept(one: ast.ClassDef) -> bool:
    return one.name != "KeptFolder" and not {"Kept", "KeptFolder"}.isdisjoint(map(ast.unparse, one.bases))


def test_every_kept_result_is_here() -> None:
    """A result that is added to the library is added above."""
    assert {one.name for one in classes() if is_kept(one)} == set(MAKERS)


def test_whatever_is_a_table_is_drawn_saved_and_loaded() -> None:
    missing = {}
    for one in classes():
        methods = {part.name for part in one.body if isinstance(part, ast.FunctionDef)}
        if "to_frame" in methods and one.name != "Kept":
            missing[one.name] = (
                {"plot", "save", "load"} - methods - ({"save", "load"} if is_kept(one) else set())
            )
    assert len(missing) > len(MAKERS)
    assert {name: parts for name, parts in missing.items() if parts} == {"RunPlan": {"plot"}}  # what will be


@dataclass(frozen=True, eq=False)
class Plain(Kept):
    values: Any

    def to_frame(self) -> pd.DataFrame:
        return pd.DataFrame({"x": [1]})


@dataclass(frozen=True, eq=False)
class Other(Plain):
    pass


@pytest.mark.parametrize(
    "values",
    [
        None,
        True,
        3,
        "a",
        float("inf"),
        float("-inf"),
        (1, ("a", 2.5)),
        [1, None],
        {("a", 0): (1, 2), "b": {}},
        np.array([[1.5, np.nan]]),
        np.arange(3, dtype=np.int32),
        np.array(["é", "b"]),
        pd.DataFrame({"layer": [0, "top"], "n": [1, 2], "p": [0.5, np.nan], "yes": [True, False]}),
    ],
    ids=str,
)
def test_values_come_back(values: Any, tmp_path: Path) -> None:
    found = Plain.load(Plain(values).save(tmp_path / "x")).values
    assert_same(found, values)
    assert type(found) is type(values)


def test_damage_and_other_results_are_refused(tmp_path: Path) -> None:
    path = Plain(np.arange(50.0)).save(tmp_path / "x")
    file = tmp_path / "x.npz"
    with pytest.raises(DamagedFile, match=r"x\.npz .*a Plain of format 1, not a Other.*compute it again"):
        Other.load(path)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(DamagedFile, match=r"x\.npz is damaged.*compute it again"):
        Plain.load(path)
    file.unlink()
    with pytest.raises(DamagedFile, match=r"x\.npz is missing: compute it again"):
        Plain.load(path)


def test_other_fields_are_refused(tmp_path: Path) -> None:
    @dataclass(frozen=True, eq=False)
    class Grown(Plain):
        more: int = 0

    Grown.__name__ = "Plain"
    write_result(Grown(1), tmp_path / "x.npz")
    with pytest.raises(DamagedFile, match="the fields values, more, not values"):
        read_result(Plain, tmp_path / "x.npz")


def cityblock(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a[:, None] - b[None]).sum(axis=2)


def test_a_function_among_the_settings_is_kept_by_its_name(tmp_path: Path) -> None:
    found = cross_validate(TABLE, X, distance=cityblock)
    again = type(found).load(found.save(tmp_path / "x"))
    assert_same(again.scores, found.scores)
    assert again.settings == replace(found.settings, distance="cityblock")


def test_what_cannot_be_kept_says_so(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="set cannot be kept in a file"):
        Plain({"a": {1, 2}}).save(tmp_path / "x")


def test_a_fingerprint_is_a_table_and_a_picture() -> None:
    found = ta.Atlas()["nano-gpt2"]
    pd.testing.assert_frame_equal(found.to_frame(), found.profile.to_frame())
    assert "$schema" in found.plot().to_dict()
    again = pickle.loads(pickle.dumps(found))  # noqa: S301 our own bytes
    assert repr(again) == repr(found)
