"""The run directory: everything of a comparison on disk, complete in itself, re-used by the next call.

    run.json              what the run is about (`identity`), and the plain part of its results
    stimuli.parquet       what the systems were shown
    systems/NAME/         activations (Zarr) and profile of each system, kept when systems are added
    tables/               every table of the results, as Parquet and CSV

A call with the same stimuli and settings re-uses what is there; any other is refused (the number of
resamples may change).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thinkalike.activations.reader import is_complete
from thinkalike.activations.store import Activations
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.items import subset_activations
from thinkalike.comparison.profile_files import load_profile, save_profile
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.results import read_results, write_results
from thinkalike.errors import StoreError
from thinkalike.files import file_name, plain, read_json, write_json
from thinkalike.stimuli.table import Stimuli

FORMAT = 1
FREE = ("resamples",)
"""Settings that may change from call to call: profiles are then made anew, activations are kept"""


@dataclass(frozen=True)
class RunDirectory:
    """A folder that holds one run."""

    root: Path

    @classmethod
    def open(cls, root: Path, stimuli: Stimuli, identity: Mapping[str, Any]) -> RunDirectory:
        """A new run, or the one that is there if it has the same stimuli and settings."""
        run = cls(root)
        ours = plain({"stimuli": stimuli.digest, **{k: v for k, v in identity.items() if k not in FREE}})
        if run.manifest_path.exists():
            if run.manifest()["identity"] == ours:
                return run
            if not run.is_only_begun():
                _refuse_other_run(root, run.manifest(), ours)
        elif root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise StoreError(f"{root} is not empty and holds no run of thinkalike: choose another folder.")
        root.mkdir(parents=True, exist_ok=True)
        stimuli.save(root / "stimuli.parquet")
        write_json({"format": FORMAT, "identity": ours}, run.manifest_path)
        return run

    @property
    def manifest_path(self) -> Path:
        return self.root / "run.json"

    def is_only_begun(self) -> bool:
        """Whether nothing was computed yet: a call that failed at its options leaves that."""
        systems = self.root / "systems"
        return "results" not in self.manifest() and not (systems.exists() and any(systems.iterdir()))

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    def manifest(self) -> dict[str, Any]:
        found = read_json(self.manifest_path)
        if found.get("format") != FORMAT:
            raise StoreError(
                f"{self.manifest_path} was written by another version of thinkalike (format "
                f"{found.get('format')!r}, not {FORMAT}): choose another folder."
            )
        return found

    def activations_path(self, system: str) -> Path:
        return self.root / "systems" / file_name(system) / "activations.zarr"

    def profile_path(self, system: str) -> Path:
        return self.root / "systems" / file_name(system) / "profile"

    def profile(self, system: str, settings: Mapping[str, Any]) -> Profile | None:
        """The profile that an earlier call made of this system with these settings, if any."""
        path = self.profile_path(system)
        if not path.with_name("profile.json").exists():
            return None
        found = load_profile(path)
        return found if (found.system, found.settings) == (system, plain(settings)) else None

    def save_profile(self, profile: Profile) -> None:
        save_profile(profile, self.profile_path(profile.system))

    def keep_activations(self, activations: Activations) -> None:
        """Put activations into the run; those of that name that are there must be the very same."""
        path = self.activations_path(activations.system)
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

    def write_results(self, comparison: Comparison) -> None:
        """Every table, and last the manifest."""
        results = write_results(comparison, self.tables)
        write_json({**self.manifest(), "results": results}, self.manifest_path)


def save_comparison(comparison: Comparison, root: Path) -> Path:
    """Write a comparison into a folder of its own, activations and all."""
    run = RunDirectory.open(root, comparison.stimuli, comparison.settings)
    for activations in (comparison.activations or {}).values():
        run.keep_activations(activations)
    copies = [] if comparison.controls is None else comparison.controls.profiles.values()
    for profile in (*comparison.profiles.values(), *copies):
        run.save_profile(profile)
    run.write_results(comparison)
    return root


def load_comparison(root: Path) -> Comparison:
    """The comparison that a run directory holds."""
    run = RunDirectory(root)
    if not run.manifest_path.exists():
        raise StoreError(f"{root} holds no run of thinkalike: give a folder that `thinkalike compare` made.")
    results = run.manifest().get("results")
    if results is None:
        raise StoreError(f"The run in {root} was not finished: run the same comparison again, it resumes.")
    copies: Mapping[str, str] = (results["controls"] or {}).get("systems", {})
    stimuli = Stimuli.from_table(root / "stimuli.parquet")
    compared = stimuli.items.index.isin(results["items"])
    if not compared.all():
        stimuli = stimuli.subset(compared)
    return read_results(
        results,
        run.tables,
        stimuli=stimuli,
        profiles={name: load_profile(run.profile_path(name)) for name in results["systems"]},
        copies={name: load_profile(run.profile_path(copy)) for name, copy in copies.items()},
        activations=_open_activations(run, results["systems"], stimuli),
    )


def _open_activations(
    run: RunDirectory, systems: list[str], stimuli: Stimuli
) -> dict[str, Activations] | None:
    """The stores of all systems; None if one is gone."""
    paths = {name: run.activations_path(name) for name in systems}
    if not all(path.exists() for path in paths.values()):
        return None
    found = {name: Activations.open(path) for name, path in paths.items()}
    if all(one.n_items == len(stimuli) for one in found.values()):
        return found
    return {name: subset_activations(one, stimuli) for name, one in found.items()}


def _refuse_other_run(root: Path, manifest: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    theirs = manifest["identity"]
    for key in sorted({*theirs, *ours}):
        if theirs.get(key) != ours.get(key):
            raise StoreError(
                f"{root} holds another run ({key}: {_short(theirs.get(key))} there, {_short(ours.get(key))} "
                "here): choose another folder, or delete that one."
            )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:12]}…"
