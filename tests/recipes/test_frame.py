"""The frame of the recipes, with a small recipe of its own."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
import vl_convert
from PIL import Image
from typer.testing import CliRunner

from thinkalike.charts.theme import themed
from thinkalike.cli import app
from thinkalike.cli.record import AGAIN
from thinkalike.cli.reproduce import parse_settings
from thinkalike.errors import InvalidInput, ModelError, StoreError, UnknownName
from thinkalike.recipes import RECIPES, Figure, Findings, Recipe, Statement, Table, gallery, reproduce
from thinkalike.recipes import recipe_registry as table
from thinkalike.recipes.places import PACKAGED, lacking, locate, require
from thinkalike.recipes.recipe_page import answer, command, multiplicity, number, render
from thinkalike.recipes.recipe_settings import File, RecipeSettings
from thinkalike.recipes.reproducing import foresee
from thinkalike.recipes.steps import Steps

NASTY = "</script><b>bold & 'quoted'"


@dataclass(frozen=True, kw_only=True)
class Small(RecipeSettings):
    height: float = 1.0
    file: str | None = None
    text: File | None = None
    names: tuple[str, ...] = ("a",)
    sizes: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def small_run(settings: Small, out: Path) -> Findings:
    points = pd.DataFrame({"x": [0.0, 1.0], "y": [0.5, settings.height], "name": [NASTY, "b"]})
    chart = themed(alt.Chart(points).mark_point().encode(x="x:Q", y="y:Q", tooltip="name:N"))
    return Findings(
        recipe="small",
        scale=settings.scale,
        statements=(
            Statement(
                "It rises.", "From 0.5 to 1.", "agrees", {"rise": 0.5, "unknown": float("nan")}, "line"
            ),
            Statement(f"Nothing {NASTY}.", "Something.", "differs"),
            Statement("It was assumed.", "Not looked at.", "cannot be tested", beyond=True),
        ),
        figures=(Figure("line", "Two points", chart, f"Caption {NASTY}", "Figure 1"),),
        tables=(Table("t", "A table", pd.DataFrame({"model": [NASTY], "size": [1234], "p": [np.nan]})),),
        settings=settings.plain(),
        notes=(f"A note {NASTY}",),
    )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recipe]:
    scales = {name: Small(scale=name, height=k + 1.0) for k, name in enumerate(("smoke", "nano", "paper"))}
    module: Any = SimpleNamespace(SCALES=scales, run=small_run)
    monkeypatch.setitem(sys.modules, "small_recipe", module)
    recipe = Recipe("small", f"A small one {NASTY}", "Nobody 2026", "Figure 1", "small_recipe")
    table.RECIPES.register("small", recipe)
    yield recipe
    table.RECIPES.unregister("small")


class Text(HTMLParser):
    """Tags, and the text outside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += data


