"""What a careful reader should know before believing the numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Caution:
    """One thing to know, where it was seen, and what it means."""

    kind: str
    """A key of `CAUTIONS`, e.g. `"low-score"`"""
    text: str
    """A sentence for people"""
    systems: tuple[str, ...] = ()
    """The systems it is about; empty when it is about the run"""
