"""What does it cost to put the top of one bundled model on the bottom of another?

Prints the penalty of every layer, both ways, and writes the figure to runs/stitch_two_models.png.
"""

from __future__ import annotations

from pathlib import Path

import thinkalike as ta
from thinkalike.stitching import asymmetry
from thinkalike.stitching.penalty_plots import plot_results
from thinkalike.systems import bundled

MODELS = ("nano-gelu-3l", "nano-solu-3l")
SMALL = {"max_tokens": 20_000, "split": "lines", "ceiling": False}


def main() -> None:
    there = ta.stitch(*MODELS, bundled.sample_text(), **SMALL)
    back = ta.stitch(*MODELS[::-1], bundled.sample_text(), **SMALL)
    columns = ["layer_bottom", "layer_top", "penalty", "low", "high", "floor", "outside"]
    for result in (there, back):
        print(result)
        print(result.to_frame()[columns].to_string(index=False, float_format="{:.3f}".format), "\n")
    print(asymmetry(there, back).to_string(index=False, float_format="{:.3f}".format))
    path = Path("runs/stitch_two_models.png")
    path.parent.mkdir(exist_ok=True)
    plot_results([there, back]).save(path, scale_factor=2)
    print(f"\nThe figure: {path}")


if __name__ == "__main__":
    main()
