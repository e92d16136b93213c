"""What all recipes stand on, part by part: settings, places of models, kept steps, words of a page."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from thinkalike.errors import InvalidInput, ModelError, UnknownName
from thinkalike.files import write_json
from thinkalike.recipes.brown2023_scaling.random_family import SHAPES, random_family
from thinkalike.recipes.brown2023_scaling.streams import head_shape
from thinkalike.recipes.effects import Effect
from thinkalike.recipes.findings import Findings, Statement, Table, decided, effects_in_words
from thinkalike.recipes.places import identity, is_there, lacking, locate, require
from thinkalike.recipes.recipe_page import flat, multiplicity, table_cells
from thinkalike.recipes.recipe_registry import RECIPES, SCALES, Recipe
from thinkalike.recipes.recipe_settings import File, RecipeSettings, fitted
from thinkalike.recipes.reproducing import as_plain, without_folders
from thinkalike.recipes.rules import Rule
from thinkalike.recipes.steps import Steps
from thinkalike.recipes.weights import weights_digest
from thinkalike.systems import bundled


@dataclass(frozen=True, kw_only=True)
class Settings(RecipeSettings):
    share: float = 0.5
    names: tuple[str, ...] = ("a",)
    rates: tuple[float, float] = (0.1, 0.2)
    limit: int | None = None
    text: File | None = None
    table: dict[str, int] | None = None
    quick: bool = False


class TestSettings:
    @pytest.mark.parametrize(
        ("value", "wanted", "expected"),
        [
            (3, int, 3),
            (3, float, 3.0),
            ("a,b", tuple[str, ...], ("a", "b")),
            (["a", 1], tuple[str, ...], ("a", "1")),
            ((1, 2), tuple[float, float], (1.0, 2.0)),
            (None, int | None, None),
            (4, int | None, 4),
            ({"x": 1}, dict[str, int], {"x": 1}),
            (7, str, "7"),
            (True, bool, True),
        ],
    )
    def test_values_become_what_is_wanted(self, value: Any, wanted: Any, expected: Any) -> None:
        found = fitted("it", value, wanted)
        assert found == expected
        assert type(found) is type(expected)

    @pytest.mark.parametrize(
        ("value", "wanted", "words"),
        [
            (-1, int, "a whole number from 0; -1"),
            (True, int, "a whole number from 0; True"),
            (1.0, int, "a whole number from 0"),
            (float("nan"), float, "a number; nan"),
            (True, float, "a number"),
            ([1], str, "text"),
            (1, bool, "true or false"),
            ((1, 2, 3), tuple[float, float], "a list, such as a,b"),
            (3, dict[str, int], "a table of names and values"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, value: Any, wanted: Any, words: str) -> None:
        with pytest.raises(InvalidInput, match=f"The setting it is {words}"):
            fitted("it", value, wanted)

    def test_a_file_must_be_there(self, tmp_path: Path) -> None:
        (tmp_path / "text.txt").write_text("words")
        assert fitted("text", str(tmp_path / "text.txt"), File) == str(tmp_path / "text.txt")
        with pytest.raises(InvalidInput, match=r"names a file, and there is none at .*other\.txt: check it"):
            fitted("text", str(tmp_path / "other.txt"), File)

    def test_changes_are_of_known_settings_and_leave_the_scale_alone(self) -> None:
        changed = Settings().changed("small", {"names": "x,y", "limit": 3})
        assert (changed.names, changed.limit, changed.share) == (("x", "y"), 3, 0.5)
        assert changed.only("limit", "seed") == {"limit": 3, "seed": 0}
        assert changed.plain()["rates"] == (0.1, 0.2)
        for name in ("scale", "models_folder", "nams"):
            with pytest.raises(UnknownName, match=f"no setting of small '{name}'"):
                Settings().changed("small", {name: "x"})

    @pytest.mark.parametrize("name", list(RECIPES))
    def test_every_recipe_has_every_scale_under_its_name(self, name: str) -> None:
        scales = RECIPES[name].scales
        assert {"smoke", "nano", "paper"} <= set(scales) <= set(SCALES)
        assert [settings.scale for settings in scales.values()] == list(scales)


class TestPlaces:
    def save(self, place: Path, text: str = "{}") -> None:
        place.mkdir(parents=True)
        (place / "config.json").write_text(text)
        (place / "model.safetensors").write_text(text)

    def test_a_revision_is_a_folder_or_a_subfolder(self, tmp_path: Path) -> None:
        self.save(tmp_path / "one@step1")
        self.save(tmp_path / "other" / "step1")
        assert locate("one@step1", tmp_path) == str(tmp_path / "one@step1")
        assert locate("other@step1", tmp_path) == str(tmp_path / "other" / "step1")
        with pytest.raises(ModelError, match=r"other@step2 is not in .*: there is no .*config\.json"):
            locate("other@step2", tmp_path)

    def test_whether_a_model_is_there_is_what_locate_finds(self, tmp_path: Path) -> None:
        self.save(tmp_path / "nano-mine" / "step1")
        self.save(tmp_path / "org" / "model")
        for name, there in (
            ("nano-mine@step1", True), ("nano-mine@step2", False), ("nano-mine", False), ("org/model", True),
            ("org/other", False), ("nano-gpt2", True),
        ):  # fmt: skip
            assert is_there(name, tmp_path) == there
            assert (name in lacking([name], tmp_path)) == (name.startswith("nano-") and not there)
            if not there:
                with pytest.raises(ModelError):
                    locate(name, tmp_path)
            else:
                assert locate(name, tmp_path)
        assert is_there("org/other")  # the hub may have it
        assert not is_there("nano-mine@step1")

    def test_bundled_models_need_no_folder(self, tmp_path: Path) -> None:
        assert locate("nano-gpt2", tmp_path) == "nano-gpt2"
        assert locate("anything/else") == "anything/else"

    def test_lacking_looks_into_the_folder_too(self, tmp_path: Path) -> None:
        assert lacking(["nano-gpt2", "nano-none", "org/model"]) == ["nano-none"]
        self.save(tmp_path / "nano-none")
        assert lacking(["nano-none"], tmp_path) == []
        with pytest.raises(ModelError, match="small needs the bundled model nano-none, which"):
            require(["nano-none"], recipe="small")
        with pytest.raises(ModelError, match="the bundled models nano-x, nano-y, which"):
            require(["nano-x", "nano-y"], recipe="small")

    def test_a_bundled_model_is_its_content_whatever_the_time_of_its_files(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A fresh clone has files of another day; what was kept must still be found."""
        first = identity("nano-pythia-64")
        copy = shutil.copytree(bundled.resolve("nano-pythia-64"), tmp_path / "copy")
        for path in copy.iterdir():
            os.utime(path, (1, 1))
        monkeypatch.setattr(bundled, "resolve", lambda name: copy)
        assert identity("nano-pythia-64") == first
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "config.json").write_text("{}")
        monkeypatch.setattr(bundled, "resolve", lambda name: tmp_path / "other")
        assert identity("nano-pythia-64") != first

    def test_other_weights_under_one_name_have_another_identity(self, tmp_path: Path) -> None:
        self.save(tmp_path / "first" / "model")
        self.save(tmp_path / "other" / "model", '{"a": 1}')
        first, again, other = (identity("model", tmp_path / name) for name in ("first", "first", "other"))
        assert first == again != other
        assert identity("org/on-the-hub") == "org/on-the-hub"


