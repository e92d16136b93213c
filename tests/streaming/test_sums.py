"""CKA over batches: against the full batch and the mean of ratios; its standard errors against the truth."""

from __future__ import annotations

import numpy as np
import pytest

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.measures import MEASURES
from thinkalike.streaming import sums as streaming
from thinkalike.streaming.sums import StreamingCKA, ratios


def planted(rng: np.random.Generator, n: int = 50, *, noise: float = 1.0) -> list[np.ndarray]:
    """Three layers over the same items: the second is a noisy copy of the first, the third is unrelated."""
    X = rng.normal(size=(n, 6)) + 4
    return [X, X @ rng.normal(size=(6, 5)) + noise * rng.normal(size=(n, 5)), rng.normal(size=(n, 7))]


def streamed(
    batches: list[list[np.ndarray]], units: list[object] | None = None, **options: str
) -> StreamingCKA:
    stream = StreamingCKA(["a:0", "a:1", "b:0"], **options)  # type: ignore[arg-type]
    for k, batch in enumerate(batches):
        stream.add(batch, unit=None if units is None else units[k])
    return stream


def test_one_batch_is_plain_cka() -> None:
    batch = planted(np.random.default_rng(0))
    np.testing.assert_allclose(streamed([batch]).estimate(), MEASURES["cka"].matrix(batch), atol=1e-12)


