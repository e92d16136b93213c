"""What does the frame of a chat do to the words in it? The same words plain, as a turn, after a system turn.

The bundled models were not trained to chat, so a template is made up; one that was brings its own.
"""

import thinkalike as ta
from thinkalike.systems import bundled

model, tokenizer = bundled.load("nano-gpt2")
tokenizer.chat_template = (
    "{% for turn in messages %}{{ turn['role'] }}: {{ turn['content'] }}.\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
stimuli = ta.Stimuli.from_grammar(n_sentences=100, seed=0)
systems = {
    "plain": {},
    "a turn": {"chat": True},
    "after a system turn": {"chat": True, "system_turn": "You are a careful reader of the Bible"},
}
read = [ta.extract(model, stimuli, processor=tokenizer, system=name, **how) for name, how in systems.items()]
print(
    ta.similarity(read, measure="cka")
    .to_frame()
    .query("layer_a == 6 and layer_b == 6")
    .to_string(index=False)
)
for acts in read:
    print(f"{acts.system}: {ta.profile(acts, stimuli).table().loc[6].round(3).to_dict()}")

prompts = ["The king and the queen", "In the beginning"]
written = ta.extract("nano-gpt2", prompts, generate=8, pooling="mean", cache=False)
for prompt, text in zip(prompts, written.metadata["written"], strict=True):
    print(f"{prompt!r} → {text!r}")
