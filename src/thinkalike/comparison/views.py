"""One pair of models in three views: what its layers care about, their geometry, how one serves the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

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
        agreement.
    p
        How often it is as high when the layers of both models are shuffled in one view (a Mantel test for two
        sets of rows). Lenient: neighbouring layers are alike in anything.
    """

    a: str
    b: str
    rho: float
    p: float
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


def three_views(
    comparison: Comparison, stitched: StitchResult, *, n_permutations: int = 1999, seed: int = 0
) -> ThreeViews:
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
        _agree(x, sign.get(x, 1.0) * values[x], y, sign.get(y, 1.0) * values[y], n_permutations, seed)
        for x, y in combinations(values, 2)
    ]
    return ThreeViews(a, b, tuple(layers_a), tuple(layers_b), geometry, values, tuple(agreements))


def _agree(x: str, first: Floats, y: str, second: Floats, n_permutations: int, seed: int) -> ViewAgreement:
    known = np.isfinite(first) & np.isfinite(second)
    rho = spearman(first[known], second[known])
    p = shuffled_p(first, second, n_permutations=n_permutations, seed=seed)
    return ViewAgreement(x, y, rho, p, int(known.sum()))


def shuffled_p(first: Floats, second: Floats, *, n_permutations: int, seed: int) -> float:
    """One-sided p of the rank correlation of two matrices when rows and columns of `first` are shuffled.

    Cells that are not known in `second` are left out; the identity counts as one draw.
    """
    known = np.isfinite(second) & np.isfinite(first)
    observed = spearman(first[known], second[known])
    if not np.isfinite(observed):
        return float("nan")
    rng = np.random.default_rng(seed)
    n_rows, n_columns = first.shape
    shuffled = np.stack(
        [
            first[np.ix_(rng.permutation(n_rows), rng.permutation(n_columns))][known]
            for _ in range(n_permutations)
        ]
    )
    target = _standardised(rankdata(second[known]))
    found = _standardised(rankdata(shuffled, axis=1, nan_policy="omit")) @ target
    return float((1 + (found >= observed - 1e-9).sum()) / (1 + n_permutations))


def _standardised(ranks: npt.NDArray[np.float64]) -> Floats:
    centred = np.nan_to_num(ranks - np.nanmean(ranks, axis=-1, keepdims=True))
    norm = np.linalg.norm(centred, axis=-1, keepdims=True)
    return centred / np.where(norm > 0, norm, 1.0)