class TestSteps:
    def test_other_dependencies_are_another_step(self, tmp_path: Path) -> None:
        steps = Steps(tmp_path)
        calls: list[int] = []

        def compute() -> dict[str, int]:
            calls.append(1)
            return {"n": len(calls)}

        assert steps.json("count", {"seed": 0}, compute) == {"n": 1}
        assert steps.json("count", {"seed": 1}, compute) == {"n": 2}
        assert steps.json("count", {"seed": 0}, compute) == {"n": 1}
        assert steps.path("a b", {"x": (1, 2)}) == steps.path("a b", {"x": [1, 2]})
        assert steps.path("a b", {"x": 1}) != steps.path("a b", {"x": 2})

    def test_a_step_that_fails_is_not_kept(self, tmp_path: Path) -> None:
        def fail() -> dict[str, np.ndarray]:
            raise RuntimeError("no")

        with pytest.raises(RuntimeError):
            Steps(tmp_path).arrays("step", {}, fail)
        found = Steps(tmp_path).arrays("step", {}, lambda: {"x": np.arange(3)})
        np.testing.assert_array_equal(found["x"], [0, 1, 2])


class TestPage:
    def test_effects_in_words(self) -> None:
        rule = SimpleNamespace(effect="share of layers")
        effects = [
            Effect("nano-bert", 0.8333, 0.6667, 1.0, "10 sets of sentences"),
            Effect("nano-gpt2", -0.5, -0.5, -0.5, "10 sets of sentences"),
            Effect("", float("nan"), 0.0, 1.0),
        ]
        assert effects_in_words(rule, effects) == (  # type: ignore[arg-type]
            "Share of layers: nano-bert 0.833 (0.667 to 1), nano-gpt2 −0.5 and unknown (0 to 1), "
            "over 10 sets of sentences."
        )
        assert effects_in_words(rule, []) == ""  # type: ignore[arg-type]

    def test_cells_of_a_table(self) -> None:
        frame = pd.DataFrame(
            {"name": ["a", "b"], "n": [1200, -3], "x": [0.12345, np.nan], "ok": [True, False]}
        )
        assert table_cells(Table("t", "Title", frame)) == [
            ["name", "n", "x", "ok"],
            ["a", "1,200", "0.123", "yes"],
            ["b", "−3", "–", "no"],
        ]

    def test_nested_settings_are_lines(self) -> None:
        assert flat({"a": 1, "b": {"c": [1, 2], "d": {"e": None}}}) == [
            ("a", "1"),
            ("b.c", "1, 2"),
            ("b.d.e", "None"),
        ]

    def test_of_paths_only_the_last_part_is_shown(self) -> None:
        shown = without_folders({"models_folder": "/home/me/models", "text": "relative/text.txt", "n": 3})
        assert shown == {"models_folder": "models", "text": "relative/text.txt", "n": 3}

    def test_multiplicity_counts_what_was_tested(self) -> None:
        statements = tuple(Statement("So.", "It is.", v) for v in ("agrees", "undecided", "cannot be tested"))
        assert multiplicity(Findings("small", "smoke", statements)).startswith("2 statements were tested")

    def test_plain_findings_hold_whole_numbers_and_the_counts(self) -> None:
        recipe = Recipe("small", "Title", "Citation", "Figure 1", "nowhere")
        table = Table("t", "Title", pd.DataFrame({"x": [0.123456789]}))
        found = Findings("small", "smoke", (Statement("So.", "It is.", "agrees"),), tables=(table,))
        content = as_plain(recipe, replace(found, notes=("Few.",)), 1.23)
        assert content["tables"][0]["rows"] == [{"x": 0.123456789}]
        assert content["verdicts"]["agrees"] == 1
        assert (content["processor_seconds"], content["notes"]) == (1.2, ("Few.",))
        assert content["statements"][0]["found"] == "It is."

    def test_a_rule_is_kept_in_words_with_what_it_was_before(self, tmp_path: Path) -> None:
        rule = Rule(
            claim="So.",
            effect="a − b",
            at_least=0.1,
            at_most=0.5,
            written="2026-11-18",
            earlier=("it was 0.2.",),
        )
        effect = Effect("x", 0.3, math.nan, math.nan, "2 sets")
        statement = decided(rule, [effect], analyses={"cosine": {"x": 0.3}}, numbers={"n": math.nan})
        findings = Findings("small", "smoke", (statement,))
        path = tmp_path / "findings.json"
        write_json(as_plain(Recipe("small", "", "", "", "nowhere"), findings, 1.0), path)
        (kept,) = json.loads(path.read_text())["statements"]
        assert kept["rule"] == {
            "effect": "a − b", "in_words": "agrees from 0.1 to 0.5", "written": "2026-11-18",
            "earlier": ["it was 0.2."],
        }  # fmt: skip
        assert kept["effects"] == [{"about": "x", "value": 0.3, "low": None, "high": None, "over": "2 sets"}]
        assert (kept["verdict"], kept["sensitivity"], kept["numbers"]) == ("undecided", None, {"n": None})


