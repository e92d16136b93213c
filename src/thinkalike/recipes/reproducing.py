"""`reproduce`: run a recipe, and write its page, its findings and its figures."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from thinkalike.addresses import files_in, place
from thinkalike.errors import DamagedFile, InvalidInput, StoreError, UnknownName
from thinkalike.files import plain, read_json, write_bytes, write_json
from thinkalike.ownership import holds_files, owning
from thinkalike.provenance import versions
from thinkalike.recipes.findings import Figure, Findings, Statement
from thinkalike.recipes.recipe_registry import SCALES, Recipe, get_recipe
from thinkalike.recipes.recipe_settings import RecipeSettings
from thinkalike.recipes.steps import FOLDER
from thinkalike.wording import duration

MARKER = "recipe.json"
SPENT = "spent.json"
FINDINGS = "findings.json"
FIGURES = "figures"
SHARPNESS = 2
"""Pixels of a PNG for each of the chart's"""


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A finished run of a recipe: what was found, where the page is, and the processor's time in all.

    Attributes
    ----------
    recipe, findings : what was run, and what came out
    page : the path of `index.html`
    seconds : of the processor, in this and earlier calls

    Examples
    --------
    >>> from pathlib import Path
    >>> from thinkalike.recipes import Findings, Reproduction, get_recipe
    >>> findings = Findings("salle2024", "smoke", ())
    >>> Reproduction(get_recipe("salle2024"), findings, Path("index.html"), 12.5).seconds
    12.5
    """

    recipe: Recipe
    findings: Findings = field(repr=False)
    page: Path
    seconds: float


def reproduce(
    name: str,
    scale: str = "nano",
    out: str | os.PathLike[str] | None = None,
    *,
    models_folder: str | os.PathLike[str] | None = None,
    **changes: object,
) -> Reproduction:
    """Run the recipe `name` at a scale; what `out` already holds of it is used again.

    Parameters
    ----------
    name : a key of `RECIPES`
    scale : "smoke" (under a minute), "nano" (the bundled models), "real" (pretrained models that packages
        carry; not every recipe has it), "paper" (the models of the paper).
    out : the folder for the page (`index.html`), `findings.json`, `figures/` and kept steps; runs/NAME-SCALE.
    models_folder : where models lie under the names that the recipe gives them, in place of the hub.
    changes : to the recipe's settings at that scale.

    Returns
    -------
    Reproduction

    Examples
    --------
    `reproduce("salle2024", "smoke")` takes up to a minute; what is not known is refused before:

    >>> from thinkalike.recipes import reproduce
    >>> reproduce("salle2024", "smoke", sentence=20)
    Traceback (most recent call last):
    ...
    thinkalike.errors.UnknownName: There is no setting of salle2024 'sentence'. Did you mean 'sentences'? ...
    """
    recipe = get_recipe(name)
    settings = _settings(recipe, scale, models_folder, changes)
    folder = place(Path("runs") / f"{name}-{scale}" if out is None else out)
    ours = {"recipe": name, "scale": scale}
    with owning(folder, lambda _: _refuse_other(folder, ours)):
        write_json(ours, folder / MARKER)
        with _counting(folder / SPENT):
            findings = recipe.run(settings, folder)
        seconds = read_json(folder / SPENT)["processor_seconds"]
        page = write_findings(recipe, findings, folder, seconds)
    return Reproduction(recipe, findings, page, seconds)


def foresee(
    name: str,
    scale: str = "nano",
    out: str | os.PathLike[str] | None = None,
    *,
    models_folder: str | os.PathLike[str] | None = None,
    **changes: object,
) -> str:
    """What `reproduce` will take, in words: recipes are programs of their own, and none is tried before.

    Parameters
    ----------
    name, scale, out, models_folder, changes : as in `reproduce`

    Returns
    -------
    str
        How long the run took that the gallery shows, and what the folder already holds.

    Examples
    --------
    >>> from thinkalike.recipes.reproducing import foresee
    >>> print(foresee("salle2024-causal"))
    salle2024-causal at scale nano: the run that the gallery shows took 94 s of the processor.
    Nothing is kept in runs/salle2024-causal-nano: all of it is to be done.
    """
    recipe = get_recipe(name)
    _settings(recipe, scale, models_folder, changes)
    folder = place(Path("runs") / f"{name}-{scale}" if out is None else out)
    _refuse_other(folder, {"recipe": name, "scale": scale})
    taken = recipe.taken.get(scale)
    if scale == "smoke":
        long = "it is made to take about a minute of the processor"
    elif taken is None:
        long = "how long it takes is not known beforehand; --scale smoke tries all of its steps on little"
    else:
        long = f"the run that the gallery shows took {duration(taken)} of the processor"
        long += ", with other settings" if changes else ""
    kept = len(files_in(folder / FOLDER))
    if not kept:
        there = f"Nothing is kept in {folder}: all of it is to be done."
    else:
        spent = duration(_spent(folder / SPENT))
        there = f"{folder} holds {kept:,} finished steps, which took {spent}: only the others are to be done."
    return f"{name} at scale {scale}: {long}.\n{there}"


def _settings(
    recipe: Recipe, scale: str, models_folder: object, changes: Mapping[str, object]
) -> RecipeSettings:
    if scale not in SCALES:
        raise UnknownName.among("scale", scale, SCALES)
    if scale not in recipe.scales:
        raise UnknownName.among(f"scale of {recipe.name}", scale, recipe.scales)
    if models_folder is not None and not Path(str(models_folder)).is_dir():
        raise InvalidInput(f"There is no folder {models_folder}: give one that holds models by their names.")
    return replace(
        recipe.scales[scale].changed(recipe.name, changes),
        models_folder=None if models_folder is None else str(models_folder),
    )


def _spent(file: Path) -> float:
    """Processor seconds of earlier calls."""
    try:
        return float(read_json(file)["processor_seconds"])
    except DamagedFile:  # or there was none
        return 0.0


@contextmanager
def _counting(file: Path) -> Iterator[None]:
    """Add the processor's time to what earlier calls took, also when interrupted.

    A call that finds all steps kept takes seconds, and on a busy machine the clock says little.
    """
    before = _spent(file)
    start = time.process_time()
    try:
        yield
    finally:
        write_json({"processor_seconds": before + time.process_time() - start}, file)


def write_findings(recipe: Recipe, findings: Findings, folder: Path, seconds: float) -> Path:
    """The page, the figures and `findings.json`, in `folder`; returns the path of the page."""
    from thinkalike.recipes.recipe_page import write_page

    findings = replace(findings, settings=without_folders(findings.settings))
    for figure in findings.figures:
        _write_figure(figure, folder / FIGURES)
    write_json(as_plain(recipe, findings, seconds), folder / FINDINGS)
    return write_page(recipe, findings, folder, seconds)


def without_folders(settings: Mapping[str, object]) -> dict[str, object]:
    """Settings to be shown: of a path only its last part, for pages are passed on."""
    return {
        key: Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value
        for key, value in settings.items()
    }


def as_plain(recipe: Recipe, findings: Findings, seconds: float) -> dict[str, object]:
    """What `findings.json` holds."""
    about = {"recipe": findings.recipe, "title": recipe.title, "citation": recipe.citation}
    return {
        **about,
        "scale": findings.scale,
        "verdicts": findings.counts(),
        "statements": [_as_plain(statement) for statement in findings.statements],
        "figures": [
            {"name": f.name, "title": f.title, "caption": f.caption, "of_paper": f.of_paper}
            for f in findings.figures
        ],
        "tables": [
            {
                "name": t.name,
                "title": t.title,
                "caption": t.caption,
                "of_paper": t.of_paper,
                "rows": plain(t.frame.to_dict(orient="records")),
            }
            for t in findings.tables
        ],
        "notes": findings.notes,
        "settings": findings.settings,
        "versions": versions(),
        "processor_seconds": round(seconds, 1),
    }


def _as_plain(statement: Statement) -> dict[str, object]:
    found: dict[str, object] = asdict(statement)
    if statement.rule is not None:
        found["rule"] = {
            "effect": statement.rule.effect,
            "in_words": statement.rule.in_words,
            "written": statement.rule.written,
            "earlier": statement.rule.earlier,
        }
    return found


def _refuse_other(folder: Path, ours: Mapping[str, str]) -> None:
    """Raise unless the folder is new, or holds this recipe at this scale."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file: give a folder.")
    marker = folder / MARKER
    if marker.exists():
        theirs = read_json(marker, way_out=f"delete {folder}, or choose another folder")
        if theirs != ours:
            raise StoreError(
                f"{folder} holds {theirs.get('recipe')} at scale {theirs.get('scale')}, "
                f"not {ours['recipe']} at scale {ours['scale']}: choose another folder."
            )
    elif folder.exists() and holds_files(folder):
        raise StoreError(f"{folder} is not empty and holds no recipe: choose another folder.")


def _write_figure(figure: Figure, folder: Path) -> None:
    """Draw it once, as SVG, and the PNG from that."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(figure.spec)
    for ending, content in (("svg", svg.encode()), ("png", vl_convert.svg_to_png(svg, scale=SHARPNESS))):
        write_bytes(content, folder / f"{figure.name}.{ending}")
