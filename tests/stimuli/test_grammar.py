"""Grammars of one's own: the rule format, sampling, and errors that name the file and the line."""

from __future__ import annotations

import shutil
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.errors import InvalidInput
from thinkalike.stimuli import Stimuli
from thinkalike.stimuli.grammar import draw, load_grammar, shipped_grammars
from thinkalike.stimuli.grammar.grammar_files import FOLDER
from thinkalike.stimuli.grammar.sampling import _shares

FRENCH = """
[features]
word_length = "characters"
part_of_speech = ["Det", "Noun", "Verb"]
gender = ["feminine", "masculine"]
number = ["singular", "plural"]
size = { ordinal = ["small", "large"] }

[syntax]
rules = '''
Phrase -> Det[gender=?g, number=?n] Noun[gender=?g, number=?n] Verb[number=?n]
'''

[lexicon.Det]
part_of_speech = "Det"
words = '''
gender      number     word
feminine    singular   la
masculine   singular   le
any         plural     les
'''

[lexicon.Noun]
part_of_speech = "Noun"
words = '''
# the gender is the noun's own, the number its form's
gender      size    number=singular   number=plural
feminine    large   reine             reines
masculine   small   garçon            garçons
'''

[lexicon.Verb]
part_of_speech = "Verb"
words = '''
number=singular   number=plural
chante            chantent
dort              dorment
'''
"""
FRENCH_SENTENCES = {
    f"{noun} {verb}"
    for nouns, verbs in [
        (("la reine", "le garçon"), ("chante", "dort")),
        (("les reines", "les garçons"), ("chantent", "dorment")),
    ]
    for noun, verb in product(nouns, verbs)
}


@pytest.fixture
def french(tmp_path: Path) -> Path:
    path = tmp_path / "french.toml"
    path.write_text(FRENCH, encoding="utf-8")
    return path


def test_another_language_in_one_file(french: Path) -> None:
    stimuli = Stimuli.from_grammar(8, grammar=french)
    assert set(stimuli.sentences) == FRENCH_SENTENCES
    assert stimuli.kinds["size"] == "ordinal"
    table = stimuli.to_frame().set_index("word")
    # "les" goes with both genders and is marked for none; "la" is marked.
    assert table.loc[["les"], "gender"].isna().all()
    assert set(table.loc[["la"], "gender"]) == {"feminine"}
    assert set(table.loc[["garçons"], "size"]) == {"small"}


def test_more_sentences_than_there_are(french: Path) -> None:
    with pytest.raises(
        InvalidInput, match="9 different sentences were asked for, but the grammar makes only 8: ask"
    ):
        Stimuli.from_grammar(9, grammar=french)
    with pytest.raises(InvalidInput, match="makes only 8"):
        Stimuli.from_grammar(9, grammar=french, balance=True)
    with pytest.raises(InvalidInput, match="Got n_sentences=0: give a whole number from 1 to 1,000,000"):
        Stimuli.from_grammar(0, grammar=french)


def test_words_of_ones_own(tmp_path: Path) -> None:
    """The shipped rules with another lexicon; the shipped file is not touched."""
    text = (FOLDER / "lexicon_english.toml").read_text("utf-8").replace("sneeze ", "yawn ")
    text = text.replace(" sneezes ", " yawns ").replace(" sneezed", " yawned")
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    stimuli = Stimuli.from_grammar(2000, grammar="salle2024", lexicon=tmp_path / "mine.toml")
    words = set(stimuli.items["word"])
    assert {"yawn", "yawns", "yawned"} <= words
    assert not {"sneeze", "sneezes", "sneezed"} & words


def test_a_copy_of_a_shipped_grammar_makes_the_same_sentences(tmp_path: Path) -> None:
    for name in ("salle2024.toml", "lexicon_english.toml"):
        shutil.copy(FOLDER / name, tmp_path / name)
    copied = Stimuli.from_grammar(30, 1, grammar=tmp_path / "salle2024.toml")
    assert copied == Stimuli.from_grammar(30, 1, grammar="salle2024")


def test_shipped_grammars() -> None:
    assert shipped_grammars() == ["clauses", "relative", "salle2024", "untangled"]
    with pytest.raises(
        InvalidInput,
        match=r"no grammar 'salle'\. .*Known: clauses, relative, salle2024, untangled, or the path of a",
    ):
        load_grammar("salle")


