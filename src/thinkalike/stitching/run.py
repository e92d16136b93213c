"""`stitch`: the bottom of one model, φ, and the top of another, at one pair of layers or at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from thinkalike.addresses import remove_tree
from thinkalike.checkpoint import Checkpoint
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.options import one_name
from thinkalike.parallel import engine_for
from thinkalike.stimuli.text import Split
from thinkalike.stitching.examples import Examples
from thinkalike.stitching.job import Job
from thinkalike.stitching.material import Material, Text, read_material
from thinkalike.stitching.model_pair import open_pair
from thinkalike.stitching.phi import get_kind
from thinkalike.stitching.result import StitchResult
from thinkalike.stitching.statistics import why_no_range
from thinkalike.stitching.stitch_tasks import StitchedModels, folder_of_tasks, stitch_on_workers
from thinkalike.stitching.stitched import Stitched, Trained, Way, fit_and_judge
from thinkalike.stitching.stitches import Layers, Role, Stitch, all_stitches, chosen_pairs
from thinkalike.stitching.task import TaskFit
from thinkalike.systems.calling import check_tokens
from thinkalike.systems.heads import Task
from thinkalike.systems.system import LoadOptions, System, passage_length, untrained_copy
from thinkalike.types import Facts, Tokenizer

if TYPE_CHECKING:
    from torch import nn

Fit = Literal["none", "least-squares", "task"]
FITS = ("none", "least-squares", "task")
TOKENS_AT_ONCE = 2048  # through a model


@one_name
def stitch(
    bottom: str | Path | nn.Module,
    top: str | Path | nn.Module,
    text: Text,
    *,
    layers: Layers = "all",
    kind: str = "affine",
    fit: Fit | TaskFit | None = None,
    test: Text | None = None,
    rank: int | None = None,
    floor: bool = True,
    ceiling: bool = True,
    task: Task | None = None,
    names: tuple[str, str] | None = None,
    tokenizer: Tokenizer | None = None,
    split: Split | None = None,
    length: int | None = None,
    max_tokens: int = 400_000,
    resamples: int = 2000,
    tokens_at_once: int = TOKENS_AT_ONCE,
    device: str | None = None,
    dtype: str = "float32",
    seed: int = 0,
    checkpoint: str | Path | None = None,
) -> StitchResult:
    """Stitch the bottom of one model to the top of another, and say what it costs (Brown et al. 2023).

    The stitched model is top_{>m} ∘ φ ∘ bottom_{≤l}: the bottom's embeddings and blocks up to layer l, φ, the
    top's blocks after layer m, its final norm and its output layer. Everything but φ is frozen. The penalty
    is the stitched loss minus the top's own loss, in nats per prediction, on text that φ was not fitted on.

    Parameters
    ----------
    bottom, top
        Hub ids, folders, bundled models, or loaded models with their output layer: two causal language
        models, two masked ones, or two sequence classifiers. They must share a tokenizer.
    text
        The path of a text file or of a folder of them, documents as strings, or `LabelledTexts` for
        classifiers.
    layers
        "all": every layer of the bottom with that of the top at the same relative depth. "grid": every one
        with every one. Or numbers (the same layer of both), or pairs (layer of the bottom, of the top). Layer
        0 is the embeddings, L the answer of the last block.
    kind
        Of φ: "identity", "affine", "layernorm-affine" (the paper's), "orthogonal" or "low-rank".
    fit
        "least-squares" (to the top's own states, closed form), "task" (by the loss of the task; settings in
        `TaskFit`), or "none" for the identity. If not given, the identity is not fitted, the others by least
        squares.
    test
        What to judge by, if not a fifth of the documents of `text`.
    rank
        Of a low-rank φ; a quarter of the narrower width.
    floor, ceiling
        Also stitch the top with itself, and the bottom's architecture with random weights, in the same way.
    task
        "causal", "masked" or "classification", if the models do not say.
    names
        To show; the models' own.
    tokenizer
        If not the models' own.
    split
        What a document of a file or folder is: "files", "paragraphs" or "lines". If not given, the files of a
        folder and the paragraphs of a file.
    length
        Of a passage in tokens; as much as both models read, 1,024 at most.
    max_tokens
        Of the text that are used.
    resamples
        Of the documents, for 95 % intervals.
    tokens_at_once
        How many go through the models together.
    device, dtype
        Where to run, and the precision of the weights.
    seed
        Of the split into text to fit and to judge by, of resamples, masks and random weights.
    checkpoint
        A file for the state of a fit by task loss: the same call again goes on from there. It is gone when
        all is done. Within `ta.workers`, a folder beside it (`….tasks`) has what tasks have finished.

    Returns
    -------
    StitchResult

    Examples
    --------
    >>> import thinkalike as ta
    >>> text = ["The king went home and the queen went to sleep. " * 8] * 10
    >>> found = ta.stitch("nano-gelu-3l", "nano-solu-3l", text, layers=[1, 2], ceiling=False)
    >>> len(found.to_frame())
    2
    """
    how, fit = _how(kind, fit)
    if rank is not None and kind != "low-rank":
        raise InvalidInput(f"rank={rank} has a meaning only with kind='low-rank': leave it out.")
    if length is not None and length < 2:
        raise InvalidInput(f"length={length}: a passage needs at least 2 tokens.")
    options = LoadOptions(device=device, dtype=dtype, seed=seed)
    below, above = open_pair(bottom, top, options, names=names, task=task, tokenizer=tokenizer)
    pairs = chosen_pairs(layers, below, above)
    job = _job(below, above, pairs, floor=floor, ceiling=ceiling, seed=seed)
    material = read_material(
        text,
        test,
        above,
        parts={"none": ["test"], "least-squares": ["fit", "test"]}.get(fit, ["fit", "validation", "test"]),
        length=passage_length([below, above], length),
        split=split,
        max_tokens=max_tokens,
        seed=seed,
    )
    for system in (below, above):
        check_tokens(system.stack, material.test.tokens.ids)
    settings = {
        "layers": [list(pair) for pair in pairs],
        "kind": kind,
        "fit": fit,
        "rank": rank,
        "task_fit": asdict(how) if how is not None else None,
        "task": above.task,
        "models": {"bottom": below.about, "top": above.about},
        "dtype": dtype,
        "seed": seed,
        "resamples": resamples,
        "test_digest": _digest(material.test),
        "tokens": {
            part: getattr(material, part).n_tokens
            for part in ("fit", "validation", "test")
            if getattr(material, part) is not None
        },
    }
    way = Way(kind, how, rank, seed, tokens_at_once)
    engine = engine_for("extract")
    if engine is not None and isinstance(bottom, (str, Path)) and isinstance(top, (str, Path)):
        models = StitchedModels((str(bottom), str(top)), above.task, options)
        key = _key(settings, job, material)
        stitched = stitch_on_workers(engine, job, models, material, way, key, checkpoint)
    else:
        saved = None
        if checkpoint is not None and how is not None:
            saved = Checkpoint(checkpoint, _key(settings, job, material))
        stitched = fit_and_judge(job, material, way, saved)
        if saved is not None:
            saved.finish()
    if checkpoint is not None:
        remove_tree(folder_of_tasks(checkpoint))
    return _result(job, material, stitched, kind, fit, settings)


def _how(kind: str, fit: Fit | TaskFit | None) -> tuple[TaskFit | None, Fit]:
    """The settings of a fit by task loss, if it is one, and the name of the fit."""
    get_kind(kind)
    how = fit if isinstance(fit, TaskFit) else TaskFit() if fit == "task" else None
    name: Fit | None = "task" if isinstance(fit, TaskFit) else fit
    if name is None:
        name = "none" if kind == "identity" else "least-squares"
    if name not in FITS:
        raise UnknownName.among("way to fit φ", name, FITS)
    if kind == "identity" and name != "none":
        raise InvalidInput(f"The identity has nothing to fit: leave out fit={name!r}, or use kind='affine'.")
    if kind != "identity" and name == "none":
        raise InvalidInput(f"A φ of kind {kind!r} must be fitted: use fit='least-squares' or 'task'.")
    return how, name


def _job(
    bottom: System, top: System, pairs: list[tuple[int, int]], *, floor: bool, ceiling: bool, seed: int
) -> Job:
    bottoms: dict[Role, System] = {"pair": bottom}
    floor = floor and bottom is not top  # a model on both sides is its own floor
    if floor:
        bottoms["self"] = top
    if ceiling:
        bottoms["untrained"] = untrained_copy(bottom, seed=seed)
    return Job(bottoms, top, all_stitches(pairs, floor=floor, ceiling=ceiling))


def _digest(examples: Examples) -> str:
    from hashlib import sha256

    arrays = (examples.tokens.ids, examples.tokens.mask, examples.targets, examples.units)
    return sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in arrays)).hexdigest()


def _key(settings: Facts, job: Job, material: Material) -> str:
    """Of all that changes the numbers."""
    from thinkalike.provenance import digest_of

    identities = {role: system.identity for role, system in job.bottoms.items()}
    texts = [_digest(one) for one in (material.fit, material.validation) if one is not None]
    return digest_of({**settings, "identities": identities, "top": job.top.identity, "texts": texts})


def _result(
    job: Job,
    material: Material,
    stitched: Stitched,
    kind: str,
    fit: Fit,
    settings: Facts,
) -> StitchResult:
    found, trained = stitched.judged, stitched.trained
    used = np.flatnonzero(found.own.count)
    curves = [
        {**stitch._asdict(), "step": step, "split": split, "loss": loss}
        for stitch, one in trained.items()
        for step, split, loss in one.curve
    ]
    training = [
        {"steps": one.last_step, "best_step": one.best_step, "stopped": one.stopped}
        for one in trained.values()
    ]
    return StitchResult(
        bottom=job.bottoms["pair"].name,
        top=job.top.name,
        task=job.task,
        kind=kind,
        fit=fit,
        stitches=job.stitches,
        losses=np.stack([found.stitched[stitch].loss[used] for stitch in job.stitches]),
        correct=np.stack([found.stitched[stitch].correct[used] for stitch in job.stitches]),
        own_losses=found.own.loss[used],
        own_correct=found.own.correct[used],
        counts=found.own.count[used],
        unit=material.unit,
        explained=np.array([stitched.explained[stitch] for stitch in job.stitches]),
        checks=pd.DataFrame([vars(found.checks[stitch]) for stitch in job.stitches]),
        curves=pd.DataFrame(curves, columns=[*Stitch._fields, "step", "split", "loss"]),
        training=pd.DataFrame(training, columns=["steps", "best_step", "stopped"] if training else []),
        cautions=(*material.cautions, *why_no_range(len(used), material.unit), *_cautions(trained, job)),
        settings=settings,
        depths=(job.bottoms["pair"].stack.n_blocks, job.top.stack.n_blocks),
        phis=dict(stitched.phis),
    )


def _cautions(trained: Mapping[Stitch, Trained], job: Job) -> list[str]:
    return [
        f"The fit of {job.bottoms[stitch.role].name}:{stitch.layer_bottom} → {job.top.name}:"
        f"{stitch.layer_top} diverged at step {one.last_step}: φ is that of step {one.best_step}, the best "
        "before. Use a smaller learning rate."
        for stitch, one in trained.items()
        if one.stopped == "diverged"
    ]
