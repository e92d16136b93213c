"""Model folders: weights that are cut, padded, swapped or hostile; configurations and tokenizers that lie."""

from __future__ import annotations

import json
import shlex
import shutil
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile.malformed.cases import Malformed, both, sentences
from tests.hostile.shell import ROOT

SOURCE = next(ROOT.glob("src/thinkalike/**/weights/nano-pythia-64"))
WEIGHTS = "model.safetensors"
Change = Callable[[Path], Any]
EXTRACT = ("extract", "m", "--stimuli", "w.csv", "--out", "x.zarr")


def model_cases() -> Iterator[Malformed]:
    for name, change in {**_weights(), **_configurations(), **_tokenizers(), **_files()}.items():
        yield Malformed(f"model: {name}", EXTRACT, both(sentences, partial(_folder, change=change)))
    yield Malformed("model: as it should be", EXTRACT, both(sentences, _folder), "accepted")
    for name, change in _odd().items():
        yield Malformed(f"model: {name}", EXTRACT, both(sentences, partial(_folder, change=change)), "either")
    stitched = ("stitch", "nano-gelu-3l", "m", "--text", "t.txt", "--layers", "1", "--max-tokens", "2000")
    for name in ("a cut file", "no embeddings", "config.json null", "7 heads"):
        change = {**_weights(), **_configurations()}[name]
        make = both(_text, partial(_folder, change=change))
        yield Malformed(f"model: {name}, in stitch", stitched, make)
        yield Malformed(f"model: {name}, in cka", ("cka", "m", "--text", "t.txt", "--max-batches", "2"), make)
    yield from _names()


def _folder(folder: Path, change: Change | None = None) -> None:
    shutil.copytree(SOURCE, folder / "m", ignore=shutil.ignore_patterns("card.json", "README.md"))
    if change is not None:
        change(folder / "m")


def _text(folder: Path) -> None:
    (folder / "t.txt").write_text(
        "\n\n".join(f"The king of {k} said so and went away again." for k in range(60))
    )


def _bytes(change: Callable[[bytes], bytes]) -> Change:
    return lambda model: (model / WEIGHTS).write_bytes(change((model / WEIGHTS).read_bytes()))


def _tensors(change: Callable[[dict[str, np.ndarray]], Any]) -> Change:
    def edit(model: Path) -> None:
        from safetensors.numpy import load_file, save_file

        tensors = load_file(model / WEIGHTS)
        change(tensors)
        save_file(tensors, model / WEIGHTS, metadata={"format": "pt"})

    return edit


def _without(part: str) -> Change:
    def change(tensors: dict[str, np.ndarray]) -> None:
        for name in [name for name in tensors if part in name]:
            del tensors[name]

    return _tensors(change)


def _holding(value: float) -> Change:
    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors["gpt_neox.layers.0.mlp.dense_h_to_4h.weight"][:] = value

    return _tensors(change)


def _shaped(name: str) -> Change:
    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors[name] = np.ascontiguousarray(tensors[name][:-1])

    return _tensors(change)


