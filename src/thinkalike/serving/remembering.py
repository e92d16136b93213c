"""What was found of layers, kept for the next question: most moves leave most layers as they were.

Distances between items depend on the layer, the items and the distance; the profile also on the features. So
a layer that is left out costs nothing, and another choice of features ranks no distances anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace

from thinkalike.comparison.layerpass import LayerTask, Look, LookedAt

MOST_BYTES = 1 << 29
"""Of ranked distances, by far the largest part of what is kept"""


class LayerMemory:
    """The layers that were looked at last, as long as there is room."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[Hashable, LookedAt] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def looking(
        self, items: Hashable, distance: str, features: Hashable
    ) -> Callable[[Look, LayerTask], LookedAt]:
        """A way to look at layers under one choice, which finds again what it has seen."""

        def look(look: Look, task: LayerTask) -> LookedAt:
            layer = (task.activations.system, task.layer, items, distance)
            examined = self._found((*layer, features), lambda: look(replace(task, geometry="nothing")))
            geometry = self._found(layer, lambda: look(replace(task, profile=False)))
            return replace(geometry, examined=examined.examined)

        return look

    def _found(self, key: Hashable, make: Callable[[], LookedAt]) -> LookedAt:
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
                return known
        made = make()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._size += _bytes(made)
            while self._size > self._most and len(self._kept) > 1:
                self._size -= _bytes(self._kept.popitem(last=False)[1])
        return made


def _bytes(found: LookedAt) -> int:
    return 0 if found.ranks is None else found.ranks.nbytes
