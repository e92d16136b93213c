r"""Clusters of models: what their distances group together, and whether given groups are found again.

A tree splits off first whoever is far from everybody. So the clusters are not cut from the tree: they are the
partition that keeps together what is close *for these two models*. With the mean distance of each model taken
away (A = the distances, U-centred, times −½) it maximises

    Σ_clusters (1 / size) Σ_{i ≠ j in the cluster} A_ij

which is k-means on the distances without the diagonal: a model that is far from all gains nothing by a
cluster of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.inference.groups import Labels, model_names, relabellings
from thinkalike.labels import Floats
from thinkalike.saving import Kept

if TYPE_CHECKING:
    import altair as alt

Method = Literal["average", "complete", "single", "ward", "weighted"]


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Kept):
    """A partition of models, their tree, and how well the partition agrees with given groups."""

    systems: tuple[str, ...]
    labels: Labels = field()
    """(n_systems,) the cluster of each, from 0"""
    merges: Floats = field()
    """(n_systems − 1, 4) SciPy's linkage matrix"""
    groups: tuple[str, ...] | None
    adjusted_rand: float
    """Agreement of clusters and groups: 1 the same, about 0 by chance; NaN without groups"""
    p: float
    """Share of relabellings of the models that agree at least as well"""
    settings: Mapping[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        agrees = "" if self.groups is None else f", adjusted Rand {self.adjusted_rand:.2f} with their groups"
        return f"Clusters({len(self.systems)} models in {self.labels.max() + 1}{agrees})"

    def to_frame(self) -> pd.DataFrame:
        """One row per model."""
        frame = pd.DataFrame({"system": self.systems, "cluster": self.labels})
        return frame if self.groups is None else frame.assign(group=self.groups)

    def plot(self, *, theme: str = "light") -> alt.LayerChart:
        """The tree, with the groups as colours of the names."""
        from thinkalike.charts.group_charts import dendrogram
        from thinkalike.charts.theme import get_theme, themed

        return themed(dendrogram(*self.tree(), theme=get_theme(theme)), get_theme(theme))

    def tree(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """What `charts.group_charts.dendrogram` draws: the forks, and the leaves from top to bottom."""
        return _drawn(self.merges, self.systems, self.groups or ("models",) * len(self.systems))


def cluster_models(
    distances: Floats,
    *,
    systems: Sequence[str] | None = None,
    groups: Sequence[Hashable] | None = None,
    n_clusters: int | None = None,
    method: Method = "average",
    n_permutations: int = 9999,
    seed: int = 0,
) -> Clusters:
    """Cluster models by their distances (m, m), and compare the clusters with given groups.

    As many clusters as groups unless `n_clusters` says otherwise. The agreement is the adjusted Rand index
    (Hubert and Arabie 1985); p is the share of relabellings of the models that reach it. `method` is that of
    the tree, which is drawn beside the clusters and need not agree with them.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform
    from sklearn.metrics import adjusted_rand_score

    m = len(distances)
    names = model_names(systems, m)
    if np.shape(distances) != (m, m) or not np.isfinite(distances).all():
        raise InvalidInput(f"Clustering needs finite distances (m, m), not shape {np.shape(distances)}.")
    if groups is not None and len(groups) != m:
        raise InvalidInput(f"There are {m} models and {len(groups)} group labels: give one per model.")
    n_clusters = n_clusters or (len(set(groups)) if groups is not None else None)
    if n_clusters is None or not 1 <= n_clusters <= m:
        raise InvalidInput(f"n_clusters is {n_clusters}: give 1 to {m}, or the groups to find again.")
    # Penalties may depend on the direction; a tree cannot.
    symmetric = (np.asarray(distances, dtype=np.float64) + np.transpose(distances)) / 2
    merges = linkage(squareform(symmetric, checks=False), method=method, optimal_ordering=True)
    labels = partition(symmetric, n_clusters, seed=seed)
    found, p = float("nan"), float("nan")
    if groups is not None:
        _, codes = np.unique([str(g) for g in groups], return_inverse=True)
        labellings = relabellings(codes, n_permutations, np.random.default_rng(seed))
        found = float(adjusted_rand_score(codes, labels))
        # Over relabellings only the number of pairs that are together in both moves the index.
        together = [_together(one, labels) for one in labellings]
        p = float(np.mean(np.array(together) >= _together(codes, labels)))
    return Clusters(
        systems=names,
        labels=labels,
        merges=merges,
        groups=None if groups is None else tuple(str(g) for g in groups),
        adjusted_rand=found,
        p=p,
        settings={"n_clusters": n_clusters, "method": method, "seed": seed},
    )


def partition(distances: Floats, n_clusters: int, *, n_starts: int = 50, seed: int = 0) -> Labels:
    """The best of `n_starts` random partitions of the models after single models were moved, (m,) from 0.

    Clusters are numbered in the order of their first models.
    """
    m = len(distances)
    if m <= n_clusters or m < 4:  # a model each, or too few to take the means of models away
        return _few(distances, n_clusters)
    rows = distances.sum(axis=1) / (m - 2)
    alike = -0.5 * (distances - rows[:, None] - rows[None, :] + rows.sum() / (m - 1))
    np.fill_diagonal(alike, 0.0)
    rng = np.random.default_rng(seed)
    starts = [rng.permutation(np.arange(m) % n_clusters) for _ in range(n_starts)]
    _, labels = max((_climb(alike, start) for start in starts), key=lambda found: found[0])
    _, first, numbered = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbered].astype(np.int64)


def _climb(alike: Floats, labels: Labels) -> tuple[float, Labels]:
    """Move the model that gains most to another cluster, as long as one gains; no cluster is emptied."""
    labels, everyone = labels.copy(), np.arange(len(labels))
    k = int(labels.max()) + 1
    while True:
        members = np.eye(k)[labels]
        sizes, to_cluster = members.sum(axis=0), alike @ members
        sums = (members * to_cluster).sum(axis=0)
        own = sizes[labels]
        left = (sums[labels] - 2 * to_cluster[everyone, labels]) / np.maximum(own - 1, 1) - sums[labels] / own
        gain = left[:, None] + (sums + 2 * to_cluster) / (sizes + 1) - sums / sizes
        gain[everyone, labels] = 0.0
        gain[own == 1] = -np.inf
        i, b = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[i, b] <= 1e-12 * np.abs(alike).max():
            return float((sums / sizes).sum()), labels
        labels[i] = b


def _few(distances: Floats, n_clusters: int) -> Labels:
    """Of at most three models, or as many as clusters: the closest two first."""
    m = len(distances)
    if n_clusters >= m:
        return np.arange(m)
    if n_clusters == 1:
        return np.zeros(m, dtype=np.int64)
    apart = np.where(np.eye(m, dtype=bool), np.inf, distances)
    i, j = np.unravel_index(int(apart.argmin()), apart.shape)
    return np.array([int(k not in (i, j)) for k in range(m)])


def _together(a: Labels, b: Labels) -> int:
    """Ordered pairs of models that share a label in both."""
    return int(((a[:, None] == a[None, :]) & (b[:, None] == b[None, :])).sum())


def _drawn(
    merges: Floats, systems: Sequence[str], groups: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tree as line segments, and its leaves from top to bottom."""
    from scipy.cluster.hierarchy import dendrogram

    tree = dendrogram(merges, no_plot=True)
    segments = [
        {"fork": fork, "corner": corner, "height": height, "place": (place - 5) / 10}
        for fork, (heights, places) in enumerate(zip(tree["dcoord"], tree["icoord"], strict=True))
        for corner, (height, place) in enumerate(zip(heights, places, strict=True))
    ]
    order = tree["leaves"] or []
    leaves = [{"place": k, "system": systems[i], "group": groups[i]} for k, i in enumerate(order)]
    return pd.DataFrame(segments), pd.DataFrame(leaves)
