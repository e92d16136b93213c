"""The gallery: a page per recipe, from the `findings.json` and the figures that its run left in docs/gallery.

Where a run with another seed stands beside it, a verdict is one that the seeds share, or else undecided. A
recipe that has not been run has a page that says so, and how to run it.
"""

from __future__ import annotations

import html
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

OLDER = (
    "!!! warning\n"
    "    This page is of the older inference: its verdicts come from one set of sentences, without ranges "
    "and without rules written before. Take none of them as settled."
)
MARK = "<!-- gallery -->"
REAL = "-real"
FOLDER = "gallery"
UNTESTED = "cannot be tested"
BADGES = {
    "agrees": "agrees",
    "differs": "differs",
    "undecided": "undecided",
    UNTESTED: "untested",
}


def on_config(config: Any) -> Any:
    """Name the recipes in the navigation, below the gallery."""
    for section in config.nav or []:
        if isinstance(section, dict) and isinstance(section.get("Gallery"), list):
            section["Gallery"] += [{name: page_of(name)} for name in pages(Path(config.docs_dir) / FOLDER)]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the page of every recipe."""
    from mkdocs.structure.files import File

    folder = Path(config.docs_dir) / FOLDER
    for name, recipe in pages(folder).items():
        files.append(File.generated(config, page_of(name), content=page(recipe, folder / name)))
    return files


def on_page_markdown(markdown: str, config: Any, **_: Any) -> str:
    """Put the list of recipes where the mark is."""
    return markdown.replace(MARK, overview(Path(config.docs_dir) / FOLDER)) if MARK in markdown else markdown


def recipes() -> dict[str, Any]:
    """Name → recipe, from the table of the package."""
    from thinkalike.recipes import RECIPES

    return dict(RECIPES)


def pages(folder: Path) -> dict[str, Any]:
    """Name of a page → its recipe: one each, and one more, before it, for a run on pretrained models."""
    found = {}
    for name, recipe in recipes().items():
        if read(folder / f"{name}{REAL}") is not None:
            found[f"{name}{REAL}"] = recipe
        found[name] = recipe
    return found


def page_of(name: str) -> str:
    """The path of a recipe's page inside docs."""
    return f"{FOLDER}/{name}/index.md"


def read(folder: Path) -> dict[str, Any] | None:
    """What the run of a recipe found, or None if it has not been run."""
    path = folder / "findings.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def overview(folder: Path) -> str:
    """A line and a picture for every recipe."""
    return "\n\n".join(_entry(recipe, folder / name) for name, recipe in pages(folder).items())


def _entry(recipe: Any, folder: Path) -> str:
    found = settled(folder)
    name = folder.name
    about = f"`{name}`: {_source(recipe)}"
    lines = [f"## [{title_of(recipe, folder)}]({name}/index.md)", about]
    lines.append(tally(found) if found else "Not run at nano scale yet.")
    picture = found and next(filter(None, (_picture(folder, f["name"]) for f in found["figures"])), None)
    if picture:
        lines.append(f"[![{recipe.title}]({name}/{picture})]({name}/index.md)")
    return "\n\n".join(lines)


def page(recipe: Any, folder: Path) -> str:
    """Everything that one run found, as Markdown."""
    head = [f"# {title_of(recipe, folder)}", _source(recipe)]
    scale = "real" if folder.name.endswith(REAL) else "nano"
    found = settled(folder)
    command = f"```text\nthinkalike reproduce {recipe.name} --scale {scale}{_changed(recipe, found)}\n```"
    if found is None:
        return "\n\n".join([*head, "This recipe has not been run at nano scale yet. To run it:", command])
    took = _duration(found["processor_seconds"])
    others = "".join(f"; with seed {seed}, in {_duration(s)}" for seed, s in found["seeds"].items() if s)
    about = f"At {found['scale']} scale, in {took} of processor time{others}. To run it again:"
    older = [] if any(s.get("rule") for s in found["statements"]) else [OLDER]
    parts = [
        *head,
        *older,
        tally(found),
        tested(found),
        about,
        command,
        *(f"*{_text(n)}*" for n in found["notes"]),
    ]
    parts += [said_of_seeds(found)] if found["seeds"] else []
    parts += [_statements("What the paper says, and what we find", found, beyond=False)]
    parts += [_statements("Beyond the paper", found, beyond=True)]
    parts += [_figure(figure, folder) for figure in found["figures"]]
    parts += [_table(table) for table in found["tables"]]
    return "\n\n".join(part for part in parts if part)


def _changed(recipe: Any, found: dict[str, Any] | None) -> str:
    """Files that the run was given, which a reader has to bring."""
    if found is None or found["scale"] not in getattr(recipe, "scales", {}):
        return ""
    usual = recipe.scales[found["scale"]].plain()
    own = {name: value for name, value in found["settings"].items() if name in usual}
    given = {name: value for name, value in own.items() if isinstance(value, str) and usual[name] is None}
    given.pop("models_folder", None)
    return "".join(f" --set {name}={value}" for name, value in given.items())


def settled(folder: Path) -> dict[str, Any] | None:
    """What a run found, with the verdicts that runs with other seeds share, and what each of them says.

    A verdict that another seed does not share is undecided, whatever the run itself would have said; also one
    that could not be tested there.
    """
    found = read(folder)
    if found is None:
        return None
    others = {one["seed"]: one for one in other_seeds(folder)}
    for statement in found["statements"]:
        own = statement["verdict"]
        said = {found["settings"].get("seed", 0): own}
        said |= {seed: one["verdicts"][statement["paper"]] for seed, one in others.items()}
        if set(said.values()) - {own}:
            statement["verdict"] = "undecided"
        statement["by seed"] = said if len(set(said.values())) > 1 else {}
    counts = Counter(statement["verdict"] for statement in found["statements"])
    took = {seed: one.get("processor_seconds") for seed, one in others.items()}
    return found | {"verdicts": {verdict: counts[verdict] for verdict in BADGES}, "seeds": took}


