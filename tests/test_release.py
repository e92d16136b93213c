"""What a release says of itself: one version, targets that exist, a small wheel that is whole."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import thinkalike as ta

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
LARGEST_WHEEL = 60_000_000
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def commands(workflow: Path) -> list[str]:
    content: dict[str, Any] = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    return [step["run"] for job in content["jobs"].values() for step in job["steps"] if "run" in step]


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changes, re.MULTILINE)
    assert newest is not None
    assert project["version"] == str(cited["version"]) == newest[1] == ta.__version__


def test_changes_are_by_kind() -> None:
    kinds = re.findall(r"^### (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Going", "Removed", "Fixed", "Security"}
    assert kinds


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_that_exist(workflow: Path) -> None:
    called = [
        word
        for command in commands(workflow)
        for part in re.findall(r"\bmake ([a-z -]+)", command)
        for word in part.split()
    ]
    assert called
    assert set(called) <= TARGETS


def test_what_the_gate_runs_the_workflows_run() -> None:
    gate = set(
        re.findall(r"^make ([a-z-]+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    )
    everywhere = " ".join(command for workflow in WORKFLOWS for command in commands(workflow))
    assert gate <= TARGETS
    assert gate <= set(re.findall(r"[a-z-]+", everywhere))


def test_wheels_are_tried_on_three_systems_and_three_pythons() -> None:
    jobs = yaml.safe_load(WORKFLOWS[0].read_text(encoding="utf-8"))["jobs"]
    assert {name.split("-")[0] for name in jobs["wheel"]["strategy"]["matrix"]["system"]} == {
        "ubuntu",
        "macos",
        "windows",
    }
    assert jobs["tests"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_are_what_github_reads(template: Path) -> None:
    content = yaml.safe_load(template.read_text(encoding="utf-8"))
    if template.name == "config.yml":
        assert "blank_issues_enabled" in content
        return
    assert {"name", "description", "body"} <= set(content)


def test_pre_commit_checks_what_lint_checks() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    names = {hook["id"] for repo in hooks["repos"] for hook in repo["hooks"]}
    assert {"ruff-check", "ruff-format"} <= names or {"ruff", "ruff-format"} <= names


def test_the_wheel_is_small_and_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < LARGEST_WHEEL
    inside = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "thinkalike").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources <= inside
    assert not [name for name in inside if name.startswith(("tests/", "docs/", "benchmarks/", "training/"))]
