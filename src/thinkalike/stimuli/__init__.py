"""What the systems are shown: items, usually words in their sentences, and the features of each."""

from thinkalike.stimuli.table import Stimuli

__all__ = ["Stimuli"]
