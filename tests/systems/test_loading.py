"""Models that several threads load side by side are the models that one thread loads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from transformers import PreTrainedModel

from thinkalike.systems import bundled
from thinkalike.systems.names import parse_name
from thinkalike.systems.pretrained import load_config, load_headed, load_model


def headed(name: str) -> torch.nn.Module:
    model = parse_name(name)
    return load_headed(model, load_config(model), "AutoModelForCausalLM")


def test_threads_that_load_side_by_side_leave_nothing_behind() -> None:
    tied = PreTrainedModel.tie_weights
    with ThreadPoolExecutor(8) as pool:
        models = list(pool.map(headed, ["nano-solu-3l", "nano-gpt2", "nano-pythia-64"] * 8))
    assert torch.get_default_dtype() == torch.float32
    assert PreTrainedModel.tie_weights is tied
    for model in (*models[::3], bundled.load("nano-solu-3l")[0]):
        assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


def test_untrained_weights_that_threads_draw_are_those_of_their_seed() -> None:
    name = parse_name("nano-gpt2:untrained")

    def weights(seed: int) -> dict[str, torch.Tensor]:
        return load_model(name, load_config(name), seed=seed).model.state_dict()

    alone = [weights(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        beside = list(pool.map(weights, [*range(4)] * 4))
    for one, other in zip(alone * 4, beside, strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=0)
