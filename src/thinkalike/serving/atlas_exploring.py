"""An atlas as a page: map, nearest and pairs, by any of its distances."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from thinkalike.populations.atlas import Atlas
from thinkalike.populations.between_models import MODEL_DISTANCES
from thinkalike.report.population_page import render_population

N_PERMUTATIONS = 199
"""Of the test of reasons: fewer than in the report, for the page should be there at once"""


class AtlasExplorer:
    """An atlas, and its page by each distance, made once."""

    def __init__(self, atlas: Atlas) -> None:
        self._atlas = atlas
        self.page: Callable[[str], str] = lru_cache(len(MODEL_DISTANCES))(self._page)

    def _page(self, by: str) -> str:
        fingerprints, facts = self._atlas.fingerprints(), self._atlas.facts()
        return render_population(fingerprints, facts=facts, by=by, n_permutations=N_PERMUTATIONS)
