"""The compiled loops over patterns of pairs and over items; compiled once and kept on disk."""

from __future__ import annotations

import numpy as np

from thinkalike.machine import compiled


# The order of additions may change so that they run in parallel lanes; it is the same in every run.
@compiled(nogil=True, fastmath={"reassoc", "contract", "nsz"})
def level_sums(
    x: np.ndarray,
    centre: np.ndarray,
    rows: np.ndarray,
    loads: np.ndarray,
    block: np.ndarray,
    first: int,
    last: int,
    sums: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Add every centred item, times its loads, to the rows it belongs to; columns `first` to `last`.

    Parameters
    ----------
    rows : int array of shape (n_items, n_entries)
        Which rows of `sums` an item adds to; −1 for none.
    loads : array of shape (n_items, n_entries)
    block : int array of shape (n_items,)
    sums : array of shape (n_blocks, n_rows, last − first), added to
    squares : array of shape (n_items,), added to: the squared norms
    """
    width, middle = last - first, centre[first:last]
    z = np.empty(width)
    for i in range(x.shape[0]):
        item, total = x[i, first:last], 0.0
        for k in range(width):
            value = np.float64(item[k]) - middle[k]
            z[k] = value
            total += value * value
        squares[i] += total
        for e in range(rows.shape[1]):
            r = rows[i, e]
            if r >= 0:
                load, out = loads[i, e], sums[block[i], r]
                for k in range(width):
                    out[k] += load * z[k]


@compiled(nogil=True)
def pair_keys(
    i: np.ndarray,
    j: np.ndarray,
    codes: np.ndarray,
    strides: np.ndarray,
    n_levels: np.ndarray,
    offsets: np.ndarray,
    tables: np.ndarray,
    out: np.ndarray,
) -> None:
    """The pattern of differences of each pair (i, j) as one number Σ_f stride_f · (which difference in f).

    A feature with n_levels 0 is an indicator, in which code −1 differs from nothing; any other looks its
    difference up in its n_levels × n_levels table at its offset in `tables`.
    """
    for p in range(len(i)):
        a, b, key = i[p], j[p], 0
        for f in range(codes.shape[1]):
            u, v = codes[a, f], codes[b, f]
            if n_levels[f] == 0:
                if u != v and u >= 0 and v >= 0:
                    key += strides[f]
            else:
                key += strides[f] * tables[offsets[f] + u * n_levels[f] + v]
        out[p] = key


@compiled(nogil=True)
def all_pair_keys(
    codes: np.ndarray,
    strides: np.ndarray,
    n_levels: np.ndarray,
    offsets: np.ndarray,
    tables: np.ndarray,
    out: np.ndarray,
) -> None:
    """`pair_keys` of all pairs in condensed order, feature by feature along a row, which is quicker.

    `codes` has shape (n_features, n_items); `out` starts at 0.
    """
    n_features, n = codes.shape
    start = 0
    for i in range(n - 1):
        keys = out[start : start + n - i - 1]
        for f in range(n_features):
            u, others, stride = codes[f, i], codes[f, i + 1 :], strides[f]
            if n_levels[f] > 0:
                row = tables[offsets[f] + u * n_levels[f] : offsets[f] + (u + 1) * n_levels[f]]
                for k in range(len(keys)):
                    keys[k] += stride * row[others[k]]
            elif u >= 0:
                for k in range(len(keys)):
                    keys[k] += stride * ((others[k] != u) & (others[k] >= 0))
        start += len(keys)


@compiled(nogil=True)
def sum_by_item(
    y: np.ndarray, ids: np.ndarray, fold: np.ndarray, columns: np.ndarray, out: np.ndarray
) -> None:
    """Σ_j y_ij · columns[pattern of (i, j)] over the items j of each fold.

    `y` and `ids` are of all pairs, in condensed order; `out` has shape (n_items, n_folds, n_columns).
    """
    n, p = len(fold), 0
    for i in range(n):
        for j in range(i + 1, n):
            distance, column, to_i, to_j = y[p], columns[ids[p]], out[i, fold[j]], out[j, fold[i]]
            for c in range(len(column)):
                to_i[c] += distance * column[c]
                to_j[c] += distance * column[c]
            p += 1


@compiled(nogil=True)
def sum_among(
    y: np.ndarray,
    ids: np.ndarray,
    fold: np.ndarray,
    items: np.ndarray,
    u: np.ndarray,
    n: int,
    out: np.ndarray,
) -> None:
    """Σ u_i u_j y_ij over the pairs of some of the `n` items, by folds and pattern, added to `out`.

    `items` rise; `out` has shape (n_folds, n_folds, n_patterns), where a pair is in one order of its folds.
    """
    for a in range(len(items)):
        i = items[a]
        start, of_fold = i * n - i * (i + 1) // 2 - i - 1, out[fold[i]]
        for b in range(a + 1, len(items)):
            p = start + items[b]
            of_fold[fold[items[b]], ids[p]] += u[a] * u[b] * y[p]


@compiled(nogil=True, fastmath={"contract", "nsz"})
def weighted_rank_tables(
    i: np.ndarray,
    j: np.ndarray,
    ids: np.ndarray,
    stops: np.ndarray,
    w: np.ndarray,
    counts: np.ndarray,
    ranks: np.ndarray,
    spread: np.ndarray,
) -> None:
    """Rank tables of some resamples in which the pair (i, j) counts w_i · w_j times, all in step.

    Parameters
    ----------
    i, j, ids : int arrays of shape (n_pairs,)
        The pairs and their patterns, from the smallest to the largest distance.
    stops : where runs of equal distances end
    w : array of shape (n_items, n_resamples), multiplicities
    counts, ranks : arrays of shape (n_patterns, n_resamples), added to
    spread : array of shape (n_resamples,), added to
    """
    n_items, n_resamples = w.shape
    half, squares = np.zeros(n_resamples), np.zeros(n_resamples)
    if len(i) == n_items * (n_items - 1) // 2:
        for item in range(n_items):
            for b in range(n_resamples):
                half[b] += w[item, b]
                squares[b] += w[item, b] * w[item, b]
        half = (half * half - squares) / 4.0
    else:  # a sample of the pairs
        for k in range(len(i)):
            w_i, w_j = w[i[k]], w[j[k]]
            for b in range(n_resamples):
                half[b] += w_i[b] * w_j[b]
        half /= 2.0
    before, total, rank = np.zeros(n_resamples), np.empty(n_resamples), np.empty(n_resamples)
    start = 0
    for stop in stops:
        total[:] = 0.0
        for k in range(start, stop):
            w_i, w_j = w[i[k]], w[j[k]]
            for b in range(n_resamples):
                total[b] += w_i[b] * w_j[b]
        for b in range(n_resamples):
            rank[b] = before[b] + total[b] / 2.0 - half[b]
            spread[b] += total[b] * rank[b] * rank[b]
            before[b] += total[b]
        for k in range(start, stop):
            w_i, w_j, count, moment = w[i[k]], w[j[k]], counts[ids[k]], ranks[ids[k]]
            for b in range(n_resamples):
                pair = w_i[b] * w_j[b]
                count[b] += pair
                moment[b] += pair * rank[b]
        start = stop


@compiled(nogil=True)
def group_ties(predictions: np.ndarray, tolerance: float, group: np.ndarray) -> int:
    """The rank of each prediction among the distinct ones, into `group`; returns their number.

    Neighbours no further apart than `tolerance` are not distinct.
    """
    order = np.argsort(predictions)
    n_groups = 0
    for k in range(len(order)):
        if k > 0 and predictions[order[k]] - predictions[order[k - 1]] > tolerance:
            n_groups += 1
        group[order[k]] = n_groups
    return n_groups + 1


@compiled(nogil=True)
def table_correlation(
    group: np.ndarray, n_groups: int, counts: np.ndarray, ranks: np.ndarray, spread: float
) -> float:
    """Spearman's ρ from a table of patterns; see `scoring.spearman`."""
    weight, moment, total = np.zeros(n_groups), np.zeros(n_groups), 0.0
    for m in range(len(group)):
        weight[group[m]] += counts[m]
        moment[group[m]] += ranks[m]
        total += counts[m]
    before, covariance, variance = 0.0, 0.0, 0.0
    for g in range(n_groups):
        rank = before + weight[g] / 2.0 - total / 2.0
        covariance += moment[g] * rank
        variance += weight[g] * rank * rank
        before += weight[g]
    if not spread > 0.0:
        return np.nan
    if not variance > 1e-12 * total * total * total:
        return 0.0
    return covariance / np.sqrt(spread * variance)


@compiled(nogil=True)
def table_correlations(
    predictions: np.ndarray, tie: float, counts: np.ndarray, ranks: np.ndarray, spread: float
) -> np.ndarray:
    """`table_correlation` for each row of predictions (n_fits, n_patterns).

    Those no further apart than the share `tie` of the largest of their row are tied.
    """
    found, group = np.empty(len(predictions)), np.empty(predictions.shape[1], dtype=np.int64)
    for b in range(len(predictions)):
        n_groups = group_ties(predictions[b], tie * np.abs(predictions[b]).max(), group)
        found[b] = table_correlation(group, n_groups, counts, ranks, spread)
    return found


@compiled(nogil=True)
def tally_shuffled_pairs(
    rest: np.ndarray, part: np.ndarray, of_pairs: np.ndarray, seed: int, counts: np.ndarray, ranks: np.ndarray
) -> None:
    """Shuffle `part` over the pairs (in place) and add up counts and ranks by (rest, part).

    The generator is splitmix64, so that the order depends on the seed alone.
    """
    state = np.uint64(seed)
    for p in range(len(part) - 1, -1, -1):
        state += np.uint64(0x9E3779B97F4A7C15)
        z = state
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        k = np.int64(z >> np.uint64(1)) % (p + 1)
        part[p], part[k] = part[k], part[p]
        counts[rest[p], part[p]] += 1.0
        ranks[rest[p], part[p]] += of_pairs[p]


@compiled(nogil=True)
def tally_permuted_items(
    i: np.ndarray,
    j: np.ndarray,
    order: np.ndarray,
    rest: np.ndarray,
    part: np.ndarray,
    of_pairs: np.ndarray,
    counts: np.ndarray,
    ranks: np.ndarray,
) -> None:
    """Give each pair (i, j) the part of (order[i], order[j]); add up counts and ranks by (rest, part)."""
    n = len(order)
    for p in range(len(i)):
        a, b = min(order[i[p]], order[j[p]]), max(order[i[p]], order[j[p]])
        v = part[a * n - a * (a + 1) // 2 + b - a - 1]
        counts[rest[p], v] += 1.0
        ranks[rest[p], v] += of_pairs[p]


@compiled(nogil=True)
def exchanged_correlation(
    rest: np.ndarray,
    part: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    counts: np.ndarray,
    ranks: np.ndarray,
    spread: float,
) -> float:
    """Spearman's ρ when every pattern's part is replaced by all parts, each with its share of the pairs.

    `group` of shape (n_rests, n_parts) ranks the predictions of the combinations.
    """
    n_rests, n_parts = group.shape
    count, moment, share = np.zeros(n_rests), np.zeros(n_rests), np.zeros(n_parts)
    for m in range(len(rest)):
        count[rest[m]] += counts[m]
        moment[rest[m]] += ranks[m]
        share[part[m]] += counts[m]
    share /= share.sum()
    combined, moments = np.empty(n_rests * n_parts), np.empty(n_rests * n_parts)
    for r in range(n_rests):
        for v in range(n_parts):
            combined[r * n_parts + v] = count[r] * share[v]
            moments[r * n_parts + v] = moment[r] * share[v]
    return table_correlation(group.ravel(), n_groups, combined, moments, spread)


@compiled(nogil=True)
def judge_resamples(
    values: np.ndarray,
    own: np.ndarray,
    rests: np.ndarray,
    parts: np.ndarray,
    combined: np.ndarray,
    shapes: np.ndarray,
    weights: np.ndarray,
    counts: np.ndarray,
    ranks: np.ndarray,
    spread: np.ndarray,
    tie: float,
    scores: np.ndarray,
    permuted: np.ndarray,
) -> None:
    """ρ of every resample, into `scores`, and with each player exchanged, into `permuted`.

    Parameters
    ----------
    values : array of shape (n_combinations, n_features);  own : (n_patterns,), as in `PatternSpace`
    rests, parts : int arrays of shape (n_players, n_patterns), as in `Exchange`
    combined : the players' tables of combinations one after the other, each of its row in `shapes`
    weights : array of shape (n_resamples, n_features)
    counts, ranks, spread : rank tables of the resamples; one without spread keeps what stands in `scores`
    tie : predictions no further apart than this share of the largest are tied
    """
    n_combinations, n_features = values.shape
    predictions, group = np.empty(n_combinations), np.empty(n_combinations, dtype=np.int64)
    for b in range(len(weights)):
        if not spread[b] > 0.0:
            continue
        predictions[:] = 0.0
        for f in range(n_features):  # feature by feature, so that equal patterns give equal bits
            if weights[b, f] != 0.0:
                for m in range(n_combinations):
                    predictions[m] += weights[b, f] * values[m, f]
        n_groups = group_ties(predictions, tie * np.abs(predictions).max(), group)
        scores[b] = table_correlation(group[own], n_groups, counts[b], ranks[b], spread[b])
        first = 0
        for p in range(len(rests)):
            size = shapes[p, 0] * shapes[p, 1]
            table = group[combined[first : first + size]].reshape((shapes[p, 0], shapes[p, 1]))
            permuted[b, p] = exchanged_correlation(
                rests[p], parts[p], table, n_groups, counts[b], ranks[b], spread[b]
            )
            first += size
