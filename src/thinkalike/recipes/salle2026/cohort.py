"""The 43 models of the third version, and what their makers say of them.

Names, families, classes, sizes, tokens and months of release as the authors' public scripts list them
(github.com/LouisJalouzot/MLEM_method, `scripts/generate_metadata.py`); the tokens of GPT-2 are an estimate
there. All else (depth, width, positions, activation, norm, vocabulary) is read from the configurations.
"""

from __future__ import annotations

from typing import NamedTuple

from thinkalike.types import Json


class Known(NamedTuple):
    """Of one family.

    Attributes
    ----------
    pattern
        Of the names on the hub, the member in place of {}.
    members
        Member → billions of parameters, billions of tokens, year and month of release.
    """

    family: str
    kind: str
    pattern: str
    members: dict[str, tuple[float, float, int, int]]


FAMILIES = (
    Known(
        "GPT-2",
        "transformer",
        "openai-community/{}",
        {
            "gpt2": (0.117, 10, 2019, 2),
            "gpt2-medium": (0.345, 10, 2019, 5),
            "gpt2-large": (0.762, 10, 2019, 8),
            "gpt2-xl": (1.5, 10, 2019, 11),
        },
    ),
    Known(
        "OPT",
        "transformer",
        "facebook/opt-{}",
        {
            "125m": (0.125, 180, 2022, 5),
            "1.3b": (1.3, 180, 2022, 5),
            "2.7b": (2.7, 180, 2022, 5),
            "6.7b": (6.7, 180, 2022, 5),
            "13b": (13.0, 180, 2022, 5),
        },
    ),
    Known(
        "Pythia",
        "transformer",
        "EleutherAI/pythia-{}-deduped",
        {
            "410m": (0.41, 207, 2023, 4),
            "1b": (1.0, 207, 2023, 4),
            "1.4b": (1.4, 207, 2023, 4),
            "6.9b": (6.9, 207, 2023, 4),
            "12b": (12.0, 207, 2023, 4),
        },
    ),
    Known(
        "OLMo-2",
        "transformer",
        "allenai/OLMo-2-{}",
        {
            "0425-1B": (1.0, 4000, 2025, 4),
            "1124-7B": (7.0, 4000, 2024, 11),
            "1124-13B": (13.0, 5000, 2024, 11),
        },
    ),
    Known(
        "Llama-3",
        "transformer",
        "meta-llama/Llama-{}",
        {
            "3.2-1B": (1.0, 9000, 2024, 9),
            "3.2-3B": (3.0, 9000, 2024, 9),
            "3.1-8B": (8.0, 15000, 2024, 7),
        },
    ),
    Known(
        "Ministral-3",
        "transformer",
        "mistralai/Ministral-3-{}B-Base-2512",
        {"3": (3.0, 3000, 2025, 12), "8": (8.0, 3000, 2025, 12), "14": (14.0, 3000, 2025, 12)},
    ),
    Known(
        "Qwen3",
        "transformer",
        "Qwen/Qwen3-{}B-Base",
        {
            "0.6": (0.6, 36000, 2025, 4),
            "1.7": (1.7, 36000, 2025, 4),
            "4": (4.0, 36000, 2025, 4),
            "8": (8.0, 36000, 2025, 4),
            "14": (14.0, 36000, 2025, 4),
        },
    ),
    Known(
        "Mamba",
        "state-space",
        "state-spaces/mamba-{}-hf",
        {
            "130m": (0.13, 300, 2023, 12),
            "370m": (0.37, 300, 2023, 12),
            "790m": (0.79, 300, 2023, 12),
            "1.4b": (1.4, 300, 2023, 12),
            "2.8b": (2.8, 300, 2023, 12),
        },
    ),
    Known(
        "Mamba-2",
        "state-space",
        "AntonV/mamba2-{}-hf",
        {
            "130m": (0.13, 300, 2024, 5),
            "370m": (0.37, 300, 2024, 5),
            "780m": (0.78, 300, 2024, 5),
            "1.3b": (1.3, 300, 2024, 5),
            "2.7b": (2.7, 300, 2024, 5),
        },
    ),
    Known(
        "RWKV-7",
        "recurrent",
        "fla-hub/rwkv7-{}",
        {
            "191M-world": (0.191, 1600, 2025, 3),
            "0.4B-world": (0.4, 3100, 2025, 3),
            "1.5B-world": (1.5, 5600, 2025, 3),
            "2.9B-world": (2.9, 5600, 2025, 3),
            "7.2B-g0a": (7.2, 5600, 2025, 3),
        },
    ),
)

COHORT: dict[str, Json] = {
    one.pattern.format(member): {
        "family": one.family,
        "class": one.kind,
        "parameters": 1e9 * parameters,
        "tokens": 1e9 * tokens,
        "date": year + (month - 1) / 12,
    }
    for one in FAMILIES
    for member, (parameters, tokens, year, month) in one.members.items()
}
"""Name on the hub → facts"""
