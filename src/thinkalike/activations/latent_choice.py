"""Which latents of which autoencoder `extract` gives in place of the layers that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from thinkalike.activations.autoencoders import SparseAutoencoder
from thinkalike.activations.sparse_latents import latents as encode
from thinkalike.activations.store import Activations, Layer
from thinkalike.errors import InvalidInput
from thinkalike.options import whole_number
from thinkalike.types import Facts, Json

if TYPE_CHECKING:
    from thinkalike.stimuli.table import Stimuli

MOST = 10
"""Latents that `best` gives at most"""
OPTIONS = ("autoencoder", "layer", "latents", "best")


@dataclass(frozen=True)
class LatentChoice:
    """An autoencoder, the layer that it was trained on, and some of its latents: these, or the best."""

    autoencoder: SparseAutoencoder | str | Path
    layer: Layer
    latents: tuple[int, ...] | None
    best: str | None

    @classmethod
    def asked(
        cls,
        autoencoder: SparseAutoencoder | str | Path | None,
        layer: Layer | None,
        latents: Sequence[int] | None,
        best: str | None,
    ) -> LatentChoice | None:
        """The choice that these options of `extract` make; None if there is no autoencoder."""
        if autoencoder is None:
            idle = [n for n, v in (("layer", layer), ("latents", latents), ("best", best)) if v is not None]
            if idle:
                raise InvalidInput(f"{idle[0]} says something of an autoencoder: give autoencoder=… too.")
            return None
        if layer is None:
            raise InvalidInput("An autoencoder was trained on one layer: say which, with layer=….")
        if (latents is None) == (best is None):
            raise InvalidInput(
                "Choose latents of the autoencoder: latents=[12, 77], or best='FEATURE' for the "
                f"{MOST} that tell the levels of a feature apart."
            )
        numbers = None if latents is None else tuple(whole_number("latents", k, 0) for k in latents)
        return cls(autoencoder, layer, numbers, best)

    def of(self, states: Activations, stimuli: Stimuli, out: str | Path | None) -> Activations:
        """The chosen latents of the residual stream, each a layer of one unit; kept at `out` if given."""
        found = encode(states, self.autoencoder, layer=self.layer)
        about: Json = {}
        chosen = self.latents
        if chosen is None:
            assert self.best is not None
            table = found.best(_of_rows(stimuli, states), self.best, most=MOST)
            if table.empty:
                raise InvalidInput(
                    f"No latent of {found.name} tells the levels of {self.best!r} apart in these items."
                )
            chosen = tuple(int(latent) for latent in table["latent"])
            about = {"best": self.best, "worth": table.to_dict("list")}
        made = found.activations(chosen)
        made = replace(made, metadata={**made.metadata, **about})
        if out is None:
            return made
        made.save(out)
        return replace(Activations.open(out), system=made.system, stimuli_digest=made.stimuli_digest)


def _of_rows(stimuli: Stimuli, states: Activations) -> Stimuli:
    """The stimuli that have a row: first tokens may have been left out."""
    if states.n_items >= len(stimuli):
        return stimuli
    return stimuli.subset(stimuli.items.index.isin(states.item_names))


def without_latents(options: Mapping[str, object]) -> tuple[Json, int | None]:
    """Options of `extract` that read whole layers, and how many latents would be made of them."""
    kept = {name: value for name, value in options.items() if name not in OPTIONS}
    if options.get("autoencoder") is None:
        return kept, None
    chosen = options.get("latents")
    return kept, len(chosen) if isinstance(chosen, Sequence) else MOST


def options_again(about: Facts) -> Json:
    """The options of `extract` that give the same latents again, from the metadata of some."""
    if about.get("site") != "latents":
        return {}
    return {"site": "residual", **{name: about[name] for name in ("autoencoder", "layer", "latents")}}
