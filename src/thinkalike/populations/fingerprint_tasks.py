"""Fingerprints as tasks that travel: a model goes out by name, and its fingerprint then lies in the atlas.

Vectors are made and looked at in one place, and never written: they are gone when the task ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thinkalike.dispatch import run_all
from thinkalike.parallel import Engine
from thinkalike.populations.atlas import Atlas
from thinkalike.types import Facts


@dataclass(frozen=True)
class FingerprintTask:
    """A model by name, the atlas that it goes to, and the options of `fingerprint`."""

    name: str
    model: str
    atlas: str
    reference: str
    options: Facts
    threads: int
    """Of torch: as many as the caller's, so that sums are rounded alike"""


def add_model(task: FingerprintTask) -> None:
    """Read the model, profile it, and write its fingerprint; a second time writes the same bytes."""
    import torch

    torch.set_num_threads(task.threads)
    options = {"cache": False, **task.options}
    Atlas(task.atlas, stimuli=task.reference).add(task.model, name=task.name, **options)


def add_on_workers(engine: Engine, atlas: Atlas, models: Mapping[str, str], options: Facts) -> None:
    """Add all models, and say at the end which failed."""
    import torch

    address, threads = str(atlas.store.root.resolve()), torch.get_num_threads()
    tasks = [
        FingerprintTask(name, model, address, atlas.stimuli, options, threads)
        for name, model in models.items()
    ]
    run_all(engine, add_model, tasks, names=models, description="Adding models")
