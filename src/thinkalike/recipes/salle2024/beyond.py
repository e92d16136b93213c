"""The open questions of Salle et al. 2024: one function each, from models to the effects of a rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from torch import nn

from thinkalike.activations.store import Activations
from thinkalike.errors import InvalidInput
from thinkalike.inference.agreement import spearman
from thinkalike.inference.weighted_tau import tau_matrix
from thinkalike.labels import Floats
from thinkalike.recipes.effects import effects_over
from thinkalike.recipes.findings import Statement, decided
from thinkalike.recipes.places import lacking
from thinkalike.recipes.salle2024.measures import Effects, blocks_of, leaders, same_leaders
from thinkalike.recipes.salle2024.observing import taus_of
from thinkalike.recipes.salle2024.rules import BEYOND_RULES
from thinkalike.recipes.salle2024.sets import NATURAL, NOT_FIRST, PAPER, UNTANGLED
from thinkalike.recipes.salle2024.told_apart import (
    alike,
    nearer_without,
    other_positions,
    position_of,
    positions_or_architecture,
    positions_or_seed,
    second_seeds,
    trained_without,
)
from thinkalike.recipes.salle2024.work import OF, Work
from thinkalike.stimuli.table import Stimuli
from thinkalike.wording import listed

DIGITS = 12
"""Of τ_w that are more than rounding"""
ALPHA = 100.0
"""Of the ridge when interactions are fitted: small beside the sums over pairs, enough to condition them"""
CONTROL = "zipf"


def look_beyond(work: Work) -> list[Statement]:
    """All open questions, each answered or said to be untested."""
    return [look(work) for look in LOOKS]


def _said(name: str, draws: list[Effects], untested: str = "") -> Statement:
    return decided(BEYOND_RULES[name], effects_over(draws, OF), comment=untested if not draws else "")


def _other_words(kind: str, name: str, work: Work) -> Statement:
    """Whether other words of the same models are led by the same features."""
    if kind == NATURAL and work.settings.treebank is None:
        return _said(name, [], "No treebank was given: --set treebank=FILE.conllu shows its sentences.")
    both = zip(work.observations(PAPER), work.observations(kind), strict=True)
    return _said(name, [same_leaders(a.tables, b.tables) for a, b in both])


def _other_language(work: Work) -> Statement:
    s = work.settings
    if s.other_language is None or not s.reads_other_language:
        return _said(
            "other language", [], "No treebank of another language that a model here reads was given."
        )

    draws = []
    for stimuli in work.sets(NATURAL, s.other_language):
        tables = {model: work.table(model, stimuli) for model in s.reads_other_language}
        draws.append(
            {n: float(np.mean([top == "part_of_speech" for top in leaders(t)])) for n, t in tables.items()}
        )
    return _said("other language", draws)


def _interactions(work: Work) -> Statement:
    from thinkalike.encoding.interactions import compare_interactions

    def gains(k: int, stimuli: Stimuli) -> Effects:
        found = {}
        for model in work.cast.models:
            activations = work.shown(model, stimuli)
            layers = [layer for layer in activations.layers if layer != 0]
            places = np.linspace(0, len(layers) - 1, work.settings.interaction_layers + 1).round().astype(int)
            chosen = [layers[place] for place in places[1:]]
            each = [
                compare_interactions(stimuli, activations[layer], alpha=ALPHA, seed=0) for layer in chosen
            ]
            found[model] = float(np.median([one.full.mean() - one.diagonal.mean() for one in each]))
        return found

    def kept(k: int, stimuli: Stimuli) -> Effects:
        about = {"stimuli": stimuli.digest, "layers": work.settings.interaction_layers}
        found: Effects = work.kept("interactions", about, lambda: gains(k, stimuli))
        return found

    if not work.settings.interaction_layers:
        return _said("interactions", [], "Not looked at here.")
    return _said("interactions", work.draws("interactions", kept))


def _feature_set(work: Work) -> Statement:
    def other_lists(k: int, stimuli: Stimuli) -> Effects:
        seen = work.observation(stimuli)
        every = pd.concat(list(seen.tables.values()), join="inner").dropna(axis=1)
        without = [
            same_story(seen.taus, tau_matrix(every.drop(columns=name).to_numpy(np.float64))) for name in every
        ]
        more = stimuli.with_controls(CONTROL)
        added = taus_of({model: work.table(model, more) for model in work.cast.models})
        return {
            "the worst feature left out": min(without),
            "word frequency added": same_story(seen.taus, added),
        }

    return _said("feature set", work.draws("feature lists", other_lists))


def _presets(work: Work) -> Statement:
    n = work.settings.preset_sentences
    if not n:
        return _said("presets", [], "Not looked at here: the authors' choices take ten times as long.")

    def both(k: int, stimuli: Stimuli) -> Effects:
        some = stimuli.first(n)
        one, other = (
            {model: work.table(model, some, preset=preset) for model in work.cast.models}
            for preset in ("default", "salle2024")
        )
        return same_leaders(one, other)

    return _said("presets", work.draws("presets", both))


def _untrained(work: Work) -> Statement:
    """Each set of sentences has its own draw of random weights, so that the range is over both."""

    def gain(k: int, stimuli: Stimuli) -> Effects:
        seen = work.observation(stimuli)
        copies = {
            model: work.table(
                model,
                stimuli,
                show=partial(work.shown, model, stimuli, untrained=True, seed=k),
                variant=f"untrained {k}",
            )
            for model in work.cast.models
        }
        names = list(work.cast.models)
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        return {
            f"{a} and {b}": float(np.nanmean(seen.between(a, b)) - mean_between(copies[a], copies[b]))
            for a, b in pairs
        }

    return _said("untrained", work.draws("untrained copies", gain))


def mean_between(a: pd.DataFrame, b: pd.DataFrame) -> float:
    """Mean τ_w between the blocks of two models."""
    first, second = blocks_of(a), blocks_of(b)
    taus = taus_of({"a": first, "b": second})
    return float(np.nanmean(taus[: len(first), len(first) :]))


def _checkpoints(work: Work) -> Statement:
    names = list(work.settings.checkpoints)
    missing = lacking(names, work.settings.models_folder)
    if missing:
        return _said("checkpoints", [], f"This installation has no {listed(missing)}.")
    if len(names) < 3:
        return _said("checkpoints", [], "It takes two checkpoints or more, and the finished model.")

    def nearer(k: int, stimuli: Stimuli) -> Effects:
        *early, last = (work.table(name, stimuli) for name in names)
        likeness = [alike(one, last) for one in early]
        return {
            f"{b.partition('@')[2]} after {a.partition('@')[2]}": y - x
            for a, b, x, y in zip(names, names[1:], likeness, likeness[1:], strict=False)
        }

    return _said("checkpoints", work.draws("checkpoints", nearer))


def _silenced(work: Work) -> Statement:
    names = work.settings.without_positions
    if not names:
        return _said("positions silenced", [], "Not looked at here.")

    def loss(k: int, stimuli: Stimuli) -> Effects:
        found = {}
        for name in names:
            show = partial(without_positions, work, name, stimuli)
            silent = work.table(name, stimuli, show=show, variant="positions set to 0")
            found[name] = position_of(work.table(name, stimuli)) - position_of(silent)
        return found

    return _said("positions silenced", work.draws("positions set to 0", loss))


def without_positions(work: Work, name: str, stimuli: Stimuli) -> Activations:
    """A model that is not told where a word stands."""
    from thinkalike.activations import extract
    from thinkalike.systems.system import LoadOptions, open_system

    system = open_system(work.place(name), LoadOptions(device="cpu"))
    silence_positions(system.model)
    return extract(system.model, stimuli, processor=system.tokenizer, system=name, cache=False)


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


def same_story(first: Floats, second: Floats) -> float:
    """Spearman's ρ of two symmetric matrices over pairs of different layers; NaN in either is left out.

    τ_w of few features has few values, and equal ones that were summed in another order differ in their last
    digits: these are rounded away, or ranks would be of rounding.
    """
    i, j = np.triu_indices(len(first), k=1)
    a, b = (np.round(one[i, j], DIGITS) for one in (first, second))
    known = np.isfinite(a) & np.isfinite(b)
    return spearman(a[known], b[known])


LOOKS: tuple[Callable[[Work], Statement], ...] = (
    partial(_other_words, NOT_FIRST, "first words"),
    partial(_other_words, UNTANGLED, "other grammar"),
    partial(_other_words, NATURAL, "natural text"),
    _other_language,
    _untrained,
    second_seeds,
    _interactions,
    _feature_set,
    _presets,
    _checkpoints,
    _silenced,
    trained_without,
    other_positions,
    nearer_without,
    positions_or_seed,
    positions_or_architecture,
)
