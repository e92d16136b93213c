"""Ceilings of measures of directions: against eigenvalues, and against models that are made to be good."""

from __future__ import annotations

import numpy as np
import pytest

import thinkalike as ta
from thinkalike.comparison.group_ceilings import BEST, ceilings_of_directions
from thinkalike.measures import MEASURES

RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(40, 3))
PEOPLE = [SHARED @ RNG.normal(size=(3, d)) + 0.7 * RNG.normal(size=(40, d)) for d in (6, 6, 5, 7)]
NAMES = list("abcd")
BOUNDED = [name for name in BEST if name not in ("pwcca", "regression-cv")]


def projector(X: np.ndarray) -> np.ndarray:
    C = X - X.mean(axis=0)
    return C @ np.linalg.pinv(C)


def eigenvectors(mean: np.ndarray) -> np.ndarray:
    """Largest first."""
    return np.linalg.eigh(mean)[1][:, ::-1]


@pytest.mark.parametrize("m", [1, 2, 4, 6])
@pytest.mark.parametrize("measure", BOUNDED)
def test_no_model_of_so_many_directions_is_above(measure: str, m: int) -> None:
    """Neither directions drawn at random, nor the truth, nor those that subjects share most."""
    rng = np.random.default_rng(1)
    projectors = [projector(X) for X in PEOPLE]
    centred = [X - X.mean(axis=0) for X in PEOPLE]
    grams = [C @ C.T / (C**2).sum() for C in centred]
    models = [rng.normal(size=(40, m)) for _ in range(20)]
    models += [eigenvectors(np.mean(some, axis=0))[:, :m] for some in (projectors, grams)]
    models += [SHARED[:, :m]] if m <= 3 else []
    row = MEASURES[measure]
    _, upper = ceilings_of_directions(row, PEOPLE, models, NAMES)
    reached = np.array([np.mean([row(X, model) for X in PEOPLE]) for model in models])
    assert len(set(upper)) == 1
    assert (reached <= upper + 1e-9).all()


@pytest.mark.parametrize("m", [1, 3])
def test_some_bounds_are_reached(m: int) -> None:
    """What m directions explain of subjects: the leading ones of the mean Gram matrix, as much as can be."""
    centred = [X - X.mean(axis=0) for X in PEOPLE]
    gram = np.mean([C @ C.T / (C**2).sum() for C in centred], axis=0)
    shared = np.mean([projector(X) for X in PEOPLE], axis=0)
    reverse, forward = MEASURES["regression-reverse"], MEASURES["regression"]
    best = eigenvectors(gram)[:, :m]
    upper = ceilings_of_directions(reverse, PEOPLE, [best], NAMES)[1][0]
    assert upper == pytest.approx(np.linalg.eigvalsh(gram)[::-1][:m].sum())
    assert np.mean([reverse(X, best) for X in PEOPLE]) == pytest.approx(upper)
    one = eigenvectors(shared)[:, :1]
    upper = ceilings_of_directions(forward, PEOPLE, [one], NAMES)[1][0]
    assert upper == pytest.approx(np.linalg.eigvalsh(shared)[-1])
    assert np.mean([forward(X, one) for X in PEOPLE]) == pytest.approx(upper)
    both = ceilings_of_directions(MEASURES["regression-mean"], PEOPLE, [best], NAMES)[1][0]
    assert both == pytest.approx((np.linalg.eigvalsh(gram)[::-1][:m].sum() + upper) / 2)


@pytest.mark.parametrize("measure", BEST)
def test_the_lower_one_is_another_subject_by_as_many_directions(measure: str) -> None:
    from sklearn.decomposition import PCA

    row = MEASURES[measure]
    model = np.random.default_rng(2).normal(size=(40, 2))
    lower, upper = ceilings_of_directions(row, PEOPLE, [model], NAMES)
    few = [PCA(2).fit_transform(X) for X in PEOPLE]
    expected = np.mean([row(PEOPLE[a], few[b]) for a in range(4) for b in range(4) if a != b])
    assert lower[0] == pytest.approx(expected, abs=1e-9)
    assert lower[0] < upper[0]


def test_models_of_other_widths_have_ceilings_of_their_own() -> None:
    models = {"wide": RNG.normal(size=(40, 6)), "narrow": SHARED[:, :2]}
    found = ta.compare_with_group(np.stack(PEOPLE[:2]), models, measure="regression-reverse", permutations=19)
    table = found.table(over="subjects").set_index("model")
    assert table.loc["wide:wide", "ceiling_upper"] > table.loc["narrow:narrow", "ceiling_upper"]
    assert "by as many directions as the model has" in str(found)
    assert found.plot().to_dict()


def test_subjects_too_wide_for_one_another_may_have_a_model() -> None:
    people = np.random.default_rng(0).normal(size=(4, 20, 15))
    wide, narrow = people[0, :, :4], people[0, :, :2]
    found = ta.compare_with_group(people, {"wide": wide, "narrow": narrow}, measure="cca", permutations=19)
    assert np.isfinite(found.scores).all()
    assert np.isfinite([found.ceiling_lower, found.ceiling_upper]).all()
    found = ta.compare_with_group(people, {"narrow": narrow}, measure="shape-0", permutations=19)
    assert np.isfinite(found.scores).all()
    assert np.isnan([found.ceiling_lower, found.ceiling_upper]).all()
    assert found.cautions()[0].startswith("Ceilings are missing: shape-0 of two subjects is not defined here")
