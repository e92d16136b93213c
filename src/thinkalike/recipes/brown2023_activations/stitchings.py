"""All stitches of the experiment, each kept once it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from thinkalike.errors import StoreError
from thinkalike.recipes.brown2023_activations.lens import fetch, load_lens
from thinkalike.recipes.brown2023_activations.scales import ActivationsSettings
from thinkalike.recipes.places import locate
from thinkalike.recipes.steps import Steps, content_digest
from thinkalike.recipes.weights import weights_digest
from thinkalike.systems import bundled
from thinkalike.types import Tokenizer

if TYPE_CHECKING:
    from torch import nn

    from thinkalike.stitching import StitchResult

SELF = "self"


@dataclass(frozen=True, eq=False)
class Workshop:
    """Opens models once, stitches them, and keeps what came out."""

    settings: ActivationsSettings
    steps: Steps
    opened: dict[str, nn.Module] = field(default_factory=dict)

    def model(self, name: str) -> nn.Module:
        """A loaded model with its output layer."""
        if name not in self.opened:
            self.opened[name] = self._load(name)
        return self.opened[name]

    def _load(self, name: str) -> nn.Module:
        folder, device = self.settings.models_folder, self.settings.device
        if self.settings.format == "TransformerLens":
            return load_lens(fetch(name, folder)).to(device)
        from thinkalike.systems.system import LoadOptions, open_system

        return open_system(locate(name, folder), LoadOptions(device=device), head="causal").model

    def tokenizer(self, name: str) -> Tokenizer:
        from thinkalike.systems.names import parse_name
        from thinkalike.systems.pretrained import load_processor

        source = locate(self.settings.tokenizer or name, self.settings.models_folder)
        tokenizer: Tokenizer = load_processor(parse_name(source), "text")  # of a folder without a model too
        return tokenizer

    def identity(self, name: str) -> str:
        return weights_digest(self.model(name))

    @property
    def text(self) -> Path:
        return Path(self.settings.text or bundled.sample_text())

    def stitch(
        self,
        bottom: str,
        top: str,
        labels: tuple[str, str],
        *,
        by_task: bool,
        layers: list[tuple[int, int]],
        floor: bool,
    ) -> StitchResult:
        """Stitch `bottom` to `top`, by task loss as the paper does, or by least squares."""
        from thinkalike.stitching import StitchResult, TaskFit, stitch

        s = self.settings
        names = ("steps", "warmup", "batch_tokens", "every", "validation_tokens")
        how = s.only(*names) if by_task else None
        common = s.only("max_tokens", "length", "seed")
        about = {**common, "how": how, "kind": s.kind, "layers": layers, "floor": floor}
        about |= {"bottom": self.identity(bottom), "top": self.identity(top)}
        about["text"] = content_digest(self.text)
        folder = self.steps.path(f"stitch-{bottom}-{top}-{'task' if by_task else 'squares'}", about)
        try:
            return StitchResult.load(folder)
        except StoreError:
            pass
        result = stitch(
            self.model(bottom),
            self.model(top),
            self.text,
            layers=layers,
            kind=s.kind if by_task else "affine",
            fit=TaskFit(**how, patience=None) if how is not None else "least-squares",
            floor=floor,
            ceiling=not by_task,
            names=labels,
            tokenizer=self.tokenizer(top),
            split="paragraphs",
            resamples=s.resamples,
            device=s.device,
            checkpoint=folder.with_name(f"{folder.name}.checkpoint") if by_task else None,
            **common,
        )
        result.save(folder)
        return result

    def cka(self, names: Mapping[str, str]) -> dict[str, np.ndarray]:
        """CKA between all blocks of the models (label → name): `values`, and `depths` of the models."""
        from thinkalike.streaming.over_text import stream_cka
        from thinkalike.systems.stack import layers_of

        s = self.settings
        about: dict[str, object] = {"models": {label: self.identity(name) for label, name in names.items()}}
        about |= {
            "length": s.length,
            "batches": s.cka_batches,
            "text": content_digest(self.text),
            "seed": s.seed,
            "average": "ratio",
        }

        def compute() -> dict[str, np.ndarray]:
            models = {label: self.model(name) for label, name in names.items()}
            depths = [layers_of(model).n_blocks for model in models.values()]
            matrix = stream_cka(
                models,
                self.text,
                split="paragraphs",
                length=s.length,
                layers=list(range(1, min(depths) + 1)),
                max_batches=s.cka_batches,
                tokenizer=self.tokenizer(next(iter(names.values()))),
                device=s.device,
                seed=s.seed,
                average="ratio",  # the mean of ratios over batches, as in the paper
            )
            return {"values": matrix.values, "depths": np.array(depths)}

        return self.steps.arrays(f"cka-{'-'.join(names)}", about, compute)


def penalty_rows(result: StitchResult, size: str) -> pd.DataFrame:
    """Rows of size, bottom, top, layer (of the bottom), penalty, low, high; with the top by itself."""
    frame = result.to_frame(roles=True)
    frame = frame[frame["role"] != "untrained"]
    return pd.DataFrame(
        {
            "size": size,
            "bottom": frame["bottom"],
            "top": frame["top"],
            "layer": frame["layer_bottom"].astype(int),
            "penalty": frame["penalty"].astype(float),
            "low": frame["low"].astype(float),
            "high": frame["high"].astype(float),
        }
    ).reset_index(drop=True)


def curve_rows(result: StitchResult, size: str) -> pd.DataFrame:
    """Rows of size, series (`GeLU → SoLU`), layer, step, split, loss; of the pairs and of the floor."""
    names = {"pair": result.bottom, SELF: result.top}
    curves = result.curves[result.curves["role"].isin(list(names))]
    series = [f"{names[role]} → {result.top}" for role in curves["role"]]
    return pd.DataFrame(
        {
            "size": size,
            "series": series,
            "layer": curves["layer_bottom"].astype(int),
            "step": curves["step"].astype(int),
            "split": curves["split"],
            "loss": curves["loss"].astype(float),
        }
    ).reset_index(drop=True)


def same_layers(depth: int) -> list[tuple[int, int]]:
    return [(layer, layer) for layer in range(1, depth + 1)]
