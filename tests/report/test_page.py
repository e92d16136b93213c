"""The page as text: whole in itself, safe with any names, small."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup

from thinkalike.comparison.analyses import Analysis
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.report import write_report
from thinkalike.report.page import TERMS, explained, find_tables, page_data, polished, render
from thinkalike.stimuli.table import Stimuli

EVIL = ("<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "{{ 7 * 7 }} \"q\" 'r' & {a}")
URLS = ("src", "href", "action", "data", "poster", "srcset", "xlink:href", "formaction")


class Page(HTMLParser):
    """The elements of a page, as a browser would find them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else ""
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif not self._inside:
            self.text.append(data)

    def having(self, **wanted: str) -> list[dict[str, str | None]]:
        return [
            a for _, a in self.elements if all(a.get(k.replace("_", "-")) == v for k, v in wanted.items())
        ]

    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the specifications of the charts, which take the time."""
    monkeypatch.setattr("thinkalike.report.page.page_specs", lambda *_: {})


@pytest.fixture(scope="module")
def html(planted: Comparison) -> str:
    return render(planted)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


@pytest.mark.usefixtures("no_charts")
def test_report_is_written_whole_and_nothing_else(planted: Comparison, tmp_path: Path) -> None:
    path = write_report(planted, tmp_path / "run")
    assert path == tmp_path / "run" / "index.html"
    assert [p.name for p in path.parent.iterdir()] == ["index.html"]
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")


def test_the_same_comparison_gives_the_same_bytes(planted: Comparison, html: str) -> None:
    assert render(planted) == html


def test_nothing_is_fetched(page: Page) -> None:
    links = [value for _, attrs in page.elements for key, value in attrs.items() if key in URLS and value]
    assert all(link.startswith(("#", "data:")) for link in links)
    policy = page.having(http_equiv="Content-Security-Policy")[0]["content"] or ""
    assert "default-src 'none'" in policy
    assert {tag for tag, _ in page.elements} & {"iframe", "object", "embed", "img", "audio", "video"} == set()


def test_styles_fetch_nothing(html: str) -> None:
    style = html[html.index("<style>") : html.index("</style>")]
    assert not re.search(r"@import|url\(|https?:", style)


def test_the_answer_is_the_first_thing_after_the_title(planted: Comparison, html: str) -> None:
    header = html[html.index("<h1>") : html.index('<p class="facts">')]
    said = " ".join("".join(Page(header).text).split())
    places = [said.index(part) for part in (planted.answer.alike, "Why?", "How sure is that?", "What next?")]
    assert places == sorted(places)
    assert said.startswith("What makes alpha, beta and gamma think alike?")


def test_every_chart_has_an_alternative_text_or_gets_one(page: Page) -> None:
    charts = [attrs for _, attrs in page.elements if "data-chart" in attrs]
    assert len(charts) == 1 + 2 * 3 + 2 + 4 + 2 + 1
    pair = [a for a in charts if "pair" in (a["class"] or "")]
    assert len(pair) == 4  # the script describes these, for the pair that is shown
    for attrs in charts:
        assert attrs["role"] in ("img", "application")
        assert attrs in pair or len(attrs["aria-label"] or "") > 20


def test_every_chart_has_a_specification_and_its_colours_a_dark_counterpart(page: Page) -> None:
    data = page.data()
    names = {attrs["data-chart"] for _, attrs in page.elements if "data-chart" in attrs} - {"words"}
    assert names <= set(data["specs"])
    assert {f"words-{k}" for k in range(8)} <= set(data["specs"])
    used = set(re.findall(r"#[0-9a-f]{6}\b", json.dumps([data["specs"], data["look"]["config"]])))
    assert len(used) > 20
    assert used <= set(data["look"]["dark"])


def test_the_matrix_can_be_reached_by_keyboard(page: Page) -> None:
    cells = [a for _, a in page.elements if "cells" in (a.get("class") or "").split()]
    assert len(cells) == 2
    assert all(a["tabindex"] == "0" for a in cells)
    assert all("Arrow keys" in (a["aria-label"] or "") for a in cells)


def test_cautions_methods_settings_and_versions_are_said(planted: Comparison, page: Page) -> None:
    said = " ".join(" ".join(page.text).split())
    assert planted.cautions[1].text.split("(")[0].strip() in said
    assert "Benjamini–Hochberg" in said
    for word in ("preset", "euclidean", "numpy", np.__version__):
        assert word in said


@pytest.mark.usefixtures("no_charts")
def test_links_to_the_tables_beside_it(planted: Comparison, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    for name in ("profiles.csv", "profiles.parquet", "my table.csv", "notes.txt"):
        (tmp_path / "tables" / name).touch()
    assert find_tables(tmp_path) == {
        "my table": ["tables/my table.csv"],
        "profiles": ["tables/profiles.csv", "tables/profiles.parquet"],
    }
    page = Page(write_report(planted, tmp_path).read_text(encoding="utf-8"))
    links = [a["href"] for tag, a in page.elements if tag == "a" and "download" in a]
    assert links == ["tables/my%20table.csv", "tables/profiles.csv", "tables/profiles.parquet"]
    assert "importance of every feature in every layer" in page.text


def test_without_tables_that_is_said(page: Page) -> None:
    assert "No tables lie beside this page." in page.text


@pytest.fixture(scope="module")
def evil(plant: Callable[..., Comparison]) -> Comparison:
    systems = dict.fromkeys(EVIL, 2)
    made = plant(systems, (*EVIL, "a.b[0]"), n_sentences=20, n_mapped=20)
    return replace(made, settings={EVIL[0]: EVIL[1]}, versions={EVIL[1]: EVIL[0]})


@pytest.fixture(scope="module")
def evil_html(evil: Comparison) -> str:
    return render(evil)


def test_names_cannot_become_markup(evil_html: str) -> None:
    page = Page(evil_html)
    assert [tag for tag, _ in page.elements].count("script") == 3
    assert "img" not in {tag for tag, _ in page.elements}
    assert not any(key.startswith("on") for _, attrs in page.elements for key in attrs)
    assert page.data()["systems"] == list(EVIL)
    assert page.data()["features"][:3] == [name.replace("_", " ") for name in EVIL]
    assert EVIL[2] in " ".join(page.text)


def test_data_in_the_page_hold_no_angle_bracket(evil_html: str) -> None:
    start = evil_html.index('<script type="application/json" id="data">') + 42
    assert not set("<>&") & set(evil_html[start : evil_html.index("</script>", start)])


def test_51_layers_and_400_words_stay_small(plant: Callable[..., Comparison], tmp_path: Path) -> None:
    big = plant({"a": 7, "b": 13, "c": 31}, n_mapped=400)
    assert write_report(big, tmp_path).stat().st_size < 6e6 / 3


def test_data_do_not_hold_a_number_twice(plant: Callable[..., Comparison]) -> None:
    """With 100 layers the whole data must still leave room in six megabytes."""
    data = page_data(plant({"a": 50, "b": 50}, n_sentences=60, n_mapped=300))
    assert len(json.dumps(data, separators=(",", ":"))) < 4e6


@pytest.mark.usefixtures("no_charts")
@pytest.mark.parametrize("case", ["one system", "no words", "items", "bare", "more measures", "no geometry"])
def test_what_is_not_there_is_left_out(case: str, plant: Callable[..., Comparison]) -> None:
    made = plant({"alpha": 2, "beta": 2}, n_sentences=20, n_mapped=10)
    rsa = made.matrices["rsa"]
    page = Page(
        render(
            {
                "one system": lambda: plant({"solo": 3}, n_sentences=20, n_mapped=10),
                "no words": lambda: replace(made, word_maps=None),
                "items": lambda: replace(made, stimuli=Stimuli(made.stimuli.features)),
                "bare": lambda: replace(
                    made, layer_maps={}, agreements=(), cautions=(), precision=made.precision[:0]
                ),
                "more measures": lambda: replace(
                    made,
                    agreements=made.agreements * 3,
                    matrices={**made.matrices, "cka": SimilarityMatrix("cka", made.rows, np.abs(rsa.values))},
                ),
                "no geometry": lambda: replace(made, matrices={"features": made.matrices["features"]}),
            }[case]()
        )
    )
    charts = [attrs["data-chart"] for _, attrs in page.elements if "data-chart" in attrs]
    said = " ".join(page.text)
    assert ("systems" in charts) == (case != "one system")
    assert ("words" in charts) == (case != "no words")
    assert ("Colour items by" in said) == (case == "items")
    assert ("No caution was raised." in said) == (case == "bare")
    assert (len(page.having(**{"class": "measure"})) == 1) == (case == "more measures")
    assert ("matrix-rsa" in charts) == (case != "no geometry")
    assert ("Do the matrices agree?" in said) == (case == "more measures")


def test_asides_are_set_back_and_names_are_not_broken() -> None:
    assert polished("nano-bert is near (τ_w = 0.7, 10 % of <it>)") == (
        '<span class="nb">nano-bert</span> is near <span class="aside">(τ_w\u00a0=\u00a00.7, 10\u00a0% of '
        "&lt;it&gt;)</span>"
    )


def test_other_analyses_are_shown_where_they_were_tried(comparison: Comparison) -> None:
    """Their table, their curve with its own data, and what was left out; else nothing of it."""
    assert 'id="robustness"' not in render(comparison)
    grid = [
        Analysis("cosine", encoding={"distance": "cosine"}),
        Analysis("means of tokens", reading={"pooling": "mean"}),
    ]
    tried = replace(comparison, tried=comparison.robustness(grid))
    assert tried.tried is not None
    html = render(tried)
    assert 'data-chart="robustness" data-fit="own"' in html
    assert "Not tried: means of tokens (no system would read the text otherwise)." in html
    first = tried.tried.table().iloc[0]
    assert f'<td class="n">{first["agree"]} of {first["analyses"]}</td>' in html
    spec = page_data(tried)["specs"]["robustness"]
    assert len(spec["vconcat"]) == 3
    assert spec["datasets"]


def test_terms_are_explained_where_they_stand(page: Page) -> None:
    opened = [a["popovertarget"] for tag, a in page.elements if tag == "button" and "popovertarget" in a]
    notes = {a["id"] for _, a in page.elements if a.get("class") == "explanation"}
    assert len(notes) == len(TERMS)
    assert set(opened) <= notes
    assert {f"term-{list(TERMS).index(term)}" for term in ("features", "chance", "τ_w", "q")} <= set(opened)


def test_a_term_is_a_button_once_and_never_within_markup_or_a_word() -> None:
    marked = explained("Features, features; other-features <b title='features'>")
    assert marked.count("<button") == 1
    assert marked.startswith('<button type="button" class="term" popovertarget="term-0">Features</button>, f')
    assert explained("mean τ_w").endswith("τ<sub>w</sub></button>")
    assert explained(Markup('<i title="chance">no</i>')) == '<i title="chance">no</i>'
