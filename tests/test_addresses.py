"""Places that are not of this machine: files there, who owns them, and what is said when they refuse."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import thinkalike as ta
from tests.object_store import ObjectStore
from tests.waiting import until
from thinkalike import leases
from thinkalike.addresses import filesystem, is_address, is_local, place, remove_tree
from thinkalike.comparison.comparison import Comparison
from thinkalike.errors import DamagedFile, InvalidInput, MissingExtra, StoreError
from thinkalike.files import read_json, write_bytes, write_json
from thinkalike.ownership import LOCK, owning


def test_what_is_an_address() -> None:
    assert [is_address(x) for x in ("a/b", "C:/b", "s3://b/k", Path("s3://b/k"), "file:///tmp/x")] == [
        False,
        False,
        True,
        True,
        False,
    ]
    assert place("file:///tmp/x") == Path("/tmp/x")
    assert str(place(Path("memory://x/y"))) == "memory://x/y"
    assert is_local(place("a/b"))
    assert not is_local(place("memory://x"))


def test_what_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("s3://", "s3:///run"):
        with pytest.raises(InvalidInput, match=rf"{address} names no bucket: give an address such as s3://"):
            place(address)
    with pytest.raises(InvalidInput, match=r"zzz://x is an address of no kind that is known \(zzz\)"):
        place("zzz://x")
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(MissingExtra, match=r"pip install 'thinkalike\[s3\]'"):
        place("memory://x")


def test_without_the_package_that_knows_the_store() -> None:
    """In a process of its own: who has opened such a store before has the package at hand."""
    asks = (
        "import sys; sys.modules['s3fs'] = None; from thinkalike.addresses import place; place('s3://lab/x')"
    )
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True)
    assert "'s3fs', which is not installed" in done.stderr
    assert "thinkalike[s3]" in done.stderr


@pytest.mark.parametrize("scheme", ["memory", "s3"])
def test_files_at_an_address(scheme: str, bucket: str, tmp_path: Path) -> None:
    root = place(bucket if scheme == "s3" else f"memory://{tmp_path.name}")
    seal = write_json({"a": 1}, root / "deep" / "x.json")
    assert read_json(root / "deep" / "x.json") == {"a": 1}
    assert seal == write_json({"a": 1}, tmp_path / "x.json")
    assert (root / "deep" / "x.json").read_bytes() == (tmp_path / "x.json").read_bytes()
    write_bytes(b"other", root / "deep" / "x.json")
    with pytest.raises(DamagedFile, match="is damaged, or was changed"):
        read_json(root / "deep" / "x.json")
    with pytest.raises(DamagedFile, match="is missing"):
        read_json(root / "no.json")
    remove_tree(root)
    assert not root.exists()


def test_tables_profiles_and_matrices_at_an_address(bucket: str) -> None:
    stimuli = ta.Stimuli.from_grammar(12, seed=0, grammar="salle2024")
    for suffix in ("parquet", "csv"):
        stimuli.save(f"{bucket}/words.{suffix}")
        assert ta.Stimuli.from_table(f"{bucket}/words.{suffix}").digest == stimuli.digest
    assert ta.Stimuli.load(Path(f"{bucket}/words.csv")).digest == stimuli.digest
    X = np.random.default_rng(0).normal(size=(len(stimuli), 4))
    made = ta.profile({"a": X}, stimuli, resamples=0)
    made.save(f"{bucket}/profile")
    np.testing.assert_array_equal(type(made).load(f"{bucket}/profile").importance, made.importance)
    matrix = ta.similarity([X, X[:, :2]], measure="cka")
    matrix.save(f"{bucket}/matrix")
    pd.testing.assert_frame_equal(type(matrix).load(f"{bucket}/matrix").to_frame(), matrix.to_frame())


def test_what_a_store_refuses_is_one_line(object_store: ObjectStore, bucket: str) -> None:
    stimuli = ta.Stimuli.from_grammar(5, seed=0)
    with pytest.raises(StoreError, match=r"s3://nobody/x\.parquet cannot be reached .*name of the bucket"):
        stimuli.save("s3://nobody/x.parquet")
    with pytest.raises(InvalidInput, match=r"There is no file s3://lab/no\.csv"):
        ta.Stimuli.from_table("s3://lab/no.csv")
    with pytest.raises(StoreError, match=f"{bucket} holds no run of thinkalike"):
        Comparison.load(bucket)
    object_store.refuse = True
    for call in (
        lambda: stimuli.save(f"{bucket}/x.parquet"),
        lambda: ta.Stimuli.from_table(f"{bucket}/x.parquet"),
        lambda: Comparison.load(bucket),
        lambda: ta.Activations.open(f"{bucket}/x.zarr"),
    ):
        with pytest.raises(StoreError, match=r"cannot be reached \(.*\): check your keys"):
            call()


def test_a_server_that_is_not_there(bucket: str) -> None:
    code = (
        "import sys; from thinkalike.cli.boundary import run; "
        f"sys.exit(run(['explain', '{bucket}', 'a:1', 'b:1']))"
    )
    environment = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    found = _python(code, environment)
    assert found.returncode == 2
    assert found.stderr.startswith(f"error: {bucket} cannot be reached (Could not connect to the endpoint")
    assert len(found.stderr.splitlines()) == 1


def _python(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )


OWNER = """
import sys
from thinkalike.addresses import place
from thinkalike.ownership import owning
with owning(place(sys.argv[1]), lambda busy: None):
    print("begun", flush=True)
    sys.stdin.read()
