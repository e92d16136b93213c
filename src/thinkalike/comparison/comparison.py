"""`Comparison`: everything of one run, as plain labelled arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from thinkalike.addresses import place, reaching
from thinkalike.comparison.answer import Answer, answer
from thinkalike.comparison.cautions import Caution
from thinkalike.comparison.explaining import Explanation, explain_pair
from thinkalike.comparison.geometry_similarity import conditions_of, sentences_of
from thinkalike.comparison.maps import LayerMap, WordMaps
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.similarity_matrix import FEATURES, SimilarityMatrix, pair_columns
from thinkalike.comparison.trajectories import TrajectoryDistances
from thinkalike.comparison.worst import worst_pairs
from thinkalike.errors import InvalidInput
from thinkalike.inference.agreement import Agreement
from thinkalike.inference.halves import across_halves, plan_halves
from thinkalike.labels import Floats, Layer, Row, find_row
from thinkalike.measures import get_measure
from thinkalike.pairs.preprocessing import prepare_steps
from thinkalike.wording import number

if TYPE_CHECKING:
    import altair as alt

    from thinkalike.activations.store import Activations
    from thinkalike.comparison.analyses import Analysis
    from thinkalike.comparison.robustness import Robustness
    from thinkalike.stimuli.table import Stimuli


@dataclass(frozen=True, eq=False, repr=False)
class Controls:
    """Untrained copies of the systems: what architecture and stimuli alone give."""

    profiles: Mapping[str, tuple[Profile, ...]]
    """By the name of the trained system, one per draw of weights: `NAME:untrained`, `NAME:untrained:2`"""
    similarity: SimilarityMatrix
    """By features, over the layers of the copies, under the names of the trained; means over draws"""
    geometry: SimilarityMatrix | None = None
    """The same by RSA, from a sample of the pairs of items; None in runs that kept none"""

    def __repr__(self) -> str:
        return f"Controls({', '.join(f'{name}: {len(made)}' for name, made in self.profiles.items())})"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Systems, their profiles, how alike they are by each measure, and why.

    Attributes
    ----------
    stimuli : what all systems were shown
    word_maps : the same words in every layer, in two dimensions; None in runs that kept none
    trajectories : how far apart the profiles of whole systems run
    cautions : what a reader should know before trusting the numbers
    settings, versions : what changed the numbers, and with which packages they were made
    controls : untrained copies of the systems, if they were asked for

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(30, seed=0, grammar="salle2024")
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(2, len(stimuli), 8))
    >>> found = ta.compare({"one": X, "other": Y}, stimuli, resamples=0)
    >>> found.systems
    ('one', 'other')
    >>> len(found.answer), found.explain("one", "one", "other", "other").features == found.features
    (5, True)
    """

    stimuli: Stimuli
    profiles: Mapping[str, Profile]
    """By system, in the order they were given"""
    matrices: Mapping[str, SimilarityMatrix]
    """By measure: `"features"` (τ_w), `"rsa"`, and whatever else was asked for; all over the same rows"""
    contributions: Floats = field()
    """(n_rows, n_rows, n_features): each feature's part of τ_w, summing to it over the last axis"""
    explained_share: Floats | None = field()
    """(n_rows, n_rows): the part of RSA that a sum over the features makes up; NaN when |RSA| < 0.05"""
    agreements: tuple[Agreement, ...]
    """For each pair of measures"""
    layer_maps: Mapping[str, LayerMap]
    """By measure"""
    word_maps: WordMaps | None
    trajectories: TrajectoryDistances
    correlations: pd.DataFrame
    """Features × features Pearson correlations of the differences (Figure S5 of the paper)"""
    cautions: tuple[Caution, ...]
    precision: pd.DataFrame
    """How many items give intervals of a given width"""
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    controls: Controls | None = None
    explained_range: tuple[Floats, Floats] | None = field(default=None)
    """Low and high end of `explained_share` over other sentences"""
    activations: Mapping[str, Activations] | None = None
    """By system; None when loaded from a run directory whose activations are gone"""
    tried: Robustness | None = None
    """The same question under other analyses, where that was asked for"""

    def __repr__(self) -> str:
        heading = f"Comparison({', '.join(self.systems)}; {len(self.stimuli)} items)"
        return "\n".join((heading, *self.answer))

    def _repr_html_(self) -> str:
        asked = self.answer.by_question().items()
        answer = "".join(f"<p><b>{question}</b> {escape(said)}</p>" for question, said in asked)
        cautions = "".join(f"<li>{escape(caution.text)}</li>" for caution in self.cautions)
        pairs = self.table().to_html(index=False, border=0, na_rep="–", float_format=lambda v: f"{v:.3f}")
        return f"{answer}{pairs}<details><summary>Cautions</summary><ul>{cautions}</ul></details>"

    @cached_property
    def answer(self) -> Answer:
        """In plain words: who is alike, why, how sure that is, what would change it, what to do next."""
        sample = "sentences" if "word" in self.stimuli.items else "items"
        return answer(self.profiles, self.matrices, self.tried, self.agreements, sample=sample)

    @property
    def systems(self) -> tuple[str, ...]:
        """In the order they were given."""
        return tuple(self.profiles)

    @property
    def features(self) -> tuple[str, ...]:
        """The features that τ_w is computed over: those with a value in every layer."""
        return tuple(self.matrices[FEATURES].settings["features"])

    @property
    def rows(self) -> tuple[Row, ...]:
        """(system, layer) of the rows of every matrix."""
        return self.matrices[FEATURES].rows

    def blocks(self) -> pd.DataFrame:
        """One row per pair of systems, and per system with itself: mean and highest τ_w, p-values, RSA."""
        frame = pd.DataFrame(
            [
                {**vars(block), "disattenuated": block.disattenuated}
                for block in self.matrices[FEATURES].blocks
            ]
        )
        if "rsa" in self.matrices and len(frame):
            rsa = self.matrices["rsa"]
            means = [rsa.block_mean(a, b) for a, b in zip(frame["a"], frame["b"], strict=True)]
            frame.insert(3, "mean_rsa", means)
        return frame

    def geometry(self) -> pd.DataFrame:
        """One row per geometric measure and pair of systems: means, bests, ranges, p, chance, ceiling."""
        return pd.DataFrame(
            [
                {"measure": name, **vars(test), "disattenuated": test.disattenuated}
                for name, matrix in self.matrices.items()
                for test in matrix.tests
            ]
        )

    def reliability(self, measure: str = "rsa", *, n_deals: int = 10, seed: int = 0) -> pd.DataFrame:
        """How much of the geometry holds for other sentences: one row per ordered pair of layers.

        Items alike in every feature are averaged within each half of the sentences; `across` is the measure
        between one layer in one half and the other in the other half (with itself: its reliability),
        `ceiling` what two layers alike in truth would reach, `disattenuated` the one over the other.
        """
        if self.activations is None:
            raise InvalidInput("The activations of this run are gone: compare again to have reliability.")
        steps = prepare_steps(self.settings.get("steps"), self.stimuli)
        layers = [steps(self.activations[system][layer]) for system, layer in self.rows]
        plan = plan_halves(
            conditions_of(self.stimuli), sentences_of(self.stimuli), n_deals=n_deals, seed=seed
        )
        found = across_halves(get_measure(measure), layers, plan)
        columns = pair_columns(self.rows)
        return pd.DataFrame(columns | {name: values.ravel() for name, values in found._asdict().items()})

    def table(self) -> pd.DataFrame:
        """One row per pair of systems, as one reads it: means over all pairs of layers, and the best pair.

        What is not known of any pair has no column; `blocks` has all there is.
        """
        rows = []
        for block in self.matrices[FEATURES].blocks:
            if block.a == block.b:
                continue
            others = {
                name: matrix.block_mean(block.a, block.b)
                for name, matrix in self.matrices.items()
                if name != FEATURES
            }
            if "rsa" in others:
                others = {"RSA": others.pop("rsa"), **others}
            rows.append(
                {
                    "systems": f"{block.a}, {block.b}",
                    "τ_w": block.mean,
                    "low": block.low,
                    "high": block.high,
                    "ceiling": block.ceiling,
                    "q": block.q,
                    "untrained": block.control,
                    **others,
                    "best layers": f"{block.layer_a}, {block.layer_b} ({number(block.maximum)})",
                }
            )
        frame = pd.DataFrame(rows)
        unknown = [name for name in ("low", "high", "ceiling", "q", "untrained") if name in frame]
        return frame.drop(columns=[name for name in unknown if frame[name].isna().all()])

    def to_frame(self) -> pd.DataFrame:
        """One row per measure and ordered pair of layers: the matrices, one below the other."""
        frames = [matrix.to_frame().assign(measure=name) for name, matrix in self.matrices.items()]
        return pd.concat(frames, ignore_index=True)

    def contributions_frame(self) -> pd.DataFrame:
        """One row per pair of layers i < j and feature."""
        first, second = np.triu_indices(len(self.rows), k=1)
        n_features = len(self.features)
        columns: dict[str, object] = {}
        for name, places in (("a", first), ("b", second)):
            for k, part in enumerate(("system", "layer")):
                values = np.array([self.rows[p][k] for p in places], dtype=object)
                columns[f"{part}_{name}"] = np.repeat(values, n_features)
        columns["feature"] = np.tile(np.array(self.features, dtype=object), len(first))
        columns["contribution"] = self.contributions[first, second].ravel()
        return pd.DataFrame(columns)

    def plot(self, *, theme: str | None = "light") -> alt.ConcatChart:
        """The similarity matrices side by side; theme None: to be joined."""
        from thinkalike.comparison.plots import comparison_chart, draw

        return draw(comparison_chart, self, theme=theme)

    def explain(
        self,
        a: str,
        layer_a: Layer,
        b: str,
        layer_b: Layer,
        *,
        groups: Mapping[str, Sequence[str]] | None = None,
        n_worst: int = 5,
    ) -> Explanation:
        """Why two layers are as alike as they are: by features, by geometry, and what neither explains.

        Parameters
        ----------
        groups : name → features that are also left out together.
        n_worst : how many of the worst explained pairs of items to name, if the activations are at hand.
        """
        matrix = self.matrices[FEATURES]
        i, j = find_row(matrix.rows, a, layer_a), find_row(matrix.rows, b, layer_b)
        (_, layer_a), (_, layer_b) = matrix.rows[i], matrix.rows[j]
        found = explain_pair(self.profiles[a], layer_a, self.profiles[b], layer_b, matrix, groups=groups)
        if "rsa" in self.matrices:
            share = None if self.explained_share is None else float(self.explained_share[i, j])
            known = share is not None and np.isfinite(share)
            rsa = float(self.matrices["rsa"].values[i, j])
            ends = self.explained_range
            found = replace(
                found,
                rsa=rsa,
                rsa_range=_ends(self.matrices["rsa"].low, self.matrices["rsa"].high, i, j),
                rsa_across=_ends(self.matrices["rsa"].across, self.matrices["rsa"].ceiling, i, j),
                explained_share=share if known else None,
                explained_range=None if ends is None else _ends(*ends, i, j),
            )
        if self.activations is not None and n_worst > 0:
            steps = prepare_steps(self.settings.get("steps"), self.stimuli)
            layers = steps(self.activations[a][layer_a]), steps(self.activations[b][layer_b])
            names = (matrix.rows[i], matrix.rows[j])
            pairs = worst_pairs(*layers, self.stimuli, self.settings, names=names, n_worst=n_worst)
            found = replace(found, worst_pairs=pairs)
        return found

    def robustness(
        self, grid: Sequence[Analysis] | None = None, *, others: Stimuli | None = None
    ) -> Robustness:
        """Ask the same question in other reasonable ways: which conclusions come out in how many of them.

        Parameters
        ----------
        grid : the analyses; when None those of `thinkalike.comparison.analyses.GRID`, which with the defaults
            make 24 with the comparison itself: other distances, importances, treatments of missing and
            ordered values, words, sentences and ways of reading the text. What has no meaning for a system,
            as bos for arrays, is left out, and the result says why.
        others : other sentences to show to the models, as `Stimuli.from_grammar(seed=1)`.

        Returns
        -------
        Robustness
        """
        from thinkalike.comparison.analysing import run_analyses

        return run_analyses(self, grid, others=others)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a run directory that `Comparison.load` and `thinkalike report` read; it must be new."""
        from thinkalike.comparison.rundir import save_comparison

        return save_comparison(self, place(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Comparison:
        """What a run directory holds. Activations are opened, not read, and only if they are there."""
        from thinkalike.comparison.rundir import load_comparison

        root = place(path)
        with reaching(root):
            return load_comparison(root)


def _ends(low: Floats | None, high: Floats | None, i: int, j: int) -> tuple[float, float] | None:
    """The range of one pair of layers, where there is one."""
    if low is None or high is None or not np.isfinite(low[i, j] + high[i, j]):
        return None
    return float(low[i, j]), float(high[i, j])
