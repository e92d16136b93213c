"""How differently models predict: against transformers and SciPy by hand, resumed, and refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

import thinkalike as ta
from thinkalike.errors import InvalidInput
from thinkalike.streaming import output_distances
from thinkalike.systems import bundled

MODELS = ["nano-gelu-3l", "nano-solu-3l"]
TEXT = [f"The {word} sees the cat and the bird." for word in ("dog", "cow", "owl", "man")] * 10


@pytest.fixture(scope="module")
def found() -> ta.streaming.OutputDistances:
    return ta.compare_outputs(MODELS, TEXT, length=16, max_passages=5)


def test_means_over_tokens_are_those_by_hand(found: ta.streaming.OutputDistances) -> None:
    loaded = [bundled.load(name) for name in MODELS]
    tokenizer = loaded[0][1]
    ids = [token for text in TEXT for token in tokenizer(text)["input_ids"]]
    passages = torch.tensor(ta.stimuli.text.pack(TEXT, tokenizer, length=16).ids[:5])
    assert passages.shape == (5, 16)
    assert len(ids) > 80
    with torch.no_grad():
        both = [model(input_ids=passages).logits.double().softmax(-1).numpy() for model, _ in loaded]
    p, q = (one.reshape(80, -1) for one in both)
    apart = jensenshannon(p, q, base=2, axis=1) ** 2
    assert found.values["jensen-shannon"][0, 1] == pytest.approx(apart.mean(), rel=1e-5)
    other = (p.argmax(1) != q.argmax(1)).mean()
    assert found.values["disagreement"][0, 1] == pytest.approx(other)
    assert found.n_tokens == 80
    by_passage = apart.reshape(5, 16).mean(axis=1)
    error = by_passage.std(ddof=1) / np.sqrt(5)  # of passages of equal length the jackknife is that
    assert found.standard_errors["jensen-shannon"][0, 1] == pytest.approx(error, rel=1e-4)
    assert found.units == {"passages": 5}


def test_a_model_does_not_differ_from_itself() -> None:
    found = ta.compare_outputs({"a": MODELS[0], "b": MODELS[0]}, TEXT, length=16, max_passages=2)
    assert found.values["jensen-shannon"].max() < 1e-12
    assert found.values["disagreement"].max() == 0


def test_many_documents_are_the_units_of_the_error() -> None:
    text = [" ".join(TEXT[k : k + 3]) for k in range(12)]
    found = ta.compare_outputs(MODELS, text, length=8, max_passages=60)
    assert list(found.units) == ["documents"]


def test_it_goes_on_where_it_stopped(
    found: ta.streaming.OutputDistances, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, real, calls = tmp_path / "unfinished.npz", output_distances._distances, []
    monkeypatch.setattr(output_distances.Checkpoint, "is_due", True)

    def at_most_three(*given: object) -> np.ndarray:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(output_distances, "_distances", at_most_three)
    options = {"length": 16, "max_passages": 5, "checkpoint": file}
    with pytest.raises(KeyboardInterrupt):
        ta.compare_outputs(MODELS, TEXT, **options)
    assert file.exists()
    again = ta.compare_outputs(MODELS, TEXT, **options)
    assert len(calls) == 6  # two were left
    for name, values in found.values.items():
        np.testing.assert_array_equal(again.values[name], values)
    assert not file.exists()


def test_what_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Got only nano-gelu-3l: give two models or more"):
        ta.compare_outputs(MODELS[:1], TEXT)
    with pytest.raises(InvalidInput, match="nano-bert is a masked model, and here each predicts the next"):
        ta.compare_outputs(["nano-bert", "nano-gpt2"], TEXT)
    with pytest.raises(InvalidInput, match="Got max_passages=0"):
        ta.compare_outputs(MODELS, TEXT, max_passages=0)
    with pytest.raises(InvalidInput, match="reads at most"):
        ta.compare_outputs(MODELS, TEXT, length=100_000)
