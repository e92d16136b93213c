"""What quantised weights do to distances: bundled models, their matrices through the formats' own rounding.

    python -m benchmarks.quantisation

Every matrix of the blocks and the embeddings is quantised and read back, as a model from a GGUF file is. For
each kind of rounding and layer: RSA with the full model over all pairs of words, and weighted τ between the
profiles; beside them what two neighbouring layers of the full model have. Writes
benchmarks/results/quantisation.json.
"""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

MODELS = ("nano-gpt2", "nano-bert", "nano-mamba")
KINDS = ("Q8_0", "Q5_1", "Q4_1", "Q4_0", "nf4", "fp4")
"""GGUF's, and the two of bitsandbytes with 4 bits"""
N_SENTENCES = 100
RESULTS = Path(__file__).parent / "results" / "quantisation.json"


def quantised(model: Any, kind: str) -> Any:
    """A copy whose matrices went through a format's rounding in blocks of 32 (GGUF) or 64 (bitsandbytes)."""
    import torch

    copied = copy.deepcopy(model)
    rounded = through_bitsandbytes if kind in ("nf4", "fp4") else through_gguf
    with torch.no_grad():
        for parameter in copied.parameters():
            if parameter.ndim == 2 and parameter.shape[-1] % 32 == 0:
                parameter.copy_(rounded(parameter.float(), kind))
    return copied


def through_gguf(matrix: Any, kind: str) -> Any:
    import gguf
    import torch

    how = gguf.GGMLQuantizationType[kind]
    return torch.from_numpy(gguf.quants.dequantize(gguf.quants.quantize(matrix.numpy(), how), how))


def through_bitsandbytes(matrix: Any, kind: str) -> Any:
    from bitsandbytes.functional import dequantize_4bit, quantize_4bit

    return dequantize_4bit(*quantize_4bit(matrix.contiguous(), blocksize=64, quant_type=kind))


def measured(name: str) -> dict[str, Any]:
    import thinkalike as ta
    from thinkalike.systems import bundled

    model, tokenizer = bundled.load(name)
    model = model.float()
    stimuli = ta.Stimuli.from_grammar(n_sentences=N_SENTENCES, seed=0)
    full = ta.extract(model, stimuli, processor=tokenizer, system="full")
    profile = ta.profile(full, stimuli)
    between = ta.similarity([full], measure="rsa").values
    found: dict[str, Any] = {"neighbouring layers, RSA": np.diag(between, 1).round(4).tolist()}
    for kind in KINDS:
        rounded = ta.extract(quantised(model, kind), stimuli, processor=tokenizer, system=kind)
        n = len(full.layers)
        alike = ta.similarity([full, rounded], measure="rsa").values[:n, n:]
        tau = ta.similarity([profile, ta.profile(rounded, stimuli)]).values[:n, n:]
        found[kind] = {
            "RSA": np.diag(alike).round(4).tolist(),
            "weighted tau": np.diag(tau).round(3).tolist(),
        }
    return found


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = {name: measured(name) for name in MODELS}
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
