"""Images and sounds become what the model's own processor makes of them."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import thinkalike as ta
from thinkalike.errors import InvalidInput, MissingExtra, UnknownName
from thinkalike.systems.signals import (
    as_positions,
    equal_shapes,
    filled_positions,
    pool_positions,
    process,
)


@pytest.fixture
def picture():
    return np.random.default_rng(0).integers(0, 256, (40, 48, 3), dtype=np.uint8)


@pytest.fixture
def sound():
    return np.random.default_rng(0).normal(size=1600).astype(np.float32)


def test_pictures_in_any_form(one_case, picture, tmp_path):
    case = one_case("vit")
    Image.fromarray(picture).save(tmp_path / "picture.png")
    forms = [picture, Image.fromarray(picture), tmp_path / "picture.png", picture / 255.0]
    forms.append(np.dstack([picture, np.full((40, 48), 255, np.uint8)]))  # with an alpha channel
    found = ta.extract(case.model, forms, processor=case.processor)
    for row in found[3][1:]:
        np.testing.assert_allclose(row, found[3][0], atol=1e-5)


def test_vectors_of_pictures_are_those_of_transformers(one_case, picture):
    case = one_case("vit")
    with torch.no_grad():
        inputs = case.processor(images=Image.fromarray(picture), return_tensors="pt")
        states = case.model(**inputs, output_hidden_states=True).hidden_states[2][0]
    mean = ta.extract(case.model, [picture], processor=case.processor)
    cls = ta.extract(case.model, [picture], processor=case.processor, pooling="cls")
    np.testing.assert_allclose(mean[2][0], states.mean(0), atol=1e-5)
    np.testing.assert_allclose(cls[2][0], states[0], atol=1e-5)


def test_feature_maps_are_averaged_over_space(one_case, picture):
    case = one_case("convnext")
    with torch.no_grad():
        inputs = case.processor(images=Image.fromarray(picture), return_tensors="pt")
        states = case.model(**inputs, output_hidden_states=True).hidden_states
    found = ta.extract(case.model, [picture], processor=case.processor)
    assert found.n_units == (8, 8, 16, 24, 32)
    for layer in found:
        np.testing.assert_allclose(found[layer][0], states[layer][0].mean((1, 2)), atol=1e-5)


def test_grey_pictures_have_three_equal_channels(one_case, picture):
    case, grey = one_case("vit"), picture[:, :, 0]
    found = ta.extract(case.model, [grey, np.dstack([grey] * 3)], processor=case.processor)
    np.testing.assert_allclose(found[1][0], found[1][1], atol=1e-6)


def test_vectors_of_sounds_are_those_of_transformers(one_case, sound):
    case = one_case("wav2vec2")
    inputs = case.processor(sound, sampling_rate=16000, return_tensors="pt")
    with torch.no_grad():
        states = case.model(inputs["input_values"], output_hidden_states=True).hidden_states[2][0]
    found = ta.extract(case.model, [sound], processor=case.processor)
    np.testing.assert_allclose(found[2][0], states.mean(0), atol=1e-5)
    last = ta.extract(case.model, [sound], processor=case.processor, pooling="last", sampling_rate=16000)
    np.testing.assert_allclose(last[2][0], states[-1], atol=1e-5)


def test_what_whisper_fills_up_is_left_out_of_the_mean(one_case, sound):
    case = one_case("whisper")  # it hears one second: 100 frames, 50 states
    short = sound[:4800]
    inputs = case.processor(short, sampling_rate=16000, return_tensors="pt")
    with torch.no_grad():
        states = case.stack.model(**inputs, output_hidden_states=True).hidden_states[1][0]
    n_heard = int(np.ceil(len(short) / 160 / 2))
    assert n_heard < len(states) == 50
    found = ta.extract(case.model, [short], processor=case.processor)
    np.testing.assert_allclose(found[1][0], states[:n_heard].mean(0), atol=1e-5)
    last = ta.extract(case.model, [short], processor=case.processor, pooling="last")
    np.testing.assert_allclose(last[1][0], states[n_heard - 1], atol=1e-5)


def test_stimuli_describe_the_inputs(one_case, picture):
    case = one_case("vit")
    stimuli = ta.Stimuli(pd.DataFrame({"animal": ["cat", "dog"]}, index=["a", "b"]))
    found = ta.extract(case.model, stimuli, inputs=[picture, 255 - picture], processor=case.processor)
    assert found.item_names == ("a", "b")
    found.check_stimuli(stimuli)
    bare = ta.extract(case.model, [picture, 255 - picture], processor=case.processor)
    assert bare.item_names == ("0", "1")
    assert bare.stimuli_digest is None


def test_by_name(one_case, picture, sound, tmp_path):
    for name, shown in (("vit", picture), ("wav2vec2", sound), ("whisper", sound)):
        case = one_case(name)
        case.model.save_pretrained(tmp_path / name)
        case.processor.save_pretrained(tmp_path / name)
        found = ta.extract(tmp_path / name, [shown])
        expected = ta.extract(case.model, [shown], processor=case.processor)
        np.testing.assert_allclose(found[3], expected[3], atol=1e-5)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 4, 7), np.uint8), r"An image has shape \(4, 4, 7\)"),
        (np.zeros(4, np.uint8), r"shape \(4,\)"),
        (np.full((4, 4), 200.0), "values from 200 to 200: give bytes"),
    ],
)
def test_arrays_that_are_no_pictures(one_case, image, message):
    case = one_case("vit")
    with pytest.raises(InvalidInput, match=message):
        ta.extract(case.model, [image], processor=case.processor)


def test_sounds_at_another_rate(one_case, sound):
    case = one_case("wav2vec2")
    with pytest.raises(InvalidInput, match="The processor does not take this audio"):
        ta.extract(case.model, [sound], processor=case.processor, sampling_rate=8000)


def test_poolings_of_signals(one_case, picture):
    case = one_case("vit")
    with pytest.raises(UnknownName, match=r"no pooling 'all'. Known: mean, cls, last"):
        ta.extract(case.model, [picture], processor=case.processor, pooling="all")


def test_without_pillow(one_case, picture, monkeypatch):
    case = one_case("vit")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"pip install 'thinkalike\[vision\]'"):
        process(case.processor, picture, kind="image", sampling_rate=None)


def test_inputs_are_grouped_by_shape():
    one, two = torch.zeros(1, 3), torch.zeros(1, 4)
    assert equal_shapes([{"x": one}, {"x": two}, {"x": one}]) == [[0, 2], [1]]


def test_maps_become_positions():
    states = torch.arange(2 * 3 * 2 * 2.0).reshape(2, 3, 2, 2)
    torch.testing.assert_close(as_positions(states, channels_first=True)[1, 2], states[1, :, 1, 0])
    torch.testing.assert_close(as_positions(states, channels_first=False)[1, 2], states[1, 1, 0])


def test_masks_are_as_coarse_as_the_states():
    mask = torch.tensor([[1, 1, 1, 0, 0, 0, 0, 0]])
    assert filled_positions(mask, 4).tolist() == [[True, True, False, False]]
    assert filled_positions(None, 4) is None
    states = torch.arange(4.0).reshape(1, 4, 1)
    assert pool_positions(states, filled_positions(mask, 4), "mean").item() == 0.5
    assert pool_positions(states, filled_positions(mask, 4), "last").item() == 1.0
    assert pool_positions(states, None, "last").item() == 3.0
