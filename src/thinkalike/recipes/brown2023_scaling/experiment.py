"""`brown2023-scaling` from models to findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from thinkalike.errors import ModelError
from thinkalike.inference.blocks import find_blocks
from thinkalike.recipes.brown2023_scaling import figures, verdicts
from thinkalike.recipes.brown2023_scaling.random_family import ODD, SHAPES, random_family
from thinkalike.recipes.brown2023_scaling.scales import ScalingSettings
from thinkalike.recipes.brown2023_scaling.streams import Streams
from thinkalike.recipes.findings import Figure, Findings, Statement, Table
from thinkalike.recipes.places import lacking
from thinkalike.recipes.steps import Steps
from thinkalike.types import Facts


def run(settings: ScalingSettings, out: Path) -> Findings:
    """CKA within and between the members, each statement tested, and a state-space model beside them."""
    settings, notes = available(settings, out)
    streams = Streams(settings, Steps(out))
    names = list(settings.family)
    values = streams.family(names)
    found = {name: find_blocks(values[name, name]) for name in names}
    facts = {name: {**streams.shape(name), **streams.loss(name)} for name in names}
    within = {name: verdicts.mean_within(values[name, name]) for name in names}
    scores = verdicts.oddness(values, names)
    odd = settings.odd
    controls = settings.controls
    untrained = streams.family(names, untrained=True) if controls else None
    statements = [
        verdicts.fades_with_distance(names[-1], values[names[-1], names[-1]]),
        verdicts.blocks_within(found),
        verdicts.blocks_between(values, found),
        verdicts.early_layers(values, names, untrained=untrained),
        verdicts.odd_member(scores, odd),
        verdicts.first_blocks(found, odd),
        verdicts.head_sizes(_column(facts, "d_head"), _column(facts, "rotary_dim"), odd),
        verdicts.grows_with_size(within, _column(facts, "parameters")),
    ]
    drawn = [
        figures.with_largest(values, names),
        figures.family(values, names),
        figures.within(values, names),
    ]
    statement, earlier = _checkpoints(streams)
    statements.append(statement)
    drawn.append(figures.size_and_loss(_points(facts, within, earlier)))
    if len(names) > 2:
        drawn.append(figures.odd(scores, odd))
    beyond, beside = _state_space(streams)
    statements.append(beyond)
    drawn.append(beside)
    if controls:
        statements.append(verdicts.first_tokens(values, streams.family(names, drop_first=1), names))
    return Findings(
        recipe="brown2023-scaling",
        scale=settings.scale,
        statements=tuple(statements),
        figures=tuple(drawn),
        tables=(table_one(facts), summary(facts, within, scores, found)),
        settings=settings.plain(),
        notes=(*notes, _reading(settings, streams)),
    )


def available(settings: ScalingSettings, out: Path) -> tuple[ScalingSettings, list[str]]:
    """The settings with the members that are there; at smoke scale without any, with tiny random ones."""
    missing = lacking(settings.family, settings.models_folder)
    names = [name for name in settings.family if name not in missing]
    if len(names) >= 2:
        notes = [f"This installation lacks {', '.join(missing)}: they are left out."] if missing else []
        return replace(settings, family=tuple(names)), notes
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
        return verdicts.checkpoints_untested(missing or ["earlier checkpoints"]), {}
    within = {name: verdicts.mean_within(streams.within(name)) for name in names}
    facts = {name: streams.loss(name) for name in names}
    earlier = {name: {**facts[name], "within": within[name]} for name in names[:-1]}
    return verdicts.grows_as_loss_falls(within, {name: facts[name]["loss"] for name in names}), earlier


def _state_space(streams: Streams) -> tuple[Statement, Figure]:
    name, other = streams.settings.state_space, streams.settings.beside
    values = {model: streams.within(model) for model in (name, other)}
    return verdicts.state_space(name, values[name], other, values[other]), figures.state_space(values)


def _points(facts: Facts, within: Mapping[str, float], earlier: Facts) -> pd.DataFrame:
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
    found: Facts,
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
            "first block": None if found[name] is None else found[name].lengths[0],
        }
        for name, f in facts.items()
    ]
    return Table(
        name="members",
        title="The members",
        frame=pd.DataFrame(rows),
        caption="Loss in nats per token on the text that CKA was computed on. First block: how many layers "
        "the best division into blocks puts first; models with fewer than four have none.",
    )


def _reading(settings: ScalingSettings, streams: Streams) -> str:
    text = "the bundled sample of English prose" if settings.text is None else streams.text.name
    return (
        f"CKA over up to {settings.max_batches} passages of {settings.length} tokens of {text}, one "
        "passage a batch, unbiased, averaged over batches as in the paper; layer k is the residual stream "
        "after block k."
    )
