"""Probes beside profiles: what can be read off a layer is not what organises it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from thinkalike.activations.store import Activations
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import profile
from thinkalike.errors import InvalidInput
from thinkalike.measures.probes import ProbeResult, probe_layers
from thinkalike.stimuli.table import Stimuli

COLUMNS = (
    "layer",
    "feature",
    "importance",
    "probe",
    "control",
    "selectivity",
    "chance",
    "score",
    "why_not",
)


def probes_beside_profile(
    activations: Activations,
    stimuli: Stimuli,
    *,
    profiled: Profile | None = None,
    groups: str | None = "sentence",
    folds: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """For every layer and feature: how well a linear probe reads it, and how important it is for distances.

    A feature with high selectivity and no importance is readable, but does not organise the layer.

    Parameters
    ----------
    activations : Activations
        Of one system.
    stimuli : Stimuli
    profiled : Profile, optional
        Of these activations; made if not given.
    groups, folds, seed : of the probes, as in `probe_layers`

    Returns
    -------
    DataFrame
        A row per layer and feature: `importance`, `probe` (held-out accuracy, or R² of numbers), `control`
        (the same on labels that mean nothing), `selectivity` (probe − control, Hewitt and Liang 2019),
        `chance`, `score` (which of the two it is), and `why_not` where a feature cannot be probed.

    Examples
    --------
    A feature in one of many directions can be read, and still organises little:

    >>> import numpy as np
    >>> import pandas as pd
    >>> import thinkalike as ta
    >>> from thinkalike.comparison import probes_beside_profile
    >>> rng = np.random.default_rng(0)
    >>> labels = pd.DataFrame({"loud": rng.choice(["a", "b"], 80), "quiet": rng.choice(["a", "b"], 80)})
    >>> X = rng.normal(size=(80, 20)) + 2 * (labels["loud"] == "a").to_numpy()[:, None]
    >>> X[:, 0] += 4 * (labels["quiet"] == "a")
    >>> found = probes_beside_profile(
    ...     ta.Activations.from_arrays({1: X}), ta.Stimuli.from_table(labels), groups=None
    ... ).set_index("feature")
    >>> found["probe"].gt(0.9).tolist(), bool(found["importance"]["loud"] > 3 * found["importance"]["quiet"])
    ([True, True], True)
    """
    made = profile(activations, stimuli) if profiled is None else profiled
    if made.layers != tuple(activations.layers):
        raise InvalidInput(
            f"The profile has other layers than {activations.system}: give that of these activations."
        )
    tables = []
    for k, feature in enumerate(made.features):
        columns: dict[str, object] = {
            "layer": list(made.layers),
            "feature": feature,
            "importance": made.mean_importance[:, k],
        }
        try:
            found = probe_layers(activations, stimuli, feature, groups=groups, folds=folds, seed=seed)
            columns |= _columns(found)
        except InvalidInput as error:
            columns |= {"why_not": str(error)}
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True).reindex(columns=list(COLUMNS))


def _columns(found: ProbeResult) -> dict[str, object]:
    means = found.scores.mean(axis=1)
    return {
        "probe": means,
        "control": found.control,
        "selectivity": means - found.control,
        "chance": np.full(len(means), found.chance),
        "score": found.score,
        "why_not": "",
    }
