"""`brown2023-scaling` from models to findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput, ModelError
from thinkalike.inference.blocks import Blocks
from thinkalike.labels import Floats
from thinkalike.recipes.brown2023_scaling import figures, measures
from thinkalike.recipes.brown2023_scaling.measures import Values
from thinkalike.recipes.brown2023_scaling.random_family import ODD, SHAPES, random_family
from thinkalike.recipes.brown2023_scaling.rules import RULES
from thinkalike.recipes.brown2023_scaling.scales import ScalingSettings
from thinkalike.recipes.brown2023_scaling.streams import Streams
from thinkalike.recipes.effect_chart import effect_figure
from thinkalike.recipes.effects import Effect, effects_over
from thinkalike.recipes.findings import Findings, Statement, Table, decided
from thinkalike.recipes.places import lacking
from thinkalike.recipes.steps import Steps
from thinkalike.wording import listed


def run(settings: ScalingSettings, out: Path) -> Findings:
    """CKA within and between the members, each statement tested, and a state-space model beside them."""
    settings, notes = available(settings, out)
    streams = Streams(settings, Steps(out))
    names, odd = list(settings.family), settings.odd
    parts = streams.families(names)
    flat = streams.flattened(names)
    facts = {name: {**streams.shape(name), **streams.loss(name)} for name in names}
    mean = average(parts)
    blocks = measures.in_blocks(mean, names)
    scores = measures.oddness(mean, names)
    checkpoints, earlier = _checkpoints(streams)
    statements = (
        *paper_statements(parts, names, odd, facts, blocks),
        checkpoints,
        *_beyond(streams, parts, names),
        _said("flattened", [measures.same_order(a, b, names) for a, b in zip(parts, flat, strict=True)]),
    )
    within = {name: measures.mean_within(mean[name, name]) for name in names}
    beside = {name: average_one(streams.within(name)) for name in (settings.state_space, settings.beside)}
    drawn = [
        figures.with_largest(mean, names),
        figures.family(mean, names),
        figures.within(mean, names),
        figures.size_and_loss(_points(facts, within, earlier)),
        *([figures.odd(scores, odd)] if len(names) > 2 else []),
        figures.state_space(beside),
        figures.flattened(average(flat), names),
        effect_figure(statements),
    ]
    return Findings(
        recipe="brown2023-scaling",
        scale=settings.scale,
        statements=statements,
        figures=tuple(drawn),
        tables=(table_one(_heads(streams, facts)), summary(facts, within, scores, blocks)),
        settings=settings.plain(),
        notes=(*notes, _reading(settings, streams)),
    )


def paper_statements(
    parts: Sequence[Values],
    names: Sequence[str],
    odd: str,
    facts: Mapping[str, Mapping[str, float]],
    blocks: Mapping[str, Blocks],
) -> list[Statement]:
    """What the paper says of the family, each on every part of the text."""
    largest, m = names[-1], measures
    few = "Too few layers or members to see."
    none = "It takes members whose layers fall into blocks."
    sizes = _column(facts, "parameters")
    heads = m.head_sizes(_column(facts, "d_head"), _column(facts, "rotary_dim"), odd)
    return [
        _said("fades", [m.fades(one, largest) for one in parts], few),
        _said("blocks within", [m.blocks_within(one, largest) for one in parts], few),
        _said("blocks between", [m.blocks_between(one, blocks) for one in parts], none),
        _said("early layers", [m.early_layers(one, names) for one in parts]),
        _said("odd member", [m.odd_member(one, names, odd) for one in parts], few),
        _said("first blocks", [m.first_blocks(m.in_blocks(one, names), odd) for one in parts], none),
        decided(
            RULES["head sizes"],
            [Effect.fact(value, name) for name, value in heads.items()],
            comment="" if heads else few,
        ),
        _said("grows with size", [m.grows_with_size(one, sizes) for one in parts], few),
    ]


def _said(name: str, draws: Sequence[measures.Effects], untested: str = "") -> Statement:
    effects = effects_over(draws, "parts of the text") if any(draws) else ()
    return decided(RULES[name], effects, comment="" if effects else untested)


def average(parts: Sequence[Values]) -> dict[tuple[str, str], Floats]:
    """The mean over parts of the text."""
    return {pair: average_one([one[pair] for one in parts]) for pair in parts[0]}


def average_one(values: Sequence[Floats]) -> Floats:
    found: Floats = np.mean(values, axis=0)
    return found


def available(settings: ScalingSettings, out: Path) -> tuple[ScalingSettings, list[str]]:
    """The settings with the members that are there; at smoke scale without any, with tiny random ones."""
    missing = lacking(settings.family, settings.models_folder)
    names = [name for name in settings.family if name not in missing]
    if len(names) >= 2:
        notes = [f"This installation lacks {', '.join(missing)}: they are left out."] if missing else []
        return replace(settings, family=tuple(names)), notes
    if not missing:
        raise InvalidInput("brown2023-scaling compares the members of a family: name two or more.")
    if settings.scale != "smoke":
        raise ModelError(
            f"brown2023-scaling needs at least two members of the family, and this installation lacks "
            f"{', '.join(missing)}: reinstall thinkalike, or use --scale smoke."
        )
    random_family(out / "models")
    own = replace(settings, family=tuple(SHAPES), odd=ODD, models_folder=str(out / "models"), checkpoints=())
    note = "The family is not in this installation: these are tiny models with random weights."
    return own, [note]


def _checkpoints(streams: Streams) -> tuple[Statement, dict[str, dict[str, float]]]:
    """One member while it trains: the statement, and within and loss of its earlier steps."""
    names = list(streams.settings.checkpoints)
    missing = lacking(names, streams.settings.models_folder)
    if missing or len(names) < 2:
        reason = f"This installation has no {listed(missing or ['earlier checkpoints'])}."
        return _said("grows as loss falls", [], reason), {}
    within = {name: streams.within(name) for name in names}
    facts = {name: streams.loss(name) for name in names}
    losses = {name: facts[name]["loss"] for name in names}
    draws = [
        measures.grows_as_loss_falls({name: within[name][part] for name in names}, losses)
        for part in range(len(streams.parts))
    ]
    earlier = {
        name: {**facts[name], "within": measures.mean_within(average_one(within[name]))}
        for name in names[:-1]
    }
    return _said("grows as loss falls", draws), earlier


def _beyond(streams: Streams, parts: Sequence[Values], names: Sequence[str]) -> list[Statement]:
    """A state-space model beside a Transformer; and, as controls, random weights and no first tokens."""
    name, other = streams.settings.state_space, streams.settings.beside
    both = zip(streams.within(name), streams.within(other), strict=True)
    gaps = [{f"{other} less {name}": measures.mean_within(b) - measures.mean_within(a)} for a, b in both]
    found = [_said("state space", gaps)]
    if streams.settings.controls:
        early = [measures.early_and_later(one, names)[0] for one in parts]
        random = [measures.early_and_later(one, names)[0] for one in streams.families(names, untrained=True)]
        found.append(_said("trained", [{"": a - b} for a, b in zip(early, random, strict=True)]))
        without = streams.families(names, drop_first=1)
        changes = [measures.first_tokens(a, b, names) for a, b in zip(parts, without, strict=True)]
        found.append(_said("first tokens", changes))
    return found


def _heads(streams: Streams, facts: Mapping[str, Mapping[str, float]]) -> dict[str, Mapping[str, float]]:
    """The shapes of the members, and of further ones of which only the configuration is looked at."""
    return {**facts, **{name: streams.shape(name) for name in streams.settings.with_heads}}


def _points(
    facts: Mapping[str, Mapping[str, float]],
    within: Mapping[str, float],
    earlier: Mapping[str, Mapping[str, float]],
) -> pd.DataFrame:
    rows = [
        {"model": figures.short(name), "kind": "member", "within": within[name], **_size(facts[name])}
        for name in facts
    ]
    rows += [
        {"model": figures.short(name), "kind": "checkpoint", "within": one["within"], **_size(one)}
        for name, one in earlier.items()
    ]
    return pd.DataFrame(rows)


def _column(facts: Mapping[str, Mapping[str, float]], key: str) -> dict[str, float]:
    return {name: one[key] for name, one in facts.items()}


def _size(facts: Mapping[str, float]) -> dict[str, float]:
    return {key: facts[key] for key in ("parameters", "loss")}


def table_one(facts: Mapping[str, Mapping[str, float]]) -> Table:
    """The units of an attention head, and how many of them rotate."""
    rows = [{"model": n, "d_head": f["d_head"], "rotary_dim": f["rotary_dim"]} for n, f in facts.items()]
    return Table(
        name="heads",
        title="Attention heads, read from the configurations",
        frame=pd.DataFrame(rows),
        caption="The rotary dimension is how many units of a head carry the position.",
        of_paper="Table 1",
    )


def summary(
    facts: Mapping[str, Mapping[str, float]],
    within: Mapping[str, float],
    scores: Mapping[str, float],
    found: Mapping[str, Blocks],
) -> Table:
    """One row per member."""
    rows = [
        {
            "model": name,
            "parameters": f["parameters"],
            "blocks": f["layers"],
            "width": f["width"],
            "loss": f["loss"],
            "mean CKA within": within[name],
            "unlike the others by": scores[name],
            "first block": found[name].lengths[0] if name in found else None,
        }
        for name, f in facts.items()
    ]
    return Table(
        name="members",
        title="The members",
        frame=pd.DataFrame(rows),
        caption="Loss in nats per token on the text that CKA was computed on. First block: its layers, in "
        "members whose layers fall into blocks.",
    )


def _reading(settings: ScalingSettings, streams: Streams) -> str:
    text = "the bundled sample of English prose" if settings.text is None else streams.text.name
    return (
        f"CKA over up to {settings.max_batches} passages of {settings.length} tokens of {text}, in "
        f"{settings.parts} parts, one passage a batch, unbiased, averaged over batches as in the paper; "
        "layer k is the residual stream after block k."
    )