class TestReproduce:
    def test_writes_page_findings_and_figures(self, small: Recipe, tmp_path: Path) -> None:
        done = reproduce("small", "smoke", tmp_path / "run")
        assert done.page == tmp_path / "run" / "index.html"
        found = json.loads((tmp_path / "run" / "findings.json").read_text())
        assert found["verdicts"] == {"agrees": 1, "differs": 1, "undecided": 0, "cannot be tested": 1}
        assert found["statements"][0]["numbers"] == {"rise": 0.5, "unknown": None}
        assert found["tables"][0]["rows"] == [{"model": NASTY, "size": 1234, "p": None}]
        assert found["settings"]["height"] == 1.0
        assert found["versions"]["thinkalike"]
        assert (tmp_path / "run" / "figures" / "line.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / "run" / "figures" / "line.svg").read_text()
        left = [p.name for p in (tmp_path / "run").rglob(".*")]
        assert not left

    def test_a_setting_can_be_changed(self, small: Recipe, tmp_path: Path) -> None:
        done = reproduce("small", "smoke", tmp_path / "run", height=7)
        assert done.findings.settings["height"] == 7

    def test_no_path_of_this_machine_is_shown(self, small: Recipe, tmp_path: Path) -> None:
        done = reproduce(
            "small", "smoke", tmp_path / "run", models_folder=tmp_path, file=str(tmp_path / "x.txt")
        )
        for text in (done.page.read_text(), (tmp_path / "run" / "findings.json").read_text()):
            assert str(tmp_path) not in text
            assert "x.txt" in text

    def test_again_into_the_same_folder(self, small: Recipe, tmp_path: Path) -> None:
        first = reproduce("small", "smoke", tmp_path / "run").page.read_text()
        assert reproduce("small", "smoke", tmp_path / "run").page.read_text() == first

    def test_unknown_recipe_scale_and_setting(self, small: Recipe, tmp_path: Path) -> None:
        with pytest.raises(UnknownName, match=r"recipe 'salle'.*salle2024"):
            reproduce("salle", "smoke", tmp_path / "run")
        with pytest.raises(UnknownName, match="scale 'tiny'"):
            reproduce("small", "tiny", tmp_path / "run")
        with pytest.raises(UnknownName, match=r"setting of small 'hight'.*height"):
            reproduce("small", "smoke", tmp_path / "run", hight=1)
        with pytest.raises(UnknownName, match="scale of small 'real'"):
            reproduce("small", "real", tmp_path / "run")
        with pytest.raises(InvalidInput, match=r"There is no folder .*nowhere: give one that holds models"):
            reproduce("small", "smoke", tmp_path / "run", models_folder=tmp_path / "nowhere")
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"height": "tall"}, "The setting height is a number; 'tall' was given"),
            ({"height": float("nan")}, "The setting height is a number; nan was given"),
            ({"height": True}, "The setting height is a number; True was given"),
            ({"seed": 1.5}, "The setting seed is a whole number from 0; 1.5 was given"),
            ({"seed": -1}, "The setting seed is a whole number from 0; -1 was given"),
            ({"text": "none.txt"}, "The setting text names a file, and there is none at none.txt"),
            ({"names": 3}, "The setting names is a list, such as a,b; 3 was given"),
            ({"sizes": "a"}, "The setting sizes is a table of names and values; 'a' was given"),
            ({"sizes": {"x": ["a"]}}, r"The setting sizes is a list, such as a,b; \['a'\] was given"),
        ],
    )
    def test_a_value_of_another_kind_is_refused(
        self, small: Recipe, tmp_path: Path, change: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(InvalidInput, match=message):
            reproduce("small", "smoke", tmp_path / "run", **change)
        assert not (tmp_path / "run").exists()

    def test_settings_become_what_the_recipe_wants(self, small: Recipe, tmp_path: Path) -> None:
        done = reproduce("small", "smoke", tmp_path, height=2, file="a", sizes={"x": ["a", "b"]})
        found = done.findings.settings
        assert (found["height"], found["file"], found["sizes"]) == (2.0, "a", {"x": ("a", "b")})
        assert type(found["height"]) is float

    def test_a_list_may_be_given_with_commas(self, small: Recipe, tmp_path: Path) -> None:
        for given, expected in (("b,c", ("b", "c")), ("b", ("b",)), (["b"], ("b",))):
            done = reproduce("small", "smoke", tmp_path / str(given), names=given)
            assert done.findings.settings["names"] == expected

    def test_a_folder_of_something_else_is_left_alone(self, small: Recipe, tmp_path: Path) -> None:
        reproduce("small", "smoke", tmp_path / "run")
        with pytest.raises(StoreError, match="holds small at scale smoke, not small at scale nano"):
            reproduce("small", "nano", tmp_path / "run")
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.tex").write_text("precious")
        with pytest.raises(StoreError, match="not empty and holds no recipe"):
            reproduce("small", "smoke", tmp_path / "mine")
        with pytest.raises(InvalidInput, match="is a file"):
            reproduce("small", "smoke", tmp_path / "mine" / "thesis.tex")


class TestPage:
    def test_names_are_escaped_everywhere(self, small: Recipe) -> None:
        html = render(small, small_run(Small(scale="smoke"), Path()), 3.0)
        page = Text()
        page.feed(html)
        # Titles are set in bold by the template: two tables' captions and one figure's.
        assert page.tags.count("b") == 2
        assert page.text.count("bold & 'quoted'") >= 5

    def test_the_command_has_what_was_changed(self, small: Recipe) -> None:
        as_usual = small_run(Small(scale="smoke"), Path())
        assert command(small, as_usual) == "thinkalike reproduce small --scale smoke"
        changed = Small(scale="smoke", height=2.5, names=("a", "b"), seed=1, models_folder="mine")
        assert command(small, small_run(changed, Path())) == (
            "thinkalike reproduce small --scale smoke --set seed=1 --set height=2.5 --set names=a,b "
            "--models mine"
        )

    @pytest.mark.parametrize(
        "changes",
        [
            {"sizes": {"3 layers": ("a", "b"), "it's": ("c", "d")}},
            {"names": ()},
            {"names": ("a b", "c")},
            {"names": ("with, comma",)},
            {"height": 0.125, "seed": 3},
            {"file": "my file.txt"},
        ],
        ids=str,
    )
    def test_the_command_is_read_as_it_was_meant(self, changes: dict[str, Any], small: Recipe) -> None:
        """Split as a shell would, and taken up by the command: the same settings come out."""
        meant = replace(Small(scale="smoke"), **changes)
        words = shlex.split(command(small, small_run(meant, Path())))
        given = [words[k + 1] for k, word in enumerate(words) if word == "--set"]
        again = small.scales["smoke"].changed("small", parse_settings(given))
        assert again.plain() == meant.plain()

    def test_no_request_can_leave_it(self, small: Recipe) -> None:
        html = render(small, small_run(Small(scale="smoke"), Path()), 3.0)
        assert "default-src 'none'" in html
        before_the_library = html.partition('id="specs"')[0]
        assert "http" not in before_the_library.replace("http-equiv", "")

    def test_statements_stand_with_their_verdicts(self, small: Recipe) -> None:
        page = Text()
        page.feed(render(small, small_run(Small(scale="smoke"), Path()), 300.0))
        for text in (
            "agrees",
            "differs",
            "cannot be tested",
            "It rises.",
            "From 0.5 to 1.",
            "1,234",
            "5 min",
        ):
            assert text in page.text

    def test_the_answer_counts_only_what_the_paper_said(self) -> None:
        findings = small_run(Small(scale="smoke"), Path())
        assert answer(findings) == "Of 2 statements of the paper 2 were tested here: 1 agrees, 1 differs."
        more = (Statement("a", "b", "cannot be tested"), Statement("a", "b", "undecided"))
        findings = Findings("x", "smoke", (*findings.statements, *more))
        expected = "Of 4 statements of the paper 3 were tested here: 1 agrees, 1 differs, 1 is undecided."
        assert answer(findings) == expected
        assert multiplicity(findings).startswith("3 statements were tested in all")
        beyond = Findings("x", "smoke", (Statement("a", "b", "agrees", beyond=True),))
        assert answer(beyond) == "Of 1 statements beyond the paper 1 were tested here: 1 agrees."

    @pytest.mark.parametrize(
        ("value", "text"),
        [(3.0, "3"), (-0.12345, "−0.123"), (float("nan"), "–"), (None, "–"), (12345, "12,345")],
    )
    def test_numbers(self, value: Any, text: str) -> None:
        assert number(value) == text


class TestSteps:
    def test_a_kept_step_is_not_computed_again(self, tmp_path: Path) -> None:
        calls = []

        def compute() -> dict[str, Any]:
            calls.append(1)
            return {"loss": np.float64(2.5), "lost": float("nan")}

        steps = Steps(tmp_path)
        first = steps.json("loss of it", {"seed": 0}, compute)
        assert first == steps.json("loss of it", {"seed": 0}, compute) == {"loss": 2.5, "lost": None}
        assert len(calls) == 1
        steps.json("loss of it", {"seed": 1}, compute)
        assert len(calls) == 2

    def test_arrays(self, tmp_path: Path) -> None:
        steps = Steps(tmp_path)
        made = steps.arrays("grid", {"n": 2}, lambda: {"x": np.arange(3.0), "names": np.array(["a", "b"])})
        kept = steps.arrays("grid", {"n": 2}, lambda: pytest.fail("computed again"))
        assert all(np.array_equal(made[key], kept[key]) for key in made)

    def test_a_damaged_step_is_computed_again(self, tmp_path: Path) -> None:
        steps = Steps(tmp_path)
        for ending, call in ((".json", steps.json), (".npz", steps.arrays)):
            path = steps.path("s", {})
            path.parent.mkdir(exist_ok=True)
            path.with_name(path.name + ending).write_text("{half")
            assert call("s", {}, lambda: {"x": 1})["x"] == 1  # type: ignore[operator]


class TestPlaces:
    def test_names_in_a_folder(self, tmp_path: Path) -> None:
        for place in ("gpt2", "state-spaces/mamba-130m-hf", "EleutherAI/pythia-70m@step1", "mine/step2"):
            (tmp_path / place).mkdir(parents=True)
            (tmp_path / place / "config.json").write_text("{}")
        (tmp_path / "mine" / "config.json").write_text("{}")
        for name in ("gpt2", "state-spaces/mamba-130m-hf", "EleutherAI/pythia-70m@step1"):
            assert locate(name, tmp_path) == str(tmp_path / name)
        assert locate("mine@step2", tmp_path) == str(tmp_path / "mine" / "step2")
        assert locate("gpt2") == "gpt2"
        assert locate("nano-gpt2", tmp_path) == "nano-gpt2"
        with pytest.raises(ModelError, match=r"bert is not in .*config\.json"):
            locate("bert", tmp_path)

    def test_models_that_packages_carry(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        package = tmp_path / "carrier"
        package.mkdir()
        (package / "__init__.py").write_text("raise RuntimeError('imported')")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setitem(PACKAGED, "Carried", ("carrier", "model.gguf"))
        assert locate("Carried") == str(package / "model.gguf")  # and the package was not imported
        assert locate("Carried", tmp_path) == str(package / "model.gguf")
        monkeypatch.setitem(PACKAGED, "Absent", ("no_such_package", "model"))
        with pytest.raises(ModelError, match=r"Absent is in the package no_such_package.*thinkalike\[real\]"):
            locate("Absent")

    def test_what_is_not_bundled(self) -> None:
        assert lacking(["nano-bert", "nano-nothing", "gpt2"]) == ["nano-nothing"]
        require(["nano-bert"], recipe="small")
        with pytest.raises(ModelError, match="small needs the bundled models nano-x, nano-y"):
            require(["nano-x", "nano-y"], recipe="small")


class TestCommand:
    def test_lists_the_recipes(self) -> None:
        result = CliRunner().invoke(app, ["reproduce"], env={"COLUMNS": "120"})
        assert result.exit_code == 0
        assert all(name in result.output for name in RECIPES)

    def test_runs_one(self, small: Recipe, tmp_path: Path) -> None:
        options = ["--scale", "smoke", "--out", str(tmp_path / "run"), "--set", "height=4"]
        result = CliRunner().invoke(app, ["reproduce", "small", *options], env={"COLUMNS": "200"})
        assert result.exit_code == 0, result.output
        assert "agrees  From 0.5 to 1." in result.output
        assert "Beyond the paper" in result.output
        assert str(tmp_path / "run" / "index.html") in result.output
        again = CliRunner().invoke(app, ["reproduce", "small", *options], env={"COLUMNS": "200"})
        assert again.output == result.output + AGAIN + "\n"

    def test_a_file_that_was_read_may_be_another_next_time(self, small: Recipe, tmp_path: Path) -> None:
        (tmp_path / "t.txt").write_text("words")
        options = ["--scale", "smoke", "--out", str(tmp_path / "run"), "--set", f"text={tmp_path / 't.txt'}"]
        for _ in range(2):
            result = CliRunner().invoke(app, ["reproduce", "small", *options])
            assert result.exit_code == 0, result.output
            assert AGAIN not in result.output

    def test_settings_are_read_as_json_where_they_are(self) -> None:
        assert parse_settings(["n=3", "names=[1, 2]", "file=a=b.txt"]) == {
            "n": 3,
            "names": [1, 2],
            "file": "a=b.txt",
        }
        with pytest.raises(InvalidInput, match="'n' changes no setting: write SETTING=VALUE"):
            parse_settings(["n"])


def test_a_verdict_is_one_of_three() -> None:
    with pytest.raises(UnknownName, match="verdict 'maybe'"):
        Statement("a", "b", "maybe")  # type: ignore[arg-type]


class TestGallery:
    def test_a_run_is_copied_and_replaces_the_one_before(self, small: Recipe, tmp_path: Path) -> None:
        reproduce("small", "smoke", tmp_path / "run")
        for _ in range(2):
            place = gallery.fill(tmp_path / "run", tmp_path / "gallery")
        assert place == tmp_path / "gallery" / "small-smoke"
        files = sorted(str(p.relative_to(place)) for p in place.rglob("*") if p.is_file())
        assert files == ["figures/line.png", "findings.json"]
        assert [p.name for p in (tmp_path / "gallery").iterdir()] == ["small-smoke"]

    def test_another_seed_adds_its_verdicts_to_the_page(self, small: Recipe, tmp_path: Path) -> None:
        reproduce("small", "smoke", tmp_path / "run")
        reproduce("small", "smoke", tmp_path / "again", seed=1)
        for run in ("run", "again"):
            place = gallery.fill(tmp_path / run, tmp_path / "gallery")
        assert json.loads((place / "findings.json").read_text())["settings"]["seed"] == 0
        beside = json.loads((place / "verdicts-seed1.json").read_text())
        assert beside["seed"] == 1
        assert sorted(beside["verdicts"].values()) == ["agrees", "cannot be tested", "differs"]

    def test_pictures_are_as_sharp_as_their_size_allows(self) -> None:
        words = "".join(f'<text x="{9 * k % 90}" y="{k}">word {k}</text>' for k in range(99))
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="99" height="99">{words}</svg>'
        sharp, small = gallery.picture(svg), gallery.picture(svg, largest=10)
        assert len(small) < len(sharp) <= gallery.LARGEST
        drawn = np.asarray(Image.open(BytesIO(sharp)).convert("RGB"), dtype=float)
        wanted = np.asarray(Image.open(BytesIO(vl_convert.svg_to_png(svg, scale=2.0))).convert("RGBA"))
        on_white = wanted[..., :3] * (wanted[..., 3:] / 255) + 255.0 - wanted[..., 3:]
        assert np.abs(drawn - on_white).max() <= 3  # no eye tells these colours apart

    def test_several_runs_are_put_there_and_named(
        self,
        small: Recipe,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        reproduce("small", "nano", tmp_path / "run")
        reproduce("small", "smoke", tmp_path / "quick")
        gallery.main([str(tmp_path / "run"), str(tmp_path / "quick")])
        places = [str(gallery.GALLERY / name) for name in ("small", "small-smoke")]
        assert capsys.readouterr().out.split() == places
        assert all((Path(place) / "findings.json").exists() for place in places)

    def test_a_folder_without_findings(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="holds no finished run"):
            gallery.fill(tmp_path)


def test_the_time_of_all_calls_is_counted_also_of_those_that_failed(
    small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([10.0, 14.0, 20.0, 21.5])
    monkeypatch.setattr("thinkalike.recipes.reproducing.time.process_time", lambda: next(clock))

    def fail(settings: Mapping[str, Any], out: Path) -> Findings:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(sys.modules["small_recipe"], "run", fail)
        with pytest.raises(KeyboardInterrupt):
            reproduce("small", "smoke", tmp_path / "run")
    assert reproduce("small", "smoke", tmp_path / "run").seconds == 5.5
    assert json.loads((tmp_path / "run" / "findings.json").read_text())["processor_seconds"] == 5.5


class TestForesee:
    def test_how_long_the_shown_run_took(self, small: Recipe, tmp_path: Path) -> None:
        table.RECIPES.register("timed", replace(small, name="timed", taken={"nano": 150.0}))
        try:
            said = foresee("timed", out=tmp_path / "run")
            assert said.startswith(
                "timed at scale nano: the run that the gallery shows took 2.5 min of the proc"
            )
            assert "the processor, with other settings." in foresee("timed", out=tmp_path / "run", height=9)
            assert "is not known beforehand" in foresee("timed", "paper", tmp_path / "run")
        finally:
            table.RECIPES.unregister("timed")

    def test_what_the_folder_holds_is_counted(self, small: Recipe, tmp_path: Path) -> None:
        out = tmp_path / "run"
        assert f"Nothing is kept in {out}: all of it is to be done." in foresee("small", "smoke", out)
        assert not out.exists()  # nothing is begun
        reproduce("small", "smoke", out)
        for k in range(3):
            Steps(out).json("step", {"k": k}, lambda: 1)
        said = foresee("small", "smoke", out)
        assert f"{out} holds 3 finished steps, which took" in said
        assert "about a minute of the processor" in said

    def test_what_reproduce_refuses_is_refused(self, small: Recipe, tmp_path: Path) -> None:
        with pytest.raises(UnknownName, match="no scale of small 'real'"):
            foresee("small", "real", tmp_path / "run")
        with pytest.raises(UnknownName, match="heigth"):
            foresee("small", "smoke", tmp_path / "run", heigth=3)
        reproduce("small", "smoke", tmp_path / "run")
        with pytest.raises(StoreError, match="holds small at scale smoke"):
            foresee("small", "nano", tmp_path / "run")


def test_a_recipe_is_registered_under_its_own_name(small: Recipe) -> None:
    with pytest.raises(InvalidInput, match="give a Recipe of that name"):
        table.RECIPES.register("other", small)
    with pytest.raises(InvalidInput, match="give a Recipe of that name"):
        table.RECIPES.register("other", "thinkalike.recipes.salle2024")  # type: ignore[arg-type]
