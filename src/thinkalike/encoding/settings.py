"""Everything that changes the numbers, by name, and the two presets.

`default` is what we recommend. `salle2024` follows the authors' 2024 code where the paper (Salle et al. 2024)
is silent: folds over pairs, distances min-max scaled and then squared, α by the squared error on one inner
split (80 : 20), 50 permutations.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from thinkalike.encoding.importance import IMPORTANCES, REFITTING
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.options import LARGEST_SEED, MOST_PERMUTATIONS, refuse_other_names, whole_number
from thinkalike.pairs.distances import DISTANCES, DistanceLike
from thinkalike.pairs.pairset import MAX_PAIRS
from thinkalike.pairs.preprocessing import parse_steps
from thinkalike.stimuli.feature_coding import MISSING, ORDERED

LATER = ("steps", "fit")
"""Settings that results of earlier versions do not have; named only where they are not the usual"""
ALPHAS = tuple(float(a) for a in 10.0 ** np.arange(-4, 5))


@dataclass(frozen=True)
class Settings:
    """The choices behind a fit; made by `make_settings`.

    Attributes
    ----------
    preset : str
        The name in `PRESETS` that these started from.
    distance : a name in `thinkalike.pairs.distances.DISTANCES`, or a callable (A, B) → (len(A), len(B))
    target : {"squared", "minmax"}
        The squared distance; or the distance scaled to [0, 1] over all pairs, then squared.
    ordered, missing : see `thinkalike.stimuli.feature_coding.code_features`
    interactions : bool
        Full W, positive semi-definite, instead of diagonal.
    intercept : bool
        Whether a constant, the noise floor, is fitted too.
    alpha, alphas : float or "cv"; tuple of float
        The ridge penalty on the sum of squares over pairs; "cv" chooses among `alphas`.
    fit : {"least squares", "spearman"}
        Of a full W: by least squares, or from there on by the ranks of the distances, fold by fold where that
        helps on inner folds; see `thinkalike.encoding.rank_fit`.
    select : {"spearman", "mse"}
        How α is chosen: by ρ, averaged over inner folds; or by squared error on one inner split.
    folds_over, n_folds : {"items", "pairs"}; int, at least 2
    importance, n_permutations : a name in `IMPORTANCES`; int, for those that permute
    seed : int
        Of folds, permutations and samples of pairs.
    max_pairs : int
        Scores are on all pairs of a fold, or on a seeded sample of so many.
    steps : names in `thinkalike.pairs.preprocessing.STEPS`, as ("zscore", "pca:50")
        What vectors go through first, fitted on the items of the training folds (with folds over pairs, in
        which every item is in training, on all items).

    Examples
    --------
    >>> from thinkalike.encoding import PRESETS
    >>> from thinkalike.encoding.settings import make_settings
    >>> make_settings(n_folds=10).n_folds, PRESETS["salle2024"].folds_over
    (10, 'pairs')
    """

    preset: str = "default"
    distance: DistanceLike = "euclidean"
    target: str = "squared"
    ordered: str = "indicator"
    missing: str = "ignore"
    interactions: bool = False
    intercept: bool = True
    alpha: float | str = "cv"
    alphas: tuple[float, ...] = ALPHAS
    select: str = "spearman"
    folds_over: str = "items"
    n_folds: int = 5
    importance: str = "expected"
    n_permutations: int = 20
    seed: int = 0
    max_pairs: int = MAX_PAIRS
    steps: tuple[str, ...] = ()
    fit: str = "least squares"

    @property
    def design(self) -> str:
        """The name in `DESIGNS`."""
        return "full" if self.interactions else "diagonal"

    @property
    def has_inner_folds(self) -> bool:
        """Whether something is chosen within the training items: α, or how W is fitted."""
        return self.alpha == "cv" or self.fit == "spearman"

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        values: dict[str, object] = asdict(self)
        values["alphas"] = list(self.alphas)
        values["steps"] = list(self.steps)
        for name in LATER:  # settings from before they were there stay equal to those that leave them out
            if getattr(self, name) == getattr(Settings, name):
                del values[name]
        if callable(self.distance):
            values["distance"] = getattr(self.distance, "__qualname__", repr(self.distance))
        return values


PRESETS = {
    "default": Settings(),
    "salle2024": Settings(
        preset="salle2024",
        target="minmax",
        select="mse",
        folds_over="pairs",
        n_folds=2,
        importance="permutation",
        n_permutations=50,
    ),
}
"""Name → settings: "default" is what we recommend, "salle2024" what the paper's authors did"""

