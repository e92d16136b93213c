"""One model is loaded at a time, and quietly: what transformers changes meanwhile is the whole process's."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from thinkalike.progress import without_bars

_alone = threading.RLock()


@contextmanager
def loading() -> Iterator[None]:
    """Around every call that makes a model of transformers.

    While it makes one, transformers replaces functions of torch and of its own, and the default dtype, for
    all threads. Two threads that do so side by side put back what the other had replaced: every later model
    would be half precise, or without its tied weights. The seed of torch is everybody's, too.

    Load reports and bars are kept from the user: what matters of them we check ourselves.
    """
    from transformers.utils import logging

    with _alone:
        level = logging.get_verbosity()
        logging.set_verbosity_error()
        try:
            with without_bars(), warnings.catch_warnings():
                # DeBERTa's module compiles itself with it when it is imported.
                warnings.filterwarnings("ignore", r"`torch\.jit\.script` is deprecated", DeprecationWarning)
                yield
        finally:
            logging.set_verbosity(level)
