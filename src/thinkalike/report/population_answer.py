"""What the page of a population says first: who is most alike, why, how sure that is; in plain words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from thinkalike.labels import Floats
from thinkalike.populations.between_models import FEATURES, Distances
from thinkalike.populations.model_trees import ModelTree
from thinkalike.populations.why import Why
from thinkalike.wording import listed, readable

RSA = "rsa"
LEVEL = 0.05
MOST_FACTS = 3


def population_answer(found: Distances, tree: ModelTree, reasons: Why | None) -> list[tuple[str, str]]:
    """Questions with their answers, the most important first."""
    near, far = _extremes(found)
    return [
        ("Who is alike?", f"{listed(near)} are the most alike, {listed(far)} the least."),
        ("Why?", why_in_words(reasons)),
        ("How sure is that?", _sure(near, float(tree.support[0]))),  # the first fork joins the nearest two
        ("What would change it?", _otherwise(found.by, reasons)),
        ("What next?", f"See what {listed(near)} care about, layer by layer: they are the pair below."),
    ]


def stress_in_words(stress: float) -> str:
    """How far the places on a map can be trusted."""
    if stress < 0.1:
        return f"Two dimensions hold the distances well (stress {stress:.2f})."
    if stress < 0.2:
        return f"Two dimensions hold the distances fairly well (stress {stress:.2f})."
    return f"But two dimensions hold them poorly (stress {stress:.2f}): trust the neighbours below more."


def _extremes(found: Distances) -> tuple[list[str], list[str]]:
    i, j = np.triu_indices(len(found.names), 1)
    order = np.argsort(found.values[i, j], kind="stable")
    first, last = ([found.names[i[k]], found.names[j[k]]] for k in (order[0], order[-1]))
    return first, last


def why_in_words(reasons: Why | None) -> str:
    """Which facts go with how alike models are, in one sentence; each list is corrected for its length."""
    if reasons is None:
        return "Not asked: there are too few models, or no facts that differ among them."
    apart = _named(reasons, reasons.q)
    alone = _named(reasons, reasons.q_alone)
    if apart:
        return f"Models alike in {listed(apart)} are nearer to one another, whatever the other facts."
    if alone:
        return f"Models alike in {listed(alone)} are nearer, but the other facts may be the reason."
    return "No fact about them was found to go with how alike they are."


def _otherwise(by: str, reasons: Why | None) -> str:
    if reasons is not None and not _named(reasons, reasons.q):
        return "More models: here many facts come together, and cannot be told apart."
    if by == RSA:
        return f"By features other models may come first (--by {FEATURES})."
    return f"By geometry, which knows no features, other models may come first (--by {RSA})."


def _named(reasons: Why, q: Floats) -> list[str]:
    """The facts that pass, the most important first, a few at most."""
    order = np.argsort(-reasons.importance, kind="stable")
    names = list(reasons.groups)
    return [_together(names[k]) for k in order if q[k] <= LEVEL][:MOST_FACTS]


def _together(fact: str) -> str:
    """Facts that cannot be told apart here, as one."""
    parts = readable(fact).split(" + ")
    return f"{listed(parts)} (which go together)" if len(parts) > 1 else parts[0]


def left_out_in_words(left_out: Mapping[str, str]) -> str:
    """The facts that were not asked about, by why."""
    because = {
        why: [readable(fact) for fact in left_out if left_out[fact] == why] for why in left_out.values()
    }
    return "; ".join(f"{listed(facts)} ({why})" for why, facts in because.items())


def _sure(near: list[str], support: float) -> str:
    if np.isnan(support):
        return "This distance was not drawn again with other sentences."
    times = round(100 * support)
    doubt = "; another pair may well come first" if support < 0.5 else ""
    return f"With other sentences {listed(near)} stand together in {times} of 100 draws{doubt}."
