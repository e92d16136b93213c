"""Streaming CKA over text with tiny models: rows and batches against forward passes made by hand."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.measures import MEASURES
from thinkalike.stimuli.text import pack
from thinkalike.streaming import stream_cka
from thinkalike.streaming.sums import StreamingCKA
from thinkalike.streaming.text_passages import cut_by_words

DOCUMENTS = [
    "The old woman sings in the garden.",
    "Do you see the three princes who vanished?",
    "Mary fell, and nobody heard her.",
    "Which men sneezed loudly in the quiet library last night?",
    "No prince plays the flute.",
    "I can't believe that she doesn't know the king's daughters.",
]


@cache
def loaded(folder: Path) -> tuple[Any, Any]:
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def states(folder: Path, text: str | torch.Tensor, **options: Any) -> list[torch.Tensor]:
    """Embeddings and first block by transformers itself, (n_tokens, n_units) each."""
    model, tokenizer = loaded(folder)
    ids = tokenizer(text, return_tensors="pt")["input_ids"] if isinstance(text, str) else text
    with torch.no_grad():
        found = model(input_ids=ids, output_hidden_states=True, **options)
    return [h[0] for h in found.hidden_states[: model.config.num_hidden_layers]]


def words(document: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"[\w'’]+", document)]


@pytest.fixture(scope="module")
def pair(tiny_models: dict[str, Path]) -> list[Path]:
    return [tiny_models["tiny-bert"], tiny_models["tiny-gpt2"]]


def by_hand(folders: list[Path], documents: list[str], *, first: int = 0) -> np.ndarray:
    """CKA summed over documents, layers 0 and 1 of both models, from separate forward passes."""
    stream = StreamingCKA(["a", "b", "c", "d"])
    for document in documents:
        stream.add([h[first:].numpy() for folder in folders for h in states(folder, document)])
    return stream.estimate()


class TestPackedText:
    def test_a_file_is_packed_and_its_paragraphs_are_documents(
        self, pair: list[Path], tmp_path: Path
    ) -> None:
        path = tmp_path / "text.txt"
        path.write_text("\n\n".join(DOCUMENTS * 3))
        found = stream_cka(pair, path, length=48, layers=[0, 1])
        ids = torch.tensor(
            [t for d in DOCUMENTS * 3 for t in [*loaded(pair[0])[1](d)["input_ids"], 1]]  # 1 ends a document
        )
        n = len(ids) // 48
        stream = StreamingCKA(["a", "b", "c", "d"])
        for chunk in ids[: n * 48].reshape(n, 48):
            stream.add([h.numpy() for folder in pair for h in states(folder, chunk[None])])
        np.testing.assert_allclose(found.values, stream.estimate(), atol=1e-5)
        assert found.units == {
            "documents": len(set(pack(DOCUMENTS * 3, loaded(pair[0])[1], length=48).main_documents()))
        }
        assert found.n_items == n * 48

    def test_packed_text_is_taken_as_it_is(self, pair: list[Path]) -> None:
        text = pack(DOCUMENTS * 3, loaded(pair[0])[1], length=32)
        given = stream_cka(pair, text)
        np.testing.assert_array_equal(given.values, stream_cka(pair, DOCUMENTS * 3, length=32).values)

    def test_packed_for_other_models_is_refused(self, pair: list[Path], tmp_path: Path) -> None:
        text = pack(DOCUMENTS * 3, loaded(other_tokenizer(pair[1], tmp_path))[1], length=32)
        with pytest.raises(InvalidInput, match="packed with another tokenizer than that of tiny-bert"):
            stream_cka(pair, text)
        long = pack(DOCUMENTS * 30, loaded(pair[0])[1], length=600)
        with pytest.raises(InvalidInput, match="length=600, but tiny-bert reads at most 512 tokens"):
            stream_cka(pair, long)

    def test_passages_are_as_long_as_all_models_can_read(self, pair: list[Path]) -> None:
        found = stream_cka(pair, DOCUMENTS * 6)
        assert found.trace["items"].iloc[0] == 512

    def test_a_token_can_begin_every_passage_and_be_dropped(self, pair: list[Path]) -> None:
        with_bos = stream_cka(pair, DOCUMENTS * 3, length=33, bos=True, drop_first=1)
        assert with_bos.trace["items"].iloc[0] == 32
        without = stream_cka(pair, DOCUMENTS * 3, length=32)
        assert np.abs(with_bos.values - without.values).max() > 1e-4

    def test_a_stream_that_stops_early_has_seen_all_of_the_text(
        self, pair: list[Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        units: list[int] = []
        add = StreamingCKA.add
        monkeypatch.setattr(
            StreamingCKA, "add", lambda s, X, unit: (units.append(unit), add(s, X, unit=unit))[1]
        )
        found = stream_cka(pair, DOCUMENTS * 50, length=16, max_batches=20)
        assert (len(found.trace), found.stopped) == (20, "max_batches")
        assert min(units) < 60
        assert max(units) > 240
        first, units[:] = list(units), []
        stream_cka(pair, DOCUMENTS * 50, length=16, max_batches=20)
        assert units == first
        units.clear()
        stream_cka(pair, DOCUMENTS * 50, length=16, max_batches=20, seed=1)
        assert units != first
        mixed = stream_cka(pair, DOCUMENTS * 50, length=16, batch="tokens", batch_size=32, max_batches=5)
        assert (len(mixed.trace), mixed.stopped) == (5, "max_batches")

    def test_passages_as_rows(self, pair: list[Path]) -> None:
        found = stream_cka(pair, DOCUMENTS * 4, length=32, level="sequence", batch_size=8, layers=[0, 1])
        text = pack(DOCUMENTS * 4, loaded(pair[0])[1], length=32)
        assert found.n_items == len(text)
        assert len(found.trace) == len(text) // 8
        whole = stream_cka(pair, text, level="sequence", layers=[0, 1])
        rows = [
            np.stack(
                [states(folder, torch.from_numpy(chunk)[None])[layer].mean(0).numpy() for chunk in text.ids]
            )
            for folder in pair
            for layer in (0, 1)
        ]
        np.testing.assert_allclose(whole.values, MEASURES["cka"].matrix(rows), atol=1e-4)


class TestDocuments:
    def test_every_document_is_a_batch_and_padding_does_not_count(self, pair: list[Path]) -> None:
        found = stream_cka(pair, DOCUMENTS, pack=False, layers=[0, 1])
        np.testing.assert_allclose(found.values, by_hand(pair, DOCUMENTS), atol=1e-5)
        assert len(found.trace) == len(DOCUMENTS)
        assert found.n_items == sum(len(d.encode()) for d in DOCUMENTS)

    def test_all_layers_of_both_models_are_there(self, pair: list[Path]) -> None:
        found = stream_cka(pair, DOCUMENTS, pack=False)
        assert [layer for _, layer in found.rows] == [0, 1, 2, 0, 1, 2]
        assert [Path(system).name for system in found.systems] == ["tiny-bert", "tiny-gpt2"]
        np.testing.assert_array_equal(np.diag(found.values), 1)

    def test_first_tokens_can_be_dropped(self, pair: list[Path]) -> None:
        found = stream_cka(pair, DOCUMENTS, pack=False, layers=[0, 1], drop_first=3)
        np.testing.assert_allclose(found.values, by_hand(pair, DOCUMENTS, first=3), atol=1e-5)

    def test_padding_can_be_kept_as_in_the_paper(self, pair: list[Path]) -> None:
        found = stream_cka(pair, DOCUMENTS[:2], pack=False, layers=[0, 1], length=64, padding="keep")
        stream = StreamingCKA(["a", "b", "c", "d"])
        for document in DOCUMENTS[:2]:
            ids = torch.zeros(1, 64, dtype=torch.long)
            tokens = AutoTokenizer.from_pretrained(pair[0])(document)["input_ids"]
            ids[0, : len(tokens)] = torch.tensor(tokens)
            mask = (torch.arange(64) < len(tokens)).long()[None]
            stream.add([h.numpy() for folder in pair for h in states(folder, ids, attention_mask=mask)])
        np.testing.assert_allclose(found.values, stream.estimate(), atol=1e-5)
        assert found.n_items == 128

    def test_long_documents_are_cut(self, pair: list[Path]) -> None:
        found = stream_cka(pair, DOCUMENTS, pack=False, layers=[0, 1], length=20)
        assert found.n_items == 20 * len(DOCUMENTS)

    def test_pairs_of_texts_are_read_together(self, tiny_models: dict[str, Path]) -> None:
        folder = tiny_models["tiny-bert"]
        pairs = list(zip(DOCUMENTS, reversed(DOCUMENTS), strict=True))
        found = stream_cka([folder], pairs, layers=[0, 1])
        tokenizer, stream = AutoTokenizer.from_pretrained(folder), StreamingCKA(["a", "b"])
        for a, b in pairs:
            encoded = tokenizer(a, b, return_tensors="pt")
            segments = {"token_type_ids": encoded["token_type_ids"]} if "token_type_ids" in encoded else {}
            stream.add([h.numpy() for h in states(folder, encoded["input_ids"], **segments)])
        np.testing.assert_allclose(found.values, stream.estimate(), atol=1e-5)

    def test_mixed_tokens_are_one_order_for_all_models(self, pair: list[Path]) -> None:
        """In one batch of all tokens the order cannot matter; in smaller ones it must be the same."""
        n = sum(len(d.encode()) for d in DOCUMENTS)
        whole = stream_cka(pair, DOCUMENTS, pack=False, layers=[0, 1], batch="tokens", batch_size=n)
        rows = [
            np.concatenate([states(folder, d)[layer].numpy() for d in DOCUMENTS])
            for folder in pair
            for layer in (0, 1)
        ]
        np.testing.assert_allclose(whole.values, MEASURES["cka"].matrix(rows), atol=1e-5)
        named = {"one": pair[0], "other": pair[0]}
        same = stream_cka(named, DOCUMENTS, pack=False, batch="tokens", batch_size=16)
        np.testing.assert_allclose(np.diag(same.block("one", "other")), 1, atol=1e-9)

    def test_chunks_are_rows_in_their_order(self, pair: list[Path]) -> None:
        """With padding kept, a chunk as long as a padded passage is that passage."""
        how: dict[str, Any] = {"pack": False, "padding": "keep", "length": 16, "layers": [0, 1]}
        chunked = stream_cka(pair, DOCUMENTS, batch="chunks", batch_size=16, **how)
        single = stream_cka(pair, DOCUMENTS, batch="sequence", **how)
        np.testing.assert_allclose(chunked.values, single.values, atol=1e-9)
        mixed = stream_cka(pair, DOCUMENTS, batch="tokens", batch_size=16, **how)
        assert abs(mixed.values - single.values).max() > 1e-3
        assert chunked.settings["batch"] == "chunks"

    @pytest.mark.parametrize("batch", ["sequence", "tokens", "chunks"])
    def test_all_models_read_the_very_same_tokens_in_the_same_order(
        self, tiny_models: dict[str, Path], batch: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """There is one text and one order; a loader that shuffles for one model only has no place here."""
        from thinkalike.systems import calling

        seen: dict[str, list[list[int]]] = {}
        arguments = calling.arguments

        def listening(stack: Any, reading: Any) -> dict[str, Any]:
            given = arguments(stack, reading)
            seen.setdefault(stack.model_type, []).extend(given["input_ids"].tolist())
            return given

        monkeypatch.setattr(calling, "arguments", listening)
        stream_cka(list(tiny_models.values()), DOCUMENTS, pack=False, batch=batch)
        assert seen.keys() == {"bert", "gpt2", "mamba"}
        assert seen["bert"] == seen["gpt2"] == seen["mamba"]
        assert len(seen["bert"]) == len(DOCUMENTS)

    def test_other_sites(self, pair: list[Path]) -> None:
        found = stream_cka(pair, DOCUMENTS, pack=False, site="mlp")
        assert [layer for _, layer in found.rows] == [1, 2, 1, 2]


class TestWords:
    def test_words_are_pooled_by_each_models_own_tokens(self, pair: list[Path]) -> None:
        found = stream_cka(pair, DOCUMENTS, level="word", layers=[0, 1])
        stream = StreamingCKA(["a", "b", "c", "d"])
        for document in DOCUMENTS:
            ends = [end - 1 for _, end in words(document)]  # a byte is a token
            stream.add([h[ends].numpy() for folder in pair for h in states(folder, document)])
        np.testing.assert_allclose(found.values, stream.estimate(), atol=1e-5)
        assert found.n_items == sum(len(words(document)) for document in DOCUMENTS)

    def test_models_with_different_tokenizers_can_be_compared(self, pair: list[Path], tmp_path: Path) -> None:
        other = other_tokenizer(pair[1], tmp_path)
        with pytest.raises(
            InvalidInput, match=r"split text differently \(258 against 259 tokens\).*level='word'"
        ):
            stream_cka([pair[0], other], DOCUMENTS, pack=False)
        found = stream_cka([pair[0], other], DOCUMENTS, level="word")
        assert np.isfinite(found.values).all()

    def test_long_documents_are_cut_between_words(self, pair: list[Path]) -> None:
        found = stream_cka(pair, DOCUMENTS, level="word", length=4)
        n_pieces = sum(len(words(document)) // 4 for document in DOCUMENTS)  # the rest is too short for CKA
        assert len(found.trace) == n_pieces
        assert found.n_items == 4 * n_pieces
        pieces, documents = cut_by_words(DOCUMENTS, 4)
        assert " ".join(pieces[:2]) == DOCUMENTS[0]
        assert documents[:3] == [0, 0, 1]


class TestSequences:
    @pytest.mark.parametrize("pooling", ["mean", "last", "first"])
    def test_a_row_is_a_pooled_document(self, pair: list[Path], pooling: str) -> None:
        found = stream_cka(pair, DOCUMENTS, level="sequence", pack=False, layers=[0, 1], pooling=pooling)
        pool = {"mean": lambda h: h.mean(0), "last": lambda h: h[-1], "first": lambda h: h[0]}[pooling]
        rows = [
            np.stack([pool(states(folder, d)[layer]).numpy() for d in DOCUMENTS])
            for folder in pair
            for layer in (0, 1)
        ]
        np.testing.assert_allclose(found.values, MEASURES["cka"].matrix(rows), atol=1e-4)
        assert found.n_items == len(DOCUMENTS)


def other_tokenizer(folder: Path, place: Path) -> Path:
    """The same model with one more token in its vocabulary."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["woman"])
    model = AutoModel.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.save_pretrained(place / "other")
    tokenizer.save_pretrained(place / "other")
    return place / "other"


