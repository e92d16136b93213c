"""CKA over text, loss and configuration of the models of a family; every result is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from thinkalike.inference.blocks import Floats
from thinkalike.recipes.brown2023_scaling.scales import ScalingSettings
from thinkalike.recipes.places import identity, locate
from thinkalike.recipes.steps import Steps
from thinkalike.systems import bundled
from thinkalike.types import Config, Model, Option

Pair = tuple[str, str]


@dataclass(frozen=True)
class Streams:
    """The settings of a run, and where its steps are kept."""

    settings: ScalingSettings
    steps: Steps

    @property
    def text(self) -> Path:
        return bundled.sample_text() if self.settings.text is None else Path(self.settings.text)

    def place(self, model: str) -> str:
        return locate(model, self.settings.models_folder)

    def family(self, names: Sequence[str], **options: Option) -> dict[Pair, Floats]:
        """CKA between the blocks of every two members, and within each: (a, b) → (layers of a, of b)."""
        groups = [tuple(names)] if self.settings.at_once or len(names) == 1 else list(combinations(names, 2))
        found: dict[Pair, Floats] = {}
        for group in groups:
            kept = self._stream(group, **options)
            for a in group:
                for b in group:
                    found[a, b] = kept[f"{a}|{b}"]
        return found

    def within(self, name: str) -> Floats:
        """CKA between the blocks of one model."""
        return self.family([name])[name, name]

    def _stream(
        self, names: Sequence[str], *, untrained: bool = False, drop_first: int = 0
    ) -> dict[str, Floats]:
        from thinkalike.streaming import stream_cka

        reading = self.settings.only("length", "max_batches", "dtype", "seed")
        reading |= {"drop_first": drop_first}
        about = {
            "models": {name: identity(name, self.settings.models_folder) for name in names},
            "untrained": untrained,
            "text": str(self.text),
            "size": self.text.stat().st_size,
            **reading,
        }

        def compute() -> dict[str, np.ndarray]:
            ending = ":untrained" if untrained else ""
            found = stream_cka(
                {name: f"{self.place(name)}{ending}" for name in names},
                self.text,
                average="ratio",  # as in the paper
                checkpoint=self.steps.path("unfinished", about).with_suffix(".npz"),
                **reading,
            )
            # The paper reads after each block; layer 0, the embeddings, is left out.
            return {f"{a}|{b}": found.block(a, b)[1:, 1:] for a in names for b in names}

        (self.steps.out / "steps").mkdir(parents=True, exist_ok=True)
        return self.steps.arrays("cka", about, compute)

    def loss(self, name: str) -> dict[str, float]:
        """Mean cross-entropy of the next token on the text, in nats, and the number of parameters."""
        about = {
            "model": identity(name, self.settings.models_folder),
            "text": str(self.text),
            "tokens": self.settings.loss_tokens,
        }
        found: dict[str, float] = self.steps.json("loss", about, lambda: self._measure_loss(name))
        return found

    def _measure_loss(self, name: str) -> dict[str, float]:
        from thinkalike.systems.likelihood import causal_log_probabilities
        from thinkalike.systems.system import LoadOptions, open_system

        system = open_system(self.place(name), LoadOptions(device="cpu"), head="causal")
        model: Model = system.model
        n = self.settings.loss_tokens
        text = _beginning(self.text, 8 * n)
        ids = system.tokenizer(text, verbose=False)["input_ids"][:n]
        loss = -float(np.mean(causal_log_probabilities(model, np.array(ids))))
        return {"loss": loss, "parameters": float(model.num_parameters())}

    def shape(self, name: str) -> dict[str, float]:
        """Width, depth, units of an attention head and how many of them rotate, from the configuration."""
        from thinkalike.systems.system import open_system

        return head_shape(open_system(self.place(name)).config)


def head_shape(config: Config) -> dict[str, float]:
    """What Table 1 of the paper lists, and the size of the model."""
    d_head = config.hidden_size // config.num_attention_heads
    rope = getattr(config, "rope_parameters", None) or {}
    share = rope.get("partial_rotary_factor", getattr(config, "rotary_pct", 1.0))
    return {
        "width": config.hidden_size,
        "layers": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "d_head": d_head,
        "rotary_dim": int(d_head * share),
    }


def _beginning(text: Path, n_characters: int) -> str:
    """The first characters of a file, or of the first file of a folder."""
    path = min(text.glob("*.txt")) if text.is_dir() else text
    with path.open(encoding="utf-8") as file:
        return file.read(n_characters)
