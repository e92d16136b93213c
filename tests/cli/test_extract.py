"""`thinkalike extract` and `thinkalike models --architectures`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as tf
from tokenizers import Tokenizer, models, pre_tokenizers
from typer.testing import CliRunner

import thinkalike as ta
from thinkalike.cli import app, main
from thinkalike.systems.architectures import ARCHITECTURES


@pytest.fixture
def folder(tmp_path):
    """A GPT-2 of two layers that reads letters."""
    letters = {letter: number for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz ")}
    core = Tokenizer(models.BPE(vocab=letters, merges=[]))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tf.PreTrainedTokenizerFast(tokenizer_object=core).save_pretrained(tmp_path / "gpt")
    torch.manual_seed(0)
    config = tf.GPT2Config(n_embd=8, n_layer=2, n_head=2, vocab_size=27, n_positions=16)
    tf.GPT2Model(config).save_pretrained(tmp_path / "gpt")
    return tmp_path / "gpt"


@pytest.fixture
def table(tmp_path):
    words = pd.DataFrame(
        {"sentence": ["s", "s", "t"], "word": ["mary", "fell", "run"], "text": ["mary fell"] * 2 + ["run"]}
    )
    ta.Stimuli.from_table(words).save(tmp_path / "words.csv")
    return tmp_path / "words.csv"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("THINKALIKE_CACHE", str(tmp_path / "cache"))


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_extract_into_the_cache(folder, table, tmp_path):
    done = run("extract", folder, "--stimuli", table)
    first, path = done.stdout.splitlines()
    assert first == "gpt: 3 layers × 3 items × 8 units"
    assert path.startswith(str(tmp_path / "cache" / "activations" / "gpt-"))
    stimuli = ta.Stimuli.from_table(table)
    np.testing.assert_array_equal(ta.Activations.open(path)[2], ta.extract(folder, stimuli)[2])


def test_extract_with_options(folder, table, tmp_path):
    options = ["--pooling", "mean", "--site", "mlp", "--final-norm", "--untrained", "--seed", "3"]
    options += ["--batch-size", "2", "--drop-first", "4", "--dtype", "float32", "--device", "cpu"]
    done = run("extract", folder, "--stimuli", table, "--out", tmp_path / "x.zarr", *options)
    assert done.stdout.splitlines() == [
        "gpt:untrained: 3 layers × 1 item × 8 units",
        "2 items have no other than first tokens, and no row.",
        str(tmp_path / "x.zarr"),
    ]
    found = ta.Activations.open(tmp_path / "x.zarr")
    assert found.layers == (1, 2, "final_norm")
    assert found.metadata["batch_size"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch-size", "many"], "error: --batch-size is a number of texts or auto; 'many' was given."),
        (["--pooling", "lats"], "error: There is no pooling 'lats'. Did you mean 'last'?"),
        (["--bos"], "has no beginning-of-sequence token."),
    ],
)
def test_errors_are_one_line(folder, table, options, message, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["thinkalike", "extract", str(folder), "--stimuli", str(table), *options])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_architectures_are_listed():
    lines = run("models", "--architectures").stdout.splitlines()
    names = {line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "}
    assert names == set(ARCHITECTURES)
    assert max(map(len, lines)) <= 90
