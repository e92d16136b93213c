"""The model cards: measured facts in `card.json`; each folder's `README.md` says the same in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thinkalike.errors import UnknownName
from thinkalike.systems.bundled.bundle import names, resolve

FILE = "card.json"


@dataclass(frozen=True)
class Card:
    """What is known of one bundled model; every number was measured on the shipped weights.

    Attributes
    ----------
    name, architecture : the latter as transformers names it
    task : "causal" or "masked"
    parameters, layers, width, heads : sizes; no heads where there is no attention
    seed, steps, tokens_seen : of the training
    training : hyperparameters by name
    corpus : the account that the data preparation gives
    losses : (n, 2), step and training loss averaged since the entry before
    held_out_tokens : how many of the sample were scored
    perplexity, unigram_perplexity, kneser_ney_perplexity : of the model and two baselines, on the same tokens
    minimal_pairs : kind → accuracy, its 95 % interval low and high, n
    notes : what else a user should know
    data_licence, weights_licence : names of licences

    Examples
    --------
    >>> from thinkalike.systems import bundled
    >>> card = bundled.card("nano-gpt2")
    >>> card.task, card.layers, card.beats_kneser_ney
    ('causal', 6, True)
    """

    name: str
    architecture: str
    task: str
    parameters: int
    layers: int
    width: int
    heads: int | None
    seed: int
    steps: int
    tokens_seen: int
    training: dict[str, Any]
    corpus: dict[str, Any]
    losses: list[list[float]]
    held_out_tokens: int
    perplexity: float
    unigram_perplexity: float
    kneser_ney_perplexity: float
    minimal_pairs: dict[str, dict[str, float]]
    notes: list[str]
    data_licence: str = "public domain"
    weights_licence: str = "Apache-2.0"

    @property
    def passes(self) -> float:
        """How often the training saw the running text, counting tokens."""
        return self.tokens_seen / self.corpus["training_tokens"]

    @property
    def beats_kneser_ney(self) -> bool:
        """Whether it predicts better than interpolated 3-grams."""
        return self.perplexity < self.kneser_ney_perplexity


def card(name: str) -> Card:
    """The card of one bundled model.

    Parameters
    ----------
    name : in `names(revisions=True)`

    Returns
    -------
    Card

    Examples
    --------
    >>> from thinkalike.systems import bundled
    >>> bundled.card("nano-bert").task
    'masked'
    """
    folder = resolve(name)
    if folder is None:
        raise UnknownName.among("bundled model", name, names(revisions=True))
    return read_card(folder)


def cards(*, revisions: bool = False) -> tuple[Card, ...]:
    """The cards of all bundled models, in the order of `names`.

    Parameters
    ----------
    revisions : also those of the checkpoints, `NAME@stepN`

    Returns
    -------
    tuple of Card

    Examples
    --------
    >>> from thinkalike.systems import bundled
    >>> [card.name for card in bundled.cards()] == list(bundled.names())
    True
    """
    return tuple(card(name) for name in names(revisions=revisions))


def read_card(folder: Path) -> Card:
    return Card(**json.loads((folder / FILE).read_text(encoding="utf-8")))
