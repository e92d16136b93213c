r"""Importances as other sentences would give them: draws from what leaving sentences out says.

With θ₍g₎ the importances of a model without part g of the sentences, one of G, and z_g standard normal,

    θ* = θ + √((G − 1)/n) Σ_g z_g (θ₍g₎ − θ̄)

has the mean θ and the covariance that the jackknife gives. The same z serves all models, which were shown the
same sentences. Trees and maps are drawn again from such importances.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.populations.fingerprint_record import Fingerprint


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
