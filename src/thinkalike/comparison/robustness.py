"""`Robustness`: which conclusions of a comparison survive other reasonable analyses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from thinkalike.comparison.analyses import Analysis
from thinkalike.files import numbers, read_json, reading, write_json, write_tables
from thinkalike.inference.conclusions import Conclusion, Conclusions, Pair, Support, order_agreement, support
from thinkalike.labels import Floats
from thinkalike.wording import listed, readable

if TYPE_CHECKING:
    import altair as alt

AGAIN = "try the analyses again"


@dataclass(frozen=True, eq=False, repr=False)
class Robustness:
    """The conclusions of a comparison under a grid of analyses; the first is the comparison as it was.

    Made by `Comparison.robustness`.

    Attributes
    ----------
    systems : names, in the order they were given
    pairs : every two of them

    Examples
    --------
    >>> import numpy as np, thinkalike as ta
    >>> from thinkalike.comparison import Analysis
    >>> words = ta.Stimuli.from_grammar(12, seed=0)
    >>> rng = np.random.default_rng(0)
    >>> systems = {name: rng.normal(size=(len(words), 6)) for name in ("a", "b", "c")}
    >>> import warnings; warnings.simplefilter("ignore")
    >>> found = ta.compare(systems, words, resamples=0, n_folds=2).robustness([
    ...     Analysis("cosine", encoding={"distance": "cosine"}),
    ...     Analysis("means of tokens", reading={"pooling": "mean"})])
    >>> found
    Robustness(a, b, c: 2 analyses, 1 left out)
    """

    analyses: tuple[Analysis, ...]
    """Those that were made"""
    systems: tuple[str, ...]
    pairs: tuple[Pair, ...]
    choices: tuple[Mapping[str, str], ...]
    """For each analysis all its choices: distance, importance, …"""
    likeness: Floats = field()
    """(n_analyses, n_pairs) mean τ_w over the pairs of layers; NaN where a system ranks no feature"""
    geometry: Floats = field()
    """(n_analyses, n_pairs) mean RSA; NaN where an analysis has the geometry of one before it"""
    dominant: tuple[tuple[str | None, ...], ...]
    """(n_analyses, n_systems) the feature with the largest share of the importance"""
    shares: Floats = field()
    """(n_analyses, n_systems) that share, averaged over layers"""
    scores: Floats = field()
    """(n_analyses, n_systems) held-out ρ, averaged over layers"""
    left_out: Mapping[str, str]
    """Analysis → why it was not made"""

    def __repr__(self) -> str:
        out = f", {len(self.left_out)} left out" if self.left_out else ""
        return f"Robustness({', '.join(self.systems)}: {len(self.analyses)} analyses{out})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.answer)}</p>{self.table().to_html(index=False, border=0)}"

    def conclusions(self) -> tuple[Conclusions, ...]:
        """What each analysis says."""
        return tuple(
            Conclusions(
                likeness=dict(zip(self.pairs, self.likeness[k].tolist(), strict=True)),
                dominant=dict(zip(self.systems, self.dominant[k], strict=True)),
                geometry=dict(zip(self.pairs, self.geometry[k].tolist(), strict=True)),
            )
            for k in range(len(self.analyses))
        )

    def support(self) -> tuple[Support, ...]:
        """For each conclusion of the comparison in how many analyses it comes out."""
        return support(self.conclusions())

    def table(self) -> pd.DataFrame:
        """One row per conclusion: what it is, in how many analyses it comes out, and what the others say."""
        return pd.DataFrame(
            {
                "conclusion": _in_words(one.kind, one.about, one.value),
                "agree": one.agree,
                "analyses": one.n,
                "otherwise": "; ".join(f"{_value(value)} ({n})" for value, n in one.others[:3]),
            }
            for one in self.support()
        )

    @property
    def answer(self) -> str:
        """One sentence or two: which conclusions hold, in how many analyses."""
        by_kind: dict[str, list[Support]] = {}
        for one in self.support():
            by_kind.setdefault(one.kind, []).append(one)
        parts = []
        for one in by_kind.get("most alike", []):
            parts.append(f"{_value(one.value)} are the most alike in {_count(one)} analyses{_rival(one)}")
        for one in by_kind.get("order", []):
            parts.append(f"all pairs are in the same order in {_count(one)}")
        for one in by_kind.get("most alike by geometry", []):
            parts.append(f"by geometry {_value(one.value)} are in {_count(one)}{_rival(one)}")
        first = "; ".join(parts)
        dominance = [
            f"{one.about} by {_value(one.value)} in {_count(one)}{_rival(one)}"
            for one in by_kind.get("dominates", [])
        ]
        second = f"Dominated is {listed(dominance)}{'' if first else ' analyses'}" if dominance else ""
        said = [part[0].upper() + part[1:] if k else part for k, part in enumerate((first, second)) if part]
        return ". ".join(said) + "." if said else "The comparison has no conclusion that could be tried."

    def to_frame(self) -> pd.DataFrame:
        """One row per analysis and pair of systems: choices, τ_w, RSA, and what dominates the two."""
        main = self.conclusions()[0].likeness
        rows: list[dict[str, object]] = []
        for k, (analysis, found) in enumerate(zip(self.analyses, self.conclusions(), strict=True)):
            agreement = order_agreement(main, found.likeness)
            for p, (a, b) in enumerate(self.pairs):
                i, j = self.systems.index(a), self.systems.index(b)
                rows.append(
                    {
                        "analysis": analysis.name,
                        **self.choices[k],
                        "a": a,
                        "b": b,
                        "tau_w": self.likeness[k, p],
                        "rsa": self.geometry[k, p],
                        "dominant_a": self.dominant[k][i],
                        "share_a": self.shares[k, i],
                        "score_a": self.scores[k, i],
                        "dominant_b": self.dominant[k][j],
                        "share_b": self.shares[k, j],
                        "score_b": self.scores[k, j],
                        "order_agreement": agreement,
                    }
                )
        return pd.DataFrame(rows)

    def plot(self, *, theme: str | None = "light") -> alt.VConcatChart:
        """The curve of specifications: τ_w of each pair and what dominates, over all analyses."""
        from thinkalike.comparison.plots import draw, robustness_chart

        return draw(robustness_chart, self, theme=theme)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `path`.parquet and .csv (the table), and .json, from which `Robustness.load` reads."""
        path = Path(path)
        write_tables(self.to_frame(), path)
        write_json(self.as_dict(), path.with_name(f"{path.name}.json"))
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Robustness:
        """What `save` wrote."""
        file = Path(path).with_name(f"{Path(path).name}.json")
        stored = read_json(file, way_out=AGAIN)
        with reading(file, AGAIN):
            return cls.from_dict(stored)

    def as_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "analyses": [asdict(one) for one in self.analyses]}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Robustness:
        """From plain values, null standing for NaN."""
        n = len(stored["analyses"])
        arrays = {
            name: numbers(stored[name]).reshape(n, -1)
            for name in ("likeness", "geometry", "shares", "scores")
        }
        return cls(
            analyses=tuple(Analysis(**one) for one in stored["analyses"]),
            systems=tuple(stored["systems"]),
            pairs=tuple((a, b) for a, b in stored["pairs"]),
            choices=tuple(stored["choices"]),
            dominant=tuple(tuple(names) for names in stored["dominant"]),
            left_out=stored["left_out"],
            **arrays,
        )


def _count(one: Support) -> str:
    return f"{one.agree} of {one.n}"


def _rival(one: Support) -> str:
    """What most of the others say, where they are not few."""
    if not one.others or one.kind == "order":
        return ""
    value, n = one.others[0]
    return f" ({_value(value)} in {n})"


def _value(value: Conclusion) -> str:
    if isinstance(value, str):
        return readable(value)
    parts = [part if isinstance(part, str) else _value(part) for part in value]
    return listed(parts) if isinstance(value[0], str) else " > ".join(parts)


def _in_words(kind: str, about: str | None, value: Conclusion) -> str:
    if kind == "dominates":
        return f"{_value(value)} dominates {about}"
    if kind == "order":
        return f"order: {_value(value)}"
    return f"{_value(value)} are the {kind}"
