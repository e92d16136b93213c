"""`salle2024` from models to findings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.chart_tables import item_values
from thinkalike.comparison.comparing import System, compare
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.errors import StoreError
from thinkalike.labels import row_name, span_of
from thinkalike.recipes.findings import Findings, Statement
from thinkalike.recipes.places import identity, locate, require
from thinkalike.recipes.salle2024 import verdicts
from thinkalike.recipes.salle2024.scales import SalleSettings
from thinkalike.recipes.salle2024.verdicts import POSITION
from thinkalike.recipes.steps import Steps
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Json, Option


def run(settings: SalleSettings, out: Path) -> Findings:
    """Compare the three models, test each statement of the paper, and look beyond it."""
    from thinkalike.recipes.salle2024.beyond import look_beyond
    from thinkalike.recipes.salle2024.figures import draw

    work = Work(settings, Steps(out))
    require(work.models, recipe="salle2024", folder=settings.models_folder)
    comparison = work.compare(work.models, work.stimuli, controls="untrained")
    low, high = low_and_high(comparison, settings.state_space)
    beyond = look_beyond(work, comparison)
    return Findings(
        recipe="salle2024",
        scale=settings.scale,
        statements=(*paper_statements(work, comparison), *beyond.statements),
        figures=(*draw(comparison, settings.state_space, (low, high)), *beyond.figures),
        settings={**settings.plain(), "encoding": comparison.settings},
        notes=(
            f"{len(comparison.stimuli):,} words of {settings.sentences} sentences of the probing "
            f"grammar, shown to {', '.join(work.models)}. Layer k is what leaves block k, and layer 0 what "
            "enters the first; transformers' own numbers for Mamba may be shifted by one against these.",
        ),
    )


@dataclass(frozen=True)
class Work:
    """The settings of a run, and where its steps are kept."""

    settings: SalleSettings
    steps: Steps

    @property
    def models(self) -> list[str]:
        return [*self.settings.transformers, self.settings.state_space]

    @property
    def stimuli(self) -> Stimuli:
        return Stimuli.from_grammar(self.settings.sentences, self.settings.seed, grammar="salle2024")

    def place(self, model: str) -> str:
        return locate(model, self.settings.models_folder)

    def identities(self, models: list[str]) -> dict[str, str]:
        """What kept results of these models depend on."""
        return {model: identity(model, self.settings.models_folder) for model in models}

    def compare(self, models: list[str], stimuli: Stimuli, **options: Option) -> Comparison:
        """The comparison of models by name, kept in a run directory of its own."""
        options = {"preset": self.settings.preset, **options}
        about = {"models": self.identities(models), "stimuli": stimuli.digest, **options}
        folder = self.steps.path("comparison", about)
        try:
            return Comparison.load(folder)
        except StoreError:  # not begun, or not finished
            systems: dict[str, System] = {model: self.place(model) for model in models}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CautionWarning)
                return compare(systems, stimuli, out=folder, seed=self.settings.seed, **options)

    def profiles(self, models: list[str], stimuli: Stimuli, **options: Option) -> dict[str, Profile]:
        """The profiles of models by name, each kept as soon as it is made."""
        from thinkalike.activations import extract
        from thinkalike.comparison.profiling import plan_profiles, profile

        options = {"preset": self.settings.preset, "seed": self.settings.seed, **options}
        plan = None
        found = {}
        for model, weights in self.identities(models).items():
            about = {"model": model, "weights": weights, "stimuli": stimuli.digest, **options}
            path = self.steps.path("profile", about)
            if not path.with_name(f"{path.name}.json").exists():
                plan = plan or plan_profiles(stimuli, **options)
                shown = extract(self.place(model), stimuli, system=model)
                profile(shown, stimuli, plan=plan).save(path)
            found[model] = Profile.load(path)
        return found


def paper_statements(work: Work, comparison: Comparison) -> list[Statement]:
    """What the paper says, each with a verdict."""
    transformers, mamba = list(work.settings.transformers), work.settings.state_space
    tables = {name: importance_table(profile) for name, profile in comparison.profiles.items()}
    spread = pd.DataFrame(
        comparison.profiles[mamba].spread, index=tables[mamba].index, columns=tables[mamba].columns
    )
    features = comparison.matrices[FEATURES]
    similarities = {name: without_embeddings(comparison, name) for name in tables}
    low, high = low_and_high(comparison, mamba)
    first, last = extremes(comparison)
    tops = [dominant_of(comparison, pair) for pair in (first, last)]
    names = [(row_name(comparison.rows[i]), row_name(comparison.rows[j])) for i, j in (first, last)]
    return [
        verdicts.pos_in_transformers({name: tables[name] for name in transformers}),
        verdicts.pos_at_the_ends(mamba, tables[mamba], after_final_norm(work, comparison)),
        verdicts.position_rises(mamba, tables[mamba], spread),
        verdicts.two_blocks(similarities, mamba),
        verdicts.maps_by_position(mamba, *(position_on_map(comparison, mamba, k) for k in (low, high))),
        verdicts.number_falls(tables),
        verdicts.matrices_agree(next(a for a in comparison.agreements if {a.a, a.b} == {FEATURES, "rsa"})),
        verdicts.most_alike(names[0], float(features.values[first]), tops[0], transformers),
        verdicts.least_alike(names[1], float(features.values[last]), tops[1], mamba),
        verdicts.features_predict({name: profile.scores for name, profile in comparison.profiles.items()}),
        verdicts.features_apart(comparison.correlations),
    ]


def importance_table(profile: Profile) -> pd.DataFrame:
    """Layers × features."""
    return pd.DataFrame(
        profile.mean_importance, index=list(profile.layers), columns=list(profile.features)
    ).dropna(axis=1)


def without_embeddings(comparison: Comparison, system: str) -> np.ndarray:
    """τ_w between the blocks of one system, layer 0 left out."""
    span = span_of(comparison.rows, system)
    places = [k for k in range(len(comparison.rows))[span] if comparison.rows[k][1] != 0]
    return comparison.matrices[FEATURES].values[np.ix_(places, places)]


def low_and_high(comparison: Comparison, system: str) -> tuple[int, int]:
    """A layer of the lower and one of the upper half: at a quarter and at three quarters of the depth."""
    layers = [layer for layer in comparison.profiles[system].layers if layer != 0]
    last = len(layers) - 1
    return int(layers[round(0.25 * last)]), int(layers[round(0.75 * last)])


def extremes(comparison: Comparison) -> tuple[tuple[int, int], tuple[int, int]]:
    """The most and the least alike layers of two different models, embeddings left out."""
    values = comparison.matrices[FEATURES].values.copy()
    owners = np.array([system for system, _ in comparison.rows])
    block = np.array([layer != 0 for _, layer in comparison.rows])
    values[(owners[:, None] == owners) | ~(block[:, None] & block)] = np.nan
    values[np.tril_indices(len(values))] = np.nan
    places = [np.unravel_index(f(values), values.shape) for f in (np.nanargmax, np.nanargmin)]
    first, last = ((int(i), int(j)) for i, j in places)
    return first, last


def dominant_of(comparison: Comparison, pair: tuple[int, int]) -> tuple[str, str]:
    """The dominant feature of each of two layers."""
    a, b = (
        str(importance_table(comparison.profiles[system]).loc[layer].idxmax())
        for system, layer in (comparison.rows[k] for k in pair)
    )
    return a, b


def position_on_map(comparison: Comparison, system: str, layer: int) -> tuple[int, float]:
    """A layer, and the share of the variance of its map of words that lies between word positions."""
    assert comparison.word_maps is not None
    row = comparison.word_maps.rows.index((system, layer))
    values = item_values(comparison.word_maps, comparison.stimuli, POSITION).values
    return layer, verdicts.variance_by_level(comparison.word_maps.coordinates[row], list(values))


def after_final_norm(work: Work, comparison: Comparison) -> str | None:
    """The dominant feature of Mamba after its final norm, which transformers counts as the last layer."""
    model, stimuli = work.settings.state_space, comparison.stimuli
    preset, seed = work.settings.preset, work.settings.seed

    def compute() -> Json:
        from thinkalike.activations import Activations, extract
        from thinkalike.comparison.profiling import profile

        found = extract(work.place(model), stimuli, final_norm=True, system=model)
        if "final_norm" not in found.layers:
            return {"dominant": None}
        last = Activations.from_arrays({"final_norm": found["final_norm"]}, system=model, stimuli=stimuli)
        made = profile(last, stimuli, preset=preset, seed=seed)
        return {"dominant": str(importance_table(made).iloc[0].idxmax())}

    about = {"models": work.identities([model]), "stimuli": stimuli.digest, "preset": preset, "seed": seed}
    dominant = work.steps.json("final-norm", about, compute)["dominant"]
    return None if dominant is None else str(dominant)