_CHOICES: dict[str, tuple[str, Collection[str]]] = {
    "target": ("target", ("squared", "minmax")),
    "ordered": ("difference of ordered features", ORDERED),
    "missing": ("treatment of missing values", MISSING),
    "fit": ("way to fit W", ("least squares", "spearman")),
    "select": ("way to choose alpha", ("spearman", "mse")),
    "folds_over": ("unit of folds", ("items", "pairs")),
    "importance": ("importance", IMPORTANCES),
}


def make_settings(preset: str = "default", **changes: object) -> Settings:
    """The settings of a preset, with changes; a change to None keeps the preset's choice."""
    if preset not in PRESETS:
        raise UnknownName.among("preset", preset, PRESETS)
    return change_settings(PRESETS[preset], **changes)


def change_settings(settings: Settings, **changes: Any) -> Settings:
    """Other settings with some changes; a change to None is none."""
    known = [f.name for f in fields(Settings) if f.name != "preset"]
    refuse_other_names(changes, known)
    for name in changes:
        if name not in known:
            raise UnknownName.among("setting", name, known)
    if changes.get("steps") is not None:
        changes["steps"] = parse_steps(changes["steps"])
    changed = replace(settings, **{k: v for k, v in changes.items() if v is not None})
    _check(changed)
    return changed


def _check(settings: Settings) -> None:
    for name, (what, known) in _CHOICES.items():
        if getattr(settings, name) not in known:
            raise UnknownName.among(what, getattr(settings, name), known)
    if not callable(settings.distance) and settings.distance not in DISTANCES:
        raise UnknownName.among("distance", settings.distance, DISTANCES)
    alpha = settings.alpha
    if isinstance(alpha, str):
        if alpha != "cv":
            raise InvalidInput(f"Got alpha={alpha!r}: give a number that is not negative, or 'cv'.")
    elif not (np.isfinite(alpha) and alpha >= 0):
        raise InvalidInput(f"Got alpha={alpha!r}: give a number that is not negative, or 'cv'.")
    if not settings.alphas or not all(np.isfinite(a) and a >= 0 for a in settings.alphas):
        raise InvalidInput(f"Got alphas={settings.alphas!r}: give numbers that are not negative.")
    if (settings.select == "mse" or settings.target == "minmax") and settings.folds_over != "pairs":
        raise InvalidInput(
            "select='mse' and target='minmax' need all pairs: give folds_over='pairs' with them."
        )
    if settings.fit == "spearman":
        _check_rank_fit(settings)
    if settings.steps and settings.distance in ("precomputed", "crossnobis"):
        raise InvalidInput(
            f"Steps change one vector per item, and distance={settings.distance!r} takes none: do the steps "
            "before the distances are made, or leave them out."
        )
    for name in ("interactions", "intercept"):
        if not isinstance(getattr(settings, name), (bool, np.bool_)):
            raise InvalidInput(f"Got {name}={getattr(settings, name)!r}: give True or False.")
    whole_number("seed", settings.seed, 0, LARGEST_SEED)
    whole_number("n_folds", settings.n_folds, 2)
    whole_number("n_permutations", settings.n_permutations, 1, MOST_PERMUTATIONS)
    whole_number("max_pairs", settings.max_pairs, 1)


def _check_rank_fit(settings: Settings) -> None:
    if not settings.interactions or settings.folds_over != "items":
        raise InvalidInput(
            "fit='spearman' refines a full W on folds over items: give interactions=True and the default "
            "preset, or leave fit out."
        )
    if settings.importance in REFITTING:
        raise InvalidInput(
            f"importance={settings.importance!r} fits W again without a feature, by least squares, which "
            "fit='spearman' is not: use importance='expected'."
        )
