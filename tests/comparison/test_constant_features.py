"""Features in which no two items differ, as treebanks have them, are left out with one caution."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thinkalike.comparison import compare, profile
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.encoding.mlem import MLEM
from thinkalike.errors import InvalidInput
from thinkalike.stimuli import Stimuli

WORDS = {
    "DET": [("the", "Definite=Def"), ("a", "Definite=Ind|Typo=Yes"), ("this", "_")],
    "NOUN": [("king", "Number=Sing"), ("kings", "Number=Plur"), ("FBI", "Abbr=Yes|Number=Sing")],
    "VERB": [("sleeps", "Number=Sing"), ("sleep", "Number=Plur"), ("schläft", "Foreign=Yes|Number=Sing")],
}


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Stimuli:
    """60 sentences in the format of Universal Dependencies, with marks that are Yes or absent."""
    rng = np.random.default_rng(0)
    blocks = []
    for _ in range(60):
        lines = [
            f"{k}\t{word}\t_\t{upos}\t_\t{marks}\t{k + 1 if k < 3 else 0}\t_\t_\t_"
            for k, (upos, words) in enumerate(WORDS.items(), start=1)
            for word, marks in [words[rng.integers(3)]]
        ]
        blocks.append("\n".join(lines) + "\n\n")
    path: Path = tmp_path_factory.mktemp("ud") / "small.conllu"
    path.write_text("".join(blocks), encoding="utf-8")
    return Stimuli.from_conllu(path, drop=["distance_to_head", "word_position"])


@pytest.fixture(scope="module")
def arrays(treebank: Stimuli) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {name: rng.normal(size=(len(treebank), 8)).astype(np.float32) for name in ("a", "b")}


def caught(work: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = work()
    named = [w for w in found if "No two items differ" in str(w.message)]
    assert all(w.category is CautionWarning for w in named)
    return result, [str(w.message) for w in named]


def test_they_are_left_out_with_one_caution(treebank: Stimuli, arrays: dict[str, np.ndarray]) -> None:
    assert {"Abbr", "Foreign", "Typo"} <= set(treebank.kinds)
    made, said = caught(lambda: profile(arrays["a"], treebank))
    assert set(made.features) == set(treebank.kinds) - {"Abbr", "Foreign", "Typo"}
    assert len(said) == 1
    assert "No two items differ in Abbr, Foreign and Typo: left out, for they have one level." in said[0]
    without, said = caught(lambda: profile(arrays["a"], treebank.choose(drop=["Abbr", "Foreign", "Typo"])))
    assert said == []
    np.testing.assert_array_equal(made.importance, without.importance)


def test_a_comparison_says_so_once(treebank: Stimuli, arrays: dict[str, np.ndarray]) -> None:
    result, said = caught(lambda: compare(arrays, treebank))
    assert len(said) == 1
    assert [caution.text for caution in result.cautions if caution.kind == "constant-features"] == said


def test_absence_can_be_a_level(treebank: Stimuli, arrays: dict[str, np.ndarray]) -> None:
    made, said = caught(lambda: profile(arrays["a"], treebank, missing="level"))
    assert set(made.features) == set(treebank.kinds)
    assert said == []


def test_items_are_chosen_first(treebank: Stimuli, arrays: dict[str, np.ndarray]) -> None:
    plural = (treebank.features["Number"] != "Sing").to_numpy()
    made, said = caught(lambda: profile(arrays["a"][plural], treebank.subset(plural)))
    assert "Number" not in made.features
    assert "Number" in said[0]


def test_without_any_other_feature_they_are_refused_all_at_once(
    treebank: Stimuli, arrays: dict[str, np.ndarray]
) -> None:
    only = treebank.choose(["Abbr", "Foreign"])
    with pytest.raises(InvalidInput, match="The features 'Abbr', 'Foreign' have one level, so no pair of"):
        profile(arrays["a"], only)
    with pytest.raises(InvalidInput, match="The features 'Abbr', 'Foreign', 'Typo' have one level"):
        MLEM().fit(treebank, arrays["a"])
