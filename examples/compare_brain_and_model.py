"""Arrays instead of language models: two noisy "brain areas" against the layers of a network, on pictures.

Anything that gives a vector per item will do. Here the items are trials with an animal at some size and side
of the screen; an early area follows where and how large it is, a late one what it is, and the network moves
from one to the other.
"""

import numpy as np
import pandas as pd

import thinkalike as ta

rng = np.random.default_rng(0)
n_trials = 300
trials = pd.DataFrame(
    {
        "animal": pd.Categorical(rng.choice(["cat", "dog", "owl", "frog"], n_trials)),
        "size": pd.Categorical(
            rng.choice(["small", "medium", "large"], n_trials),
            categories=["small", "medium", "large"],
            ordered=True,
        ),
        "side": pd.Categorical(rng.choice(["left", "right"], n_trials)),
        "colour": pd.Categorical(rng.choice(["grey", "brown", "green"], n_trials)),
        "moving": pd.Categorical(rng.choice(["still", "moving"], n_trials)),
    },
    index=[f"trial{k}" for k in range(n_trials)],
)
stimuli = ta.Stimuli.from_table(trials.rename_axis("item").reset_index())


def respond(n_units: int, noise: float, **care: float) -> np.ndarray:
    """Responses of units with random preferences, stronger for what the area cares about."""
    X = noise * rng.normal(size=(n_trials, n_units))
    for feature, weight in care.items():
        codes = stimuli.features[feature].cat.codes.to_numpy()
        X += weight * rng.normal(size=(codes.max() + 1, n_units))[codes]
    return X


cortex = ta.Activations.from_arrays(
    {
        "V1": respond(80, 2.0, side=1.5, size=1.0, colour=0.5, moving=0.7),
        "IT": respond(80, 2.0, animal=1.5, colour=0.7, size=0.3, moving=0.4),
    },
    system="cortex",
    stimuli=stimuli,
)
network = ta.Activations.from_arrays(
    {
        f"block {k}": respond(
            64, 1.0, side=1.5 - 0.45 * k, size=1.0 - 0.3 * k, colour=0.5, moving=0.3, animal=0.5 * k
        )
        for k in range(4)
    },
    system="network",
    stimuli=stimuli,
)

comparison = ta.compare([cortex, network], stimuli, measures=["cka"])
print(comparison.matrices["features"].table().loc[["cortex:V1", "cortex:IT"]].round(2).to_string())
print()
print(
    comparison.profiles["cortex"].layer_frame()[["layer", "score", "ceiling"]].round(2).to_string(index=False)
)
print()
print(comparison.explain("cortex", "IT", "network", "block 3", groups={"where": ["side", "size"]}))