def small(rules: str, tmp_path: Path, *, lexicon: str = "", extra: str = "") -> Path:
    """A grammar with two nouns and two verbs and the given rules."""
    path = tmp_path / "g.toml"
    path.write_text(
        "[features]\nnumber = ['singular', 'plural']\nquestion = ['False', 'True']\n"
        f"{extra}[syntax]\nrules = '''\n{rules}\n'''\n"
        "[lexicon.N]\ndistinct = true\nwords = '''\nnumber=singular number=plural\ncat cats\ndog dogs\n'''\n"
        f"[lexicon.V]\nwords = '''\nword\nsees\nhears\n'''\n{lexicon}",
        encoding="utf-8",
    )
    return path


def sentences(path: Path) -> set[str]:
    frames = load_grammar(path).frames
    total = sum(frame.size for frame in frames)
    drawn = draw(frames, total, np.random.default_rng(0), at_least=1)
    return {" // ".join(one.text) for one in drawn}


NOUNS = {"cat": "singular", "cats": "plural", "dog": "singular", "dogs": "plural"}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("S -> N[number=singular] V", {f"{n} {v}" for n in ("cat", "dog") for v in ("sees", "hears")}),
        ("S -> N[number=?n] V N[number=?n]", {"same"}),
        ("S -> N[number=?n] V N[number=!?n]", {"different"}),
        ("S -> N[number=singular|plural]", set(NOUNS)),
        ("S -> N[number=-]", set()),
        (
            "S -> X\nX -> N[number=plural]\n  V",
            {f"{n} {v}" for n in ("cats", "dogs") for v in ("sees", "hears")},
        ),
        (
            "S -> N[number=singular]:a // N[number=plural]:a",
            {"cat // cats", "dog // dogs"},
        ),
        (
            "S -> X:a V // V X:a\nX -> N[number=plural]",
            {
                f"{n} {v} // {w} {n}"
                for n in ("cats", "dogs")
                for v in ("sees", "hears")
                for w in ("sees", "hears")
            },
        ),
    ],
)
def test_what_rules_mean(rules: str, expected: set[str], tmp_path: Path) -> None:
    if expected & {"same", "different"}:
        alike = expected == {"same"}
        # Nouns of a sentence are distinct lexemes: a cat does not see cats.
        expected = {
            f"{a} {v} {b}"
            for a, b in product(NOUNS, repeat=2)
            for v in ("sees", "hears")
            if (NOUNS[a] == NOUNS[b]) == alike and a[:3] != b[:3]
        }
    path = small(rules, tmp_path)
    if expected:
        assert sentences(path) == expected
    else:
        with pytest.raises(InvalidInput, match="together make no sentence of 'S'"):
            sentences(path)


def test_sentence_features_come_from_the_start(tmp_path: Path) -> None:
    path = small("S[question=?q, number=?n] -> N[number=?n] V", tmp_path)
    stimuli = Stimuli.from_grammar(8, grammar=path)
    features = stimuli.features
    assert set(features["number"][stimuli.items["word"] == "sees"]) == {"singular", "plural"}


def test_weights_share_out_the_sentences(tmp_path: Path) -> None:
    rules = "S[question=True] -> X @ 3\nS[question=False] -> N[number=plural] V\nX -> N V N\n"
    frames = load_grammar(small(rules, tmp_path)).frames
    by_question = Counter[str]()
    for frame in frames:
        by_question[frame.features["question"]] += frame.weight
    assert by_question["True"] == pytest.approx(0.75)
    drawn = draw(frames, 8, np.random.default_rng(0))
    assert Counter(one.features["question"] for one in drawn) == {"True": 6, "False": 2}
    # The four plain sentences run out, and the others make up for them.
    drawn = draw(frames, 19, np.random.default_rng(0))
    assert Counter(one.features["question"] for one in drawn) == {"True": 15, "False": 4}


def test_a_sentence_with_two_analyses_comes_once(tmp_path: Path) -> None:
    path = small("S[question=True] -> N\nS[question=False] -> N", tmp_path)
    assert Stimuli.from_grammar(4, grammar=path).sentences.is_unique
    with pytest.raises(InvalidInput, match="makes only 4"):
        Stimuli.from_grammar(5, grammar=path)


@settings(max_examples=50)
@given(
    weights=st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=30),
    n=st.integers(1, 500),
    seed=st.integers(0, 100),
)
def test_shares_are_within_one_of_the_expected(weights: list[float], n: int, seed: int) -> None:
    shares = _shares(np.array(weights), n, np.random.default_rng(seed))
    expected = n * np.array(weights) / np.sum(weights)
    assert shares.sum() == n
    assert (np.abs(shares - expected) < 1 + 1e-9).all()


