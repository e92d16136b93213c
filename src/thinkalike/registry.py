"""Tables that others can add to: measures, distances, importances, architectures, sites, recipes.

A registry is a mapping of names. What is ours stands in it from the start; others add by one call,

    ta.measures.MEASURES.register("mine", measure)

or by an entry point of their own package, which is found when a name is asked for that is not ours:

    [project.entry-points."thinkalike.measures"]
    mine = "their_package:measure"

The command line, the lists in the docs, "did you mean" and the tests of invariances read the same table.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from thinkalike.errors import InvalidInput, UnknownName

Entry = TypeVar("Entry")

_LOOKING = threading.RLock()  # whoever asks while another thread looks waits for what it finds


class UnknownEntry(UnknownName, KeyError):
    """Also a KeyError, for whoever looks a name up and expects that."""

    __str__ = Exception.__str__  # a KeyError shows the repr of its message


class PluginWarning(UserWarning):
    """A plug-in that is installed and cannot be used; the rest works."""


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Name → entry; a name that is not there is an error that suggests the nearest one.

    Parameters
    ----------
    what : what an entry is called in messages, as "measure"
    group : the entry points that add to it, as "thinkalike.measures"
    own : the entries that stand in it from the start
    accept : makes an entry of what others give, or raises what is wrong with it: (name, given) → entry

    Examples
    --------
    >>> colours = Registry("colour", "thinkalike.examples", {"red": 1, "green": 2})
    >>> colours.register("blue", 3)
    3
    >>> list(colours)
    ['red', 'green', 'blue']
    """

    def __init__(
        self,
        what: str,
        group: str,
        own: Mapping[str, Entry],
        *,
        accept: Callable[[str, object], Entry] | None = None,
    ) -> None:
        self.what, self.group = what, group
        self._entries: dict[str, Entry] = dict(own)
        self._own = frozenset(own)
        self._accept = accept
        self._looked = False

    @property
    def own(self) -> tuple[str, ...]:
        """The names that stand in it from the start; asking for them looks for no plug-in."""
        return tuple(name for name in self._entries if name in self._own)

    def register(self, name: str, given: object) -> Entry:
        """Add an entry under a name that is free; returns it."""
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"Got {name!r} as the name of a {self.what}: give a word.")
        if name in self._entries:
            raise InvalidInput(f"There is a {self.what} {name!r} already: choose another name.")
        entry = given if self._accept is None else self._accept(name, given)
        self._entries[name] = entry  # type: ignore[assignment]
        return self._entries[name]

    def unregister(self, name: str) -> None:
        """Take an entry out that was added; ours stay."""
        if name in self._own:
            raise InvalidInput(f"{name!r} is a {self.what} of thinkalike itself: it stays.")
        del self._entries[name]

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            self._look_for_plugins()
        if name not in self._entries:
            raise UnknownEntry.among(self.what, name, self)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._entries:
            self._look_for_plugins()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        self._look_for_plugins()
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        self._look_for_plugins()
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Registry({self.what}: {', '.join(self)})"

    def _look_for_plugins(self) -> None:
        """Once, and only when someone asks for more than our own."""
        with _LOOKING:
            if self._looked:
                return
            self._looked = True
            for found in entry_points(group=self.group):
                self._add_plugin(found)

    def _add_plugin(self, found: EntryPoint) -> None:
        try:
            self.register(found.name, found.load())
        except Exception as error:
            warnings.warn(
                f"The {self.what} {found.name!r} of the plug-in {found.value} cannot be used "
                f"({type(error).__name__}: {error}). The rest works.",
                PluginWarning,
                stacklevel=4,
            )
