"""CKA of layers that are read one by one, against the same between arrays that are all there."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from thinkalike.activations import Activations
from thinkalike.comparison import similarity
from thinkalike.errors import InvalidInput
from thinkalike.inference.left_out import left_out_matrices
from thinkalike.measures import MEASURES, large_cka
from thinkalike.stimuli import Stimuli

N, WIDTHS = 300, (7, 12, 5, 9)


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Two of which are held at a time; blocks that do not divide the items; a large offset in one."""
    monkeypatch.setattr(large_cka, "MEMORY", 2 * 4 * N * 7)
    monkeypatch.setattr(large_cka, "HELD", 2 * 4 * N * 7)
    monkeypatch.setattr(large_cka, "BLOCK_ROWS", 64)
    rng = np.random.default_rng(0)
    base = rng.normal(size=(N, 6))
    made = [base @ rng.normal(size=(6, width)) + rng.normal(size=(N, width)) for width in WIDTHS]
    made[1] += 1000.0
    return [X.astype(np.float32) for X in made]


class Read(list):  # type: ignore[type-arg]
    """Counts how often a layer is asked for."""

    def __init__(self, layers: list[np.ndarray]) -> None:
        super().__init__(layers)
        self.times = 0

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        self.times += 1
        return super().__getitem__(place)


@pytest.mark.parametrize("biased", [False, True])
def test_all_pairs_are_those_of_the_measure(layers: list[np.ndarray], biased: bool) -> None:
    read = Read(layers)
    found, without = large_cka.large_cka(read, list("abcd"), biased=biased)
    name = "cka-biased" if biased else "cka"
    expected = [[MEASURES[name](X, Y) for Y in layers] for X in layers]
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert without is None
    assert read.times == 1 + 4 + 2  # how large they are; two are held, and the others read; then the others


class Fresh(Read):
    """Reads a layer anew each time, and counts how many of these are still there."""

    def __init__(self, layers: list[np.ndarray]) -> None:
        super().__init__(layers)
        self.now = self.most = 0

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        made = super().__getitem__(place).copy()
        self.now += 1
        self.most = max(self.most, self.now)
        weakref.finalize(made, self._gone)
        return made

    def _gone(self) -> None:
        self.now -= 1


def test_what_was_held_is_let_go_before_the_next_are_read(layers: list[np.ndarray]) -> None:
    read = Fresh([*layers, *layers])
    large_cka.large_cka(read, list("abcdefgh"))
    assert read.most == 2 + 2  # two are held, one is beside them, and one is being read
    assert read.now == 0


def test_without_each_part_is_the_measure_of_what_stays(layers: list[np.ndarray]) -> None:
    part = np.random.default_rng(1).permutation(np.arange(N) % 7)
    _, without = large_cka.large_cka(layers, list("abcd"), part=part)
    assert without is not None
    for g in range(7):
        stays = [X[part != g] for X in layers]
        expected = [[MEASURES["cka"](X, Y) for Y in stays] for X in stays]
        np.testing.assert_allclose(without[g], expected, atol=1e-9)
    kept = [np.flatnonzero(part != g) for g in range(7)]
    np.testing.assert_allclose(without, left_out_matrices("cka", layers, kept).values, atol=1e-9)


def test_a_constant_layer_is_named(layers: list[np.ndarray]) -> None:
    with pytest.raises(InvalidInput, match="b is constant"):
        large_cka.large_cka([layers[0], np.full((N, 3), 5.0)], ["a", "b"])


@pytest.mark.parametrize("measure", ["cka", "cka-angular"])
def test_similarity_takes_it_for_what_has_no_room(layers: list[np.ndarray], measure: str) -> None:
    """And gives the same ranges and p-values as for what has."""
    shown = Stimuli.from_grammar(200, seed=0, grammar="salle2024").subset(np.arange(N))
    systems = [Activations.from_arrays({0: layers[0], 1: layers[1]}, system="a", stimuli=shown),
               Activations.from_arrays({0: layers[2], 1: layers[3]}, system="b", stimuli=shown)]  # fmt: skip
    assert large_cka.is_large(measure, N, WIDTHS)
    found = similarity(systems, measure=measure, stimuli=shown, n_permutations=19)
    large_cka.MEMORY = 1 << 30  # the fixture puts it back
    assert not large_cka.is_large(measure, N, WIDTHS)
    expected = similarity(systems, measure=measure, stimuli=shown, n_permutations=19)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-7)
    assert found.to_frame().columns.tolist() == expected.to_frame().columns.tolist()
    for name in ("low", "high", "p", "calibrated"):
        if name in found.to_frame():
            np.testing.assert_allclose(
                found.to_frame()[name].to_numpy(float), expected.to_frame()[name].to_numpy(float), atol=1e-6
            )
