"""The paper's statements on GeLU and SoLU, each a function of tables of penalties alone."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from thinkalike.recipes.findings import Statement, Verdict

GELU, SOLU = "GeLU", "SoLU"
NARROW, WIDE = "narrow", "wide"
LEVELLED = 0.1  # of all that was gained, at most, in the last quarter of the steps


def verdict(holds: bool) -> Verdict:
    return "agrees" if holds else "differs"


def untested(paper: str, missing: Sequence[str], *, beyond: bool = False) -> Statement:
    """For models that are not here."""
    names = ", ".join(missing) or "models that this scale has not"
    return Statement(paper, f"Not tested: it needs {names}.", "cannot be tested", beyond=beyond)


ASYMMETRY = (
    "Feeding SoLU features into a GeLU model costs more than the reverse, in every model size and layer."
)
SELF = "Stitched with itself, a SoLU model loses less than a GeLU model: its maps are easier to learn."
CROSS = (
    "Both ways between GeLU and SoLU cost more than GeLU into itself: it is not only the learning of maps."
)
BLIND = "CKA cannot show the asymmetry: it sees a distance between features, not their use."
CURVES = "The maps are learnt: the loss levels off."
CAPACITY = (
    "The asymmetry may come from SoLU's lower capacity, as with models of different width: features of a "
    "narrow model in a wide one should then cost more than the reverse."
)
SEEDS = "The asymmetry belongs to the activations and not to one pair of seeds."
BASELINE = "Stitching another activation costs more than stitching another seed of the same."
SQUARES = "A map fitted by task loss shows what the features hold, and no trick of the map."


def asymmetric(tests: pd.DataFrame) -> Statement:
    """tests : rows of size, layer, difference (SoLU → GeLU minus GeLU → SoLU), low, high, p; of each size
    also mean, mean_low, mean_high over its layers, and unit.
    """
    return Statement(
        ASYMMETRY,
        f"SoLU → GeLU minus GeLU → SoLU is {_ranged(tests)} nats: {_above(tests)}.",
        verdict(_is_above(tests)),
        _differences(tests),
        "figure-1",
    )


def self_stitching(penalties: pd.DataFrame) -> Statement:
    """penalties : rows of size, bottom, top, layer, penalty."""
    solu, gelu = _of(penalties, SOLU, SOLU), _of(penalties, GELU, GELU)
    gap = (gelu - solu).dropna()
    return Statement(
        SELF,
        f"SoLU → SoLU costs {_span(solu)} nats, GeLU → GeLU {_span(gelu)}; SoLU is below in "
        f"{int((gap > 0).sum())} of {len(gap)} layers.",
        verdict(bool((gap > 0).all())),
        {"solu_mean": float(solu.mean()), "gelu_mean": float(gelu.mean()), "mean_gap": float(gap.mean())},
        "figure-1",
    )


def cross_above_self(penalties: pd.DataFrame) -> Statement:
    base = _of(penalties, GELU, GELU)
    there, back = _of(penalties, SOLU, GELU) - base, _of(penalties, GELU, SOLU) - base
    least = float(min(there.min(), back.min()))
    return Statement(
        CROSS,
        f"Above GeLU → GeLU: SoLU → GeLU by {_span(there)} nats, GeLU → SoLU by {_span(back)}.",
        verdict(least > 0),
        {"solu_to_gelu_mean": float(there.mean()), "gelu_to_solu_mean": float(back.mean()), "least": least},
        "figure-1",
    )


def cka_is_blind(cka: pd.DataFrame, tests: pd.DataFrame) -> Statement:
    """cka : rows of size, layer, value (of equal layers, GeLU against SoLU). tests : as in `asymmetric`."""
    seen = int(((tests["low"] > 0) | (tests["high"] < 0)).sum())
    return Statement(
        BLIND,
        f"CKA of equal layers is {_span(cka['value'])} and, by its definition, the same both ways; stitching "
        f"tells the two ways apart in {seen} of {len(tests)} layers.",
        verdict(seen > 0),
        {
            "cka_min": float(cka["value"].min()),
            "cka_max": float(cka["value"].max()),
            "asymmetric_layers": seen,
        },
        "figure-4",
    )


def levels_off(curves: pd.DataFrame) -> Statement:
    """curves : rows of size, series, layer, step, split, loss."""
    shares = []
    for _, one in curves[curves["split"] == "validation"].groupby(["size", "series", "layer"]):
        ordered = one.sort_values("step")
        best = ordered["loss"].cummin().to_numpy()
        late = ordered["step"].to_numpy() >= 0.75 * ordered["step"].max()
        gained = best[0] - best[-1]
        shares.append((best[late][0] - best[-1]) / gained if gained > 1e-3 else 0.0)
    worst = float(max(shares))
    return Statement(
        CURVES,
        f"Of what a map gains over its start, at most {worst:.0%} comes in the last quarter of the steps.",
        verdict(worst <= LEVELLED),
        {"worst_share": worst, "n_maps": len(shares)},
        "figure-6",
    )


def capacity(tests: pd.DataFrame) -> Statement:
    """tests : difference of narrow → wide minus wide → narrow."""
    return Statement(
        CAPACITY,
        f"Narrow → wide minus wide → narrow is {_ranged(tests)} nats: {_above(tests)}. The two models "
        "differ in depth too.",
        verdict(_is_above(tests)),
        _differences(tests),
        "capacity",
        beyond=True,
    )


def repeats(first: pd.DataFrame, second: pd.DataFrame) -> Statement:
    """first, second : tests of two pairs of seeds, as in `asymmetric`, at the same layers."""
    both = first.set_index("layer")["difference"].to_frame("first")
    both["second"] = second.set_index("layer")["difference"]
    both = both.dropna()
    same = int((both["first"] * both["second"] > 0).sum())
    return Statement(
        SEEDS,
        f"With the second seeds SoLU → GeLU minus GeLU → SoLU is {_ranged(second)} nats; its sign is that of "
        f"the first seeds in {same} of {len(both)} layers.",
        verdict(same == len(both)),
        {"layers": len(both), "same_sign": same, **_differences(second)},
        "seeds",
        beyond=True,
    )


def above_other_seeds(penalties: pd.DataFrame) -> Statement:
    """penalties : of one size, with the second seeds (`GeLU seed 1`)."""
    kinds = [
        (_activation(a), _activation(b), a == b)
        for a, b in zip(penalties["bottom"], penalties["top"], strict=True)
    ]
    cross = penalties[[a != b for a, b, _ in kinds]].groupby("layer")["penalty"].mean()
    seeds = penalties[[a == b and not same for a, b, same in kinds]].groupby("layer")["penalty"].mean()
    gap = (cross - seeds).dropna()
    return Statement(
        BASELINE,
        f"Mean cost by layer: another activation {_span(cross)} nats, another seed of the same {_span(seeds)}"
        f"; the activation costs more in {int((gap > 0).sum())} of {len(gap)} layers.",
        verdict(bool((gap > 0).all())),
        {"cross_mean": float(cross.mean()), "seed_mean": float(seeds.mean())},
        "seeds",
        beyond=True,
    )


def same_by_squares(task: pd.DataFrame, squares: pd.DataFrame) -> Statement:
    """task, squares : tests of the asymmetry by the two ways to fit."""
    keys = ["size", "layer"]
    both = task.set_index(keys)[["difference"]]
    both["squares"] = squares.set_index(keys)["difference"]
    same = int((both["difference"] * both["squares"] > 0).sum())
    return Statement(
        SQUARES,
        f"Fitted by least squares to the top's own features, SoLU → GeLU minus GeLU → SoLU is "
        f"{_ranged(squares)} nats: the same sign as by task loss in {same} of {len(both)} layers.",
        verdict(same == len(both)),
        {"layers": len(both), "same_sign": same, **_differences(squares)},
        "squares",
        beyond=True,
    )


def _of(penalties: pd.DataFrame, bottom: str, top: str) -> pd.Series:
    """By size and layer; a baseline that two runs share counts once."""
    chosen = penalties[(penalties["bottom"] == bottom) & (penalties["top"] == top)]
    return chosen.groupby(["size", "layer"])["penalty"].mean()


def _activation(label: str) -> str:
    return label.split()[0]


def _span(values: pd.Series) -> str:
    low, high = (f"{end:z.3f}".replace("-", "−") for end in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def _ranged(tests: pd.DataFrame) -> str:
    return _span(tests["difference"])


def _above(tests: pd.DataFrame) -> str:
    more = int((tests["difference"] > 0).sum())
    means = [
        f"{_span(one['mean'])} with {len(one)} layers (95 % over {one['unit'].iloc[0]}: "
        f"{_span(one['mean_low'])} to {_span(one['mean_high'])})"
        for _, one in tests.groupby("size", sort=False)
    ]
    return f"above 0 in {more} of {len(tests)} layers; its mean over layers is {' and '.join(means)}"


def _is_above(tests: pd.DataFrame) -> bool:
    """In every layer, as the paper says, and on their mean beyond what the choice of texts explains."""
    return bool((tests["difference"] > 0).all() and (tests["mean_low"] > 0).all())


def _differences(tests: pd.DataFrame) -> dict[str, float]:
    return {
        "mean_difference": float(tests["difference"].mean()),
        "smallest": float(tests["difference"].min()),
        "largest": float(tests["difference"].max()),
        "largest_p": float(tests["p"].max()),
        "lowest_mean_low": float(tests["mean_low"].min()),
    }
