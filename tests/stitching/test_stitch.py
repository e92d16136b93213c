"""`ta.stitch` from end to end on tiny models."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import thinkalike as ta
from thinkalike.errors import InvalidInput, ModelError, StoreError, UnknownName
from thinkalike.stitching import LabelledTexts, StitchResult, asymmetry, mean_asymmetry, stitch
from thinkalike.stitching.statistics import ratio_interval

SMALL = {"length": 32, "resamples": 200}


@pytest.fixture(scope="module")
def two(make):
    return make("gpt2", 0), make("gpt2", 1)


def test_a_model_stitched_with_itself_costs_nothing(make, documents, tokenizer):
    model = make("gpt2")
    for kind in ("identity", "affine", "orthogonal"):
        result = ta.stitch(model, model, documents, kind=kind, tokenizer=tokenizer, **SMALL)
        frame = result.to_frame()
        assert list(frame["layer_bottom"]) == list(frame["layer_top"]) == [0, 1, 2]
        np.testing.assert_allclose(frame["penalty"], 0, atol=1e-4)
        np.testing.assert_allclose(frame["floor"], frame["penalty"])
        assert np.isfinite(frame["ceiling"]).all()
        assert (frame["low"] <= frame["penalty"] + 1e-9).all()
        assert (frame["high"] >= frame["penalty"] - 1e-9).all()
        np.testing.assert_allclose(frame["norm"], frame["norm_own"], rtol=1e-3)
        np.testing.assert_allclose(frame["outside"], 0.01, atol=0.005)


def test_penalty_is_the_stitched_loss_less_the_tops_own(two, documents, tokenizer):
    from thinkalike.stimuli.text import pack
    from thinkalike.stitching import StitchedModel

    bottom, top = two
    result = stitch(bottom, top, documents, kind="identity", layers=[(1, 2)], tokenizer=tokenizer, **SMALL)
    packed = pack(documents, tokenizer, length=32, partial=True)
    ids = torch.from_numpy(packed.ids)
    targets = torch.where(torch.from_numpy(packed.mask), ids, -100)[:, 1:].flatten()
    mask = torch.from_numpy(packed.mask).long()
    with torch.no_grad():
        losses = [
            torch.nn.functional.cross_entropy(
                model(input_ids=ids, attention_mask=mask).logits[:, :-1].flatten(0, 1), targets
            )
            for model in (top, StitchedModel(bottom, top, 1, 2))
        ]
    assert result.own_loss == pytest.approx(float(losses[0]), abs=1e-5)
    assert result.to_frame()["loss"][0] == pytest.approx(float(losses[1]), abs=1e-5)
    assert result.to_frame()["penalty"][0] == pytest.approx(float(losses[1] - losses[0]), abs=1e-5)
    assert result.unit == "documents"
    assert len(result.counts) == 60


@pytest.mark.parametrize("kind", ["affine", "orthogonal"])
def test_least_squares_undoes_a_rotation_planted_between_bottom_and_top(make, documents, tokenizer, kind):
    top, bottom = make("gpt2", 3), make("gpt2", 3)
    generator = torch.Generator().manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(16, 16, generator=generator))[0]
    shift = torch.randn(16, generator=generator)
    handle = bottom.transformer.h[0].register_forward_hook(lambda *args: args[2] @ rotation + shift)
    options = {"layers": [1], "ceiling": False, "tokenizer": tokenizer, **SMALL}
    try:
        turned = stitch(bottom, top, documents, kind="identity", **options).to_frame()
        undone = stitch(bottom, top, documents, kind=kind, **options).to_frame()
    finally:
        handle.remove()
    assert abs(turned["penalty"][0]) > 0.01
    assert undone["penalty"][0] == pytest.approx(0, abs=1e-5)
    assert undone["explained"][0] == pytest.approx(1, abs=1e-6)


def test_all_stitches_of_one_bottom_share_its_passes(two, documents, tokenizer):
    bottom, top = two
    calls = {"bottom": 0, "top": 0}
    handles = [
        model.transformer.wte.register_forward_hook(
            lambda *_, name=name: calls.update({name: calls[name] + 1})
        )
        for name, model in (("bottom", bottom), ("top", top))
    ]
    options = {"tokenizer": tokenizer, "floor": False, "ceiling": False, "tokens_at_once": 128, **SMALL}
    try:
        few = stitch(bottom, top, documents, layers=[(1, 1), (1, 2)], kind="orthogonal", **options)
        once = calls["bottom"]
        calls["bottom"] = 0
        result = stitch(bottom, top, documents, layers="grid", kind="orthogonal", **options)
    finally:
        for handle in handles:
            handle.remove()
    assert calls["bottom"] == once > 1
    assert len(result.stitches) == 9
    assert result.matrix().shape == (3, 3)
    assert result.matrix().notna().all().all()
    frame = result.to_frame()
    expected = spearmanr(abs(frame["layer_bottom"] - frame["layer_top"]), frame["penalty"]).statistic
    assert result.depth_mismatch() == pytest.approx(expected)
    assert np.isnan(few.depth_mismatch())  # two points always lie on a line


def test_layers_of_unequal_depth_meet_at_the_same_share_of_it(make, documents, tokenizer):
    result = stitch(
        make("gpt2", 0, layers=4),
        make("nano", 1, layers=2),
        documents,
        tokenizer=tokenizer,
        ceiling=False,
        **SMALL,
    )
    pairs = [stitch[1:] for stitch in result.stitches if stitch.role == "pair"]
    assert pairs == [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2)]
    assert [stitch[1:] for stitch in result.stitches if stitch.role == "self"] == [(0, 0), (1, 1), (2, 2)]
    assert result.to_frame()["floor"].abs().max() < 1e-3


def test_widths_may_differ_where_phi_is_fitted(make, documents, tokenizer):
    narrow, wide = make("gpt2", 0, width=8), make("gpt2", 1, width=16)
    options = {"layers": [1], "tokenizer": tokenizer, "floor": False, "ceiling": False, **SMALL}
    for kind in ("affine", "orthogonal", "low-rank", "layernorm-affine"):
        assert np.isfinite(stitch(narrow, wide, documents, kind=kind, **options).to_frame()["penalty"][0])
    with pytest.raises(InvalidInput, match=r"is 8 wide and .* 16: the identity cannot stand between them"):
        stitch(narrow, wide, documents, kind="identity", **options)


def test_masked_models(make, documents, tokenizer):
    bottom, top = make("bert", 0), make("bert", 1)
    own = stitch(top, top, documents, kind="identity", tokenizer=tokenizer, ceiling=False, **SMALL)
    assert own.task == "masked"
    np.testing.assert_allclose(own.to_frame()["penalty"], 0, atol=1e-6)
    n_tokens = own.settings["tokens"]["test"]
    assert 0.1 < own.counts.sum() / n_tokens < 0.2
    fitted = stitch(bottom, top, documents, layers=[1], tokenizer=tokenizer, ceiling=False, **SMALL)
    other = stitch(
        bottom, top, documents, layers=[1], tokenizer=tokenizer, ceiling=False, tokens_at_once=64, **SMALL
    )
    np.testing.assert_allclose(fitted.losses, other.losses, rtol=1e-4)  # the same tokens hidden in any batch


def test_classifiers_by_accuracy_and_loss(make, documents, tokenizer):
    bottom, top = make("classifier", 0), make("classifier", 1)
    pairs = [(a, b) for a, b in zip(documents[:24], documents[24:48], strict=True)]
    texts = [(a[:20], b[: 10 + k]) for k, (a, b) in enumerate(pairs)]
    labels = [k % 3 for k in range(24)]
    result = stitch(
        bottom,
        top,
        LabelledTexts(texts, labels),
        kind="identity",
        tokenizer=tokenizer,
        names=("a", "b"),
        **SMALL,
    )
    assert result.task == "classification"
    assert result.unit == "examples"
    assert len(result.counts) == 24
    losses, right = [], []
    from thinkalike.stitching import StitchedModel

    for (a, b), label in zip(texts, labels, strict=True):
        inputs = tokenizer(
            a, b, truncation=True, max_length=32, return_tensors="pt", return_token_type_ids=True
        )
        with torch.no_grad():
            logits = StitchedModel(bottom, top, 1, 1)(**inputs).logits[0]
        losses.append(float(-logits.log_softmax(-1)[label]))
        right.append(int(logits.argmax()) == label)
    row = result.find("pair", 1, 1)
    np.testing.assert_allclose(result.losses[row], losses, atol=1e-5)
    np.testing.assert_array_equal(result.correct[row], right)
    frame = result.to_frame()
    np.testing.assert_allclose(frame["accuracy_drop"], frame["own_accuracy"] - frame["accuracy"])


def test_both_ways_and_a_paired_test(two, documents, tokenizer):
    options = {"layers": "grid", "tokenizer": tokenizer, "ceiling": False, **SMALL}
    there = stitch(*two, documents, names=("a", "b"), **options)
    back = stitch(*two[::-1], documents, names=("b", "a"), **options)
    table = asymmetry(there, back, resamples=500)
    assert len(table) == 9
    row = table[(table["layer_a"] == 1) & (table["layer_b"] == 2)].iloc[0]
    frame = there.to_frame().set_index(["layer_bottom", "layer_top"])["penalty"]
    backwards = back.to_frame().set_index(["layer_bottom", "layer_top"])["penalty"]
    assert row["difference"] == pytest.approx(frame[1, 2] - backwards[2, 1])
    assert row["low"] <= row["difference"] <= row["high"]
    assert table["p"].between(0, 1).all()
    mean = mean_asymmetry(there, back, resamples=500)
    assert mean["difference"] == pytest.approx(table["difference"].mean())
    # A unit's weight is its mean over the layers.
    per_unit = np.mean([there.excess(a, b) - back.excess(b, a) for a in range(3) for b in range(3)], axis=0)
    found = ratio_interval(per_unit[None], there.counts, resamples=500, seed=0)
    ends = [float(one[0]) for one in (found.low, found.high, found.p)]
    assert [mean["low"], mean["high"], mean["p"]] == pytest.approx(ends)
    with pytest.raises(InvalidInput, match="are not the two ways of one pair"):
        asymmetry(there, there)
    other = stitch(*two[::-1], documents, names=("b", "a"), **options | {"seed": 5})
    with pytest.raises(InvalidInput, match="judged by different texts"):
        asymmetry(there, other)
    few = stitch(*two[::-1], documents, names=("b", "a"), **options | {"layers": [(0, 1)]})
    one = stitch(*two, documents, names=("a", "b"), **options | {"layers": [0]})
    with pytest.raises(InvalidInput, match="share no pair of layers"):
        asymmetry(one, few)


def test_few_documents_are_resampled_by_passages(two, documents, tokenizer):
    result = stitch(*two, [" ".join(documents)], layers=[1], tokenizer=tokenizer, ceiling=False, **SMALL)
    assert result.unit == "passages"
    assert any("too few to resample" in caution for caution in result.cautions)
    assert any("one document" in caution for caution in result.cautions)


def test_a_text_of_its_own_to_judge_by(two, documents, tokenizer):
    options = {"layers": [1], "tokenizer": tokenizer, "ceiling": False, **SMALL}
    result = stitch(*two, documents[:40], test=documents[40:], **options)
    assert len(result.counts) == 20
    assert result.settings["tokens"]["fit"] > 2 * result.settings["tokens"]["test"] - 40


def test_what_is_saved_is_what_is_loaded(two, documents, tokenizer, tmp_path):
    result = stitch(*two, documents, layers=[0, 2], tokenizer=tokenizer, names=("a", "b"), **SMALL)
    result.save(tmp_path / "out")
    loaded = StitchResult.load(tmp_path / "out")
    for roles in (False, True):
        assert loaded.to_frame(roles=roles).equals(result.to_frame(roles=roles))
    assert loaded.stitches == result.stitches
    from safetensors.torch import load_file

    tensors = load_file(tmp_path / "out" / "phi.safetensors")
    phi = result.phis[result.stitches[0]]
    torch.testing.assert_close(tensors["pair/0/0/start"], phi.start)
    with pytest.raises(StoreError, match="holds no stitching"):
        StitchResult.load(tmp_path)
    (tmp_path / "out" / "stitching.json").write_text("{")
    with pytest.raises(StoreError, match="is damaged, or was changed since it was written"):
        StitchResult.load(tmp_path / "out")


@pytest.mark.parametrize("remake", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])  # noqa: S301
def test_it_pickles_and_copies(two, documents, tokenizer, remake):
    result = stitch(*two, documents, layers=[1], tokenizer=tokenizer, names=("a", "b"), **SMALL)
    again = remake(result)
    assert again.to_frame(roles=True).equals(result.to_frame(roles=True))
    assert repr(again) == repr(result)
    for stitched, phi in result.phis.items():
        torch.testing.assert_close(again.phis[stitched].start, phi.start, rtol=0, atol=0)


def test_tokenizers_that_differ_are_refused(tiny_models, tmp_path, tokenizer, make, documents):
    make("gpt2", 0).save_pretrained(tmp_path / "other")
    tokenizer.save_pretrained(tmp_path / "other")
    with pytest.raises(InvalidInput, match=r"other and tiny-gpt2 split text differently \(260 against 258"):
        stitch(tmp_path / "other", tiny_models["tiny-gpt2"], documents, **SMALL)
    with pytest.raises(InvalidInput, match="tiny-bert is a masked and tiny-gpt2 a causal model"):
        stitch(tiny_models["tiny-bert"], tiny_models["tiny-gpt2"], documents, **SMALL)
    with pytest.raises(ModelError, match=r"lack 'score.weight', which AutoModelForSequenceClassification"):
        stitch(tiny_models["tiny-gpt2"], tiny_models["tiny-gpt2"], documents, task="classification", **SMALL)


def test_a_tokenizer_that_is_not_the_models_is_refused(tiny_models, tokenizer, make, documents):
    with pytest.raises(InvalidInput, match="given is not that of tiny-gpt2: its tokens mean something else"):
        stitch(tiny_models["tiny-gpt2"], make("gpt2"), documents, tokenizer=tokenizer, **SMALL)
    other = make("gpt2", 1)
    other.resize_token_embeddings(300)
    with pytest.raises(InvalidInput, match=r"knows 260 tokens and .* 300: they do not share the tokenizer"):
        stitch(make("gpt2"), other, documents, tokenizer=tokenizer, **SMALL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": [(1, 3)]}, r"\(top\) has the layers 0 to 2; 3 was asked for"),
        ({"layers": -1}, r"has the layers 0 to 2; -1 was asked for"),
        ({"layers": []}, "no layers to stitch"),
        ({"layers": "diagonal"}, "no choice of layers 'diagonal'"),
        ({"kind": "linear"}, "no kind of φ 'linear'"),
        ({"fit": "sgd"}, "no way to fit φ 'sgd'"),
        ({"fit": "none"}, "must be fitted"),
        ({"kind": "identity", "fit": "task"}, "The identity has nothing to fit"),
        ({"task": "translation"}, "no task 'translation'"),
        ({"length": 65}, "reads at most 64 tokens"),
        ({"length": 1}, "at least 2 tokens"),
        ({"rank": 3}, "rank=3 has a meaning only with kind='low-rank'"),
        ({"text": ["", "  "]}, "no text"),
        ({"text": ["Short."]}, "too few to fit φ on some"),
        ({"text": ["A few words."], "length": 4}, "has 12 tokens, too few for a layer of 16 units"),
        ({"text": LabelledTexts(["a", "b"], [0, 1])}, "are for sequence classifiers"),
    ],
)
def test_bad_input(two, documents, tokenizer, options, message):
    text = options.pop("text", documents) if "text" in options else documents
    with pytest.raises((InvalidInput, UnknownName), match=message):
        stitch(*two, text, tokenizer=tokenizer, **{**SMALL, **options})


def test_bad_labels(make, tokenizer, documents):
    model = make("classifier", 0)
    with pytest.raises(InvalidInput, match="There are 2 texts and 1 labels"):
        LabelledTexts(["a", "b"], [0])
    with pytest.raises(InvalidInput, match="no labelled texts"):
        LabelledTexts([], [])
    with pytest.raises(InvalidInput, match=r"a label 3, but .* has the classes 0 to 2"):
        stitch(model, model, LabelledTexts(["a", "b"], [0, 3]), kind="identity", tokenizer=tokenizer)
    with pytest.raises(InvalidInput, match="is a classifier and was given running text"):
        stitch(model, model, documents, kind="identity", tokenizer=tokenizer)
    with pytest.raises(InvalidInput, match="1 labelled texts cannot be divided"):
        stitch(model, model, LabelledTexts(["a"], [0]), tokenizer=tokenizer)


def test_other_kinds_of_models_are_refused_with_the_way_out(tokenizer, documents):
    import transformers as tf

    t5 = tf.T5ForConditionalGeneration(
        tf.T5Config(d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, vocab_size=300)
    )
    with pytest.raises(InvalidInput, match=r"is an encoder-decoder \(t5\).*StitchedModel"):
        stitch(t5, t5, documents, tokenizer=tokenizer)
    vit = tf.ViTForImageClassification(
        tf.ViTConfig(
            hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=16
        )
    )
    with pytest.raises(InvalidInput, match=r"is a vision model \(vit\)"):
        stitch(vit, vit, documents, tokenizer=tokenizer)


def test_figures(two, documents, tokenizer):
    from thinkalike.stitching.penalty_plots import line_frame, plot_results

    options = {"tokenizer": tokenizer, **SMALL}
    there = stitch(*two, documents, names=("a", "b"), **options)
    back = stitch(*two[::-1], documents, names=("b", "a"), **options | {"ceiling": False})
    spec = there.plot().to_dict()
    assert spec["title"] == "a → b: affine, least-squares"
    frame = line_frame(there, "penalty")
    assert frame.groupby("series").size().to_dict() == dict.fromkeys(frame["series"].unique(), 3)
    pair = frame[frame["series"] == "a → b"]
    np.testing.assert_allclose(pair["value"], there.to_frame()["penalty"])
    both = plot_results([there, back]).to_dict()
    series = both["layer"][1]["encoding"]["color"]["scale"]["domain"]
    assert series == ["a → b", "b → a", "b → b", "a → a"]
    relative = plot_results([there, back], "accuracy_drop", relative=True, baselines=False).to_dict()
    assert relative["layer"][1]["encoding"]["color"]["scale"]["domain"] == ["a → b", "b → a"]
    grid = stitch(*two, documents, layers="grid", floor=False, **options | {"ceiling": False})
    assert "rect" in str(grid.plot("accuracy").to_dict())
    with pytest.raises(InvalidInput, match="fitted by least-squares, which has no learning curve"):
        there.plot_curves()
    with pytest.raises(UnknownName, match="no value to draw 'cost'"):
        there.plot("cost")
    with pytest.raises(InvalidInput, match="no results to draw"):
        plot_results([])
