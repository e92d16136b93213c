"""Which attention heads care about number? Every head of two models is a layer of its own."""

import thinkalike as ta

stimuli = ta.Stimuli.from_grammar(n_sentences=60, seed=0)
profiles = {
    name: ta.profile(ta.extract(name, stimuli, site="heads"), stimuli) for name in ("nano-gpt2", "nano-bert")
}
for name, profile in profiles.items():
    best = profile.table()["number"].sort_values(ascending=False).head(3)
    print(f"{name}: number matters most in {', '.join(f'{head} ({v:.3f})' for head, v in best.items())}")

first, second = (profile.table()["number"].idxmax() for profile in profiles.values())
print(ta.explain(profiles["nano-gpt2"], first, profiles["nano-bert"], second))
