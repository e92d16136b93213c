"""The command line: the library's own verbs.

Light on purpose: what takes time to import waits until Ctrl-C is provided for (`boundary`).
"""

from __future__ import annotations

from thinkalike.cli.boundary import main
from thinkalike.lazy import loader

__all__ = ["app", "main"]

__getattr__ = loader(__name__, {"app": "thinkalike.cli.commands"})
