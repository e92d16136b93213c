"""Cautions about one system: what its vectors are like, and how it read the texts.

Each looks at a profile and says a sentence for everything that a careful reader should know.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from thinkalike.comparison.profiles import Profile
from thinkalike.wording import layer_range, number, percent

TOP_HEAVY = 0.3
FIRST_HEAVY = 3.0
"""So many times the variance of another word, word for word. Not in shares: a third of the items that lie at
one far place carry two thirds of the variance and never more. In no layer of five bundled models
(nano-bert, -gpt2, -mamba, -gelu-3l, -pythia-64; the default grammar) was it more than 2.1 times"""
ANISOTROPIC = 0.9
UNKNOWN = 0.01


def nothing_explained(profile: Profile) -> Iterator[str]:
    if not profile.explains_something:
        yield (
            f"{profile.system}: that the features explain anything at all, these items do not show "
            f"(mean ρ {number(float(np.nanmean(profile.mean_scores)))}, not above 0 over the folds): its "
            "likeness to others has no p."
        )


def top_heavy_layers(profile: Profile) -> Iterator[str]:
    shares = np.zeros(1) if profile.diagnostics is None else profile.diagnostics.top_share
    if (shares > TOP_HEAVY).any():
        yield (
            f"{profile.system}: 1 % of the items carry up to {percent(shares.max())} of the variance in "
            f"{layers_where(profile, shares > TOP_HEAVY)}: distances there are about those few items. First "
            "tokens of huge norm are a known cause (drop_first=1)."
        )


def heavy_first_words(profile: Profile) -> Iterator[str]:
    found = profile.diagnostics
    if found is None or found.by_position is None or found.positions is None or found.first_norm is None:
        return
    share, expected = found.by_position[:, 0], found.positions[:, 0]
    heavy = share * (1 - expected) > FIRST_HEAVY * (1 - share) * expected
    if heavy.any():
        worst = int(np.where(heavy, share, -1.0).argmax())
        yield (
            f"{profile.system}: first words are {percent(expected[worst])} of the items and carry up to "
            f"{percent(share[worst])} of the variance in {layers_where(profile, heavy)} (their vectors are "
            f"{found.first_norm[worst]:.1f} times as long)"
            f"{_importance_lost(found.lost_importance(profile.mean_importance)[worst, 0])}: what ranks "
            "first there may be about being first. See what remains without them (--robustness), or give "
            "texts a beginning (bos=True, drop_first=1)."
        )


def _importance_lost(share: float) -> str:
    if np.isnan(share):
        return ""
    goes = f"{percent(share)} of the importance goes" if share > 0 else "no importance goes"
    return f", and {goes} when they are left out"


def missing_bos(profile: Profile) -> Iterator[str]:
    beginning = profile.metadata.get("beginning") or {}
    if beginning.get("unused") and beginning.get("why") != "asked":
        yield (
            f"{profile.system} has a beginning-of-sequence token ({beginning['unused']}) and read the "
            "texts without it, as its tokenizer does: first words may stand in for it. See whether it "
            "matters: bos=True (--bos, --robustness)."
        )


def unknown_words(profile: Profile) -> Iterator[str]:
    share = profile.metadata.get("unknown") or 0.0
    if share >= UNKNOWN:
        yield (
            f"{profile.system}: {percent(share)} of the items have a part that its tokenizer does not know. "
            "All such parts are one and the same to the model, and items look alike that are not: leave them "
            "out, or give a model that knows them."
        )


def half_taken(profile: Profile) -> Iterator[str]:
    part = profile.metadata.get("part")
    if part is not None and not profile.metadata.get("part_asked", True):
        yield (
            f"{profile.system} has several parts, and only its {part} was read: name the one you mean, "
            f"as MODEL:{part}."
        )


def quantised_weights(profile: Profile) -> Iterator[str]:
    how = profile.metadata.get("gguf_file") or profile.metadata.get("quantised")
    if how:
        yield (
            f"{profile.system}: the weights are quantised ({how}). In the bundled models 8 bits leave "
            "distances as they are (RSA 0.9999 with the full weights), 4 bits do not quite (0.95 to 0.99), "
            "and features that matter little change places."
        )


def anisotropic_layers(profile: Profile) -> Iterator[str]:
    cosines = None if profile.diagnostics is None else profile.diagnostics.anisotropy
    if cosines is not None and (cosines > ANISOTROPIC).any():
        yield (
            f"{profile.system}: two items have a mean cosine of up to {number(np.nanmax(cosines))} in "
            f"{layers_where(profile, cosines > ANISOTROPIC)}: all vectors point about the same way, and a "
            "few units of large values decide on the distances. See what z-scored units say "
            "(distance='zscored')."
        )


def layers_where(profile: Profile, where: np.ndarray) -> str:
    return layer_range([profile.layers[k] for k in np.flatnonzero(where)])
