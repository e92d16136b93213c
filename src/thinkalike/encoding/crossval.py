"""Many layers at once: scores and importances on held-out folds, the feature side computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from thinkalike.encoding.fitting import FoldFit, fit_folds
from thinkalike.encoding.importance import importance
from thinkalike.encoding.pairfolds import PairPlan, fit_pairs, plan_pairs
from thinkalike.encoding.plan import EncodingPlan, plan_encoding
from thinkalike.encoding.settings import Settings, make_settings
from thinkalike.encoding.strengths import StrengthPlan, plan_strengths, strengths
from thinkalike.errors import InvalidInput
from thinkalike.pairs.distances import QuadraticTarget, Target, as_activations, make_target
from thinkalike.progress import progress

ALPHA_MATTERS = 1e-3
ONE_THREAD_ITEMS = 5_000


@dataclass(frozen=True)
class CrossValidation:
    """Held-out scores and importances of some layers.

    Attributes
    ----------
    layers : labels of the layers;  names : what has an importance;  features : the features
    scores : array of shape (n_layers, n_folds), Spearman's ρ
    importance : array of shape (n_layers, n_folds, n_names); NaN where a feature has one level in a fold
    weights : array of shape (n_layers, n_folds, n_features); one more axis of features for the full design
    strengths : array of shape (n_layers, n_folds, n_names), what a feature does when it differs, from
        the items outside the fold; see `thinkalike.encoding.strengths`
    intercepts, alphas : arrays of shape (n_layers, n_folds)
    alpha_curves : array of shape (n_layers, n_folds, n_alphas), larger is better; no alphas if α was given
    n_pairs : array of shape (n_folds,), pairs scored in each fold
    importance_used : what was computed; "permutation" where patterns are too many for "expected"
    """

    layers: tuple[Any, ...]
    names: tuple[str, ...]
    features: tuple[str, ...]
    scores: np.ndarray
    importance: np.ndarray
    weights: np.ndarray
    strengths: np.ndarray
    intercepts: np.ndarray
    alphas: np.ndarray
    alpha_curves: np.ndarray
    n_pairs: np.ndarray
    importance_used: str
    settings: Settings

    @property
    def preset(self) -> str:
        return self.settings.preset

    @property
    def alpha_spread(self) -> np.ndarray:
        """How much the choice of α can matter, of shape (n_layers,); NaN if α was given.

        The range of the inner ρ over the alphas, in the fold where it is largest; for select="mse" the range
        of the squared error, as a share of the smallest.
        """
        if self.alpha_curves.shape[2] == 0:
            return np.full(len(self.layers), np.nan)
        ranges = np.ptp(self.alpha_curves, axis=2)
        if self.settings.select == "mse":
            ranges = ranges / np.abs(self.alpha_curves).min(axis=2)
        spread: np.ndarray = ranges.max(axis=1)
        return spread

    @property
    def alpha_matters(self) -> np.ndarray:
        """Whether `alpha_spread` is more than 0.001, of shape (n_layers,)."""
        return self.alpha_spread > ALPHA_MATTERS

    def to_frame(self) -> pd.DataFrame:
        """A row per layer and name: mean importance over folds, its deviation, in how many it is defined."""
        defined = np.isfinite(self.importance)
        count = defined.sum(axis=1)
        values = np.where(defined, self.importance, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = values.sum(axis=1) / count
            squared = np.where(defined, (self.importance - mean[:, None]) ** 2, 0.0).sum(axis=1)
            deviation = np.sqrt(squared / (count - 1))
        index = pd.MultiIndex.from_product([self.layers, self.names], names=["layer", "feature"])
        columns = {"importance": mean.ravel(), "sd": deviation.ravel(), "n_folds": count.ravel()}
        return pd.DataFrame(columns, index=index).reset_index()

    def scores_frame(self) -> pd.DataFrame:
        """A row per layer and fold: ρ, the α it took, the pairs it is judged on."""
        n_layers, n_folds = self.scores.shape
        return pd.DataFrame(
            {
                "layer": [layer for layer in self.layers for _ in range(n_folds)],
                "fold": np.tile(np.arange(n_folds), n_layers),
                "score": self.scores.ravel(),
                "alpha": self.alphas.ravel(),
                "n_pairs": np.tile(self.n_pairs, n_layers),
            }
        )


def cross_validate(
    features: Any, layers: Any, *, plan: EncodingPlan | PairPlan | None = None, **options: Any
) -> CrossValidation:
    """Fit MLEM to each layer on all folds but one, and judge it on that one.

    Parameters
    ----------
    features : DataFrame of shape (n_items, n_features), or Stimuli
    layers : mapping of label to array (n_items, n_units), Activations, or one array
    plan : from `make_plan`, to use it for several systems; `features` and `options` are then not looked at
    options : see `make_plan`
    """
    if plan is None:
        plan = make_plan(features, **options)
    arrays = layer_arrays(layers)
    results = []
    side = _plan_strengths(plan)
    with progress("Encoding layers", len(arrays)) as step, few_blas_threads(plan.n_items):
        for label, get in arrays:
            results.append(_judge_layer(plan, side, label, get))
            step.advance()
    fits, importances, found = zip(*results, strict=True)
    return _collect(plan, tuple(label for label, _ in arrays), fits, np.stack(importances), np.stack(found))


def few_blas_threads(n_items: int) -> AbstractContextManager[Any]:
    """One BLAS thread for many small products: more would spend their time waiting for one another."""
    return threadpool_limits(1, "blas") if n_items <= ONE_THREAD_ITEMS else nullcontext()


def make_plan(features: Any, **options: Any) -> EncodingPlan | PairPlan:
    """The plan that the settings ask for: `plan_encoding` (folds over items) or `plan_pairs` (over pairs)."""
    structure = ("groups", "together", "folds", "duplicates")
    chosen = make_settings(**{k: v for k, v in options.items() if k not in structure})
    if chosen.folds_over == "items":
        return plan_encoding(features, **options)
    unused = [k for k in ("together", "folds", "duplicates") if options.get(k) is not None]
    if unused:
        raise InvalidInput(
            f"Got {unused[0]}= with folds over pairs, where items are in every fold: leave it out."
        )
    return plan_pairs(features, chosen, groups=options.get("groups"))


def fit_layer(plan: EncodingPlan | PairPlan, X: Any) -> list[FoldFit]:
    """Fit and judge one layer, fold by fold."""
    return _fit_target(plan, _target(plan, X))


def _target(plan: EncodingPlan | PairPlan, X: Any) -> Target:
    kept = None if isinstance(plan, PairPlan) else plan.kept
    return layer_target(X, plan.settings, plan.n_items, kept)


def _fit_target(plan: EncodingPlan | PairPlan, target: Target) -> list[FoldFit]:
    return fit_pairs(plan, target) if isinstance(plan, PairPlan) else fit_folds(plan, target)


def _plan_strengths(plan: EncodingPlan | PairPlan) -> StrengthPlan:
    """On the items outside each fold; with folds over pairs, where no item is outside, on all items."""
    fold = None if isinstance(plan, PairPlan) else plan.fold
    return plan_strengths(plan.differences, plan.players, fold)


def layer_target(
    X: Any,
    settings: Settings,
    n_items: int,
    kept: np.ndarray | None = None,
    whitener: np.ndarray | None = None,
) -> Target:
    """The distances between the items in use, checked: finite, of the right number, not all 0."""
    X = as_activations(X, n_items=n_items, dimensions=3 if settings.distance == "crossnobis" else 2)
    if kept is not None and len(kept) < n_items:
        X = X[np.ix_(kept, kept)] if settings.distance == "precomputed" else X[..., kept, :]
    target = make_target(X, settings.distance, whitener=whitener)
    _check_not_all_equal(target)
    return target


def layer_arrays(layers: Any) -> list[tuple[Any, Any]]:
    """Labels, and for each something that gives its array when called."""
    if isinstance(layers, Mapping):
        return [(label, lambda array=array: array) for label, array in layers.items()]
    if hasattr(layers, "layers"):
        return [(label, lambda label=label: layers[label]) for label in layers.layers]
    return [(0, lambda: layers)]


def _judge_layer(
    plan: EncodingPlan | PairPlan, side: StrengthPlan, label: Any, get: Any
) -> tuple[list[FoldFit], np.ndarray, np.ndarray]:
    """The fits, importances of shape (n_folds, n_names) and strengths of the same shape."""
    try:
        target = _target(plan, get())
        fits = _fit_target(plan, target)
    except InvalidInput as error:
        raise type(error)(f"Layer {label!r}: {error}") from error
    options = plan.settings
    values = [
        importance(
            fit.evaluation,
            method=options.importance,
            n_permutations=options.n_permutations,
            seed=options.seed + 1 + k,
        )
        for k, fit in enumerate(fits)
    ]
    found = np.broadcast_to(strengths(side, target), (plan.n_folds, len(plan.names)))
    return fits, np.stack(values), found


def _collect(
    plan: EncodingPlan | PairPlan,
    labels: tuple[Any, ...],
    layers: Sequence[list[FoldFit]],
    importances: np.ndarray,
    found: np.ndarray,
) -> CrossValidation:
    def gather(get: Any) -> np.ndarray:
        return np.array([[get(fit) for fit in fits] for fits in layers])

    def weights(fit: FoldFit) -> np.ndarray:
        w = fit.evaluation.coefficients.weights
        return w if plan.design.name == "diagonal" else plan.design.as_matrix(w)

    spaces = [fit.evaluation.space for fits in layers for fit in fits]
    sampled = plan.settings.importance == "expected" and any(space is None for space in spaces)
    return CrossValidation(
        labels,
        plan.names,
        plan.differences.names,
        scores=gather(lambda fit: fit.evaluation.score),
        importance=importances,
        weights=gather(weights),
        strengths=found,
        intercepts=gather(lambda fit: fit.evaluation.coefficients.intercept),
        alphas=gather(lambda fit: fit.alpha),
        alpha_curves=gather(lambda fit: fit.curve),
        n_pairs=np.array([fit.evaluation.patterns.n_pairs for fit in layers[0]]),
        importance_used="permutation" if sampled else plan.settings.importance,
        settings=plan.settings,
    )


def _check_not_all_equal(target: Target) -> None:
    everyone = np.arange(target.n_items)
    if isinstance(target, QuadraticTarget):
        first = np.asarray(target.terms[0][1][0], dtype=float)
        with np.errstate(over="ignore"):
            scale = float(first @ first)
        y, _ = QuadraticTarget(target.terms[:1]).between(np.zeros_like(everyone), everyone)
    else:
        scale, y = 0.0, target.block(everyone[:1], everyone)
    if not np.isfinite(scale):
        raise InvalidInput("The activations are too large to be squared: divide them by a constant first.")
    if np.abs(y).max() <= 1e-24 * scale:  # both are squares
        raise InvalidInput(
            "All activations are equal, so there are no distances to explain: leave this layer out."
        )
