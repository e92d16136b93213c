"""What an analysis concludes, and how many of several analyses come to the same (multiverse analysis).

Steegen et al. 2016; Simonsohn, Simmons and Nelson 2020 for the curve of specifications.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

Pair = tuple[str, str]
Conclusion = str | Pair | tuple[Pair, ...]
"""A feature, two systems, or all pairs of them in an order"""


@dataclass(frozen=True)
class Conclusions:
    """What one analysis says of some systems.

    Attributes
    ----------
    likeness : for each pair of systems how alike they are; NaN where that cannot be said
    dominant : for each system the feature that it cares about most; None where it cares about none
    geometry : for each pair how alike they are by geometry; empty where the analysis has no geometry of its
        own
    """

    likeness: Mapping[Pair, float]
    dominant: Mapping[str, str | None]
    geometry: Mapping[Pair, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Support:
    """In how many analyses a conclusion of the first one comes out.

    Attributes
    ----------
    kind : a key of `KINDS`
    about : the system that it is about, or None
    value : what the first analysis concludes
    agree, n : analyses that conclude the same, of so many that say something (the first is one of them)
    others : what the rest conclude, and how many of them, most frequent first
    """

    kind: str
    about: str | None
    value: Conclusion
    agree: int
    n: int
    others: tuple[tuple[Conclusion, int], ...] = ()

    @property
    def share(self) -> float:
        return self.agree / self.n


def order_of(likeness: Mapping[Pair, float]) -> tuple[Pair, ...]:
    """The pairs from the most to the least alike, without those of which nothing can be said.

    >>> order_of({("a", "b"): 0.2, ("a", "c"): 0.7, ("b", "c"): float("nan")})
    (('a', 'c'), ('a', 'b'))
    """
    known = [pair for pair in likeness if np.isfinite(likeness[pair])]
    return tuple(sorted(known, key=lambda pair: -likeness[pair]))


def order_agreement(a: Mapping[Pair, float], b: Mapping[Pair, float]) -> float:
    """Kendall's τ_b between two orders of the same pairs, in [−1, 1]; NaN for fewer than two."""
    both = [pair for pair in a if pair in b and np.isfinite(a[pair]) and np.isfinite(b[pair])]
    if len(both) < 2:
        return float("nan")
    return float(stats.kendalltau([a[p] for p in both], [b[p] for p in both]).statistic)


def _first(likeness: Mapping[Pair, float]) -> Pair | None:
    order = order_of(likeness)
    return order[0] if order else None


KINDS: dict[str, Callable[[Conclusions], Conclusion | None]] = {
    "most alike": lambda found: _first(found.likeness),
    "order": lambda found: order_of(found.likeness) or None,
    "most alike by geometry": lambda found: _first(found.geometry),
}
"""Kind of conclusion that needs three systems → what an analysis concludes; None for nothing"""


def support(analyses: Sequence[Conclusions]) -> tuple[Support, ...]:
    """How many analyses agree with the first, for each of its conclusions.

    With two systems only what dominates each is a conclusion, for one pair has no rival.
    """
    main = analyses[0]
    found = []
    if len(main.likeness) > 1:
        found = [
            _counted(kind, None, [conclude(one) for one in analyses]) for kind, conclude in KINDS.items()
        ]
    found += [
        _counted("dominates", system, [one.dominant.get(system) for one in analyses])
        for system in main.dominant
    ]
    return tuple(one for one in found if one is not None)


def _counted(kind: str, about: str | None, values: Sequence[Conclusion | None]) -> Support | None:
    main, said = values[0], [value for value in values if value is not None]
    if main is None:
        return None
    others = Counter(value for value in said if value != main)
    return Support(kind, about, main, said.count(main), len(said), tuple(others.most_common()))
