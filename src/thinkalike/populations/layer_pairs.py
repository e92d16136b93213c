"""Every layer of one system against every layer of another: all that their fingerprints say, in one table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from thinkalike.populations.fingerprint_record import SKETCHED, Fingerprint, similarity_of
from thinkalike.populations.importance_distances import euclidean_matrix, r_squared_matrix


def layer_pairs(one: Fingerprint, other: Fingerprint) -> pd.DataFrame:
    """One row per pair of layers, the most alike first.

    Returns
    -------
    DataFrame
        `layer` of the one and `other_layer`; `tau`, τ_w of their importances; `r_squared`, the squared
        correlation of these, and `euclidean`, their distance, as the third version of Salle et al. has them;
        `rsa` and `cka`, estimated from the sketches.

    Examples
    --------
    >>> import thinkalike as ta
    >>> found = layer_pairs(*ta.Atlas().fingerprints(["nano-gpt2", "nano-bert"]))
    >>> list(found.columns), len(found)
    (['layer', 'other_layer', 'tau', 'r_squared', 'euclidean', 'rsa', 'cka'], 49)
    """
    n = len(one.layers)
    blocks = {"tau": similarity_of([one, other]).values[:n, n:]}
    x, y = one.profile.mean_importance, other.profile.mean_importance
    blocks |= {"r_squared": r_squared_matrix(x, y), "euclidean": euclidean_matrix(x, y)}
    for measure in SKETCHED:
        blocks[measure] = similarity_of([one, other], measure=measure).values[:n, n:]
    first, second = (np.asarray(layers, dtype=object) for layers in (one.layers, other.layers))
    labels = {"layer": np.repeat(first, len(second)), "other_layer": np.tile(second, n)}
    frame = pd.DataFrame({**labels, **{name: block.ravel() for name, block in blocks.items()}})
    return frame.sort_values("tau", ascending=False, kind="stable", ignore_index=True)