class TestWeights:
    def test_the_digest_is_of_names_shapes_and_values(self) -> None:
        torch.manual_seed(0)
        one = torch.nn.Linear(3, 2)
        same = torch.nn.Linear(3, 2)
        same.load_state_dict(one.state_dict())
        assert weights_digest(one) == weights_digest(same)
        with torch.no_grad():
            same.weight[0, 0] += 1e-6
        assert weights_digest(one) != weights_digest(same)
        assert weights_digest(one) != weights_digest(one.double())

    def test_a_random_family_has_its_shapes_and_is_made_once(self, tmp_path: Path) -> None:
        from transformers import AutoModelForCausalLM

        random_family(tmp_path)
        before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("model.safetensors")}
        assert len(before) == len(SHAPES)
        name, (width, layers, heads) = next(iter(SHAPES.items()))
        config = AutoModelForCausalLM.from_pretrained(tmp_path / name).config
        assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (
            width,
            layers,
            heads,
        )
        random_family(tmp_path)
        assert before == {p: p.stat().st_mtime_ns for p in tmp_path.rglob("model.safetensors")}

    def test_how_many_units_of_a_head_rotate(self, tiny_neox: Callable[..., Any]) -> None:
        config = tiny_neox(32, 3, 4)
        found = head_shape(config)
        assert (found["width"], found["layers"], found["heads"], found["d_head"]) == (32, 3, 4, 8)
        assert found["rotary_dim"] == 2  # a quarter, as Pythia has it
