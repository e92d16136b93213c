"""Links to source files: the repository shows them, and the site takes them along as text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(\.\./((?:src|benchmarks)/[\w/.]+\.py)\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add every source file that a page links to."""
    linked = {path for page in files.documentation_pages() for path in LINK.findall(page.content_string)}
    for path in sorted(linked):
        place = f"{path}.txt"
        files.append(File.generated(config, place, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """`../src/…` and `../benchmarks/…` are right in the repository; here the files lie beside the pages."""
    return LINK.sub(r"](\1.txt)", markdown)