def test_drawing_is_uniform_within_a_frame(tmp_path: Path) -> None:
    frames = load_grammar(small("S -> N[number=singular] V", tmp_path)).frames
    counts = Counter(draw(frames, 1, np.random.default_rng(seed))[0].text[0] for seed in range(2000))
    assert set(counts) == {f"{n} {v}" for n in ("cat", "dog") for v in ("sees", "hears")}
    assert max(abs(count - 500) for count in counts.values()) < 5 * np.sqrt(2000 * 0.25 * 0.75)


@pytest.mark.parametrize(
    ("rules", "offset", "message"),
    [
        ("S - N", 0, "not a rule: 'S - N'"),
        ("S ->", 0, "not a rule"),
        ("# nothing", 0, "there are no rules"),
        ("S -> N @ much", 0, "the weight after @ must be a number above 0 and below a billion, not 'much'"),
        ("S -> N @ 0", 0, "a number above 0 and below a billion, not '0'"),
        (f"S -> N @ {'9' * 400}", 0, "a number above 0 and below a billion, not '999"),
        ("S T -> N", 0, "one category was expected left of the arrow, not 'S T'"),
        ("S -> N // ", 0, "a side of '//' is empty"),
        ("S -> N[number=singular", 0, r"cannot read '\[number=singular'"),
        ("S -> N[number]", 0, r"cannot read \[number\]"),
        ("S -> N[numbr=plural]", 0, "There is no feature 'numbr'. Did you mean 'number'?"),
        (
            "S -> N\n\nX -> N[number=plurl]",
            2,
            "no value of the feature 'number' called 'plurl'. Did you mean 'plural'?",
        ),
        ("S -> N[number=!?n]", 0, r"!\?n differs from \?n, which stands nowhere in the rule"),
        ("S -> M", 0, "There is no category 'M'. .*Known: S, N"),
        ("S -> X[number=plural]\nX -> N", 0, "no rule for X says anything about 'number'"),
        ("S -> X\nX -> N // N", 1, "2 sides where 1 were expected"),
        ("S -> N // N\nS -> N", 1, "1 sides where 2 were expected"),
        ("S -> N:a // V:a", 0, "the label :a stands on N and V"),
        ("S -> X V\nX -> N S", 1, "S contains itself, so there is no end of sentences"),
    ],
)
def test_errors_in_rules_name_file_and_line(tmp_path: Path, rules: str, offset: int, message: str) -> None:
    path = small(rules, tmp_path)
    with pytest.raises(InvalidInput, match=message) as caught:
        load_grammar(path)
    # The rules start on the sixth line, after the three quotes.
    assert str(caught.value).startswith(f"{path}, line {6 + offset}: ") or "no rules" in message
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lexicon", "offset", "message"),
    [
        (
            "[lexicon.A]\nwords = '''\nnumber word\nplurl odd\n'''",
            3,
            "feature 'number' called 'plurl'. Did you mean",
        ),
        ("[lexicon.A]\nwords = '''\nnumbr word\nplural odd\n'''", 2, "There is no feature 'numbr'"),
        ("[lexicon.A]\nwords = '''\nnumber=plurl\nodd\n'''", 2, "feature 'number' called 'plurl'"),
        (
            "[lexicon.A]\nwords = '''\nnumber word\nplural very odd\n'''",
            3,
            "3 cells under 2 headings: plural very odd",
        ),
        ("[lexicon.A]\nwords = '''\nnumber\nplural\n'''", 2, "no column has the words"),
        ("[lexicon.A]\nwords = '''\nword\n'''", 2, r"\[lexicon.A\] has no words"),
        ("[lexicon.A]\nwords = 3", 1, r"\[lexicon.A\] has no table of words"),
        (
            "[lexicon.A]\nwords = '''\nword\nodd\n'''\n[lexicon.Unused]\nwords = 3",
            6,
            r"\[lexicon.Unused\] has no table",
        ),
        ("[lexicon.A]\nnumber = 'dual'\nwords = '''\nword\nodd\n'''", 1, "feature 'number' called 'dual'"),
    ],
)
def test_errors_in_the_lexicon_name_file_and_line(
    tmp_path: Path, lexicon: str, offset: int, message: str
) -> None:
    path = small("S -> A N", tmp_path, lexicon=lexicon)
    first = path.read_text("utf-8").splitlines().index("[lexicon.A]") + 1
    with pytest.raises(InvalidInput, match=message) as caught:
        load_grammar(path)
    assert str(caught.value).startswith(f"{path}, line {first + offset}: ")