def test_hsics_are_summed_before_the_ratio_or_ratios_averaged() -> None:
    rng = np.random.default_rng(1)
    batches = [planted(rng, 8) for _ in range(6)]
    each = [MEASURES["cka"].matrix(batch) for batch in batches]
    np.testing.assert_allclose(
        streamed(batches, average="ratio").estimate(), np.mean(each, axis=0), atol=1e-12
    )
    by_hsic = streamed(batches).estimate()
    assert np.abs(by_hsic - np.mean(each, axis=0))[0, 1] > 0.005

    def brute(i: int, j: int) -> float:
        """Σ over batches of the three-term HSIC₁."""
        total = 0.0
        for batch in batches:
            K, L = (Z @ Z.T - np.diag((Z * Z).sum(1)) for Z in (batch[i], batch[j]))
            n, one = len(K), np.ones(len(K))
            total += np.trace(K @ L) + (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
            total -= 2 / (n - 2) * (one @ K @ L @ one)
        return total

    expected = [[brute(i, j) / np.sqrt(brute(i, i) * brute(j, j)) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(by_hsic, expected, atol=1e-9)


def test_the_stream_converges_to_the_cka_of_the_distribution() -> None:
    """For x Gaussian and y = x + ε of equal variance, CKA is ‖Σxy‖²/(‖Σxx‖‖Σyy‖) = ½."""
    rng, stream = np.random.default_rng(2), StreamingCKA(["x", "y"])
    for _ in range(400):
        X = rng.normal(size=(16, 4))
        stream.add([X, X + rng.normal(size=X.shape)])
    assert stream.estimate()[0, 1] == pytest.approx(0.5, abs=3 * stream.standard_errors()[0, 1])
    assert 0.005 < stream.standard_errors()[0, 1] < 0.03


def test_the_mean_of_ratios_is_off_in_small_batches_and_the_ratio_of_sums_is_not() -> None:
    rng = np.random.default_rng(3)
    layers = [(X, X + rng.normal(size=X.shape)) for X in (rng.normal(size=(5, 4)) for _ in range(1000))]
    found = {}
    for average in streaming.AVERAGES:
        stream = StreamingCKA(["x", "y"], average=average)
        for batch in layers:
            stream.add(batch)
        found[average] = stream.estimate()[0, 1]
    assert found["hsic"] == pytest.approx(0.5, abs=0.05)
    assert abs(found["ratio"] - 0.5) > 0.05


def test_standard_errors_of_a_mean_are_the_textbooks() -> None:
    rng = np.random.default_rng(4)
    batches = [planted(rng, 12) for _ in range(20)]
    each = np.array([MEASURES["cka"].matrix(batch) for batch in batches])
    expected = each.std(axis=0, ddof=1) / np.sqrt(20)
    np.testing.assert_allclose(streamed(batches, average="ratio").standard_errors(), expected, atol=1e-12)


def test_standard_errors_cover_the_truth_when_documents_differ() -> None:
    """Documents have topics: tokens of one are alike. Errors over batches would be far too small."""
    rng = np.random.default_rng(5)

    def stream(by_document: bool) -> tuple[float, float]:
        found = StreamingCKA(["x", "y"])
        for document in range(16):
            angle = rng.choice([0.2, 1.4])  # how well the layers agree is a matter of the document
            for _ in range(6):
                X, Z = rng.normal(size=(2, 16, 3))
                Y = np.cos(angle) * X + np.sin(angle) * Z
                found.add([X, Y], unit=document if by_document else None)
        return found.estimate()[0, 1], found.standard_errors()[0, 1]

    runs = np.array([stream(True) for _ in range(40)])
    truth, spread = runs[:, 0].mean(), runs[:, 0].std()
    assert np.mean(np.abs(runs[:, 0] - truth) < 1.96 * runs[:, 1]) > 0.85
    assert np.median(runs[:, 1]) == pytest.approx(spread, rel=0.35)
    too_small = np.median([stream(False)[1] for _ in range(20)])
    assert too_small < 0.75 * spread


def test_unequal_units_are_weighed_by_their_items() -> None:
    """By hand, for a mean: Σ h-weighted squares of Busing et al. 1999, eq. for delete-m_j."""
    rng = np.random.default_rng(6)
    batches, units = [planted(rng, 10) for _ in range(5)], ["a", "a", "a", "b", "c"]
    found = streamed(batches, units, average="ratio").standard_errors()
    each = np.array([MEASURES["cka"].matrix(batch) for batch in batches])
    members = [np.array([u == unit for u in units]) for unit in "abc"]
    whole, n = each.mean(axis=0), 5
    left_out = [each[~m].mean(axis=0) for m in members]
    mean = 3 * whole - sum((1 - m.sum() / n) * one for m, one in zip(members, left_out, strict=True))
    variance = 0.0
    for m, one in zip(members, left_out, strict=True):
        h = n / m.sum()
        variance = variance + (h * whole - (h - 1) * one - mean) ** 2 / (h - 1) / 3
    np.testing.assert_allclose(found, np.sqrt(variance), atol=1e-12)


def test_one_unit_has_no_standard_error() -> None:
    stream = streamed([planted(np.random.default_rng(7)) for _ in range(3)], ["a"] * 3)
    assert stream.n_units == 1
    assert np.isnan(stream.standard_errors()).all()


def test_many_units_are_merged_without_changing_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    batches = [planted(rng, 10) for _ in range(60)]
    units = [k // 2 for k in range(58)] + [0, 1]  # the last two come back to the first two documents
    whole = streamed(batches, units)
    monkeypatch.setattr(streaming, "MOST_UNITS", 8)
    merged = streamed(batches, units)
    np.testing.assert_allclose(merged.estimate(), whole.estimate(), atol=1e-12)
    assert len(merged._sums) == 8  # 29 documents, 4 to a slot
    assert merged.n_units == whole.n_units == 29
    off_diagonal = ~np.eye(3, dtype=bool)
    ratio = merged.standard_errors()[off_diagonal] / whole.standard_errors()[off_diagonal]
    assert ratio.min() > 0.4
    assert ratio.max() < 2.5


def test_the_share_of_few_items() -> None:
    rng = np.random.default_rng(9)
    even = rng.normal(size=(200, 20))
    spiky = even.copy()
    spiky[:2] *= 100
    stream = StreamingCKA(["even", "spiky"])
    stream.add([even, spiky])
    shares = stream.top_share()
    assert 0.02 < shares[0] < 0.08
    assert shares[1] > 0.95

    def by_hand(X: np.ndarray) -> float:
        K = (X - X.mean(0)) @ (X - X.mean(0)).T
        np.fill_diagonal(K, 0)
        r = K.sum(1)
        U = K - (r[:, None] + r[None, :]) / 198 + r.sum() / (199 * 198)
        np.fill_diagonal(U, 0)
        top = np.argsort((U**2).sum(1))[-2:]
        rest = np.delete(np.delete(U, top, 0), top, 1)
        return 1 - (rest**2).sum() / (U**2).sum()

    np.testing.assert_allclose(shares, [by_hand(even), by_hand(spiky)], rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_torch_tensors_with_outliers_and_offsets_in_either_precision(dtype: str) -> None:
    """Batches as language models make them: a first token of huge norm, units with a large common offset."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(10)
    exact, found = StreamingCKA(["x", "y"]), StreamingCKA(["x", "y"], dtype=dtype)
    for _ in range(4):
        X = rng.normal(size=(128, 64))
        X[0] *= 100
        X[:, :3] += 1e3
        X = X.astype(np.float32)
        Y = (X @ rng.normal(size=(64, 32)) / 8 + rng.normal(size=(128, 32))).astype(np.float32)
        exact.add([X.astype(np.float64), Y.astype(np.float64)])
        found.add([torch.from_numpy(X), torch.from_numpy(Y)])
    np.testing.assert_allclose(found.estimate(), exact.estimate(), atol=1e-12 if dtype == "float64" else 1e-3)


def test_a_layer_that_never_varies_is_nan_and_the_rest_is_not() -> None:
    batches = [[*planted(np.random.default_rng(k))[:2], np.ones((50, 3))] for k in range(3)]
    stream = streamed(batches)
    assert np.isnan(stream.estimate()[2]).all()
    assert np.isfinite(stream.estimate()[:2, :2]).all()
    assert np.isnan(stream.top_share()[2])


def test_ratios_of_sums_have_ones_on_the_diagonal() -> None:
    np.testing.assert_array_equal(ratios(np.array([[4.0, 3.0], [3.0, 9.0]])), [[1, 0.5], [0.5, 1]])


class TestBadInput:
    def test_layers_over_different_items(self) -> None:
        X, Y, Z = planted(np.random.default_rng(0))
        with pytest.raises(InvalidInput, match=r"b:0 has shape \(49, 7\) in a batch of 50 items"):
            streamed([[X, Y, Z[1:]]])

    def test_another_number_of_layers(self) -> None:
        with pytest.raises(InvalidInput, match="A batch brought 2 layers; 3 were announced"):
            streamed([planted(np.random.default_rng(0))[:2]])

    def test_a_batch_of_three(self) -> None:
        with pytest.raises(InvalidInput, match="A batch has 3 items: unbiased CKA needs at least 4"):
            streamed([planted(np.random.default_rng(0), 3)])

    @pytest.mark.parametrize("library", ["numpy", "torch"])
    def test_nan(self, library: str) -> None:
        X, Y, Z = planted(np.random.default_rng(0))
        Y[3, 2] = np.nan
        batch = [X, Y, Z]
        if library == "torch":
            torch = pytest.importorskip("torch")
            batch = [torch.from_numpy(B) for B in batch]
        with pytest.raises(InvalidInput, match="a:1 has NaN or infinite values: use a wider dtype"):
            streamed([batch])

    def test_a_constant_batch_has_no_ratio(self) -> None:
        X, Y, Z = planted(np.random.default_rng(0))
        with pytest.raises(InvalidInput, match="b:0 is constant over a batch, which has no CKA then"):
            streamed([[X, Y, 0 * Z]], average="ratio")

    def test_nothing_came(self) -> None:
        with pytest.raises(InvalidInput, match="No batch has come yet"):
            streamed([]).estimate()

    def test_unknown_choices(self) -> None:
        with pytest.raises(UnknownName, match="There is no average 'ratios'"):
            streamed([], average="ratios")
        with pytest.raises(UnknownName, match="There is no dtype 'float16'"):
            streamed([], dtype="float16")
