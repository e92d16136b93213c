"""The latents of a sparse autoencoder as layers of their own (4.l1234), kept sparse all the way.

They are made of the residual stream that `extract` has kept, some rows at a time; of 16,384 latents a word
has perhaps fifty, and only these are held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from thinkalike.activations.autoencoders import SparseAutoencoder, load_autoencoder
from thinkalike.activations.store import Activations, Array, Layer
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.labels import find_layer
from thinkalike.options import whole_number
from thinkalike.types import Facts, Json

if TYPE_CHECKING:
    from thinkalike.stimuli.table import Stimuli

ROWS_AT_ONCE = 256
"""States that are encoded together: the only time that latents are dense"""
MARK = "l"

Sparse: TypeAlias = "sparse.csc_array"
"""(n_items, n_latents), a sparse array of SciPy by columns: what its types leave out is used here"""


@dataclass(frozen=True, eq=False)
class Latents:
    """What a sparse autoencoder makes of one layer of a system.

    Attributes
    ----------
    values : sparse (n_items, n_latents)
    layer
        The layer of the residual stream that was encoded.
    source
        The activations that it is of.
    name
        Of the autoencoder: where it came from.

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> sae = ta.activations.SparseAutoencoder(np.eye(3, dtype="f4"), np.zeros(3, "f4"), np.zeros(3, "f4"))
    >>> found = ta.latents(ta.Activations.from_arrays({4: np.eye(3)}, system="mine"), sae, layer=4)
    >>> found.activations([2])["4.l2"].ravel().tolist()
    [0.0, 0.0, 1.0]
    """

    values: Sparse = field(repr=False)
    layer: Layer
    source: Activations = field(repr=False)
    name: str

    def __repr__(self) -> str:
        return (
            f"Latents({self.source.system}:{self.layer}: {self.values.shape[0]} items × "
            f"{self.values.shape[1]:,} latents, {self.active:.1f} active per item)"
        )

    @property
    def active(self) -> float:
        """How many latents are active in an item, on average."""
        return float(self.values.nnz / max(1, self.values.shape[0]))

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """(n_latents,): in how many items each latent is active."""
        return np.diff(self.values.indptr).astype(np.int64)

    def label(self, latent: int) -> str:
        """`4.l1234`: what a latent is called among layers."""
        return f"{self.layer}.{MARK}{latent}"

    def activations(self, latents: Sequence[int] | npt.NDArray[np.integer]) -> Activations:
        """Some latents, each a layer of one unit, for profiles, matrices and explanations."""
        chosen = [int(latent) for latent in latents]
        n_latents = self.values.shape[1]
        for latent in chosen:
            whole_number("latent", latent, 0, n_latents - 1)
            if not self.counts[latent]:
                raise InvalidInput(
                    f"Latent {latent} is active in no item: it has no distances. Choose among those that "
                    "are (`counts`), or have them chosen: best='FEATURE' (--best)."
                )
        if not chosen:
            raise InvalidInput("No latents were chosen: give some, such as those of `best`.")
        about = {name: fact for name, fact in self.source.metadata.items() if name != "path"}
        return Activations(
            system=self.source.system,
            layers=tuple(self.label(latent) for latent in chosen),
            item_names=self.source.item_names,
            n_units=(1,) * len(chosen),
            stimuli_digest=self.source.stimuli_digest,
            metadata={
                **about,
                "site": "latents",
                "autoencoder": self.name,
                "layer": self.layer,
                "n_latents": int(n_latents),
                "active": self.active,
                "latents": chosen,
            },
            _read=_Columns(self.values, chosen),
        )

    def best(self, stimuli: Stimuli, feature: str, *, most: int = 10, seed: int = 0) -> pd.DataFrame:
        """The latents that tell the levels of a feature apart, chosen on half the sentences.

        What a latent is worth is η², the share of its variance that lies between the levels:
        η² = Σ_l n_l (m_l − m)² / Σ_i (x_i − m)², with the means m_l of the levels and m of all. Latents are
        ranked on one half of the sentences, and `held_out` is η² on the other: the best of thousands look
        better than they are where they were chosen.

        Parameters
        ----------
        stimuli
            Those that the activations answer to.
        feature
            Nominal or ordinal.
        most
            How many latents at most.
        seed
            Of the split of the sentences.

        Returns
        -------
        DataFrame
            One row per latent, best first: `latent`, `layer` (its label), `chosen_on`, `held_out`, `items`
            (in how many it is active).
        """
        self.source.check_stimuli(stimuli)
        whole_number("most", most, 1)
        codes = _levels(stimuli, feature)
        first = _half(stimuli, seed)
        known = codes >= 0
        here, there = (
            between_levels(self.values[part & known], codes[part & known]) for part in (first, ~first)
        )
        order = np.argsort(-here, kind="stable")[:most]
        order = order[here[order] > 0]
        return pd.DataFrame(
            {
                "latent": order,
                "layer": [self.label(latent) for latent in order],
                "chosen_on": here[order],
                "held_out": there[order],
                "items": self.counts[order],
            }
        )


@dataclass(frozen=True, eq=False)
class _Columns:
    """Reads chosen columns of a sparse matrix, one at a time."""

    values: Sparse
    chosen: Sequence[int]

    def __call__(self, number: int) -> Array:
        return self.values[:, [self.chosen[number]]].toarray().astype(np.float32)


def latents(
    activations: Activations, autoencoder: SparseAutoencoder | str | Path, *, layer: Layer
) -> Latents:
    """Encode one layer of the residual stream with a sparse autoencoder.

    Parameters
    ----------
    activations
        From `extract` with site="residual", one token per row (pooling "last", "first" or "all").
    autoencoder
        Loaded, or the path of its safetensors file or folder, in the layout of SAELens or of sparsify.
    layer
        That which the autoencoder was trained on. SAELens's `blocks.8.hook_resid_pre` and
        `blocks.7.hook_resid_post` are our layer 8.

    Returns
    -------
    Latents
        Sparse: no dense copy is made, on disk or in memory.

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> from thinkalike.activations.autoencoders import SparseAutoencoder
    >>> acts = ta.Activations.from_arrays({4: np.eye(3)}, system="mine")
    >>> sae = SparseAutoencoder(np.eye(3, 5, dtype="f4"), np.zeros(5, "f4"), np.zeros(3, "f4"))
    >>> ta.latents(acts, sae, layer=4)
    Latents(mine:4: 3 items × 5 latents, 1.0 active per item)
    """
    sae = autoencoder if isinstance(autoencoder, SparseAutoencoder) else load_autoencoder(autoencoder)
    about = activations.metadata
    if about.get("site", "residual") != "residual":
        raise InvalidInput(
            f"The activations are of site={about['site']!r}: an autoencoder of the residual stream needs "
            "site='residual'."
        )
    if about.get("pooling") == "mean":
        raise InvalidInput(
            "The rows are means over tokens, and the latents of a mean are not the mean of latents: extract "
            "with pooling='last', or 'all'."
        )
    label = activations.layers[find_layer(activations.system, activations.layers, layer)]
    n_units = activations.n_units[activations.layers.index(label)]
    if n_units != sae.n_units:
        raise InvalidInput(
            f"{sae.name} reads {sae.n_units} units, but layer {label!r} of {activations.system} has "
            f"{n_units}: it was trained on another model."
        )
    states = activations[label]
    parts = [
        sparse.csr_array(sae.encode(states[begin : begin + ROWS_AT_ONCE]))
        for begin in range(0, len(states), ROWS_AT_ONCE)
    ]
    values = sparse.csc_array(sparse.vstack(parts, format="csc"))
    if not values.nnz:
        raise InvalidInput(
            f"No latent of {sae.name} is active in any item of {activations.system}:{label}: is it of this "
            "layer?"
        )
    return Latents(values, label, activations, sae.name)


def between_levels(values: Sparse, codes: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """η² of every column (n_columns,): the share of its variance between groups; 0 for a constant one."""
    n_items = len(codes)
    if not n_items:
        return np.zeros(values.shape[1])
    member = sparse.csr_array(
        (np.ones(n_items), (codes, np.arange(n_items))), shape=(int(codes.max()) + 1, n_items)
    )
    sizes = np.bincount(codes)
    columns = values.astype(np.float64)
    sums = (member @ columns).toarray()
    mean = sums.sum(axis=0) / n_items
    total = np.asarray(columns.multiply(columns).sum(axis=0)).ravel() - n_items * mean**2
    present = sizes > 0
    between = (sums[present] ** 2 / sizes[present, None]).sum(axis=0) - n_items * mean**2
    return np.divide(between, total, out=np.zeros_like(total), where=total > 1e-12 * (1 + n_items * mean**2))


def _levels(stimuli: Stimuli, feature: str) -> npt.NDArray[np.int64]:
    """The level of every item, −1 where it is missing."""
    if feature not in stimuli.features:
        raise UnknownName.among("feature", feature, list(stimuli.features))
    values = stimuli.features[feature]
    if not isinstance(values.dtype, pd.CategoricalDtype):
        raise InvalidInput(
            f"{feature!r} is numeric: latents are told apart by levels. Give a nominal or ordinal feature."
        )
    return np.asarray(values.cat.codes, dtype=np.int64)


def _half(stimuli: Stimuli, seed: int) -> npt.NDArray[np.bool_]:
    """Which items belong to the first half of the sentences; of items without sentences, of the items."""
    items = stimuli.items
    names = items["sentence"] if "sentence" in items else pd.Series(np.arange(len(items)), index=items.index)
    number, every = pd.factorize(names)
    chosen = np.random.default_rng(seed).permutation(len(every)) < len(every) / 2
    return np.asarray(chosen[number])


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
        found = latents(states, self.autoencoder, layer=self.layer)
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
