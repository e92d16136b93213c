"""The run directory: everything of a comparison on disk, complete in itself, re-used by the next call.

    run.json              what the run is about (`identity`), and the plain part of its results
    stimuli.parquet       what the systems were shown
    systems/NAME/         activations (Zarr) and profile of each system, kept when systems are added
    tables/               every table of the results, as Parquet and CSV

A call with the same stimuli and settings re-uses what is there; any other is refused (the number of
resamples may change).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from thinkalike.activations.expiry import expire, is_expired, revive
from thinkalike.activations.reader import is_complete
from thinkalike.activations.rows import subset_activations
from thinkalike.activations.seals import SEALS
from thinkalike.activations.store import Activations
from thinkalike.addresses import reaching
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.profile_files import load_profile, save_profile
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.results import AGAIN, read_results, write_results
from thinkalike.errors import DamagedFile, StoreError
from thinkalike.files import file_name, plain, read_json, read_sealed, reading, seal_of, write_json
from thinkalike.ownership import differences, holds_files, owning
from thinkalike.stimuli.table import Stimuli

FORMAT = 2
FREE = ("resamples",)
"""Settings that may change from call to call: profiles are then made anew, activations are kept"""


@dataclass(frozen=True)
class RunDirectory:
    """A folder that holds one run."""

    root: Path

    @classmethod
    @contextmanager
    def owned(cls, root: Path, stimuli: Stimuli, identity: Mapping[str, object]) -> Iterator[RunDirectory]:
        """A new run, or the one that is there if it has the same stimuli and settings; ours for the block."""
        run = cls(root)
        ours = {"stimuli": stimuli.digest, **{k: v for k, v in identity.items() if k not in FREE}}
        described = plain({"identity": ours, "shown": _counts(stimuli)})
        with owning(root, lambda busy: run.refuse_other(described, busy=busy)):
            begun = run.manifest() if run.manifest_path.exists() else {}
            if begun.get("identity") != described["identity"] or not run.has_stimuli(begun["stimuli"]):
                seal = seal_of(stimuli.save(run.stimuli_path).read_bytes())
                kept = {k: v for k, v in begun.items() if begun.get("identity") == described["identity"]}
                write_json({"format": FORMAT, **kept, **described, "stimuli": seal}, run.manifest_path)
            yield run

    def refuse_other(self, described: Mapping[str, object], *, busy: bool) -> None:
        """Raise if the folder holds, or is becoming, something else than the run that is described."""
        if self.manifest_path.exists():
            found = self.manifest()
            if found["identity"] != described["identity"] and (busy or not self.is_only_begun()):
                raise StoreError(
                    f"{self.root} holds another run ({_unlike(found, described)}): choose another folder, or "
                    "delete that one."
                )
        elif self.root.exists() and (not self.root.is_dir() or holds_files(self.root)):
            raise StoreError(
                f"{self.root} is not empty and holds no run of thinkalike: choose another folder."
            )

    def has_stimuli(self, seal: str) -> bool:
        """Whether the file of the stimuli is there and whole."""
        try:
            read_sealed(self.stimuli_path, seal=seal)
        except DamagedFile:
            return False
        return True

    @property
    def stimuli_path(self) -> Path:
        return self.root / "stimuli.parquet"

    @property
    def manifest_path(self) -> Path:
        return self.root / "run.json"

    def is_only_begun(self) -> bool:
        """Whether nothing was computed yet: a call that failed at its options leaves that."""
        systems = self.root / "systems"
        return "results" not in self.manifest() and not (systems.exists() and any(systems.iterdir()))

    def has_results(self) -> bool:
        """Whether a call was finished here; not whether all of it is still whole."""
        try:
            with reaching(self.root):
                return self.manifest_path.exists() and "results" in self.manifest()
        except StoreError:  # whoever opens the run will say it better
            return False

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    def manifest(self) -> dict[str, Any]:
        found = read_json(self.manifest_path, way_out=f"delete {self.root} and run the comparison again")
        if found.get("format") != FORMAT:
            raise StoreError(
                f"{self.manifest_path} was written by another version of thinkalike (format "
                f"{found.get('format')!r}, not {FORMAT}): choose another folder."
            )
        return found

    def folder(self, system: str) -> Path:
        """Of all that is kept of a system."""
        return self.root / "systems" / file_name(system)

    def activations_path(self, system: str) -> Path:
        return self.folder(system) / "activations.zarr"

    def profile_path(self, system: str) -> Path:
        return self.folder(system) / "profile"

    def profile(self, system: str, settings: Mapping[str, object]) -> Profile | None:
        """The profile that an earlier call made of this system with these settings, if any."""
        try:
            found = load_profile(self.profile_path(system))
        except DamagedFile:  # or not made yet
            return None
        return found if (found.system, found.settings) == (system, plain(settings)) else None

    def revive(self, systems: Sequence[str]) -> bool:
        """Have deleted vectors of these systems made again; whether there are any such."""
        revived = [revive(self.activations_path(system)) for system in systems]
        return any(revived)

    def has_vectors(self, system: str) -> bool:
        """Whether those of a system that was read are still there."""
        return not is_expired(self.activations_path(system))

    def expire(self, system: str) -> None:
        """Delete the vectors of a system; what they were stays known."""
        expire(self.activations_path(system))

    def save_profile(self, profile: Profile) -> None:
        save_profile(profile, self.profile_path(profile.system))

    def keep_activations(self, activations: Activations) -> None:
        """Put activations into the run; those of that name that are there must be the very same."""
        path = self.activations_path(activations.system)
        revive(path)  # here they are
        if not is_complete(path):
            activations.save(path)  # or the rest of them, after a stop in the middle
            return
        there = Activations.open(path)
        same = (there.layers, there.n_items) == (activations.layers, activations.n_items)
        if not same or any(not np.array_equal(there[k], activations[k]) for k in activations.layers):
            raise StoreError(
                f"{self.root} holds other activations of {activations.system}: choose another folder, or "
                "give the system another name."
            )

    def write_results(self, comparison: Comparison, call: str | None = None) -> None:
        """Every table, and last the manifest; `call` is a digest of all that was asked for."""
        results = write_results(comparison, self.tables)
        write_json({**self.manifest(), "results": results, "call": call}, self.manifest_path)

    def finished(self, call: str | None) -> Comparison | None:
        """The results of an earlier call that asked for the very same, if all of them are whole."""
        if call is None or self.manifest().get("call") != call:
            return None
        try:
            return load_comparison(self.root)
        except DamagedFile:
            return None

    def store_seal(self, system: str) -> str | None:
        """What names all that the activations of a system depend on."""
        return seal_of((self.activations_path(system) / SEALS).read_bytes())


def save_comparison(comparison: Comparison, root: Path) -> Path:
    """Write a comparison into a folder of its own, activations and all."""
    with RunDirectory.owned(root, comparison.stimuli, comparison.settings) as run:
        for activations in (comparison.activations or {}).values():
            run.keep_activations(activations)
        copies = {} if comparison.controls is None else comparison.controls.profiles
        for profile in chain(comparison.profiles.values(), *copies.values()):
            run.save_profile(profile)
        run.write_results(comparison)
    return root


def load_comparison(root: Path) -> Comparison:
    """The comparison that a run directory holds."""
    run = RunDirectory(root)
    if not run.manifest_path.exists():
        raise StoreError(f"{root} holds no run of thinkalike: give a folder that `thinkalike compare` made.")
    manifest = run.manifest()
    if manifest.get("results") is None:
        raise StoreError(f"The run in {root} was not finished: run the same comparison again, it resumes.")
    with reading(run.manifest_path, AGAIN):
        return _comparison(run, manifest["results"], manifest["stimuli"])


def _comparison(run: RunDirectory, results: Mapping[str, Any], seal: str) -> Comparison:
    copies: Mapping[str, list[str]] = (results["controls"] or {}).get("systems", {})
    read_sealed(run.stimuli_path, seal=seal, way_out=AGAIN)
    stimuli = Stimuli.from_table(run.stimuli_path)
    compared = stimuli.items.index.isin(results["items"])
    if not compared.all():
        stimuli = stimuli.subset(compared)
    return read_results(
        results,
        run.tables,
        stimuli=stimuli,
        profiles={name: load_profile(run.profile_path(name)) for name in results["systems"]},
        copies={
            name: tuple(load_profile(run.profile_path(copy)) for copy in draws)
            for name, draws in copies.items()
        },
        activations=_open_activations(run, results["systems"], stimuli),
    )


def _open_activations(
    run: RunDirectory, systems: list[str], stimuli: Stimuli
) -> dict[str, Activations] | None:
    """The stores of all systems; None if the vectors of one are gone."""
    paths = {name: run.activations_path(name) for name in systems}
    if not all(path.exists() and not is_expired(path) for path in paths.values()):
        return None
    found = {name: Activations.open(path) for name, path in paths.items()}
    if all(one.n_items == len(stimuli) for one in found.values()):
        return found
    return {name: subset_activations(one, stimuli) for name, one in found.items()}


def _counts(stimuli: Stimuli) -> dict[str, int]:
    return {
        "sentences": len(stimuli.sentences),
        "items": len(stimuli),
        "features": len(stimuli.features.columns),
    }


def _unlike(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """How two runs differ: by what was shown if that can be counted, and by settings."""
    there, here = theirs["shown"], ours["shown"]
    counts = [f"{there[name]} {name} there, {here[name]} here" for name in here if there[name] != here[name]]
    known = {"stimuli": None} if counts else {}  # the counts say it better
    settings = differences({**theirs["identity"], **known}, {**ours["identity"], **known})
    return "; ".join(filter(None, [*counts, settings]))
