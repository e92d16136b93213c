"""A world where the truth is known: does the method find what was planted, and only that?

Ada and Bob are organised by part of speech and number, Cleo by word position and length. Every level of a
feature is a random direction in a system's space; the rest is noise.
"""

import numpy as np
import pandas as pd

import thinkalike as ta

stimuli = ta.Stimuli.from_grammar(n_sentences=150, seed=0)


def plant(system: str, weights: dict[str, float], n_layers: int, seed: int) -> ta.Activations:
    rng = np.random.default_rng(seed)
    layers = {}
    for layer in range(n_layers):
        X = rng.normal(size=(len(stimuli), 32))
        for feature, weight in weights.items():
            levels = pd.factorize(stimuli.features[feature])[0]  # −1: the word has no such feature
            directions = weight * rng.normal(size=(levels.max() + 1, 32))
            X += np.where(levels[:, None] >= 0, directions[levels], 0.0)
        layers[layer] = X
    return ta.Activations.from_arrays(layers, system=system, stimuli=stimuli)


ada = plant("ada", {"part_of_speech": 1.5, "number": 1.5}, n_layers=3, seed=1)
bob = plant("bob", {"part_of_speech": 1.5, "number": 1.5}, n_layers=5, seed=2)
cleo = plant("cleo", {"word_position": 1.5, "word_length": 1.5}, n_layers=4, seed=3)

comparison = ta.compare([ada, bob, cleo], stimuli, resamples=50)
print(*comparison.answer, sep="\n")
print()
print(comparison.blocks()[["a", "b", "mean", "p_mean", "q", "mean_rsa"]].round(3).to_string(index=False))
print()
print(comparison.explain("ada", 0, "cleo", 2))

assert comparison.answer.alike.startswith("ada and bob are the most alike")
