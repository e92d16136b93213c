"""Many layers at once: scores and importances on held-out folds, the feature side computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits

from thinkalike.encoding.fitting import FoldFit, fit_folds
from thinkalike.encoding.importance import importance
from thinkalike.encoding.pairfolds import PairPlan, fit_pairs, plan_pairs
from thinkalike.encoding.plan import EncodingPlan, Features, plan_encoding
from thinkalike.encoding.settings import Settings, make_settings
from thinkalike.encoding.strengths import StrengthPlan, plan_strengths, strengths
from thinkalike.errors import InvalidInput
from thinkalike.labels import Layer
from thinkalike.pairs.distances import QuadraticTarget, Target, as_vectors, make_target
from thinkalike.progress import progress
from thinkalike.saving import Kept
from thinkalike.types import Chart
from thinkalike.wording import readable

Layers = Mapping[Layer, npt.ArrayLike] | npt.ArrayLike
"""Label → array (n_items, n_units), as Activations are, or one such array"""
Preprocess = Callable[[np.ndarray], np.ndarray]
ALPHA_MATTERS = 1e-3
ONE_THREAD_ITEMS = 5_000
STRUCTURE = ("groups", "together", "folds", "duplicates")
"""Options of a plan that are not settings of the encoding models"""


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Kept):
    """Held-out scores and importances of some layers.

    Attributes
    ----------
    layers : labels of the layers
    names : what has an importance: the features, or groups of them
    features : the features
    scores : array of shape (n_layers, n_folds), Spearman's ρ
    importance : array of shape (n_layers, n_folds, n_names); NaN where a feature has one level in a fold
    weights : array of shape (n_layers, n_folds, n_features); one more axis of features for the full design
    strengths : array of shape (n_layers, n_folds, n_names), what a feature does when it differs, from
        the items outside the fold; see `thinkalike.encoding.strengths`
    intercepts, alphas : arrays of shape (n_layers, n_folds)
    alpha_curves : array of shape (n_layers, n_folds, n_alphas), larger is better; no alphas if α was given
    rank_gains : array of shape (n_layers, n_folds), by how much fit="spearman" raises the mean inner ρ; it is
        kept in folds where that is above 0. NaN for least squares
    n_pairs : array of shape (n_folds,), pairs scored in each fold
    importance_used : what was computed; "permutation" where patterns are too many for "expected"
    settings : Settings

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from thinkalike.encoding import cross_validate
    >>> rng = np.random.default_rng(0)
    >>> number = pd.Categorical(rng.choice(["singular", "plural"], 60))
    >>> tense = pd.Categorical(rng.choice(["past", "present"], 60))
    >>> X = rng.normal(size=(60, 4)) + 3 * (number == "plural")[:, None]
    >>> found = cross_validate(pd.DataFrame({"number": number, "tense": tense}), {"layer 1": X})
    >>> found.scores.shape, found.to_frame().set_index("feature")["importance"].idxmax()
    ((1, 5), 'number')
    """

    layers: tuple[Layer, ...]
    names: tuple[str, ...]
    features: tuple[str, ...]
    scores: np.ndarray
    importance: np.ndarray
    weights: np.ndarray
    strengths: np.ndarray
    intercepts: np.ndarray
    alphas: np.ndarray
    alpha_curves: np.ndarray
    rank_gains: np.ndarray
    n_pairs: np.ndarray
    importance_used: str
    settings: Settings
    records: ClassVar = {"settings": Settings}

    def __repr__(self) -> str:
        n_layers, n_folds = self.scores.shape
        means = self.scores.mean(axis=1)
        return (
            f"CrossValidation({n_layers} layers, {len(self.names)} features, {n_folds} folds: "
            f"held-out ρ {means.min():.3f} to {means.max():.3f})"
        )

    @property
    def preset(self) -> str:
        """The preset that the settings started from."""
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

    def plot(self, *, theme: str = "light") -> Chart:
        """The mean importance of every feature with its deviation over folds, one picture a layer."""
        from thinkalike.charts.range_charts import range_figure

        frame = self.to_frame()
        data = pd.DataFrame(
            {
                "name": frame["feature"].map(readable),
                "panel": frame["layer"].map("layer {}".format),
                "value": frame["importance"],
                "low": frame["importance"] - frame["sd"],
                "high": frame["importance"] + frame["sd"],
            }
        )
        title = f"Importances on {self.scores.shape[1]} folds: means and deviations"
        return range_figure(data, label="importance (drop in ρ)", title=title, theme=theme)

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
    features: Features, layers: Layers, *, plan: EncodingPlan | PairPlan | None = None, **options: object
) -> CrossValidation:
    """Fit MLEM to each layer on all folds but one, and judge it on that one.

    Parameters
    ----------
    features : DataFrame of shape (n_items, n_features), or Stimuli
    layers : mapping of label to array (n_items, n_units), Activations, or one array
    plan : from `make_plan`, to use it for several systems; `features` and `options` are then not looked at
    options : see `make_plan`

    Returns
    -------
    CrossValidation

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from thinkalike.encoding import cross_validate
    >>> rng = np.random.default_rng(0)
    >>> features = pd.DataFrame({"length": rng.integers(1, 6, 60).astype(float)})
    >>> X = features[["length"]].to_numpy() + rng.normal(scale=0.1, size=(60, 3))
    >>> bool(cross_validate(features, X, ordered="minmax").scores.min() > 0.9)
    True
    """
    if plan is None:
        plan = make_plan(features, **options)
    arrays = layer_arrays(layers)
    judge = LayerJudge.of(plan)
    found = []
    with progress("Encoding layers", len(arrays)) as step, few_blas_threads(plan.n_items):
        for label, get in arrays:
            found.append(judge(label, get()))
            step.advance()
    return judge.collect([label for label, _ in arrays], found)


@dataclass(frozen=True)
class JudgedLayer:
    """What cross-validation found of one layer; the fields are rows of those of `CrossValidation`."""

    scores: np.ndarray
    importance: np.ndarray
    weights: np.ndarray
    strengths: np.ndarray
    intercepts: np.ndarray
    alphas: np.ndarray
    alpha_curves: np.ndarray
    rank_gains: np.ndarray
    n_pairs: np.ndarray
    sampled: bool
    """Whether permutations stand for the expected importance"""


@dataclass(frozen=True)
class LayerJudge:
    """Fits and judges one layer after the other on a plan; may be called from several threads."""

    plan: EncodingPlan | PairPlan
    side: StrengthPlan

    @classmethod
    def of(cls, plan: EncodingPlan | PairPlan) -> LayerJudge:
        """Strengths are on the items outside each fold; with folds over pairs, on all items."""
        fold = None if isinstance(plan, PairPlan) else plan.fold
        return cls(plan, plan_strengths(plan.differences, plan.feature_sets, fold))

    def __call__(self, label: Layer, X: npt.ArrayLike) -> JudgedLayer:
        """Judge one layer (n_items, n_units), which errors call by its label."""
        plan, options = self.plan, self.plan.settings
        try:
            targets = fold_targets(plan, X)
            fits = _fit_targets(plan, targets)
        except InvalidInput as error:
            raise type(error)(f"Layer {label!r}: {error}") from error
        values = [
            importance(
                fit.evaluation,
                method=options.importance,
                n_permutations=options.n_permutations,
                seed=options.seed + 1 + k,
            )
            for k, fit in enumerate(fits)
        ]
        evaluations = [fit.evaluation for fit in fits]
        weights = [e.coefficients.weights for e in evaluations]
        return JudgedLayer(
            scores=np.array([e.score for e in evaluations]),
            importance=np.stack(values),
            weights=np.stack(
                weights if plan.design.name == "diagonal" else [plan.design.as_matrix(w) for w in weights]
            ),
            strengths=self._strengths(targets),
            intercepts=np.array([e.coefficients.intercept for e in evaluations]),
            alphas=np.array([fit.alpha for fit in fits]),
            alpha_curves=np.stack([fit.curve for fit in fits]),
            rank_gains=np.array([fit.rank_gain for fit in fits]),
            n_pairs=np.array([e.patterns.n_pairs for e in evaluations]),
            sampled=options.importance == "expected" and any(e.space is None for e in evaluations),
        )

    def _strengths(self, targets: Sequence[Target]) -> np.ndarray:
        """(n_folds, n_names), each fold by its own distances."""
        each = {id(target): target for target in targets}
        made = {key: strengths(self.side, target) for key, target in each.items()}
        rows = [made[id(target)][k % len(made[id(target)])] for k, target in enumerate(targets)]
        return np.stack(rows)

    def collect(self, labels: Sequence[Layer], found: Sequence[JudgedLayer]) -> CrossValidation:
        """The layers together."""
        plan = self.plan
        stacked = {
            field.name: np.stack([getattr(one, field.name) for one in found])
            for field in fields(JudgedLayer)
            if field.name not in ("n_pairs", "sampled")
        }
        sampled = any(one.sampled for one in found)
        return CrossValidation(
            layers=tuple(labels),
            names=plan.names,
            features=plan.differences.names,
            n_pairs=found[0].n_pairs,
            importance_used="permutation" if sampled else plan.settings.importance,
            settings=plan.settings,
            **stacked,
        )


def few_blas_threads(n_items: int) -> AbstractContextManager[object]:
    """One BLAS thread for many small products: more would spend their time waiting for one another."""
    return threadpool_limits(1, "blas") if n_items <= ONE_THREAD_ITEMS else nullcontext()


def make_plan(features: Features, **options: Any) -> EncodingPlan | PairPlan:
    """The plan that the settings ask for: `plan_encoding` (folds over items) or `plan_pairs` (over pairs).

    Parameters
    ----------
    features : DataFrame of shape (n_items, n_features), or Stimuli
    options
        `preset`, any of the `Settings`, `groups` (name → features whose importance is asked as one), and what
        says which items go together: `together`, `folds`, `duplicates`; see `plan_encoding`.

    Returns
    -------
    EncodingPlan or PairPlan
        What depends on the features alone, for `cross_validate` of any number of systems.

    Examples
    --------
    >>> import pandas as pd
    >>> from thinkalike.encoding import make_plan
    >>> plan = make_plan(pd.DataFrame({"number": pd.Categorical(["one", "two"] * 10)}), n_folds=4)
    >>> plan.n_folds, plan.names
    (4, ('number',))
    """
    chosen = make_settings(**{k: v for k, v in options.items() if k not in (*STRUCTURE, "coded")})
    if chosen.folds_over == "items":
        return plan_encoding(features, **options)
    unused = [k for k in ("together", "folds", "duplicates") if options.get(k) is not None]
    if unused:
        raise InvalidInput(
            f"Got {unused[0]}= with folds over pairs, where items are in every fold: leave it out."
        )
    return plan_pairs(features, chosen, groups=options.get("groups"), coded=options.get("coded"))


def fit_layer(plan: EncodingPlan | PairPlan, X: npt.ArrayLike) -> list[FoldFit]:
    """Fit and judge one layer, fold by fold."""
    return _fit_targets(plan, fold_targets(plan, X))


def fold_targets(plan: EncodingPlan | PairPlan, X: npt.ArrayLike) -> list[Target]:
    """For each fold the distances that it is fitted and judged on.

    The same for all, unless steps come first: then they are fitted on the items outside the fold. With folds
    over pairs, all of which have all items, on all items.
    """
    settings, steps = plan.settings, plan.steps
    if isinstance(plan, PairPlan):
        return [layer_target(X, settings, plan.n_items, steps=steps)] * plan.n_folds
    if not steps:
        return [layer_target(X, settings, plan.n_items, plan.kept)] * plan.n_folds

    def outside(k: int) -> Preprocess:
        return lambda x: steps(x, np.flatnonzero(plan.fold != k))

    return [layer_target(X, settings, plan.n_items, plan.kept, steps=outside(k)) for k in range(plan.n_folds)]


def _fit_targets(plan: EncodingPlan | PairPlan, targets: Sequence[Target]) -> list[FoldFit]:
    first = targets[0]
    if isinstance(plan, PairPlan):
        return fit_pairs(plan, first)
    if all(target is first for target in targets):
        return fit_folds(plan, first)
    return [fit_folds(plan, target, [k])[0] for k, target in enumerate(targets)]


def layer_target(
    X: npt.ArrayLike,
    settings: Settings,
    n_items: int,
    kept: np.ndarray | None = None,
    whitener: np.ndarray | None = None,
    steps: Preprocess | None = None,
) -> Target:
    """The distances between the items in use, after steps; checked: finite, as many, not all 0."""
    x = as_vectors(X, n_items=n_items, dimensions=3 if settings.distance == "crossnobis" else 2)
    if kept is not None and len(kept) < n_items:
        x = x[np.ix_(kept, kept)] if settings.distance == "precomputed" else x[..., kept, :]
    target = make_target(steps(x) if steps else x, settings.distance, whitener=whitener)
    _check_not_all_equal(target)
    return target


def layer_arrays(layers: Layers) -> list[tuple[Layer, Callable[[], npt.ArrayLike]]]:
    """Labels, and for each something that gives its array when called."""
    if isinstance(layers, Mapping):
        return [(label, partial(layers.__getitem__, label)) for label in layers]
    return [(0, lambda: layers)]


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
