"""Put finished runs of recipes into the gallery of the docs: `python -m thinkalike.recipes.gallery RUN...`

The findings and every figure are copied; pictures are drawn from the SVG as sharp as `LARGEST` bytes allow.
Of a run with another seed than 0 the verdicts are put beside those of the page; give it after the first.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from thinkalike.errors import StoreError
from thinkalike.files import new_folder, read_json, write_bytes, write_json
from thinkalike.recipes.reproducing import FIGURES, FINDINGS

GALLERY = Path("docs/gallery")
LARGEST = 150_000
SHARPNESS = (2.0, 1.5, 1.25, 1.0, 0.75)


def fill(run: Path, gallery: Path = GALLERY) -> Path:
    """Copy the findings and figures of one run into `gallery`; older ones there are replaced.

    A run at nano scale goes to RECIPE, one at another scale to RECIPE-SCALE. Of one with another seed than 0
    the verdicts go there too, as verdicts-seedN.json.
    """
    if not (run / FINDINGS).exists():
        raise StoreError(f"{run} holds no finished run of a recipe: run `thinkalike reproduce` first.")
    found = read_json(run / FINDINGS)
    place = gallery / (found["recipe"] if found["scale"] == "nano" else f"{found['recipe']}-{found['scale']}")
    if seed := found["settings"].get("seed"):
        verdicts = {statement["paper"]: statement["verdict"] for statement in found["statements"]}
        about = {"seed": seed, "processor_seconds": found["processor_seconds"], "verdicts": verdicts}
        write_json(about, place / f"verdicts-seed{seed}.json")
        return place
    with new_folder(place) as part:
        shutil.copy(run / FINDINGS, part / FINDINGS)
        for figure in found["figures"]:
            svg = (run / FIGURES / f"{figure['name']}.svg").read_text(encoding="utf-8")
            write_bytes(picture(svg), part / FIGURES / f"{figure['name']}.png")
    return place


def picture(svg: str, *, largest: int = LARGEST) -> bytes:
    """The sharpest PNG that is not too large, or the least sharp of all.

    It has 256 colours, chosen for it, on white: one cannot tell, and it takes a fifth of the bytes.
    """
    import vl_convert
    from PIL import Image

    for scale in SHARPNESS:
        drawn = Image.open(BytesIO(vl_convert.svg_to_png(svg, scale=scale))).convert("RGBA")
        opaque = Image.alpha_composite(Image.new("RGBA", drawn.size, "white"), drawn)
        png = BytesIO()
        opaque.convert("RGB").quantize(256).save(png, "PNG", optimize=True)
        if png.tell() <= largest:
            break
    return png.getvalue()


def main(runs: Sequence[str]) -> None:
    for run in runs:
        print(fill(Path(run)))


if __name__ == "__main__":
    main(sys.argv[1:])
