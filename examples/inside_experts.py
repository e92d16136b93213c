"""Which expert of a mixture does number decide on? A small one with random weights, and one truth built in.

The router of block 2 sends plural words to expert 3: the profile of all experts should name it.
"""

import torch
import transformers

import thinkalike as ta
from thinkalike.systems import bundled

stimuli = ta.Stimuli.from_grammar(n_sentences=100, seed=0)
tokenizer = bundled.load("nano-gpt2")[1]
torch.manual_seed(0)
model = transformers.MixtralModel(
    transformers.MixtralConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        num_local_experts=4,
        pad_token_id=0,
    )
).eval()

plural = stimuli.items["word"][stimuli.features["number"] == "plural"].unique()
marked = {tokenizer(f" {word}")["input_ids"][-1] for word in plural}
with torch.no_grad():  # number in the last direction of the stream, which only that router reads
    model.embed_tokens.weight.mul_(50)
    model.embed_tokens.weight[:, -1] = torch.tensor(
        [3.0 if t in marked else -3.0 for t in range(len(tokenizer))]
    )
    for block in model.layers:
        block.mlp.gate.weight.mul_(10)
        block.mlp.gate.weight[:, -1] = 0
    model.layers[1].mlp.gate.weight[3] = 0
    model.layers[1].mlp.gate.weight[3, -1] = 5

experts = ta.extract(model, stimuli, processor=tokenizer, site="experts", system="mixture")
table = ta.profile(experts, stimuli).table()
print(table["number"].sort_values(ascending=False).head(4).to_string())
print(f"Number decides most on {table['number'].idxmax()}.")
