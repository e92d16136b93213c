"""How differently two models of one vocabulary answer: from their logits, item by item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, rel_entr

from thinkalike.errors import InvalidInput
from thinkalike.measures.inputs import Array, Vectors, as_layer, same_items
from thinkalike.measures.measure import Measure


@dataclass(frozen=True)
class OutputMeasure(Measure):
    """A row of the table that takes the logits of two models, (n_items, n_tokens) each."""

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> float:
        first, second = as_layer(X, "X", minimum=1), as_layer(Y, "Y", minimum=1)
        same_items(first, second)
        if first.shape[1] != second.shape[1]:
            raise InvalidInput(
                f"X has {first.shape[1]} outputs and Y has {second.shape[1]}: {self.name} compares models of "
                "one vocabulary (or with the same classes)."
            )
        return float(self.compare(self.prepare(first, "X"), self.prepare(second, "Y")))


def prepare_logits(X: Vectors, name: str = "X") -> Array:
    """In float64."""
    return X.astype(np.float64)


def prepare_probabilities(X: Vectors, name: str = "X") -> Array:
    """Softmax of each row."""
    return np.exp(log_softmax(X.astype(np.float64), axis=1))


def jensen_shannon(P: Array, Q: Array) -> float:
    """Mean over items of (KL(p ‖ m) + KL(q ‖ m)) / 2 with m = (p + q)/2, in bits, in [0, 1]. Lin 1991."""
    M = (P + Q) / 2
    each = (rel_entr(P, M) + rel_entr(Q, M)).sum(axis=1) / (2 * np.log(2))
    return float(np.clip(each, 0, 1).mean())


def disagreement(X: Array, Y: Array) -> float:
    """Share of items whose likeliest output differs, in [0, 1]. Madani et al. 2004."""
    return float((X.argmax(axis=1) != Y.argmax(axis=1)).mean())