"""


def nothing(busy: bool) -> None:
    """Whoever asks may work here."""


def test_one_owner_at_an_address(bucket: str) -> None:
    folder = place(bucket)
    asked = []

    def refuse(busy: bool) -> None:
        asked.append(busy)
        if busy:
            raise StoreError("another run")

    with owning(folder, nothing):
        assert (folder / LOCK).exists()
        with pytest.raises(StoreError, match="another run"), owning(folder, refuse):
            raise AssertionError
    assert asked == [False, True]
    assert not (folder / LOCK).exists()


def test_a_dead_process_of_this_machine_owns_nothing(bucket: str) -> None:
    command = [sys.executable, "-c", OWNER, bucket]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        assert not leases.Lease(place(bucket) / LOCK).acquired()
        process.kill()
    with owning(place(bucket), nothing):
        pass
    assert not (place(bucket) / LOCK).exists()


def test_an_owner_elsewhere_that_is_silent_is_dead(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that renews its lease is not, however long it takes; by a clock that we set."""
    now = [0.0]
    monkeypatch.setattr(leases, "clock", lambda: now[0])
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.01)
    lock = place(bucket) / LOCK
    files, name = filesystem(lock)
    files.pipe_file(name, b'{"owner": "x", "host": "elsewhere", "process": 1, "beat": 0}')
    first, second = leases.Lease(lock), leases.Lease(lock)
    assert not first.acquired()
    now[0] += leases.LEASE_SECONDS - 1
    assert not first.acquired()
    now[0] += 2
    assert first.acquired()
    first.own["host"] = "elsewhere"  # it cannot be asked whether it lives
    for _ in range(5):
        beats = first.own["beat"] + 2
        until(lambda beats=beats: first.own["beat"] > beats)  # so many have come through
        assert not second.acquired()
        now[0] += leases.LEASE_SECONDS - 1
    first.release()
    assert second.acquired()
    second.release()


def test_of_two_that_inherit_one_begins(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find the owner dead at the same moment: the store takes only the first."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.0)
    lock = place(bucket) / LOCK
    files, name = filesystem(lock)
    files.pipe_file(name, b'{"owner": "x", "host": "elsewhere", "process": 1, "beat": 0}')
    first, second = leases.Lease(lock), leases.Lease(lock)
    tag = second._current_tag()
    assert first.acquired()
    assert tag is not None
    assert not second._put(IfMatch=tag)
    first.release()


@pytest.mark.parametrize("beat", [0.01, 3600])
def test_a_lease_that_was_lost_is_told(beat: float, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not it was seen before the end."""
    monkeypatch.setattr(leases, "BEAT_SECONDS", beat)
    lock = place(bucket) / LOCK
    files, name = filesystem(lock)

    def work() -> None:
        with owning(place(bucket), nothing):
            (renewing,) = (one for one in threading.enumerate() if one.name == f"lease of {lock}")
            files.pipe_file(name, b'{"owner": "x", "host": "elsewhere", "process": 1, "beat": 0}')
            if beat < 1:
                until(lambda: not renewing.is_alive())

    with pytest.raises(StoreError, match="Another process took over"):
        work()
    assert lock.exists()  # it is the other's
