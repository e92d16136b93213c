"""What each measure is blind to: a layer against itself turned, stretched, noisy, with a spike."""

import numpy as np
import pandas as pd

import thinkalike as ta

rng = np.random.default_rng(0)
n_items, n_units = 300, 20
layer = rng.normal(size=(n_items, n_units)) * np.geomspace(3, 0.3, n_units)
turn = np.linalg.qr(rng.normal(size=(n_units, n_units)))[0]
spiky = layer.copy()
spiky[0] *= 100  # one item of huge norm, as language models give their first token

others = {
    "turned": layer @ turn,
    "stretched": layer @ turn @ np.diag(np.geomspace(10, 0.1, n_units)),
    "noisy": layer + rng.normal(size=layer.shape),
    "one spike": spiky,
    "unrelated": rng.normal(size=(n_items, n_units)),
}
names = ["cka", "cka-biased", "rsa", "cca", "regression-cv", "mutual-knn", "procrustes", "gulp"]
table = pd.DataFrame(
    {name: ta.MEASURES[name].matrix([layer], list(others.values()))[0] for name in names}, others
)
print(table.round(2).to_string())
print("\nprocrustes and gulp are distances: 0 is the same. The others are similarities: 1 is the same.")
