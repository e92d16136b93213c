"""What salle2024 reads off the models on one set of sentences, and the sets themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

import thinkalike as ta
from thinkalike.errors import InvalidInput
from thinkalike.recipes.salle2024.measures import blocks_of, leaders
from thinkalike.recipes.salle2024.observing import (
    Observation,
    observe,
    plain_table,
    position_on_maps,
    rsa_between,
    table_from,
)
from thinkalike.recipes.salle2024.scales import SCALES
from thinkalike.recipes.salle2024.sets import NATURAL, NOT_FIRST, PAPER, UNTANGLED, draw_sets, only_varied

SETTINGS = SCALES["smoke"].changed("salle2024", {"sets": 2, "sentences": 12})


@pytest.fixture(scope="module")
def words() -> ta.Stimuli:
    return ta.Stimuli.from_grammar(24, seed=0, grammar="salle2024")


@pytest.fixture(scope="module")
def systems(words: ta.Stimuli) -> list[ta.Activations]:
    rng = np.random.default_rng(0)
    return [
        ta.Activations.from_arrays(
            {k: rng.normal(size=(len(words), 5)) for k in range(3)}, system=name, stimuli=words
        )
        for name in "ab"
    ]


def test_rsa_is_scipys_spearman_of_distances(systems: list[ta.Activations]) -> None:
    found = rsa_between(systems, systems[0].n_items)
    distances = [pdist(one[layer]) for one in systems for layer in one.layers]
    np.testing.assert_allclose(found, spearmanr(np.stack(distances), axis=1).statistic, atol=1e-5)


def test_importances_are_those_of_profiles_and_are_kept_as_they_are(
    systems: list[ta.Activations], words: ta.Stimuli
) -> None:
    kept = observe(systems, words, maps=False, resamples=0)
    seen = Observation.from_plain(kept)
    assert seen.by_position == {}
    for one in systems:
        expected = ta.profile(one, words, resamples=0).table()
        known = expected.dropna(axis=1)
        np.testing.assert_allclose(seen.tables[one.system], known, rtol=1e-12)
        assert list(seen.tables[one.system]) == list(known)
    assert seen.rows == tuple((name, layer) for name in "ab" for layer in range(3))
    assert seen.between("a", "b").shape == (2, 2)  # without the embeddings
    np.testing.assert_array_equal(seen.between("a", "b"), seen.taus[1:3, 4:6])


def test_tables_survive_being_kept() -> None:
    table = pd.DataFrame({"a": [0.1, 0.2], "b": [np.nan, 1.0], "c": [3.0, 1 / 3]}, index=[0, 1])
    found = table_from(plain_table(table))
    pd.testing.assert_frame_equal(found, table[["a", "c"]])  # a feature that some layer lacks is left out
    assert leaders(table[["a", "c"]]) == ["c"]
    assert list(blocks_of(table).index) == [1]


def test_positions_on_maps(words: ta.Stimuli) -> None:
    """A low layer of noise and a high one that knows nothing but the position."""
    rng = np.random.default_rng(0)
    position = pd.get_dummies(words.features["word_position"]).to_numpy(np.float64)
    noise = 0.01 * rng.normal(size=(len(words), 4))
    layers = {0: noise, 1: noise, 2: noise, 3: 5 * position, 4: 5 * position}
    found = position_on_maps(ta.Activations.from_arrays(layers, system="x", stimuli=words), words)
    assert set(found) == {"MDS", "Kruskal"}
    assert all(0.3 < gain <= 1 for gain in found.values())
    no_position = words.choose(drop=["word_position"])
    assert position_on_maps(ta.Activations.from_arrays(layers, system="x"), no_position) == {}


class TestSets:
    def test_sets_are_drawn_anew_and_again_the_same(self) -> None:
        first, second = draw_sets(PAPER, SETTINGS)
        assert first.digest != second.digest
        assert [one.digest for one in draw_sets(PAPER, SETTINGS)] == [first.digest, second.digest]
        other = draw_sets(PAPER, SETTINGS.changed("salle2024", {"seed": 1}))
        assert {one.digest for one in other}.isdisjoint({first.digest, second.digest})
        assert draw_sets(UNTANGLED, SETTINGS)[0].digest != first.digest

    def test_first_words_are_left_out_and_nothing_else(self) -> None:
        whole, cut = draw_sets(PAPER, SETTINGS)[0], draw_sets(NOT_FIRST, SETTINGS)[0]
        first = whole.items.groupby("sentence", sort=False).head(1).index
        assert list(cut.items.index) == [item for item in whole.items.index if item not in first]

    def test_natural_sentences_are_dealt_without_repeating_any(self, tmp_path: Path) -> None:
        path = treebank(tmp_path, lengths=[2, 3, 4, 5, 3, 4, 5, 3, 9])
        settings = SETTINGS.changed("salle2024", {"treebank_sentences": 3, "treebank_longest": 5})
        sets = draw_sets(NATURAL, settings, str(path))
        sentences = [set(one.items["sentence"]) for one in sets]
        assert [len(one) for one in sentences] == [3, 3]
        assert not sentences[0] & sentences[1]
        lengths = pd.concat([one.items.groupby("sentence").size() for one in sets])
        assert lengths.between(3, 5).all()  # neither the two words nor the nine
        assert set(sets[0].features) <= {
            "number",
            "part_of_speech",
            "word_position",
            "question",
            "word_length",
        }

    def test_too_few_natural_sentences(self, tmp_path: Path) -> None:
        path = treebank(tmp_path, lengths=[3, 3, 3])
        with pytest.raises(InvalidInput, match=r"has 3 sentences of 3 to \d+ words, too few for 2 sets"):
            draw_sets(NATURAL, SETTINGS, str(path))

    def test_features_that_do_not_vary_are_dropped(self, words: ta.Stimuli) -> None:
        assert only_varied(words).digest == words.digest
        kind = words.features["part_of_speech"]
        one_kind = words.subset((kind == kind.mode()[0]).to_numpy())
        assert "part_of_speech" not in only_varied(one_kind).features
        assert "word_position" in only_varied(one_kind).features


def treebank(folder: Path, lengths: list[int]) -> Path:
    """Sentences of so many words; every other one ends with a question mark, which is no word."""
    blocks = []
    for number, length in enumerate(lengths):
        forms = [f"w{number}x{k}" for k in range(length)]
        end = "?" if number % 2 else "."
        rows = [
            f"{k + 1}\t{form}\t{form}\t{'NOUN' if k % 2 else 'VERB'}\t_\tNumber={'Sing' if k % 3 else 'Plur'}"
            f"\t{0 if k == 0 else 1}\t{'root' if k == 0 else 'dep'}\t_\t_"
            for k, form in enumerate(forms)
        ]
        rows.append(f"{length + 1}\t{end}\t{end}\tPUNCT\t_\t_\t1\tpunct\t_\t_")
        blocks.append("\n".join([f"# sent_id = {number}", f"# text = {' '.join(forms)} {end}", *rows]))
    path = folder / "natural.conllu"
    path.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    return path
