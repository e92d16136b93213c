"""Can the features of these stimuli be told apart? Correlations, variance inflation, rare levels."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

import thinkalike
from thinkalike.errors import InvalidInput
from thinkalike.files import numbers, read_json, read_table, reading, write_json, write_table
from thinkalike.stimuli.feature_coding import code_features
from thinkalike.stimuli.kinds import kind_of
from thinkalike.types import Chart
from thinkalike.wording import readable


@dataclass(frozen=True, eq=False, repr=False)
class FeatureCorrelations:
    """How the differences in one feature go with those in another, over all pairs of items.

    Attributes
    ----------
    values : float array of shape (n_features, n_features)
        Pearson correlations in [−1, 1]; NaN for a feature whose differences do not vary.
    variance_inflation : float array of shape (n_features,)
        1 / (1 − R²) of each feature's differences regressed on all others': 1 when they are independent, ∞
        when the others determine it, NaN when it does not vary.
    constant : names of features that have one level only, or none.
    rare : (feature, level, number of items) of nominal and ordinal levels that few items have.
    """

    names: tuple[str, ...]
    values: np.ndarray
    variance_inflation: np.ndarray
    constant: tuple[str, ...]
    rare: tuple[tuple[str, str, int], ...]
    n_items: int
    settings: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.names)
        if self.values.shape != (n, n) or self.variance_inflation.shape != (n,):
            raise InvalidInput(f"{n} features need ({n}, {n}) correlations, not {self.values.shape}.")

    @property
    def n_pairs(self) -> int:
        return self.n_items * (self.n_items - 1) // 2

    def __repr__(self) -> str:
        head = f"Correlations of {len(self.names)} features over {self.n_pairs:,} pairs of"
        rows = [("", "variance inflation", "strongest correlation")]
        for name, inflation, strongest, other in self.summary().itertuples(name=None):
            rows.append(
                (name, _shown(inflation, ""), f"{_shown(strongest, '+')} with {other}" if other else "–")
            )
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([f"{head} {self.n_items:,} items", *lines, *self._notes()])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return f"{self.summary().round(2).to_html()}{notes}"

    def _notes(self) -> list[str]:
        one = [f"One level only: {', '.join(self.constant)}."] if self.constant else []
        few = [f"{name} = {level} ({count:,} items)" for name, level, count in self.rare]
        return [*one, *([f"Rare: {', '.join(few)}."] if few else [])]

    def to_frame(self) -> pd.DataFrame:
        """Tidy: `feature`, `other`, `correlation`, one row per ordered pair of features."""
        n = len(self.names)
        return pd.DataFrame(
            {
                "feature": np.repeat(self.names, n),
                "other": np.tile(self.names, n),
                "correlation": self.values.ravel(),
            }
        )

    def summary(self) -> pd.DataFrame:
        """One row per feature: variance inflation, the strongest correlation and with which feature."""
        strengths = np.where(np.eye(len(self.names), dtype=bool), np.nan, np.abs(self.values))
        rows = []
        for f, name in enumerate(self.names):
            if np.isnan(strengths[f]).all():
                rows.append((name, self.variance_inflation[f], np.nan, ""))
            else:
                other = int(np.nanargmax(strengths[f]))
                rows.append((name, self.variance_inflation[f], self.values[f, other], self.names[other]))
        columns = ["feature", "variance_inflation", "strongest_correlation", "with"]
        return pd.DataFrame(rows, columns=columns).set_index("feature")

    def plot(self, *, theme: str = "light") -> Chart:
        """The correlation matrix as a heat map (Figure S5 of Salle et al. 2024).

        Parameters
        ----------
        theme : {"light", "dark"}
        """
        from thinkalike.charts.heatmap import feature_correlations
        from thinkalike.charts.theme import get_theme, themed

        names = [readable(name) for name in self.names]
        frame = replace(self, names=tuple(names)).to_frame().dropna()
        data = frame.rename(columns={"feature": "a", "other": "b"})
        title, look = "Pearson correlations among feature differences", get_theme(theme)
        return themed(feature_correlations(data, features=names, title=title, theme=look), look)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `path` (Parquet, the tidy table) and beside it a JSON of everything else."""
        path = Path(path).with_suffix(".parquet")
        rest = {
            "table": write_table(self.to_frame(), path),
            "variance_inflation": {
                n: float(v) if np.isfinite(v) else str(v)
                for n, v in zip(self.names, self.variance_inflation, strict=True)
            },
            "constant": list(self.constant),
            "rare": [list(one) for one in self.rare],
            "n_items": self.n_items,
            "settings": self.settings,
            "thinkalike": thinkalike.__version__,
        }
        write_json(rest, path.with_suffix(".json"))
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FeatureCorrelations:
        """Read what `save` wrote."""
        path = Path(path).with_suffix(".parquet")
        anew = "make it anew with stimuli.correlations().save()"
        rest = read_json(path.with_suffix(".json"), way_out=anew)
        with reading(path.with_suffix(".json"), anew):
            table = read_table(path, seal=rest["table"], way_out=anew)
            names = tuple(rest["variance_inflation"])
            return cls(
                names=names,
                values=table["correlation"].to_numpy(float).reshape(len(names), len(names)),
                variance_inflation=numbers(list(rest["variance_inflation"].values())),
                constant=tuple(rest["constant"]),
                rare=tuple((str(name), str(level), int(count)) for name, level, count in rest["rare"]),
                n_items=int(rest["n_items"]),
                settings=rest["settings"],
            )


