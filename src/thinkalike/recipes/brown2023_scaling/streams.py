"""CKA over text, loss and configuration of the models of a family; every result is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.progress import progress
from thinkalike.recipes.brown2023_scaling.flattened import flattened_cka, whole_passages
from thinkalike.recipes.brown2023_scaling.scales import ScalingSettings
from thinkalike.recipes.places import identity, locate
from thinkalike.recipes.steps import Steps, content_digest
from thinkalike.streaming.text_passages import documents_of
from thinkalike.systems import bundled
from thinkalike.systems.system import LoadOptions, open_system
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

    @cached_property
    def text_digest(self) -> str:
        return content_digest(self.text)

    def place(self, model: str) -> str:
        return locate(model, self.settings.models_folder)

    @cached_property
    def parts(self) -> list[list[str]]:
        """The paragraphs of the text, dealt into parts at random."""
        paragraphs = [str(one) for one in documents_of(self.text, "paragraphs")]
        order = np.random.default_rng(self.settings.seed).permutation(len(paragraphs))
        n = self.settings.parts
        if len(paragraphs) < 2 * n:
            raise InvalidInput(
                f"{self.text.name} has {len(paragraphs)} paragraphs, too few for {n} parts: give more text, "
                "or fewer parts."
            )
        return [[paragraphs[k] for k in order[part::n]] for part in range(n)]

    def families(self, names: Sequence[str], **options: Option) -> list[dict[Pair, Floats]]:
        """`family` on every part of the text."""
        with progress(f"CKA of {', '.join(names)}", len(self.parts)) as bar:
            found = []
            for part in range(len(self.parts)):
                found.append(self.family(names, part, **options))
                bar.advance()
        return found

    def flattened(self, names: Sequence[str]) -> list[dict[Pair, Floats]]:
        """Sample-level CKA of the members on every part of the text."""
        s = self.settings
        about = {
            "models": {name: identity(name, s.models_folder) for name in names},
            "text": self.text_digest,
            **s.only("parts", "seed", "flattened_length", "flattened_passages", "dtype"),
        }

        def compute() -> dict[str, np.ndarray]:
            opened = {name: open_system(self.place(name), LoadOptions(device="cpu")) for name in names}
            tokenizer = next(iter(opened.values())).tokenizer
            models = {name: system.model for name, system in opened.items()}
            found = {}
            for part, texts in enumerate(self.parts):
                tokens = whole_passages(texts, tokenizer, s.flattened_length, s.flattened_passages)
                for (a, b), values in flattened_cka(models, tokens).items():
                    found[f"{part}|{a}|{b}"] = values
            return found

        kept = self.steps.arrays("flattened", about, compute)
        parts = range(len(self.parts))
        return [{(a, b): kept[f"{part}|{a}|{b}"] for a in names for b in names} for part in parts]

    def family(self, names: Sequence[str], part: int, **options: Any) -> dict[Pair, Floats]:
        """CKA between the blocks of every two members, and within each: (a, b) → (layers of a, of b)."""
        groups = [tuple(names)] if self.settings.at_once or len(names) == 1 else list(combinations(names, 2))
        found: dict[Pair, Floats] = {}
        for group in groups:
            kept = self._stream(group, part, **options)
            for a in group:
                for b in group:
                    found[a, b] = kept[f"{a}|{b}"]
        return found

    def within(self, name: str) -> list[Floats]:
        """CKA between the blocks of one model, on every part of the text."""
        return [one[name, name] for one in self.families([name])]

    def _stream(
        self, names: Sequence[str], part: int, *, untrained: bool = False, drop_first: int = 0
    ) -> dict[str, Floats]:
        from thinkalike.streaming import stream_cka

        reading = self.settings.only("length", "dtype", "seed")
        if untrained:  # each part has its own draw of random weights, so that the range is over both
            reading["seed"] = self.settings.parts * self.settings.seed + part
        batches = max(1, self.settings.max_batches // self.settings.parts)
        reading |= {"drop_first": drop_first, "max_batches": batches}
        about = {
            "models": {name: identity(name, self.settings.models_folder) for name in names},
            "untrained": untrained,
            "text": self.text_digest,
            "part": f"{part} of {self.settings.parts}",
            **reading,
        }

        def compute() -> dict[str, np.ndarray]:
            ending = ":untrained" if untrained else ""
            found = stream_cka(
                {name: f"{self.place(name)}{ending}" for name in names},
                self.parts[part],
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
            "text": self.text_digest,
            "tokens": self.settings.loss_tokens,
        }
        found: dict[str, float] = self.steps.json("loss", about, lambda: self._measure_loss(name))
        return found

    def _measure_loss(self, name: str) -> dict[str, float]:
        from thinkalike.systems.likelihood import causal_log_probabilities

        system = open_system(self.place(name), LoadOptions(device="cpu"), head="causal")
        model = cast("Model", system.model)
        n = self.settings.loss_tokens
        text = _beginning(self.text, 8 * n)
        ids = system.tokenizer(text, verbose=False)["input_ids"][:n]
        loss = -float(np.mean(causal_log_probabilities(model, np.array(ids))))
        return {"loss": loss, "parameters": float(model.num_parameters())}

    def shape(self, name: str) -> dict[str, float]:
        """Width, depth, units of an attention head and how many of them rotate, from the configuration."""
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
    path = min(text.rglob("*.txt")) if text.is_dir() else text
    with path.open(encoding="utf-8") as file:
        return file.read(n_characters)
