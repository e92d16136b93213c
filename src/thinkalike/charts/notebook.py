"""Charts in a notebook: live without the network, and a picture where no script runs.

Altair's own renderer fetches Vega when a chart is shown. This one writes the program into the first chart of
a notebook; the charts after it find it there. Under each lies a PNG, which stays where no script is run: in
a notebook that was not trusted, on a page that shows notebooks, on paper.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from uuid import uuid4

import altair as alt

from thinkalike.progress import in_notebook

NAME = "thinkalike"
SHARPNESS = 2
"""Dots of the picture for each of the page"""


@cache
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the copy that vl-convert carries."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


class OfflineRenderer:
    """What Altair calls to show a chart: description → what a notebook may show of it."""

    def __init__(self) -> None:
        self._written = False
        """Whether a chart before this one brought the program"""

    def __call__(self, spec: dict[str, object], **_: object) -> dict[str, str]:
        import vl_convert

        picture = b64encode(vl_convert.vegalite_to_png(spec, scale=SHARPNESS)).decode()
        program = "" if self._written else f"<script>(() => {{{chart_library()}}})()</script>"
        self._written = True
        place = f"chart-{uuid4().hex}"
        return {
            "text/html": f'<div id="{place}"><img alt="chart" src="data:image/png;base64,{picture}" '
            f'style="max-width: 100%; width: calc(100% / {SHARPNESS}); min-width: 300px"></div>{program}'
            f"<script>{_drawing(place, spec)}</script>",
            "image/png": picture,
        }


def _drawing(place: str, spec: dict[str, object]) -> str:
    """The script that puts the live chart in the place of its picture."""
    described = json.dumps(spec).replace("<", "\\u003c")  # no name can end the script element that holds it
    return (
        f'if (window.vegaEmbed) window.vegaEmbed(document.getElementById("{place}"), {described}, '
        '{mode: "vega-lite"});'
    )


def enable_in_notebooks() -> None:
    """Use it in a notebook whose user chose no renderer of Altair's."""
    if in_notebook() and alt.renderers.active == "default":
        alt.renderers.register(NAME, OfflineRenderer())
        alt.renderers.enable(NAME)
