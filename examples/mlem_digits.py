"""Which properties of handwritten digits explain how far apart their images are?

MLEM is not about language: any items with features and any vectors will do, here 8 × 8 pixels.
"""

import pandas as pd
from sklearn.datasets import load_digits

import thinkalike as ta
from thinkalike.encoding import compare_interactions, cross_validate

digits = load_digits()
images, digit = digits.data, digits.target
ink = images.sum(axis=1)
features = pd.DataFrame(
    {
        "digit": pd.Categorical(digit.astype(str)),
        "loop": pd.Categorical(pd.Series(digit).isin([0, 6, 8, 9]).map({True: "yes", False: "no"})),
        "even": digit % 2 == 0,
        "ink": pd.qcut(ink, 4, labels=["least", "less", "more", "most"]),
    }
)

mlem = ta.MLEM().fit(features, images)
print(f"Squared distance ≈ {mlem.intercept_:.0f} + weight of each feature in which two images differ:")
print(mlem.weights_.round(1).to_string())
print(f"ρ over all {mlem.n_pairs_:,} pairs: {mlem.score(features, images):.3f}\n")

held_out = cross_validate(features, images, groups={"identity": ["digit", "loop", "even"]})
print("Held out, with the three that follow from the digit as one group:")
print(held_out.to_frame().round(3).to_string(index=False))
print(f"ρ per fold: {held_out.scores[0].round(3)}; the penalty matters: {held_out.alpha_matters[0]}\n")

print(compare_interactions(features, images))
