"""The same options, names and defaults in Python and on the command line; what has no effect is refused."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer

import thinkalike as ta
from thinkalike.cli import app
from thinkalike.cli.boundary import run as run_line
from thinkalike.comparison.comparing import usual_resamples
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.group import GroupComparison
from thinkalike.encoding.settings import Settings
from thinkalike.errors import InvalidInput
from thinkalike.recipes import reproduce
from thinkalike.stitching import TaskFit

BEHIND: dict[str, list[Any]] = {
    "compare": [ta.compare, ta.extract, Settings, ta.Stimuli.from_grammar],
    "profile": [ta.profile, ta.extract, Settings, ta.Stimuli.from_grammar],
    "extract": [ta.extract],
    "cka": [ta.stream_cka],
    "stitch": [ta.stitch, TaskFit],
    "stimuli": [ta.Stimuli.from_grammar],
    "explain": [Comparison.explain],
    "reproduce": [reproduce],
    "demo": [ta.compare, ta.Stimuli.from_grammar],
    "outputs": [ta.compare_outputs],
    "group": [ta.compare_with_group, GroupComparison.table, ta.extract],
    "fingerprint": [ta.fingerprint, ta.extract],
    "atlas": [ta.Atlas.nearest, ta.Atlas.sensitivity, ta.Atlas, ta.extract],
    "diff": [ta.diff, ta.extract, ta.Stimuli.from_grammar],
    "trace": [ta.trace, ta.extract, ta.Stimuli.from_grammar],
    "serve": [ta.serve],
}
"""Which Python functions take the options of a command"""

OTHER_NAME = {
    "sentences": "n_sentences",
    "worst": "n_worst",
    "measure": "measures",
    "change": "changes",
    "step": "steps",
    "reference": "stimuli",
}
MEANT = {
    ("compare", "resamples"): f"{usual_resamples('default')}; salle2024: {usual_resamples('salle2024')}",
    ("demo", "resamples"): f"{usual_resamples('default')}; salle2024: {usual_resamples('salle2024')}",
    **{(name, "pooling"): "last" for name in ("extract", "compare", "profile", "group", "diff", "trace")},
    **{(name, "dtype"): "float32" for name in ("extract", "compare", "profile", "group", "diff", "trace")},
    **{(name, "dtype"): "float32" for name in ("fingerprint", "atlas")},
    ("serve", "port"): "any that is free",
}
"""Defaults that the function works out itself, from None or 0; each has a test of its own"""


def commands() -> dict[str, Any]:
    found = typer.main.get_command(app)
    return found.commands  # type: ignore[attr-defined, no-any-return]


def options() -> list[tuple[str, str]]:
    return [
        (name, parameter.name)
        for name, command in commands().items()
        for parameter in command.params
        if parameter.param_type_name == "option" and parameter.name != "help"
    ]


def python_default(command: str, option: str) -> Any:
    for function in BEHIND.get(command, []):
        parameters = inspect.signature(function).parameters
        for name in (option, OTHER_NAME.get(option)):
            if name in parameters:
                return parameters[name].default
    return inspect.Parameter.empty


@pytest.mark.parametrize(("command", "option"), options())
def test_defaults_have_one_source(command: str, option: str) -> None:
    """An option is None until given, and then not passed on; the help says what Python does without it."""
    parameter = next(p for p in commands()[command].params if p.name == option)
    behind = python_default(command, option)
    if parameter.is_flag:
        assert parameter.default in (None, behind if behind is not inspect.Parameter.empty else False, True)
        if isinstance(behind, bool):
            assert parameter.default == behind
        return
    if behind is inspect.Parameter.empty or option == "out":
        return  # of the command alone: where to write, what to read
    assert parameter.required or parameter.default is None
    shown = (command, option)
    if shown in MEANT:
        assert parameter.show_default == MEANT[shown]
        return
    if behind is None or (isinstance(behind, (tuple, list)) and not behind):
        return
    if parameter.required:
        return
    assert isinstance(parameter.show_default, str), f"{command} --{option} does not say its default"
    assert re.match(rf"{re.escape(str(behind))}(;|$)", parameter.show_default)


def test_enough_is_compared() -> None:
    """The comparison above is empty without counterparts."""
    compared = [one for one in options() if python_default(*one) is not inspect.Parameter.empty]
    assert len(compared) > 120


def test_defaults_that_are_worked_out(tmp_path: Path) -> None:
    stimuli = ta.Stimuli.from_grammar(4)
    metadata = ta.extract("nano-gpt2", stimuli, out=tmp_path / "x").metadata
    assert metadata["pooling"] == MEANT["extract", "pooling"]
    assert metadata["dtype"] == MEANT["extract", "dtype"]
    for steps, warmup in ((2000, 200), (60, 6), (9000, 200)):
        rates = [TaskFit(steps=steps).rate(k) for k in range(steps)]
        assert int(np.argmax(rates)) in (warmup - 1, warmup)


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """Two files of arrays, and a table of the items."""
    folder = tmp_path_factory.mktemp("arrays")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "x": rng.integers(0, 2, 40),
            "colour": rng.choice(list("rgb"), 40),
            "y": rng.normal(size=40).round(1),
        }
    )
    table.to_csv(folder / "items.csv", index=False)
    for name in ("a", "b"):
        np.savez(folder / f"{name}.npz", first=rng.normal(size=(40, 4)), second=rng.normal(size=(40, 5)))
    return [str(folder / "a.npz"), str(folder / "b.npz")], folder / "items.csv"


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The line that a refused command prints."""
    assert run_line([str(a) for a in arguments]) == 2
    line = capsys.readouterr().err
    assert "Traceback" not in line
    return line


