"""Names of models, taken apart."""

from __future__ import annotations

import pytest

from thinkalike.errors import InvalidInput, ModelError, UnknownName
from thinkalike.systems import bundled
from thinkalike.systems.names import parse_name


@pytest.mark.parametrize(
    ("name", "model", "revision", "part", "untrained"),
    [
        ("gpt2", "gpt2", None, None, False),
        ("EleutherAI/pythia-70m@step1000", "EleutherAI/pythia-70m", "step1000", None, False),
        ("t5-small:decoder", "t5-small", None, "decoder", False),
        ("gpt2:untrained", "gpt2", None, None, True),
        ("t5-small@main:encoder:untrained", "t5-small", "main", "encoder", True),
    ],
)
def test_names_are_taken_apart_and_put_together(name, model, revision, part, untrained):
    found = parse_name(name)
    assert (found.model, found.revision, found.part, found.untrained) == (model, revision, part, untrained)
    assert str(found) == name
    assert parse_name(model, revision=revision, part=part, untrained=untrained) == found


def test_names_that_contradict_themselves():
    with pytest.raises(InvalidInput, match="The name says revision 'a', but revision='b' was given"):
        parse_name("gpt2@a", revision="b")
    with pytest.raises(InvalidInput, match="says part 'encoder', but part='decoder'"):
        parse_name("t5-small:encoder", part="decoder")


@pytest.mark.parametrize(
    "name", ["a:untrained:untrained", "t5:encoder:decoder", "t5:decoder:untrained:decoder"]
)
def test_names_that_say_it_twice(name):
    with pytest.raises(InvalidInput, match="says twice what it is"):
        parse_name(name)


def test_names_with_two_revisions():
    with pytest.raises(InvalidInput, match="'gpt2@a@b' has two revisions: give one"):
        parse_name("gpt2@a@b")


def test_folders_may_be_called_anything(tmp_path):
    odd = tmp_path / "mine@home:untrained"
    odd.mkdir()
    found = parse_name(str(odd))
    assert (found.folder, found.revision, found.untrained) == (odd, None, False)


def test_revisions_of_a_folder_are_its_checkpoints(gpt2_folder):
    found = parse_name(f"{gpt2_folder}@checkpoint-7")
    assert found.folder == gpt2_folder / "checkpoint-7"
    with pytest.raises(ModelError, match="no subfolder 'checkpoint-8'"):
        parse_name(gpt2_folder, revision="checkpoint-8")


def test_bundled_models_are_found_by_name(gpt2_folder, monkeypatch):
    checkpoints = {("nano-x", None): gpt2_folder, ("nano-x", "step7"): gpt2_folder / "checkpoint-7"}
    monkeypatch.setattr(bundled, "resolve", lambda *name: checkpoints.get(name))
    assert parse_name("nano-x").folder == gpt2_folder
    assert parse_name("nano-x@step7:untrained").folder == gpt2_folder / "checkpoint-7"
    assert str(parse_name("nano-x@step7")) == "nano-x@step7"
    monkeypatch.setattr(bundled, "names", lambda: ("nano-x",))
    with pytest.raises(UnknownName, match=r"no bundled model 'nano-y'. Did you mean 'nano-x'"):
        parse_name("nano-y")


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "~/nowhere", "some/deep/path"])
def test_paths_that_do_not_exist(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"There is no folder .* that holds config.json and the weights"):
        parse_name(name)
