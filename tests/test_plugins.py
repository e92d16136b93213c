"""Tables that others add to: by entry points of an installed package, or by one call."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.registry import Registry

PLUGIN = Path(__file__).parent / "plugin"

SCRIPT = """
import warnings
import numpy as np
import thinkalike as ta
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from thinkalike.encoding import cross_validate
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.measures import MEASURES
from thinkalike.measures.measure_table import layer_measures
from thinkalike.recipes import RECIPES
from thinkalike.registry import PluginWarning
from thinkalike.systems.architectures import ARCHITECTURES
from thinkalike.systems.sites import SITES

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert "first-unit" in layer_measures()
assert [w.category for w in said] == [PluginWarning], said
assert "The measure 'broken' of the plug-in tiny_plugin:nowhere cannot be used" in str(said[0].message)

rng = np.random.default_rng(0)
stimuli = ta.Stimuli.from_grammar(n_sentences=30, seed=0)
X, Y = rng.normal(size=(2, len(stimuli), 5))
found = ta.similarity([X, Y], measure="first-unit")
np.testing.assert_allclose(found.values[0, 1], np.corrcoef(X[:, 0], Y[:, 0])[0, 1])
rsa = ta.similarity([X, Y], measure="rsa", distance="chebyshev").values[0, 1]
np.testing.assert_allclose(rsa, spearmanr(pdist(X, "chebyshev"), pdist(Y, "chebyshev")).statistic, atol=1e-7)

half = cross_validate(stimuli, X, importance="half-drop").importance
whole = cross_validate(stimuli, X, importance="drop").importance
np.testing.assert_allclose(half, whole / 2)

negated = ta.similarity([X, Y], measure="first-unit", steps="only-first")
np.testing.assert_allclose(negated.values[0, 1], found.values[0, 1], atol=1e-6)

assert ARCHITECTURES["tiny_tower"].blocks == "storeys"
assert SITES["mlp"].paths_in(ARCHITECTURES["tiny_tower"], None) == ("think",)
assert RECIPES["tiny-recipe"].title == "A tiny experiment"
inner = ta.extract(MODEL, stimuli, site="mlp-inner")
assert inner[1].shape[1] == 4 * ta.extract(MODEL, stimuli)[1].shape[1]

for table, near, name in (
    (MEASURES, "frist-unit", "first-unit"), (SITES, "mlp-iner", "mlp-inner"),
    (RECIPES, "tiny-recip", "tiny-recipe"), (ARCHITECTURES, "tiny_towr", "tiny_tower"),
):
    try:
        table[near]
    except UnknownName as error:
        assert f"Did you mean '{name}'?" in str(error), error
    else:
        raise AssertionError(name)

from typer.testing import CliRunner
from thinkalike.cli import app

said = CliRunner().invoke(app, ["models", "--architectures"])
assert "tiny_tower" in said.output, said.output
said = CliRunner().invoke(app, ["reproduce"])
assert "tiny-recipe" in said.output, said.output
"""


def test_a_plugin_adds_to_every_table() -> None:
    """In a process of its own, in which the package lies on the path as an installed one does."""
    script = SCRIPT.replace("MODEL", repr("nano-gpt2"))
    path = os.pathsep.join([str(PLUGIN), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr[-3000:]


def colours() -> Registry[int]:
    return Registry("colour", "thinkalike.nothing", {"red": 1, "green": 2})


def test_a_registry_is_a_mapping() -> None:
    table = colours()
    assert dict(table) == {"red": 1, "green": 2}
    assert table.register("blue", 3) == 3
    assert "blue" in table
    assert len(table) == 3
    table.unregister("blue")
    assert list(table) == ["red", "green"]


def test_who_asks_while_plugins_are_looked_for_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    table = colours()
    asked: list[Future[int]] = []

    class SlowPlugin:
        name, value = "blue", "slow:blue"

        def load(self) -> int:
            asked.append(pool.submit(table.__getitem__, "blue"))
            wait(asked, timeout=0.2)  # without waiting, the other thread would have been told no by then
            return 3

    monkeypatch.setattr("thinkalike.registry.entry_points", lambda group: [SlowPlugin()])
    with ThreadPoolExecutor(1) as pool:
        assert table["blue"] == 3
        assert asked[0].result() == 3


def test_what_a_registry_refuses() -> None:
    table = colours()
    with pytest.raises(UnknownName, match=r"There is no colour 'gren'\. Did you mean 'green'\?"):
        table["gren"]
    with pytest.raises(KeyError):
        table["gren"]
    assert table.get("gren") is None
    with pytest.raises(InvalidInput, match="There is a colour 'red' already: choose another name"):
        table.register("red", 7)
    with pytest.raises(InvalidInput, match="'red' is a colour of thinkalike itself: it stays"):
        table.unregister("red")
    with pytest.raises(InvalidInput, match="Got '' as the name of a colour: give a word"):
        table.register("", 7)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("thinkalike.measures.measure_table:MEASURES", "give a Measure of that name, or a function"),
        ("thinkalike.pairs.distances:DISTANCES", "give a function"),
        ("thinkalike.encoding.importance:IMPORTANCES", "give a function"),
        ("thinkalike.pairs.preprocessing:STEPS", "give a Step, or a class with fit and transform"),
        ("thinkalike.systems.architectures:ARCHITECTURES", "give an Architecture"),
        ("thinkalike.systems.sites:SITES", "give a Site, or a function"),
        ("thinkalike.recipes.recipe_registry:RECIPES", "give a Recipe of that name"),
    ],
)
def test_what_is_no_entry(table: str, expected: str) -> None:
    module, name = table.split(":")
    registry = getattr(__import__(module, fromlist=[name]), name)
    with pytest.raises(InvalidInput, match=expected):
        registry.register("mine", 3)
    assert "mine" not in registry
