"""From pairs to populations: fingerprints of models, an atlas of them, and why models are alike."""

from __future__ import annotations

from thinkalike.lazy import loader

_HOMES = {
    "Atlas": "thinkalike.populations.atlas",
    "Fingerprint": "thinkalike.populations.fingerprint_record",
    "Difference": "thinkalike.populations.diffing",
    "Trace": "thinkalike.populations.tracing",
    "diff": "thinkalike.populations.diffing",
    "fingerprint": "thinkalike.populations.fingerprinting",
    "leave_fingerprint": "thinkalike.populations.fingerprinting",
    "reference": "thinkalike.populations.reference_sets",
    "trace": "thinkalike.populations.tracing",
}

__all__ = [
    "Atlas",
    "Difference",
    "Fingerprint",
    "Trace",
    "diff",
    "fingerprint",
    "leave_fingerprint",
    "reference",
    "trace",
]


__getattr__ = loader(__name__, _HOMES)
