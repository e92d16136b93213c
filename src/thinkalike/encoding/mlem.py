"""`MLEM`, the estimator: which features explain the distances between activations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from thinkalike.encoding.crossval import few_blas_threads, layer_target
from thinkalike.encoding.designs import Design, is_metric, make_design, triangles
from thinkalike.encoding.fitting import fit_items
from thinkalike.encoding.importance import PERMUTING, Evaluation, importance, make_feature_sets, pattern_space
from thinkalike.encoding.moments import Coefficients
from thinkalike.encoding.pairfolds import fit_all_pairs
from thinkalike.encoding.plan import Features, feature_table, together_labels, warn_of_sampling
from thinkalike.encoding.scoring import PairPatterns, RankedPairs, find_patterns, rank_pairs, spearman
from thinkalike.encoding.settings import Settings, change_settings, make_settings
from thinkalike.errors import InvalidInput
from thinkalike.options import one_name
from thinkalike.pairs.distances import SCALINGS, DistanceLike, as_vectors
from thinkalike.pairs.runs import items_of_runs, stack_runs
from thinkalike.stimuli.differences import FeatureDifferences
from thinkalike.stimuli.feature_coding import code_features, require_variation


class MLEM(BaseEstimator):
    r"""Metric-learning encoding model (Jalouzot et al. 2024; Salle et al. 2024).

    Minimises Σ_{i<j} (c + Δ_ijᵀ W Δ_ij − ‖x_i − x_j‖²)² + α‖W‖², where Δ_ij are the differences of two items
    in their features, W is diagonal and non-negative (with interactions: positive semi-definite), and c is
    the noise floor. The solution is exact and needs no pairs.

    Parameters
    ----------
    alpha : float or "cv"
        The penalty; "cv" chooses it on inner folds.
    preset : {"default", "salle2024"}
        See `thinkalike.encoding.settings`. Every parameter that is None follows the preset.
    distance : a name in `thinkalike.pairs.distances.DISTANCES`, or a callable (A, B) → (len(A), len(B))
    interactions : bool
        Full W instead of diagonal.
    ordered, missing : {"indicator", "minmax"}; {"ignore", "level"}
        See `thinkalike.stimuli.feature_coding.code_features`.
    intercept : bool
    fit_by : {"least squares", "spearman"}
        "spearman" goes on from least squares uphill in Spearman's ρ, for a full W; it is kept if it helps on
        inner folds (`rank_gain_` above 0). Nothing is drawn. See `thinkalike.encoding.rank_fit`. The same is
        called `fit` in `profile`; an estimator has a method of that name.
    alphas, n_folds : with "cv": the penalties to choose from; with "cv" or fit_by="spearman": how many inner
        folds there are
    run : name of a column of the features, optional
        For "crossnobis": the run that a row was measured in; rows with the same index are one item.
    seed : int

    Attributes
    ----------
    weights_ : Series (n_features,), or DataFrame (n_features, n_features) with interactions
    intercept_, alpha_ : float
    rank_gain_ : float, by how much fit_by="spearman" raises the mean ρ of the inner folds; NaN if not asked
    alpha_curve_ : Series, the inner score of each α, larger is better; empty if α was given
    settings_, preset_ : Settings; str
    n_items_, n_pairs_ : int

    Examples
    --------
    Two features, of which the first moves items by 2 and the second not at all:

    >>> import numpy as np
    >>> import pandas as pd
    >>> import thinkalike as ta
    >>> rng = np.random.default_rng(0)
    >>> number = pd.Categorical(rng.choice(["singular", "plural"], 80))
    >>> tense = pd.Categorical(rng.choice(["past", "present"], 80))
    >>> X = rng.normal(scale=0.5, size=(80, 1)) + 2 * (number == "plural")[:, None]
    >>> model = ta.MLEM().fit(pd.DataFrame({"number": number, "tense": tense}), X)
    >>> model.weights_.round().to_dict()
    {'number': 4.0, 'tense': 0.0}
    """

    @one_name
    def __init__(
        self,
        alpha: float | str = 1.0,
        *,
        preset: str = "default",
        distance: DistanceLike | None = None,
        interactions: bool = False,
        ordered: str | None = None,
        missing: str | None = None,
        intercept: bool = True,
        fit_by: str | None = None,
        alphas: Sequence[float] | None = None,
        n_folds: int | None = None,
        run: str | None = None,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.preset = preset
        self.distance = distance
        self.interactions = interactions
        self.ordered = ordered
        self.missing = missing
        self.intercept = intercept
        self.fit_by = fit_by
        self.alphas = alphas
        self.n_folds = n_folds
        self.run = run
        self.seed = seed

    def fit(self, features: Features, X: npt.ArrayLike, *, together: npt.ArrayLike | None = None) -> MLEM:
        """Learn W from the features of items and their activations.

        Parameters
        ----------
        features : DataFrame of shape (n_items, n_features), or Stimuli
        X : array of shape (n_items, n_units), NumPy or torch; see `distance` for other shapes
        together : which items share an inner fold, if α is chosen; see `plan_encoding`
        """
        settings = self._settings()
        table, X = self._measurements(features, X)
        plain = isinstance(features, np.ndarray)
        validate_data(self, features if plain else table, reset=True, skip_check_array=True)
        differences = code_features(table, ordered=settings.ordered, missing=settings.missing)
        if len(differences) < 2:
            raise InvalidInput(f"Got {len(differences)} sample (item): a distance needs at least 2.")
        require_variation(differences.features)
        scaling = SCALINGS.get(settings.distance) if isinstance(settings.distance, str) else None
        self.whitener_ = None if scaling is None else scaling(as_vectors(X))
        target = layer_target(X, settings, len(table), whitener=self.whitener_)
        design = make_design(settings.design, differences.n_features)
        if settings.folds_over == "pairs":
            found = fit_all_pairs(table, target, settings)
        else:
            has_folds = settings.has_inner_folds
            label = together_labels(features, together, len(table)) if has_folds else None
            found = fit_items(differences, target, design, settings, label)
        self._moments, self.alpha_, self.rank_gain_ = found.moments, found.alpha, found.rank_gain
        self._learn(differences, design, settings, found.coefficients, found.curve)
        return self

    def predict(self, features: Features) -> np.ndarray:
        """Squared distances between all pairs of items, condensed: of shape (n_items(n_items − 1)/2,)."""
        differences = self._code(features)
        patterns = find_patterns(differences, max_pairs=len(differences) ** 2)
        predictions = self._design.predict(patterns.values, self._coefficients.weights)
        predicted: np.ndarray = predictions[patterns.ids] + self.intercept_
        return predicted

    def score(self, features: Features, X: npt.ArrayLike) -> float:
        """Spearman's ρ between predicted and observed distances, ties averaged."""
        patterns, ranked = self._judged(features, X)
        return spearman(self._design.predict(patterns.values, self._coefficients.weights), ranked.table)

    def importance(
        self,
        features: Features,
        X: npt.ArrayLike,
        *,
        method: str | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        n_permutations: int | None = None,
    ) -> pd.Series:
        """How much each feature matters to ρ on these items; NaN if it has one level.

        Parameters
        ----------
        method : a name in `thinkalike.encoding.importance.IMPORTANCES`; None follows the preset
        groups : mapping of name to features, which are then asked about as one
        n_permutations : for the methods that permute
        """
        check_is_fitted(self)
        settings = change_settings(self.settings_, importance=method, n_permutations=n_permutations)
        feature_sets = make_feature_sets(list(self.weights_.index), groups)
        patterns, ranked = self._judged(features, X)
        space = pattern_space(patterns, feature_sets) if settings.importance in PERMUTING else None
        warn_of_sampling([space], settings)
        evaluation = Evaluation(
            self._design,
            self._moments,
            self.alpha_,
            settings.intercept,
            self._coefficients,
            patterns,
            ranked,
            feature_sets,
            space,
        )
        values = importance(
            evaluation, method=settings.importance, n_permutations=settings.n_permutations, seed=self.seed
        )
        return pd.Series(values, index=[p.name for p in feature_sets], name="importance")

    @property
    def is_metric_(self) -> bool:
        """Whether the learned distance keeps the triangle inequality for all items these levels can make."""
        check_is_fitted(self)
        return is_metric(self._triangles, self._design, self._coefficients.weights, seed=self.seed)

    def _settings(self) -> Settings:
        self._refuse_idle()
        alphas = None if self.alphas is None else tuple(float(a) for a in self.alphas)
        return make_settings(
            self.preset,
            alpha=self.alpha,
            distance=self.distance,
            interactions=self.interactions,
            ordered=self.ordered,
            missing=self.missing,
            intercept=self.intercept,
            fit=self.fit_by,
            alphas=alphas,
            n_folds=self.n_folds,
            seed=self.seed,
        )

    def _refuse_idle(self) -> None:
        """Options that nothing would look at."""
        for name in ("alphas", "n_folds"):
            is_used = self.alpha == "cv" or (name == "n_folds" and self.fit_by == "spearman")
            if getattr(self, name) is not None and not is_used:
                raise InvalidInput(
                    f"{name} is for choosing alpha, and alpha={self.alpha!r} was given: leave out {name}, or "
                    "give alpha='cv'."
                )
        if self.n_folds is not None and self.preset == "salle2024":
            raise InvalidInput(
                "The preset 'salle2024' chooses alpha on one split of the pairs, not on folds: leave out "
                "n_folds, or use the default preset."
            )

    def _measurements(
        self, features: Features, X: npt.ArrayLike | None
    ) -> tuple[pd.DataFrame, npt.ArrayLike]:
        """The table of items and their activations, runs stacked if there is a column of them."""
        if X is None:
            raise InvalidInput(
                "MLEM requires y to be passed, but the target y is None: give the activations."
            )
        table = feature_table(features)
        return (table, X) if self.run is None else stack_runs(table, X, run=self.run)

    def _learn(
        self,
        differences: FeatureDifferences,
        design: Design,
        settings: Settings,
        coefficients: Coefficients,
        curve: np.ndarray,
    ) -> None:
        names = list(differences.names)
        W = design.as_matrix(coefficients.weights)
        self._design, self._coefficients = design, coefficients
        self._ranges, self._triangles = differences.ranges, triangles(differences)
        self.weights_ = (
            pd.DataFrame(W, index=names, columns=names)
            if self.interactions
            else pd.Series(np.diagonal(W).copy(), index=names, name="weight")
        )
        self.intercept_ = coefficients.intercept
        alphas = settings.alphas if len(curve) else ()
        self.alpha_curve_ = pd.Series(curve, index=pd.Index(alphas, name="alpha", dtype=float), name="score")
        self.settings_, self.preset_ = settings, settings.preset
        self.n_items_ = len(differences)
        self.n_pairs_ = self.n_items_ * (self.n_items_ - 1) // 2

    def _code(self, features: Features) -> FeatureDifferences:
        check_is_fitted(self)
        table = feature_table(features)
        if self.run is not None and self.run in table.columns:
            table, _ = items_of_runs(table, run=self.run)
        validate_data(
            self, features if isinstance(features, np.ndarray) else table, reset=False, skip_check_array=True
        )
        settings = self.settings_
        return code_features(table, ordered=settings.ordered, missing=settings.missing, ranges=self._ranges)

    def _judged(self, features: Features, X: npt.ArrayLike) -> tuple[PairPatterns, RankedPairs]:
        """The patterns of the pairs of items, and the ranks of their distances."""
        differences = self._code(features)
        table, X = self._measurements(features, X)
        patterns = find_patterns(differences, max_pairs=self.settings_.max_pairs, seed=self.seed)
        target = layer_target(X, self.settings_, len(table), whitener=self.whitener_)
        with few_blas_threads(len(table)):
            return patterns, rank_pairs(patterns, target, np.arange(len(table)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
