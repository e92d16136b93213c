"""The figures of a model card: held-out perplexity beside the baselines', and minimal pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thinkalike.systems.likelihood import causal_log_probabilities
from training.baselines import KneserNey, unigram_log_probabilities
from training.corpus import Document
from training.likelihood import masked_log_probabilities, perplexity, prefer_right
from training.tokens import encode_running, special_ids

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

PAIRS = 200  # of each kind
PAIRS_SEED = 0


@dataclass(frozen=True)
class Sample:
    """Held-out tokens, and what the baselines give each of them but the first."""

    ids: np.ndarray  # (n,)
    unigram: np.ndarray  # (n - 1,) log-probabilities of ids[1:]
    kneser_ney: np.ndarray  # (n - 1,)

    def part(self, n: int) -> Sample:
        """The first `n` tokens."""
        return Sample(self.ids[:n], self.unigram[: n - 1], self.kneser_ney[: n - 1])


@dataclass(frozen=True)
class Figures:
    """What is measured on the shipped weights."""

    held_out_tokens: int
    perplexity: float
    unigram_perplexity: float
    kneser_ney_perplexity: float
    minimal_pairs: dict[str, dict[str, float]]


def held_out_ids(tokenizer: PreTrainedTokenizerFast, text: Path) -> np.ndarray:
    """The tokens of a held-out text with a paragraph a line."""
    lines = [line for line in text.read_text(encoding="utf-8").splitlines() if line]
    return encode_running(tokenizer, [Document("held-out", text.stem, tuple(lines))])[0]


def fit_baselines(training: np.ndarray, ids: np.ndarray, *, n_tokens: int, eos: int) -> Sample:
    """The baselines, fitted to the running training text, on held-out tokens.

    Half precision is enough for a perplexity (1e-4 of it) and keeps the bundled file small.
    """
    kneser_ney = KneserNey(training, n_tokens=n_tokens).log_probabilities(np.concatenate([[eos], ids]))
    unigram = unigram_log_probabilities(training, ids[1:], n_tokens=n_tokens)
    return Sample(ids, unigram.astype(np.float16), kneser_ney.astype(np.float16))


def save_sample(sample: Sample, path: Path) -> None:
    np.savez_compressed(path, ids=sample.ids, unigram=sample.unigram, kneser_ney=sample.kneser_ney)


def load_sample(path: Path) -> Sample:
    with np.load(path, allow_pickle=False) as arrays:
        return Sample(arrays["ids"], arrays["unigram"], arrays["kneser_ney"])


def measure(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sample: Sample,
    pairs: dict[str, list[tuple[str, str]]],
) -> Figures:
    """Every figure of the card; all perplexities are over the same tokens."""
    special = special_ids(tokenizer)
    if is_masked(model):
        places, own = masked_log_probabilities(model, sample.ids, special)
        places = places - 1  # the baselines have no entry for the first token
    else:
        own = causal_log_probabilities(model, sample.ids)
        places = np.arange(len(own))
    return Figures(
        held_out_tokens=len(own),
        perplexity=perplexity(own),
        unigram_perplexity=perplexity(sample.unigram[places]),
        kneser_ney_perplexity=perplexity(sample.kneser_ney[places]),
        minimal_pairs={kind: prefer_right(model, tokenizer, members) for kind, members in pairs.items()},
    )


def is_masked(model: PreTrainedModel) -> bool:
    """Whether the model predicts masked tokens rather than the next one."""
    return "MaskedLM" in type(model).__name__
