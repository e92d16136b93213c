"""Charts in a notebook: a real kernel runs the cells."""

from __future__ import annotations

import base64
from typing import Any

import altair as alt
import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient

from thinkalike.charts.notebook import OfflineRenderer, enable_in_notebooks

CHART = 'SimilarityMatrix("cka", (("a", 0), ("a", 1)), np.eye(2)).plot()'
FIRST = "import numpy as np\nfrom thinkalike.comparison.similarity_matrix import SimilarityMatrix\n" + CHART


def run(*cells: str) -> list[list[Any]]:
    """The outputs of each cell."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(book, timeout=300, kernel_name="python3").execute()
    return [cell.outputs for cell in book.cells]


@pytest.fixture(scope="module")
def outputs() -> list[list[Any]]:
    working = (
        "from thinkalike.progress import progress\n"
        "with progress('reading <b>', 3) as step:\n    step.advance()"
    )
    telling = (
        "from thinkalike.comparison.cautions import Caution, tell\n"
        "tell([Caution('low-score', 'a < b: little.'), Caution('few-features', 'Few.')])\ntell([])"
    )
    return run(FIRST, CHART, working, telling, "from thinkalike.progress import say\nsay('5 layers < 10 s')")


def bar(name: str = "a") -> alt.Chart:
    return alt.Chart(pd.DataFrame({"x": [1, 2], "name": [name, "b"]})).mark_bar().encode(x="x", y="name")


def test_the_first_chart_brings_its_program_and_none_is_fetched(outputs: list[list[Any]]) -> None:
    first, second = (cell[-1]["data"] for cell in outputs[:2])
    assert len(first["text/html"]) > 500_000 > len(second["text/html"])
    for shown in (first, second):
        assert "vegaEmbed(document.getElementById" in shown["text/html"]
        assert "https://cdn" not in shown["text/html"]


def test_a_picture_lies_under_it(outputs: list[list[Any]]) -> None:
    shown = outputs[0][-1]["data"]
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert shown["image/png"].strip() in shown["text/html"]


def test_progress_is_drawn_on_the_page_and_leaves_nothing(outputs: list[list[Any]]) -> None:
    (place,) = outputs[2]
    assert place["data"]["text/html"] == ""  # it was updated to nothing at the end


def test_cautions_are_one_quiet_box(outputs: list[list[Any]]) -> None:
    (box,) = outputs[3]
    assert "To keep in mind (2)" in box["data"]["text/html"]
    assert "<li>a &lt; b: little.</li><li>Few.</li>" in box["data"]["text/html"]


def test_what_is_said_on_the_way_does_not_look_like_an_error(outputs: list[list[Any]]) -> None:
    (line,) = outputs[4]
    assert line["output_type"] == "display_data"  # on stderr it would be painted red
    assert "5 layers &lt; 10 s" in line["data"]["text/html"]


def test_a_name_cannot_end_the_script() -> None:
    html = OfflineRenderer()(bar("</script><script>alert(1)</script>").to_dict())["text/html"]
    assert "<script>alert" not in html


def test_outside_of_notebooks_altair_is_left_alone() -> None:
    before = alt.renderers.active
    enable_in_notebooks()
    assert alt.renderers.active == before


def test_a_renderer_that_the_user_chose_stays() -> None:
    ((shown,),) = run("import altair as alt\nchosen = alt.renderers.enable('svg')\n" + FIRST)
    assert "image/svg+xml" in shown["data"]