def _header(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    size = struct.unpack("<Q", data[:8])[0]
    about = json.loads(data[8 : 8 + size])
    change(about)
    text = json.dumps(about).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def _weights() -> dict[str, Change]:
    def overlapping(about: dict[str, Any]) -> None:
        names = [name for name in about if name != "__metadata__"]
        about[names[1]]["data_offsets"] = about[names[0]]["data_offsets"]

    def unknown(about: dict[str, Any]) -> None:
        about[next(name for name in about if name != "__metadata__")]["dtype"] = "F99"

    return {
        "an empty file": _bytes(lambda data: b""),
        "a cut file": _bytes(lambda data: data[: len(data) // 2]),
        "a file short by a byte": _bytes(lambda data: data[:-1]),
        "a padded file": _bytes(lambda data: data + bytes(100)),
        "eight bytes": _bytes(lambda data: data[:8]),
        "random bytes": _bytes(lambda data: np.random.default_rng(0).bytes(5000)),
        "zeros": _bytes(lambda data: bytes(5000)),
        "a header of 2^60 bytes": _bytes(lambda data: struct.pack("<Q", 2**60) + data[8:]),
        "a header that is no JSON": _bytes(lambda data: data[:8] + b"x" * 200 + data[208:]),
        "a header of brackets": _bytes(lambda data: struct.pack("<Q", 200) + b"[" * 200 + data[208:]),
        "overlapping tensors": _bytes(partial(_header, change=overlapping)),
        "an unknown type": _bytes(partial(_header, change=unknown)),
        "a Git LFS pointer": _bytes(
            lambda data: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
        ),
        "an HTML page": _bytes(lambda data: b"<html>Not found</html>"),
        "no embeddings": _without("embed_in"),
        "no first block": _without("layers.0."),
        "one weight less": _without("layers.1.mlp.dense_4h_to_h.bias"),
        "no final norm": _without("final_layer_norm"),
        "no tensor at all": _without(""),
        "other names": _tensors(lambda t: [t.__setitem__("x." + name, t.pop(name)) for name in list(t)]),
        "embeddings of another shape": _shaped("gpt_neox.embed_in.weight"),
        "a block of another shape": _shaped("gpt_neox.layers.0.mlp.dense_h_to_4h.weight"),
        "not a number in the weights": _holding(float("nan")),
        "infinity in the weights": _holding(float("inf")),
    }


def _config(**fields: Any) -> Change:
    def change(model: Path) -> None:
        about = json.loads((model / "config.json").read_text())
        for key, value in fields.items():
            about.pop(key, None)
            if value is not KeyError:
                about[key] = value
        (model / "config.json").write_text(json.dumps(about))

    return change


def _written(name: str, content: bytes | str) -> Change:
    data = content.encode() if isinstance(content, str) else content
    return lambda model: (model / name).write_bytes(data)


def _configurations() -> dict[str, Change]:
    remote = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    return {
        "config.json null": _written("config.json", "null"),
        "config.json a list": _written("config.json", "[]"),
        "config.json a number": _written("config.json", "3"),
        "config.json empty": _written("config.json", ""),
        "config.json {}": _written("config.json", "{}"),
        "config.json cut": _written("config.json", '{"model_type": "gpt_neox", "hidd'),
        "config.json latin-1": _written("config.json", b'{"model_type": "gpt_neox\xe9"}'),
        "config.json brackets": _written("config.json", "[" * 100_000),
        "hidden_size -1": _config(hidden_size=-1),
        "hidden_size 0": _config(hidden_size=0),
        "hidden_size text": _config(hidden_size="x"),
        "hidden_size null": _config(hidden_size=None),
        "hidden_size 64.5": _config(hidden_size=64.5),
        "hidden_size a list": _config(hidden_size=[64]),
        "hidden_size 10^9": _config(hidden_size=10**9),
        "7 heads": _config(num_attention_heads=7),
        "0 heads": _config(num_attention_heads=0),
        "-2 heads": _config(num_attention_heads=-2),
        "vocab_size text": _config(vocab_size="x"),
        "vocab_size 0": _config(vocab_size=0),
        "vocab_size -1": _config(vocab_size=-1),
        "vocab_size 100": _config(vocab_size=100),
        "0 layers": _config(num_hidden_layers=0),
        "-1 layers": _config(num_hidden_layers=-1),
        "3 layers": _config(num_hidden_layers=3),
        "a layer number of text": _config(num_hidden_layers="two"),
        "an unknown model_type": _config(model_type="zzz"),
        "model_type null": _config(model_type=None),
        "model_type 3": _config(model_type=3),
        "another model_type": _config(model_type="bert"),
        "no model_type": _config(model_type=KeyError),
        "an unknown activation": _config(hidden_act="zzz"),
        "an unknown dtype": _config(dtype="float99", torch_dtype="float99"),
        "rope parameters of text": _config(rope_parameters="x"),
        "code of its own": _config(auto_map=remote, model_type="evil"),
    }


def _tokenizers() -> dict[str, Change]:
    def beyond(model: Path) -> None:
        about = json.loads((model / "tokenizer.json").read_text())
        words = about["model"]["vocab"]
        words[max(words, key=words.get)] = 10**6
        for name in list(words)[300:]:
            words[name] += 5000
        (model / "tokenizer.json").write_text(json.dumps(about))

    return {
        "tokenizer.json null": _written("tokenizer.json", "null"),
        "tokenizer.json empty": _written("tokenizer.json", ""),
        "tokenizer.json {}": _written("tokenizer.json", "{}"),
        "tokenizer.json cut": _bytes_of("tokenizer.json", lambda data: data[: len(data) // 2]),
        "tokenizer.json random": _written("tokenizer.json", bytes(range(256))),
        "no tokenizer": lambda model: [path.unlink() for path in model.glob("tokenizer*")],
        "tokens beyond the vocabulary": beyond,
    }


def _bytes_of(name: str, change: Callable[[bytes], bytes]) -> Change:
    return lambda model: (model / name).write_bytes(change((model / name).read_bytes()))


def _files() -> dict[str, Change]:
    def pickled(model: Path, content: bytes) -> None:
        (model / WEIGHTS).unlink()
        (model / "pytorch_model.bin").write_bytes(content)

    hostile = b"\x80\x04cposix\nsystem\n(X\x0b\x00\x00\x00touch firedtR."
    return {
        "no weights": lambda model: (model / WEIGHTS).unlink(),
        "no config.json": lambda model: (model / "config.json").unlink(),
        "an empty folder": lambda model: [path.unlink() for path in model.iterdir()],
        "a hostile .bin": partial(pickled, content=hostile),
        "an empty .bin": partial(pickled, content=b""),
        "a .bin of random bytes": partial(pickled, content=np.random.default_rng(0).bytes(3000)),
        "a .bin of text": partial(pickled, content=b"hello"),
        "an index of shards that are not there": _sharded,
        "weights that are a folder": lambda model: [(model / WEIGHTS).unlink(), (model / WEIGHTS).mkdir()],
        "config.json that is a folder": lambda m: [(m / "config.json").unlink(), (m / "config.json").mkdir()],
    }


def _sharded(model: Path) -> None:
    (model / WEIGHTS).unlink()
    index = {"metadata": {}, "weight_map": {"gpt_neox.embed_in.weight": "model-00001-of-00002.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))


def _odd() -> dict[str, Change]:
    """What transformers reads as some model, or leaves alone."""
    return {
        "tokenizer_config.json null": _written("tokenizer_config.json", "null"),
        "tokenizer_config.json empty": _written("tokenizer_config.json", ""),
        "tokenizer_config.json of an unknown class": _written(
            "tokenizer_config.json", '{"tokenizer_class": "ZzzTokenizer"}'
        ),
        "no tokenizer_config.json": lambda model: (model / "tokenizer_config.json").unlink(),
        "negative epsilon": _config(layer_norm_eps=-1),
        "a weight too many": _tensors(lambda t: t.__setitem__("zzz", np.zeros(3, np.float16))),
        "generation_config.json null": _written("generation_config.json", "null"),
        "no eos token": _config(eos_token_id=None, pad_token_id=None),
        "a pad token beyond the vocabulary": _config(pad_token_id=10**6),
        "0 positions": _config(max_position_embeddings=0),
        "-5 positions": _config(max_position_embeddings=-5),
        "3 positions": _config(max_position_embeddings=3),
        "dropout of 7": _config(hidden_dropout=7.0),
    }


NAMES = """
'' ' ' a/b/c ../.. / ~ no-such-model org/no-such-model @ @main m@ = =m m= http://x.y/z s3://b/k a//b * - ...
nano-pythia-64@zzz nano-pythia-64:zzz nano-pythia-64:encoder nano-pythia-65 nano-pythia-64.gguf w.csv <b>
'a b' 'a\nb' %00 🙂 'C:\\models\\m' '\\' nano-pythia-64@step1000@step250 nano-pythia-64:untrained:untrained
"""
PLACES = "w.csv/x s3://b/k http://x.y/z memory://x zzz://x file:///proc/x w.csv"


def _names() -> Iterator[Malformed]:
    for name in [*shlex.split(NAMES), "x" * 400]:
        yield Malformed(f"model name {name[:30]!r}", ("extract", name, *EXTRACT[2:]), sentences)
    for out in [*PLACES.split(), "x" * 400]:
        yield Malformed(
            f"extract --out {out[:20]!r}", (*EXTRACT[:1], "nano-pythia-64", *EXTRACT[2:-1], out), sentences
        )
