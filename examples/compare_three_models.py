"""Compare three language models and ask why two layers are alike."""

import thinkalike as ta

stimuli = ta.Stimuli.from_grammar(n_sentences=200, seed=0)
comparison = ta.compare(["nano-bert", "nano-gpt2", "nano-mamba"], stimuli)

for sentence in comparison.answer:
    print(sentence)

print(comparison.explain("nano-bert", 3, "nano-gpt2", 3))
