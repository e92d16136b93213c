"""How alike layers are by features: τ_w of importance profiles, with tests and ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.replicates import Dealt
from thinkalike.comparison.similarity_matrix import FEATURES, SimilarityMatrix
from thinkalike.errors import InvalidInput
from thinkalike.inference.block_tests import BlockTest, relabelling_test
from thinkalike.inference.ranges import DRAWS, Range, noise_range, with_noise
from thinkalike.inference.weighted_tau import relabelled_taus, tau_matrix
from thinkalike.labels import Floats, Row, span_of


def by_features(
    profiles: Sequence[Profile], *, n_permutations: int = 10_000, seed: int = 0
) -> SimilarityMatrix:
    """Weighted τ of importances between all layers (Salle et al. 2024), tested by relabelling strengths."""
    _check_same_question(profiles)
    kept = shared_features(profiles)
    rows = tuple(row for profile in profiles for row in profile.rows)
    values = tau_matrix(stacked_importance(profiles, kept))
    tested, strengths = _stacked_strengths(profiles, kept)
    silent = [profile.system for profile in profiles if not profile.explains_something]
    tests = relabelling_test(values, strengths, rows, untested=silent, n_samples=n_permutations, seed=seed)
    low, high, blocks = None, None, tests.blocks
    noise = _noise_of(profiles, kept, values, rows, blocks, seed)
    if noise is not None:
        low, high, _ = _inside(noise_range(values, noise.cells, noise.n, **noise.dealt))
        blocks = _with_ranges(blocks, noise, silent)
    reliability = np.concatenate([profile.reliability for profile in profiles])
    ceiling = np.sqrt(np.outer(reliability, reliability)) if np.isfinite(reliability).all() else None
    if ceiling is not None:
        blocks = _with_ceilings(blocks, rows, ceiling)
    return SimilarityMatrix(
        measure=FEATURES,
        rows=rows,
        values=values,
        p_block=tests.p_block if np.isfinite(tests.p_block).any() else None,
        low=low,
        high=high,
        ceiling=ceiling,
        blocks=blocks,
        settings={"features": kept, "tested": tested, "seed": seed},
    )


def shared_features(profiles: Sequence[Profile]) -> tuple[str, ...]:
    """The features with an importance in every layer of every profile; τ_w is computed over these.

    A feature that has one level in every fold has no importance; it then has none for any layer.
    """
    finite = np.all([np.isfinite(p.mean_importance).all(axis=0) for p in profiles], axis=0)
    kept = tuple(name for name, ok in zip(profiles[0].features, finite, strict=True) if ok)
    if len(kept) < 2:
        raise InvalidInput(
            f"A ranking needs at least two features with an importance; there are {len(kept)} "
            f"of {len(profiles[0].features)}: add features, or items that differ in them."
        )
    return kept


def stacked_importance(profiles: Sequence[Profile], kept: Sequence[str]) -> Floats:
    """(n_rows, n_kept) mean importances of all layers of all systems."""
    columns = [profiles[0].features.index(name) for name in kept]
    return np.concatenate([p.mean_importance[:, columns] for p in profiles])


def _stacked_strengths(
    profiles: Sequence[Profile], kept: Sequence[str]
) -> tuple[tuple[str, ...], Floats | None]:
    """The features among `kept` with a strength in every layer, and (n_rows, n_features) of them."""
    if any(profile.strengths is None for profile in profiles):
        return (), None
    columns = [profiles[0].features.index(name) for name in kept]
    strengths = np.concatenate([p.mean_strengths[:, columns] for p in profiles])
    known = np.isfinite(strengths).all(axis=0)
    return tuple(name for name, is_known in zip(kept, known, strict=True) if is_known), strengths[:, known]


@dataclass(frozen=True, eq=False)
class _Noise:
    """What the noise of the sentences does to τ_w: the same sentences in every system, so the same draws."""

    cells: Floats
    """(n_rows, n_rows) standard deviation of τ_w under noise"""
    means: Mapping[tuple[str, str], Floats]
    """Of each block, its mean (n_draws,) under noise"""
    n: int
    """Values that the noise was learnt from"""
    dealt: Dealt

    def range_of(self, value: float, noisy: Floats) -> Range:
        """The range of a number with its values under noise."""
        return noise_range(value, float(noisy.std()), self.n, **self.dealt)


def _noise_of(
    profiles: Sequence[Profile],
    kept: Sequence[str],
    values: Floats,
    rows: Sequence[Row],
    blocks: Sequence[BlockTest],
    seed: int,
) -> _Noise | None:
    """None when a system has no replicates, or not as many as another."""
    made = [p.replicates for p in profiles if p.replicates is not None]
    if len(made) < len(profiles) or len({(len(one.scores), one.parts) for one in made}) > 1:
        return None
    columns = [profiles[0].features.index(name) for name in kept]
    without = np.concatenate([one.importance for one in made], axis=1)[:, :, columns]
    without = without[np.isfinite(without).all(axis=(1, 2))]
    if len(without) < 2:
        return None
    identity = np.arange(len(kept))[None]
    first, second = np.zeros((2, *values.shape))  # moments of the changes
    known = np.isfinite(values)
    means: dict[tuple[str, str], list[float]] = {(block.a, block.b): [] for block in blocks}
    for noisy in with_noise(stacked_importance(profiles, kept), without, parts=made[0].parts, seed=seed):
        taus = np.where(known, next(relabelled_taus(noisy, noisy, identity))[0], np.nan)
        first += (taus - values) / DRAWS
        second += (taus - values) ** 2 / DRAWS
        for a, b in means:
            means[a, b].append(_block_mean(taus[span_of(rows, a), span_of(rows, b)], within=a == b))
    cells = np.sqrt(np.maximum(second - first**2, 0.0))
    return _Noise(cells, {pair: np.array(m) for pair, m in means.items()}, len(without), made[0].dealt)


def _block_mean(cells: Floats, *, within: bool) -> float:
    """Over the same cells as the mean itself: within a system not the diagonal."""
    known = np.isfinite(cells)
    if within:
        known &= ~np.eye(len(cells), dtype=bool)
    return float(cells[known].mean()) if known.any() else float("nan")


def _with_ranges(
    blocks: Sequence[BlockTest], noise: _Noise, silent: Sequence[str] = ()
) -> tuple[BlockTest, ...]:
    """The range of each mean; and of how far it stays behind that of the two systems most alike.

    Systems of which the features explain nothing are not called alike, unless there are no others.
    """
    between = [block for block in blocks if block.a != block.b]
    heard = [block for block in between if not {block.a, block.b} & set(silent)]
    best = max(heard or between, key=lambda block: block.mean, default=None)
    ranged = []
    for block in blocks:
        own = noise.means[block.a, block.b]
        low, high, _ = _inside(noise.range_of(block.mean, own))
        block = replace(block, low=float(low), high=float(high))
        if best is not None and block.a != block.b and (block.a, block.b) != (best.a, best.b):
            behind = noise.range_of(best.mean - block.mean, noise.means[best.a, best.b] - own)
            block = replace(block, behind_low=float(behind.low), behind_high=float(behind.high))
        ranged.append(block)
    return tuple(ranged)


def _inside(found: Range) -> Range:
    """τ_w lies in [−1, 1]."""
    return found._replace(low=np.clip(found.low, -1.0, 1.0), high=np.clip(found.high, -1.0, 1.0))


def _with_ceilings(
    blocks: Sequence[BlockTest], rows: Sequence[Row], ceiling: Floats
) -> tuple[BlockTest, ...]:
    means = [float(ceiling[span_of(rows, b.a), span_of(rows, b.b)].mean()) for b in blocks]
    return tuple(replace(block, ceiling=mean) for block, mean in zip(blocks, means, strict=True))


def _check_same_question(profiles: Sequence[Profile]) -> None:
    """Refuse profiles whose importances mean different things."""
    first = profiles[0]
    for other in profiles[1:]:
        pair = f"{first.system} and {other.system}"
        if first.features != other.features:
            raise InvalidInput(
                f"{pair} are profiled on different features: profile both on the same stimuli."
            )
        if first.stimuli_digest and other.stimuli_digest and first.stimuli_digest != other.stimuli_digest:
            raise InvalidInput(
                f"{pair} were shown different stimuli (digests {first.stimuli_digest[:12]} and "
                f"{other.stimuli_digest[:12]}): profile both on the same."
            )
        different = sorted(
            k for k in {*first.settings, *other.settings} if first.settings.get(k) != other.settings.get(k)
        )
        if different:
            k = different[0]
            raise InvalidInput(
                f"{pair} are profiled with different settings ({k}: {first.settings.get(k)!r} and "
                f"{other.settings.get(k)!r}): profile both alike."
            )
