"""One pair of models in three views: what its layers care about, their geometry, how one serves the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.errors import InvalidInput
from thinkalike.inference.agreement import spearman
from thinkalike.labels import Floats, Layer

if TYPE_CHECKING:
    from thinkalike.stitching.result import StitchResult

GEOMETRIES = ("rsa", "cka")
FUNCTION = "function"


@dataclass(frozen=True)
class ViewAgreement:
    """How alike two views order the pairs of layers of two models.

    Attributes
    ----------
    rho
        Spearman over the pairs of layers that both views know; the penalty turned round, so that 1 is full
        agreement. It has no p: neighbouring layers are alike in anything, so that layers in another order are
        no picture of chance, and of two models' layers against each other alone no smooth one can be drawn.
    """

    a: str
    b: str
    rho: float
    n_pairs: int


@dataclass(frozen=True, eq=False)
class ThreeViews:
    """The same layers of one pair of models by features, geometry and function.

    Attributes
    ----------
    values : (n_layers_a, n_layers_b) by view
        τ_w ("features"), the geometric measure under its name, and the penalty of stitching ("function";
        NaN where nothing was stitched).
    """

    a: str
    b: str
    layers_a: tuple[Layer, ...]
    layers_b: tuple[Layer, ...]
    geometry: str
    values: dict[str, Floats] = field()
    agreements: tuple[ViewAgreement, ...] = ()


def three_views(comparison: Comparison, stitched: StitchResult) -> ThreeViews:
    """Put stitching beside a comparison of the same two systems, and say whether the views agree."""
    a, b = stitched.bottom, stitched.top
    for name in (a, b):
        if name not in comparison.systems:
            raise InvalidInput(
                f"{name} was stitched, but the comparison has {', '.join(comparison.systems)}: use the same "
                "names in both (NAME=MODEL)."
            )
    geometry = next((name for name in GEOMETRIES if name in comparison.matrices), None)
    if geometry is None:
        raise InvalidInput("The comparison has no geometric measure: compare with measure='cka' too.")
    layers_a, layers_b = (comparison.profiles[name].layers for name in (a, b))
    penalty = stitched.matrix().reindex(index=list(layers_a), columns=list(layers_b))
    values = {
        FEATURES: comparison.matrices[FEATURES].block(a, b),
        geometry: comparison.matrices[geometry].block(a, b),
        FUNCTION: penalty.to_numpy(np.float64),
    }
    sign = {FUNCTION: -1.0}
    agreements = [
        _agree(x, sign.get(x, 1.0) * values[x], y, sign.get(y, 1.0) * values[y])
        for x, y in combinations(values, 2)
    ]
    return ThreeViews(a, b, tuple(layers_a), tuple(layers_b), geometry, values, tuple(agreements))


def _agree(x: str, first: Floats, y: str, second: Floats) -> ViewAgreement:
    known = np.isfinite(first) & np.isfinite(second)
    return ViewAgreement(x, y, spearman(first[known], second[known]), int(known.sum()))