def test_the_error_of_a_lexicon_file_names_that_file(tmp_path: Path) -> None:
    text = (FOLDER / "lexicon_english.toml").read_text("utf-8")
    line = text[: text.index("female   no        no       queen")].count("\n") + 1
    path = tmp_path / "mine.toml"
    path.write_text(
        text.replace("female   no        no       queen", "femal    no        no       queen"),
        encoding="utf-8",
    )
    with pytest.raises(InvalidInput, match=r"called 'femal'\. Did you mean 'female'") as caught:
        Stimuli.from_grammar(5, grammar="salle2024", lexicon=path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("rules = [", 1, "not valid TOML"),
        ("a = 1\nb = ]\n", 2, "not valid TOML"),
        ("lexicon = {}\n", 1, r"there is no section \[syntax\]"),
        ("[syntax]\nrules = ''\n", 1, "there is no lexicon"),
        ("[features]\nx = 'letters'\n[lexicon]\n", 2, "no way to compute a feature 'letters'"),
        ("[features]\nx = []\n[lexicon]\n", 2, "the values of 'x' were expected"),
        ("features = 3\n[lexicon]\n", 1, r"\[features\] must be a table"),
        ("lexicon = {}\nfeature = 3\n", 2, "no part of a grammar called 'feature'. Did you mean 'features'"),
        ("[lexicon]\n[syntax]\nrule = ''\n", 3, "no part of a grammar called 'rule'. Did you mean 'rules'"),
        ("[lexicon]\n[syntax]\nitems = 'letters'\nrules = '''\nS -> N\n'''", 3, "no sort of items 'letters'"),
        ("[lexicon]\n[syntax]\nstart = 'T'\nrules = '''\nS -> S2\n'''", 3, "no category with rules 'T'"),
    ],
)
def test_errors_in_the_file_as_a_whole(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "g.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=message) as caught:
        load_grammar(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")


@pytest.mark.parametrize(
    "text", ["x = " + "[" * 50_000, "x = " + "{a=" * 3_000 + "1" + "}" * 3_000], ids=["brackets", "tables"]
)
def test_brackets_too_deep_to_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "g.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match="brackets within brackets, too deep to read"):
        load_grammar(path)


def test_numbers_too_long_to_read(tmp_path: Path) -> None:
    path = tmp_path / "g.toml"
    path.write_text(f"x = {'9' * 10_000}", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"line 1: not valid TOML \(Exceeds the limit[^;]*\)\.$"):
        load_grammar(path)


def test_rules_too_deep_or_too_many(tmp_path: Path) -> None:
    chain = "".join(f"C{k} -> C{k + 1}\n" for k in range(5_000))
    with pytest.raises(InvalidInput, match="the rules go more than 100 categories deep"):
        load_grammar(small(f"S -> C0\n{chain}C5000 -> N", tmp_path))
    doubling = "".join(f"C{k} -> C{k + 1} C{k + 1}\n" for k in range(60))
    grammar = load_grammar(small(f"S -> C0\n{doubling}C60 -> N[number=?n] V[number=?n]", tmp_path))
    with pytest.raises(InvalidInput, match=r"line \d+: the rule makes more than 200,000 kinds of phrase"):
        _ = grammar.frames


@pytest.mark.parametrize("given", ["full_stop = 3\n", "[full_stop]\n'?' = [1]\n", "[full_stop]\n'?' = 'x'\n"])
def test_marks_that_say_nothing(tmp_path: Path, given: str) -> None:
    path = small("S -> N", tmp_path)
    text = path.read_text("utf-8")
    path.write_text(given + text if given.startswith("full") else text + given, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"line \d+: \[full_stop\] says when a mark is used"):
        load_grammar(path)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_grammar(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xe9")
    with pytest.raises(InvalidInput, match="not UTF-8 text"):
        load_grammar(tmp_path / "latin.toml")


def test_pairs_are_no_stimuli() -> None:
    with pytest.raises(InvalidInput, match="makes pairs of sentences: stimuli need rules with one side"):
        Stimuli.from_grammar(5, grammar=FOLDER / "pairs" / "minimal.toml")


def test_a_mark_that_needs_an_unknown_feature(tmp_path: Path) -> None:
    path = small("S -> N", tmp_path, extra="[full_stop]\n'?' = { asks = 'yes' }\n")
    with pytest.raises(InvalidInput, match="There is no feature 'asks'"):
        load_grammar(path)
