"""Images: what does a small vision transformer care about, before and after it has learned to read digits?

scikit-learn's 8 × 8 digits, a ViT of three layers that trains for some seconds on a CPU, and the bare pixels
as a third system. No network is needed.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

import thinkalike as ta

OUT = Path("out/images")
OUT.mkdir(parents=True, exist_ok=True)

torch.manual_seed(0)
digits = load_digits()
images = (digits.images * 255 / 16).astype(np.uint8)
shown, unseen = np.arange(300), np.arange(300, len(images))

# A model and its processor, as they would come from a hub or a folder.
processor = ViTImageProcessorPil(size={"height": 8, "width": 8})
sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 128}
model = ViTForImageClassification(ViTConfig(image_size=8, patch_size=2, num_labels=10, **sizes))

# The stimuli: which digit it is, and how much ink it takes.
ink = images[shown].mean((1, 2))
features = pd.DataFrame(
    {
        "digit": pd.Categorical(digits.target[shown]),
        "ink": pd.qcut(ink, 5, labels=["least", "less", "middling", "more", "most"]),
    },
    index=[f"image{number}" for number in shown],
)
stimuli = ta.Stimuli(features)
pixels = ta.Activations.from_arrays(
    {0: digits.images[shown].reshape(len(shown), -1)}, system="pixels", stimuli=stimuli
)


def extract(system: str) -> ta.Activations:
    return ta.extract(model, stimuli, inputs=list(images[shown]), processor=processor, system=system)


before = extract("untrained ViT")

ready = processor(images=[np.dstack([image] * 3) for image in images], return_tensors="pt")["pixel_values"]
labels = torch.from_numpy(digits.target)
optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
model.train()
for _ in range(12):
    for batch in torch.randperm(len(unseen)).split(64):
        chosen = torch.from_numpy(unseen)[batch]
        loss = model(pixel_values=ready[chosen], labels=labels[chosen]).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
model.eval()
with torch.inference_mode():
    accuracy = (model(pixel_values=ready[shown]).logits.argmax(1) == labels[shown]).float().mean().item()
print(f"The model reads {accuracy:.0%} of the digits that it was not trained on.")

after = extract("trained ViT")

profiles = [ta.profile(system, stimuli) for system in (pixels, before, after)]
importance = pd.concat(
    {
        profile.system: pd.DataFrame(
            np.nanmean(profile.importance, axis=1), index=list(profile.layers), columns=list(profile.features)
        )
        for profile in profiles
    },
    names=["system", "layer"],
)
print("\nWhat the layers are organised by:")
print(importance.round(3).to_string())

geometry = ta.similarity([pixels, before, after], measure="cka")
geometry.plot().save(OUT / "cka.png", scale_factor=2)
print(f"\nWrote {OUT / 'cka.png'}: how alike the layers are by CKA.")

digit = importance["digit"]
assert digit["trained ViT"].iloc[-1] > digit["untrained ViT"].iloc[-1], "training should make digits matter"