class TestModels:
    def test_loaded_models_stay_as_they_are(self, pair: list[Path]) -> None:
        model = AutoModel.from_pretrained(pair[1])
        model.train()
        found = stream_cka({"mine": model}, DOCUMENTS, pack=False, max_batches=2)
        assert found.systems == ("mine",)
        assert model.training
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
        assert found.stopped == "max_batches"

    def test_a_state_space_model(self, tiny_models: dict[str, Path]) -> None:
        found = stream_cka([tiny_models["tiny-mamba"], tiny_models["tiny-gpt2"]], DOCUMENTS, pack=False)
        assert np.isfinite(found.values).all()

    def test_a_decoder_beside_an_encoder(self, tmp_path: Path, tiny_models: dict[str, Path]) -> None:
        import transformers as tf

        tokenizer = AutoTokenizer.from_pretrained(tiny_models["tiny-bert"])
        torch.manual_seed(0)
        config = tf.T5Config(
            vocab_size=len(tokenizer),
            d_model=16,
            d_kv=8,
            d_ff=16,
            num_layers=2,
            num_heads=2,
            decoder_start_token_id=0,
        )
        tf.T5Model(config).save_pretrained(tmp_path / "t5")
        tokenizer.save_pretrained(tmp_path / "t5")
        found = stream_cka(
            [f"{tmp_path / 't5'}:encoder", f"{tmp_path / 't5'}:decoder"], DOCUMENTS, pack=False
        )
        assert len(found.systems) == 2
        assert np.isfinite(found.values).all()
        assert found.n_items == sum(len(d.encode()) for d in DOCUMENTS)


