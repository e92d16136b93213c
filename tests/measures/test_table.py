"""The whole table at once: invariances, ranges, metrics, the fast way against the plain way, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thinkalike as ta
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.measures import INVARIANCES, MEASURES, get_measure, layer_measures

Layers = Callable[..., tuple[np.ndarray, np.ndarray]]


def rotation(d: int, rng: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def stretch(d: int, rng: np.random.Generator) -> np.ndarray:
    return rotation(d, rng) @ np.diag(np.geomspace(9, 0.3, d)) @ rotation(d, rng)


TRANSFORMATIONS = {
    "translation": lambda X, rng: X + 3 * rng.normal(size=X.shape[1]),
    "scale": lambda X, rng: X * rng.uniform(2, 9),
    "permutation": lambda X, rng: X[:, np.roll(np.arange(X.shape[1]), rng.integers(1, X.shape[1]))],
    "rotation": lambda X, rng: X @ rotation(X.shape[1], rng),
    "invertible": lambda X, rng: X @ stretch(X.shape[1], rng),
}
METRICS = [name for name, measure in MEASURES.items() if measure.metric]
SYMMETRIC = [name for name in layer_measures() if MEASURES[name].symmetric]


def needs(name: str) -> None:
    extra = {"topology": "ripser", "dsa": "DSA", "matching": "ot"}.get(MEASURES[name].needs_extra or "")
    if extra:
        pytest.importorskip(extra)


def arguments(name: str, layers: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    X, Y = layers
    if MEASURES[name].takes == "feature":
        return X, np.where(Y[:, 0] > np.median(Y[:, 0]), "high", "low")
    if MEASURES[name].takes == "outputs":
        return X[:, :6], Y
    return X, Y


@pytest.mark.parametrize("transformation", INVARIANCES)
@pytest.mark.parametrize("name", MEASURES)
def test_declared_invariances_hold_and_undeclared_ones_fail(
    related_layers: Layers, name: str, transformation: str
) -> None:
    needs(name)
    measure, change = MEASURES[name], TRANSFORMATIONS[transformation]
    changes: dict[str, list[float]] = {"of_first": [], "of_second": []}
    for seed in range(3):
        X, Y = arguments(name, related_layers(seed, noise=2.0))
        rng, value = np.random.default_rng(seed), measure(X, Y)
        changes["of_first"].append(abs(measure(change(X, rng), Y) - value))
        if measure.takes != "feature":
            changes["of_second"].append(abs(measure(X, change(Y, rng)) - value))
    for side, found in changes.items():
        declared = transformation in measure.invariances | getattr(measure, side)
        # A value may stay by accident under one map, not under three.
        assert not found or (max(found) < 1e-5 if declared else max(found) > 1e-3)


def test_the_transformations_tested_are_those_that_can_be_declared() -> None:
    assert TRANSFORMATIONS.keys() == INVARIANCES.keys()
    for measure in MEASURES.values():
        assert measure.invariances | measure.of_first | measure.of_second <= INVARIANCES.keys()


@pytest.mark.parametrize("name", [*layer_measures(), "dsa", "jensen-shannon", "disagreement"])
def test_equal_layers_are_as_alike_as_the_declaration_says(related_layers: Layers, name: str) -> None:
    needs(name)
    measure = MEASURES[name]
    X, _ = related_layers()
    value = measure(X, X)
    if measure.best_when_equal:
        assert value == pytest.approx(1.0 if measure.kind == "similarity" else 0.0, abs=1e-6)
    else:
        assert 0.5 < value <= 1.0


def test_an_item_that_is_nobodys_neighbour_does_not_come_back_to_itself(related_layers: Layers) -> None:
    X, _ = related_layers()
    X[3] = 1e3
    assert MEASURES["cycle-knn"](X, X) < 1.0
    assert MEASURES["mutual-knn"](X, X) == 1.0


@pytest.mark.parametrize("name", layer_measures())
def test_whether_it_counts_which_item_is_which_is_declared(related_layers: Layers, name: str) -> None:
    needs(name)
    X, Y = related_layers(noise=0.1)
    order = np.random.default_rng(0).permutation(len(Y))
    same = MEASURES[name](X, Y[order]) == pytest.approx(MEASURES[name](X, Y), abs=1e-6)
    assert same != MEASURES[name].matches_items


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), noise=st.floats(0, 5))
@pytest.mark.parametrize("name", [n for n in layer_measures() if n != "rtd"])
def test_values_are_in_range_and_symmetric_where_declared(
    related_layers: Layers, name: str, seed: int, noise: float
) -> None:
    X, Y = related_layers(seed, n=24, widths=(5, 4), noise=noise)
    measure = MEASURES[name]
    value, back = measure(X, Y), measure(Y, X)
    low, high = measure.range
    assert low - 1e-9 <= value <= high + 1e-9
    if measure.symmetric:
        assert back == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", [n for n in layer_measures() if not MEASURES[n].symmetric])
def test_undeclared_symmetry_fails(related_layers: Layers, name: str) -> None:
    pairs = [related_layers(seed, noise=2.0) for seed in range(3)]
    # More than rounding: CKNNA is nearly symmetric.
    assert max(abs(MEASURES[name](X, Y) - MEASURES[name](Y, X)) for X, Y in pairs) > 1e-5


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), step=st.floats(0.01, 3), widths=st.tuples(*[st.integers(1, 6)] * 3))
@pytest.mark.parametrize("name", METRICS)
def test_metrics_keep_the_triangle_inequality(
    name: str, seed: int, step: float, widths: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(16, widths[0]))
    # The middle one lies between the others, where the inequality is tightest.
    Y = X @ rng.normal(size=widths[:2]) + step * rng.normal(size=(16, widths[1]))
    Z = Y @ rng.normal(size=widths[1:]) + step * rng.normal(size=(16, widths[2]))
    d = MEASURES[name]
    for a, b, c in [(X, Y, Z), (Y, Z, X), (Z, X, Y)]:
        assert d(a, c) <= d(a, b) + d(b, c) + 1e-7


@pytest.mark.parametrize("name", METRICS)
def test_metrics_tell_apart_layers_that_differ_by_a_private_direction_of_each_item(
    related_layers: Layers, name: str
) -> None:
    X, _ = related_layers(n=40, widths=(4, 3))
    private = np.hstack([X, np.eye(40)[:, :3] * 2])
    assert MEASURES[name](X, private) > 1e-3


def test_unbiased_cka_is_no_metric_for_it_does_not_see_private_directions(related_layers: Layers) -> None:
    X, _ = related_layers(n=40, widths=(4, 3))
    private = np.hstack([X, np.diag(np.linspace(1, 3, 40))])
    assert not MEASURES["cka"].metric
    assert MEASURES["cka"](X, private) == pytest.approx(1.0, abs=1e-12)
    assert MEASURES["cka-angular"](X, private) > 0.1


@pytest.mark.parametrize("name", layer_measures())
def test_the_matrix_over_layers_is_the_measure_pair_by_pair(related_layers: Layers, name: str) -> None:
    needs(name)
    measure = MEASURES[name]
    a = [*related_layers(3, n=40), related_layers(4, n=40)[0]]
    b = list(related_layers(5, n=40))
    among, between = measure.matrix(a), measure.matrix(a, b)
    assert among.shape == (3, 3)
    assert between.shape == (3, 2)
    np.testing.assert_allclose(among, [[measure(x, y) for y in a] for x in a], atol=1e-7)
    np.testing.assert_allclose(between, [[measure(x, y) for y in b] for x in a], atol=1e-7)


@pytest.mark.parametrize("name", layer_measures())
def test_torch_tensors_and_float32_are_taken(related_layers: Layers, name: str) -> None:
    needs(name)
    import torch

    X, Y = (Z.astype(np.float32) for Z in related_layers())
    measure = MEASURES[name]
    assert measure(torch.from_numpy(X), torch.from_numpy(Y)) == measure(X, Y)
    assert measure(X, Y) == pytest.approx(measure(*related_layers()), abs=2e-3)


def test_half_precision_tensors_are_widened_before_use(related_layers: Layers) -> None:
    import torch

    X, Y = related_layers()
    value = MEASURES["cka"](torch.tensor(X, dtype=torch.bfloat16), torch.tensor(Y, dtype=torch.float16))
    assert value == pytest.approx(MEASURES["cka"](X, Y), abs=0.01)


def test_inputs_are_left_as_they_were(related_layers: Layers) -> None:
    X, Y = related_layers()
    before = X.copy(), Y.copy()
    for name in layer_measures():
        if MEASURES[name].needs_extra is None:
            MEASURES[name](X, Y)
            MEASURES[name].matrix([X, Y])
    np.testing.assert_array_equal(before[0], X)
    np.testing.assert_array_equal(before[1], Y)


@pytest.mark.parametrize("name", layer_measures())
class TestBadInput:
    def test_different_numbers_of_items(self, related_layers: Layers, name: str) -> None:
        X, Y = related_layers()
        with pytest.raises(
            InvalidInput, match="X has 60 items and Y has 59: both layers must answer the same items"
        ):
            MEASURES[name](X, Y[1:])
        with pytest.raises(InvalidInput, match="a:0 has 60 items and b:3 has 59"):
            MEASURES[name].matrix([X], [Y[1:]], names_a=["a:0"], names_b=["b:3"])

    def test_no_units(self, related_layers: Layers, name: str) -> None:
        X, Y = related_layers()
        with pytest.raises(InvalidInput, match=r"Y has no units \(shape \(60, 0\)\)"):
            MEASURES[name](X, Y[:, :0])

    def test_a_constant_layer_is_named(self, related_layers: Layers, name: str) -> None:
        X, Y = related_layers()
        flat = np.full_like(Y, 0.1)
        with pytest.raises(InvalidInput, match="Y is constant: it gives all 60 items the same vector"):
            MEASURES[name](X, flat)
        with pytest.raises(InvalidInput, match="bert:0 is constant"):
            MEASURES[name].matrix([X, flat], names_a=["bert:1", "bert:0"])

    def test_nan_and_infinity_with_their_row(self, related_layers: Layers, name: str) -> None:
        X, Y = related_layers()
        X[7, 2], X[9, 0] = np.nan, np.inf
        with pytest.raises(
            InvalidInput, match="X has NaN or infinite values in 2 of 60 items, first in row 7"
        ):
            MEASURES[name](X, Y)

    def test_one_item(self, related_layers: Layers, name: str) -> None:
        X, Y = related_layers()
        with pytest.raises(InvalidInput, match="X has 1 items: this measure needs at least 2"):
            MEASURES[name](X[:1], Y[:1])


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("cka", 4),
        ("cka-rbf", 4),
        ("rsa", 3),
        ("rsa-pearson", 3),
        ("rsa-kendall", 3),
        ("mutual-knn", 12),
        ("cknna", 12),
        ("imd", 7),
        ("rsa-whitened", 3),
        ("distance-correlation-unbiased", 4),
        ("regression-cv", 10),
    ],
)
def test_too_few_items(related_layers: Layers, name: str, least: int) -> None:
    X, Y = related_layers()
    with pytest.raises(InvalidInput, match=f"X has {least - 1} items: this measure needs at least {least}"):
        MEASURES[name](X[: least - 1], Y[: least - 1])
    assert math.isfinite(MEASURES[name](X[:least, :2], Y[:least, :2]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((4, 3, 2)), r"X has shape \(4, 3, 2\): expected \(n_items, n_units\)"),
        (np.zeros(4), r"X has shape \(4,\)"),
        ([["a", "b"]], "X is not an array of real numbers"),
        (np.ones((5, 2)) * 1j, "X is not an array of real numbers"),
    ],
)
def test_what_is_no_layer(values: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        MEASURES["cka"](values, np.zeros((4, 2)))


def test_no_layers_at_all() -> None:
    with pytest.raises(InvalidInput, match="no layers to compare"):
        MEASURES["cka"].matrix([])


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"no measure 'procrustis'\. Did you mean 'procrustes'\?"):
        get_measure("procrustis")
    assert get_measure("cka") is ta.MEASURES["cka"]


def test_what_takes_a_feature_is_kept_out_of_matrices() -> None:
    assert "probe" not in layer_measures()
    assert "dsa" not in layer_measures()
    with pytest.raises(InvalidInput, match=r"probe compares a layer with a feature, .* and not two layers"):
        MEASURES["probe"].matrix([np.zeros((4, 2))])
    with pytest.raises(InvalidInput, match=r"probe compares a layer with a feature, .* and not two layers"):
        MEASURES["probe"](np.eye(4), np.eye(4))


@pytest.mark.parametrize("name", ["CKA", "ckaa"])
def test_the_table_itself_suggests_the_nearest(name: str) -> None:
    for kind in (UnknownName, KeyError):
        with pytest.raises(kind) as caught:
            MEASURES[name]
        assert str(caught.value).startswith(f"There is no measure '{name}'. Did you mean 'cka'? Known: cka, ")
    assert name not in MEASURES
    assert MEASURES.get(name) is None
