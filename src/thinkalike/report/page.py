"""The report: one HTML page that needs nothing but a browser.

Words that a reader may not know are explained where they stand: a touch opens a note.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup, escape

import thinkalike
from thinkalike.addresses import place, reaching
from thinkalike.charts.notebook import chart_library
from thinkalike.charts.theme import DARK, FONT, LIGHT, THEMES, Theme, config, counterparts
from thinkalike.comparison.chart_tables import TOTAL, item_values, value_label
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.explaining import MATTERS
from thinkalike.comparison.plots import MOST_CELLS
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.files import seal_of, write_text
from thinkalike.progress import progress
from thinkalike.provenance import digest_of
from thinkalike.report import frames
from thinkalike.report.figures import page_specs
from thinkalike.report.function import FunctionSection, find_stitchings, function_section, stitching_files
from thinkalike.report.pairs import pair_data
from thinkalike.report.summary import summarise
from thinkalike.stitching.result import StitchResult
from thinkalike.types import Json
from thinkalike.wording import readable

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "index.html"
TABLES = "tables"
MOST_ROWS = 20
"""Of a table; more are shown when they are asked for"""
SCRIPTS = ("explaining.js", "charts.js", "report.js", "downloads.js")
DESCRIPTIONS = {
    "agreement": "how alike two matrices order the pairs of layers",
    "blocks": "every pair of systems: mean and highest τ_w, chance",
    "contributions": "what each feature adds to τ_w, for every pair of layers",
    "correlations": "among the differences of features",
    "geometry": "every pair of systems by geometric measures: ranges, chance, calibrated values",
    "layer-maps": "coordinates of the layers",
    "layers": "ρ, ceiling and diagnostics of every layer",
    "positions": "share of items, variance and importance of every position in the sentence",
    "precision": "how many items for how much certainty",
    "profiles": "importance of every feature in every layer",
    "profiles-untrained": "the same for untrained copies",
    "robustness": "what every other analysis finds",
    "similarity-features": "τ_w, p-values and ranges of every pair of layers",
    "similarity-rsa": "RSA of every pair of layers, and the share explained",
    "similarity-untrained": "τ_w between untrained copies",
    "similarity-untrained-rsa": "RSA between untrained copies",
    "trajectories": "distances between whole systems",
    "word-maps": "coordinates of the words in every layer",
}


def write_report(comparison: Comparison, directory: str | os.PathLike[str]) -> Path:
    """Write the page into `directory`, beside the tables of the run, and return its path.

    The page is whole in itself: it makes no request, and opens from a disk, a mail or a web server alike. It
    links to the tables that lie in `directory`/tables.

    Parameters
    ----------
    comparison : from `ta.compare` or `Comparison.load`
    directory : made if it is not there

    Returns
    -------
    Path
        Of the page.

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(30, seed=0, grammar="salle2024")
    >>> rng = np.random.default_rng(0)
    >>> from thinkalike.report import write_report
    >>> X, Y = rng.normal(size=(2, len(stimuli), 8))
    >>> write_report(ta.compare({"one": X, "other": Y}, stimuli, resamples=0), "run").name
    'index.html'
    """
    directory = place(directory)
    path = directory / PAGE
    with reaching(directory):
        html = render(
            comparison,
            tables=find_tables(directory),
            stitchings=find_stitchings(directory),
            key=page_key(directory),
        )
        write_text(html, path)
    return path


def page_key(directory: Path) -> str:
    """What the page of a run directory depends on: its results, its stitchings, and us."""
    sources = [directory / "run.json", *stitching_files(directory)]
    seals = [seal_of(path.read_bytes()) for path in sources if path.is_file()]
    return digest_of({"sources": seals, "thinkalike": thinkalike.__version__})


def is_current(directory: Path) -> bool:
    """Whether the page is there and shows what the run directory holds."""
    try:
        with (directory / PAGE).open(encoding="utf-8") as file:
            return page_key(directory) in file.read(4096)
    except (OSError, UnicodeDecodeError):
        return False


def render(
    comparison: Comparison,
    *,
    tables: dict[str, list[str]] | None = None,
    stitchings: Sequence[StitchResult] = (),
    key: str = "",
) -> str:
    """The page as text; `tables` are its links: name of a table → files, relative to the page."""
    with progress("Report", 4) as step:
        summary = summarise(comparison)
        step.advance()
        section = function_section(comparison, stitchings)
        data = page_data(comparison, section)
        step.advance()
        library = chart_library()
        step.advance()
        page = environment(TEMPLATES).get_template("page.html.j2")
        html = page.render(
            s=summary,
            views=section.views,
            data=data,
            library=library,
            css=asset("report.css"),
            js="".join(map(asset, SCRIPTS)),
            css_variables=css_variables,
            themes=THEMES,
            tables=tables or {},
            key=key,
            most_rows=MOST_ROWS,
            most_pairs=frames.MOST_PAIRS,
            most_cells=MOST_CELLS,
            descriptions=_other_measures(comparison) | DESCRIPTIONS,
            version=thinkalike.__version__,
        )
        step.advance()
    return html


def _other_measures(comparison: Comparison) -> dict[str, str]:
    texts = {f"similarity-{m}": f"{value_label(m)} of every pair of layers" for m in comparison.matrices}
    parts = "of every pair of layers without each part of the sentences"
    return texts | {f"left-out-{m}": f"{value_label(m)} {parts}" for m in comparison.matrices}


def page_data(comparison: Comparison, section: FunctionSection | None = None) -> Json:
    """What the script of the page works with: plain values only."""
    tables = frames.chart_frames(comparison)
    section = section or function_section(comparison, [])
    words = comparison.word_maps
    order = frames.feature_order(comparison) if words is not None else []
    return {
        "specs": page_specs(comparison, tables) | section.specs(),
        "look": {"config": config(LIGHT), "dark": counterparts(LIGHT, DARK)},
        "tables": {name: _records(table) for name, table in (tables | section.tables).items()},
        "features": [readable(name) for name in comparison.features],
        "colours": [
            {"feature": readable(name), "values": item_values(words, comparison.stimuli, name).values}
            for name in order
            if words is not None
        ],
        "order": [readable(name) for name in frames.feature_order(comparison)],
        "total": TOTAL,
        "matters": MATTERS,
        "measure": FEATURES,
        "labels": {name: value_label(name) for name in comparison.matrices},
        "kinds": {name: matrix.kind for name, matrix in comparison.matrices.items()},
        **pair_data(comparison),
    }


def find_tables(directory: Path) -> dict[str, list[str]]:
    """The Parquet and CSV files in the folder of tables: name → paths relative to `directory`."""
    found: dict[str, list[str]] = {}
    for path in sorted((directory / TABLES).glob("*")):
        if path.suffix in (".parquet", ".csv"):
            found.setdefault(path.stem, []).append(path.relative_to(directory).as_posix())
    return found


def polished(text: str) -> Markup:
    """Text with its asides in parentheses set back, and no break within a number or a hyphenated name."""
    html = str(escape(re.sub(r"(?<=\d) (?=%)|(?<=[=<]) (?=[\d−])|(?<=\w) (?=[=<] )", "\u00a0", text)))
    html = re.sub(r"(?<![\w-])(?:\w+(?:-\w+)+|--[\w-]+)(?![\w-])", r'<span class="nb">\g<0></span>', html)
    return Markup(re.sub(r"\([^()]*\)", r'<span class="aside">\g<0></span>', html))


def css_variables(theme: Theme) -> str:
    """The colours of a theme as CSS custom properties."""
    colors = {"surface": theme.surface, "ink": theme.ink, "muted": theme.muted, "rule": theme.rule}
    colors |= {"accent": theme.accent, "caution": theme.negative[2], "wash": theme.sequential[0]}
    colors |= {f"feature-{k}": color for k, color in enumerate(theme.features)}
    colors |= {f"system-{k}": color for k, color in enumerate(theme.systems)}
    return " ".join(f"--{name}: {color};" for name, color in colors.items())


def _records(table: pd.DataFrame) -> list[Json]:
    rounded = table.round(5)
    return [
        {str(key): None if pd.isna(value) else value for key, value in row.items()}
        for row in rounded.to_dict(orient="records")
    ]


def asset(name: str) -> str:
    """The text of a file that pages are made of, such as `report.css`."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def environment(*templates: Path) -> jinja2.Environment:
    """How the templates of folders are filled in: everything is escaped unless a template says otherwise."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    # `tojson` escapes <, >, & and ', so that no name can end the script element that holds it.
    environment.policies["json.dumps_kwargs"] = {
        "separators": (",", ":"),
        "allow_nan": False,
        "sort_keys": False,
    }
    environment.globals["font"] = FONT
    environment.filters["polished"] = polished
    environment.filters["explained"] = explained
    environment.filters["typeset"] = typeset
    environment.globals["terms"] = TERMS
    return environment


TERMS = {
    "features": "Properties of what the systems were shown, such as part of speech or number. A feature "
    "matters to a layer when items that differ in it lie further apart there.",
    "layers": "A model computes in steps. After each of them every word has a vector; layer 0 is what "
    "goes into the first step.",
    "chance": "What systems that have nothing to do with each other would give. It is found by dealing "
    "the strengths of the features of one system out anew, thousands of times.",
    "untrained": "The same models with random weights, which have learned nothing. What they share "
    "comes from how they are built and from the sentences.",
    "other sentences": "The sentences that were shown are a sample. Parts of them are left out in turn, "
    "to see how much the numbers move.",
    "other analyses": "The same question with other choices that one could defend: other distances, "
    "without first words, and so on.",
    "geometry": "Which items lie near each other and which far apart, whatever the reason.",
    "RSA": "Representational similarity analysis: the rank correlation of all distances between items "
    "in one layer with those in the other. It compares geometry and knows no features.",
    "τ_w": "Weighted Kendall τ: how alike two layers order the features by importance, the first places "
    "counting most. 1 is the same order, 0 none in common, −1 the reverse.",
    "ceiling": "What two systems that are alike in truth would reach with so many sentences: no measure of a "
    "sample can be expected to be higher.",
    "q": "How often chance alone would do as much, corrected for the number of pairs that were tested. "
    "Below 0.05 we speak of more than chance.",
}
_FIND = re.compile(
    r"(?<![\w-])(" + "|".join(map(re.escape, sorted(TERMS, key=len, reverse=True))) + r")(?![\w-])", re.I
)
_KEYS = {term.lower(): k for k, term in enumerate(TERMS)}


def typeset(text: str) -> Markup:
    """τ_w with a true subscript."""
    return Markup(str(escape(text)).replace("τ_w", "τ<sub>w</sub>"))


def explained(text: str) -> Markup:
    """`text` with the first place of each term as a button that opens its explanation."""
    told: set[int] = set()

    def button(found: re.Match[str]) -> str:
        key = _KEYS[found[0].lower()]
        if key in told:
            return found[0]
        told.add(key)
        return f'<button type="button" class="term" popovertarget="term-{key}">{typeset(found[0])}</button>'

    parts = re.split(r"(<[^>]*>)", str(escape(text)))  # markup that is there already stays as it is
    return Markup("".join(part if part.startswith("<") else _FIND.sub(button, part) for part in parts))
