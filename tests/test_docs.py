"""Every command and every piece of Python in the README and the docs is run here.

Pages say themselves how they are run, in comments right before a block that readers do not see:

    <!-- smoke: 500 → 40; "gpt2" → "nano-gpt2" -->     what is replaced, so that it is small and offline
    <!-- smoke: skip, needs the network -->              why it is not run
    <!-- smoke: first                                    what the page takes for granted
    X = np.zeros((3, 2))
    -->

A block that begins with `# file: NAME` is a file. The blocks of a page run in order, in one folder and one
namespace. Each folder holds `sample.conllu`, `corpus.txt` and `runs/nano`, a finished run.
"""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from thinkalike.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += [page for page in sorted((ROOT / "docs").rglob("*.md")) if "hooks" not in page.parts]
BLOCK = re.compile(
    r"(?P<rules>(?:^<!-- smoke: (?:(?!-->).)*-->\n)*)^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
RULE = re.compile(r"<!-- smoke: (.*?)\s*-->", re.DOTALL)
SHELL = ("sh", "bash", "console", "shell")
PROGRAMS = ("thinkalike", "python", "python3", "pip", "make", "git", "npm", "mkdocs", "pytest")
SMALL = {"n_sentences": 40, "seed": 0}
WHOLE_RUNS = ("docs/recipes.md", "docs/recipes_brown2023.md", "docs/robustness.md")
"""Pages whose blocks run whole recipes, or a comparison in all its analyses"""


@dataclass(frozen=True)
class Block:
    """A block of a page, as it is to be run."""

    language: str
    text: str
    first: str = ""
    skip: str = ""


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page, with the rules before them applied."""
    for found in BLOCK.finditer(page):
        text, first, skip = found["text"], "", ""
        for rule in RULE.findall(found["rules"]):
            if rule.startswith("first\n"):
                first = rule.removeprefix("first\n")
            elif rule.startswith("skip, "):
                skip = rule.removeprefix("skip, ")
            else:
                text = replaced(text, rule)
        yield Block(found["language"], text, first, skip)


def replaced(text: str, rule: str) -> str:
    """The text after `OLD → NEW; OLD → NEW`; what is not there cannot be replaced."""
    for change in rule.split("; "):
        old, arrow, new = change.partition(" → ")
        assert arrow, f"{rule!r} is no rule: OLD → NEW, skip or first"
        assert old in text, f"{old!r} is not in the block it was to be replaced in:\n{text}"
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What every page finds in its folder; and one cache of activations for all of them."""
    import thinkalike as ta
    from thinkalike.comparison.cautions import CautionWarning
    from thinkalike.systems import bundled

    folder = tmp_path_factory.mktemp("given")
    shutil.copy(ROOT / "tests" / "stimuli" / "data" / "sample.conllu", folder)
    text = bundled.sample_text().read_text(encoding="utf-8")
    (folder / "corpus.txt").write_text(text[:6_000], encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("THINKALIKE_CACHE", str(folder / "cache"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CautionWarning)
            three = ["nano-bert", "nano-gpt2", "nano-mamba"]
            stimuli = ta.Stimuli.from_grammar(**SMALL)
            ta.compare(three, stimuli, resamples=2, out=folder / "runs" / "nano")
        yield folder


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.whole_runs if name_of(page) in WHOLE_RUNS else ())
        for page in PAGES
    ],
    ids=name_of,
)
def test_the_page_runs(page: Path, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from thinkalike.comparison.cautions import CautionWarning
    from thinkalike.measures import MEASURES

    found = list(blocks(page.read_text("utf-8")))
    if not any(block.language in ("python", *SHELL) for block in found):
        return
    shutil.copytree(given, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("cache"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    measures = set(MEASURES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)  # so few sentences do call for caution
        for block in found:
            run(block, names, page.name, monkeypatch)
    for added in set(MEASURES) - measures:
        MEASURES.unregister(added)


def run(block: Block, names: dict[str, object], page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the file, execute the Python, or call the commands of a block."""
    exec(compile(block.first, f"{page} (first)", "exec"), names)
    file = re.match(r"# file: (\S+)\n", block.text)
    if block.skip:
        return
    if file:
        Path(file[1]).write_text(block.text[file.end() :], encoding="utf-8")
    elif block.language == "python":
        exec(compile(block.text, page, "exec"), names)
    elif block.language in SHELL:
        for line in block.text.replace("\\\n", " ").strip().split("\n"):
            command(shlex.split(line, comments=True), monkeypatch)


def command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run one line; for what would install or build, look whether it could."""
    match words:
        case []:
            pass
        case ["thinkalike", *arguments]:
            result = CliRunner().invoke(app, arguments, catch_exceptions=False)
            assert result.exit_code == 0, f"{shlex.join(words)}\n{result.output}"
        case ["python", "-m", module, *arguments] if module.startswith("thinkalike"):
            monkeypatch.setattr("sys.argv", [module, *arguments])
            runpy.run_module(module, run_name="__main__", alter_sys=False)
        case ["python", script] if script.startswith("examples/"):
            assert (ROOT / script).exists(), f"{script} is not there; `make examples` runs all that are"
        case ["make", *targets]:
            known = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
            assert set(targets) <= set(known)
        case ["pip", "install", *what]:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
            for extra in re.findall(r"thinkalike\[(\w+)\]", " ".join(what)):
                assert extra in project["optional-dependencies"]
        case _:
            pytest.fail(f"no test knows how to run {shlex.join(words)!r}: say why it is skipped")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_command_hides_from_the_tests(page: Path) -> None:
    """Commands stand in blocks that are marked as shell, or within a line, where their options exist."""
    text = page.read_text("utf-8")
    for block in BLOCK.finditer(text):
        if block["language"] not in SHELL:
            for line in block["text"].splitlines():
                assert line.split(" ")[0] not in PROGRAMS, f"mark this block as sh: {line}"
    prose = BLOCK.sub("", text)
    indented = rf"^ {{4}}(?:{'|'.join(PROGRAMS)}) "
    assert not re.search(indented, prose, re.MULTILINE), "fence it and mark it as sh"
    for words in re.findall(r"`thinkalike ([^`]+)`", prose):
        name, *rest = words.split()
        if name.islower() and not name.startswith("-"):
            assert name in COMMANDS, f"there is no command {name!r}"
            assert {word for word in rest if word.startswith("--")} <= COMMANDS[name], words


COMMANDS = {
    name: {option for p in made.params for option in (*p.opts, *p.secondary_opts)}
    for name, made in get_command(app).commands.items()  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_is_skipped_needs_the_network_or_names_the_test_that_runs_it(page: Path) -> None:
    for block in blocks(page.read_text("utf-8")):
        named = re.findall(r"tests/\w+(?:/\w+\.py)?", block.skip)
        assert all((ROOT / test).exists() for test in named), block.skip
        assert not block.skip or named or "network" in block.skip, block.skip


def test_rules_are_applied_and_stale_ones_are_found() -> None:
    page = "<!-- smoke: 500 → 4; a → b -->\n<!-- smoke: first\nx = 1\n-->\n```python\nf(500, a)\n```\n"
    assert list(blocks(page)) == [Block("python", "f(4, b)\n", "x = 1")]
    skipped = "<!-- smoke: skip, it is long -->\n```sh\nmake demo\n```\n"
    assert [block.skip for block in blocks(skipped)] == ["it is long"]
    with pytest.raises(AssertionError, match="is not in the block"):
        list(blocks("<!-- smoke: 600 → 4 -->\n```python\nf(500)\n```\n"))


def test_an_unknown_program_or_target_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.fail.Exception, match="no test knows how to run"):
        command(["curl", "somewhere"], monkeypatch)
    with pytest.raises(AssertionError):
        command(["make", "coffee"], monkeypatch)
    with pytest.raises(AssertionError):
        command(["thinkalike", "compare", "--no-such-option"], monkeypatch)
