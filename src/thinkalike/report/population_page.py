"""The page of a population: map, tree, neighbours, why, and any pair of models at a click; one HTML file.

It has no chart library: 200 models are a few thousand marks, which a short script draws from the numbers in
the page. What a pair of models says, τ_w between all their layers, is computed when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import thinkalike
from thinkalike.charts.theme import FONT, THEMES
from thinkalike.errors import InvalidInput
from thinkalike.files import plain, write_text
from thinkalike.populations.between_models import FEATURES, between_models, distance_of
from thinkalike.populations.fact_table import fact_table
from thinkalike.populations.fingerprint_record import Fingerprint
from thinkalike.populations.model_maps import ModelMap, model_map
from thinkalike.populations.model_trees import ModelTree, model_tree
from thinkalike.populations.why import FEWEST, Why, why
from thinkalike.report.page import TEMPLATES, asset, css_variables, environment
from thinkalike.report.population_answer import left_out_in_words, population_answer, stress_in_words
from thinkalike.types import Json
from thinkalike.wording import number, readable

SCRIPTS = ("population.js", "downloads.js")
FEWEST_MODELS = 3
MOST_LEVELS = 9
"""A fact with more different values has no colours of its own"""


def write_population(
    fingerprints: Sequence[Fingerprint],
    path: Path,
    *,
    facts: pd.DataFrame | None = None,
    by: str = FEATURES,
    n_draws: int = 100,
    n_permutations: int = 999,
) -> Path:
    """Write the page to `path` and return that.

    Parameters
    ----------
    facts : one row per model; what the fingerprints know when None.
    by : the distance of map, tree, neighbours and reasons.
    """
    write_text(
        render_population(fingerprints, facts=facts, by=by, n_draws=n_draws, n_permutations=n_permutations),
        path,
    )
    return path


def render_population(
    fingerprints: Sequence[Fingerprint],
    *,
    facts: pd.DataFrame | None = None,
    by: str = FEATURES,
    n_draws: int = 100,
    n_permutations: int = 999,
) -> str:
    """The page as text; it makes no request, and every name in it is escaped."""
    if len(fingerprints) < FEWEST_MODELS:
        raise InvalidInput(f"The page of a population takes three models or more: got {len(fingerprints)}.")
    if facts is None:
        facts = pd.DataFrame({one.name: dict(one.facts) for one in fingerprints}).T
    found = between_models(fingerprints, by=by)
    reasons = None
    if len(fingerprints) >= FEWEST and _any_fact(facts):
        reasons = why(found, facts, n_permutations=n_permutations)
    placed, tree = model_map(fingerprints, by=by), model_tree(fingerprints, by=by, n_draws=n_draws)
    data: Json = {
        "names": list(found.names),
        "features": [readable(name) for name in fingerprints[0].profile.features],
        "distances": _rounded(found.values),
        "map": _map(placed),
        "tree": _tree(tree),
        "facts": _levels(facts.loc[list(found.names)]),
        "layers": [[str(layer) for layer in one.layers] for one in fingerprints],
        "importance": [_rounded(one.profile.mean_importance, 5) for one in fingerprints],
    }
    page = environment(TEMPLATES).get_template("population.html.j2")
    return page.render(
        data=data,
        by=by,
        reference=fingerprints[0].reference,
        n_models=len(found.names),
        answer=population_answer(found, tree, reasons),
        about=f"distance: {distance_of(by).about}",
        faithful=stress_in_words(placed.stress),
        reasons=None if reasons is None else _reasons(reasons),
        left_out="" if reasons is None else left_out_in_words(reasons.left_out),
        css=asset("report.css"),
        js="".join(map(asset, SCRIPTS)),
        css_variables=css_variables,
        themes=THEMES,
        font=FONT,
        version=thinkalike.__version__,
    )


def _any_fact(facts: pd.DataFrame) -> bool:
    try:
        fact_table(facts)
    except InvalidInput:
        return False
    return True


def _reasons(found: Why) -> list[list[str]]:
    return [
        [
            str(row["facts"]),
            number(row["importance"], 3) + _range(row["low"], row["high"]),
            *(number(row[name], 3) for name in ("conditional", "share", "q", "q_alone")),
        ]
        for _, row in found.to_frame().iterrows()
    ]


def _range(low: float, high: float) -> str:
    return "" if low != low else f" ({number(low, 3)} to {number(high, 3)})"


def _map(found: ModelMap) -> Json:
    return {"places": _rounded(found.coordinates), "ellipses": _rounded(found.ellipses())}


def _tree(found: ModelTree) -> Json:
    forks = found.forks()
    return {
        "order": [found.names.index(name) for name in found.order],
        "heights": _rounded(forks[..., 0]),
        "places": _rounded(forks[..., 1], 2),
        "support": _rounded(found.support, 2),
    }


def _levels(facts: pd.DataFrame) -> Json:
    """Fact → the level of each model, for facts with few values."""
    return {
        str(name): [str(value) for value in facts[name]]
        for name in facts.columns
        if 2 <= facts[name].astype(str).nunique() <= MOST_LEVELS
    }


def _rounded(values: np.ndarray, digits: int = 4) -> list[object]:
    found: list[object] = plain(np.round(values, digits))  # NaN as None
    return found
