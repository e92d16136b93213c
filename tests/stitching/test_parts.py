"""The passes that stitches share: which layers, sums for least squares, scores, distances of states."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import mahalanobis

from thinkalike.errors import InvalidInput
from thinkalike.stitching import StitchedModel
from thinkalike.stitching.closed_form import LayerMoments
from thinkalike.stitching.evaluation import SHRINKAGE, Yardstick, evaluate, mean_losses
from thinkalike.stitching.examples import NOT_ASKED
from thinkalike.stitching.gathering import gather, least_squares
from thinkalike.stitching.job import Job, chunks, n_batches, rows_at_once
from thinkalike.stitching.material import read_material
from thinkalike.stitching.model_pair import open_pair
from thinkalike.stitching.stitches import Stitch, all_stitches, chosen_pairs
from thinkalike.systems.calling import arguments, frozen
from thinkalike.systems.system import LoadOptions, open_system, untrained_copy

AT_ONCE = 64


@pytest.fixture
def pair(make, tokenizer):
    return open_pair(
        make("gpt2"), make("gpt2", 1), LoadOptions(), names=("below", "above"), tokenizer=tokenizer
    )


@pytest.fixture
def examples(pair, documents):
    return read_material(
        documents[:30],
        None,
        pair[1],
        parts=("test",),
        length=16,
        split=None,
        max_tokens=10_000,
        seed=0,
    ).test


@pytest.fixture
def job(pair):
    stitches = all_stitches([(1, 1), (2, 1)], floor=True, ceiling=True)
    bottoms = {"pair": pair[0], "self": pair[1], "untrained": untrained_copy(pair[0], seed=3)}
    return Job(bottoms, pair[1], stitches)


class TestStitches:
    def test_all_layers_at_the_same_relative_depth(self, make, tokenizer):
        bottom, top = (
            open_system(make("gpt2", layers=n), head="own", tokenizer=tokenizer, name=str(n)) for n in (4, 2)
        )
        assert chosen_pairs("all", bottom, top) == [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2)]
        assert chosen_pairs("grid", top, top) == [(a, b) for a in range(3) for b in range(3)]
        assert chosen_pairs(1, bottom, top) == [(1, 1)]
        assert chosen_pairs([(4, 1), 2, (4, 1)], bottom, top) == [(4, 1), (2, 2)]
        with pytest.raises(InvalidInput, match="2 has the layers 0 to 2; 3 was asked for"):
            chosen_pairs([3], bottom, top)
        with pytest.raises(InvalidInput, match="no layers to stitch"):
            chosen_pairs([], bottom, top)

    @pytest.mark.parametrize("layer", ["1.h0", "1.e3", "1.l77", "state"])
    def test_parts_of_blocks_have_no_top(self, make, tokenizer, layer):
        system = open_system(make("gpt2", layers=2), head="own", tokenizer=tokenizer, name="tiny")
        for asked in ([layer], [(1, layer)]):
            with pytest.raises(InvalidInput, match=rf"Layer '{layer}' cannot be stitched.*ta\.similarity"):
                chosen_pairs(asked, system, system)

    def test_the_floor_is_once_per_layer_of_the_top(self):
        assert all_stitches([(1, 1), (2, 1)], floor=True, ceiling=True) == (
            Stitch("pair", 1, 1),
            Stitch("pair", 2, 1),
            Stitch("self", 1, 1),
            Stitch("untrained", 1, 1),
            Stitch("untrained", 2, 1),
        )


class TestPair:
    def test_one_model_on_both_sides_is_opened_once(self, make, tokenizer):
        model = make("gpt2")
        bottom, top = open_pair(model, model, LoadOptions(), tokenizer=tokenizer)
        assert bottom is top

    def test_models_of_one_class_can_be_told_apart(self, make, tokenizer):
        bottom, top = open_pair(make("gpt2"), make("gpt2", 1), LoadOptions(), tokenizer=tokenizer)
        assert (bottom.name, top.name) == ("GPT2LMHeadModel (bottom)", "GPT2LMHeadModel (top)")

    @pytest.mark.parametrize(("kind", "task"), [("gpt2", "causal"), ("bert", "masked"), ("mamba", "causal")])
    def test_the_class_says_the_task(self, make, tokenizer, kind, task):
        bottom, _ = open_pair(make(kind), make(kind, 1), LoadOptions(), tokenizer=tokenizer)
        assert bottom.task == task


class TestJob:
    def test_every_example_comes_once_and_in_its_order(self, job, examples):
        batches = list(job.batches(examples, AT_ONCE))
        assert len(batches) == n_batches(examples, AT_ONCE)
        assert {len(batch.tokens) for batch in batches[:-1]} == {rows_at_once(examples, AT_ONCE)} == {4}
        tokens = np.concatenate([batch.tokens.ids[batch.tokens.mask] for batch in batches])
        np.testing.assert_array_equal(tokens, examples.tokens.ids[examples.tokens.mask])
        assert list(chunks(5, 2)) == [[0, 1], [2, 3], [4]]

    def test_states_are_the_hidden_states_of_each_bottom(self, job, examples):
        batch = examples.batch([0, 1])
        found = job.states(batch)
        assert found.keys() == {("pair", 1), ("pair", 2), ("self", 1), ("untrained", 1), ("untrained", 2)}
        ids = torch.from_numpy(batch.tokens.ids)
        for (role, layer), states in found.items():
            if layer == 2:
                continue  # transformers gives the last layer after the final norm
            with torch.no_grad():
                own = job.bottoms[role].model(ids, output_hidden_states=True).hidden_states[layer]
            torch.testing.assert_close(states, own, atol=1e-5, rtol=1e-4)

    def test_only_what_is_asked_for_is_run(self, job, examples):
        batch = examples.batch([0])
        assert job.states(batch, among=[Stitch("pair", 1, 1)]).keys() == {("pair", 1)}
        known = {1: torch.full((1, 16, 16), 7.0)}
        found = job.states(batch, among=[Stitch("self", 1, 1)], known=known)
        assert found["self", 1] is known[1]

    def test_the_untrained_bottom_has_the_weights_of_its_seed(self, pair):
        one, same, other = (untrained_copy(pair[0], seed=s) for s in (3, 3, 4))
        weight = "transformer.h.0.attn.c_attn.weight"
        first, second, third = (dict(s.model.named_parameters())[weight] for s in (one, same, other))
        assert torch.equal(first, second)
        assert not torch.equal(first, third)
        assert one.name == "below:untrained"


class TestGathering:
    def test_moments_are_those_of_all_states(self, job, examples):
        with frozen(*job.models):
            gathered = gather(job, examples, kind="affine", tokens_at_once=AT_ONCE)
            rows = {role: [] for role in job.bottoms}
            for batch in job.batches(examples, AT_ONCE):
                states = job.states(batch)
                for role in rows:
                    rows[role].append(batch.rows(states[role, 1]))
        for role, parts in rows.items():
            X = torch.cat(parts).double().numpy()
            moments = gathered.bottom[role, 1]
            assert moments.n == len(X) == examples.n_tokens
            np.testing.assert_allclose(moments.mean, X.mean(0), atol=1e-6)
            np.testing.assert_allclose(moments.covariance, np.cov(X.T, bias=True), atol=1e-5)
        X, Y = (torch.cat(rows[role]).double().numpy() for role in ("pair", "self"))
        cross = (X - X.mean(0)).T @ (Y - Y.mean(0)) / len(X)
        np.testing.assert_allclose(gathered.pair(Stitch("pair", 1, 1)).cross, cross, atol=1e-4)

    def test_least_squares_is_scikit_learns(self, job, examples):
        from sklearn.linear_model import LinearRegression

        stitch = Stitch("pair", 1, 1)
        with frozen(*job.models):
            gathered = gather(job, examples, kind="affine", tokens_at_once=AT_ONCE)
            pairs = [
                (batch.rows(states["pair", 1]), batch.rows(states["self", 1]))
                for batch in job.batches(examples, AT_ONCE)
                for states in [job.states(batch)]
            ]
        X, Y = (torch.cat(side).double().numpy() for side in zip(*pairs, strict=True))
        phi = least_squares(gathered, stitch, "affine", None)
        expected = LinearRegression().fit(X, Y).predict(X)
        found = phi(torch.from_numpy(X).float()).detach().numpy()
        np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())

    def test_without_a_kind_the_top_runs_alone(self, job, examples):
        with frozen(*job.models):
            gathered = gather(job, examples, kind=None, tokens_at_once=AT_ONCE)
        assert not gathered.bottom
        assert not gathered.products
        assert gathered.top.keys() == {1}

    def test_too_few_tokens(self, job, examples):
        with frozen(*job.models):
            gathered = gather(job, examples.first(1), kind="affine", tokens_at_once=AT_ONCE)
        with pytest.raises(InvalidInput, match=r"has 16 tokens, too few for a layer of 16 units: .* 160"):
            least_squares(gathered, Stitch("pair", 1, 1), "affine", None)


class TestEvaluation:
    def test_scores_are_those_of_stitched_models(self, job, examples):
        stitch = Stitch("pair", 1, 1)
        phis = {stitch: torch.nn.Identity()}
        with frozen(*job.models):
            found = evaluate(job, phis, examples, {}, tokens_at_once=AT_ONCE)
            means = mean_losses(job, phis, examples, tokens_at_once=AT_ONCE)
        stitched = StitchedModel(job.bottoms["pair"].model, job.top.model, 1, 1)
        for model, scores in ((job.top.model, found.own), (stitched, found.stitched[stitch])):
            loss, correct, count = (np.zeros(len(scores.loss)) for _ in range(3))
            for row in range(len(examples)):
                batch = examples.batch([row])
                with torch.no_grad():
                    logits = model(**arguments(job.top.stack, batch.tokens, job.top.model)).logits[0]
                surprise, best = -logits.log_softmax(-1), logits.argmax(-1).tolist()
                for place, target in enumerate(batch.targets[0].tolist()):
                    if target != NOT_ASKED:
                        unit = batch.units[0, place]
                        loss[unit] += float(surprise[place, target])
                        correct[unit] += best[place] == target
                        count[unit] += 1
            np.testing.assert_allclose(scores.loss, loss, rtol=1e-4)
            np.testing.assert_array_equal(scores.correct, correct)
            np.testing.assert_array_equal(scores.count, count)
        assert means[stitch] == pytest.approx(loss.sum() / count.sum(), rel=1e-4)
        assert not found.checks

    def test_a_stitch_of_a_model_with_itself_lies_among_its_own_states(self, job, examples):
        stitch = Stitch("self", 1, 1)
        with frozen(*job.models):
            gathered = gather(job, examples, kind=None, tokens_at_once=AT_ONCE)
            found = evaluate(
                job, {stitch: torch.nn.Identity()}, examples, gathered.top, tokens_at_once=AT_ONCE
            )
        check = found.checks[stitch]
        assert check.norm == pytest.approx(check.norm_own)
        assert check.mahalanobis == pytest.approx(check.mahalanobis_own)
        assert check.outside == pytest.approx(0.01, abs=0.01)
        np.testing.assert_allclose(found.stitched[stitch].loss, found.own.loss, rtol=1e-5)

    def test_distances_are_scipys(self):
        rows = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 4)) * [1, 2, 3, 4] + 5)
        moments = LayerMoments(rows)
        moments.add(rows)
        X = rows.numpy()
        covariance = np.cov(X.T, bias=True)
        shrunk = covariance + SHRINKAGE * np.trace(covariance) / 4 * np.eye(4)
        expected = [mahalanobis(x, X.mean(0), np.linalg.inv(shrunk)) for x in X]
        norms, distances = Yardstick(moments)(rows)
        np.testing.assert_allclose(norms, np.linalg.norm(X, axis=1))
        np.testing.assert_allclose(distances, expected)
