"""The server's side of `shell.Shell`: it imports everything once and forks a child for every command.

Most of the time of a small command goes into imports; a fork has them already. The server itself never runs
a command, so it has no threads of its own that a child would miss. Requests and answers are lines of JSON.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import traceback
from typing import Any

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Events:
    """Counts what a child does to files below its folder, and kills it before a chosen one."""

    def __init__(self, folder: str, fatal: int | None) -> None:
        self.folder, self.fatal, self.count = folder, fatal, 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if not isinstance(arguments[2], int) or not arguments[2] & WRITING:
                return
        elif event not in CHANGES:
            return
        if not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith(self.folder):
            self.count += 1
            if self.count == self.fatal:
                os.kill(os.getpid(), signal.SIGKILL)


def run_child(job: dict[str, Any]) -> None:
    """Be the command: never returns."""
    os.setpgrp()
    for number, name in ((0, os.devnull), (1, job["stdout"]), (2, job["stderr"])):
        handle = os.open(name, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    events = Events(os.path.join(job["folder"], ""), job["fatal_event"])
    sys.addaudithook(events)
    limit = job["processor_seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    if job["largest_file"] is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["largest_file"], job["largest_file"]))
    code: Any = 0
    try:
        if job["arguments"][0] == "-c":
            sys.argv = ["-c", *job["arguments"][2:]]
            exec(compile(job["arguments"][1], "<case>", "exec"), {"__name__": "__main__"})
        else:
            from thinkalike.cli import main

            sys.argv = ["thinkalike", *job["arguments"]]
            main()
    except SystemExit as stop:
        code = 0 if stop.code is None else stop.code
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    if job["notes"] is not None:
        with open(job["notes"], "w", encoding="utf-8") as file:
            json.dump({"events": events.count, "modules": sorted(sys.modules)}, file)
    os._exit(code & 255)


def import_all(names: list[str]) -> None:
    """What a first child needed, the next ones find."""
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()  # or every child would copy all of memory as it counts references


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch
    import transformers  # noqa: F401

    import thinkalike.cli  # noqa: F401

    torch.set_num_threads(1)
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")  # children have a standard output of their own
    for line in sys.stdin:
        request = json.loads(line)
        reply: dict[str, Any] = {}
        if "run" in request:
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                run_child(request["run"])
            reply = {"pid": pid}
        elif "wait" in request:
            _, status, used = os.wait4(request["wait"], 0)
            reply = {"code": os.waitstatus_to_exitcode(status), "processor": used.ru_utime + used.ru_stime}
        elif "import" in request:
            import_all(request["import"])
        answer.write(json.dumps(reply) + "\n")
        answer.flush()


if __name__ == "__main__":
    main()
