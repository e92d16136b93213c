"""Groups of models: how alike models are within groups and between them.

Pairs share models, so pairs are not independent: the ranges of means leave models out (`over_models.py`), and
the separation of the groups is tested by relabelling and by turning them (`separation.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.inference.over_models import mean_over_pairs
from thinkalike.inference.separation import SMALLEST, Separation, separations
from thinkalike.labels import Floats, Layer
from thinkalike.saving import Kept

if TYPE_CHECKING:
    import altair as alt

Labels = npt.NDArray[np.int64]

_EQUAL = 1e-9  # levels this close are one


@dataclass(frozen=True, eq=False, repr=False)
class ModelGroups(Kept):
    """Values within and between groups of models, for the whole models or layer by layer."""

    systems: tuple[str, ...]
    groups: tuple[str, ...]
    """Of each system"""
    kind: Literal["similarity", "distance"]
    means: pd.DataFrame = field()
    """One row per layer and pair of groups: layer, pair, within (one group?), mean, low, high, n_pairs. The
    range is over models; NaN where one of the groups has two of them"""
    separation: pd.DataFrame = field()
    """One row per layer: how much farther apart models of different groups are than models of one, all groups
    counting alike (between − within for distances, the reverse for similarities), with low, high, p of that
    layer, and p_any, corrected for having looked at all layers. The range starts above 0 where p ≤ 0.05. p is
    NaN where there are so few relabellings that none could be that small, and where a group has two models"""
    smallest_p: float = 0.0
    """The least p that relabelling these models could give: 1/3 for two and two, 1/35 for four and four"""
    settings: Mapping[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = pd.Series(self.groups).value_counts(sort=False)
        named = ", ".join(f"{n} {group}" for group, n in sizes.items())
        return f"ModelGroups({named}: {'; '.join(self._in_short())})"

    def _in_short(self) -> Iterator[str]:
        if len(self.separation) > 1:
            yield f"{len(self.separation)} layers"
        else:
            found = self.separation.iloc[0]
            ends = f" ({found['low']:.3g} to {found['high']:.3g})" if np.isfinite(found["low"]) else ""
            yield f"separation {found['separation']:.3g}{ends}"
            if not self.why_no_p:
                yield f"p {found['p']:.3g}"
        if self.why_no_p:
            yield self.why_no_p

    @property
    def why_no_p(self) -> str:
        """Why no p is given; empty where there is one."""
        if self.separation["p"].notna().any():
            return ""
        if min(Counter(self.groups).values()) < SMALLEST:
            return "no p, for two models do not tell how far those of their group scatter: it takes three"
        return f"no p, for so few relabellings give none below {self.smallest_p:.2g}: it takes more models"

    def to_frame(self) -> pd.DataFrame:
        """One row per layer and pair of groups."""
        return self.means.copy()

    def plot(self, *, theme: str = "light") -> alt.LayerChart:
        """Means with intervals, over layers where there are layers (Figure 2 of Brown et al. 2023)."""
        from thinkalike.charts.group_charts import group_means
        from thinkalike.charts.theme import get_theme, themed

        chart = group_means(self.means, label=self.kind, theme=get_theme(theme))
        return themed(chart, get_theme(theme))


def compare_groups(
    values: Floats,
    groups: Sequence[Hashable],
    *,
    systems: Sequence[str] | None = None,
    layers: Sequence[Layer | float] | None = None,
    kind: Literal["similarity", "distance"] = "distance",
    squared: bool | None = None,
    n_permutations: int = 9999,
    confidence: float = 0.95,
    seed: int = 0,
) -> ModelGroups:
    """Compare models of the same group with models of different groups.

    Parameters
    ----------
    values : (m, m) between models, or (n_layers, m, m) layer by layer; not symmetric if direction matters.
    groups : of each of the m models; at least two groups of at least two models.
    squared : whether groups are separated by squared values, as is right for distances: then groups with one
        centre and unlike spread have separation 0. The separation is then √(mean square between) −
        √(mean square within), in the unit of the distances. False for what adds up as it is (similarities,
        penalties, losses). None: squared for distances.
    n_permutations : relabellings of the models by group; all of them where they are fewer. Models are also
        turned around the centre of their group (`separation.py`), at most 1,999 times.
    confidence : of the ranges. Where the relabellings are so few that no p could be 1 − `confidence`, and
        where a group has two models, which do not tell how far others of theirs scatter, no p is
        given (`why_no_p`): two groups of three are too few for 0.05.

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.inference.groups import compare_groups
    >>> places = np.array([0.0, 0.1, 0.3, 0.4, 1.0, 1.2, 1.3, 1.5])
    >>> found = compare_groups(abs(places[:, None] - places), ["a"] * 4 + ["b"] * 4)
    >>> round(found.separation["p"][0], 3) == round(found.smallest_p, 3) == 0.029
    True
    """
    stack, names, layer_names = _checked(values, groups, systems, layers)
    order, codes = np.unique([str(g) for g in groups], return_inverse=True)
    rng = np.random.default_rng(seed)
    labellings = np.stack(relabellings(codes, n_permutations, rng))
    squared = kind == "distance" if squared is None else squared
    lowest = float(stack[:, ~np.eye(len(codes), dtype=bool)].min())
    if squared and lowest < 0:
        raise InvalidInput(
            f"Some values are below 0 ({lowest:.3g}), so they are no distances: "
            "say squared=False for penalties and the like."
        )
    found = separations(
        stack**2 if squared else stack if kind == "distance" else -stack,
        codes,
        labellings,
        confidence=confidence,
        seed=seed,
    )
    smallest = smallest_p(codes, len(labellings))
    if smallest > 1 - confidence + _EQUAL:
        found = [one._replace(p=np.nan, p_any=np.nan) for one in found]
    return ModelGroups(
        systems=names,
        groups=tuple(str(g) for g in groups),
        kind=kind,
        means=_means(stack, layer_names, order, codes, confidence),
        separation=_separation_frame(found, layer_names, stack, codes, squared=squared),
        smallest_p=smallest,
        settings={
            "squared": squared,
            "n_permutations": len(labellings),
            "confidence": confidence,
            "seed": seed,
        },
    )


def _means(
    stack: Floats,
    layers: Sequence[Layer | float],
    order: npt.NDArray[np.str_],
    codes: Labels,
    confidence: float,
) -> pd.DataFrame:
    rows = []
    for layer, matrix in zip(layers, stack, strict=True):
        for a, b in combinations_with_replacement(range(len(order)), 2):
            pairs = _pairs(codes, a, b)
            found = mean_over_pairs(matrix, pairs, codes, confidence=confidence)
            rows.append(
                {
                    "layer": layer,
                    "pair": f"{order[a]} – {order[b]}",
                    "within": a == b,
                    **found._asdict(),
                    "n_pairs": int(pairs.sum()) // 2,
                }
            )
    return pd.DataFrame(rows)


def _separation_frame(
    found: Sequence[Separation],
    layers: Sequence[Layer | float],
    stack: Floats,
    codes: Labels,
    *,
    squared: bool,
) -> pd.DataFrame:
    rows = []
    for layer, one, matrix in zip(layers, found, stack, strict=True):
        value, low, high = one.value, one.low, one.high
        if squared:
            within = _mean_square_within(matrix, codes)
            value, low, high = (
                float(np.sqrt(np.maximum(within + q, 0.0)) - np.sqrt(within)) for q in (value, low, high)
            )
        rows.append(
            {"layer": layer, "separation": value, "low": low, "high": high, "p": one.p, "p_any": one.p_any}
        )
    return pd.DataFrame(rows)


def _mean_square_within(matrix: Floats, codes: Labels) -> float:
    """Every group counting alike."""
    return float(np.mean([(matrix[_pairs(codes, g, g)] ** 2).mean() for g in np.unique(codes)]))


def _checked(
    values: Floats,
    groups: Sequence[Hashable],
    systems: Sequence[str] | None,
    layers: Sequence[Layer | float] | None,
) -> tuple[Floats, tuple[str, ...], Sequence[Layer | float]]:
    stack = np.asarray(values, dtype=np.float64)
    stack = stack[None] if stack.ndim == 2 else stack
    m = len(groups)
    if stack.ndim != 3 or stack.shape[1:] != (m, m):
        raise InvalidInput(
            f"The values have shape {np.shape(values)} and there are {m} group labels: expected ({m}, {m}), "
            f"or (n_layers, {m}, {m})."
        )
    counts = pd.Series([str(g) for g in groups]).value_counts()
    if len(counts) < 2 or counts.min() < 2:
        raise InvalidInput(
            f"Within and between need two groups of two models or more: {counts.to_dict()} were given."
        )
    if layers is not None and len(layers) != len(stack):
        raise InvalidInput(f"There are {len(stack)} matrices and {len(layers)} layers to name them.")
    names = model_names(systems, m)
    bad = np.argwhere(~np.isfinite(stack) & ~np.eye(m, dtype=bool))
    if len(bad):
        _, i, j = bad[0]
        raise InvalidInput(f"There is no finite value between {names[i]} and {names[j]}: leave one out.")
    whole: Sequence[Layer] = ["all"] if np.ndim(values) == 2 else range(len(stack))
    return stack, names, whole if layers is None else layers


def model_names(systems: Sequence[str] | None, m: int) -> tuple[str, ...]:
    names = tuple(f"model {k}" for k in range(m)) if systems is None else tuple(systems)
    if len(names) != m:
        raise InvalidInput(f"There are {m} models and {len(names)} names: give one per model.")
    return names


def _pairs(codes: Labels, a: int, b: int) -> npt.NDArray[np.bool_]:
    """Ordered pairs of different models, one of group `a` and one of group `b`."""
    one = (codes[:, None] == a) & (codes[None, :] == b)
    return (one | one.T) & ~np.eye(len(codes), dtype=bool)


def relabellings(codes: Labels, n: int, rng: np.random.Generator) -> list[Labels]:
    """All assignments of models to groups of these sizes; where too many, the given one and `n` random."""
    sizes = np.bincount(codes)
    if _count(sizes) > n:
        return [codes, *(rng.permutation(codes) for _ in range(n))]
    return [np.array(labels) for labels in sorted(set(_arrangements(tuple(int(s) for s in sizes))))]


def smallest_p(codes: Labels, n: int) -> float:
    """The least p that `n` relabellings can give: the given groups are among them, and so are their names
    exchanged among groups of one size.

    >>> smallest_p(np.array([0, 0, 0, 1, 1, 1]), 20)
    0.1
    """
    sizes = np.bincount(codes)
    same = math.prod(math.factorial(int(k)) for k in np.unique(sizes, return_counts=True)[1])
    return max(same / _count(sizes), 1 / n)


def _count(sizes: npt.NDArray[np.int64]) -> int:
    """In how many ways models can be put into groups of these sizes."""
    return math.factorial(int(sizes.sum())) // math.prod(math.factorial(int(size)) for size in sizes)


def _arrangements(sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every sequence with sizes[g] entries g."""
    if not any(sizes):
        yield ()
    for group, size in enumerate(sizes):
        if size:
            fewer = (*sizes[:group], size - 1, *sizes[group + 1 :])
            for rest in _arrangements(fewer):
                yield (group, *rest)
