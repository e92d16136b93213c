"""The state of a long computation: continued under its own key, and no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from thinkalike.checkpoint import Checkpoint


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    Checkpoint(tmp_path / "state", "key").save({"sums": np.arange(3.0)}, {"position": 7, "trace": [1, 2]})
    found = Checkpoint(tmp_path / "state", "key").load()
    assert found is not None
    arrays, about = found
    np.testing.assert_array_equal(arrays["sums"], [0, 1, 2])
    assert (about["position"], about["trace"]) == (7, [1, 2])


def test_nothing_there_another_key_or_damage_is_a_new_beginning(tmp_path: Path) -> None:
    path = tmp_path / "state"
    assert Checkpoint(path, "key").load() is None
    Checkpoint(path, "key").save({"sums": np.arange(3.0)}, {})
    assert Checkpoint(path, "other").load() is None
    path.write_bytes(path.read_bytes()[:-20])
    assert Checkpoint(path, "key").load() is None


def test_it_is_gone_when_all_is_done(tmp_path: Path) -> None:
    saved = Checkpoint(tmp_path / "state", "key")
    saved.finish()  # nothing to delete is no error
    saved.save({}, {})
    saved.finish()
    assert not saved.path.exists()


def test_it_is_not_saved_again_at_once(tmp_path: Path) -> None:
    assert not Checkpoint(tmp_path / "state", "key", seconds_between=3600).is_due
    assert Checkpoint(tmp_path / "state", "key").is_due