def test_it_stops_when_it_is_precise_enough(pair: list[Path]) -> None:
    found = stream_cka(pair, DOCUMENTS * 20, pack=False, precision=0.05)
    assert found.stopped == "precision"
    assert len(found.trace) < 120
    assert found.trace["standard_error"].iloc[-1] <= 0.05


def test_too_few_documents_for_a_jackknife_is_said(pair: list[Path]) -> None:
    found = stream_cka(pair, DOCUMENTS, pack=False)
    assert found.units == {"passages": 6}
    assert found.cautions[0].startswith("The text has 6 documents, too few for a jackknife over them")
    many = stream_cka(pair, DOCUMENTS * 2, pack=False)
    assert many.units == {"documents": 12}
    assert many.cautions == ()


def test_passages_of_too_few_rows_are_left_out_and_counted(pair: list[Path]) -> None:
    found = stream_cka(pair, [*DOCUMENTS * 2, "no"], pack=False)
    assert found.cautions == ("1 passages had fewer than 4 rows and were left out.",)
    assert len(found.trace) == 12


def test_settings_say_how(pair: list[Path]) -> None:
    found = stream_cka({"a": pair[0], "b": pair[1]}, DOCUMENTS, pack=False, drop_first=1)
    assert found.settings["drop_first"] == 1
    assert found.settings["batch"] == "sequence"
    assert found.settings["models"]["a"]["model_type"] == "bert"


