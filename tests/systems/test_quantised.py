"""Quantised weights: what is read is right by arithmetic on the files; what is not, says the way out."""

from __future__ import annotations

import importlib.util
import json
import shutil

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import thinkalike as ta
from thinkalike.errors import InvalidInput, MissingExtra, ModelError
from thinkalike.systems import layers_of, start_from, states_at
from thinkalike.systems.fingerprints import fingerprint_weights
from thinkalike.systems.quantised import PACKAGES
from thinkalike.systems.system import LoadOptions, open_system

BLOCK, BITS_8, FLOAT_8 = 32, 127, 448
FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "quantization_status": "compressed",
    "ignore": ["lm_head"],
    "config_groups": {
        "all": {
            "targets": ["Linear"],
            "format": "int-quantized",
            "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True},
        }
    },
}
FINE_GRAINED = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [BLOCK, BLOCK]}


@pytest.fixture(scope="module")
def plain(tmp_path_factory, gpt2_folder):
    """A tiny Llama with plain weights and a tokenizer."""
    torch.manual_seed(0)
    tokenizer = tf.AutoTokenizer.from_pretrained(gpt2_folder)
    config = tf.LlamaConfig(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        vocab_size=len(tokenizer),
        max_position_embeddings=64,
        initializer_range=0.1,
    )
    folder = tmp_path_factory.mktemp("plain") / "llama"
    tf.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def stimuli(words_of):
    return words_of(["The old woman sings.", "Mary fell.", "No prince plays with the king."])


