"""brown2023-scaling part by part: what is read from text and kept, and the statements on planted streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from thinkalike.errors import InvalidInput
from thinkalike.recipes.brown2023_scaling import SCALES, experiment, measures
from thinkalike.recipes.brown2023_scaling.rules import RULES
from thinkalike.recipes.brown2023_scaling.scales import ScalingSettings
from thinkalike.recipes.brown2023_scaling.streams import Streams, _beginning
from thinkalike.recipes.steps import Steps, content_digest

PARTS = 6


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(f"The king of place {k} went home. The queen did not." for k in range(30)))
    return path


@pytest.fixture
def streams(
    tmp_path: Path, text: Path, save_tiny: Callable[..., Path], tiny_neox: Callable[..., Any]
) -> Streams:
    """A family of three tiny models, of which `c` is deeper."""
    for seed, (name, layers) in enumerate((("a", 2), ("b", 2), ("c", 3))):
        save_tiny(name, tiny_neox(16, layers, 2), seed=seed)
    settings = replace(
        SCALES["smoke"],
        family=("a", "b", "c"),
        models_folder=str(tmp_path / "models"),
        text=str(text),
        parts=2,
        length=16,
        max_batches=8,
        flattened_length=8,
        flattened_passages=9,
        loss_tokens=60,
    )
    return Streams(settings, Steps(tmp_path / "run"))


def kept(streams: Streams) -> set[str]:
    return {path.name for path in (streams.steps.out / "steps").iterdir()}


class TestStreams:
    def test_two_at_a_time_give_what_all_at_once_give(self, streams: Streams) -> None:
        names = ["a", "b", "c"]
        at_once = streams.family(names, 0)
        in_pairs = Streams(replace(streams.settings, at_once=False), streams.steps).family(names, 0)
        assert set(at_once) == set(in_pairs) == set(product(names, names))
        for pair, values in at_once.items():
            np.testing.assert_allclose(in_pairs[pair], values, atol=1e-6)
        assert at_once["a", "c"].shape == (2, 3)  # without the embeddings
        np.testing.assert_allclose(at_once["c", "a"], at_once["a", "c"].T)
        np.testing.assert_allclose(np.diag(at_once["c", "c"]), 1.0, atol=1e-6)

    def test_every_part_is_read_by_itself_and_kept(self, streams: Streams) -> None:
        first, second = streams.within("a")
        assert not np.allclose(first, second)
        before = kept(streams)
        np.testing.assert_array_equal(streams.within("a")[1], second)
        assert kept(streams) == before

    def test_untrained_copies_are_drawn_anew_for_every_part(self, streams: Streams) -> None:
        same = replace(streams.settings, max_batches=2)
        one = Streams(same, streams.steps)
        one.parts[1] = one.parts[0]  # the same text twice: all that differs are the weights
        drawn = [own["a", "a"] for own in one.families(["a"], untrained=True)]
        assert not np.allclose(*drawn)
        trained = [own["a", "a"] for own in one.families(["a"])]
        np.testing.assert_array_equal(*trained)

    def test_other_text_of_the_same_name_and_size_is_read_anew(self, streams: Streams, text: Path) -> None:
        cka, loss, flat = streams.within("a")[0], streams.loss("a"), streams.flattened(["a"])[0]["a", "a"]
        before, size = kept(streams), text.stat().st_size
        text.write_text(text.read_text().replace("queen", "horse"))
        assert text.stat().st_size == size
        other = Streams(streams.settings, streams.steps)
        assert not np.array_equal(other.within("a")[0], cka)
        assert other.loss("a")["loss"] != loss["loss"]
        assert not np.array_equal(other.flattened(["a"])[0]["a", "a"], flat)
        assert before < kept(streams)

    def test_flattened_values_are_of_every_part_and_pair(self, streams: Streams) -> None:
        found = streams.flattened(["a", "c"])
        assert len(found) == 2
        assert {pair: one.shape for pair, one in found[0].items()} == {
            ("a", "a"): (2, 2), ("a", "c"): (2, 3), ("c", "a"): (3, 2), ("c", "c"): (3, 3),
        }  # fmt: skip
        np.testing.assert_allclose(found[1]["a", "c"], found[1]["c", "a"].T)
        assert not np.allclose(found[0]["a", "c"], found[1]["a", "c"])

    def test_the_beginning_of_a_file_or_of_the_first_of_a_folder(self, tmp_path: Path) -> None:
        folder = tmp_path / "texts"
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "b.txt").write_text("second")
        assert _beginning(folder, 99) == "second"  # as the text itself is read, folders within and all
        (folder / "a.txt").write_text("the first")
        assert _beginning(folder, 3) == "the"
        assert _beginning(folder / "deep" / "b.txt", 4) == "seco"

    def test_a_folder_of_texts_is_known_by_what_is_in_it(self, tmp_path: Path) -> None:
        one, other = tmp_path / "one", tmp_path / "other"
        for place in (one, other):
            place.mkdir()
            (place / "a.txt").write_text("words")
        assert content_digest(one) == content_digest(other)
        (other / "notes.md").write_text("is not read")
        assert content_digest(one) == content_digest(other)
        (other / "b.txt").write_text("more")
        assert content_digest(one) != content_digest(other)
        (one / "c.txt").write_text("more")
        assert content_digest(one) != content_digest(other)  # texts are read in the order of their names
        assert content_digest(one / "a.txt") == content_digest(other / "a.txt")


def fading(depth: int, step: float) -> np.ndarray:
    apart = np.abs(np.subtract.outer(np.arange(depth), np.arange(depth)))
    return 1 - step * apart


@dataclass
class Planted:
    """Values in the place of models: model → CKA within it, the same in all parts of the text."""

    settings: ScalingSettings
    own: Mapping[str, np.ndarray]
    losses: Mapping[str, float] = field(default_factory=dict)
    untrained: float = 0.0
    first_token: float = 0.0
    parts: Sequence[int] = range(PARTS)
    text: Path = Path("folder/prose.txt")

    def within(self, name: str) -> list[np.ndarray]:
        return [self.own[name]] * len(self.parts)

    def families(self, names: Sequence[str], **options: Any) -> list[dict[tuple[str, str], np.ndarray]]:
        change = self.untrained if options.get("untrained") else 0.0
        change += self.first_token * options.get("drop_first", 0)
        one = {(a, b): self.own[a] - change for a, b in product(names, names)}
        return [one] * len(self.parts)

    def loss(self, name: str) -> dict[str, float]:
        return {"loss": self.losses[name], "parameters": 100.0}

    def shape(self, name: str) -> dict[str, float]:
        return {"d_head": 80.0, "rotary_dim": 20.0}


def planted(**changes: Any) -> Any:
    settings = replace(SCALES["nano"], state_space="ssm", beside="former", family=("a", "b"))
    own = {"ssm": fading(4, 0.2), "former": fading(4, 0.1), "a": fading(4, 0.1), "b": fading(4, 0.1)}
    return cast("Any", Planted(**{"settings": settings, "own": own, **changes}))


class TestStatements:
    NAMES = ("nano-pythia-64@step250", "nano-pythia-64@step1000", "nano-pythia-64")

    def trained(self, steps: Sequence[float], losses: Sequence[float] = (4.0, 3.0, 2.0)) -> Any:
        own = {name: fading(3, step) for name, step in zip(self.NAMES, steps, strict=True)}
        settings = replace(SCALES["nano"], checkpoints=self.NAMES)
        return planted(settings=settings, own=own, losses=dict(zip(self.NAMES, losses, strict=True)))

    @pytest.mark.parametrize(
        ("steps", "losses", "verdict"),
        [
            ((0.3, 0.2, 0.1), (4.0, 3.0, 2.0), "agrees"),
            ((0.1, 0.2, 0.3), (4.0, 3.0, 2.0), "differs"),
            ((0.1, 0.2, 0.3), (2.0, 3.0, 4.0), "agrees"),  # it is the order of losses that counts
            ((0.3, 0.2, 0.2), (4.0, 3.0, 2.0), "differs"),  # every step must show it
        ],
    )
    def test_checkpoints_in_the_order_of_falling_loss(
        self, steps: tuple[float, ...], losses: tuple[float, ...], verdict: str
    ) -> None:
        found, earlier = experiment._checkpoints(self.trained(steps, losses))
        assert found.verdict == verdict
        assert found.rule is RULES["grows as loss falls"]
        assert {effect.over for effect in found.effects} == {f"{PARTS} parts of the text"}
        assert list(earlier) == list(self.NAMES[:2])
        # Of three blocks four pairs are one step apart and two are two.
        assert earlier[self.NAMES[0]]["within"] == pytest.approx(1 - steps[0] * 8 / 6)

    def test_without_checkpoints_it_says_so(self) -> None:
        for names, words in (
            ((), "no earlier checkpoints"),
            (("nano-x@step1", "nano-x"), "no nano-x@step1 and nano-x"),
        ):
            found, earlier = experiment._checkpoints(
                planted(settings=replace(SCALES["nano"], checkpoints=names))
            )
            assert found.verdict == "cannot be tested"
            assert words in found.found
            assert earlier == {}

    @pytest.mark.parametrize(("ssm", "verdict"), [(0.2, "agrees"), (0.1, "differs"), (0.05, "differs")])
    def test_a_state_space_model_beside_a_transformer(self, ssm: float, verdict: str) -> None:
        streams = planted()
        streams.own = {**streams.own, "ssm": fading(4, ssm)}
        found = experiment._beyond(streams, streams.families(["a", "b"]), ["a", "b"])
        assert (found[0].verdict, found[0].effects[0].about) == (verdict, "former less ssm")
        # Of four blocks 6, 4 and 2 ordered pairs are one, two and three steps apart.
        assert found[0].effects[0].value == pytest.approx((ssm - 0.1) * (6 + 2 * 4 + 3 * 2) / 12)

    @pytest.mark.parametrize(
        ("untrained", "first_token", "verdicts"),
        [(0.2, 0.05, ["agrees", "agrees"]), (0.0, 0.3, ["differs", "differs"])],
    )
    def test_controls(self, untrained: float, first_token: float, verdicts: list[str]) -> None:
        streams = planted(untrained=untrained, first_token=first_token)
        _, *found = experiment._beyond(streams, streams.families(["a", "b"]), ["a", "b"])
        assert [one.rule for one in found] == [RULES["trained"], RULES["first tokens"]]
        assert [one.effects[0].value for one in found] == pytest.approx([untrained, first_token])
        assert [one.verdict for one in found] == verdicts

    def test_without_controls_there_are_none(self) -> None:
        streams = planted()
        streams.settings = replace(streams.settings, controls=False)
        assert len(experiment._beyond(streams, streams.families(["a", "b"]), ["a", "b"])) == 1

    def test_one_part_of_the_text_has_no_range_and_decides_nothing(self) -> None:
        streams = planted(parts=range(1))
        (found, *_) = experiment._beyond(streams, streams.families(["a", "b"]), ["a", "b"])
        assert (found.verdict, found.effects[0].over) == ("undecided", "1 parts of the text")
        assert "(no range)" in found.found

    def test_members_of_table_one_need_not_be_opened(self) -> None:
        streams = planted()
        streams.settings = replace(streams.settings, with_heads=("large",))
        found = experiment._heads(streams, {"a": {"d_head": 64.0, "rotary_dim": 16.0}})
        assert list(found) == ["a", "large"]
        rows = experiment.table_one(found).frame.to_dict("records")
        assert rows[1] == {"model": "large", "d_head": 80.0, "rotary_dim": 20.0}

    def test_what_was_read_is_said_without_the_folder(self) -> None:
        streams = planted()
        assert "the bundled sample" in experiment._reading(streams.settings, streams)
        own = replace(streams.settings, text="folder/prose.txt")
        said = experiment._reading(own, streams)
        assert "tokens of prose.txt, in 10 parts" in said


class TestMeasures:
    def test_early_and_later_layers_by_loops(self) -> None:
        rng = np.random.default_rng(0)
        depth = {"a": 3, "b": 5, "c": 9}
        values = {(x, y): rng.random((depth[x], depth[y])) for x, y in product(depth, depth)}
        early, later = measures.early_and_later(values, list(depth))
        expected = [values[x, y][0, 0] for x, y in combinations(depth, 2)]
        assert early == pytest.approx(np.mean(expected))
        cells = []
        for x, y in combinations(depth, 2):
            steps = max(depth[x], depth[y]) - 1
            for k in range(1, steps + 1):
                place = tuple(int(np.round(k / steps * (depth[name] - 1))) for name in (x, y))
                cells.append(values[x, y][place])
        assert later == pytest.approx(np.mean(cells))

    def test_heads_at_the_end_of_the_family_have_one_neighbour(self) -> None:
        heads = {"a": 64.0, "b": 64.0, "c": 32.0}
        quarter = {name: value // 4 for name, value in heads.items()}
        assert measures.head_sizes(heads, quarter, "c") == {"c": 32.0}
        assert measures.head_sizes(heads, quarter, "a") == {"a": 0.0}
        assert measures.head_sizes(heads, {**quarter, "a": 64.0}, "c") == {"c": 0.0}  # not a quarter in all
        assert measures.head_sizes(heads, quarter, "z") == {}
        assert measures.head_sizes({"a": 64.0}, {"a": 16.0}, "a") == {}

    def test_the_largest_change_in_size_whichever_way_it_goes(self) -> None:
        one = {pair: np.full((2, 2), 0.5) for pair in product("ab", "ab")}
        other = {pair: values.copy() for pair, values in one.items()}
        other["b", "a"][1, 0] = 0.1
        other["a", "a"][0, 0] = 0.7
        assert measures.first_tokens(one, other, ["a", "b"]) == {"": pytest.approx(0.4)}

    def test_blocks_between_two_members_are_compared_by_like_with_like(self) -> None:
        label = {"a": np.arange(6) >= 2, "b": np.arange(8) >= 3}
        values = {(x, y): np.where(label[x][:, None] == label[y], 0.9, 0.2) for x, y in product(label, label)}
        blocks = measures.in_blocks(values, list(label))
        assert {name: one.lengths[0] for name, one in blocks.items()} == {"a": 2, "b": 3}
        assert measures.blocks_between(values, blocks) == {"a and b": pytest.approx(0.7)}
        assert measures.first_blocks(blocks, "a") == {"a": 1.0}
        assert measures.first_blocks(blocks, "z") == {}
        assert measures.first_blocks({"a": blocks["a"]}, "a") == {}
        assert measures.in_blocks({("c", "c"): fading(8, 0.1)}, ["c"]) == {}  # it merely fades


def test_a_family_of_one_is_refused_and_not_said_to_be_lacking(tmp_path: Path) -> None:
    for scale in ("smoke", "nano"):
        alone = replace(SCALES[scale], family=("nano-pythia-64",))
        with pytest.raises(InvalidInput, match="the members of a family: name two or more"):
            experiment.available(alone, tmp_path)
