"""Stores whose vectors were deleted when nothing needed them any more.

What describes them stays: which model was shown what and how, the names of the rows, the checksums of every
chunk. So it is known what a profile was made of, and the same vectors can be made again.
"""

from __future__ import annotations

from pathlib import Path

import zarr

from thinkalike.addresses import filesystem, reaching
from thinkalike.errors import StoreError
from thinkalike.files import sealed_json

EXPIRED = "done/expired.json"
"""In the folder of an array, so that Zarr passes it over"""


def expire(path: str | Path) -> None:
    """Delete the vectors of a complete store."""
    files, root = filesystem(path)
    with reaching(path):
        files.pipe_file(f"{root}/{EXPIRED}", sealed_json({"expired": "the vectors were deleted"}))
        for name in files.find(f"{root}/layers"):
            if not name.endswith("zarr.json"):
                files.rm_file(name)


def is_expired(path: str | Path) -> bool:
    """Whether the vectors of a store were deleted."""
    files, root = filesystem(path)
    with reaching(path):
        return bool(files.exists(f"{root}/{EXPIRED}"))


def revive(path: str | Path) -> bool:
    """Have the vectors computed again by whoever fills the store next; whether they had been deleted."""
    if not is_expired(path):
        return False
    files, root = filesystem(path)
    with reaching(path):
        zarr.open_array(f"{path}/done", mode="r+")[:] = 0
        files.rm_file(f"{root}/{EXPIRED}")
    return True


def gone(path: str | Path) -> StoreError:
    """The error for who asks for deleted vectors."""
    return StoreError(
        f"The vectors at {path} were deleted when the profiles had been made (keep='profiles'): compare "
        "again with keep='activations' to have them."
    )
