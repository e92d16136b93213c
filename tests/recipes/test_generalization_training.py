"""Fine-tuning, barriers, penalties: the parts of the recipe on generalisation that touch models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from thinkalike.recipes.brown2023_generalization.barriers import barrier, barriers, losses_between
from thinkalike.recipes.brown2023_generalization.data import Pairs
from thinkalike.recipes.brown2023_generalization.finetuning import (
    CLIP,
    DECAY,
    _epochs,
    _optimise,
    _pair_tokens,
    word_logits,
)
from thinkalike.recipes.brown2023_generalization.identity import penalties
from thinkalike.recipes.brown2023_generalization.population import share_right


class Asks:
    """Questions whose answers are those of a linear classifier."""

    def __init__(self, x: torch.Tensor, right: torch.Tensor, sizes: Sequence[int]) -> None:
        self.x, self.right, self.sizes = x, right, sizes

    def inputs(self, model: nn.Module, rows: slice) -> dict[str, object]:
        return {"x": self.x[rows]}

    def batches(self) -> list[slice]:
        ends = np.cumsum([0, *self.sizes])
        return [slice(a, b) for a, b in pairwise(ends)]


class Linear(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(3, 2).double()

    def forward(self, x: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.layer(x))


@pytest.fixture
def questions() -> Asks:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(10, 3, dtype=torch.float64, generator=generator)
    right = torch.eye(2, dtype=torch.bool)[torch.randint(2, (10,), generator=generator)]
    return Asks(x, right, [4, 4, 2])


class TestBarriers:
    def test_the_line_between_two_models_is_walked_weight_by_weight(self, questions: Asks) -> None:
        a, b = Linear(0), Linear(1)
        found = losses_between(a, b, questions, (0.0, 0.3, 1.0))  # type: ignore[arg-type]
        for share, loss in zip((0.0, 0.3, 1.0), found, strict=True):
            mixed = Linear(2)
            with torch.no_grad():
                for name, weight in mixed.layer.named_parameters():
                    first, second = (dict(one.layer.named_parameters())[name] for one in (a, b))
                    weight.copy_((1 - share) * first + share * second)
                logits = mixed(questions.x).logits
            expected = nn.functional.cross_entropy(logits, questions.right.long().argmax(1))
            assert loss == pytest.approx(float(expected), rel=1e-12)

    def test_models_are_left_as_they_were(self, questions: Asks) -> None:
        a, b = Linear(0), Linear(1)
        before = [one.layer.weight.clone() for one in (a, b)]
        losses_between(a, b, questions)  # type: ignore[arg-type]
        assert all(torch.equal(x, one.layer.weight) for x, one in zip(before, (a, b), strict=True))

    def test_how_far_the_loss_rises_above_the_line(self) -> None:
        assert barrier(np.array([1.0, 1.5, 2.0, 2.5, 3.0])) == pytest.approx(0.0)
        assert barrier(np.array([1.0, 1.5, 4.0, 2.5, 3.0])) == pytest.approx(2.0)
        assert barrier(np.array([1.0, 0.5, 0.5, 0.5, 1.0])) == 0.0  # a valley is no barrier

    def test_a_convex_loss_has_none_and_pairs_that_nobody_wants_are_skipped(self, questions: Asks) -> None:
        models = {f"{k}": Linear(k) for k in range(3)}
        wanted = np.ones((3, 3), dtype=bool)
        wanted[0, 2] = wanted[2, 0] = False
        found = barriers(models, questions, wanted)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found, found.T)
        assert np.isnan(found[0, 2])
        np.testing.assert_array_equal(np.diag(found), 0.0)
        assert found[0, 1] == pytest.approx(0.0, abs=1e-12)  # cross-entropy of a linear model is convex


class TestTraining:
    def test_every_row_comes_once_before_any_comes_again(self) -> None:
        seen = np.concatenate(list(islice(_epochs(7, 3, seed=0), 14)))  # 42 rows: six times each
        for epoch in seen.reshape(6, 7):
            assert sorted(epoch) == list(range(7))
        again = np.concatenate(list(islice(_epochs(7, 3, seed=0), 14)))
        np.testing.assert_array_equal(seen, again)
        assert not np.array_equal(seen, np.concatenate(list(islice(_epochs(7, 3, seed=1), 14))))

    def test_a_batch_larger_than_the_data(self) -> None:
        batch = next(_epochs(3, 8, seed=0))
        assert len(batch) == 8
        assert np.bincount(batch).max() <= 3

    def test_steps_are_those_of_torchs_adamw_with_its_schedule(self) -> None:
        """Ten steps by hand: rate up over one step, then straight down to a ninth."""
        start, target = torch.tensor([3.0, -2.0]), torch.tensor([0.5, 0.5])
        ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
        _optimise([ours], lambda: ((ours - target) ** 2).sum(), steps=10, rate=0.1)
        optimiser = torch.optim.AdamW([theirs], lr=0.1, weight_decay=DECAY)
        for step in range(10):
            optimiser.param_groups[0]["lr"] = 0.1 * min(step + 1, (10 - step) / 9)
            optimiser.zero_grad()
            ((theirs - target) ** 2).sum().backward()
            assert theirs.grad is not None
            theirs.grad *= min(1.0, CLIP / float(theirs.grad.norm()))
            optimiser.step()
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)

    def test_half_of_the_pairs_get_the_hypothesis_of_another(self) -> None:
        from thinkalike.systems.system import open_system

        tokenizer = open_system("nano-bert").tokenizer
        texts = tuple((f"the {a} sleeps", f"the {a} runs") for a in ("king", "queen", "dog", "cat"))
        tokens, hypothesis = _pair_tokens(Pairs("x", texts, ("entailment",) * 4), tokenizer)
        said = [
            tokenizer.decode(ids[where]).strip() for ids, where in zip(tokens.ids, hypothesis, strict=True)
        ]
        assert said == [texts[0][1], texts[1][1], texts[3][1], texts[2][1]]

    def test_logits_come_from_whichever_head_there_is(self) -> None:
        states = torch.randn(4, 3)
        head, decoder = nn.Linear(3, 3), nn.Linear(3, 5)
        of_bert = SimpleNamespace(cls=decoder)
        of_modern_bert = SimpleNamespace(head=head, decoder=decoder)
        torch.testing.assert_close(word_logits(of_bert, states), decoder(states))
        torch.testing.assert_close(word_logits(of_modern_bert, states), decoder(head(states)))


def test_penalties_are_against_the_own_accuracy_of_the_top() -> None:
    accuracies = np.array([[[0.9, 0.6], [0.5, 0.8]]])
    np.testing.assert_allclose(penalties(accuracies), [[[0.0, 0.2], [0.4, 0.0]]], atol=1e-12)


def test_shares_of_right_answers() -> None:
    right = {"a": {"choosing": np.array([True, False]), "inside": np.array([True])}}
    assert share_right(right, "choosing") == {"a": 0.5}
    assert share_right(right, "inside") == {"a": 1.0}
