"""The page of a recipe: one HTML file that needs nothing but a browser."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from pathlib import Path

import thinkalike
from thinkalike.charts.notebook import chart_library
from thinkalike.charts.theme import DARK, LIGHT, THEMES, counterparts
from thinkalike.files import plain, write_text
from thinkalike.provenance import versions
from thinkalike.recipes.findings import Findings, Table
from thinkalike.recipes.recipe_registry import Recipe
from thinkalike.report.page import asset, css_variables, environment
from thinkalike.wording import duration

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "index.html"
BADGES = {
    "agrees": "agrees",
    "differs": "differs",
    "undecided": "undecided",
    "cannot be tested": "untested",
}
"""Verdict → the class of its badge"""


def write_page(recipe: Recipe, findings: Findings, folder: Path, seconds: float) -> Path:
    """Write `folder`/index.html and return its path."""
    path = folder / PAGE
    write_text(render(recipe, findings, seconds), path)
    return path


def render(recipe: Recipe, findings: Findings, seconds: float) -> str:
    """The page as text; it makes no request, and every name in it is escaped."""
    page = environment(TEMPLATES).get_template("recipe.html.j2")
    return page.render(
        recipe=recipe,
        findings=findings,
        command=command(recipe, findings),
        answer=answer(findings),
        multiplicity=multiplicity(findings),
        tables=[(table, table_cells(table)) for table in findings.tables],
        specs={figure.name: figure.spec for figure in findings.figures},
        badges=BADGES,
        number=number,
        settings=flat(findings.settings),
        versions=flat(versions()),
        duration=duration(seconds),
        library=chart_library(),
        css=asset("report.css") + (TEMPLATES / "recipe.css").read_text(encoding="utf-8"),
        js=(TEMPLATES / "recipe.js").read_text(encoding="utf-8") + asset("downloads.js"),
        css_variables=css_variables,
        themes=THEMES,
        dark_colours=counterparts(LIGHT, DARK),
        version=thinkalike.__version__,
    )


def command(recipe: Recipe, findings: Findings) -> str:
    """What makes this page again: with the settings that are not those of the scale, of files the name."""
    usual, settings = plain(recipe.scales[findings.scale].plain()), plain(findings.settings)
    own = {name: value for name, value in settings.items() if usual.get(name) != value}
    folder = own.pop("models_folder", None)
    parts = ["thinkalike", "reproduce", recipe.name, "--scale", findings.scale]
    for name, value in own.items():
        parts += ["--set", f"{name}={_as_option(value)}"]
    return shlex.join([*parts, *(["--models", str(folder)] if folder else [])])


def _as_option(value: object) -> str:
    """As `--set` reads it: `a,b` for a list of names, else JSON."""
    if isinstance(value, list) and value and all(isinstance(one, str) and "," not in one for one in value):
        return ",".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def answer(findings: Findings) -> str:
    """`Of 9 statements of the paper 8 were tested: 5 agree, 2 differ, 1 is undecided.`"""
    own = [s for s in findings.statements if not s.beyond]
    whose = "of the paper"
    if not own:  # a recipe that goes beyond the paper in all it does
        own, whose = list(findings.statements), "beyond the paper"
    counts = {verdict: sum(s.verdict == verdict for s in own) for verdict in BADGES}
    tested = len(own) - counts["cannot be tested"]
    parts = [
        f"{counts['agrees']} {'agrees' if counts['agrees'] == 1 else 'agree'}",
        f"{counts['differs']} {'differs' if counts['differs'] == 1 else 'differ'}",
        f"{counts['undecided']} {'is' if counts['undecided'] == 1 else 'are'} undecided",
    ]
    said = ", ".join(part for part in parts if not part.startswith("0 "))
    return f"Of {len(own)} statements {whose} {tested} were tested here{f': {said}' if said else ''}."


def multiplicity(findings: Findings) -> str:
    """What testing many statements means for a reader."""
    tested = sum(s.verdict != "cannot be tested" for s in findings.statements)
    return (
        f"{tested} statements were tested in all, each by its own 95 % range and with no correction for "
        f"their number: where a claim sits on its threshold, about one such verdict in twenty goes astray."
    )


def table_cells(table: Table) -> list[list[str]]:
    """Header and rows as text."""
    header = [str(column) for column in table.frame.columns]
    return [header, *([_cell(value) for value in row] for row in table.frame.itertuples(index=False))]


def number(value: float | None) -> str:
    """Three significant digits, whole numbers as they are, a true minus."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e9 else f"{value:.3g}"
    return text.replace("-", "−")


def flat(values: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as lines of text."""
    lines: list[tuple[str, str]] = []
    for key, value in plain(values).items():
        if isinstance(value, Mapping):
            lines += flat(value, f"{prefix}{key}.")
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            lines.append((f"{prefix}{key}", text))
    return lines


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    value = plain(value)
    if value is None or isinstance(value, float | int):
        return number(value)
    return str(value)
