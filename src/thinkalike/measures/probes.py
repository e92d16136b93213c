"""Linear probes: how well a feature of the items can be read off a layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.measures.inputs import Array, Vectors, as_layer, centred
from thinkalike.measures.measure import Measure
from thinkalike.progress import progress
from thinkalike.saving import Kept
from thinkalike.types import Chart

if TYPE_CHECKING:
    from thinkalike.activations.store import Activations
    from thinkalike.stimuli.table import Stimuli

Groups = Sequence[object] | npt.NDArray[np.generic]
"""Of each item: those of one group stay together"""
NOT_TWO_LAYERS = (
    "probe compares a layer with a feature, one label per item, and not two layers: for all layers of a "
    "system use thinkalike.measures.probe_layers."
)


@dataclass(frozen=True)
class Probe(Measure):
    """The row of the table that takes a layer and a feature."""

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> float:
        if np.ndim(Y) != 1:
            raise InvalidInput(NOT_TWO_LAYERS)
        return float(self.compare(self.prepare(as_layer(X, "X"), "X"), Y))

    def matrix(self, *layers: object, **names: object) -> Array:
        raise InvalidInput(NOT_TWO_LAYERS)


def prepare_items(X: Vectors, name: str = "X") -> Array:
    """Centred in float64, so that a large common offset leaves the variances of the units intact."""
    return centred(X, name)


def accuracy(X: Vectors, labels: pd.Series | Sequence[object]) -> float:
    """Mean held-out score of a linear probe of `X` for `labels`, over 5 folds: see `probe_scores`."""
    return float(probe_scores(X, labels if isinstance(labels, pd.Series) else pd.Series(labels)).mean())


def probe_scores(
    X: Vectors,
    labels: pd.Series,
    *,
    groups: Groups | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Array:
    """Held-out scores of a linear probe, one per fold, of shape (folds,).

    Categories: accuracy of a logistic regression, in [0, 1]. Numbers: R² of a ridge regression, in (−∞, 1].
    Items of one group (a sentence, a word type) stay in one fold. Items without a label are left out.
    Alain and Bengio 2018.
    """
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, numeric, splits = _prepared(X, labels, groups, folds, seed)
    scores = []
    for train, test in splits:
        reader = RidgeCV(alphas=np.logspace(-2, 6, 9)) if numeric else LogisticRegression(max_iter=1000)
        scores.append(make_pipeline(StandardScaler(), reader).fit(X[train], y[train]).score(X[test], y[test]))
    return np.array(scores, dtype=np.float64)


def _prepared(
    X: Vectors, labels: pd.Series, groups: Groups | None, folds: int, seed: int
) -> tuple[Array, npt.NDArray[np.generic], bool, list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]]:
    """Labelled items only, the labels as an array, whether they are numbers, and the folds."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    if len(labels) != len(X):
        raise InvalidInput(f"X has {len(X)} items and the feature {len(labels)}: give one label per item.")
    if groups is not None and len(groups) != len(X):
        raise InvalidInput(f"X has {len(X)} items and there are {len(groups)} groups: give each its group.")
    kept = labels.notna().to_numpy()
    y = labels[kept]
    numeric = pd.api.types.is_float_dtype(y)
    codes = y.to_numpy(dtype=np.float64) if numeric else y.astype(str).to_numpy(dtype=object)
    counts = pd.Series(codes).value_counts()
    if len(counts) < 2:
        raise InvalidInput(f"The feature has {len(counts)} level among the labelled items: a probe needs 2.")
    if not numeric and counts.min() < folds:
        raise InvalidInput(
            f"The level {counts.index[-1]!r} has {counts.min()} items, fewer than the {folds} folds: "
            "merge rare levels, leave them out, or use fewer folds."
        )
    members = None if groups is None else np.asarray(groups)[kept]
    if members is not None and len(np.unique(members)) < folds:
        raise InvalidInput(f"There are {len(np.unique(members))} groups for {folds} folds: use fewer folds.")
    kinds = (GroupKFold, KFold) if numeric else (StratifiedGroupKFold, StratifiedKFold)
    splitter = kinds[members is None](folds, shuffle=True, random_state=seed)
    X = centred(X[kept], "X")
    return X, codes, numeric, list(splitter.split(X, codes, members))