def copied(folder, to, quantisation=None):
    """The folder again, said to be quantised."""
    shutil.copytree(folder, to)
    config = json.loads((to / "config.json").read_text())
    config["quantization_config"] = quantisation
    (to / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return to


def written(folder, tensors):
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def is_projection(name):
    return name.endswith("_proj.weight")


def blocks_of(weight, by):
    """(rows, columns) → (rows/by, by, columns/by, by)"""
    rows, columns = weight.shape
    return weight.reshape(rows // by, by, columns // by, by)


def as_fp8(plain, to):
    """DeepSeek's and Qwen's layout, packed by hand, and a plain folder with what it must unpack to."""
    packed, meant = {}, {}
    for name, weight in load_file(plain / "model.safetensors").items():
        if not is_projection(name):
            packed[name] = meant[name] = weight
            continue
        parts = blocks_of(weight, BLOCK)
        scale = parts.abs().amax((1, 3)) / FLOAT_8
        codes = (parts / scale[:, None, :, None]).to(torch.float8_e4m3fn)
        packed[name], packed[f"{name}_scale_inv"] = codes.reshape(weight.shape), scale
        meant[name] = (codes.float() * scale[:, None, :, None]).reshape(weight.shape)
    return written(copied(plain, to / "fp8", FINE_GRAINED), packed), written(
        copied(plain, to / "meant"), meant
    )


def as_compressed(plain, to):
    """The layout of compressed-tensors with 8 bits and a scale for each row, packed by hand."""
    packed, meant = {}, {}
    for name, weight in load_file(plain / "model.safetensors").items():
        if not is_projection(name):
            packed[name] = meant[name] = weight
            continue
        scale = weight.abs().amax(1, keepdim=True) / BITS_8
        packed[name], packed[f"{name}_scale"] = (weight / scale).round().to(torch.int8), scale
        meant[name] = packed[name].float() * scale
    folder = copied(plain, to / "compressed", COMPRESSED)
    return written(folder, packed), written(copied(plain, to / "meant"), meant)


def apart(one, other, stimuli, **options):
    """The largest difference between the vectors of two folders, as a share of the largest value."""
    a, b = ta.extract(one, stimuli, system="a", **options), ta.extract(other, stimuli, system="b")
    assert a.layers == b.layers
    return max(np.abs(a[layer] - b[layer]).max() / np.abs(b[layer]).max() for layer in b.layers)


def without(folder, tensor, to):
    """A copy whose file lacks one tensor."""
    with safe_open(folder / "model.safetensors", "pt") as file:
        metadata = file.metadata()
        kept = {name: file.get_tensor(name) for name in file.keys() if name != tensor}  # noqa: SIM118
        assert len(kept) < len(list(file.keys()))
    shutil.copytree(folder, to)
    save_file(kept, to / "model.safetensors", metadata=metadata)
    return to


class TestWhatNeedsNoPackage:
    def test_fp8(self, plain, stimuli, tmp_path):
        packed, meant = as_fp8(plain, tmp_path)
        assert apart(packed, meant, stimuli) < 1e-6
        assert apart(packed, plain, stimuli) > 1e-3  # it was quantised indeed
        assert open_system(packed).identity != open_system(plain).identity

    @pytest.mark.parametrize("head", [None, "causal"])
    def test_a_scale_that_is_missing_is_told(self, plain, stimuli, tmp_path, head):
        packed, _ = as_fp8(plain, tmp_path)
        name = "model.layers.1.mlp.up_proj.weight"
        lacking = without(packed, f"{name}_scale_inv", tmp_path / "lacking")
        with pytest.raises(ModelError, match=r"lack the scale of '.*layers\.1\.mlp\.up_proj\.weight'"):
            _ = open_system(lacking, head=head).model

    def test_mxfp4_of_gpt_oss(self, plain, stimuli, tmp_path):
        """Two codes of four bits in a byte, and a power of two for 32 of them."""
        torch.manual_seed(0)
        tokenizer = tf.AutoTokenizer.from_pretrained(plain)
        config = tf.GptOssConfig(
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=32,
            intermediate_size=64,
            vocab_size=len(tokenizer),
            num_local_experts=4,
            num_experts_per_tok=2,
            initializer_range=0.1,
            pad_token_id=0,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        )
        tf.GptOssForCausalLM(config).save_pretrained(tmp_path / "experts")
        tokenizer.save_pretrained(tmp_path / "experts")
        packed, meant = {}, {}
        for name, weight in load_file(tmp_path / "experts" / "model.safetensors").items():
            if not name.endswith(("gate_up_proj", "down_proj")):
                packed[name] = meant[name] = weight
                continue
            by_32 = weight.transpose(1, 2).unflatten(-1, (-1, 32))
            power = torch.ceil(torch.log2(by_32.abs().amax(-1) / 6))
            codes = ((by_32 / 2 ** power[..., None])[..., None] - FP4).abs().argmin(-1)
            packed[f"{name}_blocks"] = (codes[..., 0::2] + 16 * codes[..., 1::2]).to(torch.uint8)
            packed[f"{name}_scales"] = (power + 127).to(torch.uint8)
            unpacked = (FP4[codes] * 2 ** power[..., None]).flatten(-2)
            meant[name] = unpacked.transpose(1, 2).contiguous()
        method = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
        folder = written(copied(tmp_path / "experts", tmp_path / "mxfp4", method), packed)
        as_meant = written(copied(tmp_path / "experts", tmp_path / "meant"), meant)
        assert apart(folder, as_meant, stimuli) < 1e-5

    def test_random_weights_are_plain(self, plain, tmp_path):
        system = open_system(as_fp8(plain, tmp_path)[0], LoadOptions(untrained=True))
        assert system.about["quantised"] is None
        assert {weight.dtype for weight in system.model.parameters()} == {torch.float32}


class TestWhatCannotBeRead:
    @pytest.mark.parametrize(
        ("method", "said"),
        [
            ({"quant_method": "exl2", "bits": 4}, r"by 'exl2', which transformers does not read"),
            ({"group_size": 64, "bits": 4}, r"a format that it does not name, as MLX does"),
            ({"quant_method": "higgs", "bits": 4}, r"\(higgs\)\. HIGGS .* only supported on GPU"),
            (
                {"quant_method": "gptq", "bits": 4},
                r"\(gptq\), .* with optimum and gptqmodel: pip install .*gptqmodel",
            ),
            ({"quant_method": "awq", "bits": 4, "group_size": 32}, r"\(awq\)\. .*pip install gptqmodel"),
        ],
    )
    def test_it_says_why_and_the_way_out(self, plain, tmp_path, method, said):
        folder = copied(plain, tmp_path / "quantised", method)
        with pytest.raises(ModelError, match=rf"{said}.*Take its float weights, or a \.gguf file") as caught:
            _ = open_system(folder).model
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(("method", "package"), [(m, p) for m in PACKAGES for p in PACKAGES[m]])
    def test_a_missing_package_is_named_before_weights_are_read(
        self, plain, tmp_path, monkeypatch, method, package
    ):
        real = importlib.util.find_spec
        found = {**dict.fromkeys(PACKAGES[method], True), package: None}
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: found.get(name, real(name)))
        folder = copied(plain, tmp_path / "quantised", {"quant_method": method})
        (folder / "model.safetensors").unlink()
        named = package.replace("_", "-")
        with pytest.raises(MissingExtra, match=rf"needs '{named}'.*pip install 'thinkalike\[quantised\]'"):
            open_system(folder)


class TestCompressedTensors:
    @pytest.fixture(autouse=True)
    def package(self):
        pytest.importorskip("compressed_tensors", exc_type=ImportError)

    def test_vectors(self, plain, stimuli, tmp_path):
        packed, meant = as_compressed(plain, tmp_path)
        assert apart(packed, meant, stimuli) < 1e-6
        assert apart(packed, plain, stimuli) > 1e-3

    def test_parts_run_alone(self, plain, tmp_path):
        """As stitching calls them: the weights are there before the whole model was called."""
        packed, meant = as_compressed(plain, tmp_path)
        ids = torch.tensor([[5, 6, 7]])
        answers = []
        for folder in (packed, meant):
            system = open_system(folder, head="causal")
            with torch.no_grad():
                states = states_at(system.stack, 1, input_ids=ids)
                with start_from(system.stack, 1, states):
                    answers.append(system.model(input_ids=ids).logits)
        torch.testing.assert_close(*answers)

    @pytest.mark.parametrize("tensor", ["weight", "weight_scale"])
    def test_what_is_missing_is_told(self, plain, tmp_path, tensor):
        packed, _ = as_compressed(plain, tmp_path)
        lacking = without(packed, f"model.layers.1.mlp.up_proj.{tensor}", tmp_path / "lacking")
        with pytest.raises(ModelError, match="lacking"):
            _ = open_system(lacking).model

    def test_a_loaded_model_that_is_still_packed(self, plain, tmp_path):
        packed, _ = as_compressed(plain, tmp_path)
        model = tf.AutoModelForCausalLM.from_pretrained(packed)
        with pytest.raises(InvalidInput, match=r"still packed .*CompressedTensorsConfig\(dequantize=True\)"):
            open_system(model)


def quantised_by(method, plain, to, dtype):
    """What transformers itself writes."""
    model = tf.AutoModelForCausalLM.from_pretrained(plain, quantization_config=method, dtype=dtype)
    model.save_pretrained(to)
    tf.AutoTokenizer.from_pretrained(plain).save_pretrained(to)
    return to


class TestTorchao:
    @pytest.fixture
    def method(self):
        pytest.importorskip("torchao", exc_type=ImportError)
        from torchao.quantization import Int8WeightOnlyConfig

        return tf.TorchAoConfig(Int8WeightOnlyConfig())

    def test_vectors(self, plain, stimuli, tmp_path, method):
        packed = quantised_by(method, plain, tmp_path / "packed", torch.float32)
        stored = load_file(packed / "model.safetensors")
        meant = {
            name: stored[f"{name.removesuffix('weight')}_weight_qdata"].float()
            * stored[f"{name.removesuffix('weight')}_weight_scale"]
            if is_projection(name)
            else weight
            for name, weight in load_file(plain / "model.safetensors").items()
        }
        assert apart(packed, written(copied(plain, tmp_path / "meant"), meant), stimuli) < 1e-5
        lacking = without(packed, "model.layers.1.mlp.up_proj._weight_scale", tmp_path / "lacking")
        with pytest.raises(ModelError, match="not all there"):
            _ = open_system(lacking).model

    def test_half_precision_stays_what_it_was(self, plain, stimuli, tmp_path, method):
        packed = quantised_by(method, plain, tmp_path / "packed", torch.bfloat16)
        with pytest.raises(ModelError, match=r"unpack to bfloat16, .* dtype='bfloat16'"):
            ta.extract(packed, stimuli)
        assert apart(packed, plain, stimuli, dtype="bfloat16") < 0.1

    def test_a_loaded_model_is_known_by_its_weights(self, plain, tmp_path, method):
        packed = quantised_by(method, plain, tmp_path / "packed", torch.float32)
        model = tf.AutoModelForCausalLM.from_pretrained(packed)
        before = fingerprint_weights(model)
        layers_of(model).blocks[1].mlp.up_proj.weight.scale.mul_(2)
        assert fingerprint_weights(model) != before


class TestBitsandbytes:
    @pytest.fixture(autouse=True)
    def package(self):
        pytest.importorskip("bitsandbytes", exc_type=ImportError)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_four_bits(self, plain, stimuli, tmp_path, dtype):
        """64 codes share a scale; what is not quantised runs in single precision, however it was saved."""
        method = tf.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
        packed = quantised_by(method, plain, tmp_path / "packed", dtype)
        stored = load_file(packed / "model.safetensors")
        meant = {}
        for name, weight in load_file(plain / "model.safetensors").items():
            if not is_projection(name):
                meant[name] = weight.to(dtype).float()
                continue
            codes = torch.stack([stored[name].flatten() >> 4, stored[name].flatten() & 15], 1).long()
            values = stored[f"{name}.quant_map"][codes].reshape(-1, 64) * stored[f"{name}.absmax"][:, None]
            meant[name] = values.reshape(weight.shape).to(dtype).float()
        unpacked = written(copied(plain, tmp_path / "meant"), meant)
        assert apart(packed, unpacked, stimuli) < 0.01 < apart(packed, plain, stimuli)
        floats = [one for one in open_system(packed).model.parameters() if one.is_floating_point()]
        assert {one.dtype for one in floats} == {torch.float32}

    def test_scales_of_scales_that_are_missing(self, plain, tmp_path):
        method = tf.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_use_double_quant=True)
        packed = quantised_by(method, plain, tmp_path / "packed", torch.float32)
        tensor = "model.layers.1.mlp.up_proj.weight.nested_absmax"
        with pytest.raises(ModelError, match=r"lack the scale of 'layers\.1\.mlp\.up_proj\.weight'"):
            _ = open_system(without(packed, tensor, tmp_path / "lacking")).model

    def test_eight_bits(self, plain, stimuli, tmp_path):
        """Activations are rounded too, so vectors agree only as far as that."""
        packed = quantised_by(tf.BitsAndBytesConfig(load_in_8bit=True), plain, tmp_path / "packed", None)
        assert apart(packed, plain, stimuli) < 0.05
