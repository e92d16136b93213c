"""`Atlas`: a folder of fingerprints, and what they say together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from thinkalike.activations.conversion import named_systems
from thinkalike.dispatch import raise_failures
from thinkalike.errors import DamagedFile, InvalidInput, ThinkalikeError, UnknownName, one_line
from thinkalike.files import packed_arrays, seal_of, unpacked_arrays, with_seal
from thinkalike.options import whole_number
from thinkalike.parallel import engine_for
from thinkalike.populations.atlas_store import AtlasStore
from thinkalike.populations.between_models import (
    FEATURES,
    MODEL_DISTANCES,
    Distances,
    Single,
    between_models,
    compact,
    compact_tau,
    mean_tau_matrix,
)
from thinkalike.populations.fingerprint_files import (
    fingerprint_bytes,
    fingerprint_from,
    is_fingerprint,
)
from thinkalike.populations.fingerprint_record import Fingerprint
from thinkalike.populations.fingerprinting import fingerprint
from thinkalike.populations.model_maps import ModelMap, model_map
from thinkalike.populations.model_trees import ModelTree, model_tree
from thinkalike.populations.reference_sets import DIGESTS, WORDS, reference
from thinkalike.types import Facts, Option

if TYPE_CHECKING:
    from torch import nn

    from thinkalike.activations.store import Activations
    from thinkalike.populations.why import Groups, Why
    from thinkalike.populations.why_sensitivity import WhyAnalysis, WhySensitivity

BUNDLED = Path(__file__).with_name("bundled_fingerprints")
CANDIDATES = 50
"""Models that are looked at exactly, after the short vectors have found them"""


class KeptIndex(NamedTuple):
    """The index file."""

    names: list[str]
    files: dict[str, str]
    """Each with what it was when the index was written"""
    stamp: str | None
    """Of the folder"""
    vectors: Single


class Atlas:
    """Fingerprints of many models, in a folder or an object store.

    Parameters
    ----------
    address : a folder, or an fsspec address such as s3://BUCKET/ATLAS. When None, the fingerprints of the
        bundled models, which come with the package and cannot be added to.
    stimuli : {"words-1", "sentences-1"}
        The reference of the fingerprints.

    Examples
    --------
    >>> import thinkalike as ta
    >>> atlas = ta.Atlas()
    >>> len(atlas.names), "nano-gpt2" in atlas.names
    (20, True)
    >>> atlas.nearest("nano-pythia-96", 1)["model"].item()
    'nano-gpt2'
    """

    def __init__(self, address: str | os.PathLike[str] | None = None, *, stimuli: str = WORDS) -> None:
        reference(stimuli)
        self.stimuli = stimuli
        self.is_bundled = address is None
        self.store = AtlasStore.at(BUNDLED if address is None else address)
        self._read: dict[Path, Fingerprint] = {}
        self._kept: KeptIndex | None = None

    def __repr__(self) -> str:
        where = "bundled models" if self.is_bundled else self.store.address
        return f"Atlas({where}: {len(self.names)} models on {self.stimuli})"

    def __len__(self) -> int:
        return len(self.store.stamps(self.stimuli))

    def __getitem__(self, name: str) -> Fingerprint:
        """The fingerprint of that model."""
        path = self.store.path(self.stimuli, name)
        if path not in self._read and not self.store.has(path):
            raise UnknownName.among("model", name, self.names, where="this atlas")
        return self._at(path)

    @property
    def names(self) -> list[str]:
        """Of the models."""
        return list(self._index()[0])

    def fingerprints(self, names: Sequence[str] | None = None) -> list[Fingerprint]:
        """All of them, or those of `names`."""
        if names is not None:
            return [self[name] for name in names]
        return [self._at(self._place(file)) for file in self.store.stamps(self.stimuli)]

    def add(
        self, model: Fingerprint | str | os.PathLike[str] | Activations | nn.Module, **options: Option
    ) -> Fingerprint:
        """Make the fingerprint of a model, or take one or its file, and keep it.

        Parameters
        ----------
        model : a `Fingerprint`, the path of its file, or what `thinkalike.fingerprint` takes.
        options : of `thinkalike.fingerprint`: `name`, `facts`, and those of `extract`.
        """
        if self.is_bundled:
            raise InvalidInput("The bundled fingerprints stay as they are: name a folder, Atlas('my-atlas').")
        made = self._made(model, options)
        if made.reference != self.stimuli:
            raise InvalidInput(
                f"{made.name} was shown {made.reference}, and this atlas is of {self.stimuli}: open "
                f"Atlas({self.store.address!r}, stimuli={made.reference!r})."
            )
        if not np.isfinite(made.profile.mean_importance).all():
            raise InvalidInput(
                f"{made.name} has a layer without importances (all its vectors may be equal), so it cannot "
                "stand beside others: leave that layer out."
            )
        path = self.store.path(self.stimuli, made.name)
        self.store.write(path, fingerprint_bytes(made))
        self._read[path] = made
        return made

    def add_models(self, models: Mapping[str, str] | Sequence[str], **options: Option) -> list[Fingerprint]:
        """Make the fingerprints of several models, on workers if any are lent, and keep them.

        A model that fails is told at the end, and does not stop the others.

        Parameters
        ----------
        models : by name, or by the names that they are to go by. Within `thinkalike.workers` each is a task:
            the machine that reads the model also profiles it, and the vectors are never written.
        options : of `thinkalike.fingerprint`: `facts`, which all of them get, and those of `extract`.
        """
        if self.is_bundled:
            raise InvalidInput("The bundled fingerprints stay as they are: name a folder, Atlas('my-atlas').")
        named = {name: str(model) for name, model in named_systems(models).items()}
        engine = engine_for("extract")
        if engine is not None:
            from thinkalike.populations.fingerprint_tasks import add_on_workers

            add_on_workers(engine, self, named, options)
        elif len(named) == 1:
            ((name, model),) = named.items()
            self.add(model, name=name, **options)
        else:
            failures = {}
            for name, model in named.items():
                try:
                    self.add(model, name=name, **options)
                except ThinkalikeError as error:
                    failures[name] = one_line(error)
            raise_failures(failures, len(named))
        return self.fingerprints(list(named))

    def remove(self, name: str) -> None:
        """Take a model out."""
        if self.is_bundled:
            raise InvalidInput("The bundled fingerprints stay as they are.")
        path = self.store.path(self.stimuli, self[name].name)
        self.store.remove(path)
        del self._read[path]

    def nearest(self, model: str | Fingerprint, n: int = 5, *, by: str = FEATURES) -> pd.DataFrame:
        """The models most alike, the nearest first, with their distance.

        Parameters
        ----------
        model : the name of one in the atlas, or a fingerprint of any other.
        by : a name in `MODEL_DISTANCES`. By "features", short vectors choose 50 candidates or ten times `n`,
            whichever is more, and their distances are exact; by others every model is looked at.
        """
        n = whole_number("n", n, 1)
        names, vectors = self._index()  # first: it forgets what another has replaced
        own = self[model] if isinstance(model, str) else model
        if own.reference != self.stimuli:
            raise InvalidInput(
                f"{own.name} was shown {own.reference}, and this atlas is of {self.stimuli}: other stimuli, "
                "other numbers."
            )
        if by != FEATURES:
            others = [one for one in self.fingerprints() if one.name != own.name]
            return between_models([own, *others], by=by).nearest(own.name, n)
        guessed = compact_tau(compact(own.profile.mean_importance), vectors)
        order = np.argsort(-guessed, kind="stable")[: max(CANDIDATES, 10 * n) + 1]
        others = [self[names[k]] for k in order if names[k] != own.name]
        if not others:
            raise InvalidInput("There is no other model in this atlas: add some.")
        taus = mean_tau_matrix(
            [own.profile.mean_importance], [one.profile.mean_importance for one in others]
        )[0]
        best = np.argsort(-taus, kind="stable")[:n]
        return pd.DataFrame({"model": [others[k].name for k in best], "distance": 1 - taus[best]})

    def distances(self, *, by: str = FEATURES) -> Distances:
        """Between all models."""
        return between_models(self.fingerprints(), by=by)

    def map(self, *, by: str = FEATURES) -> ModelMap:
        """All models in the plane, with their spread over folds."""
        return model_map(self.fingerprints(), by=by)

    def tree(self, *, by: str = FEATURES, n_draws: int = 100) -> ModelTree:
        """All models as a tree, with support."""
        return model_tree(self.fingerprints(), by=by, n_draws=n_draws)

    def facts(self, table: pd.DataFrame | None = None) -> pd.DataFrame:
        """What is known of each model: from the fingerprints, and from a table whose index names models."""
        found = pd.DataFrame({one.name: dict(one.facts) for one in self.fingerprints()}).T.infer_objects()
        if table is None:
            return found
        if table.empty:
            raise InvalidInput(
                f"The table of facts has {len(table)} models and {len(table.columns)} facts: "
                "give a row for each model and a column for each fact."
            )
        unknown = [str(name) for name in table.index if name not in found.index]
        if unknown:
            raise UnknownName.among("model", unknown[0], found.index, where="this atlas")
        twice = table.index[table.index.duplicated()]
        if len(twice):
            raise InvalidInput(f"The table of facts has two rows of {twice[0]}: give each model one.")
        return table.reindex(found.index).combine_first(found)

    def why(self, table: pd.DataFrame | None = None, *, by: str = FEATURES, **options: Any) -> Why:
        """Which facts about models go with how alike they are; see `thinkalike.populations.why`."""
        from thinkalike.populations.why import why

        return why(self.distances(by=by), self.facts(table), **options)

    def sensitivity(
        self,
        table: pd.DataFrame | None = None,
        *,
        by: str = FEATURES,
        groups: Groups | None = None,
        cohort: str | None = None,
        n_permutations: int = 199,
        seed: int = 0,
    ) -> WhySensitivity:
        """Ask why again with other stimuli, distances, cohorts and groupings of facts.

        Parameters
        ----------
        by, groups : of the main analysis; see `why`.
        cohort : the fact each of whose levels is left out in turn: family, or else architecture, when None.
        """
        from thinkalike.populations.why_sensitivity import why_sensitivity

        facts = self.facts(table)
        return why_sensitivity(
            self._analyses(facts, by, groups, cohort), facts, n_permutations=n_permutations, seed=seed
        )

    def _analyses(
        self, facts: pd.DataFrame, by: str, groups: Groups | None, cohort: str | None
    ) -> Iterator[WhyAnalysis]:
        from thinkalike.populations.why_sensitivity import (
            WhyAnalysis,
            cohort_fact,
            other_cohorts,
            other_groupings,
        )

        main = self.distances(by=by)
        yield WhyAnalysis("main", f"{self.stimuli}, {by}", main, groups)
        for name in (name for name in DIGESTS if name != self.stimuli):
            elsewhere = Atlas(None if self.is_bundled else self.store.address, stimuli=name)
            if set(main.names) <= set(elsewhere.names):
                yield WhyAnalysis("stimuli", name, elsewhere.distances(by=by).among(main.names), groups)
        for other in (other for other in MODEL_DISTANCES if other != by):
            yield WhyAnalysis("distance", other, self.distances(by=other), groups)
        levels = cohort_fact(facts, cohort)
        if levels is not None:
            yield from other_cohorts(main, facts, levels, groups)
        yield from other_groupings(main, facts, groups)

    def _made(
        self,
        model: Fingerprint | str | os.PathLike[str] | Activations | nn.Module,
        options: Mapping[str, Any],
    ) -> Fingerprint:
        path = Path(model) if isinstance(model, (str, os.PathLike)) else None
        made = Fingerprint.load(path) if path is not None and is_fingerprint(path) else model
        if not isinstance(made, Fingerprint):
            return fingerprint(made, self.stimuli, **options)
        if options:
            raise InvalidInput(f"{next(iter(options))}= is for models, and this is a fingerprint already.")
        return made

    def _place(self, file: str) -> Path:
        return self.store.root / self.stimuli / file

    def _at(self, path: Path) -> Fingerprint:
        if path not in self._read:
            found = fingerprint_from(self.store.read(path), path)
            self._check_own(found, path)
            self._read[path] = found
        return self._read[path]

    def _check_own(self, found: Fingerprint, path: Path) -> None:
        """That a file of this atlas holds what its name says: someone may have put it there by hand."""
        if found.reference != self.stimuli or self.store.path(self.stimuli, found.name).name != path.name:
            raise DamagedFile(
                f"{path} holds {found.name} on {found.reference}, which belongs elsewhere: take it out, and "
                "add it with thinkalike atlas add."
            )

    def _index(self) -> tuple[list[str], Single]:
        """Names and short vectors of all models: from the index file, less what changed since it was written.

        Only fingerprints that came or were replaced are read, so that adding one costs one.
        """
        place, stamp = self.store.index(self.stimuli), self.store.stamp(self.stimuli)
        kept = self._kept if self._kept is not None else self._kept_index(place)
        stamps = None
        if kept is None or stamp is None or kept.stamp != stamp:
            stamps = self.store.stamps(self.stimuli)
        if kept is not None and (stamps is None or kept.files == stamps):
            self._kept = kept
            return kept.names, kept.vectors
        assert stamps is not None
        width = len(reference(self.stimuli).features.columns)
        vectors = np.zeros((len(stamps), width * (width - 1)), dtype=np.float32)
        names = [""] * len(stamps)
        known = {} if kept is None else {file: k for k, file in enumerate(kept.files)}
        for place_of, (file, now) in enumerate(stamps.items()):
            if kept is not None and kept.files.get(file) == now:
                names[place_of], vectors[place_of] = kept.names[known[file]], kept.vectors[known[file]]
                continue
            if kept is not None and file in kept.files:
                self._read.pop(self._place(file), None)  # another one of the same name
            one = self._at(self._place(file))
            names[place_of], vectors[place_of] = one.name, compact(one.profile.mean_importance)
        self._kept = KeptIndex(names, stamps, stamp, vectors)
        if not self.is_bundled and names:
            about: Facts = {"names": names, "files": stamps, "stamp": stamp}
            self.store.write(place, with_seal(packed_arrays({"vectors": vectors}, about=about), last=True))
        return names, vectors

    def _kept_index(self, place: Path) -> KeptIndex | None:
        """The index as it was last written; None if there is none, or not a whole one: it is made anew."""
        try:
            data = self.store.read(place)
            if seal_of(data) is None:
                return None
            arrays, about = unpacked_arrays(data)
            names, files, vectors = list(about["names"]), dict(about["files"]), arrays["vectors"]
            is_whole = len(names) == len(files) and self._are_vectors(vectors, len(names))
            are_names = all(isinstance(name, str) and name.isprintable() for name in names)
            return KeptIndex(names, files, about.get("stamp"), vectors) if is_whole and are_names else None
        except (DamagedFile, ValueError, TypeError, KeyError):
            return None

    def _are_vectors(self, found: Single, n: int) -> bool:
        width = len(reference(self.stimuli).features.columns)
        is_right = found.dtype == np.float32 and found.shape == (n, width * (width - 1))
        return is_right and bool(np.isfinite(found).all())
