"""Claims on everything that is by features: p of τ_w, ranges of ρ, importances, ranks and τ_w."""

from __future__ import annotations

from benchmarks.calibration.claims import Simulation

SIMULATIONS: dict[str, tuple[Simulation, int]] = {}
"""Name → the simulation, and the draws of a full run"""
