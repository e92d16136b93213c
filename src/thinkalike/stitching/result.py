"""`StitchResult`: what stitching cost at each pair of layers, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from thinkalike.addresses import place
from thinkalike.errors import InvalidInput
from thinkalike.stitching.statistics import Floats, ratio_interval
from thinkalike.stitching.stitches import Role, Stitch

if TYPE_CHECKING:
    import altair as alt
    from torch import nn

Measure = Literal["penalty", "accuracy_drop", "loss", "accuracy"]


@dataclass(frozen=True, eq=False, repr=False)
class StitchResult:
    """The stitched models of one bottom and one top, judged unit by unit.

    Attributes
    ----------
    bottom, top, task, kind, fit : what was stitched, and how
    cautions : sentences for people
    settings : what changed the numbers, by name
    stitches
        In the order of the rows below; see `Stitch` for the roles.
    losses, correct : (n_stitches, n_units)
        Summed over the predictions of each unit.
    own_losses, own_correct, counts : (n_units,)
        The same of the top by itself, and how many predictions there are.
    unit
        What a unit is: "documents", "passages" or "examples".
    explained : (n_stitches,)
        R² of the top's own states by φ of the bottom's, on the text of the fit, if there was least squares.
    checks
        One row per stitch: how far the stitched states lie from the top's own, see `StateCheck`.
    curves
        Rows of role, layer_bottom, layer_top, step, split and loss (Figure 6 of Brown et al. 2023).
    training
        One row per stitch that was fitted by task loss: steps, best_step, stopped.
    phis
        The fitted φ, by stitch; empty when loaded from disk.

    Examples
    --------
    >>> import thinkalike as ta
    >>> text = ["The king went home and the queen went to sleep. " * 8] * 10
    >>> found = ta.stitch("nano-gelu-3l", "nano-solu-3l", text, layers=[1], floor=False, ceiling=False)
    >>> found.losses.shape[0], found.own_loss > 0
    (1, True)
    """

    bottom: str
    top: str
    task: str
    kind: str
    fit: str
    stitches: tuple[Stitch, ...]
    losses: Floats = field()
    correct: Floats = field()
    own_losses: Floats = field()
    own_correct: Floats = field()
    counts: Floats = field()
    unit: str
    explained: Floats = field()
    checks: pd.DataFrame = field()
    curves: pd.DataFrame = field()
    training: pd.DataFrame = field()
    cautions: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    depths: tuple[int, int] = (0, 0)
    """Blocks of the bottom and of the top"""
    phis: Mapping[Stitch, nn.Module] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = (len(self.stitches), len(self.counts))
        if self.losses.shape != shape or self.correct.shape != shape:
            raise InvalidInput(f"losses and correct must be of shape {shape}, a row per stitch.")

    def __repr__(self) -> str:
        n = sum(stitch.role == "pair" for stitch in self.stitches)
        return (
            f"StitchResult({self.bottom} → {self.top}; {n} pairs of layers, {self.kind} by {self.fit}; "
            f"{int(self.counts.sum()):,} predictions in {len(self.counts)} {self.unit})"
        )

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, border=0, float_format=lambda value: f"{value:.3f}")

    @property
    def own_loss(self) -> float:
        """The top's own mean loss."""
        return float(self.own_losses.sum() / self.counts.sum())

    @property
    def own_accuracy(self) -> float:
        """The share of predictions that the top gets right by itself."""
        return float(self.own_correct.sum() / self.counts.sum())

    def find(self, role: Role, layer_bottom: int, layer_top: int) -> int | None:
        """The row of a stitch, if there is one."""
        wanted = Stitch(role, layer_bottom, layer_top)
        return self.stitches.index(wanted) if wanted in self.stitches else None

    def excess(self, layer_bottom: int, layer_top: int, *, role: Role = "pair") -> Floats:
        """(n_units,) stitched loss − the top's own loss, summed over the predictions of each unit."""
        row = self.find(role, layer_bottom, layer_top)
        if row is None:
            raise InvalidInput(
                f"Layer {layer_bottom} of {self.bottom} was not stitched to layer {layer_top} of {self.top}."
            )
        return self.losses[row] - self.own_losses

    def to_frame(self, *, roles: bool = False) -> pd.DataFrame:
        """One row per pair of layers; with `roles`, also of the floor and the ceiling.

        penalty = stitched loss − own loss (low, high: 95 % over the units); accuracy_drop the same for the
        share of right predictions, own − stitched; floor and ceiling are penalties.
        """
        counts, settings = self.counts, self.settings
        sure: dict[str, Any] = {
            "resamples": int(settings.get("resamples", 2000)),
            "seed": int(settings.get("seed", 0)),
        }
        loss = ratio_interval(self.losses - self.own_losses, counts, **sure)
        drop = ratio_interval(self.own_correct - self.correct, counts, **sure)
        total = counts.sum()
        frame = pd.DataFrame(
            {
                "role": [stitch.role for stitch in self.stitches],
                "bottom": [self._name(stitch.role) for stitch in self.stitches],
                "layer_bottom": [stitch.layer_bottom for stitch in self.stitches],
                "top": self.top,
                "layer_top": [stitch.layer_top for stitch in self.stitches],
                "loss": self.losses.sum(axis=1) / total,
                "own_loss": self.own_loss,
                "penalty": loss.value,
                "low": loss.low,
                "high": loss.high,
                "accuracy": self.correct.sum(axis=1) / total,
                "own_accuracy": self.own_accuracy,
                "accuracy_drop": drop.value,
                "drop_low": drop.low,
                "drop_high": drop.high,
                "explained": self.explained,
            }
        )
        frame["floor"] = [self._baseline(loss.value, "self", s.layer_top, s.layer_top) for s in self.stitches]
        frame["ceiling"] = [self._baseline(loss.value, "untrained", *s[1:]) for s in self.stitches]
        for table in (self.checks, self.training):
            for name in table.columns:
                frame[name] = table[name].to_numpy()
        return frame if roles else frame[frame["role"] == "pair"].drop(columns="role").reset_index(drop=True)

    def matrix(self, value: Measure = "penalty") -> pd.DataFrame:
        """Layers of the bottom × layers of the top; NaN where none was stitched."""
        frame = self.to_frame()
        table = frame.pivot_table(index="layer_bottom", columns="layer_top", values=value)
        return table.reindex(index=range(self.depths[0] + 1), columns=range(self.depths[1] + 1))

    def depth_mismatch(self) -> float:
        """Spearman's ρ of the penalty with |l / L − m / M| over the pairs of layers.

        Positive: a mismatch of depth costs more. It has no p: the pairs share layers, and layers next to each
        other are alike. Of fewer than three pairs, or of one mismatch only, it is NaN.
        """
        from scipy.stats import spearmanr

        frame = self.to_frame()
        gap = (frame["layer_bottom"] / self.depths[0] - frame["layer_top"] / self.depths[1]).abs().round(9)
        if len(frame) < 3 or gap.nunique() < 2:
            return float("nan")
        return float(spearmanr(gap, frame["penalty"]).statistic)

    def plot(self, value: Measure = "penalty", *, theme: str = "light") -> alt.TopLevelMixin:
        """Penalty (or accuracy drop) over layers with floor and ceiling; of a grid, the matrix."""
        from thinkalike.stitching.penalty_plots import plot_result

        return plot_result(self, value, theme=theme)

    def plot_curves(self, *, theme: str = "light") -> alt.TopLevelMixin:
        """Learning curves (Figure 6 of Brown et al. 2023)."""
        from thinkalike.stitching.penalty_plots import plot_curves

        return plot_curves(self, theme=theme)

    def save(self, folder: str | Path) -> Path:
        """Write the tables as Parquet and CSV, φ as safetensors, and settings.json, into `folder`."""
        from thinkalike.stitching.result_files import save_result

        return save_result(self, place(folder))

    @classmethod
    def load(cls, folder: str | Path) -> StitchResult:
        """What `save` wrote, without φ."""
        from thinkalike.stitching.result_files import load_result

        return load_result(place(folder))

    def _name(self, role: Role) -> str:
        names = {"pair": self.bottom, "self": self.top, "untrained": f"{self.bottom}:untrained"}
        return names[role]

    def _baseline(self, penalties: Floats, role: Role, layer_bottom: int, layer_top: int) -> float:
        row = self.find(role, layer_bottom, layer_top)
        if row is None and role == "self" and self.bottom == self.top:
            row = self.find("pair", layer_bottom, layer_top)
        return float("nan") if row is None else float(penalties[row])
