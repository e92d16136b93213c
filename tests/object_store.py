"""An object store on loopback (moto's), which can be told to fail."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

KEYS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}
REFUSAL = "<Error><Code>{code}</Code><Message>{code}</Message></Error>"


@dataclass
class ObjectStore:
    """The server between a client and moto; what it does to requests can be changed while it runs."""

    backend: Callable[..., Iterable[bytes]]
    fail_every: int = 0
    """Of the writes, every so many; 0 for none"""
    refuse: bool = False
    """Whether nothing is allowed"""
    refuse_after: int | None = None
    """So many more writes, then nothing is allowed"""
    writes: int = 0
    failed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def mend(self) -> None:
        self.fail_every, self.refuse, self.refuse_after = 0, False, None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in ("PUT", "POST", "DELETE"):
            with self._lock:
                self.writes += 1
                fails = self.fail_every and self.writes % self.fail_every == 0
                self.failed += bool(fails)
                if self.refuse_after is not None:
                    self.refuse_after -= 1
                    self.refuse = self.refuse or self.refuse_after < 0
            if fails:
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                return _refused(environ, start_response, "503 Service Unavailable", "SlowDown")
        if self.refuse:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return _refused(environ, start_response, "403 Forbidden", "AccessDenied")
        return self.backend(environ, start_response)


def _refused(environ: dict[str, Any], start_response: Any, status: str, code: str) -> Iterable[bytes]:
    body = b"" if environ["REQUEST_METHOD"] == "HEAD" else REFUSAL.format(code=code).encode()
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """A store that is empty but for the bucket `lab`; the environment leads all clients to it."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = ObjectStore(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, store, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        import fsspec

        fsspec.filesystem("s3").mkdir("lab")
        yield store
    server.shutdown()
    thread.join()


_numbers = count()


@pytest.fixture
def bucket(object_store: ObjectStore) -> Iterator[str]:
    """An address with nothing below it; the store is as good as new afterwards."""
    yield f"s3://lab/{next(_numbers)}"
    object_store.mend()
