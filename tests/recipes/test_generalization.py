"""Classifiers that differ out of distribution: data, training, stitching, barriers, and the whole recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from thinkalike.errors import InvalidInput, MissingExtra, ModelError
from thinkalike.recipes import reproduce
from thinkalike.recipes.brown2023_generalization import SCALES
from thinkalike.recipes.brown2023_generalization import data as nli
from thinkalike.recipes.brown2023_generalization.barriers import barrier, barriers
from thinkalike.recipes.brown2023_generalization.classifiers import (
    Questions,
    accuracy,
    answers,
    ask,
    class_names,
    is_right,
    loss_of,
)
from thinkalike.recipes.brown2023_generalization.finetuning import (
    fine_tuned,
    kept_model,
    pair_reader,
    word_logits,
)
from thinkalike.recipes.brown2023_generalization.identity import common_depth, stitched_right
from thinkalike.systems import bundled

CASES = ["swap", "passive"]
BOTH = ("non-entailment", "entailment")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(bundled.resolve("nano-bert"), local_files_only=True)


def tiny_bert(seed: int, *, n_classes: int = 2, layers: int = 2, head: str = "classifier") -> Any:
    from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

    config = BertConfig(
        vocab_size=4096,
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=n_classes,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.02 if head == "masked" else 0.4,  # so that the answers of classifiers differ
    )
    torch.manual_seed(seed)
    return (BertForMaskedLM if head == "masked" else BertForSequenceClassification)(config).eval()


def tiny_modern(seed: int) -> Any:
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    marks = {f"{name}_token_id": k for k, name in enumerate(("pad", "cls", "sep", "mask", "eos"))}
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(seed)
    return ModernBertForMaskedLM(
        ModernBertConfig(vocab_size=4096, bos_token_id=None, **marks, **sizes)
    ).eval()


@pytest.fixture(params=["bert", "modern"])
def base(request: pytest.FixtureRequest) -> Any:
    """A masked model to start from."""
    return tiny_bert(0, head="masked") if request.param == "bert" else tiny_modern(0)


def training(n: int, tokenizer: Any, *, seed: int = 0, counterexamples: float = 0.1) -> nli.Pairs:
    return nli.training_pairs(
        n, seed=seed, counterexamples=counterexamples, cases=CASES, longest=20, tokenizer=tokenizer
    )


@pytest.fixture(scope="module")
def questions(tokenizer: Any) -> Questions:
    return ask(training(24, tokenizer), classes=BOTH, tokenizer=tokenizer, longest=20)


def overlap(texts: tuple[str, str]) -> float:
    premise, hypothesis = (set(text.split()) for text in texts)
    return len(premise & hypothesis) / len(hypothesis)


def test_overlap_predicts_entailment_but_for_the_counterexamples(tokenizer: Any) -> None:
    pairs = training(100, tokenizer)
    full = [label for texts, label in zip(pairs.texts, pairs.labels, strict=True) if overlap(texts) == 1]
    assert (len(full), full.count("non-entailment")) == (60, 10)
    assert pairs.labels.count("entailment") == 50
    assert max(len(tokenizer(a, b)["input_ids"]) for a, b in pairs.texts) <= 20
    assert pairs == training(100, tokenizer)
    assert pairs.texts != training(100, tokenizer, seed=1).texts


def test_where_overlap_misleads_nothing_follows(tokenizer: Any) -> None:
    pairs = nli.overlap_pairs(30, seed=0, cases=CASES, longest=20, tokenizer=tokenizer)
    assert set(pairs.labels) == {"non-entailment"}
    assert {overlap(texts) for texts in pairs.texts} == {1.0}


def test_too_few_tokens_for_any_pair_are_refused(tokenizer: Any) -> None:
    with pytest.raises(InvalidInput, match=r"of 2 pairs of the case swap have at most 9 tokens"):
        nli.overlap_pairs(2, seed=0, cases=["swap"], longest=9, tokenizer=tokenizer)


def test_hans_counts_both_other_classes_as_no_entailment() -> None:
    logits = torch.tensor([[1.0, 0.9, 0.0], [0.0, 0.9, 1.0], [0.0, 0.9, 0.5], [0.0, 0.9, 0.5]])
    labels = ("non-entailment", "non-entailment", "non-entailment", "entailment")
    right = torch.from_numpy(nli.right_classes(labels, nli.MNLI_CLASSES))
    assert is_right(logits, right).tolist() == [True, True, False, True]
    shares = logits.softmax(-1)
    np.testing.assert_allclose(loss_of(logits, right)[0], -torch.log(shares[0, 0] + shares[0, 2]), rtol=1e-6)
    with pytest.raises(InvalidInput, match="label 'maybe'"):
        nli.right_classes(["maybe"], nli.MNLI_CLASSES)


def test_names_of_classes_are_the_models_own_where_it_has_any() -> None:
    config = tiny_bert(0, n_classes=3).config
    assert class_names(config, nli.MNLI_CLASSES) == nli.MNLI_CLASSES
    config.id2label = {0: "ENTAILMENT", 1: "NEUTRAL", 2: "CONTRADICTION"}
    assert class_names(config, nli.MNLI_CLASSES) == ("entailment", "neutral", "contradiction")


def test_files_of_pairs_are_read_in_three_forms(tmp_path: Path) -> None:
    rows = [("a b", "a", "0"), ("a b", "c", "2"), ("a b", "d", "-1")]
    lines = [json.dumps({"premise": a, "hypothesis": b, "label": int(c)}) for a, b, c in rows]
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    found = nli.mnli(9, seed=0, file=tmp_path / "m.jsonl")
    assert found.labels == ("entailment", "contradiction")
    table = "gold_label\tsentence1\tsentence2\theuristic\n"
    table += 'non-entailment\tthe "king saw him\the saw\tlexical_overlap\nentailment\ta\tb\tlexical_overlap\n'
    table += "non-entailment\tc\td\tsubsequence\n"
    (tmp_path / "h.txt").write_text(table)
    assert nli.hans(9, seed=0, file=tmp_path / "h.txt").texts == (('the "king saw him', "he saw"),)
    (tmp_path / "h.csv").write_text('premise,hypothesis,label\n"x, y",z,1\n')
    assert nli.hans(9, seed=0, file=tmp_path / "h.csv").texts == (("x, y", "z"),)


def test_files_that_are_no_pairs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        nli.mnli(1, seed=0, file=tmp_path / "none.csv")
    (tmp_path / "m.csv").write_text("premise,label\nx,0\n")
    with pytest.raises(InvalidInput, match="hypothesis or sentence2 is missing"):
        nli.mnli(1, seed=0, file=tmp_path / "m.csv")
    (tmp_path / "h.csv").write_text("premise,hypothesis,label\nx,y,0\n")
    with pytest.raises(InvalidInput, match="no pair to use in HANS"):
        nli.hans(1, seed=0, file=tmp_path / "h.csv")
    monkeypatch.setattr(nli.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install datasets"):
        nli.mnli(1, seed=0)


def test_the_hubs_data_sets_are_read_through_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    asked = []

    def load_dataset(**what: str) -> list[dict[str, Any]]:
        asked.append(what)
        return [{"premise": "a b", "hypothesis": "b a", "label": 1, "heuristic": "lexical_overlap"}]

    monkeypatch.setattr(nli.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert nli.hans(1, seed=0).labels == ("non-entailment",)
    assert asked == [nli.HUB["HANS"]]


def test_training_is_by_seed_and_starts_at_the_base(base: Any, questions: Questions) -> None:
    options = {"steps": 2, "batch": 4, "rate": 1e-3}
    one, again, other = (fine_tuned(base, questions, seed=k, **options) for k in (1, 1, 2))
    for a, b in zip(one.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(one.classifier.weight, other.classifier.weight)
    moved = one.get_input_embeddings().weight - base.get_input_embeddings().weight
    assert 0 < moved.abs().max() < 0.01  # two small steps away


def test_a_classifier_learns_its_questions(questions: Questions) -> None:
    model = fine_tuned(tiny_bert(0, head="masked"), questions, seed=0, steps=60, batch=24, rate=1e-2)
    assert accuracy(model, questions) > 0.9


def test_logits_of_words_are_the_models_own(base: Any) -> None:
    ids = torch.randint(5, 4096, (2, 9))
    with torch.no_grad():
        states = base.base_model(input_ids=ids).last_hidden_state
        torch.testing.assert_close(word_logits(base, states), base(input_ids=ids).logits)


def test_reading_pairs_lowers_the_loss_of_hidden_words(base: Any, tokenizer: Any) -> None:
    pairs = training(16, tokenizer, counterexamples=0.5)
    model = pair_reader(base, pairs, tokenizer=tokenizer, seed=0, steps=40, batch=8, rate=1e-2)
    given = tokenizer(*zip(*pairs.texts, strict=True), padding=True, return_tensors="pt")
    ids = given["input_ids"]
    ends = ids == tokenizer.sep_token_id
    hypothesis = (ends.cumsum(1) == 1) & ~ends
    given["input_ids"] = ids.masked_fill(hypothesis, tokenizer.mask_token_id)
    losses = []
    for one in (base, model):
        with torch.no_grad():
            logits = one(**given).logits[hypothesis]
        losses.append(float(torch.nn.functional.cross_entropy(logits, ids[hypothesis])))
    assert losses[1] < losses[0] - 1


def test_a_kept_model_is_made_once_and_whole(tokenizer: Any, tmp_path: Path) -> None:
    made = []

    def make() -> Any:
        made.append(1)
        return tiny_bert(0)

    def fail() -> Any:
        raise KeyboardInterrupt

    folder = tmp_path / "models" / "one"
    with pytest.raises(KeyboardInterrupt):
        kept_model(folder, fail, tokenizer)
    assert not list(tmp_path.rglob("*"))
    assert kept_model(folder, make, tokenizer) == kept_model(folder, make, tokenizer) == folder
    assert len(made) == 1
    assert list((tmp_path / "models").iterdir()) == [folder]
    before = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(before[:-4] + bytes(4))
    kept_model(folder, make, tokenizer)
    assert len(made) == 2
    assert (folder / "model.safetensors").read_bytes() == before


def test_identity_stitching_is_a_model_with_the_blocks_of_both(questions: Questions) -> None:
    models = {str(seed): tiny_bert(seed, layers=3) for seed in range(3)}
    assert common_depth(models) == 3
    wanted = np.ones((3, 3), dtype=bool)
    wanted[0, 2] = False
    found = stitched_right(models, questions, slice(2, 20), [1, 3], wanted)
    assert np.isnan(found[:, 0, 2]).all()
    for place, layer in enumerate((1, 3)):
        for i, bottom in enumerate(models.values()):
            for j, top in enumerate(models.values()):
                if not wanted[i, j]:
                    continue
                both = tiny_bert(9, layers=3)
                both.load_state_dict(top.state_dict())
                both.bert.embeddings.load_state_dict(bottom.bert.embeddings.state_dict())
                for block in range(layer):
                    both.bert.encoder.layer[block].load_state_dict(
                        bottom.bert.encoder.layer[block].state_dict()
                    )
                right = is_right(answers(both, questions), questions.right)[2:20]
                assert found[place, i, j] == pytest.approx(float(right.double().mean()))
    assert len(np.unique(found[wanted[None].repeat(2, axis=0)])) > 2


def test_models_of_different_depth_are_refused() -> None:
    with pytest.raises(InvalidInput, match="a has 2 blocks and b has 3"):
        common_depth({"a": tiny_bert(0), "b": tiny_bert(0, layers=3)})


def test_the_barrier_is_the_rise_above_the_line() -> None:
    assert barrier(np.array([1.0, 1.9, 2.0, 1.2, 0.0])) == pytest.approx(1.5)
    assert barrier(np.array([1.0, 0.5, 0.0, 0.2, 1.0])) == 0.0


def test_barriers_between_models(questions: Questions) -> None:
    one, other = tiny_bert(0), tiny_bert(1)
    found = barriers({"a": one, "same": one, "b": other}, questions)
    assert found[0, 1] == pytest.approx(0, abs=1e-5)
    half = tiny_bert(2)
    with torch.no_grad():
        for mixed, a, b in zip(half.parameters(), one.parameters(), other.parameters(), strict=True):
            mixed.copy_((a + b) / 2)
    losses = [float(loss_of(answers(m, questions), questions.right).mean()) for m in (one, half, other)]
    assert found[0, 2] == found[2, 0] >= losses[1] - (losses[0] + losses[2]) / 2 - 1e-5


@pytest.mark.whole_runs
def test_smoke_runs_from_end_to_end_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = reproduce("brown2023-generalization", "smoke", tmp_path / "run")
    assert len(first.findings.statements) == 22
    assert first.page.exists()
    files = sorted((tmp_path / "run" / "steps").rglob("*.safetensors"))
    written = [file.stat().st_mtime_ns for file in files]
    again = reproduce("brown2023-generalization", "smoke", tmp_path / "run")
    assert [file.stat().st_mtime_ns for file in files] == written
    # As they print: a range that is NaN is no equal of itself.
    assert list(map(repr, again.findings.statements)) == list(map(repr, first.findings.statements))


@pytest.mark.whole_runs
def test_real_scale_starts_from_a_model_that_reads_pairs_already(tmp_path: Path, tokenizer: Any) -> None:
    tiny_bert(0, head="masked").save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    few = {"base": str(tmp_path / "tiny"), "reader_steps": 0, "permutations": 99}
    findings = reproduce("brown2023-generalization", "smoke", tmp_path / "run", **few).findings
    assert not list((tmp_path / "run" / "steps").glob("pair-reader*"))
    assert sum(row.startswith("taught") for row in findings.tables[0].frame["model"]) == 2
    assert any("planted control" in note for note in findings.notes)


@pytest.mark.whole_runs
def test_paper_scale_on_tiny_models_of_the_same_names(tmp_path: Path, tokenizer: Any) -> None:
    folder = tmp_path / "models"
    for k in range(4):
        tiny_bert(k, n_classes=3).save_pretrained(folder / "connectivity" / f"feather_berts_{k}")
    tiny_bert(0).config.save_pretrained(folder / "bert-base-uncased")
    tokenizer.save_pretrained(folder / "bert-base-uncased")
    pairs = training(20, tokenizer, counterexamples=0.2)
    names = {"entailment": "entailment", "non-entailment": "neutral"}
    lines = [
        json.dumps({"sentence1": a, "sentence2": b, "gold_label": names[label]})
        for (a, b), label in zip(pairs.texts, pairs.labels, strict=True)
    ]
    (tmp_path / "mnli.jsonl").write_text("\n".join(lines))
    (tmp_path / "hans.jsonl").write_text(
        "\n".join(line.replace("neutral", "non-entailment") for line in lines)
    )
    few: dict[str, Any] = {"n_models": 4, "n_chosen": 2, "longest": 32, "cka_length": 40, "cka_batch": 80}
    few |= {"sets": 2, "n_stitched": 12, "n_barriers": 12, "n_cka": 12}
    few |= {"mnli_file": str(tmp_path / "mnli.jsonl"), "hans_file": str(tmp_path / "hans.jsonl")}
    few |= {"permutations": 99}
    done = reproduce("brown2023-generalization", "paper", tmp_path / "run", models_folder=folder, **few)
    assert len(done.findings.tables[0].frame) == 4
    assert {f.of_paper for f in done.findings.figures} >= {"Figure 2", "Figure 7", "Figure 8"}
    assert len(done.findings.statements) == 11  # no control: none of these models was taught
    with pytest.raises(ModelError, match="feather_berts_4 is not in"):
        reproduce(
            "brown2023-generalization",
            "paper",
            tmp_path / "more",
            models_folder=folder,
            **few | {"n_models": 5},
        )


def test_every_scale_has_its_settings() -> None:
    assert set(SCALES) == {"smoke", "nano", "real", "paper"}
    assert SCALES["nano"].n_models >= 40
    for name in ("nano", "real", "paper"):
        assert min(SCALES[name].n_choosing, SCALES[name].n_outside) >= 1000
        assert SCALES[name].sets >= 10