class Killed(Exception):
    pass


class TestCheckpoint:
    @pytest.fixture
    def options(self, pair: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        monkeypatch.setattr("thinkalike.streaming.over_text.SECONDS_BETWEEN", 0)
        monkeypatch.setattr("thinkalike.streaming.stream.TOKENS_AT_ONCE", 64)
        return {
            "models": pair,
            "text": DOCUMENTS * 6,
            "length": 32,
            "checkpoint": tmp_path / "run" / "state.npz",
        }

    def killed_after(self, n: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> int:
        """Run until the n-th batch arrives; how many batches had been saved."""
        add, calls = StreamingCKA.add, []

        def stop(stream: StreamingCKA, *args: Any, **kwargs: Any) -> None:
            calls.append(1)
            if len(calls) == n:
                raise Killed
            add(stream, *args, **kwargs)

        with monkeypatch.context() as patched:
            patched.setattr(StreamingCKA, "add", stop)
            with pytest.raises(Killed):
                stream_cka(**options)
        return len(json.loads(str(np.load(options["checkpoint"])["about"]))["trace"])

    @pytest.mark.parametrize(
        "mixing", [{}, {"batch": "tokens", "batch_size": 40}], ids=["sequence", "tokens"]
    )
    def test_a_killed_run_goes_on_and_gives_the_same_bytes(
        self, options: dict[str, Any], mixing: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options |= mixing
        whole = stream_cka(**{**options, "checkpoint": None})
        saved = self.killed_after(20, monkeypatch, **options)
        assert 10 < saved < 20  # no more than what was in work is lost
        added: list[int] = []
        add = StreamingCKA.add
        monkeypatch.setattr(StreamingCKA, "add", lambda s, *a, **k: (added.append(1), add(s, *a, **k))[1])
        resumed = stream_cka(**options)
        assert len(added) == len(whole.trace) - saved
        np.testing.assert_array_equal(resumed.values, whole.values)
        np.testing.assert_array_equal(resumed.standard_errors, whole.standard_errors)
        np.testing.assert_array_equal(resumed.top_share, whole.top_share)
        assert resumed.trace.equals(whole.trace)
        assert not options["checkpoint"].exists()

    def test_another_precision_may_go_on_but_other_text_begins_anew(
        self, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.killed_after(20, monkeypatch, **options)
        kept = options["checkpoint"].read_bytes()
        other = stream_cka(**{**options, "text": DOCUMENTS[::-1] * 6})
        np.testing.assert_array_equal(
            other.values, stream_cka(options["models"], DOCUMENTS[::-1] * 6, length=32).values
        )
        options["checkpoint"].write_bytes(kept)
        assert len(stream_cka(**options, precision=0.5).trace) > 10

    def test_a_damaged_file_is_begun_anew(self, options: dict[str, Any]) -> None:
        whole = stream_cka(**options)
        options["checkpoint"].parent.mkdir(exist_ok=True)
        options["checkpoint"].write_bytes(b"not what was written")
        np.testing.assert_array_equal(stream_cka(**options).values, whole.values)


class TestBadInput:
    @pytest.mark.parametrize("site", ["heads", "experts", "state"])
    def test_parts_of_blocks_are_not_streamed(self, pair: list[Path], site: str) -> None:
        with pytest.raises(
            InvalidInput, match=rf"site='{site}' cannot be streamed.*ta\.extract.*ta\.similarity"
        ):
            stream_cka(pair, DOCUMENTS, pack=False, site=site)

    def test_nor_are_latents(self, pair: list[Path]) -> None:
        with pytest.raises(InvalidInput, match=r"Latents are not in the model.*autoencoder=…"):
            stream_cka(pair, DOCUMENTS, pack=False, site="latents")
        for layer in ("1.l77", "1.h0", "1.e2"):
            with pytest.raises(InvalidInput, match=rf"Layer '{layer}' cannot be streamed.*ta\.similarity"):
                stream_cka(pair, DOCUMENTS, pack=False, layers=[0, layer])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"level": "tokens"}, "There is no level 'tokens'. Did you mean 'token'"),
            ({"batch": "token"}, "There is no batch 'token'. Did you mean 'tokens'"),
            ({"average": "mean"}, "There is no average 'mean'"),
            ({"layers": [0, 9]}, "There is no layer '9' in .*"),
            ({"site": "nowhere"}, "There is no site 'nowhere'"),
            ({"level": "sequence", "pooling": "max"}, "pooling"),
        ],
    )
    def test_unknown_choices(self, pair: list[Path], options: dict[str, Any], message: str) -> None:
        with pytest.raises(UnknownName, match=message):
            stream_cka(pair, DOCUMENTS, pack=False, **options)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"level": "sequence", "batch": "sequence"},
                "A row is a sequence here, so a batch cannot be one",
            ),
            ({"level": "sequence", "batch": "chunks"}, "Rows that are sequences have no neighbours"),
            ({"batch_size": 64}, "batch_size is for batches of several passages"),
            ({"length": 5000}, "length=5000, but .* reads at most 512 tokens"),
            ({"drop_first": 200}, "drop_first=200 leaves nothing of passages"),
            ({"precision": -1.0}, "precision is the standard error to stop at"),
            ({"precision": float("inf")}, "precision is the standard error to stop at"),
            ({"padding": "x"}, "no padding 'x'. Known: mask, keep"),
            ({"padding": "keep", "pack": True}, "Packed text has no padding to keep"),
            ({"split": "lines"}, "split='lines' has a meaning only for files: documents are given here"),
        ],
    )
    def test_choices_that_do_not_go_together(
        self, pair: list[Path], options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(InvalidInput, match=message):
            stream_cka(pair, DOCUMENTS, **{"pack": False, **options})

    def test_the_same_model_twice(self, pair: list[Path]) -> None:
        with pytest.raises(InvalidInput, match="tiny-bert comes twice: give the models names"):
            stream_cka([pair[0], pair[0]], DOCUMENTS, pack=False)

    def test_no_models_and_no_text(self, pair: list[Path]) -> None:
        with pytest.raises(InvalidInput, match="There are no models to compare"):
            stream_cka([], DOCUMENTS)
        with pytest.raises(InvalidInput, match=r"give a list of models, such as \['gpt2'\]"):
            stream_cka("gpt2", DOCUMENTS)
        with pytest.raises(InvalidInput, match="The documents have no text"):
            stream_cka(pair, [])
        with pytest.raises(InvalidInput, match="The text has no documents"):
            stream_cka(pair, [], pack=False)
        with pytest.raises(InvalidInput, match="The text has no word in it"):
            stream_cka(pair, ["…", "!"], level="word")
        with pytest.raises(InvalidInput, match="gave no batch of 4 items or more"):
            stream_cka(pair, ["no", "yes"], pack=False)
