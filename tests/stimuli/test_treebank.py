"""CoNLL-U: a hand-made sample, word by word, and errors that name the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from thinkalike.errors import InvalidInput
from thinkalike.stimuli import Stimuli

SAMPLE = Path(__file__).parent / "data" / "sample.conllu"
# word, UPOS, Number, depth, distance to head, position
EXPECTED = """
en-1 The    DET      NaN  2 2   0
en-1 old    ADJ      NaN  2 1   1
en-1 king   NOUN     Sing 1 3   2
en-1 didn't AUX+PART Sing 1 2   3
en-1 sleep  VERB     NaN  0 NaN 4
en-2 She    PRON     Sing 1 1   0
en-2 saw    VERB     Sing 0 NaN 1
en-2 Mary   PROPN    Sing 1 1   2
en-2 who    PRON     NaN  3 1   4
en-2 sang   VERB     NaN  2 3   5
en-2 well   ADV      NaN  3 1   6
s2   Il     PRON     Sing 1 1   0
s2   parle  VERB     Sing 0 NaN 1
s2   du     ADP+DET  Sing 2 2   2
s2   roi    NOUN     Sing 1 3   3
"""


def test_the_sample_word_by_word() -> None:
    stimuli = Stimuli.from_conllu(SAMPLE)
    features = stimuli.features
    rows = [line.split() for line in EXPECTED.strip().split("\n")]
    assert stimuli.items["sentence"].to_list() == [row[0] for row in rows]
    assert stimuli.items["word"].to_list() == [row[1] for row in rows]
    for place, name in enumerate(
        ["part_of_speech", "Number", "depth", "distance_to_head", "word_position"], start=2
    ):
        numeric = stimuli.kinds[name] == "numeric"
        found = ["NaN" if value != value else f"{value:g}" if numeric else value for value in features[name]]
        assert found == [row[place] for row in rows], name
    assert features["word_length"].to_list() == [len(row[1]) for row in rows]
    assert stimuli.sentences.to_list() == [
        "The old king didn't sleep.",
        "She saw Mary, who sang well.",
        "Il parle du roi.",
    ]


def test_morphology_comes_under_its_own_names() -> None:
    stimuli = Stimuli.from_conllu(SAMPLE)
    assert list(stimuli.features) == [
        "part_of_speech",
        *["Case", "Definite", "Degree", "Gender", "Mood", "Number", "Person"],
        *["Polarity", "PronType", "Tense", "VerbForm"],
        *["depth", "distance_to_head", "word_position", "word_length"],
    ]
    word = stimuli.items["word"] == "didn't"
    marks = stimuli.features[word].iloc[0]
    assert (marks["Tense"], marks["Polarity"], marks["Person"]) == ("Past", "Neg", "3")


def test_punctuation_and_relations_on_demand() -> None:
    stimuli = Stimuli.from_conllu(SAMPLE, punctuation=True, relation=True)
    assert stimuli.items["word"].to_list().count(".") == 3
    relation = dict(zip(stimuli.items["word"], stimuli.features["relation"], strict=True))
    assert (relation["sang"], relation["king"], relation["sleep"]) == ("acl", "nsubj", "root")


def test_it_survives_a_file(tmp_path: Path) -> None:
    stimuli = Stimuli.from_conllu(SAMPLE)
    assert Stimuli.from_table(stimuli.save(tmp_path / "t.parquet")) == stimuli


def row(number: object, word: str, head: object = "_", *, upos: str = "X", feats: str = "_") -> str:
    return "\t".join([str(number), word, "_", upos, "_", feats, str(head), "_", "_", "_"])


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ([], 1, "there is no sentence"),
        (["# sent_id = a", ""], 1, "there is no sentence"),
        ([row(1, "a"), "2\tb\t_"], 2, "3 columns; 10, with tabs between, were expected"),
        ([row(1, "a"), "", row(1, "a") + "\t_"], 3, "11 columns; 10"),
        (["# text = a c", row(1, "a"), row(2, "b")], 1, "'b' does not stand in the sentence 'a c'"),
        ([row(1, "a", 2), row("x", "b")], 2, "not CoNLL-U"),
        ([row(1, "a", "two")], 1, "not CoNLL-U"),
        ([row(1, "a", 2), row(2, "b", 1)], 1, "the heads go round in a circle from word 1"),
        ([row(1, "a", 7)], 1, "the head 7 of a word is no word of the sentence"),
        ([row("1-2", "ab")], 1, "a multi-word token has no words below it"),
        (
            ["# sent_id = s", row(1, "a"), "", "# sent_id = s", row(1, "b")],
            4,
            "sentence id 's' stands there a second time",
        ),
    ],
)
def test_an_error_names_the_file_and_the_line(
    tmp_path: Path, lines: list[str], line: int, message: str
) -> None:
    path = tmp_path / "bad.conllu"
    path.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    with pytest.raises(InvalidInput, match=message) as caught:
        Stimuli.from_conllu(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert "\n" not in str(caught.value)


def test_what_a_file_does_not_say_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "bare.conllu"
    path.write_text(f"{row(1, 'a', upos='_')}\n{row(2, 'b', feats='Number=')}", encoding="utf-8")
    features = Stimuli.from_conllu(path).features
    assert features.drop(columns=["word_position", "word_length", "part_of_speech"]).isna().all(axis=None)
    assert features["part_of_speech"].isna().to_list() == [True, False]


def test_parts_that_disagree_leave_a_token_without_a_value(tmp_path: Path) -> None:
    path = tmp_path / "parts.conllu"
    parts = [
        row(1, "give", 0, feats="Number=Sing"),
        row(2, "me", 1, feats="Number=Sing"),
        row(3, "them", 1, feats="Number=Plur"),
    ]
    path.write_text("\n".join([row("1-3", "givemethem"), *parts]), encoding="utf-8")
    stimuli = Stimuli.from_conllu(path)
    assert stimuli.items["word"].to_list() == ["givemethem"]
    assert stimuli.features["Number"].isna().all()


@pytest.mark.parametrize("ids", [(0, 1), (2, 1), (1, 5), (1, 1)])
def test_words_that_are_not_numbered_in_order(tmp_path: Path, ids: tuple[int, int]) -> None:
    path = tmp_path / "order.conllu"
    path.write_text("\n".join(row(one, word) for one, word in zip(ids, "ab", strict=True)), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"line 1: its words have the ids .*: 1, 2, 3, … in order"):
        Stimuli.from_conllu(path)


@pytest.mark.parametrize("features", ["Number", "||", "Number=Sing|", "=Sing"])
def test_features_that_are_none(tmp_path: Path, features: str) -> None:
    path = tmp_path / "features.conllu"
    path.write_text(f"{row(1, 'a')}\n{row(2, 'b', feats=features)}", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"line 2: the features are .*; _ or Name=Value\|Name=Value was"):
        Stimuli.from_conllu(path)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        Stimuli.from_conllu(tmp_path / "none.conllu")
    path = tmp_path / "dots.conllu"
    path.write_text(row(1, ".", 0, upos="PUNCT"), encoding="utf-8")
    with pytest.raises(InvalidInput, match="nothing but punctuation; punctuation=True keeps it"):
        Stimuli.from_conllu(path)
