"""A run under other choices of layers, features, items or distance: what they change is fitted anew.

What was found of layers is kept for the next question, for most moves leave most layers as they were:
distances between items depend on the layer, the items and the distance; the profile also on the features. So
a layer that is left out costs nothing, and another choice of features ranks no distances anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from thinkalike.activations.rows import subset_activations
from thinkalike.activations.store import Activations
from thinkalike.comparison.assembly import assemble
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.concluding import plan_options
from thinkalike.comparison.layerpass import LayerTask, Look, LookedAt, pass_over_layers
from thinkalike.comparison.profiling import plan_profiles
from thinkalike.errors import InvalidInput, StoreError
from thinkalike.pairs.distances import DISTANCES
from thinkalike.populations.atlas import Atlas
from thinkalike.populations.between_models import MODEL_DISTANCES
from thinkalike.report.page import page_data, polished, typeset
from thinkalike.report.pairs import picks
from thinkalike.report.population_page import render_population
from thinkalike.report.summary import Summary, summarise
from thinkalike.serving.questions import Choices, Question
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Json

NOT_FROM_VECTORS = ("crossnobis", "precomputed")
"""Distances that need more than one vector per item"""
MOST_LEVELS = 30
QUICK = 500
"""Items of a quick view, about: whole sentences are drawn"""
KEPT_VIEWS = 32


class RunExplorer:
    """A run directory, and what it says to questions."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.choices = _choices(comparison)
        self._lock = threading.Lock()
        self._memory = LayerMemory()
        self._view: Callable[[Question], Json] = lru_cache(KEPT_VIEWS)(self._make_view)

    @classmethod
    def open(cls, root: Path) -> RunExplorer:
        """Of a folder that `compare` wrote; its vectors must still be there."""
        comparison = Comparison.load(root)
        if comparison.activations is None:
            raise StoreError(
                f"The vectors of the run in {root} are gone, and other views are made from them: run the "
                "comparison again. The report shows what is kept: thinkalike report."
            )
        return cls(comparison)

    def first(self) -> tuple[Summary, Json]:
        """The run itself: what its report says, and what its page draws."""
        return summarise(self.comparison), page_data(self.comparison)

    def prepare(self) -> None:
        """Look at every layer as in the run, so that the first question finds them."""
        every = tuple((name, tuple(layers)) for name, layers in self.choices.layers.items())
        self.view(Question(every, tuple(self.choices.features), self.choices.distance))

    def view(self, question: Question) -> Json:
        """The comparison that a question asks for, as the page draws it."""
        with self._lock:  # one at a time: each takes all cores
            return self._view(question)

    def _make_view(self, question: Question) -> Json:
        found = self._compared(question)
        said = summarise(found)
        return {
            **page_data(found),
            "answer": [
                {"question": asked, "html": written(text)}
                for asked, text in said.answer.by_question().items()
            ],
            "facts": list(said.facts),
            "cautions": [written(caution) for caution in said.cautions],
            "picks": [{"label": pick.label, "i": pick.i, "j": pick.j} for pick in picks(found)],
        }

    def _compared(self, question: Question) -> Comparison:
        run = self.comparison
        assert run.activations is not None  # `open` looked
        stimuli = _shown(run.stimuli, question)
        changes: Json = {"distance": question.distance}
        if question.features != tuple(run.features):
            changes["groups"] = None  # they may name features that are left out
        options = plan_options(run.settings, changes)
        systems = [_layers(run.activations[name], layers, stimuli) for name, layers in question.layers]
        plan = plan_profiles(stimuli, **options)
        choice = (question.where, question.quick)
        looking = self._memory.looking(choice, question.distance, tuple(stimuli.features))
        profiles, _, geometry = pass_over_layers(stimuli, systems, plan, looking=looking)
        about = {**plan.settings, "extraction": run.settings.get("extraction", {})}
        return assemble(stimuli, profiles, systems, geometry, plan, settings=about)


def written(text: str) -> str:
    """A sentence as markup, as in the report: true subscripts, and no break within a name or a number."""
    return str(typeset(polished(text)))


def _choices(comparison: Comparison) -> Choices:
    stimuli = comparison.stimuli
    levels = {
        name: [str(level) for level in stimuli.features[name].cat.categories]
        for name, kind in stimuli.kinds.items()
        if kind != "numeric" and len(stimuli.features[name].cat.categories) <= MOST_LEVELS
    }
    used = comparison.settings["distance"]
    distances = [name for name in DISTANCES if name not in NOT_FROM_VECTORS]
    return Choices(
        layers={name: [str(k) for k in profile.layers] for name, profile in comparison.profiles.items()},
        features=[str(name) for name in next(iter(comparison.profiles.values())).features],
        distances=distances if used in distances else [used],
        levels=levels,
        distance=used,
    )


def _shown(stimuli: Stimuli, question: Question) -> Stimuli:
    """The items and features that are asked for."""
    if question.where is not None:
        feature, level = question.where
        stimuli = stimuli.subset((stimuli.features[feature].astype(str) == level).to_numpy())
    if question.quick and len(stimuli) > QUICK:
        stimuli = stimuli.subset(_sampled(stimuli))
    varying = [name for name in question.features if stimuli.features[name].nunique(dropna=True) > 1]
    if len(varying) < 2:
        raise InvalidInput("Choose two features or more that differ among these items.")
    return stimuli.choose(varying)


def _sampled(stimuli: Stimuli) -> npt.NDArray[np.bool_]:
    """Items of sentences drawn at random, the same at each question; items where there are no sentences."""
    names = stimuli.items.get("sentence", stimuli.items.index)
    codes = np.unique(np.asarray(names, dtype=str), return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(codes.max() + 1)
    kept = order[: max(2, round(len(order) * QUICK / len(stimuli)))]
    return np.isin(codes, kept)


def _layers(one: Activations, labels: Sequence[str], stimuli: Stimuli) -> Activations:
    """Some layers of a system, at the items of `stimuli`."""
    return subset_activations(one, stimuli, [layer for layer in one.layers if str(layer) in labels])


MOST_BYTES = 1 << 29
"""Of ranked distances, by far the largest part of what is kept"""


class LayerMemory:
    """The layers that were looked at last, as long as there is room."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[Hashable, LookedAt] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def looking(
        self, items: Hashable, distance: str, features: Hashable
    ) -> Callable[[Look, LayerTask], LookedAt]:
        """A way to look at layers under one choice, which finds again what it has seen."""

        def look(look: Look, task: LayerTask) -> LookedAt:
            layer = (task.activations.system, task.layer, items, distance)
            examined = self._found((*layer, features), lambda: look(replace(task, geometry="nothing")))
            geometry = self._found(layer, lambda: look(replace(task, profile=False)))
            return replace(geometry, examined=examined.examined)

        return look

    def _found(self, key: Hashable, make: Callable[[], LookedAt]) -> LookedAt:
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
                return known
        made = make()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._size += _bytes(made)
            while self._size > self._most and len(self._kept) > 1:
                self._size -= _bytes(self._kept.popitem(last=False)[1])
        return made


def _bytes(found: LookedAt) -> int:
    return 0 if found.ranks is None else found.ranks.nbytes


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
