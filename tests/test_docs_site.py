"""What the site makes from the code: commands, public names, formulas, and the gallery of recipes."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from typer.main import get_command

import thinkalike
from thinkalike.cli import app

ROOT = Path(__file__).parents[1]
RECIPE = SimpleNamespace(name="planted", title="A planted recipe", citation="Us 2024", shows="Figure 1")
FOUND = {
    "recipe": "planted",
    "scale": "nano",
    "settings": {"seed": 0},
    "processor_seconds": 130.0,
    "verdicts": {"agrees": 1, "differs": 1, "cannot be tested": 0},
    "statements": [
        {"paper": "a < b", "found": "1 < 2", "verdict": "agrees", "numbers": {"a|b": 0.5}, "beyond": False},
        {
            "paper": "open",
            "found": "not so",
            "verdict": "differs",
            "numbers": {},
            "beyond": True,
            "rule": {
                "effect": "a − b",
                "in_words": "agrees from 0.1 on",
                "written": "2026-11-17",
                "earlier": ["from 0.2 on"],
            },
            "sensitivity": {"agree": 3, "n": 4, "otherwise": ["cosine"]},
        },
    ],
    "figures": [
        {"name": "one", "title": "One", "caption": "With *stars*", "of_paper": "Figure 1"},
        {"name": "lost", "title": "No file", "caption": "", "of_paper": ""},
    ],
    "tables": [
        {"name": "t", "title": "T", "caption": "", "of_paper": "Table 1", "rows": [{"x": None, "y": -2}]},
    ],
    "notes": ["Be careful."],
}


def hook(name: str) -> ModuleType:
    """A module of docs/hooks, as MkDocs loads it."""
    spec = importlib.util.spec_from_file_location(f"hooks_{name}", ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_and_option_is_in_the_reference() -> None:
    text = hook("cli").on_page_markdown((ROOT / "docs" / "reference" / "cli.md").read_text("utf-8"))
    sections = dict(re.findall(r"^## thinkalike (\w+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert set(sections) == set(commands)
    for name, command in commands.items():
        assert command.help.split("\n")[0] in sections[name]
        for parameter in command.params:
            names = parameter.opts if parameter.param_type_name == "option" else []
            for option in {*names, *parameter.secondary_opts} - {"--help"}:
                assert f"`{option}`" in sections[name], f"{name} {option}"
    assert (
        "How many sentences to make; of a file, the first so many. Default: `200; of a file all`."
        in sections["stimuli"]
    )
    assert "Default: `--pack`" in sections["cka"]


def reference() -> str:
    """All pages of the Python reference, with the names filled in."""
    fill = hook("api").on_page_markdown
    return "\n".join(fill(page.read_text("utf-8")) for page in (ROOT / "docs" / "reference").glob("*.md"))


def test_every_public_name_is_in_the_reference() -> None:
    text = reference()
    for name in set(thinkalike.__all__) - {"__version__"}:
        assert re.search(rf"^::: thinkalike\.[\w.]+\.{name}$", text, re.MULTILINE), name


def test_every_name_of_the_reference_exists() -> None:
    for path in re.findall(r"^::: (\S+)$", reference(), re.MULTILINE):
        module, _, name = path.rpartition(".")
        assert hasattr(importlib.import_module(module), name), path


def test_notebooks_are_run_with_the_package_as_it_is() -> None:
    """What an earlier package gave is not shown, and an error in a cell is an error of the site."""
    plugin = (ROOT / "mkdocs.yml").read_text("utf-8").partition("mkdocs-jupyter:\n")[2].partition("  - ")[0]
    said = dict(re.findall(r"^ +(\w+): (\w+)", plugin, re.MULTILINE))
    assert (said["execute"], said["cache"], said["allow_errors"]) == ("true", "false", "false")


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]))
    docs = ROOT / "docs"
    assert {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} == listed


def test_links_of_the_readme_lead_somewhere() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text("utf-8")):
            assert (ROOT / target).exists(), f"{page}: {target}"


def test_formulas_become_mathml() -> None:
    fill = hook("maths").on_page_content
    made = fill(r'<p>So <span class="arithmatex">\(a &lt; b_f\)</span>.</p>')
    assert made.startswith("<p>So <math")
    assert "&lt;" in made or "&#x0003C;" in made
    assert "arithmatex" not in made
    assert fill("<p title='τ_w'>τ_w, <code>τ_w</code></p>") == (
        "<p title='τ_w'>τ<sub>w</sub>, <code>τ_w</code></p>"
    )
    assert 'display="block"' in fill('<div class="arithmatex">\\[\\sum_i x_i\\]</div>')


def test_meanings_right_after_names_are_descriptions() -> None:
    pytest.importorskip("griffe")
    described = hook("docstrings").described
    entries = "x, y : two arrays\nz\n    Already so."
    text = f"Do.\n\nParameters\n----------\n{entries}\n\nReturns\n-------\nfloat : kept"
    assert described(text) == text.replace("x, y : two arrays", "x, y\n    two arrays")
    two = "Attributes\n----------\nn : int;  kind : {'a', 'b'}\n    Which one."
    assert described(two) == "Attributes\n----------\nn\n    int\nkind\n    {'a', 'b'}.\n    Which one."


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = hook("gallery")
    monkeypatch.setattr(module, "recipes", lambda: {"planted": RECIPE})
    return module


def test_a_recipe_that_was_not_run_says_so(gallery: Any, tmp_path: Path) -> None:
    page = gallery.page(RECIPE, tmp_path / "planted")
    assert "has not been run" in page
    assert "thinkalike reproduce planted --scale nano" in page
    assert "Not run" in gallery.overview(tmp_path)


def test_findings_fill_the_gallery(gallery: Any, tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    (folder / "figures").mkdir(parents=True)
    (folder / "figures" / "one.png").write_bytes(b"")
    (folder / "findings.json").write_text(json.dumps(FOUND), encoding="utf-8")
    page = gallery.page(RECIPE, folder)
    assert "2 of 2 statements were tested." in page
    assert '| a &lt; b | <span class="verdict agrees">agrees</span> | 1 &lt; 2<br>' in page
    assert "<small>a&#124;b 0.5</small> |" in page
    assert page.index("What the paper says") < page.index("a&#124;b") < page.index("Beyond the paper")
    assert '| open | <span class="verdict differs">differs</span><br><small>3 of 4' in page
    assert "## One (Figure 1)\n\n![One](figures/one.png)\n\nWith \\*stars\\*" in page
    assert "No file" not in page
    assert "| – | −2 |" in page
    assert "2 min" in page
    assert "*Be careful.*" in page
    assert "![A planted recipe](planted/figures/one.png)" in gallery.overview(tmp_path)


def test_rules_and_other_analyses_stand_beside_a_verdict(gallery: Any, tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    folder.mkdir()
    (folder / "findings.json").write_text(json.dumps(FOUND), encoding="utf-8")
    page = gallery.page(RECIPE, folder)
    assert "3 of 4 analyses" in page
    assert "agrees from 0.1 on (rule of 2026-11-17). Before: from 0.2 on" in page
    assert "older inference" not in page
    ruleless = {**FOUND, "statements": FOUND["statements"][:1]}  # type: ignore[index]
    (folder / "findings.json").write_text(json.dumps(ruleless), encoding="utf-8")
    assert "This page is of the older inference" in gallery.page(RECIPE, folder)


def test_a_verdict_that_another_seed_does_not_share_is_undecided(gallery: Any, tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    folder.mkdir()
    (folder / "findings.json").write_text(json.dumps(FOUND), encoding="utf-8")
    claims = [statement["paper"] for statement in FOUND["statements"]]  # type: ignore[index]
    assert [s["verdict"] for s in gallery.settled(folder)["statements"]] == ["agrees", "differs"]
    other = {"seed": 1, "verdicts": {claims[0]: "agrees", claims[1]: "agrees"}}
    (folder / "verdicts-seed1.json").write_text(json.dumps(other), encoding="utf-8")
    page = gallery.page(RECIPE, folder)
    assert "1 of 2 verdicts are the same, and 1 turn from *agrees* to *differs* or back" in page
    assert page.count("<small>seed 0: differs; seed 1: agrees</small>") == 1
    assert gallery.settled(folder)["verdicts"] == {
        "agrees": 1, "differs": 0, "undecided": 1, "cannot be tested": 0
    }  # fmt: skip
    assert '<span class="verdict differs">differs</span> 0' in gallery.overview(tmp_path)


def test_a_verdict_that_another_seed_could_not_test_is_undecided(gallery: Any, tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    folder.mkdir()
    (folder / "findings.json").write_text(json.dumps(FOUND), encoding="utf-8")
    claims = [statement["paper"] for statement in FOUND["statements"]]  # type: ignore[index]
    verdicts = {claims[0]: "cannot be tested", claims[1]: "differs"}
    other = {"seed": 1, "processor_seconds": 1800.0, "verdicts": verdicts}
    (folder / "verdicts-seed1.json").write_text(json.dumps(other), encoding="utf-8")
    assert [s["verdict"] for s in gallery.settled(folder)["statements"]] == ["undecided", "differs"]
    assert "of processor time; with seed 1, in 30 min. To run it again:" in gallery.page(RECIPE, folder)


def test_files_that_a_run_was_given_are_part_of_its_command(gallery: Any, tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    folder.mkdir()
    found = {**FOUND, "settings": {"treebank": "en.conllu", "preset": "default", "old": "x"}}
    (folder / "findings.json").write_text(json.dumps(found), encoding="utf-8")
    usual = SimpleNamespace(plain=lambda: {"treebank": None, "preset": "default", "seed": 0})
    recipe = SimpleNamespace(**{**vars(RECIPE), "scales": {FOUND["scale"]: usual}})
    assert "--scale nano --set treebank=en.conllu\n" in gallery.page(recipe, folder)


def test_a_run_on_pretrained_models_has_a_page_of_its_own_before_the_others(
    gallery: Any, tmp_path: Path
) -> None:
    (tmp_path / "planted-real").mkdir()
    (tmp_path / "planted-real" / "findings.json").write_text(json.dumps({**FOUND, "scale": "real"}), "utf-8")
    assert list(gallery.pages(tmp_path)) == ["planted-real", "planted"]
    page = gallery.page(RECIPE, tmp_path / "planted-real")
    assert "# A planted recipe: pretrained" in page
    assert "thinkalike reproduce planted --scale real" in page
    overview = gallery.overview(tmp_path)
    assert overview.index("(planted-real/index.md)") < overview.index("(planted/index.md)")


def test_every_recipe_has_a_page_in_the_navigation(gallery: Any, tmp_path: Path) -> None:
    config = SimpleNamespace(
        nav=[{"Home": "index.md"}, {"Gallery": ["gallery/index.md"]}], docs_dir=str(tmp_path)
    )
    assert gallery.on_config(config).nav[1] == {
        "Gallery": ["gallery/index.md", {"planted": "gallery/planted/index.md"}]
    }


def test_every_simulation_is_on_the_page_of_certainty(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "certainty.md").read_text("utf-8")
    made = hook("calibration")
    row = {"name": "p | q", "world": "w", "goal_low": 0.03, "goal_high": 0.07, "error": 0.011, "n": 400}
    rows = {
        "ranges-a": [row | {"found": 0.05, "holds": True}],
        "ranges-b": [row | {"found": 0.08, "holds": False, "world": "another"}],
        "of-others": [row | {"found": 0.09, "holds": False, "world": "elsewhere"}],
        "groups-a": [row | {"goal_low": 0.0, "goal_high": 1.0, "found": 0.4, "holds": True}],
    }
    monkeypatch.setattr(made, "RESULTS", tmp_path / "calibration.json")
    made.RESULTS.write_text(json.dumps(rows), encoding="utf-8")
    text = made.on_page_markdown(page)
    assert text.count("| p \\| q | w | 3–7 % | 5.0 ± 1.1 % | 400 |") == 1
    missed = text[text.index("All that missed") : text.index("Not on the careful side")]
    assert missed.count("**, missed") == 2
    assert text.count("| p \\| q | elsewhere | 3–7 % | **9.0 ± 1.1 %**, missed | 400 |") == 2  # and below
    assert "| geometric measures (RSA, CKA) | **1 of 2**: 5.0 to 8.0\N{NO-BREAK SPACE}% |  |  |" in text
    assert "| groups of models |  |  |  |" in text  # without a goal nothing is met
    assert "| p \\| q | w | none | 40.0 ± 1.1 % | 400 |" in text
    assert "<!-- calibration" not in text
    assert "*Not simulated yet.*" in text
    assert made.on_page_markdown("# Other page") == "# Other page"


def test_both_ways_to_fit_are_beside_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = hook("authors")
    ours = {"fit (s)": 0.01, "importance (s)": 0.02, "rho": 0.5, "weights": [1.0], "importance": [-0.0001]}
    theirs = [
        {
            **ours,
            "rho": rho,
            "fit (s)": seconds,
            "importance": [-rho],
            "cosine of the weights": rho,
            "r of the importances": 0.9,
            "same first feature": rho > 0.3,
        }
        for rho, seconds in ((0.3, 4.0), (0.4, 2.0), (0.45, 9.0))
    ]
    layers = {"m:1": {"ours": ours, "theirs": theirs}}
    found = {"items": 514, "features": ["word_length"], "load": 1.2, "layers": layers}
    monkeypatch.setattr(made, "RESULTS", tmp_path / "authors.json")
    made.RESULTS.write_text(json.dumps(found), encoding="utf-8")
    text = made.on_page_markdown((ROOT / "docs" / "authors.md").read_text("utf-8"))
    assert "| m:1 | 0.300 to 0.450 | 0.500 | 0.300 | 0.900 | not the same |" in text
    assert "| m:1 | 4.0 s | 0.010 s | 0.0 s | 0.020 s |" in text
    assert "| word length | 1.000 | 1.000 | −0.450 to −0.300 | 0.000 |" in text
    assert "<!-- authors" not in text
    assert made.on_page_markdown("# Other page") == "# Other page"
