"""The work of `salle2024`: models shown sets of sentences; whatever took time is kept."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import pandas as pd

from thinkalike.activations.store import Activations
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.compared_systems import GivenSystem
from thinkalike.comparison.comparing import compare
from thinkalike.comparison.comparison import Comparison
from thinkalike.errors import StoreError
from thinkalike.files import new_folder
from thinkalike.progress import progress, without_bars
from thinkalike.recipes.places import identity, locate
from thinkalike.recipes.salle2024.measures import Cast, Effects
from thinkalike.recipes.salle2024.observing import Observation, observe, plain_table, table_from
from thinkalike.recipes.salle2024.scales import SalleSettings
from thinkalike.recipes.salle2024.sets import PAPER, draw_sets
from thinkalike.recipes.steps import Steps
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Facts, Json, Model, Option

OF = "sets of sentences"


@cache
def _drawn(kind: str, settings: SalleSettings, treebank: str | None) -> tuple[Stimuli, ...]:
    return tuple(draw_sets(kind, settings, treebank))


def _plain_copy(model: Model) -> Model:
    """The same weights in a model that is not marked as quantised, for those cannot be saved."""
    config = copy.deepcopy(model.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain: Model = type(model)(config)
    plain.load_state_dict(model.state_dict())
    return plain


@dataclass(frozen=True)
class Work:
    """The settings of a run, and where its steps are kept."""

    settings: SalleSettings
    steps: Steps

    @property
    def cast(self) -> Cast:
        return Cast(self.settings.transformers, self.settings.state_space)

    @property
    def encoding(self) -> dict[str, Any]:
        return self.settings.only("preset", "seed")

    def sets(self, kind: str, treebank: str | None = None) -> tuple[Stimuli, ...]:
        return _drawn(kind, self.settings, treebank or self.settings.treebank)

    def place(self, model: str) -> str:
        """What to load; quantised weights are unpacked once, for that takes longer than to read them."""
        found = locate(model, self.settings.models_folder)
        return found if not found.endswith(".gguf") else str(self._unpacked(model, found))

    def _unpacked(self, name: str, file: str) -> Path:
        from thinkalike.systems.system import LoadOptions, open_system

        folder = self.steps.model_path("unpacked", {"model": self.identities([name])})
        if not (folder / "config.json").exists():
            system = open_system(file, LoadOptions(device="cpu"))
            model = _plain_copy(cast("Model", system.model))
            with new_folder(folder) as part, without_bars():
                model.save_pretrained(part)
                system.tokenizer.save_pretrained(part)
        return folder

    def identities(self, models: Sequence[str]) -> dict[str, str]:
        """What kept results of these models depend on."""
        return {model: identity(model, self.settings.models_folder) for model in models}

    def shown(self, model: str, stimuli: Stimuli, **reading: Option) -> Activations:
        from thinkalike.activations import extract

        return extract(self.place(model), stimuli, system=model, cache=False, **reading)

    def observation(self, stimuli: Stimuli) -> Observation:
        """All models on one set."""
        models = self.cast.models
        about = {"models": self.identities(models), "stimuli": stimuli.digest, **self.encoding}

        def compute() -> Json:
            return observe([self.shown(model, stimuli) for model in models], stimuli, **self.encoding)

        return Observation.from_plain(self.steps.json("observation", about, compute))

    def observations(self, kind: str) -> list[Observation]:
        """All models on every set of one kind."""
        sets = self.sets(kind)
        found = []
        with progress(f"Sets of {kind}", len(sets)) as bar:
            for stimuli in sets:
                found.append(self.observation(stimuli))
                bar.advance()
        return found

    def table(
        self,
        model: str,
        stimuli: Stimuli,
        *,
        show: Callable[[], Activations] | None = None,
        variant: str = "",
        **changes: Any,
    ) -> pd.DataFrame:
        """The importances of one model; `show` reads it in another way, which `variant` names."""
        from thinkalike.comparison.profiling import profile

        options = {**self.encoding, **changes}
        about = {"model": self.identities([model]), "stimuli": stimuli.digest, "variant": variant, **options}

        def compute() -> Json:
            activations = self.shown(model, stimuli) if show is None else show()
            return plain_table(profile(activations, stimuli, **options).table())

        return table_from(self.steps.json("table", about, compute))

    def draws(
        self, name: str, measure: Callable[[int, Stimuli], Effects], kind: str = PAPER
    ) -> list[Effects]:
        """The effects of a measure on every set of one kind."""
        sets = self.sets(kind)
        found = []
        with progress(name.capitalize(), len(sets)) as bar:
            for k, stimuli in enumerate(sets):
                found.append(measure(k, stimuli))
                bar.advance()
        return found

    def kept(self, name: str, about: Facts, compute: Callable[[], object]) -> Any:
        """Plain values that depend on the models and the settings of the encoding models."""
        return self.steps.json(
            name, {**self.encoding, "models": self.identities(self.cast.models), **about}, compute
        )

    def comparison(self) -> Comparison:
        """All models on the first set, for the figures of the paper."""
        stimuli = self.sets(PAPER)[0]
        about = {"models": self.identities(self.cast.models), "stimuli": stimuli.digest, **self.encoding}
        folder = self.steps.path("comparison", about)
        try:
            return Comparison.load(folder)
        except StoreError:  # not begun, or not finished
            systems: dict[str, GivenSystem] = {model: self.place(model) for model in self.cast.models}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CautionWarning)
                return compare(systems, stimuli, out=folder, resamples=0, **self.encoding)
