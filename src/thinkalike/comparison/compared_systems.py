"""The systems of a comparison: checked, and made into activations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from thinkalike.activations.conversion import check_extraction
from thinkalike.activations.reader import is_complete
from thinkalike.activations.store import Activations
from thinkalike.comparison.rundir import RunDirectory
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.parallel import engine_for
from thinkalike.stimuli.table import Stimuli
from thinkalike.systems.names import is_array_file

CONTROLS = ("untrained",)
UNTRAINED_DRAWS = 10
"""Draws of random weights for each model: one alone says little, for they differ much"""

GivenSystem: TypeAlias = object
"""A model by its name (hub id, folder, bundled model; MODEL@REVISION), activations, arrays, or their file"""


def opened(name: str, system: GivenSystem) -> GivenSystem:
    """Files of arrays are read once, for all that looks at them."""
    if isinstance(system, Activations) or not is_array_file(system):
        return system
    return Activations.open(str(system), system=name)


def models_among(named: Mapping[str, GivenSystem]) -> list[str]:
    return [
        name
        for name, system in named.items()
        if not isinstance(system, Activations) and not is_array_file(system)
    ]


def can_go_apart(named: Mapping[str, GivenSystem], extraction: Mapping[str, object]) -> bool:
    """Whether each system can be looked at before the next is read, where it was read.

    So it is with models of which every item has a row (which it is before all have been read is not known of
    those that `drop_first` leaves out), unless only the fitting is to be done elsewhere.
    """
    looked_at_elsewhere = engine_for("fit") is not None and engine_for("extract") is None
    return (
        not looked_at_elsewhere
        and len(models_among(named)) == len(named)
        and not extraction.get("drop_first")
    )


def check_settings(
    settings: Mapping[str, object],
    extraction: Mapping[str, object] | None,
    named: Mapping[str, GivenSystem],
    controls: str | None,
) -> None:
    """Options of `extract` stand in `extraction`, and only where there is a model to extract from."""
    from thinkalike.activations.extraction import OPTIONS

    for name in settings:
        if name in OPTIONS and name != "seed":
            raise InvalidInput(f"{name} is an option of extract: give extraction={{{name!r}: …}}.")
    check_extraction(extraction, named.values())
    if extraction and extraction.get("autoencoder") is not None and controls is not None:
        raise InvalidInput(
            "controls='untrained' draws weights that no autoencoder was trained on: leave out one of both."
        )


def check_systems(
    named: Mapping[str, GivenSystem], stimuli: Stimuli | None, controls: str | None, *, least: int = 2
) -> None:
    """Refuse too few systems, and what some of them do not have."""
    if len(named) < least:
        got = f"only {next(iter(named))}" if named else "no system"
        raise InvalidInput(
            f"Got {got}: a comparison needs two systems or more. What the layers of one are organised by, "
            "and how alike they are to each other, ta.profile and ta.similarity show (thinkalike profile)."
        )
    if controls is not None and controls not in CONTROLS:
        raise UnknownName.among("control", controls, CONTROLS)
    if controls is not None and not models_among(named):
        raise InvalidInput("controls='untrained' needs models by name: arrays have no untrained copy.")
    if stimuli is None and len(models_among(named)) < len(named):
        raise InvalidInput("Arrays were given without stimuli: also give the stimuli that they answer to.")


@dataclass(frozen=True)
class ToRead:
    """A model that is to be read.

    Attributes
    ----------
    out
        The store that its answers go to; None for the cache.
    is_copy
        Whether it has random weights.
    """

    system: str
    model: str
    out: Path | None
    options: Mapping[str, Any]
    is_copy: bool = False


@dataclass(frozen=True)
class Gathering:
    """How a system becomes activations."""

    stimuli: Stimuli
    extraction: Mapping[str, Any]
    run: RunDirectory | None

    def gathered(
        self, named: Mapping[str, GivenSystem], *, copies: bool
    ) -> tuple[list[Activations], dict[str, tuple[Activations, ...]]]:
        """The activations of all systems and, if wanted, of untrained copies of those that are models."""
        models = {name: named[name] for name in models_among(named)}
        self.extract_ahead(models, copies=copies)
        found = [self.activations(name, system) for name, system in named.items()]
        return found, {name: self.untrained(name, model) for name, model in models.items()} if copies else {}

    def activations(self, name: str, system: GivenSystem) -> Activations:
        if isinstance(system, Activations):
            system.check_stimuli(self.stimuli)
            items = tuple(str(item) for item in self.stimuli.items.index)
            renamed = replace(system, system=name, item_names=items, stimuli_digest=self.stimuli.digest)
            if self.run is not None:
                self.run.keep_activations(renamed)
            return renamed
        return self._extract(name, system)

    def extract_ahead(self, models: Mapping[str, GivenSystem], *, copies: bool) -> None:
        """Have workers, if there are any, read all models; what follows then finds the stores."""
        engine = engine_for("extract")
        if engine is None:
            return
        from thinkalike.comparison.tasks import extract_on_workers

        lacking = [one for one in self.to_read(models, copies=copies) if not _is_read(one)]
        if lacking:
            extract_on_workers(engine, self.stimuli, lacking, None if self.run is None else self.run.root)

    def to_read(self, models: Mapping[str, GivenSystem], *, copies: bool) -> list[ToRead]:
        """All models, then their untrained copies if wanted."""
        wanted = [
            ToRead(name, str(model), self._place(name), self.extraction) for name, model in models.items()
        ]
        for name, model in models.items() if copies else ():
            for copy, options in self._draws(name).items():
                place, how = self._place(copy), {**self.extraction, **options}
                wanted.append(ToRead(copy, str(model), place, how, is_copy=True))
        return wanted

    def has_all(self, models: Mapping[str, GivenSystem], *, copies: bool) -> bool:
        """Whether all of them have been read, also if their vectors are gone."""
        return all(_is_read(one) for one in self.to_read(models, copies=copies))

    def untrained(self, name: str, system: GivenSystem) -> tuple[Activations, ...]:
        """Of copies of a model, each with other random weights."""
        return tuple(self._extract(copy, system, **options) for copy, options in self._draws(name).items())

    def _draws(self, name: str) -> dict[str, dict[str, int]]:
        """Untrained copies by name, with the options that make them."""
        first = int(self.extraction.get("seed") or 0)
        names = [f"{name}:untrained", *(f"{name}:untrained:{k}" for k in range(2, UNTRAINED_DRAWS + 1))]
        return {copy: {"untrained": True, "seed": first + k} for k, copy in enumerate(names)}

    def _place(self, name: str) -> Path | None:
        return None if self.run is None else self.run.activations_path(name)

    def _extract(self, name: str, model: object, **options: object) -> Activations:
        from thinkalike.activations import extract

        out = self._place(name)
        return extract(str(model), self.stimuli, system=name, out=out, **{**self.extraction, **options})


def _is_read(one: ToRead) -> bool:
    return one.out is not None and is_complete(one.out)
