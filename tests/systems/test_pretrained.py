"""From names to models, and to errors that say the way out."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

import thinkalike as ta
from thinkalike.errors import InvalidInput, MissingExtra, ModelError, UnknownName
from thinkalike.systems.names import name_of, parse_name
from thinkalike.systems.pretrained import (
    load_config,
    load_model,
    load_processor,
    pick_device,
    torch_dtype,
)
from thinkalike.systems.system import open_system


def test_a_hub_model_offline_says_how_to_point_at_a_folder(monkeypatch):
    def unknown_host(*args):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown_host)
    for variable in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(
        ModelError, match=r"nobody/nothing@v2 cannot be loaded: .* path of a local folder"
    ) as caught:
        load_config(parse_name("nobody/nothing@v2"))
    assert "\n" not in str(caught.value)


def test_a_hub_model_that_is_not_there(monkeypatch):
    """A network that answers: the hub does not know the model."""
    calls = []

    def from_pretrained(*args, local_files_only=False, **options):
        calls.append(local_files_only)
        raise OSError("nobody/nothing is not a valid model identifier.\nIf this is a private repository, …")

    monkeypatch.setattr(tf.AutoConfig, "from_pretrained", from_pretrained)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args: [])
    with pytest.raises(ModelError, match=r"\(nobody/nothing is not a valid model identifier\)"):
        load_config(parse_name("nobody/nothing"))
    assert calls == [True, False]


def test_what_the_hubs_cache_has_needs_no_network(gpt2_folder, monkeypatch):
    seen = []
    real = tf.AutoConfig.from_pretrained

    def from_pretrained(pretrained_model_name_or_path, revision, **options):
        seen.append((pretrained_model_name_or_path, revision, options["local_files_only"]))
        config = real(gpt2_folder)
        config._commit_hash = "c0ffee"
        return config

    monkeypatch.setattr(tf.AutoConfig, "from_pretrained", from_pretrained)
    assert load_config(parse_name("some/gpt@step5")).model_type == "gpt2"
    assert seen == [("some/gpt", "step5", True)]


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(ModelError, match="cannot be loaded from"):
        load_config(parse_name(tmp_path))


@pytest.mark.parametrize("lost", ["wte.weight", "wpe.weight", "h.1.mlp.c_fc.weight", "ln_f.bias"])
def test_weights_that_lack_anything_that_is_run_are_refused(gpt2_folder, tmp_path, lost):
    broken = tmp_path / "broken"
    broken.mkdir()
    weights = load_file(gpt2_folder / "model.safetensors")
    del weights[lost]
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    (broken / "config.json").write_bytes((gpt2_folder / "config.json").read_bytes())
    name = parse_name(broken)
    with pytest.raises(ModelError, match=rf"lack 1 of its tensors, such as '{lost}': the files do not"):
        load_model(name, load_config(name))


def copied(folder, to, **files):
    """A model's folder with some files changed: name → bytes, or a function of what stood there."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("checkpoint-*"))
    for name, change in files.items():
        path = to / name
        path.write_bytes(change(path.read_bytes()) if callable(change) else change)
    return to


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data + bytes(100),
        lambda data: data[:8],
        lambda data: bytes(range(256)) * 20,
    ],
    ids=["cut", "empty", "padded", "eight bytes", "garbage"],
)
def test_damaged_weights_are_refused(gpt2_folder, tmp_path, damage):
    name = parse_name(copied(gpt2_folder, tmp_path / "broken", **{"model.safetensors": damage}))
    with pytest.raises(ModelError, match=r"broken cannot be loaded from .*: .+ Check its files"):
        load_model(name, load_config(name))


def fields(**changes):
    return lambda data: json.dumps({**json.loads(data), **changes}).encode()


@pytest.mark.parametrize(
    "config",
    [
        b"null",
        b"[]",
        b"3",
        b"",
        fields(n_embd=-1),
        fields(n_head=7),
        fields(vocab_size="x"),
        fields(n_head=0),
    ],
    ids=["null", "list", "number", "empty", "width -1", "7 heads", "vocabulary of text", "0 heads"],
)
def test_configurations_that_are_none_are_refused(gpt2_folder, tmp_path, config):
    name = parse_name(copied(gpt2_folder, tmp_path / "broken", **{"config.json": config}))
    with pytest.raises(ModelError, match=r"broken cannot be loaded from .*broken"):
        load_model(name, load_config(name))


class Hostile:
    def __reduce__(self):
        return (open, ("fired", "w"))


