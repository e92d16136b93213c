"""The server, asked by friends and by strangers."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest

import thinkalike as ta
from tests.waiting import until
from thinkalike.comparison.comparison import Comparison
from thinkalike.errors import InvalidInput, MissingExtra, StoreError
from thinkalike.serving import pages
from thinkalike.serving.exploring import RunExplorer, written
from thinkalike.serving.questions import Question, read_question
from thinkalike.serving.server import HOST, LONGEST_REQUEST, serving


def ask(
    page: str, path: str = "", *, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body; `path` is after the token, or from the root if it begins with a slash."""
    parts = urlsplit(page)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    try:
        target = path if path.startswith("/") else parts.path + path
        connection.request(method, target, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def view(page: str, **question: object) -> tuple[int, Any]:
    status, _, body = ask(page, f"view?{urlencode({'q': json.dumps(question)})}")
    return status, json.loads(body)


@pytest.fixture(scope="module")
def everything(run: Path) -> dict[str, Any]:
    found = Comparison.load(run)
    layers = {name: [str(k) for k in profile.layers] for name, profile in found.profiles.items()}
    return {"layers": layers, "features": list(found.features), "distance": "euclidean", "where": None}


class TestFriends:
    def test_the_page_is_there_and_fetches_nothing_from_elsewhere(self, page: str) -> None:
        status, headers, body = ask(page)
        assert status == 200
        assert b"Which layers are alike, and why" in body
        seen = body.decode().partition("<body")[2].partition('id="data"')[0]
        assert "τ<sub>w</sub>" in seen
        assert "τ_w" not in seen
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert b"http://" not in body.replace(b"http://www.w3.org", b"")

    def test_everything_as_in_the_run_gives_the_numbers_of_the_run(
        self, page: str, run: Path, everything: dict[str, Any]
    ) -> None:
        status, found = view(page, **everything)
        assert status == 200
        saved = Comparison.load(run)
        for name, matrix in saved.matrices.items():
            np.testing.assert_allclose(found["matrices"][name], matrix.values.ravel(), atol=6e-4)
        assert found["answer"][0]["html"] == written(saved.answer.alike)
        assert found["cautions"]

    def test_fewer_layers_features_and_words_are_those_of_compare(
        self, page: str, run: Path, everything: dict[str, Any]
    ) -> None:
        saved = Comparison.load(run)
        feature = next(name for name, kind in saved.stimuli.kinds.items() if kind == "nominal")
        level = str(saved.stimuli.features[feature].cat.categories[0])
        chosen = (saved.stimuli.features[feature].astype(str) == level).to_numpy()
        varies = saved.stimuli.features[chosen].nunique() > 1  # what is the same in all words is left out
        others = [name for name in everything["features"] if varies[name]][:3]
        status, found = view(
            page,
            layers={"alpha": ["0", "2"], "gamma": ["1"]},
            features=others,
            distance="cosine",
            where=[feature, level],
        )
        assert status == 200
        assert found["names"] == ["alpha:0", "alpha:2", "gamma:1"]
        stimuli = saved.stimuli.subset(chosen).choose(others)
        assert saved.activations is not None
        arrays = {
            name: {k: saved.activations[name][k][chosen] for k in layers}
            for name, layers in {"alpha": (0, 2), "gamma": (1,)}.items()
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = ta.compare(arrays, stimuli, resamples=0, null=0, distance="cosine")
        for name, matrix in expected.matrices.items():
            np.testing.assert_allclose(found["matrices"][name], matrix.values.ravel(), atol=6e-4)

    def test_a_view_that_cannot_be_made_says_why(self, page: str, everything: dict[str, Any]) -> None:
        status, found = view(page, **{**everything, "features": everything["features"][:1]})
        assert status == 400
        assert "two features or more" in found["error"]
        status, found = view(page, **{**everything, "distance": "no"})
        assert (status, found["error"][:22]) == (400, "There is no distance '")

    def test_a_view_that_nobody_waits_for_any_more_is_not_made(
        self, run: Path, everything: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[int] = []
        come: list[Question] = []
        begun, go_on = threading.Event(), threading.Event()

        def slow(self: RunExplorer, question: Question) -> dict[str, Any]:
            made.append(len(question.features))
            begun.set()
            go_on.wait(60)
            return {}

        def noted(*asked: Any) -> Question:
            come.append(read_question(*asked))
            return come[-1]

        with serving(run) as address, ThreadPoolExecutor() as pool:
            monkeypatch.setattr(RunExplorer, "view", slow)
            monkeypatch.setattr(pages, "read_question", noted)
            parts = urlsplit(address)

            def asking(n_features: int) -> http.client.HTTPConnection:
                question = json.dumps({**everything, "features": everything["features"][:n_features]})
                connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
                connection.request("GET", f"{parts.path}view?{urlencode({'q': question})}")
                return connection

            first = asking(2)
            assert begun.wait(60)
            for n in (3, 4):
                asking(n).close()
            last = pool.submit(view, address, **{**everything, "features": everything["features"][:5]})
            until(lambda: len(come) == 4)
            go_on.set()
            assert first.getresponse().status == 200
            assert last.result(60) == (200, {})
            first.close()
        assert made == [2, 5]


class TestStrangers:
    @pytest.mark.parametrize(
        "path", ["/", "/view?q={}", "/charts.js", "/x/", "//", "/%2e%2e/", "/favicon.ico"]
    )
    def test_nothing_without_the_token(self, page: str, path: str) -> None:
        status, _, body = ask(page, path)
        assert status == 403
        assert b"token" in body

    def test_a_token_that_is_nearly_right(self, page: str) -> None:
        token = urlsplit(page).path.strip("/")
        for wrong in (token[:-1], token + "x", token.swapcase(), token[:-1] + "é".encode().decode("latin-1")):
            assert ask(page, f"/{wrong.encode('ascii', 'ignore').decode()}/view")[0] == 403

    @pytest.mark.parametrize(
        "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "evil.example:80", "", "[::1]:80"]
    )
    def test_other_names_of_this_machine(self, page: str, host: str) -> None:
        """A page elsewhere whose name was made to point here (DNS rebinding) says so in this header."""
        status, _, body = ask(page, Host=host)
        assert status in (400, 403)
        assert b"layers" not in body

    @pytest.mark.parametrize(
        "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1"]
    )
    def test_other_pages(self, page: str, origin: str) -> None:
        assert ask(page, Origin=origin)[0] == 403
        assert ask(page, Origin=page.rsplit("/", 2)[0])[0] == 200

    @pytest.mark.parametrize(
        ("site", "status"), [("cross-site", 403), ("same-site", 403), ("none", 200), ("same-origin", 200)]
    )
    def test_pages_that_the_browser_says_are_elsewhere(self, page: str, site: str, status: int) -> None:
        assert ask(page, Sec_Fetch_Site=site)[0] == status

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
    def test_it_only_reads(self, page: str, method: str) -> None:
        status, headers, _ = ask(page, method=method, body=b"x" * 1000)
        assert status == 405
        assert "access-control-allow-origin" not in headers

    @pytest.mark.parametrize(
        "path",
        [
            "../run.json", "..%2frun.json", "%2e%2e/%2e%2e/etc/passwd", "run.json", "stimuli.parquet",
            "systems",
            "view/../../x", "charts.js/..", "//etc/passwd", "view\x7f", "\\..\\run.json", "view%00",
        ],
    )  # fmt: skip
    def test_there_are_no_files(self, page: str, path: str) -> None:
        try:
            status, _, body = ask(page, path)
        except http.client.InvalidURL:
            return  # the client itself refuses to send it
        assert status in (400, 403, 404)
        assert b"root:" not in body
        assert b"identity" not in body

    def test_an_address_that_is_too_long(self, page: str) -> None:
        assert ask(page, "view?q=" + "x" * 40_000)[0] == 414
        with contextlib.suppress(ConnectionError):  # it may hang up before all is said
            assert ask(page, "view?q=" + "x" * (2 * LONGEST_REQUEST))[0] in (400, 414, 431)
        assert ask(page)[0] == 200

    def test_what_is_no_request(self, page: str) -> None:
        parts = urlsplit(page)
        for sent in (
            b"\x00\xff" * 100,
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"A" * (2 * LONGEST_REQUEST),
        ):
            with (
                socket.create_connection((parts.hostname, parts.port), timeout=30) as client,
                contextlib.suppress(ConnectionError),  # it may hang up before all is said
            ):
                client.sendall(sent)
                answer = client.recv(65_536)
                assert answer == b"" or b" 40" in answer.split(b"\r\n")[0]
        assert ask(page)[0] == 200  # and it is still there

    def test_two_hosts(self, page: str) -> None:
        parts = urlsplit(page)
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as client:
            client.sendall(
                f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nHost: evil.example\r\n\r\n".encode()
            )
            assert b" 40" in client.recv(65_536).split(b"\r\n")[0]

    def test_what_is_asked_is_not_read_as_html(self, page: str, everything: dict[str, Any]) -> None:
        status, headers, body = ask(
            page, f"view?{urlencode({'q': json.dumps({**everything, 'distance': '<script>'})})}"
        )
        assert status == 400
        assert headers["content-type"] == "application/json"
        assert headers["x-content-type-options"] == "nosniff"
        assert b"script" in body

    def test_no_other_address_of_this_machine_answers(self, page: str) -> None:
        mine = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        for other in mine - {HOST}:
            if not str(other).startswith("127."):
                with pytest.raises(OSError, match=r"."):
                    socket.create_connection((str(other), urlsplit(page).port), timeout=5).close()


class TestBeforeItServes:
    def test_a_port_that_is_taken(self, run: Path, page: str) -> None:
        port = urlsplit(page).port
        with pytest.raises(InvalidInput, match=f"Port {port} cannot be used"), serving(run, port=port or 0):
            pass

    def test_a_port_that_is_none(self, run: Path) -> None:
        with pytest.raises(InvalidInput, match="port"), serving(run, port=70_000):
            pass

    def test_no_such_run(self, tmp_path: Path) -> None:
        for place in (tmp_path / "nothing", tmp_path):
            with pytest.raises(StoreError, match="There is no run and no atlas in"), serving(place):
                pass

    def test_vectors_that_are_gone(self, run: Path, tmp_path: Path) -> None:
        copy = Path(shutil.copytree(run, tmp_path / "copy"))
        shutil.rmtree(copy / "systems" / "alpha" / "activations.zarr")
        with pytest.raises(StoreError, match=r"The vectors of the run .* are gone"), serving(copy):
            pass

    def test_without_the_extra_it_says_how_to_get_it(
        self, run: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        with pytest.raises(MissingExtra, match=r"thinkalike\[serve\]"), serving(run):
            pass

    def test_it_ends_with_the_block(self, run: Path) -> None:
        with serving(run) as address:
            assert ask(address)[0] == 200
        with pytest.raises(OSError, match=r"."):
            ask(address)


def test_sentences_are_typeset_and_no_name_in_them_is_markup() -> None:
    assert written("τ_w of <b> is above 5 % (little)") == (
        'τ<sub>w</sub> of &lt;b&gt; is above 5\N{NO-BREAK SPACE}% <span class="aside">(little)</span>'
    )


def _json_in(page: bytes, name: str) -> str:
    return page.decode().partition(f'id="{name}">')[2].partition("</script>")[0]


def test_an_atlas(tmp_path: Path) -> None:
    """Of the bundled models: the outer page, its inner page by every distance, and no other."""
    with serving() as address:
        status, headers, body = ask(address)
        assert status == 200
        assert b"How far apart models are" in body
        assert (
            "mean weighted τ over all pairs of layers" in json.loads(_json_in(body, "distances"))["features"]
        )
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        status, headers, body = ask(address, "atlas?by=features")
        assert status == 200
        assert b"nano-gpt2" in body
        assert "frame-ancestors 'self'" in headers["content-security-policy"]
        assert ask(address, "atlas?by=no")[0] == 400
        assert ask(address, "view?q={}")[0] == 404
