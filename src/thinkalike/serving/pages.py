"""The addresses that are answered, and to whom: one token, this machine's own names, reading only."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import jinja2
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import thinkalike
from thinkalike.charts.notebook import chart_library
from thinkalike.charts.theme import THEMES
from thinkalike.comparison.plots import MOST_CELLS
from thinkalike.errors import ThinkalikeError, UnknownName, one_line
from thinkalike.populations.between_models import MODEL_DISTANCES
from thinkalike.report.page import SCRIPTS, TEMPLATES, asset, css_variables, environment
from thinkalike.serving.exploring import AtlasExplorer, RunExplorer
from thinkalike.serving.questions import read_question

OWN_TEMPLATES = Path(__file__).parent / "templates"
LONGEST_ADDRESS = 32 * 1024
BASE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""No page of ours may send anything elsewhere, whatever the names in it say"""
EXPLORE = (
    f"{BASE}; script-src 'self' 'unsafe-eval'; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'"
)
FRAMED = f"{BASE}; script-src 'unsafe-inline'; frame-ancestors 'self'"
HEADERS = {
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",  # the token is in the address
    b"x-content-type-options": b"nosniff",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}
Explorer = RunExplorer | AtlasExplorer


def application(explorer: Explorer, *, port: int) -> tuple[ASGIApp, str]:
    """What answers on a port, and the path of its page, which holds the token."""
    token = secrets.token_urlsafe(24)
    routes = _run_routes(explorer) if isinstance(explorer, RunExplorer) else _atlas_routes(explorer)
    app = Starlette(routes=[Mount(f"/{token}", routes=routes)])
    return Guard(app, token=token, hosts=[f"127.0.0.1:{port}", f"localhost:{port}"]), f"/{token}/"


class Guard:
    """Lets through what a reader's own page asks, and nothing else."""

    def __init__(self, app: ASGIApp, *, token: str, hosts: list[str]) -> None:
        self._app, self._token, self._hosts = app, token.encode(), [host.encode() for host in hosts]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS.items()]
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)  # the server's own start and end; sockets it never makes
            return
        refused = self._refusal(scope)
        if refused is not None:
            # Whatever else was sent is not read.
            answer = PlainTextResponse(refused[1], refused[0], headers={"connection": "close"})
            await answer(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason, for what is not answered."""
        named = [value for name, value in scope["headers"] if name == b"host"]
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        sites = [value for name, value in scope["headers"] if name == b"sec-fetch-site"]
        given = scope["raw_path"].split(b"/")[1:2]
        if len(named) != 1 or named[0] not in self._hosts:
            return 403, "This page is for this machine alone."
        if any(origin not in [b"http://" + host for host in self._hosts] for origin in origins):
            return 403, "Other pages may not ask here."
        if any(site not in (b"same-origin", b"none") for site in sites):
            return 403, "Other pages may not ask here."
        if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST_ADDRESS:
            return 414, "The address is too long."
        if not given or not secrets.compare_digest(given[0], self._token):
            return 403, "The address lacks the token: take it from the terminal that serves this page."
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "This page only reads."
        return None


def _run_routes(explorer: RunExplorer) -> list[Route]:
    scripts = "".join(map(asset, SCRIPTS)) + (OWN_TEMPLATES / "explore.js").read_text(encoding="utf-8")

    def page(_: Request) -> Response:
        summary, data = explorer.first()
        html = _template("explore.html.j2").render(
            s=summary, data=data, choices=explorer.choices.to_json(), **_look()
        )
        return HTMLResponse(html, headers={"content-security-policy": EXPLORE})

    turn = asyncio.Lock()

    async def view(request: Request) -> Response:
        try:
            question = read_question(request.query_params.get("q", ""), explorer.choices)
            async with turn:
                if await request.is_disconnected():  # the reader has clicked on, and waits for a later view
                    return Response(status_code=204)
                return JSONResponse(await run_in_threadpool(explorer.view, question))
        except ThinkalikeError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except Exception as error:  # a reader of the page sees no terminal
            text = f"That view failed ({type(error).__name__}: {one_line(error)}). Choose something else."
            return JSONResponse({"error": text}, status_code=500)

    return [
        Route("/", page),
        Route("/view", view),
        Route("/charts.js", lambda _: Response(chart_library(), media_type="text/javascript")),
        Route("/explore.js", lambda _: Response(scripts, media_type="text/javascript")),
    ]


def _atlas_routes(explorer: AtlasExplorer) -> list[Route]:
    def page(request: Request) -> Response:
        by = request.query_params.get("by", next(iter(MODEL_DISTANCES)))
        html = _template("atlas.html.j2").render(distances=MODEL_DISTANCES, by=by, **_look())
        return HTMLResponse(html, headers={"content-security-policy": EXPLORE})

    def inner(request: Request) -> Response:
        by = request.query_params.get("by", "")
        try:
            if by not in MODEL_DISTANCES:
                raise UnknownName.among("distance between models", by, MODEL_DISTANCES)
            html = explorer.page(by)
        except ThinkalikeError as error:
            return PlainTextResponse(str(error), status_code=400)
        return HTMLResponse(html, headers={"content-security-policy": FRAMED})

    script = (OWN_TEMPLATES / "atlas.js").read_text(encoding="utf-8")
    return [
        Route("/", page),
        Route("/atlas", inner),
        Route("/atlas.js", lambda _: Response(script, media_type="text/javascript")),
    ]


def _template(name: str) -> jinja2.Template:
    return environment(OWN_TEMPLATES, TEMPLATES).get_template(name)


def _look() -> dict[str, object]:
    return {
        "css": asset("report.css") + (OWN_TEMPLATES / "explore.css").read_text(encoding="utf-8"),
        "css_variables": css_variables,
        "themes": THEMES,
        "most_cells": MOST_CELLS,
        "version": thinkalike.__version__,
    }