@pytest.mark.parametrize(
    "option",
    [
        "--pooling=mean",
        "--site=mlp",
        "--dtype=float32",
        "--device=cpu",
        "--bos",
        "--drop-first=0",
        "--batch-size=auto",
    ],
)
def test_options_of_models_are_refused_with_arrays(option: str, arrays, tmp_path: Path, capsys) -> None:
    files, items = arrays
    name = option.partition("=")[0].lstrip("-").replace("-", "_")
    line = refused(capsys, "compare", *files, "--stimuli", items, option, "--out", tmp_path / "run")
    assert line == f"error: Got {name} for reading models, and all systems are arrays: leave that out.\n"
    line = refused(capsys, "profile", files[0], "--stimuli", items, option)
    assert "has a meaning only with a model" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--resamples", "99999999999999999999"], "less than or equal to │ │ 100000"),
        (["compare", "a", "b", "--seed", "99999999999999999999"], "less than or equal to"),
        (["compare", "a", "b", "--out", "memory://x"], "memory://x is gone when the command ends"),
        (["compare", "a", "b", "--out", "zzz://lab/x"], "is an address of no kind that is known (zzz)"),
        (["demo", "--out", "memory://x"], "memory://x is gone when the command ends"),
        (["extract", "a", "--stimuli", "x.csv", "--out", ""], "Got no place to write to"),
        (["extract", "a", "--stimuli", "x.csv", "--out", "memory://x"], "is gone when the command ends"),
        (["extract", "a", "--stimuli", "x.csv", "--out", "http://host/x"], "cannot be written to"),
        (["extract", "nano-gpt2", "--stimuli", "x.csv", "--seed", "1"], "only with --untrained"),
        (
            ["stimuli", "--conllu", "x.conllu", "--balance"],
            "--balance has a meaning only where sentences are",
        ),
        (["stimuli", "--check", "x.csv", "--grammar", "clauses"], "--grammar has a meaning only"),
        (["stimuli", "--copy-grammar", "x", "--out", "y.csv"], "--out has a meaning only without"),
        (["stimuli", "-n", "0"], "greater than or"),
        (["stimuli", "--figure", "x.gif"], "figures are drawn as .png, .svg, .pdf, .html"),
        (
            ["stitch", "a", "b", "--text", "x.txt", "--steps", "9"],
            "--steps has a meaning only with --fit task",
        ),
        (["stitch", "a", "b", "--text", "x.txt", "--optimizer", "sgd"], "--optimizer has a meaning only"),
        (["reproduce", "--scale", "smoke"], "--scale has a meaning only with the NAME of a recipe"),
        (["cka", "nano-gpt2", "--text", "x.txt", "--max-batches", "0"], "greater than or"),
        (["cka", "nano-gpt2", "--text", "x.txt", "--length", "0"], "greater than or"),
        (["fingerprint", "nano-bert", "--out", ""], "as the beginning of names of files: give one"),
        (["compare", "a", "b", "--pooling", ""], "--pooling is empty: give a value, or leave it out"),
        (["compare", "a", "b", "--null", "99999999999999999999"], "less than or equal to"),
        (
            ["compare", "a", "b", "--stimuli", "x.csv", "--column", "text=c", "--column", "text=d"],
            "The role 'text' is given twice, as 'c' and as 'd': give one",
        ),
        (
            ["reproduce", "salle2024", "--set", "seed=1", "--set", "seed=2"],
            "The setting 'seed' is given twice, as 1 and as 2",
        ),
        (["compare", "=x", "b"], "'=x' names no model: write MODEL or NAME=MODEL"),
        (["compare", "x=", "b"], "'x=' names no model"),
    ],
)
def test_refused(arguments: list[str], message: str, capsys) -> None:
    assert message in " ".join(refused(capsys, *arguments).split())


def test_places_that_cannot_be(tmp_path: Path, arrays, capsys) -> None:
    files, items = arrays
    (tmp_path / "file").write_text("")
    short = ["compare", *files, "--stimuli", items, "--resamples", "0", "--out"]
    assert "file" in refused(capsys, *short, tmp_path / "file" / "run")
    assert "longer than a file's name can be" in refused(capsys, *short, tmp_path / ("x" * 400))


