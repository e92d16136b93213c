"""Claims on geometric measures: their nulls and ranges."""

from __future__ import annotations

from benchmarks.calibration.claims import Simulation

SIMULATIONS: dict[str, tuple[Simulation, int]] = {}
"""Name → the simulation, and the draws of a full run"""
