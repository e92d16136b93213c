"""Make sentences whose words carry features, and see how far the features can be told apart."""

from pathlib import Path

import thinkalike as ta

OUT = Path("out/stimuli")

plain = ta.Stimuli.from_grammar(n_sentences=500, seed=0)
balanced = ta.Stimuli.from_grammar(n_sentences=500, seed=0, balance=True)

print(*balanced.sentences.head(5), sep="\n")
print(balanced.features.head(8).to_string())
for name, stimuli in {"drawn at random": plain, "balanced": balanced}.items():
    print(f"\n{name}:")
    print(stimuli.correlations().summary().round(2).to_string())

words = balanced.save(OUT / "words.parquet")
balanced.correlations().plot().save(OUT / "correlations.png", scale_factor=2)
print(f"\nWrote {words} and {OUT / 'correlations.png'}; ta.Stimuli.from_table(...) reads the words back.")
