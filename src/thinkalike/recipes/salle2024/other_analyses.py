"""The paper's claims under the grid of other reasonable analyses, on the first set of sentences."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from functools import partial

from sklearn.exceptions import ConvergenceWarning

from thinkalike.activations.rows import subset_activations
from thinkalike.comparison.analyses import GRID, Analysis
from thinkalike.comparison.profiling import plan_profiles
from thinkalike.comparison.rereading import chosen_items, read_otherwise
from thinkalike.errors import ThinkalikeError
from thinkalike.progress import progress
from thinkalike.recipes.salle2024.observing import Observation, observe
from thinkalike.recipes.salle2024.sets import PAPER
from thinkalike.recipes.salle2024.work import Work
from thinkalike.types import Json


def tried(work: Work) -> dict[str, Observation]:
    """Name of an analysis → what it shows; those that cannot be made are left out."""
    if not work.settings.analyses:
        return {}
    stimuli = work.sets(PAPER)[0]
    usual = plan_profiles(stimuli, **work.encoding).settings
    wanted = [one for one in GRID if _differs(one, usual)]
    found = {}
    with progress("Other analyses", len(wanted)) as bar:
        for one in wanted:
            about = {"analysis": asdict(one), "stimuli": stimuli.digest}
            kept = work.kept("analysis", about, partial(_analysed, work, one))
            if kept is not None:
                found[one.name] = Observation.from_plain(kept)
            bar.advance()
    return found


def _differs(one: Analysis, usual: Json) -> bool:
    """Whether an analysis changes anything that the sets of sentences do not change anyway."""
    if one.reading:
        return one.reading != {"pooling": "last"}
    if one.words != "all" or one.sentences != "these":
        return True
    return any(str(usual.get(name)) != str(value) for name, value in one.encoding.items())


def _analysed(work: Work, one: Analysis) -> Json | None:
    stimuli, others = work.sets(PAPER)[0], work.sets(PAPER)[-1]
    base = [work.shown(model, stimuli) for model in work.cast.models]
    try:
        shown, systems = read_otherwise(
            stimuli, base, dict(one.reading), others=others, elsewhere=one.sentences == "others"
        )
        rows = chosen_items(shown, one)
        if rows is not None:
            shown = shown.subset(rows)
            systems = [subset_activations(system, shown) for system in systems]
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            return observe(systems, shown, **{**work.encoding, **one.encoding})
    except (ThinkalikeError, ConvergenceWarning):
        return None
