"""Moments where no closed form exists: full W, and distances that are given by blocks.

Items alike in every feature form one cell. Sums over the pairs of two cells follow from the cells' counts,
vector sums and squared norms, so a pass over pairs of cells replaces one over pairs of items.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thinkalike.encoding.designs import Design
from thinkalike.encoding.moments import Moments
from thinkalike.encoding.scoring import PatternCoder
from thinkalike.pairs.distances import BLOCK_ROWS, QuadraticTarget, Target
from thinkalike.stimuli.differences import FeatureDifferences

_MAX_TABLE = 1 << 18


@dataclass(frozen=True)
class _Cells:
    """Items alike in every feature and in the same block, blocks in rising order.

    Attributes
    ----------
    item : int array of shape (n_cells,), one item of each cell
    block, counts : arrays of shape (n_cells,)
    """

    item: np.ndarray
    block: np.ndarray
    counts: np.ndarray
    sums: tuple[tuple[float, np.ndarray, np.ndarray], ...] = ()
    target: Target | None = None

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Σ y over the pairs of items of two cells: (len(rows), len(columns))."""
        if self.target is not None:
            return self.target.block(self.item[rows], self.item[columns])
        y = np.zeros((len(rows), len(columns)))
        for c, s, q in self.sums:
            n_u, n_v = self.counts[rows, None], self.counts[None, columns]
            y += c * (n_v * q[rows, None] + n_u * q[None, columns] - 2 * (s[rows] @ s[columns].T))
        return y

    def inside(self) -> np.ndarray:
        """Σ y over the pairs of items within each cell: (n_cells,)."""
        y = np.zeros(len(self.counts))
        for c, s, q in self.sums:
            y += c * (self.counts * q - np.einsum("uk,uk->u", s, s))
        return y


def pass_moments(
    differences: FeatureDifferences, target: Target, design: Design, block: np.ndarray, membership: np.ndarray
) -> list[Moments]:
    """Moments of a design over the pairs within each set of blocks, by one pass over pairs of cells."""
    n_blocks = membership.shape[1]
    cells = _make_cells(differences, target, block)
    coder = PatternCoder(differences)
    use_table = coder.size is not None and coder.size <= _MAX_TABLE
    parts: dict[tuple[int, int], Moments] = {}
    for a in range(n_blocks):
        for b in range(a, n_blocks):
            blocks = _rectangles(cells, a, b)
            parts[a, b] = (
                _sum_patterns(cells, coder, design, blocks)
                if use_table
                else _sum_columns(cells, differences, design, blocks)
            )
    inside, within_pairs = cells.inside(), cells.counts * (cells.counts - 1) / 2
    for a in range(n_blocks):
        own = cells.block == a
        parts[a, a] += _empty(design, float(within_pairs[own].sum()), float(inside[own].sum()))
    nothing = _empty(design, 0.0, 0.0)
    return [
        sum((part for (a, b), part in parts.items() if within[a] and within[b]), start=nothing)
        for within in membership
    ]


def _make_cells(differences: FeatureDifferences, target: Target, block: np.ndarray) -> _Cells:
    if not isinstance(target, QuadraticTarget):
        order = np.argsort(block, kind="stable")
        return _Cells(order, block[order], np.ones(len(order)), target=target)
    labels = np.column_stack([block, differences.codes])
    _, item, index = np.unique(labels, axis=0, return_index=True, return_inverse=True)
    index = index.ravel()
    counts = np.bincount(index).astype(float)
    order = np.argsort(index, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts[:-1])]).astype(int)
    sums = []
    for c, x in target.terms:
        z = np.asarray(x[order], dtype=float)
        z -= z.mean(axis=0)
        q = np.add.reduceat(np.einsum("ij,ij->i", z, z), starts)
        sums.append((c, np.add.reduceat(z, starts, axis=0), q))
    return _Cells(item, block[item], counts, tuple(sums))


def _rectangles(cells: _Cells, a: int, b: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Pairs of cells of blocks a and b, some at a time: rows, columns, and which pairs of them to take."""
    in_a, in_b = np.flatnonzero(cells.block == a), np.flatnonzero(cells.block == b)
    for first in range(0, len(in_a), BLOCK_ROWS):
        rows = in_a[first : first + BLOCK_ROWS]
        columns = in_b[first:] if a == b else in_b
        take = rows[:, None] < columns[None, :] if a == b else np.ones((len(rows), len(columns)), dtype=bool)
        yield rows, columns, take


def _sum_patterns(
    cells: _Cells,
    coder: PatternCoder,
    design: Design,
    rectangles: Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> Moments:
    size = coder.size or 0
    counts, sums = np.zeros(size), np.zeros(size)
    for rows, columns, take in rectangles:
        r, c = np.nonzero(take)
        u, v = rows[r], columns[c]
        keys = coder.keys(cells.item[u], cells.item[v])
        counts += np.bincount(keys, weights=cells.counts[u] * cells.counts[v], minlength=size)
        sums += np.bincount(keys, weights=cells.between(rows, columns)[take], minlength=size)
    found = np.flatnonzero(counts)
    return table_moments(design.expand(coder.values(found)), counts[found], sums[found])


def _sum_columns(
    cells: _Cells,
    differences: FeatureDifferences,
    design: Design,
    rectangles: Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> Moments:
    total = _empty(design, 0.0, 0.0)
    for rows, columns, take in rectangles:
        r, c = np.nonzero(take)
        u, v = rows[r], columns[c]
        i, j = cells.item[u], cells.item[v]
        squared = np.stack([f.squared_differences(i, j) for f in differences.features], axis=1)
        weights = cells.counts[u] * cells.counts[v]
        total += table_moments(design.expand(squared), weights, cells.between(rows, columns)[take])
    return total


def table_moments(columns: np.ndarray, counts: np.ndarray, target_sums: np.ndarray) -> Moments:
    """Moments from a table of patterns: their columns (n_patterns, n_columns), counts, and sums of y."""
    weighted = columns * counts[:, None]
    return Moments(
        float(counts.sum()),
        weighted.sum(axis=0),
        weighted.T @ columns,
        columns.T @ target_sums,
        float(target_sums.sum()),
    )


def _empty(design: Design, n_pairs: float, target_sum: float) -> Moments:
    K = design.n_columns
    return Moments(n_pairs, np.zeros(K), np.zeros((K, K)), np.zeros(K), target_sum)
