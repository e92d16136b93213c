"""What makes two language models think alike?

The public names are loaded when first used, so that `import thinkalike` is light and loads no torch.
"""

from __future__ import annotations

from thinkalike.lazy import loader
from thinkalike.machine import keep_off_amx, wait_asleep

__version__ = "1.0.0rc1"

keep_off_amx()  # before torch multiplies anything
wait_asleep()  # before torch brings OpenMP

_HOMES = {
    "Stimuli": "thinkalike.stimuli",
    "Activations": "thinkalike.activations",
    "extract": "thinkalike.activations",
    "latents": "thinkalike.activations",
    "MLEM": "thinkalike.encoding",
    "MEASURES": "thinkalike.measures",
    "stream_cka": "thinkalike.streaming",
    "profile": "thinkalike.comparison",
    "similarity": "thinkalike.comparison",
    "compare": "thinkalike.comparison",
    "compare_outputs": "thinkalike.streaming",
    "compare_with_group": "thinkalike.comparison",
    "explain": "thinkalike.comparison",
    "Atlas": "thinkalike.populations",
    "Fingerprint": "thinkalike.populations",
    "diff": "thinkalike.populations",
    "fingerprint": "thinkalike.populations",
    "trace": "thinkalike.populations",
    "plan": "thinkalike.comparison",
    "serve": "thinkalike.serving",
    "stitch": "thinkalike.stitching",
    "methods_text": "thinkalike.report",
    "workers": "thinkalike.parallel",
    "ThinkalikeError": "thinkalike.errors",
}

__all__ = ["__version__", *sorted(_HOMES)]


__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
