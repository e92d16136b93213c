"""Every file is written whole or not at all, and any change of it is noticed."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from thinkalike import files
from thinkalike.errors import DamagedFile, StoreError

FRAME = pd.DataFrame({"layer": [0, 1], "name": ["a", "b"], "value": [0.5, np.nan]})
WRITERS: dict[str, Callable[[Path], Any]] = {
    "x.json": lambda path: files.write_json({"a": [1, 2.5, None], "b": {"c": "é"}}, path),
    "x.parquet": lambda path: files.write_table(FRAME, path, words={"kinds": "{}"}),
    "x.npz": lambda path: files.write_arrays({"s": np.array(["u", "v"])}, path, about={"step": 3}),
}
READERS: dict[str, Callable[[Path], Any]] = {
    ".json": files.read_json,
    ".parquet": files.read_table,
    ".npz": files.read_arrays,
}


def read(path: Path) -> Any:
    return READERS[path.suffix](path)


@pytest.fixture(params=WRITERS)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    WRITERS[request.param](path)
    return path


class TestWhatIsWritten:
    def test_comes_back(self, tmp_path: Path) -> None:
        for name, write in WRITERS.items():
            write(tmp_path / name)
        assert files.read_json(tmp_path / "x.json") == {"a": [1, 2.5, None], "b": {"c": "é"}}
        pd.testing.assert_frame_equal(files.read_table(tmp_path / "x.parquet"), FRAME)
        arrays, about = files.read_arrays(tmp_path / "x.npz")
        assert (arrays["s"].tolist(), about) == (["u", "v"], {"step": 3})

    def test_others_can_read_it(self, tmp_path: Path) -> None:
        for name, write in WRITERS.items():
            write(tmp_path / name)
        assert json.loads((tmp_path / "x.json").read_text("utf-8"))["b"] == {"c": "é"}
        assert pq.read_schema(tmp_path / "x.parquet").metadata[b"kinds"] == b"{}"
        assert np.load(tmp_path / "x.npz")["s"].tolist() == ["u", "v"]
        assert zipfile.ZipFile(tmp_path / "x.npz").testzip() is None

    def test_is_the_same_bytes_for_the_same_content(self, written: Path) -> None:
        first = written.read_bytes()
        WRITERS[written.name](written)
        assert written.read_bytes() == first

    def test_has_the_rights_that_the_user_gives_to_files(self, written: Path) -> None:
        plain = written.with_name("plain")
        plain.write_bytes(b"")
        assert written.stat().st_mode == plain.stat().st_mode

    def test_may_hold_the_mark_of_a_seal_itself(self, tmp_path: Path) -> None:
        mark = (files.MARK + files.ZEROS).decode()
        for name in ("x.json", "y.json"):
            files.write_json({"text": mark * 3}, tmp_path / name)
        assert files.read_json(tmp_path / "x.json") == {"text": mark * 3}
        files.write_table(pd.DataFrame({"text": [mark] * 3}), tmp_path / "x.parquet")
        assert files.read_table(tmp_path / "x.parquet")["text"].tolist() == [mark] * 3


class TestDamage:
    def test_of_any_bit_is_noticed(self, written: Path) -> None:
        whole = written.read_bytes()
        for place in range(len(whole)):
            written.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
            with pytest.raises(DamagedFile, match=r"is damaged, or was changed .* delete it and make it"):
                read(written)

    def test_of_the_length_is_noticed(self, written: Path) -> None:
        whole = written.read_bytes()
        for content in (b"", *(whole[:n] for n in range(1, len(whole), 7)), whole + b" ", b"[" * 100_000):
            written.write_bytes(content)
            with pytest.raises(DamagedFile, match=str(written)):
                read(written)

    def test_a_file_that_is_gone_or_a_folder(self, written: Path) -> None:
        written.unlink()
        with pytest.raises(DamagedFile, match=r"x\.\w+ is missing: delete it and make it anew"):
            read(written)
        written.mkdir()
        with pytest.raises(DamagedFile, match=r"cannot be read \(Is a directory\)"):
            read(written)

    def test_another_whole_file_in_its_place_is_noticed_where_its_seal_is_known(self, tmp_path: Path) -> None:
        seal = files.write_table(FRAME, tmp_path / "a.parquet")
        other = files.write_table(FRAME.iloc[::-1], tmp_path / "b.parquet")
        assert seal != other
        files.read_table(tmp_path / "a.parquet", seal=seal)
        os.replace(tmp_path / "b.parquet", tmp_path / "a.parquet")
        with pytest.raises(DamagedFile, match=r"a\.parquet is another file than was written there: run it"):
            files.read_table(tmp_path / "a.parquet", seal=seal, way_out="run it again")

    def test_values_that_are_not_there(self, tmp_path: Path) -> None:
        with (
            pytest.raises(DamagedFile, match=r"does not hold what belongs there \(KeyError: 'layers'\): run"),
            files.reading(tmp_path / "x.json", "run it again"),
        ):
            {}["layers"]


class TestAWriteThatFails:
    @pytest.mark.parametrize("name", WRITERS)
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
    def test_leaves_what_was_there(
        self, name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / name
        WRITERS[name](path)
        before = path.read_bytes()

        def full(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "replace", full)
        way_out = "free some space or name another place" if number == errno.ENOSPC else "name another place"
        with pytest.raises(StoreError, match=rf"x\.\w+ cannot be written \(.*\): {way_out}"):
            WRITERS[name](path)
        assert path.read_bytes() == before
        assert [one.name for one in tmp_path.iterdir()] == [name]

    def test_by_a_limit_of_the_system(self, tmp_path: Path) -> None:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
            with pytest.raises(StoreError, match=r"cannot be written \(File too large\): free some space"):
                files.write_bytes(b"x" * 5000, tmp_path / "x")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, ignored)
        assert not list(tmp_path.iterdir())

    def test_below_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match=r"cannot be written .a part of the path is a file"):
            files.write_text("x", tmp_path / "file" / "x.txt")

    def test_is_foreseen_before_the_work(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match=r"cannot be written .a part of the path is a file"):
            files.try_place(tmp_path / "file" / "new" / "x.npz")
        files.try_place(tmp_path / "new" / "folder" / "x.npz")
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_a_failure_to_tidy_up_hides_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(number: int) -> Callable[..., None]:
            def refusing(*_: object, **__: object) -> None:
                raise OSError(number, os.strerror(number))

            return refusing

        monkeypatch.setattr(os, "replace", refuse(errno.ENOSPC))
        monkeypatch.setattr(Path, "unlink", refuse(errno.EROFS))
        with pytest.raises(StoreError, match="No space left"):
            files.write_text("x", tmp_path / "x.txt")


class TestLeftOvers:
    KILLED = (
        "import os, sys; from pathlib import Path; from thinkalike import files\n"
        "os.replace = lambda *a: os.kill(os.getpid(), 9)\n"
        "files.write_text('half', Path(sys.argv[1]))"
    )

    def test_of_the_killed_are_swept_by_the_next(self, tmp_path: Path) -> None:
        path = tmp_path / "x[1].txt"
        killed = subprocess.run([sys.executable, "-c", self.KILLED, str(path)], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert len(list(tmp_path.glob(".*.part"))) == 1
        files.write_text("other", tmp_path / "x.txt")
        assert len(list(tmp_path.glob(".*.part"))) == 1  # not this one's to sweep
        files.write_text("whole", path)
        assert sorted(one.name for one in tmp_path.iterdir()) == ["x.txt", "x[1].txt"]

    def test_of_the_living_stay(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        part = files._part(tmp_path / "x.txt")
        part.write_text("being written")
        files.write_text("whole", tmp_path / "x.txt")
        assert part.exists()


class TestFolders:
    def test_take_their_place_whole(self, tmp_path: Path) -> None:
        for content in ("one", "two"):
            with files.new_folder(tmp_path / "f") as part:
                (part / content).write_text(content)
        assert [one.name for one in (tmp_path / "f").iterdir()] == ["two"]

    def test_or_not_at_all(self, tmp_path: Path) -> None:
        def fill() -> None:
            with files.new_folder(tmp_path / "f") as part:
                (part / "one").write_text("one")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fill()
        assert not list(tmp_path.iterdir())


def test_many_writers_of_one_file_leave_one_of_theirs(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from thinkalike import files\n"
        "for _ in range(40): files.write_json({'who': sys.argv[2] * 5000}, Path(sys.argv[1]))"
    )
    path = tmp_path / "x.json"
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), who]) for who in "ab"]
    while any(one.poll() is None for one in running):
        if path.exists():
            assert files.read_json(path)["who"] in ("a" * 5000, "b" * 5000)
    assert [one.returncode for one in running] == [0, 0]
    assert [one.name for one in tmp_path.iterdir()] == ["x.json"]


def test_no_other_module_puts_files_in_place() -> None:
    source = Path(files.__file__).parent
    culprits = [
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if "os.replace(" in path.read_text("utf-8") and path != Path(files.__file__)
    ]
    assert not culprits
