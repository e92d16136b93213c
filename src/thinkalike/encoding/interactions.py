"""Do features act together? Full W against diagonal W, and how much each pair of features adds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from thinkalike.encoding.crossval import fit_layer, make_plan
from thinkalike.encoding.importance import importance, interaction_sets, interactions_from, pattern_space
from thinkalike.encoding.plan import Features
from thinkalike.encoding.settings import Settings
from thinkalike.errors import UnknownName
from thinkalike.saving import Kept
from thinkalike.types import Chart
from thinkalike.wording import readable

INTERACTION_METHODS = ("expected", "drop")


@dataclass(frozen=True, eq=False, repr=False)
class InteractionComparison(Kept):
    """Held-out ρ without and with interactions.

    Attributes
    ----------
    diagonal, full : arrays of shape (n_folds,)
    interval : of the mean difference, by Student's t with the variance corrected for folds that share
        training items (Nadeau & Bengio 2003)
    """

    diagonal: np.ndarray
    full: np.ndarray
    interval: tuple[float, float]
    confidence: float
    settings: Settings
    records: ClassVar = {"settings": Settings}

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"InteractionComparison({len(self.full)} folds: ρ {self.difference.mean():+.4f} "
            f"with interactions, {low:+.4f} to {high:+.4f})"
        )

    @property
    def difference(self) -> np.ndarray:
        """ρ(full) − ρ(diagonal) fold by fold, of shape (n_folds,)."""
        return self.full - self.diagonal

    @property
    def needed(self) -> bool:
        """Whether interactions help: the whole interval is above 0."""
        return self.interval[0] > 0

    def to_frame(self) -> pd.DataFrame:
        """A row per fold."""
        columns = {"diagonal": self.diagonal, "full": self.full, "difference": self.difference}
        return pd.DataFrame(columns).rename_axis("fold").reset_index()

    def plot(self, *, theme: str = "light") -> Chart:
        """What interactions add to ρ in every fold, and their mean with its interval."""
        from thinkalike.charts.range_charts import range_figure

        folds = [f"fold {k}" for k in range(len(self.full))]
        none = [np.nan] * len(folds)
        low, high = self.interval
        data = pd.DataFrame(
            {
                "name": [*folds, "mean"],
                "value": [*self.difference, self.difference.mean()],
                "low": [*none, low],
                "high": [*none, high],
            }
        )
        title = f"What interactions add, with an interval of {self.confidence:.0%}"
        return range_figure(data, label="ρ with interactions − ρ without", title=title, theme=theme)

    def __str__(self) -> str:
        low, high = self.interval
        verdict = "needed" if self.needed else "not shown to be needed"
        return (
            f"Interactions are {verdict}: held-out ρ {self.full.mean():.4f} with them, "
            f"{self.diagonal.mean():.4f} without, difference {self.difference.mean():+.4f} "
            f"({self.confidence:.0%} interval {low:+.4f} to {high:+.4f})."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Interactions(Kept):
    """How much pairs of features matter beyond each of the two; see `interaction_importance`.

    Attributes
    ----------
    values : array of shape (n_folds, n_features, n_features)
        Symmetric, with the features' own importance on the diagonal.
    """

    values: np.ndarray
    features: tuple[str, ...]
    method: str
    settings: Settings
    records: ClassVar = {"settings": Settings}

    def __repr__(self) -> str:
        strongest = self._sorted().head(1).to_dict("records")
        most = [f": {one['feature']} with {one['with']} {one['interaction']:+.4f}" for one in strongest]
        return f"Interactions({len(self.features)} features, {len(self.values)} folds{''.join(most)})"

    def to_frame(self) -> pd.DataFrame:
        """A row per pair of features: the mean over folds, its deviation, in how many it is defined."""
        f, g = np.triu_indices(len(self.features), 1)
        pairs = pd.DataFrame(self.values[:, f, g].T)
        return pd.DataFrame(
            {
                "feature": [self.features[k] for k in f],
                "with": [self.features[k] for k in g],
                "interaction": pairs.mean(axis=1),
                "sd": pairs.std(axis=1),
                "n_folds": pairs.notna().sum(axis=1),
            }
        )

    def plot(self, *, theme: str = "light") -> Chart:
        """What every pair of features adds, with its deviation over folds."""
        from thinkalike.charts.range_charts import range_figure

        frame = self._sorted()
        data = pd.DataFrame(
            {
                "name": frame["feature"].map(readable) + " × " + frame["with"].map(readable),
                "value": frame["interaction"],
                "low": frame["interaction"] - frame["sd"],
                "high": frame["interaction"] + frame["sd"],
            }
        )
        title = f"Pairs of features on {len(self.values)} folds: means and deviations"
        return range_figure(data, label="importance beyond the two", title=title, theme=theme)

    def _sorted(self) -> pd.DataFrame:
        """The strongest first, whatever their signs."""
        return self.to_frame().sort_values("interaction", key=abs, ascending=False)


def compare_interactions(
    features: Features, X: npt.ArrayLike, *, confidence: float = 0.95, **options: object
) -> InteractionComparison:
    """Say whether interactions are needed: held-out ρ of full against diagonal W, on the same folds.

    Parameters
    ----------
    features, options : see `make_plan`
    X : array of shape (n_items, n_units)
    confidence : float in (0, 1), of the interval of the difference

    Returns
    -------
    InteractionComparison
        Prints as a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from thinkalike.encoding import compare_interactions
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.choice(["no", "yes"], (2, 80))
    >>> X = rng.normal(size=(80, 3)) + 2 * (a == "yes")[:, None]
    >>> found = compare_interactions(pd.DataFrame({"a": pd.Categorical(a), "b": pd.Categorical(b)}), X)
    >>> found.difference.shape, found.needed
    ((5,), False)
    """
    # "conditional" needs no space of patterns; only scores are used here
    options = {"importance": "conditional", **options}
    scores = []
    for interactions in (False, True):
        fit = {} if interactions else {"fit": None}  # only a full W is fitted by ranks
        plan = make_plan(features, **{**options, "interactions": interactions, **fit})
        scores.append(np.array([fit.evaluation.score for fit in fit_layer(plan, X)]))
    diagonal, full = scores
    interval = corrected_interval(full - diagonal, confidence=confidence)
    return InteractionComparison(diagonal, full, interval, confidence, plan.settings)


def corrected_interval(differences: np.ndarray, *, confidence: float) -> tuple[float, float]:
    """Of the mean of fold-wise differences of a K-fold cross-validation (Nadeau & Bengio 2003)."""
    K = len(differences)
    error = np.sqrt(np.var(differences, ddof=1) * (1 / K + 1 / (K - 1)))
    half = float(stats.t.ppf((1 + confidence) / 2, K - 1) * error)
    mean = float(np.mean(differences))
    return mean - half, mean + half


def interaction_importance(
    features: Features,
    X: npt.ArrayLike,
    *,
    method: str = "expected",
    interactions: bool = True,
    **options: object,
) -> Interactions:
    """importance(f and g together) − importance(f) − importance(g), on held-out folds.

    Parameters
    ----------
    features, options : see `make_plan`
    X : array of shape (n_items, n_units)
    method : {"expected", "drop"}
        Both features permuted together over pairs, or left out together; all terms of W with them move.
    interactions : bool, default True
        Whether W is full; with a diagonal W, what is left of interactions is in the ranks alone.

    Returns
    -------
    Interactions

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from thinkalike.encoding import interaction_importance
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.choice(["no", "yes"], (2, 80))
    >>> X = rng.normal(size=(80, 3)) + 2 * ((a == "yes") & (b == "yes"))[:, None]
    >>> features = pd.DataFrame({"a": pd.Categorical(a), "b": pd.Categorical(b)})
    >>> interaction_importance(features, X).values.shape
    (5, 2, 2)
    """
    if method not in INTERACTION_METHODS:
        raise UnknownName.among("interaction importance", method, INTERACTION_METHODS)
    plan = make_plan(features, **{**options, "interactions": interactions, "importance": method})
    names = plan.differences.names
    feature_sets = interaction_sets(len(names))
    values = []
    for k, fit in enumerate(fit_layer(plan, X)):
        space = pattern_space(fit.evaluation.patterns, feature_sets) if method == "expected" else None
        asked = replace(fit.evaluation, feature_sets=feature_sets, space=space)
        found = importance(
            asked, method=method, n_permutations=plan.settings.n_permutations, seed=plan.settings.seed + k
        )
        values.append(interactions_from(found, len(names)))
    return Interactions(np.stack(values), names, method, plan.settings)
