"""Brains and home-made networks are systems too: compare plain arrays by features and by geometry.

Two made-up areas answer to the same 300 trials. One cares about the category of what is seen, the other about
where it is; the comparison should say so.
"""

import numpy as np
import pandas as pd

import thinkalike as ta

rng = np.random.default_rng(0)
n_trials, n_units = 300, 40

features = pd.DataFrame(
    {
        "category": pd.Categorical(rng.choice(["face", "house", "tool"], n_trials)),
        "side": pd.Categorical(rng.choice(["left", "right"], n_trials)),
        "colour": pd.Categorical(rng.choice(["red", "green", "blue", "grey"], n_trials)),
    },
    index=[f"trial{number:03d}" for number in range(n_trials)],
)
stimuli = ta.Stimuli(features)


def response(category: float, side: float, colour: float) -> np.ndarray:
    """Units that answer to each feature so strongly, and noise: (n_trials, n_units)."""
    answer = rng.normal(size=(n_trials, n_units))
    for name, strength in {"category": category, "side": side, "colour": colour}.items():
        codes = features[name].cat.codes
        answer += strength * rng.normal(size=(codes.max() + 1, n_units))[codes]
    return answer


monkey = ta.Activations.from_arrays(
    {"V1": response(category=0.2, side=1.5, colour=0.7), "IT": response(category=1.5, side=0.2, colour=0.7)},
    system="monkey",
    stimuli=stimuli,
)
network = ta.Activations.from_arrays(
    {
        "conv1": response(category=0.1, side=1.2, colour=0.8),
        "fc": response(category=1.2, side=0.1, colour=0.5),
    },
    system="network",
    stimuli=stimuli,
)
print(monkey, network, sep="\n")

profiles = [ta.profile(system, stimuli) for system in (monkey, network)]
for profile in profiles:
    print(f"\nWhat the layers of {profile.system} are organised by:")
    mean = pd.DataFrame(
        profile.importance.mean(1), index=list(profile.layers), columns=list(profile.features)
    )
    print(mean.round(3).to_string())

by_geometry = ta.similarity([monkey, network], measure="cka")
print("\nCKA:")
print(pd.DataFrame(by_geometry.values, index=by_geometry.rows, columns=by_geometry.rows).round(2).to_string())

category = mean["category"]
assert category["fc"] > category["conv1"], "the late layer should care more about the category"
