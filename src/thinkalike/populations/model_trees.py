"""Trees of models: average linkage, and how often other sentences would put the same models together.

Importances as other sentences would give them are drawn from what leaving sentences out says. With θ₍g₎ the
importances of a model without part g of the sentences, one of G, and z_g standard normal,

    θ* = θ + √((G − 1)/n) Σ_g z_g (θ₍g₎ − θ̄)

has the mean θ and the covariance that the jackknife gives. The same z serves all models, which were shown the
same sentences. Trees and maps are drawn again from such importances.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.populations.between_models import between_models, distance_of
from thinkalike.populations.fingerprint_record import Fingerprint
from thinkalike.saving import Kept
from thinkalike.types import Chart

Clade = frozenset[int]


@dataclass(frozen=True, eq=False, repr=False)
class ModelTree(Kept):
    """Which models stand together.

    Attributes
    ----------
    merges : (n_models − 1, 4), as `scipy.cluster.hierarchy.linkage` gives them
    support : (n_models − 1,) the share of the draws of other sentences in which the models below a merge
        stand together as well; NaN where the distance has no resamples
    """

    by: str
    names: tuple[str, ...]
    merges: Floats = field()
    support: Floats = field()

    def __repr__(self) -> str:
        return f"ModelTree({self.by}: {len(self.names)} models)"

    @property
    def order(self) -> tuple[str, ...]:
        """The names as a drawn tree has them, the most alike side by side."""
        return tuple(self.names[k] for k in leaves_list(self.merges))

    def forks(self) -> Floats:
        """(n_models − 1, 4, 2): for each merge the height and place of its four corners, to draw it."""
        n = len(self.names)
        height, place = np.zeros(2 * n - 1), np.zeros(2 * n - 1)
        place[leaves_list(self.merges)] = np.arange(n)
        corners = np.empty((n - 1, 4, 2))
        for k, (a, b, top, _) in enumerate(self.merges):
            i, j = int(a), int(b)
            height[n + k], place[n + k] = top, (place[i] + place[j]) / 2
            corners[k] = [(height[i], place[i]), (top, place[i]), (top, place[j]), (height[j], place[j])]
        return corners

    def plot(self, groups: pd.Series | None = None, *, theme: str = "light") -> Chart:
        """The tree; its leaves coloured by `groups`, a Series over names, if it is given."""
        from thinkalike.populations.charts import tree_chart

        return tree_chart(self, groups, theme=theme)

    def to_frame(self) -> pd.DataFrame:
        """One row per merge: its height, its support, and the models below it."""
        below = [", ".join(self.names[k] for k in sorted(one)) for one in clades(self.merges)]
        return pd.DataFrame({"height": self.merges[:, 2], "support": self.support, "models": below})


def model_tree(
    fingerprints: Sequence[Fingerprint], *, by: str = "features", n_draws: int = 100, seed: int = 0
) -> ModelTree:
    """A tree by average linkage, with support from draws of other sentences (`sentence_draws`)."""
    found, distance = between_models(fingerprints, by=by), distance_of(by)
    condensed = squareform(found.values, checks=False)
    merges = optimal_leaf_ordering(linkage(condensed, "average"), condensed)
    own = clades(merges)
    if distance.between is None or not n_draws:
        return ModelTree(by, found.names, merges, np.full(len(own), np.nan))
    counts = np.zeros(len(own))
    places = [
        [k for k, layer in enumerate(one.layers) if not distance.blocks or layer != 0] for one in fingerprints
    ]
    for importances in sentence_draws(fingerprints, n_draws=n_draws, seed=seed):
        rows = [values[place] for values, place in zip(importances, places, strict=True)]
        drawn = set(clades(linkage(squareform(distance.between(rows), checks=False), "average")))
        counts += [one in drawn for one in own]
    return ModelTree(by, found.names, merges, counts / n_draws)


def clades(merges: Floats) -> list[Clade]:
    """The models below each merge."""
    n = len(merges) + 1
    below: list[Clade] = [frozenset([k]) for k in range(n)]
    for a, b, *_ in merges:
        below.append(below[int(a)] | below[int(b)])
    return below[n:]


def sentence_draws(
    fingerprints: Sequence[Fingerprint], *, n_draws: int = 100, seed: int = 0
) -> Iterator[list[Floats]]:
    """For each draw the importances (n_layers, F) of all models."""
    made = [one.profile.replicates for one in fingerprints]
    sizes = {None if one is None else (len(one.importance), one.parts) for one in made}
    if len(sizes) > 1 or None in sizes:
        raise InvalidInput(
            "Not all fingerprints have the same resamples: make them with the same version of thinkalike."
        )
    deviations = []
    for one in made:
        assert one is not None
        scale = np.sqrt((one.parts - 1) / len(one.importance))
        deviations.append(scale * (one.importance - one.importance.mean(axis=0)))
    rng = np.random.default_rng(seed)
    for _ in range(n_draws):
        z = rng.normal(size=len(deviations[0]))
        yield [
            one.profile.mean_importance + np.tensordot(z, moved, axes=1)
            for one, moved in zip(fingerprints, deviations, strict=True)
        ]
