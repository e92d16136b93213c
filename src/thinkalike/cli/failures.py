"""The last net: what other libraries and the system raise, as a sentence of ours.

The library raises its own errors where it knows more. What gets through to here is looked up by its class,
and errors of the system by their number; a class that is not in the table is a bug, and says so.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

from thinkalike.errors import ThinkalikeError, one_line

GIVEN, BUG = 2, 70
"""Exit codes: something given or found cannot be worked with; a bug of ours (EX_SOFTWARE of sysexits.h)"""

BY_NUMBER: Mapping[int, str] = {
    errno.ENOSPC: "The disk is full{at}: free some space or name another place; the same command resumes.",
    errno.EDQUOT: "The quota of the disk is used up{at}: free some space or name another place.",
    errno.EFBIG: "A file grew larger than may be{at}: name another place.",
    errno.EROFS: "The place is read-only{at}: name another.",
    errno.EACCES: "The system does not allow it{at}: change the permissions or name another place.",
    errno.EPERM: "The system does not allow it{at}: change the permissions or name another place.",
    errno.ENOTDIR: "A part of the path is a file, not a folder{at}: name another place.",
    errno.EISDIR: "It is a folder, and a file was expected{at}.",
    errno.ENAMETOOLONG: "The name is longer than a file's name can be{at}: give a shorter one.",
    errno.ENOENT: "There is no such file or folder{at}: check the path.",
    errno.EEXIST: "There is already something of that name{at}: remove it or name another place.",
    errno.ENOTEMPTY: "The folder is not empty{at}: remove what is in it or name another.",
    errno.ELOOP: "The link leads back to itself{at}: mend it or name another place.",
    errno.EMFILE: "Too many files are open{at}: raise the limit (ulimit -n).",
    errno.ENFILE: "Too many files are open{at}: close other programs.",
    errno.EIO: "The disk cannot be read or written{at}: it may be damaged; name another place.",
    errno.ENOMEM: "Memory ran out{at}: fewer items, layers or models at once need less.",
    errno.EINVAL: "The system does not take this name or this file{at}.",
}

_AGAIN = "make or copy it again. ({text})"
_NETWORK = "check the connection, or work with a folder. ({text})"

BY_CLASS: Mapping[str, str] = {
    "builtins.MemoryError": "Memory ran out: fewer items, layers or models at once need less. ({text})",
    "builtins.UnicodeDecodeError": "A file is not UTF-8 text: save it as UTF-8. ({text})",
    "builtins.UnicodeEncodeError": "A name or text cannot be written as UTF-8: change it. ({text})",
    "builtins.RecursionError": "Something given is nested too deeply to be read: make it flatter.",
    "builtins.EOFError": f"A file ends too early: {_AGAIN}",
    "builtins.ImportError": "A package is missing or broken: install it with pip. ({text})",
    "builtins.ConnectionError": f"The network failed: {_NETWORK}",
    "builtins.TimeoutError": f"The network did not answer: {_NETWORK}",
    "httpx.HTTPError": f"The network failed: {_NETWORK}",
    "httpx2.HTTPError": f"The network failed: {_NETWORK}",
    "huggingface_hub.HfHubHTTPError": f"The hub did not give what was asked: check the name; {_NETWORK}",
    "torch.OutOfMemoryError": "The device's memory ran out: a smaller --batch-size needs less. ({text})",
    "torch.AcceleratorError": "The device failed: try --device cpu. ({text})",
    "safetensors.SafetensorError": "A file of weights is damaged: fetch or copy it again. ({text})",
    "pickle.UnpicklingError": "A file is damaged, or holds objects that could run code: save arrays as "
    ".npy or .npz, and weights as safetensors. ({text})",
    "json.JSONDecodeError": f"A file is not whole JSON: {_AGAIN}",
    "tomllib.TOMLDecodeError": "A file is not TOML: correct it. ({text})",
    "zlib.error": f"A compressed file is damaged: {_AGAIN}",
    "lzma.LZMAError": f"A compressed file is damaged: {_AGAIN}",
    "zipfile.BadZipFile": f"A .npz or zip file is damaged: {_AGAIN}",
    "botocore.BotoCoreError": "The object store does not answer: check the address, your keys and "
    "AWS_ENDPOINT_URL. ({text})",
    "pyarrow.ArrowException": f"A Parquet file cannot be read or written: {_AGAIN}",
    "pandas.ParserError": "A table cannot be read: correct it, or export it again. ({text})",
    "zarr.BaseZarrError": f"A Zarr store is damaged or of another kind: {_AGAIN}",
}
"""Keys are package and class, so that the table loads no library"""


def told(error: BaseException) -> tuple[str, int]:
    """The line that says what happened, and the exit code."""
    if isinstance(error, ThinkalikeError):
        return f"error: {' '.join(str(error).splitlines())}", GIVEN
    sentence = _of_system(error) if isinstance(error, OSError) else None
    sentence = sentence or _of_class(error)
    if sentence is not None:
        return f"error: {sentence}", GIVEN
    name = type(error).__name__
    return (
        f"bug: {name}: {one_line(error)}. This is not your mistake: run the command again with --debug and "
        "report what it prints.",
        BUG,
    )


def _of_system(error: OSError) -> str | None:
    sentence = BY_NUMBER.get(error.errno or 0)
    if sentence is None:
        return None
    return sentence.format(at="" if error.filename is None else f" ({error.filename})")


def _of_class(error: BaseException) -> str | None:
    for one in type(error).__mro__:
        package = one.__module__.partition(".")[0].lstrip("_")
        sentence = BY_CLASS.get(f"{package}.{one.__qualname__}")
        if sentence is not None:
            return sentence.format(text=one_line(error))
    if isinstance(error, OSError):
        return f"The system refused: {one_line(error)}."
    return None
