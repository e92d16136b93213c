"""The fingerprints of the bundled models that the package carries, and the pairs that their sketches keep.

Made anew after a change of the format, of the sketch or of the models: `python -m training fingerprints`.
With names of models, only theirs are made, on the pairs that are there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from thinkalike.errors import UnknownName
from thinkalike.files import write_arrays
from thinkalike.populations import fingerprint, reference
from thinkalike.populations.atlas import BUNDLED
from thinkalike.populations.reference_sets import DIGESTS, FOLDER
from thinkalike.populations.sketch import draw_pairs, sketch_pairs
from thinkalike.systems import bundled
from thinkalike.systems.bundled.cards import Card
from thinkalike.types import Json
from training.plans import PLANS


def write_pairs() -> None:
    """Draw the pairs of every reference, and keep them."""
    for name in DIGESTS:
        drawn = draw_pairs(reference(name))
        arrays = {"weights": drawn.weights}
        for kind, pairs in (("ranked", drawn.ranked), ("products", drawn.products)):
            assert pairs.sample is not None  # not all pairs
            arrays[kind] = pairs.sample.astype(np.int32)
        write_arrays(arrays, FOLDER / f"{name}-pairs.npz", about={"n_items": drawn.ranked.n_items})
    sketch_pairs.cache_clear()


def write_fingerprints(wanted: Sequence[str] = ()) -> None:
    """Show every reference to every bundled model and its revisions, or only to the wanted ones."""
    known = bundled.names(revisions=True)
    for model in wanted:
        if model not in known:
            raise UnknownName.among("bundled model", model, known)
    for name in DIGESTS:
        for model in wanted or known:
            made = fingerprint(model, name, name=model, facts=facts_of(bundled.card(model)))
            print(made.save(BUNDLED / name / f"{model}.npz").name, name, flush=True)


def facts_of(card: Card) -> Json:
    """What the configuration does not say: the name less size, positions, seed and step is the family."""
    family = re.sub(r"(-\d+l?|-nopos|-rotary|-seed\d+|@.*)+$", "", card.name)
    known: Json = {"family": family, "seed": card.seed, "tokens": card.tokens_seen, "objective": card.task}
    if PLANS[card.name.partition("@")[0]].shape.get("positions") == "none":
        known["positions"] = "none"  # the configuration still has a table, of zeros
    return known
