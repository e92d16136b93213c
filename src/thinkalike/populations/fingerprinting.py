"""From a model to its `Fingerprint`; also of the models of a comparison, before their vectors are deleted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from thinkalike.activations.conversion import check_extraction, is_array_file, name_of, open_activations
from thinkalike.activations.store import Activations
from thinkalike.comparison.comparing import RESAMPLES
from thinkalike.comparison.expiring import LookedOver
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import ProfilingPlan, plan_profiles, profile
from thinkalike.encoding.settings import make_settings
from thinkalike.files import plain
from thinkalike.options import one_name
from thinkalike.populations.fingerprint_record import Fingerprint
from thinkalike.populations.reference_sets import WORDS, name_of_digest, reference
from thinkalike.populations.sketch import Sketcher, sketch_pairs
from thinkalike.types import Facts, Json, Option

if TYPE_CHECKING:
    from torch import nn


@one_name
def fingerprint(
    model: str | os.PathLike[str] | Activations | nn.Module,
    stimuli: str = WORDS,
    *,
    name: str | None = None,
    facts: Facts | None = None,
    **extraction: Option,
) -> Fingerprint:
    """Show reference stimuli to a model, and keep what is needed to compare it with others later.

    Parameters
    ----------
    model : a model by name, or loaded, as `extract` takes it; or its activations for the reference stimuli
        (`thinkalike.populations.reference`), also arrays, for systems of any other kind.
    stimuli : {"words-1", "sentences-1"}
        The name of the reference. Of whole sentences the last token is read.
    name : that the system goes by, if not the model's.
    facts : what is known of it besides its configuration: data, tokens, date, family.
    extraction : options of `extract`, such as `revision` or `device`.

    Returns
    -------
    Fingerprint
        With settings that are the same for all: the default preset, 20 resamples, seed 0.

    Examples
    --------
    >>> import thinkalike as ta
    >>> made = ta.fingerprint("nano-pythia-64", facts={"family": "pythia"})
    >>> made
    Fingerprint(nano-pythia-64: 3 layers on words-1)
    >>> made.facts["depth"], made.facts["positions"], made.facts["family"]
    (2, 'rotary', 'pythia')
    """
    shown = reference(stimuli)
    found, known = _activations(model, stimuli, name, extraction)
    found.check_stimuli(shown)
    found = telling(found, stimuli)
    made = profile(found, shown, plan=_plan(stimuli))
    return fingerprint_of(found, made, stimuli, {**known, **(facts or {})})


def fingerprint_of(found: Activations, made: Profile, stimuli: str, facts: Facts) -> Fingerprint:
    """From the vectors, and the profile that was made of them with the usual settings."""
    sketcher = Sketcher(sketch_pairs(stimuli))
    has_blocks = any(isinstance(layer, int) and layer > 0 for layer in found.layers)
    for layer in found.layers:
        is_block = isinstance(layer, int) and layer > 0
        sketcher.add(found[layer], f"{found.system}:{layer}", is_block=is_block or not has_blocks)
    told = _public(made.metadata)
    digest = reference(stimuli).digest
    made = replace(made, stimuli_digest=digest, collinearity=None, diagnostics=None, metadata=told)
    return Fingerprint(stimuli, made, sketcher.finished(), facts)


def is_usual(made: Profile) -> bool:
    """Whether a profile has the settings that those of all fingerprints have."""
    return plain(made.settings) == plain({**make_settings("default").as_dict(), "resamples": RESAMPLES})


def telling(found: Activations, stimuli: str) -> Activations:
    """Without the embeddings of whole sentences, whose last token is a full stop in every one of them."""
    if stimuli == WORDS or found.layers[0] != 0 or len(found.layers) == 1:
        return found
    read = found._read
    return replace(found, layers=found.layers[1:], n_units=found.n_units[1:], _read=lambda k: read(k + 1))


def _public(metadata: Facts) -> Json:
    """Without where things lie on this machine, for fingerprints are published, and what was not asked."""
    told = {key: value for key, value in metadata.items() if key != "path" and value not in (None, False)}
    model = told.get("model")
    return {**told, "model": name_of(model)} if isinstance(model, str) else told


@lru_cache(maxsize=4)
def _plan(stimuli: str) -> ProfilingPlan:
    return plan_profiles(reference(stimuli), resamples=RESAMPLES)


def _activations(
    model: str | os.PathLike[str] | Activations | nn.Module,
    stimuli: str,
    name: str | None,
    extraction: Mapping[str, Any],
) -> tuple[Activations, Json]:
    """The activations, and the facts that the model's configuration knows."""
    from thinkalike.activations.extraction import extract

    check_extraction(extraction, [model])
    if isinstance(model, (Activations, Mapping)) or hasattr(model, "shape"):
        return open_activations(model, name or str(getattr(model, "system", "array"))), {}
    if is_array_file(model):
        return open_activations(model, name or name_of(str(model))), {}
    given = str(model) if isinstance(model, os.PathLike) else model
    called = name or (name_of(given) if isinstance(given, str) else None)
    found = extract(given, reference(stimuli), system=called, **extraction)
    return found, facts_of(given, extraction)


def facts_of(model: str | nn.Module, extraction: Mapping[str, Any]) -> Json:
    """What the configuration of a model knows."""
    from dataclasses import fields

    from thinkalike.populations.model_facts import model_facts
    from thinkalike.systems.system import LoadOptions, open_system

    taken = {field.name for field in fields(LoadOptions)}
    options = LoadOptions(**{k: v for k, v in extraction.items() if k in taken and v is not None})
    config = open_system(model, options).config
    return {} if config is None else model_facts(config)


FINGERPRINT = "fingerprint.npz"
"""In the folder of a system in the run directory"""


def leave_fingerprint(seen: LookedOver) -> None:
    """Leave the fingerprint of a system in the run directory, as `fingerprint` would make it.

    Only of reference stimuli, and with the settings of all fingerprints: others could not be compared with
    any. The default sentences of `compare` are the reference `words-1`, and its settings are the usual ones.

    Parameters
    ----------
    seen
        What `compare(last_look=…)` hands over of each system: its vectors, its profile, its folder.

    Examples
    --------
    >>> import thinkalike as ta
    >>> from thinkalike.populations import leave_fingerprint
    >>> options = {"keep": "profiles", "last_look": leave_fingerprint}
    >>> _ = ta.compare(["nano-pythia-64", "nano-pythia-96"], out="run", **options)  # doctest: +SKIP
    >>> ta.Fingerprint.load("run/systems/nano-pythia-64/fingerprint.npz")  # doctest: +SKIP
    Fingerprint(nano-pythia-64: 3 layers on words-1)
    """
    name = name_of_digest(seen.profile.stimuli_digest)
    if name is None or not is_usual(seen.profile):
        return
    facts = {} if seen.model is None else facts_of(seen.model, seen.options)
    fingerprint_of(seen.activations, seen.profile, name, facts).save(seen.folder / FINGERPRINT)