def other_seeds(folder: Path) -> list[dict[str, Any]]:
    """Of further runs, by seed: the seed, what it took, and the verdict of every statement."""
    found = (json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("verdicts-seed*.json"))
    return sorted(found, key=lambda one: one["seed"])


def said_of_seeds(found: dict[str, Any]) -> str:
    """How many verdicts other seeds share."""
    moved = [set(s["by seed"].values()) for s in found["statements"] if s["by seed"]]
    turned = sum({"agrees", "differs"} <= verdicts for verdicts in moved)
    n = len(found["statements"])
    return (
        f"**Run again with another seed**, {n - len(moved)} of {n} verdicts are the same, and {turned} turn "
        "from *agrees* to *differs* or back. A verdict that the seeds do not share is *undecided* here; the "
        "table says what each seed alone would have decided."
    )


def title_of(recipe: Any, folder: Path) -> str:
    if not folder.name.endswith(REAL):
        return str(recipe.title)
    end = " On pretrained models" if recipe.title.endswith("?") else ": pretrained"
    return f"{recipe.title}{end}"


def _source(recipe: Any) -> str:
    end = "" if recipe.citation.endswith("?") else "."
    return f"{recipe.shows} of {recipe.citation}{end}"


def tally(found: dict[str, Any]) -> str:
    """`3 agree, 1 differs, 2 cannot be tested`, as badges."""
    return " ".join(f"{badge(verdict)} {count}" for verdict, count in found["verdicts"].items())


def tested(found: dict[str, Any]) -> str:
    """How many statements were tested, which says how many verdicts may be wrong by chance."""
    own = found["statements"]
    n = sum(statement["verdict"] != UNTESTED for statement in own)
    return f"{n} of {len(own)} statements were tested. Nothing is corrected for their number."


def badge(verdict: str) -> str:
    """A verdict in its colour."""
    return f'<span class="verdict {BADGES[verdict]}">{html.escape(verdict)}</span>'


def _statements(title: str, found: dict[str, Any], *, beyond: bool) -> str:
    own = [s for s in found["statements"] if s["beyond"] is beyond]
    if not own:
        return ""
    rows = [
        f"| {_text(s['paper'])} | {badge(s['verdict'])}{_grid(s)}{_by_seed(s)} "
        f"| {_text(s['found'])}{_rule(s)}{_numbers(s)} |"
        for s in own
    ]
    return "\n".join([f"## {title}", "", "| the paper | verdict | what we find |", "|---|---|---|", *rows])


def _by_seed(statement: dict[str, Any]) -> str:
    """What each seed says, where they do not say the same."""
    said = "; ".join(f"seed {seed}: {verdict}" for seed, verdict in statement["by seed"].items())
    return f"<br><small>{said}</small>" if said else ""


def _grid(statement: dict[str, Any]) -> str:
    """In how many other analyses a verdict comes out alike."""
    found = statement.get("sensitivity")
    return f"<br><small>{found['agree']} of {found['n']} analyses</small>" if found else ""


def _rule(statement: dict[str, Any]) -> str:
    """What would have borne the paper out, and since when that is written down."""
    rule = statement.get("rule")
    if not rule:
        return ""
    before = "".join(f" Before: {_text(old)}" for old in rule["earlier"])
    return f"<br><small>{_text(rule['in_words'])} (rule of {_text(rule['written'])}).{before}</small>"


def _numbers(statement: dict[str, Any]) -> str:
    shown = [f"{_text(name)} {_number(value)}" for name, value in statement["numbers"].items()]
    return f"<br><small>{'; '.join(shown)}</small>" if shown else ""


def _figure(figure: dict[str, Any], folder: Path) -> str:
    picture = _picture(folder, figure["name"])
    if picture is None:
        return ""
    return f"## {_title(figure)}\n\n![{_text(figure['title'])}]({picture})\n\n{_text(figure['caption'])}"


def _title(part: dict[str, Any]) -> str:
    """Of a figure or a table, with its number in the paper."""
    return _text(f"{part['title']} ({part['of_paper']})" if part["of_paper"] else part["title"])


def _picture(folder: Path, name: str) -> str | None:
    """The figure's file, relative to the recipe's page."""
    found = sorted(folder.rglob(f"{name}.png"))
    return found[0].relative_to(folder).as_posix() if found else None


def _table(table: dict[str, Any]) -> str:
    rows = table["rows"]
    if not rows:
        return ""
    names = list(rows[0])
    lines = ["| " + " | ".join(map(_text, names)) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_number(row[name]) for name in names) + " |" for row in rows]
    return "\n".join([f"## {_title(table)}", "", _text(table["caption"]), "", *lines])


def _number(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _text(str(value))
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"
    return text.replace("-", "−")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _text(text: object) -> str:
    """Text of a run, safe inside a table of Markdown and inside HTML."""
    escaped = html.escape(str(text), quote=False)
    for mark in "\\|*_`[]$":
        escaped = escaped.replace(mark, f"\\{mark}" if mark not in "|$" else f"&#{ord(mark)};")
    return " ".join(escaped.split())