@dataclass(frozen=True, eq=False, repr=False)
class ProbeResult(Kept):
    """How well each layer of a system gives away one feature.

    Attributes
    ----------
    scores
        Held-out accuracy (categories) or R² (numbers), of shape (n_layers, n_folds).
    chance
        The same score for always answering the most frequent level, or the mean.
    control
        The same probe on labels that mean nothing (see `control_labels`), of shape (n_layers,);
        NaN where these leave a level too rare.
    """

    system: str
    feature: str
    layers: tuple[int | str, ...]
    scores: Array = field()
    chance: float
    control: Array = field()
    score: str
    settings: dict[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        means = self.scores.mean(axis=1)
        best = int(means.argmax())
        return (
            f"ProbeResult({self.feature} in {self.system}, {len(self.layers)} layers: {self.score} up to "
            f"{means[best]:.2f} (layer {self.layers[best]}), by chance {self.chance:.2f})"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per layer: mean score, its spread over folds, control and chance."""
        return pd.DataFrame(
            {
                "system": self.system,
                "feature": self.feature,
                "layer": np.array(self.layers, dtype=object),
                self.score: self.scores.mean(axis=1),
                "spread": self.scores.std(axis=1, ddof=1),
                "control": self.control,
                "chance": self.chance,
            }
        )

    def plot(self, *, theme: str = "light") -> Chart:
        """The mean score of every layer, its spread over folds as a line, and the control as a tick."""
        from thinkalike.charts.range_charts import range_figure

        found = self.to_frame()
        value, spread = found[self.score], found["spread"]
        data = pd.DataFrame(
            {
                "name": [str(layer) for layer in self.layers],
                "value": value,
                "low": value - spread,
                "high": value + spread,
                "tick": self.control,
            }
        )
        title = f"{self.feature} in {self.system}: layers, and a control of labels that mean nothing"
        return range_figure(data, label=self.score, title=title, theme=theme)


def probe_layers(
    activations: Activations,
    stimuli: Stimuli,
    feature: str,
    *,
    groups: str | None = "sentence",
    folds: int = 5,
    seed: int = 0,
) -> ProbeResult:
    """Probe every layer for a feature of the stimuli.

    Categories are read by logistic regression (accuracy, in [0, 1]), numbers by ridge regression (R², in
    (−∞, 1]), always on held-out items (Alain and Bengio 2018), beside the same probe on labels that mean
    nothing (Hewitt and Liang 2019).

    Parameters
    ----------
    activations : Activations
        Of one system, whose items are those of the stimuli.
    stimuli : Stimuli
    feature : str
        The name of a column of `stimuli.features`.
    groups : str or None, default "sentence"
        The column of `stimuli.items` whose values stay in one fold; "word" asks whether the feature can be
        read off words that the probe has not seen; None for single items.
    folds : int, default 5
    seed : int, default 0
        Of the folds and of the control's labels.

    Returns
    -------
    ProbeResult

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import thinkalike as ta
    >>> from thinkalike.measures import probe_layers
    >>> number = np.array(["singular", "plural"] * 30)
    >>> stimuli = ta.Stimuli.from_table(pd.DataFrame({"number": number}))
    >>> noise = np.random.default_rng(0).normal(size=(60, 3))
    >>> layers = {0: noise, 1: noise + 9 * (number == "plural")[:, None]}
    >>> found = probe_layers(ta.Activations.from_arrays(layers), stimuli, "number", groups=None)
    >>> bool(found.scores[0].mean() < 0.8)
    True
    >>> found.scores[1]
    array([1., 1., 1., 1., 1.])
    """
    if feature not in stimuli.features.columns:
        raise UnknownName.among("feature", feature, stimuli.features.columns)
    activations.check_stimuli(stimuli)
    labels = stimuli.features[feature]
    members = None
    if groups is not None and (groups != "sentence" or groups in stimuli.items.columns):
        if groups not in stimuli.items.columns:
            raise UnknownName.among("column of the items", groups, stimuli.items.columns)
        members = stimuli.items[groups].to_numpy()
    words = stimuli.items["word"] if "word" in stimuli.items.columns else None
    random = control_labels(labels, words, seed=seed)
    scores, control = [], []
    with progress(f"probing {activations.system} for {feature}", len(activations.layers)) as step:
        for layer in activations.layers:
            X = as_layer(activations[layer], f"{activations.system}:{layer}")
            scores.append(probe_scores(X, labels, groups=members, folds=folds, seed=seed))
            control.append(_control_score(X, random, groups=members, folds=folds, seed=seed))
            step.advance()
    numeric = pd.api.types.is_float_dtype(labels)
    return ProbeResult(
        system=activations.system,
        feature=feature,
        layers=tuple(activations.layers),
        scores=np.array(scores),
        chance=0.0 if numeric else float(labels.value_counts(normalize=True).max()),
        control=np.array(control),
        score="R²" if numeric else "accuracy",
        settings={"groups": groups, "folds": folds, "seed": seed},
    )


def _control_score(X: Vectors, labels: pd.Series, *, groups: Groups | None, folds: int, seed: int) -> float:
    """The mean score; NaN where borrowing labels from other words left a level too rare for the folds."""
    try:
        return float(probe_scores(X, labels, groups=groups, folds=folds, seed=seed).mean())
    except InvalidInput:
        return float("nan")


def control_labels(labels: pd.Series, words: pd.Series | None, *, seed: int = 0) -> pd.Series:
    """Labels with no meaning, as many of each level: what a probe gets right on them it has memorised.

    With `words`, all items of a word type get the label of another type, so that the probe can learn words by
    heart (Hewitt and Liang 2019); without, the labels are shuffled over the items. Missing ones stay missing.
    """
    kept = labels.dropna()
    types = kept.index if words is None else pd.Index(words[kept.index])
    firsts = pd.Series(np.arange(len(kept)), index=types).groupby(level=0, sort=False).first()
    borrowed = pd.Series(np.random.default_rng(seed).permutation(firsts.to_numpy()), index=firsts.index)
    mixed = labels.copy()
    mixed.loc[kept.index] = kept.iloc[borrowed[types].to_numpy()].to_numpy()
    return mixed