@pytest.mark.parametrize(
    "command",
    [
        ["fingerprint", "no-such-model", "--out"],
        ["diff", "no-such-model", "no-such-model", "--out"],
        ["profile", "no-such-model", "--figure"],
        ["atlas", "report", "--out"],
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    command: list[str], tmp_path: Path, capsys
) -> None:
    (tmp_path / "file").write_text("")
    refusal = refused(capsys, *command, tmp_path / "file" / "x.html")
    assert "cannot be written (a part of the path is a file, not a folder): name another place" in refusal


def test_arrays_are_no_models(arrays, capsys) -> None:
    files, items = arrays
    for arguments in (["cka", *files, "--text", items], ["extract", files[0], "--stimuli", items]):
        assert "holds arrays, and this command needs a model" in refused(capsys, *arguments)


def test_features_are_chosen_wherever_stimuli_are_given(arrays, tmp_path: Path, run) -> None:
    files, items = arrays
    chosen = ["--stimuli", items, "--drop", "y", "--kind", "x=nominal"]
    run("compare", *files, *chosen, "--resamples", "0", "--out", tmp_path / "run", "--no-report")
    found = Comparison.load(tmp_path / "run")
    assert found.stimuli.kinds == {"x": "nominal", "colour": "nominal"}
    run("profile", files[0], "--stimuli", items, "--features", "colour,x", "--out", tmp_path / "p")
    assert ta.comparison.Profile.load(tmp_path / "p").features == ("colour", "x")
    shown = run("stimuli", "--check", items, "--features", "x,y", "--kind", "x=1,0").stdout
    assert re.search(r"x +ordinal", shown)
    assert "colour" not in shown
    made = run("stimuli", "-n", "5", "--drop", "tense,gender").stdout
    assert "6 features" in made


def test_the_first_sentences_of_a_treebank(tmp_path: Path, run) -> None:
    word = "1\t{}\t{}\tNOUN\t_\tNumber={}\t0\troot\t_\t_\n\n"
    numbers = ["Sing", "Plur"] * 3
    text = "".join(f"# text = w{k}\n" + word.format(f"w{k}", f"w{k}", n) for k, n in enumerate(numbers))
    (tmp_path / "bank.conllu").write_text(text)
    assert "4 items in 4 sentences" in run("stimuli", "--conllu", tmp_path / "bank.conllu", "-n", "4").stdout


def test_what_extract_wrote_is_taken_by_compare_and_profile(tmp_path: Path, run) -> None:
    run("stimuli", "-n", "30", "--out", tmp_path / "s.csv")
    shown = ["--stimuli", tmp_path / "s.csv"]
    done = run("extract", "mine=nano-gpt2", *shown, "--out", tmp_path / "x")
    assert done.stdout.startswith("mine: ")
    done = run("compare", tmp_path / "x", f"other={tmp_path / 'x'}", *shown, "--resamples", "0",
                       "--no-report", "--out", tmp_path / "run")  # fmt: skip
    assert "x, other" in done.stdout
    assert "x: what its layers are organised by" in run("profile", tmp_path / "x", *shown).stdout


def test_a_measure_reaches_the_table(arrays, tmp_path: Path, run) -> None:
    files, items = arrays
    out = tmp_path / "run"
    done = run(
        "compare",
        *files,
        "--stimuli",
        items,
        "--measure",
        "cka",
        "--resamples",
        "0",
        "--out",
        out,
        "--no-report",
    )
    header = next(line for line in done.stdout.splitlines() if line.startswith("systems"))
    assert header.split() == ["systems", "τ_w", "RSA", "cka", "best", "layers"]


def test_numbers_are_never_cut(capsys) -> None:
    from rich.console import Console

    from thinkalike.cli.tables import show_table

    rows = [["a-very-long-name-of-a-model, and-another-one-that-is-long", "0.123456", "−0.98765"]]
    show_table(("systems", "first", "second"), rows, names=("systems",), console=Console(width=30))
    shown = capsys.readouterr().out
    assert "0.123456" in shown
    assert "−0.98765" in shown
    assert "…" not in shown


def test_unknown_options_of_stimuli_are_named() -> None:
    with pytest.raises(InvalidInput, match="declares no kind"):
        run_line(["stimuli", "-n", "5", "--kind", "tense", "--debug"])


def test_robustness_and_importance_are_passed_on(arrays, tmp_path: Path, capsys) -> None:
    files, items = arrays
    run = tmp_path / "run"
    arguments = ["compare", *files, "--stimuli", str(items), "--drop", "y", "--resamples", "0", "--no-report"]
    assert run_line([*arguments, "--robustness", "--importance", "drop", "--out", str(run)]) == 0
    made = Comparison.load(run)
    assert made.settings["importance"] == "drop"
    assert made.tried is not None
    assert made.tried.choices[0]["importance"] == "drop"
    assert "expected importance" in [one.name for one in made.tried.analyses]
    assert made.tried.left_out["no first words"] == "the items are not words in sentences"
    assert made.tried.answer in " ".join(capsys.readouterr().out.split())
