"""Taking the directions of a feature out of states, and as much along random ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats

NOTHING = 1e-10
"""Of the largest spread between levels: what is below it is rounding"""


@dataclass(frozen=True, eq=False)
class Directions:
    """Where the levels of a feature lie apart in a layer.

    Attributes
    ----------
    mean : (n_units,)
        Of the items that have the feature: what is left of a state there.
    basis : (n_units, k)
        Orthonormal; k is one less than the number of levels, or fewer.
    """

    mean: Floats = field()
    basis: Floats = field()

    @classmethod
    def of(cls, states: Floats, levels: pd.Series) -> Directions:
        """From states (n_items, n_units) and the level of each item; items without one are left out.

        The basis spans the means of the levels, about the mean of these means. With all of it taken out, the
        levels have one mean, so no plane tells them apart on average.
        """
        known = levels.notna().to_numpy()
        codes, names = pd.factorize(levels[known])
        if len(names) < 2:
            raise InvalidInput(f"{levels.name} has {len(names)} level here: a direction takes two or more.")
        own = np.asarray(states, dtype=np.float64)[known]
        means = np.stack([own[codes == k].mean(axis=0) for k in range(len(names))])
        spread = means - means.mean(axis=0)
        _, sizes, rows = np.linalg.svd(spread, full_matrices=False)
        return cls(means.mean(axis=0), rows[sizes > NOTHING * sizes[0]].T)

    def random(self, rng: np.random.Generator) -> Floats:
        """As many random directions, orthonormal: (n_units, k)."""
        return np.linalg.qr(rng.normal(size=self.basis.shape))[0]

    def removed(self, states: torch.Tensor, instead: Floats | None = None) -> torch.Tensor:
        """States (…, n_units) without what they have along the basis.

        Parameters
        ----------
        instead : (n_units, k), orthonormal: the same amounts are taken out along these, the control.
        """
        mean, basis = (torch.from_numpy(part).to(states) for part in (self.mean, self.basis))
        along = basis if instead is None else torch.from_numpy(instead).to(states)
        return states - ((states - mean) @ basis) @ along.T
