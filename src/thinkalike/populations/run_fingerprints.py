"""Fingerprints of the models of a comparison, made before their vectors are deleted."""

from __future__ import annotations

from thinkalike.comparison.expiring import LookedOver
from thinkalike.populations.fingerprinting import facts_of, fingerprint_of, is_usual
from thinkalike.populations.reference_sets import name_of_digest

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