def _shown(value: float, sign: str) -> str:
    return "–" if np.isnan(value) else f"{value:{sign}.2f}"


def feature_correlations(
    features: pd.DataFrame, *, ordered: str = "indicator", missing: str = "ignore", rare: float = 0.01
) -> FeatureCorrelations:
    r"""Pearson correlations among feature differences over all pairs of items, without forming the pairs.

    With M the squared differences, r_fg = cov(M_f, M_g) / √(var M_f · var M_g); means and products over pairs
    follow exactly from contingency tables, in time linear in the number of items (Figure S5 of Salle et al.
    2024).

    Parameters
    ----------
    features : DataFrame (n_items, n_features), the dtype of a column being its kind.
    ordered, missing : how features differ, see `thinkalike.stimuli.feature_coding.code_features`.
    rare : a level is rare when less than this part of the items have it.
    """
    if len(features) < 2:
        raise InvalidInput(
            f"Correlations are over pairs of items, and there is {len(features)} item: give two or more."
        )
    moments = code_features(features, ordered=ordered, missing=missing).pair_moments()
    values = correlations_from(moments.covariance())
    return FeatureCorrelations(
        names=moments.names,
        values=values,
        variance_inflation=variance_inflation(values),
        constant=tuple(
            str(name) for name in features if features[name].nunique(dropna=missing == "ignore") < 2
        ),
        rare=tuple(_rare_levels(features, rare * len(features))),
        n_items=len(features),
        settings={"ordered": ordered, "missing": missing, "rare": rare},
    )


def variance_inflation(correlations: np.ndarray) -> np.ndarray:
    """1 / (1 − R²) of each variable regressed on all others, from their correlations of shape (n, n)."""
    varying = ~np.isnan(np.diag(correlations))
    result = np.full(len(correlations), np.nan)
    for f in np.flatnonzero(varying):
        others = varying & (np.arange(len(varying)) != f)
        r = correlations[others, f]
        explained = float(r @ np.linalg.pinv(correlations[np.ix_(others, others)], hermitian=True) @ r)
        result[f] = 1 / (1 - explained) if explained < 1 - 1e-10 else np.inf
    return result


def correlations_from(covariance: np.ndarray) -> np.ndarray:
    """Correlations from the covariances of squared differences; NaN for those that do not vary."""
    variances = np.diag(covariance)
    # Below this a variance is rounding: the squared differences lie in [0, 1].
    scale = np.sqrt(np.where(variances > 1e-14, variances, np.nan))
    values = np.clip(covariance / np.outer(scale, scale), -1, 1)
    values[np.diag_indices_from(values)] = np.where(np.isnan(scale), np.nan, 1.0)
    return values


def _rare_levels(features: pd.DataFrame, few: float) -> list[tuple[str, str, int]]:
    found = []
    for name in features:
        if kind_of(features[name]) == "numeric":
            continue
        counts = features[name].value_counts(sort=False)
        found += [(str(name), str(level), int(count)) for level, count in counts.items() if 0 < count < few]
    return found