def test_pickled_weights_are_read_as_numbers_alone(gpt2_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = copied(gpt2_folder, tmp_path / "pickled")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    name = parse_name(folder)
    found = load_model(name, load_config(name)).model.state_dict()
    assert all(torch.equal(found[key], value) for key, value in weights.items())
    torch.save({**weights, "evil": Hostile()}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pickled cannot be loaded from"):
        load_model(name, load_config(name))
    assert not (tmp_path / "fired").exists()


def test_tokens_beyond_the_vocabulary_are_refused(one_case, words_of):
    config = one_case("gpt2").tiny.config()
    config.vocab_size = 20
    with pytest.raises(ModelError, match=r"gives token \d+, but this gpt2 model knows only 20 tokens"):
        ta.extract(tf.GPT2Model(config), words_of(["Mary fell."]), processor=one_case("gpt2").processor)


def test_weights_of_another_size_are_refused(gpt2_folder, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    config = json.loads((gpt2_folder / "config.json").read_text())
    (wrong / "config.json").write_text(json.dumps({**config, "n_embd": 64}))
    (wrong / "model.safetensors").write_bytes((gpt2_folder / "model.safetensors").read_bytes())
    name = parse_name(wrong)
    with pytest.raises(ModelError, match="cannot be loaded from"):
        load_model(name, load_config(name))


def test_a_pooler_that_is_not_in_the_weights_does_not_matter(one_case, tmp_path, recwarn):
    tf.BertForMaskedLM(one_case("bert").tiny.config()).save_pretrained(tmp_path / "mlm")
    name = parse_name(tmp_path / "mlm")
    assert load_model(name, load_config(name)).n_blocks == 3


def test_extraction_by_name(gpt2_folder, words_of, one_case):
    stimuli = words_of(["The old woman sings.", "Mary fell."])
    found = ta.extract(str(gpt2_folder), stimuli)
    expected = ta.extract(one_case("gpt2").model, stimuli, processor=one_case("gpt2").processor)
    np.testing.assert_allclose(found[3], expected[3], atol=1e-6)
    assert found.system == "tiny-gpt2"
    assert found.metadata["model_type"] == "gpt2"
    assert found.stimuli_digest == stimuli.digest
    checkpoint = ta.extract(f"{gpt2_folder}@checkpoint-7", stimuli)
    assert checkpoint.system == "tiny-gpt2@checkpoint-7"
    assert checkpoint.metadata["revision"] == "checkpoint-7"
    assert np.abs(checkpoint[3] - found[3]).max() > 1e-2


def test_a_loaded_model_that_says_where_from(gpt2_folder, words_of):
    stimuli = words_of(["Mary fell."])
    model = tf.AutoModelForCausalLM.from_pretrained(gpt2_folder)
    found = ta.extract(model, stimuli)
    np.testing.assert_allclose(found[3], ta.extract(gpt2_folder, stimuli)[3], atol=1e-6)


def test_untrained_by_name(gpt2_folder, words_of):
    stimuli = words_of(["Mary fell."])
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, other = (ta.extract(f"{gpt2_folder}:untrained", stimuli, seed=seed) for seed in (0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert np.abs(one[3] - other[3]).max() > 1e-2
    assert np.abs(one[3] - ta.extract(gpt2_folder, stimuli)[3]).max() > 1e-2
    again = ta.extract(gpt2_folder, stimuli, untrained=True, cache=False)
    np.testing.assert_array_equal(again[3], one[3])
    assert again.system == "tiny-gpt2:untrained"


def test_parts_by_name(one_case, make_tokenizer, words_of, tmp_path):
    one_case("t5, encoder").model.save_pretrained(tmp_path / "t5")
    make_tokenizer("spaces").save_pretrained(tmp_path / "t5")
    stimuli = words_of(["Mary fell."])
    assert ta.extract(tmp_path / "t5", stimuli).system == "t5:encoder"
    assert len(ta.extract(f"{tmp_path}/t5:decoder", stimuli)) == 3


def test_rwkv_by_name_is_not_halved_on_its_way(one_case, make_tokenizer, words_of, tmp_path):
    config = one_case("rwkv").tiny.config()
    config.rescale_every = 1
    torch.manual_seed(0)
    model = tf.RwkvModel(config)
    model.save_pretrained(tmp_path / "rwkv")
    make_tokenizer("bytes").save_pretrained(tmp_path / "rwkv")
    model.config.rescale_every = 0
    stimuli = words_of(["Mary fell."])
    expected = ta.extract(model.eval(), stimuli, processor=make_tokenizer("bytes"))
    found = ta.extract(tmp_path / "rwkv", stimuli)
    for layer in found:
        np.testing.assert_allclose(found[layer], expected[layer], atol=1e-5)


def test_dtypes(gpt2_folder, words_of):
    stimuli = words_of(["Mary fell."])
    half = ta.extract(gpt2_folder, stimuli, dtype="bfloat16")
    assert half.metadata["dtype"] == "bfloat16"
    assert 0 < np.abs(half[3] - ta.extract(gpt2_folder, stimuli)[3]).max() < 0.2
    with pytest.raises(UnknownName, match=r"no dtype 'float31'. Did you mean 'float32'"):
        torch_dtype("float31")


def test_devices():
    assert pick_device("cpu") == "cpu"
    assert pick_device(None) == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("device", ["zzz", "meta", "", "cpu:x"])
def test_devices_that_cannot_compute(device):
    with pytest.raises(InvalidInput, match=f"device='{device}' cannot compute here: use cpu"):
        pick_device(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu_is_an_error_and_no_silent_fallback(gpt2_folder, words_of):
    with pytest.raises(InvalidInput, match="device='cuda' was asked for, but torch sees no GPU"):
        ta.extract(gpt2_folder, words_of(["Mary fell."]), device="cuda")


def test_device_map(gpt2_folder, words_of):
    pytest.importorskip("accelerate")
    stimuli = words_of(["The old woman sings.", "Mary fell."])
    found = ta.extract(gpt2_folder, stimuli, device_map="auto")
    np.testing.assert_allclose(found[3], ta.extract(gpt2_folder, stimuli)[3], atol=1e-6)
    assert found.metadata["device"] == "auto"
    with pytest.raises(InvalidInput, match="device and device_map both say where the model runs"):
        ta.extract(gpt2_folder, stimuli, device_map="auto", device="cpu")


def test_device_map_offloads_to_disk(gpt2_folder, words_of, tmp_path):
    """Half of the blocks are fetched from disk when they run, through forwards that accelerate wraps."""
    pytest.importorskip("accelerate")
    stimuli = words_of(["The old woman sings.", "Mary fell."])
    model = tf.AutoModel.from_pretrained(
        gpt2_folder,
        device_map={"wte": "cpu", "wpe": "cpu", "drop": "cpu", "h.0": "cpu", "h.1": "disk", "h.2": "disk"}
        | {"ln_f": "cpu"},
        offload_folder=tmp_path / "offload",
    )
    found = ta.extract(model, stimuli)
    np.testing.assert_allclose(found[3], ta.extract(gpt2_folder, stimuli)[3], atol=1e-6)


def missing(package, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else real(name))


@pytest.mark.parametrize("package", ["gguf", "accelerate"])
def test_gguf_needs_its_extra(gpt2_folder, words_of, monkeypatch, package):
    missing(package, monkeypatch)
    with pytest.raises(MissingExtra, match=rf"needs '{package}'.*pip install 'thinkalike\[gguf\]'"):
        ta.extract(gpt2_folder, words_of(["Mary fell."]), gguf_file="x.gguf")


def test_a_gguf_file_may_be_given_wherever_models_are(gpt2_folder, words_of, tmp_path, monkeypatch):
    """It is taken for the file of its folder, in commands that need the output layer too."""
    path = copied(gpt2_folder, tmp_path / "quantised") / "tiny-Q4.gguf"
    path.write_bytes(b"")
    asked = []

    def load_config_of(name, *, gguf_file=None, **options):
        asked.append((name.folder, gguf_file))
        return load_config(name)

    monkeypatch.setattr("thinkalike.systems.system.load_config", load_config_of)
    assert open_system(path).name == "tiny-Q4"
    assert open_system(str(path), head="causal").name == "tiny-Q4"
    assert asked == [(path.parent, "tiny-Q4.gguf")] * 2
    assert name_of(str(path)) == "tiny-Q4"


def test_device_map_needs_accelerate(gpt2_folder, words_of, monkeypatch):
    missing("accelerate", monkeypatch)
    with pytest.raises(MissingExtra, match=r"pip install 'thinkalike\[big\]'"):
        ta.extract(gpt2_folder, words_of(["Mary fell."]), device_map="auto")


def test_processors_that_are_not_there(gpt2_folder):
    with pytest.raises(ModelError, match="cannot be loaded from"):
        load_processor(parse_name(gpt2_folder), "image")


def test_an_unknown_architecture_by_name_is_discovered(one_case, make_tokenizer, words_of, tmp_path):
    torch.manual_seed(0)
    config = tf.PersimmonConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        vocab_size=320,
        bos_token_id=None,
        eos_token_id=None,
    )
    folder = tmp_path / "unknown"
    tf.PersimmonModel(config).save_pretrained(folder)
    make_tokenizer("bytes").save_pretrained(folder)
    told = "'persimmon' is not in the table: taking the 2 equal blocks at 'layers'"
    with pytest.warns(UserWarning, match=told):
        found = ta.extract(folder, words_of(["Mary fell."]), cache=False)
    assert found.layers == (0, 1, 2)
    named = ta.extract(folder, words_of(["Mary fell."]), blocks="layers", cache=False)
    np.testing.assert_array_equal(named[2], found[2])
