"""TOML files that can say on which line something stands."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thinkalike.errors import InvalidInput

Toml = dict[str, Any]
"""What a TOML file holds: words, numbers, lists, tables of the same"""


@dataclass(frozen=True)
class Source:
    """A TOML file: its content, and its text for looking up lines."""

    path: Path
    text: str
    content: Toml

    def block_line(self, section: str, key: str, block: str) -> int:
        """The line on which the multi-line string starts that is set as `key` in `[section]`."""
        lines_before = self.key_line(section, key) - 1
        start = len("".join(self.text.splitlines(keepends=True)[:lines_before]))
        return self.text.count("\n", 0, max(self.text.find(block, start), start)) + 1

    def key_line(self, section: str, key: str) -> int:
        """The line on which `key` is set in `[section]`; 1 when it is written in a way we cannot find."""
        within = section == ""
        for number, line in enumerate(self.text.splitlines(), start=1):
            header = re.fullmatch(r"\s*\[+\s*([^\]]+?)\s*\]+\s*(#.*)?", line)
            if header:
                within = header.group(1).replace('"', "") == section
            elif within and re.match(rf'\s*"?{re.escape(key)}"?\s*=', line):
                return number
        return 1

    def error(self, line: int, message: str) -> InvalidInput:
        return InvalidInput(f"{self.path}, line {line}: {message}")


def read_source(path: str | os.PathLike[str]) -> Source:
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InvalidInput(f"{path} cannot be read ({reason}): give the path of a TOML file.") from error
    try:
        return Source(path, text, tomllib.loads(text))
    except ValueError as error:  # TOML that is none, and numbers of thousands of digits
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(found.group(1)) if found else text.count("\n") + 1
        reason = re.sub(r"\s*\(at .*\)|;.*", "", str(error))
        raise InvalidInput(f"{path}, line {line}: not valid TOML ({reason}).") from error
    except RecursionError as error:
        raise InvalidInput(
            f"{path}: brackets within brackets, too deep to read: write it flatter."
        ) from error
