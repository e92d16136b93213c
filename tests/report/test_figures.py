"""Every chart of the report as a file."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import altair as alt
import pandas as pd
import pytest
from PIL import Image

from thinkalike.charts.drawing import figure_file
from thinkalike.charts.theme import DARK, LIGHT, themed
from thinkalike.comparison.comparison import Comparison
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.report.figures import (
    HIGHEST,
    build_charts,
    build_pair_charts,
    chosen_pair,
    column_width,
    figures,
    file_stem,
    pair_figure,
    write_figures,
)
from thinkalike.report.frames import cell_frames, chart_frames
from thinkalike.report.pairs import Pick

MAGIC = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}
NAMES = {
    "correlations",
    "layers-features",
    "layers-rsa",
    "matrix-features",
    "matrix-rsa",
    "pair-least-alike",
    "profiles",
    "scores",
    "system-map",
    "systems",
}


@pytest.fixture(scope="module")
def small(plant: Callable[..., Comparison]) -> Comparison:
    return plant({"alpha": 2, "beta": 3}, n_sentences=40, n_mapped=20)


@pytest.mark.parametrize("format", MAGIC)
def test_every_chart_is_written(small: Comparison, format: str, tmp_path: Path) -> None:
    paths = write_figures(small, tmp_path / "figures", format=format, pairs=[Pick("least alike", 0, 3)])
    assert {path.stem for path in paths} == NAMES
    assert all(path.read_bytes().startswith(MAGIC[format]) for path in paths)
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {path.name for path in paths}


def test_an_unknown_format_is_named_before_anything_is_written(small: Comparison, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"There is no figure format 'gif'. Known: png, svg, pdf"):
        write_figures(small, tmp_path / "figures", format="gif")
    assert not (tmp_path / "figures").exists()


def test_the_extremes_are_drawn_unless_pairs_are_given(small: Comparison) -> None:
    from thinkalike.report.pairs import picks

    names = [name for name, _ in figures(small, picks(small)[:1])]
    assert "pair-most-alike" in names


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_charts_of_the_page_are_valid(small: Comparison, theme: object) -> None:
    tables = chart_frames(small) | cell_frames(small)
    charts = build_charts(small, tables, source=alt.NamedData, theme=theme, bare=True)  # type: ignore[arg-type]
    charts |= build_pair_charts(
        small,
        names=("{a}", "{b}"),
        domain=(0, 1),
        source=alt.NamedData,
        theme=theme,  # type: ignore[arg-type]
    )
    for chart in charts.values():
        themed(chart, theme).to_dict(validate=True)  # type: ignore[type-var, arg-type]


def test_a_pair_without_word_maps_has_two_charts(small: Comparison) -> None:
    with_words, without = pair_figure(small, 0, 3), pair_figure(replace(small, word_maps=None), 0, 3)
    assert (len(with_words.concat), len(without.concat)) == (4, 2)


def test_words_are_coloured_by_what_matters_most_in_the_pair(small: Comparison) -> None:
    spec = pair_figure(small, 0, 1).to_dict()
    assert spec["concat"][2]["encoding"]["color"]["condition"]["legend"]["title"] == "part of speech"


def test_a_chosen_pair_is_found_by_name(small: Comparison) -> None:
    assert chosen_pair(small, "alpha:1", "beta:2") == Pick("alpha:1 and beta:2", 1, 4)


def test_a_pair_of_one_layer_is_refused(small: Comparison) -> None:
    with pytest.raises(InvalidInput, match="alpha:1 is given twice: name two different layers"):
        chosen_pair(small, "alpha:1", "alpha:1")


def test_a_layer_that_is_not_there_is_named(small: Comparison) -> None:
    with pytest.raises(UnknownName, match="There is no layer '9' in alpha"):
        chosen_pair(small, "alpha:9", "beta:1")


@pytest.mark.parametrize(
    ("text", "stem"), [("a/b:4 and c\\d:8", "a-b-4-and-c-d-8"), ("../x", "x"), ("most alike", "most-alike")]
)
def test_names_of_files_stay_in_their_folder(text: str, stem: str) -> None:
    assert file_stem(text) == stem


@pytest.mark.parametrize(("column", "millimetres"), [("single", 89), ("double", 183)])
def test_a_figure_is_as_wide_as_a_column(column: str, millimetres: float) -> None:
    spec = alt.Chart(pd.DataFrame({"x": [1.0], "y": ["τ"]})).mark_bar().encode(x="x", y="y").to_dict()
    width = column_width(column)
    assert width == millimetres
    picture = Image.open(io.BytesIO(figure_file(spec, "png", width)))
    assert picture.info["dpi"][0] == pytest.approx(300, abs=0.1)
    assert picture.width / 300 * 25.4 == pytest.approx(millimetres, abs=0.1)
    pdf = figure_file(spec, "pdf", width)
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+)", pdf)
    assert box is not None
    assert float(box[1]) / 72 * 25.4 == pytest.approx(millimetres, abs=0.1)
    assert b"/FontFile" in pdf  # letters are part of the file
    assert f'width="{millimetres:.3f}mm"'.encode() in figure_file(spec, "svg", width)


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(UnknownName, match="single"):
        column_width("triple")


def test_every_figure_fits_a_page_and_has_its_fonts_in_its_file(small: Comparison, tmp_path: Path) -> None:
    """Or a journal's printer takes another."""
    for path in write_figures(small, tmp_path, format="pdf", width="single"):
        content = path.read_bytes()
        box = re.search(rb"/MediaBox \[0 0 [\d.]+ ([\d.]+)", content)
        assert box is not None
        assert float(box[1]) / 72 * 25.4 <= HIGHEST, path
        objects = content.split(b"endobj")
        described = [one for one in objects if b"/Type/FontDescriptor" in one.replace(b" ", b"")]
        assert described, path
        assert all(re.search(rb"/FontFile[23]?\b", one) for one in described), path
