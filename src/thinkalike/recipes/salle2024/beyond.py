"""The open questions of Salle et al. 2024: one function each, from models to numbers to a statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.similarity_matrix import FEATURES, shared_features, stacked_importance
from thinkalike.errors import InvalidInput
from thinkalike.inference.blocks import Floats
from thinkalike.inference.weighted_tau import tau_matrix
from thinkalike.labels import Row, span_of
from thinkalike.progress import progress
from thinkalike.recipes.findings import Figure, Statement
from thinkalike.recipes.places import lacking
from thinkalike.recipes.salle2024 import beyond_figures as figures
from thinkalike.recipes.salle2024 import beyond_verdicts as verdicts
from thinkalike.recipes.salle2024.experiment import Work, importance_table
from thinkalike.recipes.salle2024.scales import SalleSettings
from thinkalike.recipes.salle2024.verdicts import POSITION, dominant
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Facts, Json, Value

if TYPE_CHECKING:
    from torch import nn

ALPHA = 100.0
"""Of the ridge when interactions are fitted: small beside the sums over pairs, enough to condition them"""
CONTROL = "zipf"
CONTROL_NAME = "word frequency"


@dataclass
class Beyond:
    """Statements and figures as they come in."""

    statements: list[Statement] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def add(self, statement: Statement, *drawn: Figure) -> None:
        self.statements.append(statement)
        self.figures.extend(drawn)


def look_beyond(work: Work, comparison: Comparison) -> Beyond:
    """All open questions, each answered or said to be untested."""
    beyond = Beyond()
    for look in (_interactions, _natural_text, _feature_set, _presets, _untrained, _checkpoints, _positions):
        look(work, comparison, beyond)
    return beyond


def _interactions(work: Work, comparison: Comparison, beyond: Beyond) -> None:
    rows = _kept(work, comparison, "interactions", lambda: interaction_rows(comparison, work.settings))
    beyond.add(verdicts.interactions(rows), figures.interactions(pd.DataFrame(rows)))


def interaction_rows(comparison: Comparison, settings: SalleSettings) -> list[Json]:
    """Held-out ρ of diagonal and full W in every layer but the embeddings."""
    from thinkalike.encoding.interactions import compare_interactions

    assert comparison.activations is not None
    places = [row for name in comparison.systems for row in _spread(comparison, name, settings)]
    rows = []
    with progress("Interactions", len(places)) as step:
        for system, layer in places:
            X = comparison.activations[system][layer]
            found = compare_interactions(comparison.stimuli, X, alpha=ALPHA, seed=settings.seed)
            rho = {"diagonal": float(found.diagonal.mean()), "full": float(found.full.mean())}
            rows.append({"system": system, "layer": layer, **rho, "needed": found.needed})
            step.advance()
    return rows


def _spread(comparison: Comparison, system: str, settings: SalleSettings) -> list[Row]:
    """As many layers as asked for, evenly over the depth; all if 0."""
    rows = [row for row in comparison.rows if row[0] == system and row[1] != 0]
    n = settings.interaction_layers or len(rows)
    return [rows[k] for k in np.unique(np.linspace(0, len(rows) - 1, n).round().astype(int))]


def _natural_text(work: Work, comparison: Comparison, beyond: Beyond) -> None:
    if work.settings.treebank is None:
        beyond.add(verdicts.natural_text_untested())
        return
    stimuli = treebank_stimuli(Path(work.settings.treebank), work.settings.treebank_sentences)
    natural = work.profiles(work.models, stimuli)
    same = verdicts.same_story(comparison.matrices[FEATURES].values, taus_of(natural))
    top = {
        name: Counter(dominant(importance_table(profile))).most_common(1)[0][0]
        for name, profile in natural.items()
    }
    beyond.add(verdicts.natural_text(same, top, len(stimuli)))


def treebank_stimuli(path: Path, n_sentences: int) -> Stimuli:
    """The first sentences of a treebank, with the features in which any two of their words differ."""
    stimuli = Stimuli.from_conllu(path)
    first = list(stimuli.sentences.index[:n_sentences])
    chosen = stimuli.subset(stimuli.items["sentence"].isin(first).to_numpy())
    features = chosen.features
    varied = [name for name in features if len(features[name].dropna().unique()) > 1]
    return Stimuli(features[varied], items=chosen.items, sentences=chosen.sentences)


def _feature_set(work: Work, comparison: Comparison, beyond: Beyond) -> None:
    kept = list(comparison.features)
    importance = stacked_importance(list(comparison.profiles.values()), kept)
    whole = comparison.matrices[FEATURES].values
    without = {
        name: verdicts.same_story(whole, tau_matrix(np.delete(importance, k, axis=1)))
        for k, name in enumerate(kept)
    }
    more = work.profiles(work.models, comparison.stimuli.with_controls(CONTROL))
    added = verdicts.same_story(whole, taus_of(more))
    drawn = figures.feature_set(
        {**{f"without {n}": v for n, v in without.items()}, f"with {CONTROL_NAME}": added}
    )
    beyond.add(verdicts.feature_set(without, added, CONTROL_NAME), drawn)


def _presets(work: Work, comparison: Comparison, beyond: Beyond) -> None:
    n = work.settings.preset_sentences
    if not n:
        return
    stimuli = Stimuli.from_grammar(n, work.settings.seed, grammar="salle2024")
    found = [work.profiles(work.models, stimuli, preset=preset) for preset in ("default", "salle2024")]
    same = verdicts.same_story(*(taus_of(one) for one in found))
    tops = [[top for p in one.values() for top in dominant(importance_table(p))] for one in found]
    share = float(np.mean([a == b for a, b in zip(*tops, strict=True)]))
    beyond.add(verdicts.presets(same, share, n))


def _untrained(work: Work, comparison: Comparison, beyond: Beyond) -> None:
    blocks = [block for block in comparison.matrices[FEATURES].blocks if block.a != block.b]
    pairs = {f"{block.a} and {block.b}": (block.mean, block.control) for block in blocks}
    beyond.add(verdicts.untrained(pairs), figures.untrained(comparison))


def _checkpoints(work: Work, comparison: Comparison, beyond: Beyond) -> None:
    names = list(work.settings.checkpoints)
    missing = lacking(names, work.settings.models_folder)
    if missing:
        beyond.add(verdicts.checkpoints_untested(missing))
        return
    found = work.profiles(names, comparison.stimuli)
    rows = [row for profile in found.values() for row in profile.rows]
    values, last = taus_of(found), span_of(rows, names[-1])
    # Layer by layer, without the embeddings.
    taus = {name: float(np.nanmean(np.diag(values[span_of(rows, name), last])[1:])) for name in names[:-1]}
    beyond.add(verdicts.checkpoints(taus), figures.checkpoints(list(found.values())))


def taus_of(profiles: Mapping[str, Profile]) -> Floats:
    """τ_w between all layers, over the features that all of them have."""
    found = list(profiles.values())
    return tau_matrix(stacked_importance(found, shared_features(found)))


def _positions(work: Work, comparison: Comparison, beyond: Beyond) -> None:
    kept, removed = {}, {}
    for name in work.settings.without_positions:
        kept[name] = _position_importance(importance_table(comparison.profiles[name]))
        compute = partial(without_positions, work, comparison, name)
        values = _kept(work, comparison, "positions", compute, {"model": name})
        removed[name] = np.array(values, dtype=np.float64)
    beyond.add(verdicts.positions_removed(kept, removed), figures.positions(kept, removed))


def _position_importance(table: pd.DataFrame) -> Floats:
    return table[POSITION].to_numpy(np.float64)


def without_positions(work: Work, comparison: Comparison, name: str) -> list[float]:
    """Importance of word position in every layer of a model that is not told where a word stands."""
    from thinkalike.activations import extract
    from thinkalike.comparison.profiling import profile
    from thinkalike.systems.system import LoadOptions, open_system

    system = open_system(work.place(name), LoadOptions(device="cpu"))
    silence_positions(system.model)
    found = extract(system.model, comparison.stimuli, processor=system.tokenizer, system=name, cache=False)
    made = profile(found, comparison.stimuli, preset=work.settings.preset, seed=work.settings.seed)
    return _position_importance(importance_table(made)).tolist()


def silence_positions(model: nn.Module) -> None:
    """Set position embeddings and the angles of rotary positions to 0."""
    import torch

    tables = [
        module.weight
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Embedding)
        and name.rpartition(".")[2] in ("wpe", "position_embeddings", "embed_positions")
    ]
    angles = [buffer for name, buffer in model.named_buffers() if name.endswith("inv_freq")]
    if not tables and not angles:
        raise InvalidInput(
            f"{type(model).__name__} has no position embeddings or rotations to set to 0: leave it out of "
            "without_positions."
        )
    with torch.no_grad():
        for values in (*tables, *angles):
            values.zero_()


def _kept(
    work: Work,
    comparison: Comparison,
    name: str,
    compute: Callable[[], Value],
    about: Facts | None = None,
) -> Value:
    """A step that depends on the models, the stimuli and the settings of the encoding models."""
    models = work.identities(list(comparison.profiles))
    depends = {"models": models, "stimuli": comparison.stimuli.digest, "encoding": comparison.settings}
    return work.steps.json(name, {**depends, **(about or {})}, compute)
