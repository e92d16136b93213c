"""CKA between the chosen classifiers, read in four ways: before or after the residual, padding or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.comparison.model_distances import block_places, model_distances
from thinkalike.labels import Floats
from thinkalike.recipes.brown2023_generalization.classifiers import sets_of
from thinkalike.recipes.brown2023_generalization.data import Pairs
from thinkalike.recipes.brown2023_generalization.scales import GeneralizationSettings
from thinkalike.recipes.steps import Steps
from thinkalike.streaming.over_text import stream_cka
from thinkalike.streaming.passages import Padding
from thinkalike.types import Tokenizer

if TYPE_CHECKING:
    from torch import nn

    from thinkalike.streaming.cka_matrix import CKAMatrix, Row

VARIANTS: dict[str, tuple[str, Padding]] = {
    "before the residual, padding kept": ("block", "keep"),
    "before the residual, padding masked": ("block", "mask"),
    "after the residual, padding kept": ("residual", "keep"),
    "after the residual, padding masked": ("residual", "mask"),
}
PAPER_VARIANT = "before the residual, padding kept"
CLEAN_VARIANT = "after the residual, padding masked"


@dataclass(frozen=True, eq=False)
class Geometry:
    """One variant: CKA of equal layers, and the distances of whole models that follow from it, by set."""

    cka: Floats = field()
    """(n_sets, n_blocks, m, m)"""
    distances: Floats = field()
    """(n_sets, m, m) √Σ arccos² CKA over blocks (Brown et al. 2023, eq. 2)"""

    def among(self, places: npt.NDArray[np.intp]) -> Geometry:
        """Of some of the models."""
        return Geometry(between(self.cka, places), between(self.distances, places))


def between(values: Floats, places: npt.NDArray[np.intp]) -> Floats:
    """Of values (…, m, m) those between some of the models."""
    return values[..., places[:, None], places[None, :]]


def geometries(
    models: Mapping[str, nn.Module],
    pairs: Pairs,
    settings: GeneralizationSettings,
    *,
    tokenizer: Tokenizer,
    key: Mapping[str, object],
    steps: Steps,
) -> dict[str, Geometry]:
    """All variants; each set of texts is kept once it is done."""
    texts = pairs.texts[: settings.n_cka]
    about = {"key": key, "n": len(texts), "data": pairs.name, "average": "ratio", "batch": "chunks"}
    about |= settings.only("cka_length", "cka_batch", "seed", "sets")
    found = {}
    for name, (site, padding) in VARIANTS.items():

        def compute(rows: slice, site: str = site, padding: Padding = padding) -> dict[str, Floats]:
            matrix = stream_cka(
                models,
                texts[rows],
                pack=False,
                batch="chunks",  # rows in their order and the mean of the batches' ratios, as in the paper
                batch_size=settings.cka_batch,
                average="ratio",
                length=settings.cka_length,
                padding=padding,
                site=site,
                tokenizer=tokenizer,
                device=settings.device,
                seed=settings.seed,
            )
            return {"cka": equal_layers(matrix), "distances": model_distances(matrix).values}

        own = {**about, "site": site, "padding": padding}
        kept = [
            steps.arrays(f"cka-{name}-{k}", {**own, "set": k}, partial(compute, rows))
            for k, rows in enumerate(sets_of(len(texts), settings.sets))
        ]
        found[name] = Geometry(*(np.stack([one[part] for one in kept]) for part in ("cka", "distances")))
    return found


def equal_layers(matrix: CKAMatrix) -> Floats:
    """Block by block, the values between all models: (n_blocks, m, m); the embeddings are left out."""
    rows: tuple[Row, ...] = matrix.rows
    places = np.array(list(block_places(rows).values()))  # (m, n_blocks)
    return np.stack([matrix.values[np.ix_(own, own)] for own in places.T])
