"""Train a small sparse autoencoder on one layer, and look for the latents that tell singular from plural."""

import json
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file

import thinkalike as ta

LAYER, N_LATENTS, K = 3, 512, 12
stimuli = ta.Stimuli.from_grammar(n_sentences=300, seed=0)
acts = ta.extract("nano-gpt2", stimuli)

states = torch.from_numpy(acts[LAYER])
centre, scale = states.mean(0), (states - states.mean(0)).norm(dim=1).mean()
torch.manual_seed(0)
decoder = torch.nn.functional.normalize(torch.randn(N_LATENTS, states.shape[1]), dim=1).requires_grad_()
encoder, bias = decoder.detach().T.clone().requires_grad_(), torch.zeros(N_LATENTS, requires_grad=True)
optimiser = torch.optim.Adam([encoder, bias, decoder], lr=3e-3)
for _ in range(300):
    x = (states[torch.randint(len(states), (256,))] - centre) / scale
    top = (x @ encoder + bias).relu().topk(K, dim=1)
    loss = (
        ((torch.zeros(256, N_LATENTS).scatter(1, top.indices, top.values) @ decoder - x) ** 2).sum(1).mean()
    )
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"{100 * (1 - loss.item()):.0f} % of the variance is in {K} of {N_LATENTS} latents.")

with tempfile.TemporaryDirectory() as folder:  # as SAELens writes it
    tensors = {"W_enc": encoder.detach() / scale, "b_enc": bias.detach(), "b_dec": centre}
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()}, f"{folder}/sae_weights.safetensors"
    )
    Path(folder, "cfg.json").write_text(json.dumps({"architecture": "topk", "k": K}))
    latents = ta.latents(acts, folder, layer=LAYER)

print(latents)
best = latents.best(stimuli, "number", most=5)
print(best.round(3).to_string(index=False))
profile = ta.profile(latents.activations(best["latent"]), stimuli)
print(profile.table().round(3).to_string())
