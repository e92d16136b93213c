"""CKA over a stream of batches: all layers of all systems at once, with standard errors as it goes.

Each batch gives an (L, L) matrix of unbiased HSICs, whose sum over batches is unbiased too. Their ratio is
taken at the end ("hsic"), or batch by batch and then averaged ("ratio", as in Brown et al. 2023). A batch
belongs to a unit, a document or a group of documents, and the standard error is a jackknife over units:
tokens of one document are no independent draws.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.measures.hsic import carried_by, gram_sums
from thinkalike.measures.inputs import Array
from thinkalike.types import EitherMatrix, Matrix

Average = Literal["hsic", "ratio"]
AVERAGES = ("hsic", "ratio")
MOST_UNITS = 256  # kept apart for the jackknife; of more, neighbours are merged
FEWEST_UNITS = 10  # for a standard error that one would stop by
FEWEST_ITEMS = 4  # unbiased HSIC is not defined below
TOP_SHARE = 0.01


class StreamingCKA:
    """CKA among layers that arrive batch by batch.

    Parameters
    ----------
    names
        One per layer, in the order in which every batch brings them; for error messages.
    average
        "hsic": the ratio of summed HSICs. "ratio": the mean of the ratios of each batch.
    dtype
        "float64", or "float32" for GPUs that are slow otherwise; sums over batches are float64 in any case.
    """

    def __init__(self, names: Sequence[str], *, average: Average = "hsic", dtype: str = "float64") -> None:
        if average not in AVERAGES:
            raise UnknownName.among("average", average, AVERAGES)
        if dtype not in ("float32", "float64"):
            raise UnknownName.among("dtype", dtype, ("float64", "float32"))
        self.names, self.average, self.dtype = list(names), average, dtype
        self.n_batches = self.n_items = 0
        self._slots: dict[str, int] = {}
        self._merged = 1  # how many units share a slot
        self._sums: list[Array] = []
        self._weights: list[float] = []
        self._top, self._all = np.zeros(len(names)), np.zeros(len(names))

    @property
    def n_units(self) -> int:
        """How many different units have come."""
        return len(self._slots)

    def add(self, layers: Sequence[Matrix], *, unit: Hashable = None) -> None:
        """Take one batch: for every layer an array or tensor (n_items, n_units_l), the same items in all.

        `unit` is the document or group of documents that the batch was drawn from; one of its own if None.
        """
        n = self._check(layers)
        centred = [_centred(X, self.dtype, name) for X, name in zip(layers, self.names, strict=True)]
        sums = gram_sums(centred)
        hsic = sums.products / (n * (n - 3))
        if self.average == "ratio":
            hsic = self._batch_ratios(hsic)
        self._note(hsic, weight=float(n), unit=f"batch {self.n_batches}" if unit is None else str(unit))
        n_top = max(1, round(TOP_SHARE * n))
        for k, (X, per_item) in enumerate(zip(centred, sums.per_item, strict=True)):
            self._top[k] += carried_by(X, per_item, np.argpartition(per_item, -n_top)[-n_top:])
        self._all += sums.per_item.sum(axis=1)
        self.n_batches += 1
        self.n_items += n

    def estimate(self) -> Array:
        """CKA among all layers so far, (L, L), in [−1, 1]; NaN for a layer that never varied."""
        if not self.n_batches:
            raise InvalidInput("No batch has come yet: there is nothing to estimate.")
        return self._value(sum(self._sums[1:], self._sums[0]), sum(self._weights))

    def standard_errors(self) -> Array:
        """Jackknife over units, weighted by their numbers of items (Busing et al. 1999).

        Of shape (L, L); NaN for a single unit.
        """
        whole, total, weight = self.estimate(), sum(self._sums[1:], self._sums[0]), sum(self._weights)
        shares = [(part, w / weight) for part, w in zip(self._sums, self._weights, strict=True)]
        if len(shares) < 2:
            return np.full_like(whole, np.nan)
        without = [self._value(total - part, weight * (1 - share)) for part, share in shares]
        mean = len(shares) * whole
        for one, (_, share) in zip(without, shares, strict=True):
            mean -= (1 - share) * one
        variance = np.zeros_like(whole)
        for one, (_, share) in zip(without, shares, strict=True):
            pseudo_value = whole / share - (1 / share - 1) * one
            variance += (pseudo_value - mean) ** 2 / (1 / share - 1) / len(shares)
        return np.sqrt(variance)

    def top_share(self) -> Array:
        """Share of each layer's HSIC with itself in the pairs of the top 1 % of items, (L,), in [0, 1].

        The items of a batch with most of it, and all their pairs; about 0.02 when all items are alike.
        """
        return np.divide(self._top, self._all, out=np.full_like(self._top, np.nan), where=self._all > 0)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything that came so far, for `restore`."""
        counts = [self.n_batches, self.n_items, self._merged]
        return {
            "sums": np.array(self._sums),
            "weights": np.array(self._weights),
            "units": np.array(list(self._slots), dtype=np.str_),
            "shares": np.array([self._top, self._all]),
            "counts": np.array(counts),
        }

    def restore(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go on from what `state` gave."""
        self._sums, self._weights = list(state["sums"]), state["weights"].tolist()
        self._slots = {str(unit): k for k, unit in enumerate(state["units"])}
        self._top, self._all = (share.copy() for share in state["shares"])
        self.n_batches, self.n_items, self._merged = (int(count) for count in state["counts"])

    def _batch_ratios(self, hsic: Array) -> Array:
        values = ratios(hsic)
        for name, value in zip(self.names, np.diag(values), strict=True):
            if np.isnan(value):
                raise InvalidInput(
                    f"{name} is constant over a batch, which has no CKA then: use average='hsic', or larger "
                    "or mixed batches."
                )
        return values

    def _value(self, sums: Array, weight: float) -> Array:
        return sums / weight if self.average == "ratio" else ratios(sums)

    def _note(self, hsic: Array, *, weight: float, unit: str) -> None:
        slot = self._slots.setdefault(unit, len(self._slots)) // self._merged
        if slot == MOST_UNITS:
            self._sums = [sum(self._sums[k + 1 : k + 2], self._sums[k]) for k in range(0, MOST_UNITS, 2)]
            self._weights = [sum(self._weights[k : k + 2]) for k in range(0, MOST_UNITS, 2)]
            self._merged *= 2
            slot //= 2
        if slot == len(self._sums):
            self._sums.append(np.zeros_like(hsic))
            self._weights.append(0.0)
        self._sums[slot] += weight * hsic
        self._weights[slot] += weight

    def _check(self, layers: Sequence[EitherMatrix]) -> int:
        if len(layers) != len(self.names):
            raise InvalidInput(f"A batch brought {len(layers)} layers; {len(self.names)} were announced.")
        n = len(layers[0])
        for name, X in zip(self.names, layers, strict=True):
            if X.ndim != 2 or len(X) != n:
                raise InvalidInput(
                    f"{name} has shape {tuple(X.shape)} in a batch of {n} items: every layer of every system "
                    "must bring the same items, as (n_items, n_units)."
                )
        if n < FEWEST_ITEMS:
            raise InvalidInput(f"A batch has {n} items: unbiased CKA needs at least {FEWEST_ITEMS}.")
        return n


def ratios(hsic: Array) -> Array:
    """HSIC_ij / √(HSIC_ii HSIC_jj), 1 on the diagonal, NaN for layers with no HSIC of their own."""
    own = np.where(np.diag(hsic) > 0, np.diag(hsic), np.nan)
    values = hsic / np.sqrt(np.outer(own, own))
    np.fill_diagonal(values, own / own)
    return values


def _centred(X: Matrix, dtype: str, name: str) -> Matrix:
    """Without the column means, which are taken in float64; the caller's array is left as it is.

    In float32 the means are rounded once more, so what is left of them is taken away too.
    """
    if isinstance(X, np.ndarray):
        means = X.mean(axis=0, dtype=np.float64)
        _check_finite(np.isfinite(means), name)
        C = X - means.astype(np.result_type(X.dtype, dtype))
        C -= C.mean(axis=0)
        return C.astype(dtype, copy=False)
    import torch

    # One kind of GPU has no float64.
    means = X.mean(dim=0, dtype=torch.float32 if X.device.type == "mps" else torch.float64)
    _check_finite(torch.isfinite(means), name)
    C = X - means.to(torch.promote_types(X.dtype, getattr(torch, dtype)))
    C -= C.mean(dim=0)
    return C.to(getattr(torch, dtype))


def _check_finite(finite: EitherMatrix, name: str) -> None:
    if not bool(finite.all()):
        raise InvalidInput(
            f"{name} has NaN or infinite values: use a wider dtype for the model (dtype='float32')."
        )
