"""The features a grammar speaks about, and the values each may have."""

from __future__ import annotations

from dataclasses import dataclass

from thinkalike.errors import UnknownName
from thinkalike.stimuli.grammar.source import Source
from thinkalike.stimuli.kinds import Kind

NONE = "-"
"""Written for "has no value": a value like others when words must agree, a missing one in the table."""
ANY = "any"
"""Written in a lexicon for "goes with every value and is marked for none", like the number of "the"."""

COMPUTED = {
    "characters": "the length of the item in characters",
    "position": "how many words stand before the item",
    "words": "the number of words in the item",
}
"""What a feature can be computed from instead of being marked by rules and words; all are numeric."""


@dataclass(frozen=True)
class Domain:
    """Which features there are.

    Attributes
    ----------
    values : feature → the values it may have, for all that rules and words can mark.
    computed : feature → a key of `COMPUTED`.
    columns : the features that become columns of the table, in order; the others serve the grammar only.
    ordinal : those of the columns whose values are in order.
    """

    values: dict[str, tuple[str, ...]]
    computed: dict[str, str]
    columns: tuple[str, ...]
    ordinal: frozenset[str]

    def check(self, feature: str, value: str | None, source: Source, line: int) -> None:
        """Raise unless `feature` exists and may have `value` (None: whatever it has)."""
        if feature not in self.values:
            raise source.error(line, str(UnknownName.among("feature", feature, self.values)))
        if value is not None and value not in (*self.values[feature], NONE):
            what = f"value of the feature {feature!r} called"
            raise source.error(line, str(UnknownName.among(what, value, (*self.values[feature], NONE))))

    def kind(self, column: str) -> Kind:
        if column in self.computed:
            return "numeric"
        return self.values[column] if column in self.ordinal else "nominal"


def read_domain(source: Source, lexicon: Source | None = None) -> Domain:
    """Read `[features]`, which become columns, and `[internal]`, which do not; a lexicon may add to these."""
    shown = _table(source, "features")
    values: dict[str, tuple[str, ...]] = {}
    computed, ordinal = {}, set()
    for name, given in shown.items():
        line = source.key_line("features", name)
        if isinstance(given, str):
            if given not in COMPUTED:
                raise source.error(line, str(UnknownName.among("way to compute a feature", given, COMPUTED)))
            computed[name] = given
        elif isinstance(given, dict) and set(given) == {"ordinal"}:
            ordinal.add(name)
            values[name] = _values(name, given["ordinal"], source, line)
        else:
            values[name] = _values(name, given, source, line)
    for one in (source, lexicon) if lexicon else (source,):
        for name, given in _table(one, "internal").items():
            values.setdefault(name, _values(name, given, one, one.key_line("internal", name)))
    return Domain(values, computed, tuple(shown), frozenset(ordinal))


def _values(name: str, given: object, source: Source, line: int) -> tuple[str, ...]:
    if not isinstance(given, list) or not given:
        raise source.error(line, f"the values of {name!r} were expected, as in {name} = ['this', 'that'].")
    return tuple(str(value) for value in given)


def _table(source: Source, section: str) -> dict[str, object]:
    table = source.content.get(section, {})
    if not isinstance(table, dict):
        raise source.error(source.key_line("", section), f"[{section}] must be a table of features.")
    return table
